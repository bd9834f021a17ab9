"""Maintain the entity graph: nodes, relations, mentions, and weighted same-as edges."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from told.curation.decisions import PlanContext, is_trusted_over
from told.flow import Flow, call
from told.ingest.types import Entity, Relation
from told.ledger.commit import commit_batch, retry_on_conflict
from told.ledger.consumer import Failure, catch_failure
from told.ledger.erase import EVIDENCE_KEY
from told.model.beliefs import DISTINCT_REFERENT, LENSES, SAME_AS
from told.model.entry import Asserted, Claim, Draft, Linked, Verb
from told.model.fact import NODE, Fact
from told.model.kind import slugify
from told.model.scope import Scope
from told.model.scoring import cosine, quantise
from told.ports import Batch, Embedder, Guard, Store, ThreadAt, UnchangedSlot, validate_vectors
from told.text.similarity import has_extra_words, is_same_text, similarity_ratio
from told.text.tokens import make_snippet

if TYPE_CHECKING:
    from told.ingest.context import WriteContext

MENTIONS: Final = "mentions"
UNTYPED_ENTITY: Final = "thing"
DESCRIPTION_LIMIT: Final = 400
"""Maximum length of an entity description."""


@dataclass(slots=True)
class GraphPlan:
    """Drafts and guards for the graph, and the thread of each node by slug."""

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
    """Build the entries for entities, relations and the mentions in claims (thread, text).

    Existing nodes are found by slug, and existing links are not added again. `texts` are the
    evidence texts: a node cites the first one that names it.
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
    """Return one end of every link that may exist, the one expected to have fewer links.

    Speakers link to everything they mention, and new nodes have no links.
    """
    ends = (
        link.src if link.rel == MENTIONS else link.dst
        for link in wanted_links
        if link.dst in node_ids
    )
    return list(dict.fromkeys(ends))


def _index_entities(entities: Sequence[Entity], relations: Sequence[Relation]) -> dict[str, Entity]:
    """Index entities by slug, including those only named in a relation."""
    implied = [Entity(name) for relation in relations for name in (relation.src, relation.dst)]
    by_slug: dict[str, Entity] = {}
    for entity in (*entities, *implied):
        slug = slugify(entity.name)
        if slug:
            earlier = by_slug.get(slug)
            by_slug[slug] = entity if earlier is None else _merge_entities(earlier, entity)
    return by_slug


def _pick_evidence(
    entity: Entity, relations: Sequence[Relation], evidence: Sequence[str], texts: Sequence[str]
) -> str | None:
    """Return the first evidence that names an entity, else one that relates it, else the first."""
    naming = (turn for turn, text in enumerate(texts) if entity.name.casefold() in text.casefold())
    slug = slugify(entity.name)
    related = (
        relation.turn
        for relation in relations
        if slug in (slugify(relation.src), slugify(relation.dst))
    )
    turn = next(naming, None)
    turn = next(related, 0) if turn is None else turn
    return evidence[turn] if turn < len(evidence) else None


def _merge_entities(old: Entity, new: Entity) -> Entity:
    """Merge two entities of the same name: the more specific type and both descriptions."""
    entity_type = new.type if old.type == UNTYPED_ENTITY else old.type
    return replace(
        old, type=entity_type, description=_merge_descriptions(old.description, new.description)
    )


def _merge_descriptions(old: str, new: str) -> str:
    """Merge two descriptions: the longer one if it contains the other, else both."""
    if not new or is_same_text(new, old) or has_extra_words(old, new):
        return old
    return make_snippet(
        new if not old or has_extra_words(new, old) else f"{old}; {new}", DESCRIPTION_LIMIT
    )


def build_node_claim(entity: Entity, slug: str, evidence: str | None, role: str) -> Claim:
    """Build the claim of an entity node."""
    description = f": {entity.description}" if entity.description else ""
    meta = {"slug": slug, "name": entity.name, "type": entity.type}
    meta |= {"description": entity.description} if entity.description else {}
    text = f"{entity.name} ({entity.type}){description}"
    return Claim(text, NODE, slug, NODE, entity.type, evidence=evidence, role=role, meta=meta)


def entity_from_node(node: Fact) -> Entity:
    """Return the entity of a node."""
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
    """Add a node, or update an existing one if the source is trusted enough."""
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
        src, dst = (plan.nodes.get(slugify(name)) for name in (relation.src, relation.dst))
        if src is not None and dst is not None and src != dst:
            meta = {EVIDENCE_KEY: evidence[relation.turn]} if relation.turn < len(evidence) else {}
            links.append(Linked(src, relation.rel, dst, relation.confidence, meta))
    return links


def _build_mention_links(
    plan: GraphPlan, entities_by_slug: Mapping[str, Entity], claims: Sequence[tuple[str, str]]
) -> list[Linked]:
    """Build links from claims to the entities they mention as whole words."""
    names = {slug: entity.name.lower() for slug, entity in entities_by_slug.items()}
    return [
        Linked(thread, MENTIONS, plan.nodes[slug])
        for thread, lowered in ((thread, text.lower()) for thread, text in claims)
        for slug, name in names.items()
        if name in lowered and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", lowered)
    ]


def _build_draft(ctx: PlanContext, verb: Verb) -> Draft:
    return Draft(verb, ctx.scope, ctx.author)


MIN_WEIGHT: Final = min(lens.same for lens in LENSES.values())
"""Minimum weight of an edge; no lens sees a lighter one."""
_LEGAL_SUFFIXES: Final = frozenset(
    "inc incorporated corp corporation ltd limited llc gmbh ag sa plc co company bv the".split()
)
_EXACT_WEIGHT = 0.99
_PART_WEIGHT = 0.90
_INITIAL_WEIGHT = 0.75
_FIRST_NAME_WEIGHT = 0.65
_ACRONYM_WEIGHT = 0.70
_SPELLING_WEIGHT = 0.88
_MIN_SPELLING_LIKENESS: Final = 0.85
_MIN_NAME_LENGTH: Final = 5
_MIN_COSINE: Final = 0.8
_EMBEDDING_WEIGHT: Final = 0.9
"""Maximum weight of an embedding match, since similar meaning may be mere relatedness."""


@dataclass(frozen=True, slots=True)
class NameReference:
    """A name in the graph with its thread and type."""

    thread: str
    name: str
    type: str = "thing"


def score_name_match(name: str, other_name: str) -> float:
    """Score how likely two names denote the same entity; different numbers score 0."""
    left, right = _split_name(name), _split_name(other_name)
    if not left or not right or _get_numeric_parts(left) != _get_numeric_parts(right):
        return 0.0
    if "".join(left) == "".join(right):
        return _EXACT_WEIGHT
    shorter, longer = sorted((left, right), key=len)
    if _is_acronym(shorter, longer):
        return _ACRONYM_WEIGHT
    if set(shorter) < set(longer):
        return _PART_WEIGHT if len(shorter) > 1 else _FIRST_NAME_WEIGHT
    if (
        len(shorter) == len(longer) > 1
        and shorter[-1] == longer[-1]
        and _is_abbreviation(shorter, longer)
    ):
        return _INITIAL_WEIGHT
    spelling_likeness = similarity_ratio(" ".join(left), " ".join(right))
    return (
        spelling_likeness * _SPELLING_WEIGHT
        if spelling_likeness >= _MIN_SPELLING_LIKENESS and len("".join(shorter)) >= _MIN_NAME_LENGTH
        else 0.0
    )


def _split_name(name: str) -> tuple[str, ...]:
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c)
    )
    parts = re.findall(r"[^\W_]+", re.sub(r"(?<=\b\w)\.(?=\w\b)|'s\b", "", plain))
    return tuple(part for part in parts if part not in _LEGAL_SUFFIXES) or tuple(parts)


def _get_numeric_parts(parts: Sequence[str]) -> list[str]:
    return [part for part in parts if any(char.isdigit() for char in part)]


def _is_acronym(shorter: Sequence[str], longer: Sequence[str]) -> bool:
    return (
        len(shorter) == 1 and len(longer) > 2 and shorter[0] == "".join(part[0] for part in longer)
    )


def _is_abbreviation(left: Sequence[str], right: Sequence[str]) -> bool:
    """Return True if the given names agree and at least one is an initial."""
    pairs = [(a, b) for a, b in zip(left[:-1], right[:-1], strict=True) if a != b]
    return bool(pairs) and all(min(len(a), len(b)) == 1 and a[0] == b[0] for a, b in pairs)


def build_identity_edges(
    references: Sequence[NameReference], vectors: Mapping[str, Sequence[float]] | None = None
) -> list[Linked]:
    """Build same-as edges by spelling, and by embedding where vectors are given."""
    codes = {thread: quantise(vector) for thread, vector in (vectors or {}).items()}
    identity_edges: list[Linked] = []
    for left, right in combinations(references, 2):
        if not _is_comparable(left, right):
            continue
        spelling_weight = score_name_match(left.name, right.name)
        embedding_weight = 0.0
        if (
            left.thread in codes
            and right.thread in codes
            and _get_numeric_parts(_split_name(left.name))
            == _get_numeric_parts(_split_name(right.name))
        ):
            similarity = cosine(codes[left.thread], codes[right.thread])
            embedding_weight = similarity * _EMBEDDING_WEIGHT if similarity >= _MIN_COSINE else 0.0
        weight, method = max((spelling_weight, "fuzzy"), (embedding_weight, "embedding"))
        if weight >= MIN_WEIGHT:
            identity_edges.append(
                Linked(right.thread, SAME_AS, left.thread, round(weight, 4), {"method": method})
            )
    return identity_edges


def _is_comparable(left: NameReference, right: NameReference) -> bool:
    return left.thread != right.thread and (
        left.type == right.type or "thing" in (left.type, right.type)
    )


def find_identity_edges(
    store: Store, scope: Scope, now: int, embedder: Embedder | None = None
) -> Flow[list[Linked]]:
    """Return the same-as edges between nodes of a scope that are not recorded yet."""
    nodes = yield from call(store.current_facts, scope, now, kinds=[NODE])
    references = [build_reference(node) for node in nodes]
    vectors = yield from _embed_names(embedder, references)
    links = yield from call(store.find_links, scope.account, [node.id for node in nodes])
    known = {
        frozenset((link.src, link.dst))
        for link in links
        if link.rel in (SAME_AS, DISTINCT_REFERENT)
    }
    return [
        edge
        for edge in build_identity_edges(references, vectors)
        if frozenset((edge.src, edge.dst)) not in known
    ]


@dataclass(frozen=True, slots=True)
class IdentityMatch:
    """Two names that may denote the same entity, with weight and method."""

    source: NameReference
    target: NameReference
    weight: float
    method: str

    def as_dict(self) -> dict[str, Any]:
        """Return the match as a JSON-compatible dict."""
        pair = {"source": self.source.name, "relation": SAME_AS, "target": self.target.name}
        return {
            **pair,
            "weight": self.weight,
            "method": self.method,
            "ids": [self.source.thread, self.target.thread],
        }


def record_identity_edges(ctx: WriteContext, scope: Scope) -> Flow[list[IdentityMatch]]:
    """Record missing same-as edges between names; no node is merged or changed."""

    def decide() -> Flow[list[IdentityMatch]]:
        now = ctx.id_generator.now()
        candidates = yield from find_identity_edges(ctx.store, scope, now, ctx.embedder)
        nodes = {
            node.id: node
            for node in (yield from call(ctx.store.current_facts, scope, now, kinds=[NODE]))
        }
        new_edges = [edge for edge in candidates if edge.src in nodes and edge.dst in nodes]
        if not new_edges:
            return []
        drafts = [Draft(edge, scope, ctx.author) for edge in new_edges]
        ends = dict.fromkeys(end for edge in new_edges for end in (edge.src, edge.dst))
        guards = [ThreadAt(end, nodes[end].seq) for end in ends]
        yield from commit_batch(ctx.store, Batch(scope.account, drafts, guards))
        references = {end: build_reference(nodes[end]) for end in ends}
        return [
            IdentityMatch(
                references[edge.src], references[edge.dst], edge.weight, str(edge.meta["method"])
            )
            for edge in new_edges
        ]

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


def _embed_names(
    embedder: Embedder | None, references: Sequence[NameReference]
) -> Flow[Mapping[str, Sequence[float]]]:
    if embedder is None or not references:
        return {}
    outcome = yield from catch_failure(
        call(embedder.embed, [reference.name for reference in references], "passage")
    )
    if isinstance(outcome, Failure):
        return {}
    return dict(
        zip(
            (reference.thread for reference in references),
            validate_vectors(embedder, outcome, len(references)),
            strict=True,
        )
    )


def build_reference(node: Fact) -> NameReference:
    """Build the name reference of a node."""
    return NameReference(
        node.id, str(node.meta.get("name", node.text)), str(node.meta.get("type", "thing"))
    )
