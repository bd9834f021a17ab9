"""What a scope holds that contradicts itself, for somebody to look at."""

from __future__ import annotations

from told.core.belief import CONTRADICTS, Contradiction
from told.core.belief import find_contradictions as among
from told.core.query import LATEST, AsOf, FactQuery
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store


def load_contradictions(store: Store, scope: Scope, now: int) -> Flow[list[Contradiction]]:
    """The contradictions among what a scope holds now, quarantined claims included, in the order they were noticed."""
    facts = yield from call(store.find_facts, FactQuery(scope, AsOf(LATEST, now)))
    links = yield from call(store.find_links, scope.account, [fact.id for fact in facts])
    return among(facts, [link for link in links if link.rel == CONTRADICTS])
