"""The graph, read: whom and what memories speak of, and how these bear on each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from told.core import address
from told.core.errors import NotFoundError
from told.core.fact import NODE, Fact, Link
from told.core.filter import parse_filter
from told.core.query import LATEST, AsOf, FactQuery
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.erase import EVIDENCE_KEY
from told.ports import Store


@dataclass(frozen=True, slots=True)
class EntityRelation:
    """How one node bears on another."""

    source: Fact
    relation: str
    target: Fact
    weight: float


def list_nodes(store: Store, scope: Scope, now: int) -> Flow[Sequence[Fact]]:
    """The nodes of a scope, oldest first."""
    return (
        yield from call(
            store.find_facts, FactQuery(scope, AsOf(LATEST, now), parse_filter({"kind": NODE}))
        )
    )


def list_relations(
    store: Store, scope: Scope, name: str, now: int
) -> Flow[Sequence[EntityRelation]]:
    """Every relation that leads to or from the nodes of a name, or `NotFoundError`."""
    nodes_by_id = {node.id: node for node in (yield from list_nodes(store, scope, now))}
    node_ids = [
        node.id for node in nodes_by_id.values() if node.meta.get("slug") == address.slugify(name)
    ]
    if not node_ids:
        raise NotFoundError(
            f"Nobody here speaks of {name!r}.", hint="List whom they speak of with entities()."
        )
    links = yield from call(store.find_links, scope.account, node_ids)
    visible_links = [link for link in links if link.src in nodes_by_id and link.dst in nodes_by_id]
    obsolete = yield from _find_obsolete_links(store, scope, visible_links, nodes_by_id, now)
    return [
        EntityRelation(nodes_by_id[link.src], link.rel, nodes_by_id[link.dst], link.weight)
        for link in visible_links
        if link not in obsolete
    ]


def _find_obsolete_links(
    store: Store, scope: Scope, links: Sequence[Link], nodes_by_id: Mapping[str, Fact], now: int
) -> Flow[Sequence[Link]]:
    """The relations that were drawn from claims none of which is held any more, whoever made them anew."""
    sources = {link.seq: str(link.meta.get(EVIDENCE_KEY, "")) for link in links}
    claims = yield from call(
        store.facts_from_evidence,
        scope.account,
        sorted({source for source in sources.values() if source}),
    )
    drawn_keys = {(fact.evidence, _relation_key(fact)) for fact in claims}
    pairs = sorted(
        {(fact.subject, fact.predicate) for fact in claims if fact.subject and fact.predicate}
    )
    current_keys: set[tuple[str, str]] = set()
    for link_scope in {link.scope for link in links} if pairs else ():
        current_keys |= {
            _relation_key(fact)
            for fact in (yield from call(store.current_facts, link_scope, now, slots=pairs))
        }
    link_keys = {
        link.seq: (link.rel, str(nodes_by_id[link.dst].meta.get("slug", ""))) for link in links
    }
    return [
        link
        for link in links
        if (sources[link.seq], link_keys[link.seq]) in drawn_keys
        and link_keys[link.seq] not in current_keys
    ]


def _relation_key(fact: Fact) -> tuple[str, str]:
    return fact.predicate or "", address.slugify(fact.object or "")
