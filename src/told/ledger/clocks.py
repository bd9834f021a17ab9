"""The clocks by which memories fade: the turns counted where a scope is at home, at the places that matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from told.core.fact import Fact
from told.core.fading import Clocks, Saying, said_again, sayings
from told.core.kind import Ontology
from told.core.query import LATEST, AsOf
from told.core.salience import Clock
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store
from told.settings import Settings

LATELY: Final = 100
"""How many turns are looked at for the pace of a conversation."""


def clocks(
    store: Store, scope: Scope, as_of: AsOf, settings: Settings, *, places: Iterable[int], paced: bool = False
) -> Flow[Clocks]:
    """The clocks of a scope at a point in time, to be read at some positions; with the pace of turns if that is asked.

    The store knows what was counted up to each, however long the conversation is.
    """
    now = min(as_of.seq, LATEST)
    counted = yield from call(store.ticked, scope, [*{min(place, now) for place in places} | {now}])
    recent = (yield from call(store.ticks, scope, now, LATELY)) if paced else ()
    return Clocks.of(
        counted, as_of.at, recent, turn_events=settings.turn_events, turn_tokens=settings.turn_tokens
    )  # fmt: skip


def clocks_of(
    store: Store, facts: Sequence[Fact], said: Mapping[int, Sequence[Saying]], kinds: Ontology, as_of: AsOf,
    settings: Settings, *, paced: bool = False,
) -> Flow[Mapping[str, Clocks]]:  # fmt: skip
    """The clocks of some facts, each said where it was, by where they are at home."""
    homes: dict[str, list[Fact]] = {}
    for fact in facts:
        homes.setdefault(fact.scope.home(), []).append(fact)
    found: dict[str, Clocks] = {}
    for home, theirs in homes.items():
        counted = [fact for fact in theirs if (kind := kinds.get(fact.kind)) and kind.pace is not Clock.TIME]
        places = {each.seq for fact in counted for each in said[fact.seq]}
        found[home] = Clocks(as_of.at)
        if counted:
            found[home] = yield from clocks(store, theirs[0].scope, as_of, settings, places=places, paced=paced)
    return found


def said_of(
    store: Store, account: str, facts: Sequence[Fact], upto: int | None = None
) -> Flow[Mapping[int, Sequence[Saying]]]:
    """Where each of some facts was said up to a position, by its own."""
    links = yield from call(store.links, account, [fact.id for fact in facts], upto)
    again, before = said_again(links), (yield from tellings(store, account, facts))
    return {fact.seq: sayings(fact, again.get(fact.id, ()), before.get(fact.id, ())) for fact in facts}


def tellings(store: Store, account: str, facts: Sequence[Fact]) -> Flow[Mapping[str, Sequence[Fact]]]:
    """Every version of those facts that are not the first of their thread, by thread."""
    threads = [fact.id for fact in facts if changed(fact)]
    found: dict[str, list[Fact]] = {}
    for version in (yield from call(store.tellings, account, threads)) if threads else ():
        found.setdefault(version.id, []).append(version)
    return found


def changed(fact: Fact) -> bool:
    """Whether a fact may not be the first version of its thread."""
    return fact.created_at != fact.updated_at
