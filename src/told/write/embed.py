"""Vectors for what is written: asked before the commit when the embedder is local, after it when it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from told.core.entry import Asserted, Draft, Entry
from told.core.ids import text_hash
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.consume import Consumer, Failure, attempt
from told.ports import Embedder, Store, Vector, sound
from told.views.passages import wording

CONSUMER = "vectors"
PAGE = 256


def texts_of(drafts: Sequence[Draft]) -> dict[bytes, str]:
    """What these drafts will have indexed, by hash."""
    wordings = (wording(draft.verb.claim) for draft in drafts if isinstance(draft.verb, Asserted))
    return {text_hash(text): text for text in wordings}


def before_commit(
    store: Store, embedder: Embedder | None, texts: Mapping[bytes, str]
) -> Flow[tuple[Mapping[bytes, Vector], tuple[str, ...]]]:
    """The vectors a local embedder gives for these texts, and a warning when it cannot."""
    if embedder is None:
        bound = yield from call(store.model)
        return {}, (f"Not embedded: the store's embedder {bound[0]} is not available here.",) if bound else ()
    if not embedder.local or not texts:
        return {}, ()
    vectors = yield from attempt(embedded(embedder, texts))
    if isinstance(vectors, Failure):
        return {}, (f"Not embedded yet, found by words only: {vectors}",)
    return vectors, ()


def missing(store: Store, texts: Mapping[bytes, str]) -> Flow[dict[bytes, str]]:
    """Those of some texts that have no vector."""
    known = yield from call(store.cached, list(texts))
    return {key: text for key, text in texts.items() if key not in known}


def embedded(embedder: Embedder, texts: Mapping[bytes, str]) -> Flow[Mapping[bytes, Vector]]:
    """The vectors of texts, if the embedder gives what it promises."""
    vectors = yield from call(embedder.embed, list(texts.values()), "passage")
    return dict(zip(texts, sound(embedder, vectors, len(texts)), strict=True))


def consumer(store: Store, embedder: Embedder) -> Consumer:
    """The consumer that embeds what was committed without a vector."""

    def effect(entries: Sequence[Entry]) -> Flow[int]:
        drafts = [entry.draft for entry in entries if entry.draft is not None]
        texts = yield from missing(store, texts_of(drafts))
        if texts:
            yield from call(store.put_vectors, (yield from embedded(embedder, texts)))
        return len(texts)

    return Consumer(f"{CONSUMER}:{embedder.model}", effect)


def fill(store: Store, embedder: Embedder, model: str | None = None) -> Flow[int]:
    """Embed every passage that has no vector under a model; searches go on meanwhile."""
    done = 0
    while texts := (yield from call(store.pending, PAGE, model)):
        vectors = yield from embedded(embedder, texts)
        yield from call(store.put_vectors, vectors, model)
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
