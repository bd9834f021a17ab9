"""How strong memories are at a point in time, and which of them have faded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from told.core.fact import Fact, Link
from told.core.fading import Clocks, Strength, said_again, strength
from told.core.query import Find
from told.flow import Flow, call
from told.ledger.clocks import clocks_of
from told.read.gather import Eye
from told.read.settle import at


def strengths(eye: Eye, facts: Sequence[Fact], find: Find) -> Flow[Mapping[int, Strength]]:
    """How strong each of these facts is at the point in time of a read, by its position in the ledger."""
    clocks = yield from clocks_of(eye.store, facts, eye.kinds, find.as_of, eye.settings)
    return (yield from _measured(eye, facts, find, clocks))


def faded(eye: Eye, facts: Sequence[Fact], find: Find) -> Flow[frozenset[int]]:
    """The positions of those facts that have faded at the point in time of a read.

    What has not faded since it was written is no weaker for being said again, so only the others are looked up.
    """
    mortal = [fact for fact in facts if (kind := eye.kinds.get(fact.kind)) and not kind.curve().lasting]
    clocks = yield from clocks_of(eye.store, mortal, eye.kinds, find.as_of, eye.settings)
    weak = [fact for fact in mortal if _strength(eye, fact, clocks).faded]
    found = (yield from _measured(eye, weak, find, clocks)) if weak else {}
    return frozenset(seq for seq, each in found.items() if each.faded)


def alive(eye: Eye, facts: Iterable[Fact], find: Find, count: int) -> Flow[tuple[list[Fact], list[Fact]]]:
    """The first of some facts that have not faded, at most so many, and those before them that have."""
    waiting = iter(facts)
    kept: list[Fact] = []
    hidden: list[Fact] = []
    while len(kept) < count and (some := list(islice(waiting, count))):
        gone = yield from faded(eye, some, find)
        hidden += [fact for fact in some if fact.seq in gone]
        kept += [fact for fact in some if fact.seq not in gone]
    return kept[:count], hidden


def _measured(
    eye: Eye, facts: Sequence[Fact], find: Find, clocks: Mapping[str, Clocks]
) -> Flow[Mapping[int, Strength]]:
    links = yield from call(eye.store.links, find.scope.account, [fact.id for fact in facts], at(find))
    again = said_again(links)
    return {fact.seq: _strength(eye, fact, clocks, again.get(fact.id, ())) for fact in facts}


def _strength(eye: Eye, fact: Fact, clocks: Mapping[str, Clocks], again: Iterable[Link] = ()) -> Strength:
    kind = eye.kinds.get(fact.kind)
    return strength(fact, kind, clocks[fact.scope.home()], again, eye.settings.prune_threshold)
