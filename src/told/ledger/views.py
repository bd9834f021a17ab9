"""Fold ledger entries into the rows of the views: evidence, facts, links, passages and ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from told.model.entry import (
    VERBS,
    Asserted,
    Claim,
    Draft,
    Entry,
    Linked,
    Observed,
    Retracted,
    list_blob_hashes,
)
from told.model.fact import (
    LEVEL_SLOTS,
    NEVER,
    PASSAGE_CHARS,
    UNINDEXED_KINDS,
    EvidenceRow,
    Fact,
    Link,
    Passage,
    Tick,
)
from told.model.scope import Scope
from told.ports import VIEWS, CloseThread, EndVersion, Fold, RowOp, View
from told.text.tokens import estimate_tokens, md5_hex, split_pieces


def fold_evidence(entry: Entry) -> Sequence[RowOp]:
    """Fold an observation into an evidence row."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Observed):
        return ()
    id_, evidence = draft.verb.id, draft.verb.evidence
    return (
        EvidenceRow(
            id_,
            entry.seq,
            draft.scope,
            evidence.digest(),
            evidence.source,
            list_blob_hashes(evidence.meta),
        ),
    )


def fold_facts(entry: Entry) -> Sequence[RowOp]:
    """Fold an assertion into a new version, and a retraction into the end of its thread.

    Erased entries still end the version or thread before them.
    """
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
    """Build the fact of an assertion; without a stated start it is valid from when it was said."""
    claim, valid = assertion.claim, assertion.claim.valid
    valid_from = valid.start
    if valid_from is None and valid.end is None and valid.precision == "open":
        valid_from = entry.at if claim.said_at is None else claim.said_at
    return Fact(  # positional arguments: keywords take three times as long
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


def fold_links(entry: Entry) -> Sequence[RowOp]:
    """Fold a link entry into a link row."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Linked):
        return ()
    link = draft.verb
    return (
        Link(entry.seq, link.src, link.rel, link.dst, draft.scope, link.weight, meta=link.meta),
    )


def fold_passages(entry: Entry) -> Sequence[RowOp]:
    """Fold an assertion into one passage per piece of its text and per shorter level."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Asserted):
        return ()
    assertion, scope, seq = draft.verb, draft.scope, entry.seq
    return [
        _build_passage(seq, scope, assertion, slot, text)
        for slot, text in list_indexed_texts(assertion.claim)
    ]


def _build_passage(seq: int, scope: Scope, assertion: Asserted, slot: int, text: str) -> Passage:
    """Build one passage; only slot 0 of a thread's first version belongs to a conversation."""
    claim = assertion.claim
    expires = NEVER if claim.expires is None else claim.expires
    if slot:
        return Passage(seq, scope, text, slot, None, None, NEVER, expires)
    thread = assertion.thread if claim.actor and assertion.since is None else None
    return Passage(seq, scope, text, slot, thread, claim.after, NEVER, expires)


def list_indexed_texts(claim: Claim) -> list[tuple[int, str]]:
    """Return the slots and texts to index for a claim.

    Quarantined claims and topics have none, so that search never finds them.
    """
    if claim.kind in UNINDEXED_KINDS:
        return []
    speaker = claim.actor or claim.role
    if len(claim.text) <= PASSAGE_CHARS:
        texts = [(0, format_indexed_text(speaker, claim.text))]
    else:
        texts = [
            (slot, format_indexed_text(speaker, piece))
            for slot, piece in enumerate(split_pieces(claim.text, PASSAGE_CHARS))
        ]
    for slot, name in LEVEL_SLOTS.items() if claim.meta else ():
        if isinstance(level_text := claim.meta.get(name), str) and level_text.strip():
            texts.append((slot, level_text))
    return texts


def format_indexed_text(speaker: str | None, text: str) -> str:
    """Return the text to embed and index, prefixed with the speaker."""
    return f"{speaker}: {text}" if speaker else text


TICK_SORT, TURNS_KEY, TOKENS_KEY = "tick", "turns", "tokens"


def fold_ticks(entry: Entry) -> Sequence[RowOp]:
    """Fold a user turn or a tick entry into a clock tick."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Observed):
        return ()
    evidence = draft.verb.evidence
    if evidence.sort == TICK_SORT:
        turns = _read_count(evidence.meta, TURNS_KEY, 1)
        token_count = _read_count(evidence.meta, TOKENS_KEY, 0)
        return (Tick(entry.seq, draft.scope, entry.at, turns, token_count),)
    if evidence.sort == "turn" and evidence.role == "user":
        return (Tick(entry.seq, draft.scope, entry.at, 1, estimate_tokens(evidence.content)),)
    return ()


def _read_count(meta: Mapping[str, Any], name: str, default: int) -> int:
    value = meta.get(name, default)
    return value if type(value) is int and value >= 0 else default


VIEW_FOLDS: Mapping[View, tuple[Callable[[Entry], Sequence[RowOp]], tuple[str, ...]]] = {
    "evidence": (fold_evidence, ("observed",)),
    "facts": (fold_facts, ("asserted", "retracted")),
    "links": (fold_links, ("linked",)),
    "passages": (fold_passages, ("asserted",)),
    "ticks": (fold_ticks, ("observed",)),
}
"""The fold of each view and the sorts of entries it applies to."""


def build_fold(views: Sequence[View] = VIEWS) -> Fold:
    """Return a lazy fold for some of the views."""
    selected = [VIEW_FOLDS[view] for view in VIEWS if view in views]
    folds = {sort: [fold for fold, sorts in selected if sort in sorts] for sort in VERBS}

    def fold_entries(entries: Sequence[Entry]) -> Iterator[RowOp]:
        return (
            op
            for entry in entries
            for view_fold in folds.get(entry.sort, ())
            for op in view_fold(entry)
        )

    return fold_entries


fold_all: Fold = build_fold()
