"""The arithmetic of the tiers: how fresh a turn is, when it is cold, and how what was found of it is ranked."""

from __future__ import annotations

from math import exp

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
