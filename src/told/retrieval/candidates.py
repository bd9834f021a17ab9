"""The dependencies of a read, its guards, its index query, and the links of candidates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TypeAlias

from told.errors import ModelMismatch
from told.flow import Flow, call
from told.ledger.consumer import Failure, catch_failure
from told.model.fact import Fact, Link
from told.model.filter import Comparison, combine_all
from told.model.kind import Ontology, load_builtin_ontology
from told.model.query import LATEST, FactQuery, IndexQuery, IndexResult, QueryWord
from told.model.scoring import quantise
from told.model.topics import Thresholds
from told.ports import LLM, Embedder, Reranker, Store, Vector, validate_vectors
from told.retrieval.access_log import HotBuffers
from told.retrieval.intent import QueryIntent
from told.settings import Settings
from told.text.lexicon import COMMON_WORDS
from told.text.tokens import extract_query_terms

Guard: TypeAlias = Callable[[Fact], str | None]
"""A function that returns the reason a fact may not be shown, or None."""


def allow_kinds(prefixes: Sequence[str]) -> Guard:
    """Return a guard that allows kinds equal to, or nested under, one of the prefixes."""

    def deny(fact: Fact) -> str | None:
        is_allowed = any(
            fact.kind == prefix or fact.kind.startswith(f"{prefix}.") for prefix in prefixes
        )
        return None if is_allowed else "not subscribed to"

    return deny


def find_denials(facts: Iterable[Fact], guards: Sequence[Guard]) -> Mapping[int, str]:
    """Return the denial reason of each fact that some guard rejects, by seq."""
    if not guards:
        return {}
    reasons = (
        (fact.seq, next((reason for guard in guards if (reason := guard(fact))), None))
        for fact in facts
    )
    return {seq: reason for seq, reason in reasons if reason}


def resolve_thresholds(settings: Settings, embedder: Embedder | None) -> Thresholds:
    """Return topic thresholds from the settings, else the embedder, else the defaults."""
    defaults = getattr(embedder, "topics", Thresholds())
    overrides = {name.name: getattr(settings, f"topic_{name.name}") for name in fields(Thresholds)}
    return Thresholds(
        **{name: value or getattr(defaults, name) for name, value in overrides.items()}
    )


NO_EMBEDDER_WARNING = (
    "No embedder is available, so the search uses keywords only; "
    "run `told models install` to add one."
)
OTHER_EMBEDDER_WARNING = (
    "The store's embedder {} is not available here, so the search uses keywords only."
)
MAX_QUERY_TERMS = 64
_WORD_EDGES = re.compile(r"^\W+|\W+$")


def ignore_render(_account: str, _text: str) -> None:
    """Ignore the rendered context."""


@dataclass(frozen=True, slots=True)
class ReadContext:
    """The dependencies of a read; `on_render` receives the account and text of each context."""

    store: Store
    settings: Settings
    embedder: Embedder | None = None
    hot_buffers: HotBuffers = field(default_factory=HotBuffers)
    guards: tuple[Guard, ...] = ()
    reranker: Reranker | LLM | None = None
    on_render: Callable[[str, str], object] = ignore_render
    kinds: Ontology = field(default_factory=load_builtin_ontology)

    @property
    def sources(self) -> frozenset[str]:
        """Return the enabled candidate sources besides vectors and words."""
        return _split_names(self.settings.sources)


@lru_cache
def _split_names(text: str) -> frozenset[str]:
    """Return the names in a comma- or space-separated setting."""
    return frozenset(text.replace(",", " ").split())


def parse_query_words(query: str) -> tuple[QueryWord, ...]:
    """Return the words that may name a speaker.

    A capital on a common word such as "How" says nothing about a Howard.
    """
    tokens = query.replace("\u2019", "'").replace("'s", " ").split()
    stripped = dict.fromkeys(
        [word if word.isalnum() else _WORD_EDGES.sub("", word) for word in tokens]
    )
    words = [(word.casefold(), word) for word in stripped if len(word) > 1]
    return tuple(
        [QueryWord(low, word, word[0].isupper() and low not in COMMON_WORDS) for low, word in words]
    )


def build_index_query(
    ctx: ReadContext, intent: QueryIntent, fact_query: FactQuery, vector: Vector | None, depth: int
) -> IndexQuery:
    """Build the index query of a search."""
    settings, sources = ctx.settings, ctx.sources
    terms = tuple(dict.fromkeys(extract_query_terms(intent.text)))[:MAX_QUERY_TERMS]
    spans = tuple(
        (span.start, span.end)
        for span in intent.spans
        if span.start is not None and span.end is not None and "time" in sources
    )
    is_latest = fact_query.as_of.seq >= LATEST and fact_query.as_of.valid_at is None
    hot = ctx.hot_buffers.get_hot_seqs(fact_query.scope) if "hot" in sources and is_latest else ()
    model = ctx.embedder.model if ctx.embedder else None
    usual = settings.ranking.usual or getattr(ctx.embedder, "usual", 0.0)
    words = parse_query_words(intent.text)
    return IndexQuery(
        fact_query,
        terms,
        vector,
        depth,
        model,
        settings.ranking.centre,
        usual,
        words,
        spans,
        settings.ranking.beside,
        hot,
    )


def label_hot_seqs(ctx: ReadContext, index_query: IndexQuery) -> dict[int, str]:
    """Label recently recalled facts "hot" if they are near the query, else "warm"."""
    hot_seqs = [
        seq
        for seq in ctx.hot_buffers.get_hot_seqs(index_query.query.scope)
        if seq in index_query.extra_seqs
    ]
    if not hot_seqs or index_query.vector is None:
        return dict.fromkeys(hot_seqs, "hot")
    near_seqs = ctx.hot_buffers.get_hot_seqs(
        index_query.query.scope,
        quantise(index_query.vector),
        resolve_thresholds(ctx.settings, ctx.embedder).hot,
    )
    return {seq: "hot" if seq in near_seqs else "warm" for seq in hot_seqs}


def search_index(
    ctx: ReadContext, index_query: IndexQuery
) -> Flow[tuple[IndexResult, tuple[str, ...]]]:
    """Search the index; fall back to words, with a warning, if the vectors are another model's."""
    try:
        return (yield from call(ctx.store.index.search, index_query)), ()
    except ModelMismatch as mismatch:
        warning = f"The search uses keywords only: {mismatch}"
        return (yield from call(ctx.store.index.search, replace(index_query, vector=None))), (
            warning,
        )


def load_facts_by_id(
    ctx: ReadContext, fact_query: FactQuery, threads: Iterable[str]
) -> Flow[Sequence[Fact]]:
    """Load the facts of some threads that match a query; guards are not applied."""
    condition = combine_all((fact_query.filter, Comparison("id", "in", tuple(sorted(threads)))))
    return (
        yield from call(
            ctx.store.find_facts, replace(fact_query, filter=condition, limit=None, offset=0)
        )
    )


def embed_query(ctx: ReadContext, query: str) -> Flow[tuple[Vector | None, tuple[str, ...]]]:
    """Return the query's vector, or a warning that says why there is none."""
    if ctx.embedder is None:
        bound_model = yield from call(ctx.store.current_model)
        return None, (
            OTHER_EMBEDDER_WARNING.format(bound_model[0]) if bound_model else NO_EMBEDDER_WARNING,
        )
    vector = yield from catch_failure(_embed(ctx.embedder, query))
    if isinstance(vector, Failure):
        return None, (f"The embedder failed, so the search uses keywords only: {vector}",)
    return vector, ()


def _embed(embedder: Embedder, query: str) -> Flow[Vector]:
    vectors = yield from call(embedder.embed, [query], "query")
    return validate_vectors(embedder, vectors, 1)[0]


@dataclass(frozen=True, slots=True)
class ExpansionEdge:
    """An edge from a hit to a linked thread; `is_mention` if the hit only names it."""

    parent: str
    weight: float
    source: str
    is_mention: bool = False


ExpansionEdges: TypeAlias = dict[str, ExpansionEdge]


def keep_strongest_edge(
    edges: ExpansionEdges, thread: str, edge: ExpansionEdge, scores: Mapping[str, float]
) -> None:
    """Record an edge unless a stronger one leads to the same thread; ignore self-edges."""
    existing = edges.get(thread)
    if edge.parent != thread and (
        existing is None
        or edge.weight * scores[edge.parent] > existing.weight * scores[existing.parent]
    ):
        edges[thread] = edge


@dataclass(slots=True)
class LinkCache:
    """The links looked up during a read, by node."""

    links_by_node: dict[str, list[Link]] = field(default_factory=dict)

    def add_links(self, nodes: Iterable[str], links: Iterable[Link]) -> None:
        """Store the complete links of some nodes."""
        new_links: dict[str, list[Link]] = {node: [] for node in nodes}
        for link in links:
            for end in {link.src, link.dst} & new_links.keys():
                new_links[end].append(link)
        self.links_by_node |= new_links

    def get_links(self, nodes: Iterable[str]) -> list[Link]:
        """Return the links that touch any of these nodes, oldest first."""
        links_by_seq = {link.seq: link for node in nodes for link in self.links_by_node[node]}
        return [links_by_seq[seq] for seq in sorted(links_by_seq)]


def get_link_seq(fact_query: FactQuery) -> int | None:
    """Return the position to read links at, or None for the latest."""
    return None if fact_query.as_of.seq >= LATEST else fact_query.as_of.seq


def load_links(
    ctx: ReadContext, fact_query: FactQuery, nodes: Sequence[str], link_cache: LinkCache
) -> Flow[Sequence[Link]]:
    """Return the links that touch any of these nodes at the query's position."""
    if missing := [node for node in nodes if node not in link_cache.links_by_node]:
        seq = get_link_seq(fact_query)
        link_cache.add_links(
            missing, (yield from call(ctx.store.find_links, fact_query.scope.account, missing, seq))
        )
    return link_cache.get_links(nodes)
