"""How the values of a concept meet: which of them a new one means, and which has to go when there is no room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from told.core.kind import Eviction, Kind

Likeness: TypeAlias = Callable[[str, str], float]
"""How much two values mean the same, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A value that is held under a concept: what it weighs now, and its place among all that was said."""

    id: str
    value: str
    weight: float
    place: int


@dataclass(frozen=True, slots=True)
class Matcher:
    """When two values of a concept are one: if they differ in case alone, or are alike up to a threshold below 1."""

    likeness: Likeness
    threshold: float = 1.0

    def meant(self, value: str, held: Sequence[Weighed]) -> Weighed | None:
        """The held value that another means: the very same, else the likest, the earlier of two."""
        plain = folded(value)
        exact = next((one for one in held if folded(one.value) == plain), None)
        if exact is not None or self.threshold >= 1.0:
            return exact
        scored = [(self.likeness(plain, folded(one.value)), one) for one in held]
        score, likest = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        return likest if score >= self.threshold else None


def folded(value: str) -> str:
    """A value as it is compared."""
    return value.strip().lower()


def leaving(kind: Kind, held: Sequence[Weighed]) -> list[Weighed]:
    """The values that leave because there are more than a concept has room for.

    By recency those that were not said for longest; by salience the weakest, a newcomer among them; of equals the
    earlier.
    """
    over = 0 if kind.cardinality is None else max(0, len(held) - kind.cardinality)
    if kind.eviction is Eviction.RECENCY:
        return sorted(held, key=lambda one: one.place)[:over]
    return sorted(held, key=lambda one: (one.weight, one.place))[:over]
