"""How strong a memory is by the clocks of the conversation it belongs to.

Turns and tokens are counted where a scope is at home, so that the memories of a user and those of one of the user's
conversations age together. A memory was said when a user last changed what it says, and again wherever a user's
evidence supports it since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from told.core.belief import SUPPORTS
from told.core.fact import Fact, Link, Tick
from told.core.ids import made_at
from told.core.kind import Kind
from told.core.salience import PRUNE, Clock, Curve, drawn, fades_at, salience
from told.core.trust import STAMP, Trust, source_of

DAY: Final = 86_400_000_000
AGAIN: Final = "again"
_EVEN: Final = Curve(0.5, 1.0, lasting=True)
"""The curve of a memory of whose kind nothing is known."""
AHEAD: Final = 60.0
"""How many units of its clock are drawn of a memory that never fades."""


@dataclass(frozen=True, slots=True)
class Saying:
    """Where in the ledger a memory was said, when that was, and by which evidence."""

    seq: int
    at: int
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Clocks:
    """What the clocks of a conversation read at some positions of the ledger, the last of which is now.

    `turns` and `tokens` are what was counted up to each of `seqs`, both in turns. `lately` are the microseconds that
    each turn took, as far as somebody looked.
    """

    at: int
    seqs: tuple[int, ...] = ()
    turns: tuple[float, ...] = ()
    tokens: tuple[float, ...] = ()
    lately: Mapping[Clock, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, counted: Mapping[int, tuple[int, int]], at: int, recent: Sequence[Tick] = (), *,
        turn_events: float = 1.0, turn_tokens: float = 200.0,
    ) -> Clocks:  # fmt: skip
        """The clocks that so many turns and tokens up to each position have moved; the pace is that of the recent."""
        seqs = tuple(sorted(counted))
        turns = tuple(counted[seq][0] / turn_events for seq in seqs)
        tokens = tuple(counted[seq][1] / turn_tokens for seq in seqs)
        took = recent[-1].at - recent[0].at if recent else 0
        moved = {
            Clock.TURNS: sum(tick.turns for tick in recent[1:]) / turn_events,
            Clock.TOKENS: sum(tick.tokens for tick in recent[1:]) / turn_tokens,
        }
        lately = {clock: took / far for clock, far in moved.items() if far and took > 0}
        return cls(at, seqs, turns, tokens, lately)

    def reading(self, clock: Clock, seq: int, at: int) -> float:
        """What a clock read at a position, one of those that were asked for, written at an instant: turns, or days."""
        if clock is Clock.TIME:
            return min(at, self.at) / DAY
        counted, place = self._counted(clock), bisect_right(self.seqs, seq)
        return counted[place - 1] if place else 0.0

    def now(self, clock: Clock) -> float:
        """What a clock reads now."""
        if clock is Clock.TIME:
            return self.at / DAY
        counted = self._counted(clock)
        return counted[-1] if counted else 0.0

    def when(self, clock: Clock, away: float) -> int | None:
        """The instant at which a clock will have moved so far: by its pace of late, if it is not that of time."""
        if clock is Clock.TIME:
            return self.at + round(away * DAY)
        return self.at + round(away * self.lately[clock]) if clock in self.lately and away >= 0 else None

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
        """The instant at which it will have faded, by the pace of late unless its clock is that of time."""
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


def strength(fact: Fact, kind: Kind | None, clocks: Clocks, said: Sequence[Saying], floor: float = PRUNE) -> Strength:
    """How strong a memory is by the clock of its kind; one of a kind that nobody declared does not fade."""
    clock = Clock.TIME if kind is None else kind.pace
    curve = _EVEN if kind is None else kind.curve(fact.confidence, floor)
    first, *later = (clocks.reading(clock, each.seq, each.at) for each in said)
    return Strength(clock, curve, (first, *sorted(max(first, each) for each in later)), clocks)


def sayings(fact: Fact, again: Iterable[Link] = (), tellings: Iterable[Fact] = ()) -> list[Saying]:
    """Where a memory was said: where what it says was last changed by a user, and wherever it was said again since.

    A version that says the same with other metadata, confidence or validity is no saying, and a change that no user
    stands behind is none either; the versions before `fact` are among the `tellings` of its thread.
    """
    before = sorted((each for each in tellings if each.seq < fact.seq), key=lambda each: each.seq)
    found: list[Saying] = []
    held: Fact | None = None
    for version in (*before, fact):
        saying = Saying(version.seq, version.updated_at, version.evidence)
        if held is None or (_means(version) != _means(held) and source_of(version) is Trust.USER):
            found = [saying]
        elif version.evidence not in (None, held.evidence) and source_of(version) is Trust.USER:
            found.append(saying)
        held = version
    first, *more = found
    later = [Saying(link.seq, made_at(link.src) or first.at, link.src) for link in again if link.seq > first.seq]
    return [first, *sorted((*more, *later), key=lambda each: each.seq)]


def _means(fact: Fact) -> tuple[str, str | None, str]:
    """What a version says of the world."""
    return fact.text, fact.object, fact.polarity


def said_again(links: Iterable[Link]) -> Mapping[str, list[Link]]:
    """The links by which memories were said again; only what users say counts, so that nobody keeps alive his own."""
    found: dict[str, list[Link]] = {}
    for link in links:
        if link.rel == SUPPORTS and link.meta.get("said") == AGAIN and STAMP not in link.meta:
            found.setdefault(link.dst, []).append(link)
    return found
