"""The verbs of a closed world: values that are held, said again and given up, and the turns by which they fade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.core.concepts import Belief, Rules, Shelf
from told.core.policy import Action
from told.core.query import Receipt
from told.core.text import clean
from told.engine.base import Base, named, verb
from told.flow import Flow
from told.ledger import concepts as holding
from told.read.guard import denials
from told.write import concepts, gate
from told.write.concepts import Said


class Conceiving(Base):
    """What is held within an ontology."""

    __slots__ = ()

    @verb(Action.WRITE)
    def upsert(self, shelf: Shelf, rules: Rules, said: Said) -> Flow[Receipt]:
        """Hold a value of a concept, hold it more firmly, or give it up."""
        limit, settings = self.settings.text_limit, self.settings
        value, about_value = gate.screen(clean(said.value, limit=limit), settings)
        quote, about_quote = gate.screen(clean(said.quote, limit=limit), settings)
        screened = replace(said, value=value, quote=quote)
        receipt = yield from concepts.upsert(self.desk, shelf, rules, screened)
        warnings = dict.fromkeys((*about_value, *about_quote, *receipt.warnings))
        return replace(receipt, warnings=tuple(warnings))

    @verb(Action.WRITE)
    def tick(self, ids: Mapping[str, Any], *, turns: int, tokens: int | None) -> Flow[Receipt]:
        """Let turns of a conversation pass that nothing else counts."""
        return (yield from concepts.tick(self.desk, self.scope(ids), turns, tokens))

    @verb(Action.READ_CONTENT)
    def beliefs(
        self, shelf: Shelf, rules: Rules, concepts: Sequence[str] | None = None, *, archived: bool = False
    ) -> Flow[Sequence[Belief]]:
        """What is held under some concepts, or all, faded or not; or what was given up because it had faded."""
        look = holding.archived if archived else holding.held
        found = yield from look(self.store, shelf, rules, self.settings, concepts)
        denied = denials([belief.fact for belief in found], self.eye.guards)
        return [belief for belief in found if belief.fact.seq not in denied]

    @verb(Action.READ_METADATA)
    def turns(self, ids: Mapping[str, Any]) -> Flow[int]:
        """How many turns have passed where a scope is at home."""
        return (yield from holding.turns(self.store, self.scope(ids)))

    @verb(Action.WRITE)
    def let_go(self, shelf: Shelf, threads: Sequence[str]) -> Flow[Receipt]:
        """Give up beliefs, held or faded, so that nothing recalls them."""
        return (yield from concepts.forget(self.desk, shelf, [named(thread) for thread in threads]))
