"""How much a memory still weighs: a pure function of a curve, of when it was said, and of a clock.

Nothing ticks. A memory starts at its base weight, loses a share of it with every unit of its clock, and gains when it
is said again; what it weighs at any moment follows from the readings of the clock at which it was said. So a turn costs
the same however many memories there are, and any past moment can be asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, exp, inf, log
from typing import Final

REPEAT_GAIN: Final = 0.3
"""What saying something again adds, as a share of the base weight."""
MAX_SALIENCE: Final = 1.0
DEFAULT_PRUNE_THRESHOLD: Final = 0.10
"""Below this a memory has faded, unless it is permanent."""


class DecayClock(StrEnum):
    """What makes memories fade: turns of a conversation, days, or tokens counted as turns of usual size."""

    TURNS = "turns"
    TIME = "time"
    TOKENS = "tokens"


class Tier(StrEnum):
    """How fast a kind fades."""

    PERMANENT = "permanent"
    LONG_TERM = "long_term"
    SESSION = "session"
    EPHEMERAL = "ephemeral"

    @property
    def decay(self) -> float:
        """What is left of salience after one turn."""
        return _DECAY[self]

    @property
    def half_life_days(self) -> float | None:
        """The days after which half of salience is left, for kinds that do not say; None if it never fades."""
        return _HALF_LIFE_DAYS[self]


_DECAY = {Tier.PERMANENT: 1.00, Tier.LONG_TERM: 0.99, Tier.SESSION: 0.85, Tier.EPHEMERAL: 0.55}
_HALF_LIFE_DAYS = {
    Tier.PERMANENT: None,
    Tier.LONG_TERM: 180.0,
    Tier.SESSION: 1.0,
    Tier.EPHEMERAL: 0.05,
}


@dataclass(frozen=True, slots=True)
class DecayCurve:
    """How a memory fades: what it starts with and what is left after one unit of its clock.

    One that is lasting never counts as faded, however little it weighs.
    """

    base: float
    decay: float
    is_permanent: bool = False
    floor: float = DEFAULT_PRUNE_THRESHOLD
    repeat_gain: float = REPEAT_GAIN

    def is_faded(self, weight: float) -> bool:
        """Whether a memory of this weight is no longer shown unasked."""
        return not self.is_permanent and weight < self.floor


def compute_salience(curve: DecayCurve, mentions: Iterable[float], now: float) -> float:
    """What a memory weighs at a reading of its clock, given those at which it was said; nothing before the first.

    Said again it gains, up to the ceiling; said again after it has faded, it begins anew.
    """
    weight, last = 0.0, -inf
    for reading in sorted(reading for reading in mentions if reading <= now):
        weight = reinforce(curve, weight * curve.decay ** (reading - last) if weight else 0.0)
        last = reading
    return weight * curve.decay ** (now - last) if weight else 0.0


def reinforce(curve: DecayCurve, remaining: float) -> float:
    """What a memory weighs when it is said and so much of it was left."""
    starts_over = not remaining or curve.is_faded(remaining)
    return (
        min(curve.base, MAX_SALIENCE)
        if starts_over
        else min(remaining + curve.repeat_gain * curve.base, MAX_SALIENCE)
    )


def find_fade_time(curve: DecayCurve, mentions: Iterable[float], now: float) -> float | None:
    """The first whole reading of the clock after `now` at which the memory has faded; None if it never does."""
    if curve.is_permanent or curve.decay >= 1.0 or curve.floor <= 0.0:
        return None
    weight = compute_salience(curve, mentions, now)
    if curve.is_faded(weight):
        return now
    steps = ceil(log(curve.floor / weight) / log(curve.decay)) if curve.decay else 1
    while steps and curve.is_faded(weight * curve.decay ** (steps - 1)):
        steps -= 1
    while not curve.is_faded(weight * curve.decay**steps):
        steps += 1
    return now + steps


def sample_curve(
    curve: DecayCurve, mentions: Iterable[float], start: float, end: float, points: int = 60
) -> Iterator[tuple[float, float]]:
    """The curve from one reading of the clock to another: so many pairs of a reading and the weight at it."""
    mention_times = tuple(mentions)
    step = (end - start) / max(points - 1, 1)
    for i in range(points):
        reading = start + step * i
        yield reading, compute_salience(curve, mention_times, reading)


# Other rhythms --------------------------------------------------------------------------------------------------------


def decay_per_event(decay: float, events: float) -> float:
    """The decay for one event where so many of them make one turn, so that a turn's worth of them decays the same."""
    return float(decay ** (1.0 / events))


def decay_per_day(half_life_days: float) -> float:
    """The decay for one day that leaves a half after so many days."""
    return float(0.5 ** (1.0 / half_life_days))


DAY_US = 86_400_000_000
MINUTE_US = 60_000_000


def compute_recency(age_us: float, half_life_days: float) -> float:
    """How fresh something of this age is, from 1 down to 0: exp(-age / half-life), as the tiers count it.

    After one half-life, so called, not a half but 1/e is left. What lies ahead of now is as fresh as can be.
    """
    return exp(-max(age_us, 0.0) / (half_life_days * DAY_US))


def is_cold(age_us: float, half_life_days: float, threshold: float, min_age_minutes: float) -> bool:
    """Whether something is ready to leave the index: no longer fresh, and not of the last minutes."""
    return (
        compute_recency(age_us, half_life_days) < threshold and age_us > min_age_minutes * MINUTE_US
    )


def score_member(similarity: float, recency: float, importance: float) -> float:
    """How an exchange ranks among those of its topic."""
    return 0.5 * similarity + 0.3 * recency + 0.2 * importance


def fuse_scores(similarity: float = 0.0, recency: float = 0.0, importance: float = 0.0) -> float:
    """How a candidate ranks among those of every tier."""
    return 0.6 * similarity + 0.3 * recency + 0.1 * importance
