"""The facts view: every version of every thread, with the ledger positions between which it was the latest."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Asserted, Draft, Entry, Retracted
from told.core.fact import NEVER, Fact
from told.core.scope import Scope
from told.core.text import md5
from told.ports import CloseThread, EndVersion, RowOp


def fold(entry: Entry) -> Sequence[RowOp]:
    """An assertion is a new version of its thread; a retraction closes the thread; erased, they still end what was."""
    draft = entry.draft
    if draft is None:
        return _ended(entry)
    if isinstance(draft.verb, Asserted) and draft.scope is not None:
        return (version(entry, draft, draft.scope, draft.verb),)
    if isinstance(draft.verb, Retracted):
        return (CloseThread(draft.verb.thread, entry.seq),)
    return ()


def _ended(erased: Entry) -> Sequence[RowOp]:
    match erased:
        case Entry(sort="asserted", thread=str(thread), seq=seq):
            return (EndVersion(thread, seq),)
        case Entry(sort="retracted", thread=str(thread), seq=seq):
            return (CloseThread(thread, seq),)
        case _:
            return ()


def version(entry: Entry, draft: Draft, scope: Scope, said: Asserted) -> Fact:
    """The fact an assertion stands for; what has no stated beginning holds from when it was said."""
    claim, valid = said.claim, said.claim.valid
    began = valid.start
    if began is None and valid.end is None and valid.precision == "open":
        began = entry.at if claim.said_at is None else claim.said_at
    return Fact(  # by position: to name them all takes thrice the time
        said.thread, entry.seq, entry.tx, scope, claim.text, md5(claim.text), claim.kind, NEVER, NEVER,
        entry.at if said.since is None else said.since, entry.at,
        -NEVER if began is None else began, NEVER if valid.end is None else valid.end, valid.precision,
        NEVER if claim.expires is None else claim.expires, claim.said_at, claim.role, claim.actor, draft.author,
        claim.evidence, claim.source, claim.subject, claim.predicate, claim.object, claim.polarity, claim.modality,
        claim.confidence, claim.after, claim.meta,
    )  # fmt: skip
