"""What every embedder behind a wire shares: batches, unit vectors, and a dimension that is learnt when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, sqrt
from typing import Any

from told.backends.http import prices
from told.backends.http.home import get_loop_thread
from told.backends.http.provider import HttpProvider, ModelOptions, SendRequest
from told.core.errors import EmbeddingError
from told.ports import Purpose, Usage, Vector

MODEL_DIMENSIONS: Mapping[str, int] = {
    "text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072, "nomic-embed-text": 768, "mxbai-embed-large": 1024, "all-minilm": 384,
}  # fmt: skip
"""Dimensions that need not be asked for."""

BATCH_SIZE = 96
MAX_TEXT_CHARS = 16_000
"""Characters of a text that are embedded: about what a model of eight thousand tokens can read."""


class HttpEmbedder:
    """An embedder behind one of the wires; each adapter says how its provider is spoken to."""

    def __init__(self, provider: HttpProvider, options: ModelOptions, send: SendRequest) -> None:
        self.model = f"{provider.name}:{options.model}"
        self.local = options.local
        self.usage = Usage()
        self._title, self._options, self._send = provider.title, options, send
        self._dim = options.dimensions or MODEL_DIMENSIONS.get(options.model.partition(":")[0])

    def __repr__(self) -> str:
        return f"<{self.model}>"

    @property
    def dim(self) -> int:
        """The length of its vectors; where nobody said, one word is embedded to see."""
        if self._dim is None:
            get_loop_thread().run_blocking(self.embed(["told"]))
        assert self._dim is not None
        return self._dim

    def expect(self, dim: int) -> None:
        """Take somebody's word for its dimension, so that a store opens while its embedder is away."""
        self._dim = self._dim or dim

    async def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """One unit vector for each text, in order."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = [
                text[:MAX_TEXT_CHARS] if text.strip() else "."
                for text in texts[start : start + BATCH_SIZE]
            ]
            vectors += [
                self._normalise(vector)
                for vector in self._check_count(await self._embed_batch(batch, purpose), len(batch))
            ]
        return vectors

    async def _embed_batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:
        raise NotImplementedError

    def _check_count(self, vectors: list[Any], count: int) -> list[Any]:
        if len(vectors) != count:
            raise EmbeddingError(
                f"{self._title} answered with {len(vectors)} vectors for {count} texts."
            )
        return vectors

    def _normalise(self, vector: Any) -> Vector:
        if (
            not isinstance(vector, list)
            or not vector
            or not all(isinstance(value, int | float) for value in vector)
        ):
            raise EmbeddingError(f"{self._title} answered with something that is no vector.")
        length = sqrt(sum(value * value for value in vector))
        if not isfinite(length) or not length:
            raise EmbeddingError(f"{self._title} answered with a vector that points nowhere.")
        self._dim = self._dim or len(vector)
        if len(vector) != self._dim:
            message = (
                f"{self.model} answered with {len(vector)} numbers, and {self._dim} were expected."
            )
            raise EmbeddingError(message, hint="Give the dimensions that it has.")
        return [value / length for value in vector]

    def _record_usage(self, input_tokens: object) -> None:
        self.usage += prices.price_usage(self._options.model, input_tokens, 0)
