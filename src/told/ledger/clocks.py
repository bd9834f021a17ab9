"""The clocks by which memories fade: the turns counted where a scope is at home, at the places that matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from told.core.fact import Fact
from told.core.fading import ClockReadings, FactMention, group_repetitions, list_mentions
from told.core.kind import Ontology
from told.core.query import LATEST, AsOf
from told.core.salience import DecayClock
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store
from told.settings import Settings

PACE_WINDOW: Final = 100
"""How many turns are looked at for the pace of a conversation."""


def read_clocks(
    store: Store,
    scope: Scope,
    as_of: AsOf,
    settings: Settings,
    *,
    positions: Iterable[int],
    with_pace: bool = False,
) -> Flow[ClockReadings]:
    """The clocks of a scope at a point in time, to be read at some positions; with the pace of turns if that is asked.

    The store knows what was counted up to each, however long the conversation is.
    """
    now = min(as_of.seq, LATEST)
    counts = yield from call(
        store.tick_totals, scope, [*{min(position, now) for position in positions} | {now}]
    )
    recent = (yield from call(store.list_ticks, scope, now, PACE_WINDOW)) if with_pace else ()
    return ClockReadings.from_counts(
        counts, as_of.at, recent, turn_events=settings.turn_events, turn_tokens=settings.turn_tokens
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
    """The clocks of some facts, each said where it was, by where they are at home."""
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
    """Where each of some facts was said up to a position, by its own."""
    links = yield from call(store.find_links, account, [fact.id for fact in facts], upto)
    repetitions, versions = (
        group_repetitions(links),
        (yield from load_versions(store, account, facts)),
    )
    return {
        fact.seq: list_mentions(fact, repetitions.get(fact.id, ()), versions.get(fact.id, ()))
        for fact in facts
    }


def load_versions(
    store: Store, account: str, facts: Sequence[Fact]
) -> Flow[Mapping[str, Sequence[Fact]]]:
    """Every version of those facts that are not the first of their thread, by thread."""
    threads = [fact.id for fact in facts if has_earlier_versions(fact)]
    by_thread: dict[str, list[Fact]] = {}
    for version in (yield from call(store.thread_versions, account, threads)) if threads else ():
        by_thread.setdefault(version.id, []).append(version)
    return by_thread


def has_earlier_versions(fact: Fact) -> bool:
    """Whether a fact may not be the first version of its thread."""
    return fact.created_at != fact.updated_at
