"""Vectors for what is written: asked before the commit when the embedder is local, after it when it is not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from told.errors import ModelMismatch
from told.flow import Flow, call
from told.ids import hash_text
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import Consumer, Failure, catch_failure, drain_consumer
from told.ledger.views import format_indexed_text as spelt
from told.ledger.views import list_indexed_texts
from told.model.entry import Asserted, Draft, Entry
from told.model.fact import NODE, UNINDEXED_KINDS, Fact, join_with_previous
from told.model.query import LATEST, AsOf, Candidate, FactQuery, IndexQuery, IndexResult, Receipt
from told.model.scope import Scope
from told.ports import Embedder, Store, Vector, validate_vectors
from told.settings import Settings
from told.text.similarity import has_same_content, is_deictic
from told.text.tokens import extract_query_terms

CONSUMER = "vectors"
PAGE = 256


class VectorLookup(NamedTuple):
    """The texts a write has looked up already, with their hashes, which of these have a vector, and of which model."""

    hashes: Mapping[str, bytes]
    cached: frozenset[bytes]
    model: tuple[str, int] | None = None


NO_VECTORS: Mapping[bytes, Vector] = {}
EMPTY_LOOKUP = VectorLookup({}, frozenset())


def collect_texts(
    drafts: Sequence[Draft], preceding_texts: Mapping[str, str], hashes: Mapping[str, bytes]
) -> dict[bytes, str]:
    """What these drafts will have embedded, by hash, given the wording of the turns they were said after."""
    texts: list[str] = []
    for draft in drafts:
        if isinstance(verb := draft.verb, Asserted) and draft.scope is not None:
            for slot, text in list_indexed_texts(verb.claim):
                after = None if slot else verb.claim.after
                if after is None or after in preceding_texts:
                    texts.append(join_with_previous(preceding_texts.get(after or ""), text))
    return {hashes.get(text) or hash_text(text): text for text in texts}


def embed_before_commit(
    store: Store,
    embedder: Embedder | None,
    drafts: Sequence[Draft],
    preceding_texts: Mapping[str, str],
    lookup: VectorLookup,
    known_vectors: Mapping[bytes, Vector] = NO_VECTORS,
) -> Flow[tuple[Mapping[bytes, Vector], tuple[str, ...]]]:
    """The vectors a local embedder gives for these drafts, and a warning when it cannot."""
    if embedder is None:
        store_model = yield from call(store.current_model)
        return {}, (
            f"Not embedded: the store's embedder {store_model[0]} is not available here.",
        ) if store_model else ()
    if not embedder.local:
        return {}, ()
    texts = collect_texts(drafts, preceding_texts, lookup.hashes)
    missing = (
        {key: text for key, text in texts.items() if key not in known_vectors}
        if known_vectors
        else texts
    )
    vectors = yield from catch_failure(_embed_missing(store, embedder, missing, lookup))
    if isinstance(vectors, Failure):
        return {}, (f"Not embedded yet, found by words only: {vectors}",)
    return {
        **vectors,
        **{key: vector for key, vector in known_vectors.items() if key in texts},
    } if known_vectors else vectors, ()


def _embed_missing(
    store: Store, embedder: Embedder, texts: Mapping[bytes, str], lookup: VectorLookup
) -> Flow[Mapping[bytes, Vector]]:
    cached, unchecked = (
        lookup.cached,
        [key for key, text in texts.items() if text not in lookup.hashes],
    )
    if unchecked:
        # Vectors are shared by all accounts: any scope will do.
        existing = yield from call(store.lookup_existing, Scope(), (), (), None, unchecked)
        cached = cached | existing.vectors
    missing = {key: text for key, text in texts.items() if key not in cached} if cached else texts
    if not missing:
        return {}
    yield from _check_model(store, embedder, lookup.model)
    return (yield from embed_texts(embedder, missing))


def _check_model(
    store: Store, embedder: Embedder, known_model: tuple[str, int] | None = None
) -> Flow[None]:
    """Refuse vectors for a store that somebody has switched to another model since it was opened."""
    model = known_model or (yield from call(store.current_model))
    if model is not None and model != (embedder.model, embedder.dim):
        raise ModelMismatch(
            f"The store is indexed with {model[0]} ({model[1]} dimensions), not {embedder.model} ({embedder.dim}).",
            hint="Open it again with that embedder.",
        )


def embed_texts(embedder: Embedder, texts: Mapping[bytes, str]) -> Flow[Mapping[bytes, Vector]]:
    """The vectors of texts, if the embedder gives what it promises."""
    vectors = yield from call(embedder.embed, list(texts.values()), "passage")
    return dict(zip(texts, validate_vectors(embedder, vectors, len(texts)), strict=True))


def make_embedding_consumer(store: Store, embedder: Embedder, account: str) -> Consumer:
    """The consumer that embeds what was committed without a vector."""

    def embed_entries(entries: Sequence[Entry]) -> Flow[int]:
        seqs = [entry.seq for entry in entries]
        texts = yield from call(store.pending_texts, None, account=account, seqs=seqs)
        vectors = yield from _embed_missing(store, embedder, texts, EMPTY_LOOKUP)
        if vectors:
            yield from call(store.put_vectors, vectors, embedder.model)
        return len(vectors)

    return Consumer(f"{CONSUMER}:{embedder.model}", embed_entries)


def embed_after_commit(
    store: Store, embedder: Embedder | None, account: str, receipt: Receipt, settings: Settings
) -> Flow[Receipt]:
    """Let a remote embedder see what was just committed; if it cannot, the words are already searchable."""
    if embedder is None or embedder.local or receipt.tx is None:
        return receipt
    failure = yield from drain_consumer(
        store,
        account,
        make_embedding_consumer(store, embedder, account),
        batch=settings.consumer_batch,
        attempts=settings.consumer_attempts,
    )
    if failure is None:
        return receipt
    return replace(
        receipt, warnings=(*receipt.warnings, f"Not embedded yet, found by words only: {failure}")
    )


def embed_pending(store: Store, embedder: Embedder, model: str | None = None) -> Flow[int]:
    """Embed every passage that has no vector under a model; searches go on meanwhile."""
    count = 0
    while texts := (yield from call(store.pending_texts, PAGE, model)):
        if model is None:
            yield from _check_model(store, embedder)
        vectors = yield from embed_texts(embedder, texts)
        yield from call(store.put_vectors, vectors, embedder.model)
        count += len(texts)
    return count


def reindex(store: Store, embedder: Embedder, attempts: int) -> Flow[int]:
    """Embed everything with a model while searches go on with the old one, catch up with late writes, then switch."""
    done = 0

    def decide() -> Flow[None]:
        nonlocal done
        done += yield from embed_pending(store, embedder, embedder.model)
        yield from call(store.bind_model, embedder.model, embedder.dim, switch=True)

    yield from retry_on_conflict(attempts, decide)
    return done


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
    versions = yield from call(
        store.find_versions, scope.account, seqs=[candidate.seq for candidate in candidates]
    )
    facts = {fact.seq: fact for fact in versions}
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
