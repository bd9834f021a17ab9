"""The graph: whom memories speak of are threads of the kind `node`, and how they bear on each other are links."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from told.core import address
from told.core.alike import has_extra_words, is_same_text
from told.core.entry import Asserted, Claim, Draft, Linked, Verb
from told.core.fact import NODE, Fact
from told.core.text import make_snippet
from told.flow import Flow, call
from told.ledger.erase import EVIDENCE_KEY
from told.ports import Guard, Store, ThreadAt, UnchangedSlot
from told.write.curate.plan import PlanContext
from told.write.curate.verdicts import is_trusted_over
from told.write.shape import Entity, Relation

MENTIONS: Final = "mentions"
UNTYPED_ENTITY: Final = "thing"
DESCRIPTION_LIMIT: Final = 400
"""The most characters of a description."""


@dataclass(slots=True)
class GraphPlan:
    """What a graph is drawn with: drafts, their guards, and the thread of each name."""

    drafts: list[Draft] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)


def plan_graph(
    store: Store,
    ctx: PlanContext,
    entities: Sequence[Entity],
    relations: Sequence[Relation],
    claims: Sequence[tuple[str, str]] = (),
    evidence: Sequence[str] = (),
    role: str = "user",
    texts: Sequence[str] = (),
) -> Flow[GraphPlan]:
    """The entries that put entities and relations into the graph, and bind claims (thread, text) to whom they mention.

    A node that is there is found by the slug of its name; a relation that is there is not drawn again. `said` is what
    each piece of evidence says: a node is taken from the first that names it.
    """
    entities_by_slug = _index_entities(entities, relations)
    current_nodes = yield from call(
        store.current_facts, ctx.scope, ctx.now, slots=[(slug, NODE) for slug in entities_by_slug]
    )
    nodes_by_slug = {fact.subject: fact for fact in current_nodes}
    plan = GraphPlan()
    for slug, entity in entities_by_slug.items():
        _plan_node(
            plan,
            ctx,
            entity,
            nodes_by_slug.get(slug),
            slug,
            _pick_evidence(entity, relations, evidence, texts),
            role,
        )
    wanted_links = [
        *_build_relation_links(plan, relations, evidence),
        *_build_mention_links(plan, entities_by_slug, claims),
    ]
    ends = _select_link_ends(wanted_links, {fact.id for fact in current_nodes})
    links = (yield from call(store.find_links, ctx.scope.account, ends)) if ends else ()
    existing = {(link.src, link.rel, link.dst) for link in links}
    for link in wanted_links:
        if (link.src, link.rel, link.dst) not in existing:
            existing.add((link.src, link.rel, link.dst))
            plan.drafts.append(_build_draft(ctx, link))
    return plan


def _select_link_ends(wanted_links: Sequence[Linked], node_ids: set[str]) -> list[str]:
    """One end of every link that may be there already, the one that fewer links are likely to have.

    Whoever speaks has links to everything they speak of, and what is new has none.
    """
    ends = (
        link.src if link.rel == MENTIONS else link.dst
        for link in wanted_links
        if link.dst in node_ids
    )
    return list(dict.fromkeys(ends))


def _index_entities(entities: Sequence[Entity], relations: Sequence[Relation]) -> dict[str, Entity]:
    """Every entity once by its slug, those that only a relation names too."""
    implied = [Entity(name) for relation in relations for name in (relation.src, relation.dst)]
    by_slug: dict[str, Entity] = {}
    for entity in (*entities, *implied):
        slug = address.slugify(entity.name)
        if slug:
            earlier = by_slug.get(slug)
            by_slug[slug] = entity if earlier is None else _merge_entities(earlier, entity)
    return by_slug


def _pick_evidence(
    entity: Entity, relations: Sequence[Relation], evidence: Sequence[str], texts: Sequence[str]
) -> str | None:
    """The evidence of an entity: the first that names it, or that relates it to another, or the first there is."""
    naming = (turn for turn, text in enumerate(texts) if entity.name.casefold() in text.casefold())
    slug = address.slugify(entity.name)
    related = (
        relation.turn
        for relation in relations
        if slug in (address.slugify(relation.src), address.slugify(relation.dst))
    )
    turn = next(naming, None)
    turn = next(related, 0) if turn is None else turn
    return evidence[turn] if turn < len(evidence) else None


def _merge_entities(old: Entity, new: Entity) -> Entity:
    """One entity of two with the same name: the more definite type, and what both are said to be."""
    kind = new.type if old.type == UNTYPED_ENTITY else old.type
    return replace(
        old, type=kind, description=_merge_descriptions(old.description, new.description)
    )


def _merge_descriptions(old: str, new: str) -> str:
    """Two descriptions as one: the one that says more, or both."""
    if not new or is_same_text(new, old) or has_extra_words(old, new):
        return old
    return make_snippet(
        new if not old or has_extra_words(new, old) else f"{old}; {new}", DESCRIPTION_LIMIT
    )


def build_node_claim(entity: Entity, slug: str, evidence: str | None, role: str) -> Claim:
    """An entity as the claim of its thread."""
    description = f": {entity.description}" if entity.description else ""
    meta = {"slug": slug, "name": entity.name, "type": entity.type}
    meta |= {"description": entity.description} if entity.description else {}
    text = f"{entity.name} ({entity.type}){description}"
    return Claim(text, NODE, slug, NODE, entity.type, evidence=evidence, role=role, meta=meta)


def entity_from_node(node: Fact) -> Entity:
    """The entity a node stands for."""
    meta: Mapping[str, object] = node.meta
    return Entity(
        str(meta.get("name", node.text)),
        str(meta.get("type", UNTYPED_ENTITY)),
        str(meta.get("description", "")),
    )


def _plan_node(
    plan: GraphPlan,
    ctx: PlanContext,
    entity: Entity,
    current: Fact | None,
    slug: str,
    evidence: str | None,
    role: str,
) -> None:
    """A new node, or more about one that is there; whoever is trusted less says nothing about it."""
    if current is None:
        thread = plan.nodes[slug] = ctx.id_generator.new_id()
        plan.guards.append(UnchangedSlot(ctx.scope, slug, (NODE,), ctx.position))
        plan.drafts.append(
            _build_draft(ctx, Asserted(thread, build_node_claim(entity, slug, evidence, role)))
        )
        return
    plan.nodes[slug] = current.id
    merged = _merge_entities(entity_from_node(current), entity)
    claim = build_node_claim(merged, slug, evidence, role)
    if merged != entity_from_node(current) and is_trusted_over(claim, current):
        plan.guards.append(ThreadAt(current.id, current.seq))
        plan.drafts.append(_build_draft(ctx, Asserted(current.id, claim, current.created_at)))


def _build_relation_links(
    plan: GraphPlan, relations: Sequence[Relation], evidence: Sequence[str]
) -> list[Linked]:
    links: list[Linked] = []
    for relation in relations:
        src, dst = (plan.nodes.get(address.slugify(name)) for name in (relation.src, relation.dst))
        if src is not None and dst is not None and src != dst:
            meta = {EVIDENCE_KEY: evidence[relation.turn]} if relation.turn < len(evidence) else {}
            links.append(Linked(src, relation.rel, dst, relation.confidence, meta))
    return links


def _build_mention_links(
    plan: GraphPlan, entities_by_slug: Mapping[str, Entity], claims: Sequence[tuple[str, str]]
) -> list[Linked]:
    """Which claims name which entities, as whole words."""
    names = {slug: entity.name.lower() for slug, entity in entities_by_slug.items()}
    return [
        Linked(thread, MENTIONS, plan.nodes[slug])
        for thread, lowered in ((thread, text.lower()) for thread, text in claims)
        for slug, name in names.items()
        if name in lowered and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", lowered)
    ]


def _build_draft(ctx: PlanContext, verb: Verb) -> Draft:
    return Draft(verb, ctx.scope, ctx.author)
