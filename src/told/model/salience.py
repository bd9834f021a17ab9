"""Salience as a pure function of a decay curve, the mentions of a memory and a clock.

A memory starts at its base weight, decays with every unit of its clock and gains when it is
mentioned again. Nothing is stored or updated, so a turn costs the same however many memories there
are, and the salience at any past moment can be computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, exp, inf, log
from typing import Final

REPEAT_GAIN: Final = 0.3
"""The gain of a repeated mention, as a share of the base weight."""
MAX_SALIENCE: Final = 1.0
DEFAULT_PRUNE_THRESHOLD: Final = 0.10
"""The salience below which a memory has faded, unless it is permanent."""


class DecayClock(StrEnum):
    """The unit of decay: conversation turns, days, or tokens counted as average turns."""

    TURNS = "turns"
    TIME = "time"
    TOKENS = "tokens"


class Tier(StrEnum):
    """A fading speed."""

    PERMANENT = "permanent"
    LONG_TERM = "long_term"
    SESSION = "session"
    EPHEMERAL = "ephemeral"

    @property
    def decay(self) -> float:
        """Return the share of salience left after one turn."""
        return _DECAY[self]

    @property
    def half_life_days(self) -> float | None:
        """Return the default half-life in days, or None if it never fades."""
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
    """A base weight and its decay per clock unit.

    A permanent memory never counts as faded, whatever its weight.
    """

    base: float
    decay: float
    is_permanent: bool = False
    floor: float = DEFAULT_PRUNE_THRESHOLD
    repeat_gain: float = REPEAT_GAIN

    def is_faded(self, weight: float) -> bool:
        """Return True if a memory of this weight has faded."""
        return not self.is_permanent and weight < self.floor


def compute_salience(curve: DecayCurve, mentions: Iterable[float], now: float) -> float:
    """Return the salience at a clock reading, given the readings of all mentions.

    It is zero before the first mention. A repeated mention adds to it, up to the maximum; a mention
    after it has faded resets it to the base weight.
    """
    weight, last = 0.0, -inf
    for reading in sorted(reading for reading in mentions if reading <= now):
        weight = reinforce(curve, weight * curve.decay ** (reading - last) if weight else 0.0)
        last = reading
    return weight * curve.decay ** (now - last) if weight else 0.0


def reinforce(curve: DecayCurve, remaining: float) -> float:
    """Return the weight after a mention, given the weight left before it."""
    starts_over = not remaining or curve.is_faded(remaining)
    return (
        min(curve.base, MAX_SALIENCE)
        if starts_over
        else min(remaining + curve.repeat_gain * curve.base, MAX_SALIENCE)
    )


def find_fade_time(curve: DecayCurve, mentions: Iterable[float], now: float) -> float | None:
    """Return the first whole reading after `now` at which it has faded, or None if never."""
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
    """Yield evenly spaced pairs of a reading and the salience at it."""
    mention_times = tuple(mentions)
    step = (end - start) / max(points - 1, 1)
    for i in range(points):
        reading = start + step * i
        yield reading, compute_salience(curve, mention_times, reading)


# Rates


def decay_per_event(decay: float, events: float) -> float:
    """Return the decay per event if this many events make one turn."""
    return float(decay ** (1.0 / events))


def decay_per_day(half_life_days: float) -> float:
    """Return the decay per day for a half-life in days."""
    return float(0.5 ** (1.0 / half_life_days))


DAY_US = 86_400_000_000
MINUTE_US = 60_000_000


def compute_recency(age_us: float, half_life_days: float) -> float:
    """Return the recency of an age, exp(-age / half-life), from 1 down to 0.

    After one `half_life_days` 1/e is left, not a half. Times in the future have recency 1.
    """
    return exp(-max(age_us, 0.0) / (half_life_days * DAY_US))


def is_cold(age_us: float, half_life_days: float, threshold: float, min_age_minutes: float) -> bool:
    """Return True if a turn may leave the index: no longer recent and older than a minimum."""
    return (
        compute_recency(age_us, half_life_days) < threshold and age_us > min_age_minutes * MINUTE_US
    )


def score_member(similarity: float, recency: float, importance: float) -> float:
    """Score an exchange among those of its topic."""
    return 0.5 * similarity + 0.3 * recency + 0.2 * importance


def fuse_scores(similarity: float = 0.0, recency: float = 0.0, importance: float = 0.0) -> float:
    """Score a candidate among those of every tier."""
    return 0.6 * similarity + 0.3 * recency + 0.1 * importance
