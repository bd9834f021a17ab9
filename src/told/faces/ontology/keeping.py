"""What keeps the facts of an ontology, in this process or in a ledger, and how long a fact will last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from told.core.concepts import Rules
from told.core.kind import Kind
from told.core.salience import Clock, Curve, fades_at
from told.faces.ontology.fact import Fact, Facts


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
