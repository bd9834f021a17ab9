"""Facts kept in the ledger of a memory: shared by threads and processes, each with its history."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

from told.core.concepts import ASSERTED, FORGOTTEN, ConceptBelief, ConceptRules, ConceptScopes
from told.core.errors import InvalidInput, ScopeError
from told.core.kind import Kind
from told.core.scope import Scope
from told.core.when import format_iso
from told.engine import Engine
from told.faces.ontology.fact import Fact, FactDict
from told.faces.sdk import Memory
from told.flow import run
from told.write.concepts import ConceptStatement


class LedgerFacts:
    """Keeps facts in a ledger: what lasts under the user, what passes under the run that is the session."""

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
        """How many turns have passed for the user, in this session and before."""
        return run(self.memory.engine.turns(self.scopes.lasting.ids()))

    @turn.setter
    def turn(self, turn: int) -> None:
        raise InvalidInput(
            f"The ledger counts the turns; {turn} cannot be set.", hint="tick() lets turns pass."
        )

    def upsert(self, kind: Kind, value: str, polarity: str, evidence: str) -> Fact | None:
        """Hold a value, hold it more firmly, or give it up; the fact that now holds it."""
        engine = self.memory.engine
        receipt = run(
            engine.upsert(
                self.scopes, self.rules, ConceptStatement(kind, value, polarity, evidence)
            )
        )
        for warning in receipt.warnings:
            warnings.warn(warning, UserWarning, stacklevel=4)
        held_ids = [event.id for event in receipt.events if event.event in ("ADD", "NONE")]
        beliefs = run(engine.beliefs(self.scopes, self.rules, [kind.name])) if held_ids else ()
        return next(
            (self._to_fact(belief) for belief in beliefs if belief.fact.id in held_ids), None
        )

    def tick(self, turns: int, tokens: int | None) -> None:
        """Let some turns pass."""
        run(self.memory.engine.tick(self.scopes.session.ids(), turns=turns, tokens=tokens))

    def list_faded(self) -> Sequence[Fact]:
        """What was held once and has faded."""
        engine = self.memory.engine
        faded_beliefs = [
            belief
            for belief in run(engine.beliefs(self.scopes, self.rules))
            if belief.strength.is_faded
        ]
        return [
            self._to_fact(belief)
            for belief in (
                *run(engine.beliefs(self.scopes, self.rules, archived=True)),
                *faded_beliefs,
            )
        ]

    def forget(self, ids: Collection[str], *, erase: bool) -> None:
        """Give up facts, held or faded, so that nothing recalls them; the past keeps them unless it is erased."""
        engine = self.memory.engine
        if ids:
            run(engine.let_go(self.scopes, list(ids)))
        for fact_id in ids if erase else ():
            run(engine.erase(fact_id, {}, source=None, why=FORGOTTEN))

    def _refresh(self) -> None:
        """Read what is held by now."""
        alive = [
            b
            for b in run(self.memory.engine.beliefs(self.scopes, self.rules))
            if not b.strength.is_faded
        ]
        self.facts.replace_all(self._to_fact(belief) for belief in alive)

    def _put_fact(self, fact: Fact) -> None:
        """Hold a fact that was kept elsewhere, from now on."""
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
    """Where the facts of a user are held; a session that nobody names is a new one."""
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
