"""Vectors for what is written: asked before the commit when the embedder is local, after it when it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from told.core.entry import Asserted, Draft, Entry
from told.core.errors import ModelMismatch
from told.core.fact import join_with_previous
from told.core.ids import hash_text
from told.core.query import Receipt
from told.flow import Flow, call
from told.ledger.commit import retry_on_conflict
from told.ledger.consume import Consumer, Failure, catch_failure, drain_consumer
from told.ports import Embedder, Store, Vector, validate_vectors
from told.settings import Settings
from told.views.passages import list_indexed_texts

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
        cached = cached | (yield from call(store.embedded_hashes, unchecked))
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
        texts = yield from call(store.passage_texts, account, [entry.seq for entry in entries])
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
        yield from call(store.switch_model, embedder.model, embedder.dim)

    yield from retry_on_conflict(attempts, decide)
    return done
