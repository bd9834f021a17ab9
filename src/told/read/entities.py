"""The graph, read: whom and what memories speak of, and how these bear on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from told.core import address
from told.core.errors import NotFoundError
from told.core.fact import NODE, Fact
from told.core.filter import parse
from told.core.query import LATEST, AsOf, Find
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store


@dataclass(frozen=True, slots=True)
class Relation:
    """How one node bears on another."""

    source: Fact
    relation: str
    target: Fact
    weight: float


def nodes(store: Store, scope: Scope, now: int) -> Flow[Sequence[Fact]]:
    """The nodes of a scope, oldest first."""
    return (yield from call(store.facts, Find(scope, AsOf(LATEST, now), parse({"kind": NODE}))))


def relations(store: Store, scope: Scope, name: str, now: int) -> Flow[Sequence[Relation]]:
    """Every relation that leads to or from the nodes of a name, or `NotFoundError`."""
    known = {node.id: node for node in (yield from nodes(store, scope, now))}
    wanted = [node.id for node in known.values() if node.meta.get("slug") == address.slug(name)]
    if not wanted:
        raise NotFoundError(f"Nobody here speaks of {name!r}.", hint="List whom they speak of with entities().")
    links = yield from call(store.links, scope.account, wanted)
    return [
        Relation(known[link.src], link.rel, known[link.dst], link.weight)
        for link in links
        if link.src in known and link.dst in known
    ]
