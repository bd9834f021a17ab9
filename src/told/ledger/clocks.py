"""Read decay clocks from the ledger and compute how strong concept beliefs are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from told.flow import Flow, call
from told.model.concepts import FADED, ConceptBelief, ConceptRules, ConceptScopes
from told.model.decay import (
    ClockReadings,
    FactMention,
    compute_strength,
    group_repetitions,
    list_mentions,
)
from told.model.entry import Entry, Observed, Retracted
from told.model.fact import NEVER, Fact
from told.model.kind import Ontology
from told.model.query import LATEST, AsOf
from told.model.salience import DecayClock
from told.model.scope import Scope
from told.ports import Store
from told.settings import Settings

PACE_WINDOW: Final = 100
"""The number of recent turns that determine the pace of a conversation."""


def read_clocks(
    store: Store,
    scope: Scope,
    as_of: AsOf,
    settings: Settings,
    *,
    positions: Iterable[int],
    with_pace: bool = False,
) -> Flow[ClockReadings]:
    """Return the clocks of a scope at a point in time for some ledger positions.

    The store keeps running totals, so the cost does not grow with the conversation.
    `with_pace` adds the pace of recent turns.
    """
    now = min(as_of.seq, LATEST)
    seqs = [*{min(position, now) for position in positions} | {now}]
    counts, recent = yield from call(
        store.tick_totals, scope, seqs, PACE_WINDOW if with_pace else 0
    )
    return ClockReadings.from_counts(
        counts,
        as_of.at,
        recent,
        turn_events=settings.maintenance.turn_events,
        turn_tokens=settings.maintenance.turn_tokens,
    )


def read_fact_clocks(
    store: Store,
    facts: Sequence[Fact],
    mentions: Mapping[int, Sequence[FactMention]],
    kinds: Ontology,
    as_of: AsOf,
    settings: Settings,
    *,
    with_pace: bool = False,
) -> Flow[Mapping[str, ClockReadings]]:
    """Return the clocks of some facts by the partition of their scope."""
    homes: dict[str, list[Fact]] = {}
    for fact in facts:
        homes.setdefault(fact.scope.partition_key(), []).append(fact)
    clocks_by_home: dict[str, ClockReadings] = {}
    for home, home_facts in homes.items():
        counted_facts = [
            fact
            for fact in home_facts
            if (kind := kinds.get(fact.kind)) and kind.decay_clock is not DecayClock.TIME
        ]
        positions = {mention.seq for fact in counted_facts for mention in mentions[fact.seq]}
        clocks_by_home[home] = ClockReadings(as_of.at)
        if counted_facts:
            clocks_by_home[home] = yield from read_clocks(
                store,
                home_facts[0].scope,
                as_of,
                settings,
                positions=positions,
                with_pace=with_pace,
            )
    return clocks_by_home


def load_mentions(
    store: Store, account: str, facts: Sequence[Fact], upto: int | None = None
) -> Flow[Mapping[int, Sequence[FactMention]]]:
    """Return where each fact was stated up to a position, by the fact's own position."""
    links = yield from call(store.find_links, account, [fact.id for fact in facts], upto)
    repetitions = group_repetitions(links)
    versions = yield from load_versions(store, account, facts)
    return {
        fact.seq: list_mentions(fact, repetitions.get(fact.id, ()), versions.get(fact.id, ()))
        for fact in facts
    }


def load_versions(
    store: Store, account: str, facts: Sequence[Fact]
) -> Flow[Mapping[str, Sequence[Fact]]]:
    """Return all versions of the facts that have earlier versions, by thread."""
    threads = [fact.id for fact in facts if has_earlier_versions(fact)]
    by_thread: dict[str, list[Fact]] = {}
    for version in (
        (yield from call(store.find_versions, account, threads=threads)) if threads else ()
    ):
        by_thread.setdefault(version.id, []).append(version)
    return by_thread


def has_earlier_versions(fact: Fact) -> bool:
    """Return whether a fact may not be the first version of its thread."""
    return fact.created_at != fact.updated_at


def count_turns(store: Store, scope: Scope) -> Flow[int]:
    """Return how many turns have passed in the partition of a scope."""
    return (yield from call(store.tick_totals, scope, [LATEST])).totals[LATEST][0]


def load_beliefs(
    store: Store,
    scopes: ConceptScopes,
    rules: ConceptRules,
    settings: Settings,
    concepts: Sequence[str] | None = None,
) -> Flow[list[ConceptBelief]]:
    """Return the current beliefs of some concepts, or all, oldest first; include faded ones."""
    names = [name for name in rules.ontology if concepts is None or name in concepts]
    facts: list[Fact] = []
    for scope in scopes.distinct:
        facts += yield from call(store.current_facts, scope, store.mint.now(), kinds=names)
    return (
        yield from build_beliefs(
            store, scopes, rules, settings, sorted(facts, key=lambda fact: fact.seq)
        )
    )


def load_archived_beliefs(
    store: Store,
    scopes: ConceptScopes,
    rules: ConceptRules,
    settings: Settings,
    concepts: Sequence[str] | None = None,
) -> Flow[list[ConceptBelief]]:
    """Return beliefs that were archived because they faded and not restored or deleted since."""
    names = frozenset(name for name in rules.ontology if concepts is None or name in concepts)
    versions = yield from call(store.find_versions, scopes.lasting.account, scope=scopes.lasting)
    last_versions = {
        fact.id: fact for fact in versions if fact.kind in names and fact.scope in scopes.distinct
    }
    retracted = [fact for fact in last_versions.values() if fact.gone < NEVER]
    faded: list[Fact] = []
    for fact in retracted:
        entries = yield from call(store.scan_entries, fact.scope.account, thread=fact.id)
        faded += [fact] if _last_retraction_reason(entries) == FADED else []
    return (yield from build_beliefs(store, scopes, rules, settings, faded))


def _last_retraction_reason(entries: Sequence[Entry]) -> str | None:
    """Return why a thread was last retracted."""
    retractions = [entry.verb for entry in entries if isinstance(entry.verb, Retracted)]
    return retractions[-1].why if retractions else None


def build_beliefs(
    store: Store,
    scopes: ConceptScopes,
    rules: ConceptRules,
    settings: Settings,
    facts: Sequence[Fact],
) -> Flow[list[ConceptBelief]]:
    """Build beliefs from facts: their strength, latest quote and turn numbers."""
    if not facts:
        return []
    account, now = scopes.lasting.account, AsOf(LATEST, store.mint.now())
    mentions = yield from load_mentions(store, account, facts)
    positions = {mention.seq for fact_mentions in mentions.values() for mention in fact_mentions}
    clock_readings = yield from read_clocks(
        store, scopes.lasting, now, settings, positions=positions
    )
    quotes = yield from _load_quotes(
        store, account, [mentions[fact.seq][-1].evidence or "" for fact in facts]
    )
    return [
        _build_belief(
            fact,
            rules,
            clock_readings,
            mentions[fact.seq],
            quotes,
            settings.maintenance.turn_events,
        )
        for fact in facts
    ]


def _build_belief(
    fact: Fact,
    rules: ConceptRules,
    clock_readings: ClockReadings,
    mentions: Sequence[FactMention],
    quotes: Mapping[str, str],
    turn_events: float,
) -> ConceptBelief:
    """Build one belief from a fact and its mentions."""
    kind, last = rules.ontology[fact.kind], mentions[-1]
    fact_strength = compute_strength(fact, kind, clock_readings, mentions)
    curve = rules.build_curve(kind.name, kind.tier)
    first_turn, last_turn = (
        round(clock_readings.reading_at(DecayClock.TURNS, mention.seq, 0) * turn_events)
        for mention in (mentions[0], last)
    )
    quote = quotes.get(last.evidence or "", "")
    return ConceptBelief(
        fact, replace(fact_strength, curve=curve), quote, last.seq, first_turn, last_turn, last.at
    )


def _load_quotes(store: Store, account: str, ids: Sequence[str]) -> Flow[Mapping[str, str]]:
    """Return the text of evidence by id, without erased evidence."""
    evidence_ids = [evidence_id for evidence_id in dict.fromkeys(ids) if evidence_id]
    evidence_rows = (
        (yield from call(store.evidence_rows, account, ids=evidence_ids)) if evidence_ids else []
    )
    quotes: dict[str, str] = {}
    for evidence_row in evidence_rows:
        for entry in (yield from call(store.scan_entries, account, evidence_row.seq - 1, 1)):
            if isinstance(entry.verb, Observed) and entry.verb.id == evidence_row.id:
                quotes[evidence_row.id] = entry.verb.evidence.content
    return quotes
