"""What is held already in almost the same words: the new text supports it instead of standing beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from told.core.errors import ModelMismatch
from told.core.fact import NODE, UNINDEXED_KINDS, Fact
from told.core.ids import hash_text
from told.core.query import LATEST, AsOf, Candidate, FactQuery, IndexQuery, IndexResult
from told.core.same import has_same_content, is_deictic
from told.core.scope import Scope
from told.core.text import extract_query_terms
from told.flow import Flow, call
from told.ledger.consume import Failure, catch_failure
from told.ports import Embedder, Store, Vector
from told.settings import Settings
from told.views.passages import format_indexed_text as spelt
from told.write.embed import embed_texts

SEARCH_DEPTH = 8
"""How many of the nearest are compared; what says the same is among the very first."""

MAX_TERMS = 32
MAX_TEXT_CHARS = 2000
"""A longer text is never the same as another by chance, and its exact double is found by its hash."""

DAY_US = 86_400_000_000
EXCLUDED_KINDS = UNINDEXED_KINDS | {NODE}


@dataclass(frozen=True, slots=True)
class NewText:
    """A text that may be held already: who says it, when, and its vector as a passage under a model."""

    text: str
    role: str | None = None
    actor: str | None = None
    said_at: int | None = None
    vector: Vector | None = None
    model: str | None = None

    @property
    def passage(self) -> str:
        """What the vector is of: the text as the index sees it, after the name or the role of who says it."""
        return spelt(self.actor or self.role, self.text)


def attach_vectors(
    embedder: Embedder | None, new_texts: Sequence[NewText]
) -> Flow[Sequence[NewText]]:
    """The wordings with their vectors, asked for at once; without them where there is no embedder or it fails."""
    if embedder is None or not new_texts:
        return new_texts
    texts = {hash_text(new_text.passage): new_text.passage for new_text in new_texts}
    vectors = yield from catch_failure(embed_texts(embedder, texts))
    if isinstance(vectors, Failure):
        return new_texts
    return [
        replace(item, vector=vectors[hash_text(item.passage)], model=embedder.model)
        for item in new_texts
    ]


def find_near_duplicate(
    store: Store,
    scope: Scope,
    new_text: NewText,
    now: int,
    settings: Settings,
    *,
    kinds: Collection[str] | None = None,
) -> Flow[Fact | None]:
    """The held fact of exactly this scope that says the same, the nearest first; of these kinds only, if any are given.

    With a vector it must be as near as `near_duplicate` says; a turn that was embedded with the one before it, and one
    without a vector, is compared by its words alone.
    """
    if len(new_text.text) > MAX_TEXT_CHARS:
        return None
    index_result = yield from _search_nearest(store, _build_index_query(scope, new_text, now))
    candidates = sorted(
        _select_candidates(index_result, settings.near_duplicate),
        key=lambda candidate: -(candidate.cosine or 0.0),
    )
    facts = yield from call(
        store.facts_by_seq, scope.account, [candidate.seq for candidate in candidates]
    )
    cosines = {candidate.seq: candidate.cosine for candidate in candidates}
    for seq in dict.fromkeys(candidate.seq for candidate in candidates):
        fact = facts.get(seq)
        if (
            fact is None
            or fact.scope != scope
            or fact.kind in EXCLUDED_KINDS
            or (kinds is not None and fact.kind not in kinds)
        ):
            continue
        cosine = None if fact.after else cosines[seq]
        if (cosine is None or cosine >= settings.near_duplicate) and is_same_statement(
            new_text, fact
        ):
            return fact
    return None


def is_same_statement(new_text: NewText, fact: Fact) -> bool:
    """Whether the same one says the same; "today" said on another day is something else."""
    if (new_text.role, new_text.actor) != (fact.role, fact.actor) or not has_same_content(
        new_text.text, fact.text
    ):
        return False
    return (
        new_text.said_at == fact.said_at
        or not is_deictic(new_text.text)
        or _is_same_day(new_text.said_at, fact)
    )


def _is_same_day(said_at: int | None, fact: Fact) -> bool:
    return (
        said_at is not None
        and fact.said_at is not None
        and said_at // DAY_US == fact.said_at // DAY_US
    )


def _build_index_query(scope: Scope, new_text: NewText, now: int) -> IndexQuery:
    terms = tuple(dict.fromkeys(extract_query_terms(new_text.text)))[:MAX_TERMS]
    return IndexQuery(
        FactQuery(scope, AsOf(LATEST, now)), terms, new_text.vector, SEARCH_DEPTH, new_text.model
    )


def _search_nearest(store: Store, index_query: IndexQuery) -> Flow[IndexResult]:
    """What the index offers; by words alone where the store has moved on to another model."""
    try:
        return (yield from call(store.index.search, index_query))
    except ModelMismatch:
        words_query = IndexQuery(index_query.query, index_query.terms, None, index_query.depth)
        return (yield from call(store.index.search, words_query))


def _select_candidates(index_result: IndexResult, min_cosine: float) -> Iterator[Candidate]:
    """The passages that may be doubles: whole texts, near enough or found by their words."""
    for candidate in index_result.candidates:
        if candidate.slot == 0 and (
            candidate.words is not None
            or (candidate.cosine is not None and candidate.cosine >= min_cosine)
        ):
            yield candidate
