"""The rules of a closed world: which value a new one means, which has to go when there is no room, how each fades."""

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
"""How much two values mean the same, from 0 to 1."""


# One value or another -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WeightedValue:
    """A value that is held under a concept: what it weighs now, and its place among all that was said."""

    id: str
    value: str
    weight: float
    position: int


@dataclass(frozen=True, slots=True)
class ValueMatcher:
    """When two values of a concept are one: if they differ in case alone, or are alike up to a threshold below 1."""

    similarity: SimilarityFunction
    threshold: float = 1.0

    def find_match(self, value: str, candidates: Sequence[WeightedValue]) -> WeightedValue | None:
        """The held value that another means: the very same, else the likest, the earlier of two."""
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
        """Whether two values are one."""
        return self.find_match(left, [WeightedValue("", right, 0.0, 0)]) is not None


def normalise_value(value: str) -> str:
    """A value as it is compared."""
    return value.strip().lower()


def select_evicted(kind: Kind, values: Sequence[WeightedValue]) -> list[WeightedValue]:
    """The values that leave because there are more than a concept has room for.

    By recency those that were not said for longest; by salience the weakest, a newcomer among them; of equals the
    earlier.
    """
    excess = 0 if kind.cardinality is None else max(0, len(values) - kind.cardinality)
    if kind.eviction is Eviction.RECENCY:
        return sorted(values, key=lambda value: value.position)[:excess]
    return sorted(values, key=lambda value: (value.weight, value.position))[:excess]


# How they fade --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConceptRules:
    """What holds in a closed world: its concepts, when two values are one, and how values fade.

    `decay` is what a turn leaves of each tier and `least` the salience below which a value has faded; both may change.
    """

    ontology: Ontology
    matcher: ValueMatcher
    decay: Mapping[str, float]
    min_salience: Callable[[], float]

    def decay_clock(self, concept: str) -> DecayClock:
        """The clock by which a concept fades; one that the ontology no longer has goes by that of turns."""
        kind = self.ontology.get(concept)
        return DecayClock.TURNS if kind is None else kind.decay_clock

    def build_curve(self, concept: str, tier: Tier) -> DecayCurve:
        """How a value of a concept fades; one that the ontology no longer has fades as its tier does."""
        kind = self.ontology.get(concept) or Kind(concept, tier=tier)
        half_life = kind.half_life if kind.tier is tier else tier.half_life_days
        by_time = 1.0 if half_life is None else decay_per_day(half_life)
        decay = by_time if self.decay_clock(concept) is DecayClock.TIME else self.decay[tier.value]
        return DecayCurve(kind.weight, decay, tier is Tier.PERMANENT, self.min_salience())


def set_default_clock(ontology: Ontology, clock: DecayClock) -> Ontology:
    """An ontology whose concepts go by a clock unless they name another, or a half-life."""
    kinds = (
        kind if kind.clock or kind.half_life_days else replace(kind, clock=clock)
        for kind in ontology.kinds
    )
    return replace(ontology, kinds=tuple(kinds))


# Where they are held --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConceptScopes:
    """Where the values of a closed world are held: those that last in one scope, those of a session in another."""

    lasting: Scope
    session: Scope

    def scope_for(self, tier: Tier) -> Scope:
        """The scope for values of a tier."""
        return self.session if tier in SESSION_TIERS else self.lasting

    @property
    def distinct(self) -> tuple[Scope, ...]:
        """Both scopes, or the one they are."""
        return (self.lasting,) if self.lasting == self.session else (self.lasting, self.session)


@dataclass(frozen=True, slots=True)
class ConceptBelief:
    """A value that a ledger holds or held: the fact, how strong it is, what was last said for it and when that was."""

    fact: Fact
    strength: Strength
    quote: str
    position: int
    first_turn: int
    last_turn: int
    last_at: int

    @property
    def value(self) -> str:
        """The value alone."""
        return str(self.fact.meta.get(VALUE_KEY, self.fact.object or self.fact.text))

    def to_weighted_value(self) -> WeightedValue:
        """What the belief weighs against others of its concept."""
        return WeightedValue(self.fact.id, self.value, self.strength.weight, self.position)
