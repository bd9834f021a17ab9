"""Embed new text, reindex a store, and find near-duplicates by vector.

A local embedder runs before the commit, a remote one after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from told.errors import EmbeddingError, ModelMismatch, ToldError
from told.flow import Flow, call
from told.ids import hash_text
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import Consumer, Failure, Job, JobBatch, catch_failure, drain
from told.ledger.views import format_indexed_text, list_indexed_texts
from told.model.entry import Asserted, Draft, Entry
from told.model.fact import NODE, UNINDEXED_KINDS, Fact, join_with_previous
from told.model.query import LATEST, AsOf, Candidate, FactQuery, IndexQuery, IndexResult, Receipt
from told.model.scope import Scope
from told.ports import CursorStep, Embedder, Store, Vector, validate_vectors
from told.settings import Settings
from told.text.similarity import has_same_content, is_deictic
from told.text.tokens import extract_query_terms

T = TypeVar("T")
CONSUMER = "vectors"
PAGE = 256


class VectorLookup(NamedTuple):
    """Hashes of texts that were looked up, those of them with a vector, and the store's model."""

    hashes: Mapping[str, bytes]
    cached: frozenset[bytes]
    model: tuple[str, int] | None = None


NO_VECTORS: Mapping[bytes, Vector] = {}
EMPTY_LOOKUP = VectorLookup({}, frozenset())


def collect_texts(
    drafts: Sequence[Draft], preceding_texts: Mapping[str, str], hashes: Mapping[str, bytes]
) -> dict[bytes, str]:
    """Return the texts to embed for some drafts, by hash; a reply includes the turn before it."""
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
    """Embed drafts with a local embedder; return the vectors and warnings."""
    if embedder is None:
        store_model = yield from call(store.current_model)
        if store_model is None:
            return {}, ()
        return {}, (f"Not embedded: the store's embedder {store_model[0]} is not available here.",)
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
        return {}, (f"Not embedded yet, found by keywords only: {vectors}",)
    if known_vectors:
        reused = {key: vector for key, vector in known_vectors.items() if key in texts}
        vectors = {**vectors, **reused}
    return vectors, ()


def _embed_missing(
    store: Store, embedder: Embedder, texts: Mapping[bytes, str], lookup: VectorLookup
) -> Flow[Mapping[bytes, Vector]]:
    cached = lookup.cached
    unchecked = [key for key, text in texts.items() if text not in lookup.hashes]
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
    """Raise `ModelMismatch` if the store was switched to another model since it was opened."""
    model = known_model or (yield from call(store.current_model))
    if model is not None and model != (embedder.model, embedder.dim):
        raise ModelMismatch(
            f"The store is indexed with {model[0]} ({model[1]} dimensions), "
            f"not {embedder.model} ({embedder.dim}).",
            hint="Open it again with that embedder.",
        )


def embed_texts(embedder: Embedder, texts: Mapping[bytes, str]) -> Flow[Mapping[bytes, Vector]]:
    """Embed texts and validate the vectors."""
    vectors = yield from call(embedder.embed, list(texts.values()), "passage")
    return dict(zip(texts, validate_vectors(embedder, vectors, len(texts)), strict=True))


def make_embedding_consumer(
    store: Store, embedder: Embedder, account: str, settings: Settings
) -> Consumer[Sequence[Entry], int]:
    """Build the consumer that embeds entries committed without a vector.

    Its effect is idempotent, so the cursor follows after the vectors are stored.
    """
    name = f"{CONSUMER}:{embedder.model}"

    def load_batch() -> Flow[JobBatch[Sequence[Entry]] | None]:
        after = yield from call(store.get_cursor, account, name)
        entries = yield from call(
            store.scan_entries, account, after, settings.maintenance.consumer_batch
        )
        return JobBatch([Job(entries)], {name: entries[-1].seq}) if entries else None

    def embed_entries(entries: Sequence[Entry], _: CursorStep | None) -> Flow[int]:
        seqs = [entry.seq for entry in entries]
        texts = yield from call(store.pending_texts, None, account=account, seqs=seqs)
        vectors = yield from _embed_missing(store, embedder, texts, EMPTY_LOOKUP)
        if vectors:
            yield from call(store.put_vectors, vectors, embedder.model)
        return len(vectors)

    def is_in_ledger(entries: Sequence[Entry]) -> Flow[bool]:
        last = entries[-1]
        stored = yield from call(store.scan_entries, account, last.seq - 1, 1)
        return any(entry.hash == last.hash for entry in stored)

    return Consumer(
        name=name,
        load_batch=load_batch,
        process=embed_entries,
        is_intact=is_in_ledger,
        split=lambda entries: [Job([entry], seqs=(entry.seq,)) for entry in entries],
        attempts=settings.maintenance.consumer_attempts,
    )


def embed_after_commit(
    store: Store, embedder: Embedder | None, account: str, receipt: Receipt, settings: Settings
) -> Flow[Receipt]:
    """Embed a committed write with a remote embedder; a failure is a warning in the receipt."""
    if embedder is None or embedder.local or receipt.tx is None:
        return receipt
    embedding_consumer = make_embedding_consumer(store, embedder, account, settings)
    run = yield from drain(store, account, embedding_consumer)
    if run.failure is None:
        return receipt
    warning = f"Not embedded yet, found by keywords only: {run.failure}"
    return replace(receipt, warnings=(*receipt.warnings, warning))


def embed_pending(store: Store, embedder: Embedder, model: str | None = None) -> Flow[int]:
    """Embed every passage that has no vector for a model and return the count."""
    count = 0
    while texts := (yield from call(store.pending_texts, PAGE, model)):
        if model is None:
            yield from _check_model(store, embedder)
        vectors = yield from embed_texts(embedder, texts)
        yield from call(store.put_vectors, vectors, embedder.model)
        count += len(texts)
    return count


def reindex(store: Store, embedder: Embedder, attempts: int) -> Flow[int]:
    """Embed everything with a new model, then switch; searches use the old one until then."""
    done = 0

    def decide() -> Flow[None]:
        nonlocal done
        done += yield from embed_pending(store, embedder, embedder.model)
        yield from call(store.bind_model, embedder.model, embedder.dim, switch=True)

    yield from retry_on_conflict(attempts, decide)
    return done


SEARCH_DEPTH = 8
"""The number of nearest candidates to compare."""

MAX_TERMS = 32
MAX_TEXT_CHARS = 2000
"""Longer texts are only compared by hash."""

DAY_US = 86_400_000_000
EXCLUDED_KINDS = UNINDEXED_KINDS | {NODE}


@dataclass(frozen=True, slots=True)
class NewText:
    """A text to check for duplicates: its speaker, time, and passage vector for a model."""

    text: str
    role: str | None = None
    actor: str | None = None
    said_at: int | None = None
    vector: Vector | None = None
    model: str | None = None

    @property
    def passage(self) -> str:
        """Return the text as it is indexed, prefixed with the speaker."""
        return format_indexed_text(self.actor or self.role, self.text)


def attach_vectors(
    embedder: Embedder | None, new_texts: Sequence[NewText]
) -> Flow[Sequence[NewText]]:
    """Return the texts with vectors, or without if there is no embedder or it fails."""
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
    """Return the nearest current fact of exactly this scope that says the same, if any.

    A fact without a vector, or embedded together with the turn before it, is compared by words
    only.
    """
    if len(new_text.text) > MAX_TEXT_CHARS:
        return None
    index_result = yield from _search_nearest(store, _build_index_query(scope, new_text, now))
    candidates = sorted(
        _select_candidates(index_result, settings.ingestion.near_duplicate),
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
        if (cosine is None or cosine >= settings.ingestion.near_duplicate) and is_same_statement(
            new_text, fact
        ):
            return fact
    return None


def is_same_statement(new_text: NewText, fact: Fact) -> bool:
    """Return whether the same speaker says the same; "today" differs from day to day."""
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
    """Search the index, by words only if the store has switched to another model."""
    try:
        return (yield from call(store.index.search, index_query))
    except ModelMismatch:
        words_query = IndexQuery(index_query.query, index_query.terms, None, index_query.depth)
        return (yield from call(store.index.search, words_query))


def _select_candidates(index_result: IndexResult, min_cosine: float) -> Iterator[Candidate]:
    """Yield the whole-text candidates that are near enough or matched by words."""
    for candidate in index_result.candidates:
        if candidate.slot == 0 and (
            candidate.words is not None
            or (candidate.cosine is not None and candidate.cosine >= min_cosine)
        ):
            yield candidate


def embed_missing(store: Store, embedder: Embedder | None) -> Flow[tuple[str, ...]]:
    """Embed passages that have no vector; return a warning if the embedder fails."""
    if embedder is None:
        return ()
    outcome = yield from catch_failure(embed_pending(store, embedder))
    if isinstance(outcome, Failure):
        return (f"Not embedded yet, found by keywords only: {outcome}",)
    return ()


def unwrap_embedding(model: str, outcome: T | Failure) -> T:
    """Return what an embedder returned, or raise an error that names the embedder."""
    if not isinstance(outcome, Failure):
        return outcome
    if isinstance(outcome.error, ToldError):
        raise outcome.error
    hint = "An embedder turns a list of texts into a list of vectors."
    raise EmbeddingError(f"The embedder {model} failed: {outcome}.", hint=hint) from outcome.error
