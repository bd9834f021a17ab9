"""The passages view: the text of each fact version as the index sees it."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Asserted, Claim, Entry
from told.core.fact import NEVER, Passage
from told.ports import PutPassage, RowOp


def fold(entry: Entry) -> Sequence[RowOp]:
    """An assertion becomes one passage."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Asserted):
        return ()
    claim = draft.verb.claim
    expires = NEVER if claim.expires is None else claim.expires
    return (PutPassage(Passage(entry.seq, draft.scope, wording(claim), expires=expires)),)


def wording(claim: Claim) -> str:
    """What is embedded and indexed of a claim: its speaker's name, if known, and its text."""
    return f"{claim.actor}: {claim.text}" if claim.actor else claim.text

