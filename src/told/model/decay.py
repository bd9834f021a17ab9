"""The strength of a memory by the clocks of its conversation.

Turns and tokens are counted in the owner scope, so a user's memories and those of one of the user's
conversations age together. A memory was last mentioned when a user changed its text or when a
user's evidence supported it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from told.ids import uuid7_created_at
from told.model.beliefs import SUPPORTS, TRUST_KEY, Trust, trust_of_source
from told.model.fact import Fact, Link, Tick
from told.model.kind import Kind
from told.model.salience import (
    DEFAULT_PRUNE_THRESHOLD,
    DecayClock,
    DecayCurve,
    compute_salience,
    find_fade_time,
    sample_curve,
)

DAY_US: Final = 86_400_000_000
REPEATED: Final = "again"
_FLAT_CURVE: Final = DecayCurve(0.5, 1.0, is_permanent=True)
"""The curve of a memory whose kind is unknown."""
PLOT_AHEAD: Final = 60.0
"""Clock units plotted beyond now for a memory that never fades."""


@dataclass(frozen=True, slots=True)
class FactMention:
    """A mention of a memory: ledger position, time and evidence."""

    seq: int
    at: int
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class ClockReadings:
    """Readings of a conversation's clocks at ledger positions; the last is the current one.

    `turns` and `tokens` are the counts up to each of `seqs`, both in units of turns. `pace_us` is
    the recent duration of one turn in microseconds, for each clock that was measured.
    """

    at: int
    seqs: tuple[int, ...] = ()
    turns: tuple[float, ...] = ()
    tokens: tuple[float, ...] = ()
    pace_us: Mapping[DecayClock, float] = field(default_factory=dict)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[int, tuple[int, int]],
        at: int,
        recent: Sequence[Tick] = (),
        *,
        turn_events: float = 1.0,
        turn_tokens: float = 200.0,
    ) -> ClockReadings:
        """Build readings from turn and token counts; the pace comes from recent ticks."""
        seqs = tuple(sorted(counts))
        turns = tuple(counts[seq][0] / turn_events for seq in seqs)
        tokens = tuple(counts[seq][1] / turn_tokens for seq in seqs)
        elapsed = recent[-1].at - recent[0].at if recent else 0
        progress = {
            DecayClock.TURNS: sum(tick.turns for tick in recent[1:]) / turn_events,
            DecayClock.TOKENS: sum(tick.tokens for tick in recent[1:]) / turn_tokens,
        }
        pace_us = {
            clock: elapsed / distance
            for clock, distance in progress.items()
            if distance and elapsed > 0
        }
        return cls(at, seqs, turns, tokens, pace_us)

    def reading_at(self, clock: DecayClock, seq: int, at: int) -> float:
        """Return a clock's reading at a requested position and time, in turns or days."""
        if clock is DecayClock.TIME:
            return min(at, self.at) / DAY_US
        readings, index = self._readings_of(clock), bisect_right(self.seqs, seq)
        return readings[index - 1] if index else 0.0

    def current_reading(self, clock: DecayClock) -> float:
        """Return a clock's current reading."""
        if clock is DecayClock.TIME:
            return self.at / DAY_US
        readings = self._readings_of(clock)
        return readings[-1] if readings else 0.0

    def estimate_time(self, clock: DecayClock, distance: float) -> int | None:
        """Estimate when a clock will have advanced by a distance, at its recent pace."""
        if clock is DecayClock.TIME:
            return self.at + round(distance * DAY_US)
        return (
            self.at + round(distance * self.pace_us[clock])
            if clock in self.pace_us and distance >= 0
            else None
        )

    def _readings_of(self, clock: DecayClock) -> tuple[float, ...]:
        return self.turns if clock is DecayClock.TURNS else self.tokens


@dataclass(frozen=True, slots=True)
class Strength:
    """A memory's decay curve and the clock readings at which it was mentioned."""

    clock: DecayClock
    curve: DecayCurve
    mention_readings: tuple[float, ...]
    clocks: ClockReadings

    @property
    def current_reading(self) -> float:
        """Return the current reading of its clock."""
        return self.clocks.current_reading(self.clock)

    @property
    def weight(self) -> float:
        """Return its current salience."""
        return compute_salience(self.curve, self.mention_readings, self.current_reading)

    @property
    def is_faded(self) -> bool:
        """Return True if it has faded and is no longer shown by default."""
        return self.curve.is_faded(self.weight)

    @property
    def remaining(self) -> float | None:
        """Return the clock units until it fades, negative once faded, or None if it never fades."""
        end = find_fade_time(self.curve, self.mention_readings, self.mention_readings[-1])
        return None if end is None else end - self.current_reading

    @property
    def fade_time(self) -> int | None:
        """Estimate the time at which it fades."""
        remaining = self.remaining
        return None if remaining is None else self.clocks.estimate_time(self.clock, remaining)

    @property
    def age(self) -> float:
        """Return the clock units since its first mention."""
        return self.current_reading - self.mention_readings[0]

    def sample_curve(self, points: int) -> Iterator[tuple[float, float]]:
        """Sample the curve from the first mention until it fades, or a while ahead."""
        start, remaining = self.mention_readings[0], self.remaining
        end = self.current_reading + (
            max(self.age, PLOT_AHEAD) if remaining is None else max(remaining, 0.0)
        )
        return (
            (reading - start, weight)
            for reading, weight in sample_curve(
                self.curve, self.mention_readings, start, end, points
            )
        )


def compute_strength(
    fact: Fact,
    kind: Kind | None,
    clocks: ClockReadings,
    mentions: Sequence[FactMention],
    floor: float = DEFAULT_PRUNE_THRESHOLD,
) -> Strength:
    """Return a memory's strength by its kind's clock; unknown kinds do not fade."""
    clock = DecayClock.TIME if kind is None else kind.decay_clock
    curve = _FLAT_CURVE if kind is None else kind.build_curve(fact.confidence, floor)
    first, *later = (clocks.reading_at(clock, item.seq, item.at) for item in mentions)
    return Strength(clock, curve, (first, *sorted(max(first, item) for item in later)), clocks)


def list_mentions(
    fact: Fact, repetitions: Iterable[Link] = (), versions: Iterable[Fact] = ()
) -> list[FactMention]:
    """List the mentions of a memory since a user last changed its text.

    A version that changes only metadata, confidence or validity is no mention; nor is a change made
    without a user. `versions` may contain every version of the thread.
    """
    earlier_versions = sorted(
        (item for item in versions if item.seq < fact.seq), key=lambda item: item.seq
    )
    mentions: list[FactMention] = []
    previous: Fact | None = None
    for version in (*earlier_versions, fact):
        mention = FactMention(version.seq, version.updated_at, version.evidence)
        if previous is None or (
            _proposition(version) != _proposition(previous)
            and trust_of_source(version) is Trust.USER
        ):
            mentions = [mention]
        elif (
            version.evidence not in (None, previous.evidence)
            and trust_of_source(version) is Trust.USER
        ):
            mentions.append(mention)
        previous = version
    first, *rest = mentions
    later = [
        FactMention(link.seq, uuid7_created_at(link.src) or first.at, link.src)
        for link in repetitions
        if link.seq > first.seq
    ]
    return [first, *sorted((*rest, *later), key=lambda item: item.seq)]


def _proposition(fact: Fact) -> tuple[str, str | None, str]:
    """Return the part of a version that states the fact."""
    return fact.text, fact.object, fact.polarity


def group_repetitions(links: Iterable[Link]) -> Mapping[str, list[Link]]:
    """Group user repetitions by fact; no other source can keep a memory alive."""
    by_fact: dict[str, list[Link]] = {}
    for link in links:
        if (
            link.rel == SUPPORTS
            and link.meta.get("said") == REPEATED
            and TRUST_KEY not in link.meta
        ):
            by_fact.setdefault(link.dst, []).append(link)
    return by_fact
