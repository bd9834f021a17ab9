"""List memories with their source quotes and strength, owners, and entity relations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from told.errors import InvalidInput, NotFoundError
from told.flow import Flow, call
from told.ledger.clocks import has_earlier_versions, load_mentions, read_fact_clocks
from told.ledger.erase import EVIDENCE_KEY
from told.model import kind
from told.model.decay import ClockReadings, FactMention, Strength, compute_strength, list_mentions
from told.model.entry import Asserted, Observed, Verb
from told.model.fact import NODE, TURN, Fact, Link
from told.model.filter import parse_filter
from told.model.kind import Kind
from told.model.query import LATEST, AsOf, FactQuery, exclude_unlisted
from told.model.scope import Scope
from told.model.validation import suggest_option
from told.ports import ScopeTally, Store
from told.retrieval.candidates import ReadContext, find_denials, get_link_seq
from told.text.tokens import format_value, split_sentences

OWNER_TYPES = ("user", "agent", "run")


@dataclass(frozen=True, slots=True)
class OwnerStatistics:
    """The number of memories of a user, agent or run, and the times of first and last write."""

    owner_type: str
    name: str
    memory_count: int
    first_at: int
    last_at: int


def parse_owner_types(value: Any) -> tuple[str, ...]:
    """Return the owner types to list; all by default."""
    if value is None:
        return OWNER_TYPES
    if not isinstance(value, str) or value not in OWNER_TYPES:
        hint = (
            isinstance(value, str) and suggest_option(value, OWNER_TYPES)
        ) or f"Use one of {', '.join(OWNER_TYPES)}."
        raise InvalidInput(f"Unknown owner type {format_value(value)}.", hint=hint)
    return (value,)


def summarise_owners(
    tallies: Iterable[ScopeTally], owner_types: Sequence[str] = OWNER_TYPES
) -> list[OwnerStatistics]:
    """Return statistics of users, then agents, then runs, by name.

    A memory with several owners counts for each of them.
    """
    tallies_by_owner: dict[tuple[str, str], list[ScopeTally]] = defaultdict(list)
    for tally in tallies:
        for field, name in tally.scope.ids().items():
            tallies_by_owner[field.removesuffix("_id"), name].append(tally)
    return [
        _sum_tallies(owner_type, name, tallies_by_owner[owner_type, name])
        for owner_type in owner_types
        for name in _list_names(tallies_by_owner, owner_type)
    ]


def _list_names(tallies_by_owner: Iterable[tuple[str, str]], owner_type: str) -> list[str]:
    return sorted(name for key_type, name in tallies_by_owner if key_type == owner_type)


def _sum_tallies(owner_type: str, name: str, tallies: Sequence[ScopeTally]) -> OwnerStatistics:
    first, last = min(tally.first for tally in tallies), max(tally.last for tally in tallies)
    return OwnerStatistics(owner_type, name, sum(tally.memories for tally in tallies), first, last)


@dataclass(frozen=True, slots=True)
class EntityRelation:
    """A relation between two entities."""

    source: Fact
    relation: str
    target: Fact
    weight: float


def list_nodes(store: Store, scope: Scope, now: int) -> Flow[Sequence[Fact]]:
    """Return the entity nodes of a scope, oldest first."""
    return (
        yield from call(
            store.find_facts, FactQuery(scope, AsOf(LATEST, now), parse_filter({"kind": NODE}))
        )
    )


def list_relations(
    store: Store, scope: Scope, name: str, now: int
) -> Flow[Sequence[EntityRelation]]:
    """Return the relations of the entities with a name, or raise NotFoundError."""
    nodes_by_id = {node.id: node for node in (yield from list_nodes(store, scope, now))}
    node_ids = [
        node.id for node in nodes_by_id.values() if node.meta.get("slug") == kind.slugify(name)
    ]
    if not node_ids:
        raise NotFoundError(f"There is no entity {name!r} here.", hint="List them with entities().")
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
    """Return relations whose source claims all ended."""
    sources = {link.seq: str(link.meta.get(EVIDENCE_KEY, "")) for link in links}
    claims = yield from call(
        store.find_versions,
        scope.account,
        evidence=sorted({source for source in sources.values() if source}),
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
    return fact.predicate or "", kind.slugify(fact.object or "")


def measure_strengths(
    ctx: ReadContext, facts: Sequence[Fact], query: FactQuery, *, with_pace: bool = False
) -> Flow[Mapping[int, Strength]]:
    """Return the strength of each fact at the time of a read, by seq.

    `with_pace` also predicts when a fact that fades by turns will have faded.
    """
    mentions_by_seq = yield from load_mentions(
        ctx.store, query.scope.account, facts, get_link_seq(query)
    )
    return (yield from _measure(ctx, facts, mentions_by_seq, query, with_pace=with_pace))


def find_faded(ctx: ReadContext, facts: Sequence[Fact], query: FactQuery) -> Flow[frozenset[int]]:
    """Return the seqs of the faded facts at the time of a read.

    Mentions can only strengthen a fact, so they are looked up only for facts that changed or would
    have faded without them.
    """
    mortal_facts = [
        fact
        for fact in facts
        if (kind := ctx.kinds.get(fact.kind)) and not kind.build_curve().is_permanent
    ]
    unchanged = [fact for fact in mortal_facts if not has_earlier_versions(fact)]
    initial_strengths = yield from _measure(
        ctx, unchanged, {fact.seq: list_mentions(fact) for fact in unchanged}, query
    )
    weak_facts = [
        fact
        for fact in mortal_facts
        if has_earlier_versions(fact) or initial_strengths[fact.seq].is_faded
    ]
    strength_by_seq = (yield from measure_strengths(ctx, weak_facts, query)) if weak_facts else {}
    return frozenset(seq for seq, measured in strength_by_seq.items() if measured.is_faded)


def take_unfaded(
    ctx: ReadContext, facts: Iterable[Fact], query: FactQuery, count: int
) -> Flow[tuple[list[Fact], list[Fact]]]:
    """Return the first `count` facts that have not faded, and the faded ones before them."""
    remaining = iter(facts)
    kept: list[Fact] = []
    faded_facts: list[Fact] = []
    while len(kept) < count and (batch := list(islice(remaining, count))):
        faded_seqs = yield from find_faded(ctx, batch, query)
        faded_facts += [fact for fact in batch if fact.seq in faded_seqs]
        kept += [fact for fact in batch if fact.seq not in faded_seqs]
    return kept[:count], faded_facts


def _measure(
    ctx: ReadContext,
    facts: Sequence[Fact],
    mentions_by_seq: Mapping[int, Sequence[FactMention]],
    query: FactQuery,
    *,
    with_pace: bool = False,
) -> Flow[Mapping[int, Strength]]:
    """Return the strength of facts, given their mentions and clocks."""
    clocks_by_home: Mapping[str, ClockReadings] = yield from read_fact_clocks(
        ctx.store, facts, mentions_by_seq, ctx.kinds, query.as_of, ctx.settings, with_pace=with_pace
    )
    floor = ctx.settings.prune_threshold
    return {
        fact.seq: compute_strength(
            fact,
            ctx.kinds.get(fact.kind),
            clocks_by_home[fact.scope.partition_key()],
            mentions_by_seq[fact.seq],
            floor,
        )
        for fact in facts
    }


PAGE_SIZE: Final = 1000
"""Number of memories to load at once."""
MAX_FULL_QUOTE: Final = 200
"""Quote evidence up to this many characters in full, else only the relevant sentences."""


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """A memory with its kind, strength and source quote."""

    fact: Fact
    kind: Kind | None
    strength: Strength
    quote: str | None = None


def list_memory_details(ctx: ReadContext, query: FactQuery) -> Flow[list[MemoryDetail]]:
    """Return all memories of a scope grouped by kind, strongest first."""
    details: list[MemoryDetail] = []
    page = replace(exclude_unlisted(query), limit=PAGE_SIZE, offset=0)
    while facts := (yield from call(ctx.store.find_facts, page)):
        denied = find_denials(facts, ctx.guards)
        details += yield from _load_details(
            ctx, [fact for fact in facts if fact.seq not in denied], query
        )
        page = replace(page, offset=page.offset + PAGE_SIZE)
    return _sort_by_kind(details)


def _sort_by_kind(details: Sequence[MemoryDetail]) -> list[MemoryDetail]:
    best: dict[str, float] = {}
    for detail in details:
        best[detail.fact.kind] = max(best.get(detail.fact.kind, 0.0), detail.strength.weight)
    return sorted(
        details, key=lambda e: (-best[e.fact.kind], e.fact.kind, -e.strength.weight, e.fact.seq)
    )


def _load_details(
    ctx: ReadContext, facts: Sequence[Fact], query: FactQuery
) -> Flow[list[MemoryDetail]]:
    strength_by_seq = yield from measure_strengths(ctx, facts, query, with_pace=True)
    quotes = yield from _load_quotes(ctx, query.scope.account, facts)
    return [
        MemoryDetail(
            fact, ctx.kinds.get(fact.kind), strength_by_seq[fact.seq], quotes.get(fact.seq)
        )
        for fact in facts
    ]


# Quotes


def _load_quotes(ctx: ReadContext, account: str, facts: Sequence[Fact]) -> Flow[Mapping[int, str]]:
    """Return the source quote of each fact by seq, without turns a guard denies."""
    store, evidence_ids = ctx.store, {fact.evidence for fact in facts if fact.evidence is not None}
    if evidence_ids and ctx.guards:
        turns = [
            fact
            for fact in (
                yield from call(store.find_versions, account, evidence=sorted(evidence_ids))
            )
            if fact.kind == TURN
        ]
        denied = find_denials(turns, ctx.guards)
        evidence_ids -= {turn.evidence for turn in turns if turn.seq in denied}
    evidence_rows = (
        (yield from call(store.evidence_rows, account, ids=sorted(evidence_ids)))
        if evidence_ids
        else ()
    )
    contents: dict[str, str] = {}
    for evidence_row in evidence_rows:
        observed = yield from _load_verb(store, account, evidence_row.seq)
        if isinstance(observed, Observed):
            contents[observed.id] = observed.evidence.content
    quotes: dict[int, str] = {}
    for fact in facts:
        content = contents.get(fact.evidence or "")
        if content is not None:
            asserted = (
                (yield from _load_verb(store, account, fact.seq))
                if len(content) > MAX_FULL_QUOTE
                else None
            )
            span = asserted.claim.span if isinstance(asserted, Asserted) else None
            quotes[fact.seq] = extract_quote(content, span)
    return quotes


def _load_verb(store: Store, account: str, seq: int) -> Flow[Verb | None]:
    entries = yield from call(store.scan_entries, account, seq - 1, 1)
    return entries[0].verb if entries else None


def extract_quote(content: str, span: tuple[int, int] | None) -> str:
    """Return the sentences a span touches, or the whole text if it is short or has no span."""
    if len(content) <= MAX_FULL_QUOTE or span is None:
        return content
    overlapping = [
        text
        for start, text in _iter_sentences(content)
        if start < span[1] and span[0] < start + len(text)
    ]
    return " ".join(overlapping) or content


def _iter_sentences(content: str) -> Iterator[tuple[int, str]]:
    """Iterate over the sentences of a text with their start offsets."""
    end = 0
    for text in split_sentences(content):
        start = content.index(text, end)
        end = start + len(text)
        yield start, text
