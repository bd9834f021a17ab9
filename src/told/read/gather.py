"""Asking the index, and following what links say of the best that it found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from told.core.cues import COMMON_WORDS
from told.core.errors import ModelMismatch
from told.core.fact import Fact
from told.core.filter import Comparison, combine_all
from told.core.kind import Ontology, load_builtin_ontology
from told.core.query import LATEST, FactQuery, IndexQuery, IndexResult, QueryWord
from told.core.score import quantise
from told.core.text import extract_query_terms
from told.core.value import fast_frozen_init
from told.flow import Flow, call
from told.ledger.consume import Failure, catch_failure
from told.ports import LLM, Embedder, Reranker, Store, Vector, validate_vectors
from told.read.asked import QueryIntent
from told.read.cache import HotBuffers
from told.read.guard import Guard
from told.read.limits import resolve_thresholds
from told.settings import Settings

NO_EMBEDDER_WARNING = "No embedder is in use, so memories are found by their words only; `told models install` adds one."
OTHER_EMBEDDER_WARNING = (
    "The store's embedder {} is not available here, so memories are found by their words only."
)
MAX_QUERY_TERMS = 64
_WORD_EDGES = re.compile(r"^\W+|\W+$")


def ignore_render(_account: str, _text: str) -> None:
    """Nobody listens to what is rendered."""


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class ReadContext:
    """What a read works with; `echo` hears the account and the text of every context that is rendered."""

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
        """Where candidates may come from beside vectors and words."""
        return _split_names(self.settings.sources)


@lru_cache
def _split_names(text: str) -> frozenset[str]:
    """The names in a list that a setting is."""
    return frozenset(text.replace(",", " ").split())


def parse_query_words(query: str) -> tuple[QueryWord, ...]:
    """The words of a query that may name a speaker; the capital of "How" tells nothing of Howard."""
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
    """What to ask the index."""
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
    usual = settings.usual or getattr(ctx.embedder, "usual", 0.0)
    words = parse_query_words(intent.text)
    return IndexQuery(
        fact_query,
        terms,
        vector,
        depth,
        model,
        settings.centre,
        usual,
        words,
        spans,
        settings.beside,
        hot,
    )


def label_hot_seqs(ctx: ReadContext, index_query: IndexQuery) -> dict[int, str]:
    """What the scope recalled last, by position: hot if it is near enough to the query to answer it, else just warm."""
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
    """What the index offers; by words alone, with a warning, when its vectors are of another model."""
    try:
        return (yield from call(ctx.store.index.search, index_query)), ()
    except ModelMismatch as mismatch:
        warning = f"Memories are found by their words only: {mismatch}"
        return (yield from call(ctx.store.index.search, replace(index_query, vector=None))), (
            warning,
        )


def load_facts_by_id(
    ctx: ReadContext, fact_query: FactQuery, threads: Iterable[str]
) -> Flow[Sequence[Fact]]:
    """What a read can see of some threads, in one look; the guards are still to be asked."""
    condition = combine_all((fact_query.filter, Comparison("id", "in", tuple(sorted(threads)))))
    return (
        yield from call(
            ctx.store.find_facts, replace(fact_query, filter=condition, limit=None, offset=0)
        )
    )


def embed_query(ctx: ReadContext, query: str) -> Flow[tuple[Vector | None, tuple[str, ...]]]:
    """The query's vector, or a warning that says why there is none."""
    if ctx.embedder is None:
        bound_model = yield from call(ctx.store.current_model)
        return None, (
            OTHER_EMBEDDER_WARNING.format(bound_model[0]) if bound_model else NO_EMBEDDER_WARNING,
        )
    vector = yield from catch_failure(_embed(ctx.embedder, query))
    if isinstance(vector, Failure):
        return None, (f"The embedder failed, so memories are found by their words only: {vector}",)
    return vector, ()


def _embed(embedder: Embedder, query: str) -> Flow[Vector]:
    vectors = yield from call(embedder.embed, [query], "query")
    return validate_vectors(embedder, vectors, 1)[0]
