"""Rules of a closed world: value matching, eviction and decay of concept values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from told.model.decay import Strength
from told.model.fact import Fact
from told.model.kind import Eviction, Kind, Ontology
from told.model.salience import DecayClock, DecayCurve, Tier, decay_per_day
from told.model.scope import Scope

ASSERTED, NEGATED = "asserted", "negated"
EVICTED, FADED, FORGOTTEN = "evicted", "faded", "forgotten"
VALUE_KEY: Final = "value"
SESSION_TIERS: Final = frozenset({Tier.SESSION, Tier.EPHEMERAL})
"""The tiers that end with a session."""

SimilarityFunction: TypeAlias = Callable[[str, str], float]
"""The similarity of two values, from 0 to 1."""


# Value matching


@dataclass(frozen=True, slots=True)
class WeightedValue:
    """A value held under a concept: its current weight and its position in the ledger."""

    id: str
    value: str
    weight: float
    position: int


@dataclass(frozen=True, slots=True)
class ValueMatcher:
    """Match values of a concept: equal up to case, or similar if the threshold is below 1."""

    similarity: SimilarityFunction
    threshold: float = 1.0

    def find_match(self, value: str, candidates: Sequence[WeightedValue]) -> WeightedValue | None:
        """Return the matching held value: an exact match, else the most similar one."""
        normalised = normalise_value(value)
        exact = next(
            (
                candidate
                for candidate in candidates
                if normalise_value(candidate.value) == normalised
            ),
            None,
        )
        if exact is not None or self.threshold >= 1.0:
            return exact
        scored = [
            (self.similarity(normalised, normalise_value(candidate.value)), candidate)
            for candidate in candidates
        ]
        score, closest = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        return closest if score >= self.threshold else None

    def is_same(self, left: str, right: str) -> bool:
        """Return True if two values match."""
        return self.find_match(left, [WeightedValue("", right, 0.0, 0)]) is not None


def normalise_value(value: str) -> str:
    """Return a value in the form used for comparison."""
    return value.strip().lower()


def select_evicted(kind: Kind, values: Sequence[WeightedValue]) -> list[WeightedValue]:
    """Return the values that exceed a concept's cardinality.

    By recency the longest unmentioned go first; by salience the weakest, which may be the newest
    value; ties go to the earlier.
    """
    excess = 0 if kind.cardinality is None else max(0, len(values) - kind.cardinality)
    if kind.eviction is Eviction.RECENCY:
        return sorted(values, key=lambda value: value.position)[:excess]
    return sorted(values, key=lambda value: (value.weight, value.position))[:excess]


# Decay


@dataclass(frozen=True, slots=True)
class ConceptRules:
    """The concepts of a closed world, their value matching and their decay.

    `decay` maps each tier to its decay per turn; `min_salience` returns the salience below which a
    value has faded. Both may change at runtime.
    """

    ontology: Ontology
    matcher: ValueMatcher
    decay: Mapping[str, float]
    min_salience: Callable[[], float]

    def decay_clock(self, concept: str) -> DecayClock:
        """Return the decay clock of a concept; turns if the ontology no longer has it."""
        kind = self.ontology.get(concept)
        return DecayClock.TURNS if kind is None else kind.decay_clock

    def build_curve(self, concept: str, tier: Tier) -> DecayCurve:
        """Return the decay curve of a concept's values, by tier if the concept is gone."""
        kind = self.ontology.get(concept) or Kind(concept, tier=tier)
        half_life = kind.half_life if kind.tier is tier else tier.half_life_days
        by_time = 1.0 if half_life is None else decay_per_day(half_life)
        decay = by_time if self.decay_clock(concept) is DecayClock.TIME else self.decay[tier.value]
        return DecayCurve(kind.weight, decay, tier is Tier.PERMANENT, self.min_salience())


def set_default_clock(ontology: Ontology, clock: DecayClock) -> Ontology:
    """Return the ontology with a clock set on kinds that name none and no half-life."""
    kinds = (
        kind if kind.clock or kind.half_life_days else replace(kind, clock=clock)
        for kind in ontology.kinds
    )
    return replace(ontology, kinds=tuple(kinds))


# Scopes


@dataclass(frozen=True, slots=True)
class ConceptScopes:
    """The scopes of a closed world: one for lasting values, one for session values."""

    lasting: Scope
    session: Scope

    def scope_for(self, tier: Tier) -> Scope:
        """Return the scope for values of a tier."""
        return self.session if tier in SESSION_TIERS else self.lasting

    @property
    def distinct(self) -> tuple[Scope, ...]:
        """Return both scopes, or one if they are equal."""
        return (self.lasting,) if self.lasting == self.session else (self.lasting, self.session)


@dataclass(frozen=True, slots=True)
class ConceptBelief:
    """A current or past concept value: its fact, strength, last quote and mention times."""

    fact: Fact
    strength: Strength
    quote: str
    position: int
    first_turn: int
    last_turn: int
    last_at: int

    @property
    def value(self) -> str:
        """Return the bare value."""
        return str(self.fact.meta.get(VALUE_KEY, self.fact.object or self.fact.text))

    def to_weighted_value(self) -> WeightedValue:
        """Return the value with its current weight."""
        return WeightedValue(self.fact.id, self.value, self.strength.weight, self.position)
