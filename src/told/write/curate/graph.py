"""The graph: whom memories speak of are threads of the kind `node`, and how they bear on each other are links."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from told.core import address
from told.core.alike import adds_to, same_text
from told.core.entry import Asserted, Claim, Draft, Linked, Verb
from told.core.fact import NODE, Fact
from told.core.text import snippet
from told.flow import Flow, call
from told.ledger.erase import DRAWN_FROM
from told.ports import Guard, NoNews, Store, ThreadAt
from told.write.curate.plan import Place
from told.write.curate.verdicts import outranks
from told.write.shape import Entity, Relation

MENTIONS: Final = "mentions"
UNTYPED: Final = "thing"
DESCRIBED: Final = 400
"""The most characters of a description."""


@dataclass(slots=True)
class Drawn:
    """What a graph is drawn with: drafts, their guards, and the thread of each name."""

    drafts: list[Draft] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)


def plan_graph(
    store: Store, place: Place, entities: Sequence[Entity], relations: Sequence[Relation],
    claims: Sequence[tuple[str, str]] = (), evidence: Sequence[str] = (), role: str = "user",
    said: Sequence[str] = (),
) -> Flow[Drawn]:  # fmt: skip
    """The entries that put entities and relations into the graph, and bind claims (thread, text) to whom they mention.

    A node that is there is found by the slug of its name; a relation that is there is not drawn again. `said` is what
    each piece of evidence says: a node is taken from the first that names it.
    """
    named = _named(entities, relations)
    held = yield from call(store.held, place.scope, place.now, about=[(slug, NODE) for slug in named])
    known = {fact.subject: fact for fact in held}
    drawn = Drawn()
    for slug, entity in named.items():
        _put(drawn, place, entity, known.get(slug), slug, _taken(entity, relations, evidence, said), role)
    wanted = [*_related(drawn, relations, evidence), *_mentioned(drawn, named, claims)]
    ends = _ends(wanted, {fact.id for fact in held})
    links = (yield from call(store.links, place.scope.account, ends)) if ends else ()
    there = {(link.src, link.rel, link.dst) for link in links}
    for link in wanted:
        if (link.src, link.rel, link.dst) not in there:
            there.add((link.src, link.rel, link.dst))
            drawn.drafts.append(_draft(place, link))
    return drawn


def _ends(wanted: Sequence[Linked], held: set[str]) -> list[str]:
    """One end of every link that may be there already, the one that fewer links are likely to have.

    Whoever speaks has links to everything they speak of, and what is new has none.
    """
    ends = (link.src if link.rel == MENTIONS else link.dst for link in wanted if link.dst in held)
    return list(dict.fromkeys(ends))


def _named(entities: Sequence[Entity], relations: Sequence[Relation]) -> dict[str, Entity]:
    """Every entity once by its slug, those that only a relation names too."""
    unsaid = [Entity(name) for each in relations for name in (each.src, each.dst)]
    found: dict[str, Entity] = {}
    for entity in (*entities, *unsaid):
        slug = address.slug(entity.name)
        if slug:
            before = found.get(slug)
            found[slug] = entity if before is None else _both(before, entity)
    return found


def _taken(entity: Entity, relations: Sequence[Relation], evidence: Sequence[str], said: Sequence[str]) -> str | None:
    """The evidence of an entity: the first that names it, or that relates it to another, or the first there is."""
    naming = (turn for turn, words in enumerate(said) if entity.name.casefold() in words.casefold())
    slug = address.slug(entity.name)
    related = (each.turn for each in relations if slug in (address.slug(each.src), address.slug(each.dst)))
    turn = next(naming, None)
    turn = next(related, 0) if turn is None else turn
    return evidence[turn] if turn < len(evidence) else None


def _both(old: Entity, new: Entity) -> Entity:
    """One entity of two with the same name: the more definite type, and what both are said to be."""
    kind = new.type if old.type == UNTYPED else old.type
    return replace(old, type=kind, description=_described(old.description, new.description))


def _described(old: str, new: str) -> str:
    """Two descriptions as one: the one that says more, or both."""
    if not new or same_text(new, old) or adds_to(old, new):
        return old
    return snippet(new if not old or adds_to(new, old) else f"{old}; {new}", DESCRIBED)


def node_claim(entity: Entity, slug: str, evidence: str | None, role: str) -> Claim:
    """An entity as the claim of its thread."""
    about = f": {entity.description}" if entity.description else ""
    meta = {"slug": slug, "name": entity.name, "type": entity.type}
    meta |= {"description": entity.description} if entity.description else {}
    text = f"{entity.name} ({entity.type}){about}"
    return Claim(text, NODE, slug, NODE, entity.type, evidence=evidence, role=role, meta=meta)


def entity_of(node: Fact) -> Entity:
    """The entity a node stands for."""
    meta: Mapping[str, object] = node.meta
    return Entity(str(meta.get("name", node.text)), str(meta.get("type", UNTYPED)), str(meta.get("description", "")))


def _put(
    drawn: Drawn, place: Place, entity: Entity, held: Fact | None, slug: str, evidence: str | None, role: str
) -> None:
    """A new node, or more about one that is there; whoever is trusted less says nothing about it."""
    if held is None:
        thread = drawn.nodes[slug] = place.mint.id()
        drawn.guards.append(NoNews(place.scope, slug, (NODE,), place.seen))
        drawn.drafts.append(_draft(place, Asserted(thread, node_claim(entity, slug, evidence, role))))
        return
    drawn.nodes[slug] = held.id
    both = _both(entity_of(held), entity)
    claim = node_claim(both, slug, evidence, role)
    if both != entity_of(held) and outranks(claim, held):
        drawn.guards.append(ThreadAt(held.id, held.seq))
        drawn.drafts.append(_draft(place, Asserted(held.id, claim, held.created_at)))


def _related(drawn: Drawn, relations: Sequence[Relation], evidence: Sequence[str]) -> list[Linked]:
    found: list[Linked] = []
    for each in relations:
        src, dst = (drawn.nodes.get(address.slug(name)) for name in (each.src, each.dst))
        if src is not None and dst is not None and src != dst:
            meta = {DRAWN_FROM: evidence[each.turn]} if each.turn < len(evidence) else {}
            found.append(Linked(src, each.rel, dst, each.confidence, meta))
    return found


def _mentioned(drawn: Drawn, named: Mapping[str, Entity], claims: Sequence[tuple[str, str]]) -> list[Linked]:
    """Which claims name which entities, as whole words."""
    names = {slug: entity.name.lower() for slug, entity in named.items()}
    return [
        Linked(thread, MENTIONS, drawn.nodes[slug])
        for thread, low in ((thread, text.lower()) for thread, text in claims)
        for slug, name in names.items()
        if name in low and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", low)
    ]


def _draft(place: Place, verb: Verb) -> Draft:
    return Draft(verb, place.scope, place.author)
