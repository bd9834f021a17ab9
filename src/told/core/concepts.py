"""The rules of a closed world: which value a new one means, which has to go when there is no room, how each fades."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from told.core.fact import Fact
from told.core.fading import Strength
from told.core.kind import Eviction, Kind, Ontology
from told.core.salience import Clock, Curve, Tier, per_day
from told.core.scope import Scope

ASSERTED, NEGATED = "asserted", "negated"
EVICTED, FADED, FORGOTTEN = "evicted", "faded", "forgotten"
VALUE: Final = "value"
PASSING: Final = frozenset({Tier.SESSION, Tier.EPHEMERAL})
"""The tiers that end with a session."""

Likeness: TypeAlias = Callable[[str, str], float]
"""How much two values mean the same, from 0 to 1."""


# One value or another -------------------------------------------------------------------------------------------------


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

    def same(self, one: str, other: str) -> bool:
        """Whether two values are one."""
        return self.meant(one, [Weighed("", other, 0.0, 0)]) is not None


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


# How they fade --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds in a closed world: its concepts, when two values are one, and how values fade.

    `decay` is what a turn leaves of each tier and `least` the salience below which a value has faded; both may change.
    """

    ontology: Ontology
    matcher: Matcher
    decay: Mapping[str, float]
    least: Callable[[], float]

    def pace(self, concept: str) -> Clock:
        """The clock by which a concept fades; one that the ontology no longer has goes by that of turns."""
        kind = self.ontology.get(concept)
        return Clock.TURNS if kind is None else kind.pace

    def curve(self, concept: str, tier: Tier) -> Curve:
        """How a value of a concept fades; one that the ontology no longer has fades as its tier does."""
        kind = self.ontology.get(concept) or Kind(concept, tier=tier)
        half_life = kind.half_life if kind.tier is tier else tier.half_life_days
        by_time = 1.0 if half_life is None else per_day(half_life)
        decay = by_time if self.pace(concept) is Clock.TIME else self.decay[tier.value]
        return Curve(kind.weight, decay, tier is Tier.PERMANENT, self.least())


def paced(ontology: Ontology, clock: Clock) -> Ontology:
    """An ontology whose concepts go by a clock unless they name another, or a half-life."""
    kinds = (k if k.clock or k.half_life_days else replace(k, clock=clock) for k in ontology.kinds)
    return replace(ontology, kinds=tuple(kinds))


# Where they are held --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the values of a closed world are held: those that last in one scope, those of a session in another."""

    lasting: Scope
    session: Scope

    def of(self, tier: Tier) -> Scope:
        """The scope for values of a tier."""
        return self.session if tier in PASSING else self.lasting

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Both scopes, or the one they are."""
        return (self.lasting,) if self.lasting == self.session else (self.lasting, self.session)


@dataclass(frozen=True, slots=True)
class Belief:
    """A value that a ledger holds or held: the fact, how strong it is, what was last said for it and when that was."""

    fact: Fact
    strength: Strength
    quote: str
    place: int
    turn: int
    last_turn: int
    last_at: int

    @property
    def value(self) -> str:
        """The value alone."""
        return str(self.fact.meta.get(VALUE, self.fact.object or self.fact.text))

    def weighed(self) -> Weighed:
        """What the belief weighs against others of its concept."""
        return Weighed(self.fact.id, self.value, self.strength.weight, self.place)
