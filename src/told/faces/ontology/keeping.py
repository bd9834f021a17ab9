"""What keeps the facts of an ontology, in this process or in a ledger, and the rules both go by."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from told.core.concepts import Matcher
from told.core.kind import Kind, Ontology
from told.core.salience import Clock, Curve, Tier, fades_at
from told.faces.ontology import fact as tuning
from told.faces.ontology.fact import Fact, Facts, curve_of

ASSERTED, NEGATED = "asserted", "negated"


@dataclass(frozen=True, slots=True)
class Rules:
    """What every keeper goes by: the concepts, when two values are one, the clock, and the salience that is least.

    Without a threshold of its own a store goes by `PRUNE_THRESHOLD`, whatever that is by now.
    """

    ontology: Ontology
    matcher: Matcher
    clock: Clock = Clock.TURNS
    threshold: float | None = None

    @property
    def floor(self) -> float:
        """The salience below which a fact has faded."""
        return tuning.PRUNE_THRESHOLD if self.threshold is None else self.threshold

    def pace(self, concept: str) -> Clock:
        """The clock by which a concept fades: its own, that of time if it says a half-life, else the store's."""
        kind = self.ontology.get(concept)
        return self.clock if kind is None or not (kind.clock or kind.half_life_days) else kind.pace

    def curve(self, concept: str, tier: Tier) -> Curve:
        """How a fact of a concept fades; one that the ontology no longer has keeps its tier."""
        kind = self.ontology.get(concept) or Kind(concept, tier=tier)
        half_life = tier.half_life_days if kind.tier is not tier else kind.half_life
        return curve_of(tier, kind.weight, half_life, self.pace(concept), self.floor)


@dataclass(frozen=True, slots=True)
class Remaining:
    """How long a fact will last by its clock, in turns or in days; None if it never fades."""

    left: float | None
    clock: Clock

    @classmethod
    def of(cls, curve: Curve, weight: float, clock: Clock) -> Remaining:
        """What is left to a fact of this weight."""
        start = Curve(weight, curve.decay, curve.lasting, curve.floor)
        return cls(fades_at(start, (0.0,), 0.0), clock)


class Keeper(Protocol):
    """Keeps facts and counts turns."""

    facts: Facts
    rules: Rules

    @property
    def turn(self) -> int:
        """How many turns have passed."""

    @turn.setter
    def turn(self, turn: int) -> None:
        """Count on from a turn, without letting any pass."""

    def upsert(self, kind: Kind, value: str, polarity: str, evidence: str) -> Fact | None:
        """Hold a value, hold it more firmly, or give it up; the fact that now holds it."""

    def tick(self, turns: int, tokens: int | None) -> None:
        """Let some turns pass."""

    def faded(self) -> Sequence[Fact]:
        """What was held once and has faded."""

    def forget(self, ids: Collection[str], *, erase: bool) -> None:
        """Give up facts, held or faded, so that nothing recalls them."""


def iso(microseconds: int) -> str:
    """An instant as text."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds")
