"""The graph, read: whom and what memories speak of, and how these bear on each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from told.core import address
from told.core.errors import NotFoundError
from told.core.fact import NODE, Fact, Link
from told.core.filter import parse
from told.core.query import LATEST, AsOf, Find
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.erase import DRAWN_FROM
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
    inside = [link for link in links if link.src in known and link.dst in known]
    over = yield from _over(store, scope, inside, known, now)
    return [Relation(known[link.src], link.rel, known[link.dst], link.weight) for link in inside if link not in over]


def _over(
    store: Store, scope: Scope, links: Sequence[Link], known: Mapping[str, Fact], now: int
) -> Flow[Sequence[Link]]:
    """The relations that were drawn from claims none of which is held any more, whoever made them anew."""
    sources = {link.seq: str(link.meta.get(DRAWN_FROM, "")) for link in links}
    claims = yield from call(store.taken, scope.account, sorted({source for source in sources.values() if source}))
    drawn = {(fact.evidence, _says(fact)) for fact in claims}
    pairs = sorted({(fact.subject, fact.predicate) for fact in claims if fact.subject and fact.predicate})
    still: set[tuple[str, str]] = set()
    for place in {link.scope for link in links} if pairs else ():
        still |= {_says(fact) for fact in (yield from call(store.held, place, now, about=pairs))}
    said = {link.seq: (link.rel, str(known[link.dst].meta.get("slug", ""))) for link in links}
    return [link for link in links if (sources[link.seq], said[link.seq]) in drawn and said[link.seq] not in still]


def _says(fact: Fact) -> tuple[str, str]:
    return fact.predicate or "", address.slug(fact.object or "")
