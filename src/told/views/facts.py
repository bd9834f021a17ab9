"""The facts view: every version of every thread, with the ledger positions between which it was the latest."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Asserted, Draft, Entry, Retracted
from told.core.fact import NEVER, Fact
from told.core.scope import Scope
from told.core.text import md5_hex
from told.ports import CloseThread, EndVersion, RowOp


def fold_facts(entry: Entry) -> Sequence[RowOp]:
    """An assertion is a new version of its thread; a retraction closes the thread; erased, they still end what was."""
    draft = entry.draft
    if draft is None:
        return _end_erased_version(entry)
    if isinstance(draft.verb, Asserted) and draft.scope is not None:
        return (build_fact(entry, draft, draft.scope, draft.verb),)
    if isinstance(draft.verb, Retracted):
        return (CloseThread(draft.verb.thread, entry.seq),)
    return ()


def _end_erased_version(erased: Entry) -> Sequence[RowOp]:
    match erased:
        case Entry(sort="asserted", thread=str(thread), seq=seq):
            return (EndVersion(thread, seq),)
        case Entry(sort="retracted", thread=str(thread), seq=seq):
            return (CloseThread(thread, seq),)
        case _:
            return ()


def build_fact(entry: Entry, draft: Draft, scope: Scope, assertion: Asserted) -> Fact:
    """The fact an assertion stands for; what has no stated beginning holds from when it was said."""
    claim, valid = assertion.claim, assertion.claim.valid
    valid_from = valid.start
    if valid_from is None and valid.end is None and valid.precision == "open":
        valid_from = entry.at if claim.said_at is None else claim.said_at
    return Fact(  # by position: to name them all takes thrice the time
        assertion.thread,
        entry.seq,
        entry.tx,
        scope,
        claim.text,
        md5_hex(claim.text),
        claim.kind,
        NEVER,
        NEVER,
        entry.at if assertion.since is None else assertion.since,
        entry.at,
        -NEVER if valid_from is None else valid_from,
        NEVER if valid.end is None else valid.end,
        valid.precision,
        NEVER if claim.expires is None else claim.expires,
        claim.said_at,
        claim.role,
        claim.actor,
        draft.author,
        claim.evidence,
        claim.source,
        claim.subject,
        claim.predicate,
        claim.object,
        claim.polarity,
        claim.modality,
        claim.confidence,
        claim.after,
        claim.meta,
    )
