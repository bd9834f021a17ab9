"""Embedders with a memory: what one was asked once is not computed again, whichever variant asks."""

from __future__ import annotations

from array import array
from collections.abc import MutableMapping, Sequence
from hashlib import sha256
from time import perf_counter

from told.core.topics import Thresholds
from told.faces.sdk import Memory
from told.flow import call, run
from told.ports import DEFAULT_SPREAD, Embedder, Purpose, Vector

EMBED_BATCH_SIZE = 256

VectorMap = MutableMapping[bytes, bytes]


class CachingEmbedder:
    """An embedder that keeps its vectors; `seconds` is the time spent in here, by whoever asked."""

    def __init__(self, inner: Embedder, cache: VectorMap) -> None:
        self.inner = inner
        self.cache = cache
        self.model = inner.model
        self.dim = inner.dim
        self.local = inner.local
        self.usual, self.spread = (
            getattr(inner, "usual", 0.0),
            getattr(inner, "spread", DEFAULT_SPREAD),
        )
        self.topics = getattr(inner, "topics", Thresholds())
        self.seconds = 0.0

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """One vector for each text, computed or remembered."""
        started = perf_counter()
        keys = [self._cache_key(text, purpose) for text in texts]
        missing = list(
            {
                key: text for key, text in zip(keys, texts, strict=True) if key not in self.cache
            }.items()
        )
        for start in range(0, len(missing), EMBED_BATCH_SIZE):
            self._compute_vectors(missing[start : start + EMBED_BATCH_SIZE], purpose)
        vectors = [array("f", self.cache[key]) for key in keys]
        self.seconds += perf_counter() - started
        return vectors

    def _compute_vectors(self, rows: Sequence[tuple[bytes, str]], purpose: Purpose) -> None:
        vectors = run(call(self.inner.embed, [text for _, text in rows], purpose))
        self.cache.update(
            {
                key: array("f", vector).tobytes()
                for (key, _), vector in zip(rows, vectors, strict=True)
            }
        )

    def _cache_key(self, text: str, purpose: Purpose) -> bytes:
        return sha256(f"{self.model}\0{purpose}\0{text}".encode()).digest()[:16]


class EmbedderPool:
    """The embedders of a run by the names they are chosen by, each opened once, all sharing what they computed."""

    def __init__(self, default: str, cache: VectorMap | None = None) -> None:
        self.default = default
        self.cache: VectorMap = {} if cache is None else cache
        self._opened: dict[str, CachingEmbedder | None] = {}

    def get(self, choice: str | None = None) -> CachingEmbedder | None:
        """The embedder a choice names, or the default; None where there is to be none, or none is installed."""
        name = choice or self.default
        if name not in self._opened:
            with Memory("ram://", embedder=name) as memory:
                inner = memory.embedder
            self._opened[name] = None if inner is None else CachingEmbedder(inner, self.cache)
        return self._opened[name]

    @property
    def seconds(self) -> float:
        """The time spent in all of them."""
        return sum(embedder.seconds for embedder in self._opened.values() if embedder is not None)
