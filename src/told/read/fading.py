"""How strong memories are at a point in time, and which of them have faded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from told.core.fact import Fact
from told.core.fading import Clocks, Saying, Strength, sayings, strength
from told.core.query import Find
from told.flow import Flow
from told.ledger.clocks import changed, clocks_of, said_of
from told.read.gather import Eye
from told.read.settle import at


def strengths(
    eye: Eye, facts: Sequence[Fact], find: Find, *, paced: bool = False
) -> Flow[Mapping[int, Strength]]:
    """How strong each of these facts is at the point in time of a read, by its position in the ledger.

    When one that fades by turns will have faded is known if the pace of turns is asked for.
    """
    said = yield from said_of(eye.store, find.scope.account, facts, at(find))
    return (yield from _measured(eye, facts, said, find, paced=paced))


def faded(eye: Eye, facts: Sequence[Fact], find: Find) -> Flow[frozenset[int]]:
    """The positions of those facts that have faded at the point in time of a read.

    What was not changed and has not faded since it was written is no weaker for being said again, so only the others
    are looked up.
    """
    mortal = [fact for fact in facts if (kind := eye.kinds.get(fact.kind)) and not kind.curve().lasting]
    first = [fact for fact in mortal if not changed(fact)]
    alone = yield from _measured(eye, first, {fact.seq: sayings(fact) for fact in first}, find)
    weak = [fact for fact in mortal if changed(fact) or alone[fact.seq].faded]
    found = (yield from strengths(eye, weak, find)) if weak else {}
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
    eye: Eye, facts: Sequence[Fact], said: Mapping[int, Sequence[Saying]], find: Find, *, paced: bool = False
) -> Flow[Mapping[int, Strength]]:
    """How strong facts are that were said where it says."""
    homes: Mapping[str, Clocks] = yield from clocks_of(
        eye.store, facts, said, eye.kinds, find.as_of, eye.settings, paced=paced
    )
    floor = eye.settings.prune_threshold
    return {
        fact.seq: strength(fact, eye.kinds.get(fact.kind), homes[fact.scope.home()], said[fact.seq], floor)
        for fact in facts
    }
