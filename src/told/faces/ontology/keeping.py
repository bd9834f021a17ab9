"""What keeps the facts of an ontology, in this process or in a ledger, and how long a fact will last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from told.core.concepts import ConceptRules
from told.core.kind import Kind
from told.core.salience import DecayClock, DecayCurve, find_fade_time
from told.faces.ontology.fact import Fact, FactDict


@dataclass(frozen=True, slots=True)
class RemainingLife:
    """How long a fact will last by its clock, in turns or in days; None if it never fades."""

    duration: float | None
    clock: DecayClock

    @classmethod
    def from_curve(cls, curve: DecayCurve, weight: float, clock: DecayClock) -> RemainingLife:
        """What is left to a fact of this weight."""
        start = DecayCurve(weight, curve.decay, curve.is_permanent, curve.floor)
        return cls(find_fade_time(start, (0.0,), 0.0), clock)


class FactBackend(Protocol):
    """Keeps facts and counts turns."""

    facts: FactDict
    rules: ConceptRules

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

    def list_faded(self) -> Sequence[Fact]:
        """What was held once and has faded."""

    def forget(self, ids: Collection[str], *, erase: bool) -> None:
        """Give up facts, held or faded, so that nothing recalls them."""
