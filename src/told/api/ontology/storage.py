"""Backends of a MemoryStore: a ledger, or this process.

In this process a turn only moves a counter. Salience is computed on reads from when a fact was
last said; faded facts move to an archive of limited size.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from told.api.ontology.fact import Fact, FactDict
from told.errors import InvalidInput, ScopeError
from told.flow import run
from told.ids import IdGenerator
from told.ingest.apply_claims import ConceptStatement
from told.model.concepts import (
    ASSERTED,
    FORGOTTEN,
    NEGATED,
    ConceptBelief,
    ConceptRules,
    ConceptScopes,
    WeightedValue,
    normalise_value,
    select_evicted,
)
from told.model.kind import Kind
from told.model.salience import DecayClock, DecayCurve, Tier, compute_salience, reinforce
from told.model.scope import Scope
from told.runtime import acquire_on_fork
from told.text.dates import format_iso
from told.text.tokens import format_value

if TYPE_CHECKING:
    from told.api.memory import Memory
    from told.engine import Engine


class LedgerFacts:
    """A backend that keeps facts in a ledger: lasting ones by user, others by session."""

    def __init__(
        self, rules: ConceptRules, memory: Memory, user_id: Any, agent_id: Any, run_id: Any
    ) -> None:
        self.rules, self.memory = rules, memory
        self.scopes = _resolve_scopes(memory.engine, user_id, agent_id, run_id)
        self.facts = FactDict(
            self._refresh, self._put_fact, lambda thread: self.forget([thread], erase=False)
        )

    @property
    def turn(self) -> int:
        """Return the number of the user's turns, in this session and before."""
        return run(self.memory.engine.count_turns(self.scopes.lasting.ids()))

    @turn.setter
    def turn(self, turn: int) -> None:
        raise InvalidInput(
            f"The ledger counts the turns; {turn} cannot be set.", hint="tick() lets turns pass."
        )

    def upsert(self, kind: Kind, value: str, polarity: str, evidence: str) -> Fact | None:
        """Store, reinforce or retract a value; return its fact, if any."""
        engine = self.memory.engine
        receipt = run(
            engine.upsert_value(
                self.scopes, self.rules, ConceptStatement(kind, value, polarity, evidence)
            )
        )
        for warning in receipt.warnings:
            warnings.warn(warning, UserWarning, stacklevel=4)
        held_ids = [event.id for event in receipt.events if event.event in ("ADD", "NONE")]
        beliefs = run(engine.list_beliefs(self.scopes, self.rules, [kind.name])) if held_ids else ()
        return next(
            (self._to_fact(belief) for belief in beliefs if belief.fact.id in held_ids), None
        )

    def tick(self, turns: int, tokens: int | None) -> None:
        """Advance the turn clock."""
        run(self.memory.engine.record_turns(self.scopes.session.ids(), turns=turns, tokens=tokens))

    def list_faded(self) -> Sequence[Fact]:
        """Return the faded facts."""
        engine = self.memory.engine
        faded_beliefs = [
            belief
            for belief in run(engine.list_beliefs(self.scopes, self.rules))
            if belief.strength.is_faded
        ]
        return [
            self._to_fact(belief)
            for belief in (
                *run(engine.list_beliefs(self.scopes, self.rules, archived=True)),
                *faded_beliefs,
            )
        ]

    def forget(self, ids: Collection[str], *, erase: bool) -> None:
        """Forget facts, faded or not; history keeps them unless they are erased."""
        engine = self.memory.engine
        if ids:
            run(engine.forget_beliefs(self.scopes, list(ids)))
        for fact_id in ids if erase else ():
            run(engine.erase(fact_id, {}, why=FORGOTTEN))

    def _refresh(self) -> None:
        """Load the current facts."""
        alive = [
            b
            for b in run(self.memory.engine.list_beliefs(self.scopes, self.rules))
            if not b.strength.is_faded
        ]
        self.facts.replace_all(self._to_fact(belief) for belief in alive)

    def _put_fact(self, fact: Fact) -> None:
        """Store a fact that came from elsewhere."""
        kind = self.rules.ontology.get_kind(fact.concept)
        self.upsert(kind, fact.value, ASSERTED, fact.evidence)

    def _to_fact(self, belief: ConceptBelief) -> Fact:
        fact, kind = belief.fact, self.rules.ontology[belief.fact.kind]
        return Fact(
            fact.id,
            fact.kind,
            belief.value,
            belief.quote,
            kind.tier.value,
            belief.strength.weight,
            kind.label or kind.name,
            belief.first_turn,
            belief.last_turn,
            len(belief.strength.mention_readings) - 1,
            format_iso(fact.created_at),
            format_iso(belief.last_at),
        )


def _resolve_scopes(engine: Engine, user_id: Any, agent_id: Any, run_id: Any) -> ConceptScopes:
    """Return the scopes of a user's facts; without a run id the session is new."""
    if user_id is None and agent_id is None:
        raise ScopeError(
            "A store over a memory needs a user_id.",
            hint="Or an agent_id, for what an agent knows.",
        )
    session = engine.store.mint.new_id() if run_id is None else run_id
    account = engine.account
    return ConceptScopes(
        Scope.create(user_id, agent_id, account=account),
        Scope.create(user_id, agent_id, session, account),
    )


DAY_MICROSECONDS: Final = 86_400_000_000
SECOND_MICROSECONDS: Final = 1_000_000
MAX_ARCHIVED: Final = 1_000
"""The number of faded facts kept for `recall`; the oldest are dropped first."""


@dataclass(slots=True)
class SalienceAnchor:
    """A fact's weight at a reading of its clock, and its position among all mentions."""

    weight: float
    reading: float
    position: int
    last_salience: float
    value_key: tuple[str, str]


@dataclass(slots=True)
class ConversationClock:
    """The clocks of a conversation: turns, tokens in units of a usual turn, and days."""

    now: Callable[[], int]
    turn_events: float
    turn_tokens: int
    turns: float = 0.0
    tokens: float = 0.0

    def read(self, clock: DecayClock) -> float:
        """Return the reading of a clock."""
        if clock is DecayClock.TIME:
            return self.now() / DAY_MICROSECONDS
        return self.turns if clock is DecayClock.TURNS else self.tokens

    def advance(self, turns: int, tokens: int | None) -> None:
        """Advance the clocks by turns with a number of tokens, or of usual size."""
        self.turns += turns / self.turn_events
        self.tokens += turns if tokens is None else tokens / self.turn_tokens


@dataclass(slots=True)
class InProcessFacts:
    """A backend that keeps facts in this process; threads may share it."""

    rules: ConceptRules
    id_generator: IdGenerator
    clock: ConversationClock
    turn: int = 0
    facts: FactDict = field(init=False)
    _anchors: dict[str, SalienceAnchor] = field(default_factory=dict)
    _ids_by_concept: dict[str, dict[str, None]] = field(default_factory=dict)
    _id_by_value: dict[tuple[str, str], str] = field(default_factory=dict)
    _archive: dict[str, tuple[Fact, SalienceAnchor]] = field(default_factory=dict)
    _curves: dict[tuple[str, str], DecayCurve] = field(default_factory=dict)
    _curve_settings: tuple[float, ...] = ()
    _sequence: int = 0
    _refreshed_at: object = None
    _lock: threading.RLock = field(default_factory=lambda: acquire_on_fork(threading.RLock()))

    def __post_init__(self) -> None:
        self.facts = FactDict(self._refresh, self._put_fact, self._remove_fact)

    def upsert(self, kind: Kind, value: str, polarity: str, evidence: str) -> Fact | None:
        """Store, reinforce or retract a value; return its fact, if any."""
        with self._lock:
            rivals = self._find_rivals(kind, value)
            match = self.rules.matcher.find_match(value, rivals)
            if polarity == NEGATED:
                if match is not None:
                    self._remove_fact(match.id)
                return None
            if match is not None:
                return self._reinforce(match.id, evidence)
            fact = self._create_fact(kind, value, evidence)
            for evicted in select_evicted(kind, [*rivals, self._weigh_fact(fact)]):
                self._remove_fact(evicted.id)
            return fact if fact.id in self._anchors else None

    def _create_fact(self, kind: Kind, value: str, evidence: str) -> Fact:
        now, tier = format_iso(self.id_generator.now()), kind.tier.value
        weight = reinforce(self._get_curve(kind.name, tier), 0.0)
        fact = Fact(
            self.id_generator.new_id(),
            kind.name,
            value,
            evidence,
            tier,
            weight,
            kind.label or kind.name,
            self.turn,
            self.turn,
            0,
            now,
            now,
        )
        self._put_fact(fact)
        return fact

    def _reinforce(self, id: str, evidence: str) -> Fact:
        fact = self.facts.peek(id)
        fact.evidence = evidence
        fact.last_turn = self.turn
        fact.last_at = format_iso(self.id_generator.now())
        fact.reinforcements += 1
        fact.salience = reinforce(
            self._get_curve(fact.concept, fact.persistence_class), fact.salience
        )
        self._set_anchor(fact)
        return fact

    def tick(self, turns: int, tokens: int | None) -> None:
        """Advance the turn clock."""
        with self._lock:
            self.turn += turns
            self.clock.advance(turns, tokens)

    def _put_fact(self, fact: Fact) -> None:
        with self._lock:
            self._get_curve(fact.concept, fact.persistence_class)
            self._archive.pop(fact.id, None)
            self._remove_fact(fact.id)
            self._ids_by_concept.setdefault(fact.concept, {})[fact.id] = None
            self.facts.set_fact(fact)
            self._set_anchor(fact)

    def _set_anchor(self, fact: Fact) -> None:
        """Anchor a fact at its current salience as the latest mention."""
        self._sequence += 1
        reading = self.clock.read(self.rules.decay_clock(fact.concept))
        value_key = fact.concept, normalise_value(fact.value)
        self._id_by_value[value_key] = fact.id
        self._anchors[fact.id] = SalienceAnchor(
            fact.salience, reading, self._sequence, fact.salience, value_key
        )

    def _remove_fact(self, id: str) -> Fact | None:
        with self._lock:
            fact = self.facts.remove_fact(id)
            if fact is not None:
                anchor = self._anchors.pop(id)
                del self._ids_by_concept[anchor.value_key[0]][id]
                if self._id_by_value.get(anchor.value_key) == id:
                    del self._id_by_value[anchor.value_key]
            return fact

    def forget(self, ids: Collection[str], *, erase: bool) -> None:  # noqa: ARG002
        """Forget facts, faded or not."""
        with self._lock:
            for fact_id in ids:
                self._remove_fact(fact_id)
                self._archive.pop(fact_id, None)

    def list_faded(self) -> Sequence[Fact]:
        """Return the faded facts."""
        with self._lock:
            self._refresh()
            for fact, anchor in self._archive.values():
                self._apply_decay(fact, anchor)
            return [fact for fact, _ in self._archive.values()]

    def _refresh(self) -> None:
        """Compute the salience of every fact and archive the faded ones."""
        with self._lock:
            reading = (
                self.clock.turns,
                self.clock.tokens,
                self.id_generator.now() // SECOND_MICROSECONDS if self._has_time_clock() else 0,
            )
            state = (reading, self.rules.min_salience(), tuple(self.rules.decay.values()))
            if state != self._refreshed_at:
                self._refreshed_at = state
                for fact in self.facts.peek_all():
                    self._refresh_fact(fact)

    def _has_time_clock(self) -> bool:
        return any(self.rules.decay_clock(name) is DecayClock.TIME for name in self.rules.ontology)

    def _find_rivals(self, kind: Kind, value: str) -> list[WeightedValue]:
        """Return the facts that a value competes with, oldest first.

        Without a cardinality and with exact matching, only an equal value competes.
        """
        same_id = self._id_by_value.get((kind.name, normalise_value(value)))
        only_same = kind.cardinality is None and self.rules.matcher.threshold >= 1.0
        ids = (
            ([] if same_id is None else [same_id])
            if only_same
            else self._ids_by_concept.get(kind.name, ())
        )
        facts = [self.facts.peek(fact_id) for fact_id in ids]
        return [self._weigh_fact(fact) for fact in facts if self._refresh_fact(fact)]

    def _weigh_fact(self, fact: Fact) -> WeightedValue:
        return WeightedValue(fact.id, fact.value, fact.salience, self._anchors[fact.id].position)

    def _refresh_fact(self, fact: Fact) -> bool:
        """Compute a fact's salience, archive it if it has faded, and return whether it is current.

        A salience that the caller has assigned meanwhile is the new starting point.
        """
        anchor = self._anchors[fact.id]
        if fact.salience != anchor.last_salience:
            anchor.weight = fact.salience
            anchor.reading = self.clock.read(self.rules.decay_clock(fact.concept))
        if not self._apply_decay(fact, anchor).is_faded(fact.salience):
            return True
        self._remove_fact(fact.id)
        self._archive[fact.id] = fact, anchor
        while len(self._archive) > MAX_ARCHIVED:
            del self._archive[next(iter(self._archive))]
        return False

    def _apply_decay(self, fact: Fact, anchor: SalienceAnchor) -> DecayCurve:
        """Compute a fact's salience along its curve."""
        curve = self._get_curve(fact.concept, fact.persistence_class)
        now = self.clock.read(self.rules.decay_clock(fact.concept))
        start = DecayCurve(anchor.weight, curve.decay, curve.is_permanent, curve.floor)
        fact.salience = anchor.last_salience = compute_salience(
            start, (anchor.reading,), max(now, anchor.reading)
        )
        return curve

    def _get_curve(self, concept: str, tier: str) -> DecayCurve:
        """Return a concept's curve, cached until the decay settings change."""
        curve_settings = (self.rules.min_salience(), *self.rules.decay.values())
        if curve_settings != self._curve_settings:
            self._curve_settings, self._curves = curve_settings, {}
        if (concept, tier) not in self._curves:
            if tier not in tuple(Tier):
                hint = f"There are: {', '.join(Tier)}."
                raise InvalidInput(
                    f"There is no persistence class {format_value(tier)}.", hint=hint
                )
            self._curves[concept, tier] = self.rules.build_curve(concept, Tier(tier))
        return self._curves[concept, tier]
