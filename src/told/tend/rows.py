"""What reflection looks at: a memory, what the same scope holds of the same subject and predicate, and what is linked.

A turn leads to the claims that were taken from it. What has no predicate is looked up by its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from told.core.alike import is_same_text
from told.core.entry import Observed
from told.core.fact import NEVER, TURN, UNLISTED_KINDS, Fact, Link
from told.core.query import LATEST, AsOf, FactQuery, IndexQuery
from told.core.text import extract_query_terms
from told.core.when import to_zone
from told.flow import Flow, call
from told.ledger.erase import DERIVED_FROM, SUPPORTS
from told.ports import Store
from told.write.curate.plan import REPEAT_META
from told.write.curate.slots import OPPOSITES, get_sibling_predicates

MAX_FACTS: Final = 200
"""How many memories are looked at together."""

MAX_REPEATS: Final = 64
"""How many times of saying something again are looked up."""

SEARCH_DEPTH: Final = 20
MAX_TERMS: Final = 64


@dataclass(frozen=True, slots=True)
class ReflectionInput:
    """Memories to reflect on, in ledger order, the links that touch them, and on which days each was said.

    `gone` are memories that something here was derived from and that are held no more.
    """

    facts: tuple[Fact, ...] = ()
    links: tuple[Link, ...] = ()
    days: Mapping[str, frozenset[date]] = field(default_factory=dict)
    missing_sources: frozenset[str] = frozenset()


def load_reflection_input(
    store: Store, fact: Fact, now: int, zone: str | None = None
) -> Flow[ReflectionInput]:
    """Everything to be reflected on together with a memory, in exactly its scope."""
    seeds = (yield from _load_claims(store, fact, now)) if fact.kind == TURN else [fact]
    facts_by_id = {seed.id: seed for seed in seeds if seed.kind not in UNLISTED_KINDS}
    for seed in seeds:
        related = (
            yield from _load_same_text(store, seed, now)
            if seed.predicate is None
            else _load_same_predicate(store, seed, now)
        )
        facts_by_id |= {
            candidate.id: candidate for candidate in related if candidate.kind not in UNLISTED_KINDS
        }
    facts = tuple(sorted(facts_by_id.values(), key=lambda candidate: candidate.seq))[-MAX_FACTS:]
    if not facts:
        return ReflectionInput()
    links = [
        link
        for link in (yield from call(store.find_links, fact.scope.account, list(facts_by_id)))
        if link.until == NEVER
    ]
    days = yield from _load_days(store, facts, links, zone)
    return ReflectionInput(
        facts,
        tuple(links),
        days,
        (yield from _find_missing_sources(store, fact.scope.account, facts, links)),
    )


def _load_claims(store: Store, turn: Fact, now: int) -> Flow[list[Fact]]:
    """What is held of what was taken from a turn, where it was said."""
    if turn.evidence is None:
        return []
    versions = yield from call(store.facts_from_evidence, turn.scope.account, [turn.evidence])
    return [
        candidate
        for candidate in versions
        if _is_current(candidate, now)
        and candidate.scope == turn.scope
        and candidate.kind not in UNLISTED_KINDS
    ]


def _is_current(fact: Fact, now: int) -> bool:
    return fact.until == fact.gone == NEVER and fact.expires > now


def _load_same_predicate(store: Store, seed: Fact, now: int) -> Flow[Sequence[Fact]]:
    """What is held of the same subject under the same predicate, its siblings and its opposites."""
    if seed.subject is None or seed.predicate is None:
        return ()
    predicates = (*get_sibling_predicates(seed.predicate), *OPPOSITES.get(seed.predicate, ()))
    pairs = [(seed.subject, name) for name in dict.fromkeys(predicates)]
    return (yield from call(store.current_facts, seed.scope, now, slots=pairs))


def _load_same_text(store: Store, seed: Fact, now: int) -> Flow[Sequence[Fact]]:
    """What is held in the same words."""
    terms = tuple(dict.fromkeys(extract_query_terms(seed.text)))[:MAX_TERMS]
    if not terms:
        return ()
    index_result = yield from call(
        store.index.search,
        IndexQuery(FactQuery(seed.scope, AsOf(LATEST, now)), terms, depth=SEARCH_DEPTH),
    )
    nearby = yield from call(
        store.facts_by_seq, seed.scope.account, [seq for seq, _ in index_result.by_terms]
    )
    return [
        candidate
        for candidate in nearby.values()
        if candidate.scope == seed.scope and is_same_text(candidate.text, seed.text)
    ]


def _find_missing_sources(
    store: Store, account: str, facts: Sequence[Fact], links: Sequence[Link]
) -> Flow[frozenset[str]]:
    """What these memories were derived from and that is held no more."""
    fact_ids = {fact.id for fact in facts}
    sources = {
        link.dst for link in links if link.rel == DERIVED_FROM and link.src in fact_ids
    } - fact_ids
    missing: set[str] = set()
    for thread in sorted(sources):
        if (yield from call(store.get_fact, account, thread)) is None:
            missing.add(thread)
    return frozenset(missing)


# Days -----------------------------------------------------------------------------------------------------------------


def _load_days(
    store: Store, facts: Sequence[Fact], links: Sequence[Link], zone: str | None
) -> Flow[Mapping[str, frozenset[date]]]:
    """On which days each memory was said, the first time and again."""
    days = {fact.id: {to_local_day(get_event_time(fact), zone)} for fact in facts}
    repeats = [
        link for link in links if link.rel == SUPPORTS and _is_repeat(link) and link.dst in days
    ][-MAX_REPEATS:]
    times = yield from _load_said_times(
        store, facts[0].scope.account, [link.src for link in repeats]
    )
    for link in repeats:
        if link.src in times:
            days[link.dst].add(to_local_day(times[link.src], zone))
    return {thread: frozenset(dates) for thread, dates in days.items()}


def _is_repeat(link: Link) -> bool:
    """Whether a link is a witness as the user is one; what a tool repeats tells nothing of the user."""
    return dict(link.meta) == REPEAT_META


def _load_said_times(
    store: Store, account: str, evidence: Sequence[str]
) -> Flow[Mapping[str, int]]:
    """When each piece of evidence was said."""
    times: dict[str, int] = {}
    if not evidence:
        return times
    for evidence_row in (yield from call(store.evidence_rows, account, ids=evidence)):
        for entry in (yield from call(store.scan_entries, account, evidence_row.seq - 1, 1)):
            if isinstance(entry.verb, Observed):
                said_at = entry.verb.evidence.said_at
                times[evidence_row.id] = entry.at if said_at is None else said_at
    return times


def get_event_time(fact: Fact) -> int:
    """When what a memory speaks of was: the time it holds from where that was said, else when it was said."""
    if fact.precision != "open" and fact.valid_from > -NEVER:
        return fact.valid_from
    return fact.created_at if fact.said_at is None else fact.said_at


def to_local_day(at: int, zone: str | None) -> date:
    """The day of an instant."""
    return to_zone(at, zone).date()
