"""Vectors for what is written: asked before the commit when the embedder is local, after it when it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from told.core.entry import Asserted, Draft, Entry
from told.core.errors import ModelMismatch
from told.core.fact import together
from told.core.ids import text_hash
from told.core.query import Receipt
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.consume import Consumer, Failure, attempt, drain
from told.ports import Embedder, Store, Vector, sound
from told.settings import Settings
from told.views.passages import indexed

CONSUMER = "vectors"
PAGE = 256


class Looked(NamedTuple):
    """The texts a write has looked up already, with their hashes, which of these have a vector, and of which model."""

    asked: Mapping[str, bytes]
    found: frozenset[bytes]
    model: tuple[str, int] | None = None


NO_VECTORS: Mapping[bytes, Vector] = {}
UNSEEN = Looked({}, frozenset())


def texts_of(drafts: Sequence[Draft], turns: Mapping[str, str], hashes: Mapping[str, bytes]) -> dict[bytes, str]:
    """What these drafts will have embedded, by hash, given the wording of the turns they were said after."""
    texts: list[str] = []
    for draft in drafts:
        if isinstance(said := draft.verb, Asserted) and draft.scope is not None:
            for slot, text in indexed(said.claim):
                after = None if slot else said.claim.after
                if after is None or after in turns:
                    texts.append(together(turns.get(after or ""), text))
    return {hashes.get(text) or text_hash(text): text for text in texts}


def before_commit(
    store: Store, embedder: Embedder | None, drafts: Sequence[Draft], turns: Mapping[str, str], looked: Looked,
    given: Mapping[bytes, Vector] = NO_VECTORS,
) -> Flow[tuple[Mapping[bytes, Vector], tuple[str, ...]]]:
    """The vectors a local embedder gives for these drafts, and a warning when it cannot."""
    if embedder is None:
        bound = yield from call(store.model)
        return {}, (f"Not embedded: the store's embedder {bound[0]} is not available here.",) if bound else ()
    if not embedder.local:
        return {}, ()
    texts = texts_of(drafts, turns, looked.asked)
    unseen = {key: text for key, text in texts.items() if key not in given} if given else texts
    vectors = yield from attempt(_vectors(store, embedder, unseen, looked))
    if isinstance(vectors, Failure):
        return {}, (f"Not embedded yet, found by words only: {vectors}",)
    return {**vectors, **{key: vector for key, vector in given.items() if key in texts}} if given else vectors, ()


def _vectors(
    store: Store, embedder: Embedder, texts: Mapping[bytes, str], looked: Looked
) -> Flow[Mapping[bytes, Vector]]:
    found, rest = looked.found, [key for key, text in texts.items() if text not in looked.asked]
    if rest:
        found = found | (yield from call(store.cached, rest))
    wanted = {key: text for key, text in texts.items() if key not in found} if found else texts
    if not wanted:
        return {}
    yield from _bound(store, embedder, looked.model)
    return (yield from embedded(embedder, wanted))


def _bound(store: Store, embedder: Embedder, seen: tuple[str, int] | None = None) -> Flow[None]:
    """Refuse vectors for a store that somebody has switched to another model since it was opened."""
    model = seen or (yield from call(store.model))
    if model is not None and model != (embedder.model, embedder.dim):
        raise ModelMismatch(
            f"The store is indexed with {model[0]} ({model[1]} dimensions), not {embedder.model} ({embedder.dim}).",
            hint="Open it again with that embedder.",
        )


def embedded(embedder: Embedder, texts: Mapping[bytes, str]) -> Flow[Mapping[bytes, Vector]]:
    """The vectors of texts, if the embedder gives what it promises."""
    vectors = yield from call(embedder.embed, list(texts.values()), "passage")
    return dict(zip(texts, sound(embedder, vectors, len(texts)), strict=True))


def consumer(store: Store, embedder: Embedder, account: str) -> Consumer:
    """The consumer that embeds what was committed without a vector."""

    def effect(entries: Sequence[Entry]) -> Flow[int]:
        texts = yield from call(store.texts, account, [entry.seq for entry in entries])
        vectors = yield from _vectors(store, embedder, texts, UNSEEN)
        if vectors:
            yield from call(store.put_vectors, vectors, embedder.model)
        return len(vectors)

    return Consumer(f"{CONSUMER}:{embedder.model}", effect)


def catch_up(
    store: Store, embedder: Embedder | None, account: str, receipt: Receipt, settings: Settings
) -> Flow[Receipt]:
    """Let a remote embedder see what was just committed; if it cannot, the words are already searchable."""
    if embedder is None or embedder.local or receipt.tx is None:
        return receipt
    failure = yield from drain(
        store, account, consumer(store, embedder, account),
        batch=settings.consumer_batch, attempts=settings.consumer_attempts,
    )  # fmt: skip
    if failure is None:
        return receipt
    return replace(receipt, warnings=(*receipt.warnings, f"Not embedded yet, found by words only: {failure}"))


def fill(store: Store, embedder: Embedder, model: str | None = None) -> Flow[int]:
    """Embed every passage that has no vector under a model; searches go on meanwhile."""
    done = 0
    while texts := (yield from call(store.pending, PAGE, model)):
        if model is None:
            yield from _bound(store, embedder)
        vectors = yield from embedded(embedder, texts)
        yield from call(store.put_vectors, vectors, embedder.model)
        done += len(texts)
    return done


def reindex(store: Store, embedder: Embedder, attempts: int) -> Flow[int]:
    """Embed everything with a model while searches go on with the old one, catch up with late writes, then switch."""
    done = 0

    def decide() -> Flow[None]:
        nonlocal done
        done += yield from fill(store, embedder, embedder.model)
        yield from call(store.switch_model, embedder.model, embedder.dim)

    yield from decided(attempts, decide)
    return done
