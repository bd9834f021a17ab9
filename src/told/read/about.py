"""What is remembered of somebody: every memory with the sentence it comes from, how strong it is and when it fades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from told.core.entry import Asserted, Observed, Verb
from told.core.fact import TURN, Fact
from told.core.fading import Strength
from told.core.kind import Kind
from told.core.query import FactQuery, exclude_unlisted
from told.core.text import split_sentences
from told.flow import Flow, call
from told.ports import Store
from told.read.fading import measure_strengths
from told.read.gather import ReadContext
from told.read.guard import find_denials

PAGE_SIZE: Final = 1000
"""How many memories are looked at together."""
MAX_FULL_QUOTE: Final = 200
"""What was said is quoted whole up to so many characters; of more, the sentences that matter."""


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """A memory, the rules of its kind, how strong it is, and the words it was taken from, as far as they are there."""

    fact: Fact
    kind: Kind | None
    strength: Strength
    quote: str | None = None


def list_memory_details(ctx: ReadContext, query: FactQuery) -> Flow[list[MemoryDetail]]:
    """Every memory of a scope, those of a kind together, the strongest first; the kinds by their strongest."""
    details: list[MemoryDetail] = []
    page = replace(exclude_unlisted(query), limit=PAGE_SIZE, offset=0)
    while facts := (yield from call(ctx.store.find_facts, page)):
        denied = find_denials(facts, ctx.guards)
        details += yield from _load_details(
            ctx, [fact for fact in facts if fact.seq not in denied], query
        )
        page = replace(page, offset=page.offset + PAGE_SIZE)
    return _sort_by_kind(details)


def _sort_by_kind(details: Sequence[MemoryDetail]) -> list[MemoryDetail]:
    best: dict[str, float] = {}
    for detail in details:
        best[detail.fact.kind] = max(best.get(detail.fact.kind, 0.0), detail.strength.weight)
    return sorted(
        details, key=lambda e: (-best[e.fact.kind], e.fact.kind, -e.strength.weight, e.fact.seq)
    )


def _load_details(
    ctx: ReadContext, facts: Sequence[Fact], query: FactQuery
) -> Flow[list[MemoryDetail]]:
    strength_by_seq = yield from measure_strengths(ctx, facts, query, with_pace=True)
    quotes = yield from _load_quotes(ctx, query.scope.account, facts)
    return [
        MemoryDetail(
            fact, ctx.kinds.get(fact.kind), strength_by_seq[fact.seq], quotes.get(fact.seq)
        )
        for fact in facts
    ]


# The words ------------------------------------------------------------------------------------------------------------


def _load_quotes(ctx: ReadContext, account: str, facts: Sequence[Fact]) -> Flow[Mapping[int, str]]:
    """What each fact was taken from, by its position, as far as no guard stops the turn that says it."""
    store, evidence_ids = ctx.store, {fact.evidence for fact in facts if fact.evidence is not None}
    if evidence_ids and ctx.guards:
        turns = [
            fact
            for fact in (yield from call(store.facts_from_evidence, account, sorted(evidence_ids)))
            if fact.kind == TURN
        ]
        denied = find_denials(turns, ctx.guards)
        evidence_ids -= {turn.evidence for turn in turns if turn.seq in denied}
    evidence_rows = (
        (yield from call(store.evidence_rows, account, ids=sorted(evidence_ids)))
        if evidence_ids
        else ()
    )
    contents: dict[str, str] = {}
    for evidence_row in evidence_rows:
        observed = yield from _load_verb(store, account, evidence_row.seq)
        if isinstance(observed, Observed):
            contents[observed.id] = observed.evidence.content
    quotes: dict[int, str] = {}
    for fact in facts:
        content = contents.get(fact.evidence or "")
        if content is not None:
            asserted = (
                (yield from _load_verb(store, account, fact.seq))
                if len(content) > MAX_FULL_QUOTE
                else None
            )
            span = asserted.claim.span if isinstance(asserted, Asserted) else None
            quotes[fact.seq] = extract_quote(content, span)
    return quotes


def _load_verb(store: Store, account: str, seq: int) -> Flow[Verb | None]:
    entries = yield from call(store.scan_entries, account, seq - 1, 1)
    return entries[0].verb if entries else None


def extract_quote(content: str, span: tuple[int, int] | None) -> str:
    """The sentences of what was said that a span touches; all of it where it is short or nothing is known."""
    if len(content) <= MAX_FULL_QUOTE or span is None:
        return content
    overlapping = [
        text
        for start, text in _iter_sentences(content)
        if start < span[1] and span[0] < start + len(text)
    ]
    return " ".join(overlapping) or content


def _iter_sentences(content: str) -> Iterator[tuple[int, str]]:
    """Each sentence of a text and where it begins."""
    end = 0
    for text in split_sentences(content):
        start = content.index(text, end)
        end = start + len(text)
        yield start, text
