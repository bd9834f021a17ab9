"""When two values are one: by their wording, by a function of somebody's own, or by the vectors of an embedder."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any, Final

from told.core.alike import value_similarity
from told.core.concepts import SimilarityFunction, ValueMatcher
from told.core.errors import InvalidInput
from told.core.fork import reset_on_fork
from told.core.text import format_value
from told.flow import call, run
from told.open import open_embedder, open_store
from told.ports import DEFAULT_SPREAD, Embedder, Purpose, Vector, validate_vectors
from told.settings import load_settings

MAX_CACHED_VECTORS: Final = 4096
"""Of how many texts the vectors are kept."""
MIN_SPREADS: Final = 6.0
"""How many times the usual spread a text must be nearer to a question than texts usually are."""
SIMILARITY_HINT: Final = (
    'A function (a, b) -> float, or an embedder: "local", a name, an object with embed().'
)


class TextVectors:
    """The vectors of texts by an embedder, which is asked once for each of those used last."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._lock = reset_on_fork(threading.Lock())

    def cosine_similarity(self, text: str, other_text: str) -> float:
        """How near two texts are, from 0 to 1."""
        vectors = self._get_vectors([text, other_text])
        return _compute_cosine(vectors[text], vectors[other_text])

    def score_answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each of some texts answers a question, from 0 to 1; no more than texts usually do is not at all."""
        [query_vector] = self._embed([question], "query")
        vectors = self._get_vectors(texts)
        baseline = getattr(self.embedder, "usual", 0.0) + MIN_SPREADS * getattr(
            self.embedder, "spread", DEFAULT_SPREAD
        )
        return [
            max(0.0, _compute_cosine(query_vector, vectors[text]) - baseline)
            / max(1.0 - baseline, DEFAULT_SPREAD)
            for text in texts
        ]

    def _embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        return validate_vectors(
            self.embedder, run(call(self.embedder.embed, texts, purpose)), len(texts)
        )

    def _get_vectors(self, texts: Sequence[str]) -> Mapping[str, Vector]:
        cache = self._cache
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in cache]
            if missing:
                cache.update(zip(missing, self._embed(missing, "passage"), strict=True))
            vectors = {text: cache[text] for text in texts}
            for text in vectors:
                cache.move_to_end(text)
            while len(cache) > MAX_CACHED_VECTORS:
                cache.popitem(last=False)
        return vectors


def _compute_cosine(vector: Vector, other_vector: Vector) -> float:
    product = sum(a * b for a, b in zip(vector, other_vector, strict=True))
    size = sqrt(sum(a * a for a in vector) * sum(b * b for b in other_vector))
    return min(1.0, max(0.0, float(product) / size)) if size else 0.0


def open_vectors(choice: Any) -> TextVectors | None:
    """The vectors that a choice of likeness goes by, if it names or is an embedder."""
    if isinstance(choice, Embedder | str | Mapping):
        embedder = open_embedder(choice, open_store(load_settings(store="ram://").settings))
        return None if embedder is None else TextVectors(embedder)
    return None


def build_matcher(threshold: Any, choice: Any, vectors: TextVectors | None) -> ValueMatcher:
    """When two values are one, checked."""
    if (
        isinstance(threshold, bool)
        or not isinstance(threshold, int | float)
        or not 0.0 <= threshold <= 1.0
    ):
        raise InvalidInput(
            f"similarity_threshold must be a number from 0 to 1, not {format_value(threshold)}."
        )
    if vectors is not None:
        return ValueMatcher(vectors.cosine_similarity, float(threshold))
    if choice is not None and not callable(choice):
        raise InvalidInput(f"similarity_fn cannot be {format_value(choice)}.", hint=SIMILARITY_HINT)
    return ValueMatcher(
        value_similarity if choice is None else _check_similarity_fn(choice), float(threshold)
    )


def _check_similarity_fn(function: Callable[[str, str], float]) -> SimilarityFunction:
    def similarity(text: str, other_text: str) -> float:
        score = function(text, other_text)
        try:
            return float(score)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"similarity_fn answered {format_value(score)}.", hint="It gives a number."
            ) from None

    return similarity
