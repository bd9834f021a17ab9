"""The verbs of a closed world: values that are held, said again and given up, and the turns by which they fade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.engine.base import EngineBase, check_memory_id, requires_action
from told.flow import Flow
from told.ingest import apply_claims, gate
from told.ingest.apply_claims import ConceptStatement
from told.ledger import clocks as holding
from told.model.concepts import ConceptBelief, ConceptRules, ConceptScopes
from told.model.policy import Action
from told.model.query import Receipt
from told.retrieval.candidates import find_denials
from told.text.tokens import validate_text


class ConceptVerbs(EngineBase):
    """What is held within an ontology."""

    __slots__ = ()

    @requires_action(Action.WRITE)
    def upsert(
        self, shelf: ConceptScopes, rules: ConceptRules, statement: ConceptStatement
    ) -> Flow[Receipt]:
        """Hold a value of a concept, hold it more firmly, or give it up."""
        limit, settings = self.settings.text_limit, self.settings
        value, value_warnings = gate.screen_text(
            validate_text(statement.value, limit=limit), settings
        )
        quote, quote_warnings = gate.screen_text(
            validate_text(statement.quote, limit=limit), settings
        )
        screened = replace(statement, value=value, quote=quote)
        receipt = yield from apply_claims.upsert_value(self.write_context, shelf, rules, screened)
        warnings = dict.fromkeys((*value_warnings, *quote_warnings, *receipt.warnings))
        return replace(receipt, warnings=tuple(warnings))

    @requires_action(Action.WRITE)
    def tick(self, ids: Mapping[str, Any], *, turns: int, tokens: int | None) -> Flow[Receipt]:
        """Let turns of a conversation pass that nothing else counts."""
        return (
            yield from apply_claims.record_turns(
                self.write_context, self.resolve_scope(ids), turns, tokens
            )
        )

    @requires_action(Action.READ_CONTENT)
    def beliefs(
        self,
        shelf: ConceptScopes,
        rules: ConceptRules,
        concepts: Sequence[str] | None = None,
        *,
        archived: bool = False,
    ) -> Flow[Sequence[ConceptBelief]]:
        """What is held under some concepts, or all, faded or not; or what was given up because it had faded."""
        load_beliefs = holding.load_archived_beliefs if archived else holding.load_beliefs
        results = yield from load_beliefs(self.store, shelf, rules, self.settings, concepts)
        denied = find_denials([belief.fact for belief in results], self.read_context.guards)
        return [belief for belief in results if belief.fact.seq not in denied]

    @requires_action(Action.READ_METADATA)
    def turns(self, ids: Mapping[str, Any]) -> Flow[int]:
        """How many turns have passed where a scope is at home."""
        return (yield from holding.count_turns(self.store, self.resolve_scope(ids)))

    @requires_action(Action.WRITE)
    def let_go(self, shelf: ConceptScopes, threads: Sequence[str]) -> Flow[Receipt]:
        """Give up beliefs, held or faded, so that nothing recalls them."""
        return (
            yield from apply_claims.forget_beliefs(
                self.write_context, shelf, [check_memory_id(thread) for thread in threads]
            )
        )
