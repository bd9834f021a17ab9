"""How strong a memory is by the clocks of the conversation it belongs to.

Turns and tokens are counted where a scope is at home, so that the memories of a user and those of one of the user's
conversations age together. A memory was said when the version that is held was written, and again wherever a user's
evidence supports it since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from told.core.belief import SUPPORTS
from told.core.fact import Fact, Link, Tick
from told.core.ids import made_at
from told.core.kind import Kind
from told.core.salience import PRUNE, Clock, Curve, drawn, fades_at, salience
from told.core.trust import STAMP

DAY: Final = 86_400_000_000
AGAIN: Final = "again"
LONG_AGO: Final = -1e6
"""The reading before all turns that were counted where there were more: nothing that fades is left of then."""
_EVEN: Final = Curve(0.5, 1.0, lasting=True)
"""The curve of a memory of whose kind nothing is known."""
AHEAD: Final = 60.0
"""How many units of its clock are drawn of a memory that never fades."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What the clocks of a conversation read at any position of the ledger, up to an instant.

    `turns` and `tokens` are what was counted up to each of `seqs`, both in turns. `whole` says that no turn was left
    out before the first.
    """

    at: int
    seqs: tuple[int, ...] = ()
    turns: tuple[float, ...] = ()
    tokens: tuple[float, ...] = ()
    whole: bool = True
    took: int = 0
    """The microseconds from the first of the turns to the last."""

    @classmethod
    def of(
        cls, ticks: Sequence[Tick], at: int, *, whole: bool = True, turn_events: float = 1.0, turn_tokens: float = 200.0
    ) -> Clocks:
        """The clocks that these turns, in ledger order, have moved."""
        turns = tuple(accumulate(tick.turns / turn_events for tick in ticks))
        tokens = tuple(accumulate(tick.tokens / turn_tokens for tick in ticks))
        took = ticks[-1].at - ticks[0].at if ticks else 0
        return cls(at, tuple(tick.seq for tick in ticks), turns, tokens, whole, took)

    def reading(self, clock: Clock, seq: int, at: int) -> float:
        """What a clock read at a position that was written at an instant: turns, or days."""
        if clock is Clock.TIME:
            return min(at, self.at) / DAY
        counted, place = self._counted(clock), bisect_right(self.seqs, seq)
        return counted[place - 1] if place else 0.0 if self.whole else LONG_AGO

    def now(self, clock: Clock) -> float:
        """What a clock reads now."""
        if clock is Clock.TIME:
            return self.at / DAY
        counted = self._counted(clock)
        return counted[-1] if counted else 0.0

    def when(self, clock: Clock, away: float) -> int | None:
        """The instant at which a clock will have moved so far: by its pace up to now, if it is not that of time."""
        if clock is Clock.TIME:
            return self.at + round(away * DAY)
        counted = self._counted(clock)
        moved = counted[-1] - counted[0] if counted else 0.0
        return self.at + round(away * self.took / moved) if moved and self.took > 0 and away >= 0 else None

    def _counted(self, clock: Clock) -> tuple[float, ...]:
        return self.turns if clock is Clock.TURNS else self.tokens


@dataclass(frozen=True, slots=True)
class Strength:
    """How strong a memory is: the curve it follows, and the readings of its clock at which it was said."""

    clock: Clock
    curve: Curve
    said: tuple[float, ...]
    clocks: Clocks

    @property
    def now(self) -> float:
        """What its clock reads now."""
        return self.clocks.now(self.clock)

    @property
    def weight(self) -> float:
        """What it weighs now."""
        return salience(self.curve, self.said, self.now)

    @property
    def faded(self) -> bool:
        """Whether it is no longer shown unasked."""
        return self.curve.faded(self.weight)

    @property
    def left(self) -> float | None:
        """How many units of its clock it will last, below 0 once it has faded; None if it never does."""
        end = fades_at(self.curve, self.said, self.said[-1])
        return None if end is None else end - self.now

    @property
    def ends(self) -> int | None:
        """The instant at which it will have faded, by the pace so far unless its clock is that of time."""
        left = self.left
        return None if left is None else self.clocks.when(self.clock, left)

    @property
    def age(self) -> float:
        """How many units of its clock ago it was first said."""
        return self.now - self.said[0]

    def drawn(self, points: int) -> Iterator[tuple[float, float]]:
        """The curve from when it was first said until it has faded, or a while on; counted from the first."""
        first, left = self.said[0], self.left
        end = self.now + (max(self.age, AHEAD) if left is None else max(left, 0.0))
        return ((reading - first, weight) for reading, weight in drawn(self.curve, self.said, first, end, points))


def strength(
    fact: Fact, kind: Kind | None, clocks: Clocks, again: Iterable[Link] = (), floor: float = PRUNE
) -> Strength:
    """How strong a memory is by the clock of its kind; one of a kind that nobody declared does not fade."""
    clock = Clock.TIME if kind is None else kind.pace
    curve = _EVEN if kind is None else kind.curve(fact.confidence, floor)
    heard = fact.updated_at
    first = clocks.reading(clock, fact.seq, heard)
    later = [clocks.reading(clock, link.seq, made_at(link.src) or heard) for link in again if link.seq > fact.seq]
    return Strength(clock, curve, (first, *sorted(max(first, each) for each in later)), clocks)


def said_again(links: Iterable[Link]) -> Mapping[str, list[Link]]:
    """The links by which memories were said again; only what users say counts, so that nobody keeps alive his own."""
    found: dict[str, list[Link]] = {}
    for link in links:
        if link.rel == SUPPORTS and link.meta.get("said") == AGAIN and STAMP not in link.meta:
            found.setdefault(link.dst, []).append(link)
    return found
