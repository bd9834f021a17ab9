"""The links view: what bears on what, stated or implied by a claim's evidence."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Asserted, Entry, Linked
from told.core.fact import Link
from told.ports import PutLink, RowOp

DERIVED_FROM = "derived_from"


def fold(entry: Entry) -> Sequence[RowOp]:
    """A stated link, or the link from a claim to the evidence it was taken from."""
    draft = entry.draft
    if draft is None or draft.scope is None:
        return ()
    match draft.verb:
        case Linked(src=src, rel=rel, dst=dst, weight=weight, meta=meta):
            return (PutLink(Link(entry.seq, src, rel, dst, draft.scope, weight, meta=meta)),)
        case Asserted(thread=thread, claim=claim) if claim.evidence is not None:
            return (PutLink(Link(entry.seq, thread, DERIVED_FROM, claim.evidence, draft.scope)),)
        case _:
            return ()
