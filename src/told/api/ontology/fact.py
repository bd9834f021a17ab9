"""Facts of a MemoryStore, and matchers that decide when two values are the same."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, TypeAlias

from told.errors import ConfigError, InvalidInput
from told.flow import call, run
from told.model.concepts import SimilarityFunction, ValueMatcher
from told.model.salience import DEFAULT_PRUNE_THRESHOLD, Tier
from told.plugins import open_embedder, open_store
from told.ports import DEFAULT_SPREAD, Embedder, Purpose, Vector, validate_vectors
from told.runtime import reset_on_fork
from told.settings import load_settings
from told.text.similarity import value_similarity
from told.text.tokens import format_value

THRESHOLD_VARIABLE: Final = "PRUNE_THRESHOLD"
DECAY: dict[str, float] = {tier.value: tier.decay for tier in Tier}
"""The share of salience left after one turn by persistence class; stores read it live."""


def _read_threshold(environment: Mapping[str, str]) -> float:
    raw = environment.get(THRESHOLD_VARIABLE, "").strip()
    try:
        value = float(raw) if raw else DEFAULT_PRUNE_THRESHOLD
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise ConfigError(
            f"{THRESHOLD_VARIABLE} must be a number from 0 to 1, not {format_value(raw)}.",
            hint=f"It is {DEFAULT_PRUNE_THRESHOLD} unset.",
        )
    return value


PRUNE_THRESHOLD: float = _read_threshold(os.environ)
"""The salience below which a fact fades; the environment variable of this name sets it."""


@dataclass
class ConceptFact:
    """A remembered value of a concept, with its last quote and its current salience.

    Turns count on the store's clock; times are ISO 8601 in UTC.
    """

    id: str
    concept: str
    value: str
    evidence: str
    persistence_class: str
    salience: float
    label: str = ""
    first_turn: int = 0
    last_turn: int = 0
    reinforcements: int = 0
    first_at: str = ""
    last_at: str = ""


Fact: TypeAlias = ConceptFact
"""The public name of `ConceptFact`."""


def _refreshing(name: str) -> Any:
    """Return a read method of dict that refreshes the facts first."""
    method = getattr(dict, name)

    def wrapper(self: FactDict, *args: Any) -> Any:
        self.refresh()
        return method(self, *args)

    return wrapper


class FactDict(dict[str, Fact]):
    """The facts of a store by id: a dict that refreshes itself on every read.

    Setting an item stores the fact with its salience, deleting one forgets it. The store itself
    uses `set_fact` and `remove_fact`.
    """

    def __init__(
        self,
        refresh: Callable[[], object],
        on_set: Callable[[Fact], object],
        on_delete: Callable[[str], object],
    ) -> None:
        super().__init__()
        self.refresh, self._on_set, self._on_delete = refresh, on_set, on_delete

    def __setitem__(self, id: str, fact: Fact) -> None:
        if not isinstance(fact, Fact):
            raise InvalidInput(
                f"A store holds facts, not {format_value(fact)}.", hint="Such as Fact(**saved)."
            )
        if fact.id != id:
            raise InvalidInput(
                f"The fact {fact.id!r} is not {format_value(id)}.",
                hint="Use facts[fact.id] = fact.",
            )
        self._on_set(fact)

    def __delitem__(self, id: str) -> None:
        if id not in self:
            raise KeyError(id)
        self._on_delete(id)

    __getitem__, __contains__, __iter__, __len__ = map(
        _refreshing, ("__getitem__", "__contains__", "__iter__", "__len__")
    )
    __eq__, __repr__ = _refreshing("__eq__"), _refreshing("__repr__")
    get, keys, values, items, copy = map(_refreshing, ("get", "keys", "values", "items", "copy"))
    popitem: Any = MutableMapping.popitem
    clear: Any = MutableMapping.clear
    update: Any = MutableMapping.update
    setdefault: Any = MutableMapping.setdefault

    def pop(self, id: str, *default: Any) -> Any:
        """Remove and return a fact, or return the default."""
        fact = self.get(id)
        if fact is None and default:
            return default[0]
        del self[id]
        return fact

    def set_fact(self, fact: Fact) -> None:
        """Set a fact without notifying the store."""
        super().__setitem__(fact.id, fact)

    def remove_fact(self, id: str) -> Fact | None:
        """Remove a fact without notifying the store; return it, if any."""
        return super().pop(id, None)

    def replace_all(self, facts: Iterable[Fact]) -> None:
        """Replace all facts; an iteration in progress continues over those that stay."""
        new_facts = {fact.id: fact for fact in facts}
        for removed_id in super().keys() - new_facts.keys():
            super().pop(removed_id, None)
        super().update(new_facts)

    def peek(self, id: str) -> Fact:
        """Return a fact without refreshing."""
        return super().__getitem__(id)

    def peek_all(self) -> list[Fact]:
        """Return all facts without refreshing."""
        return list(super().values())


MAX_CACHED_VECTORS: Final = 4096
"""The number of texts whose vectors are cached."""
MIN_SPREADS: Final = 6.0
"""The number of standard deviations above the usual similarity that an answer needs."""
SIMILARITY_HINT: Final = (
    'A function (a, b) -> float, or an embedder: "local", a name, an object with embed().'
)


class TextVectors:
    """A cache of text vectors by an embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._lock = reset_on_fork(threading.Lock())

    def cosine_similarity(self, text: str, other_text: str) -> float:
        """Return the cosine similarity of two texts, from 0 to 1."""
        vectors = self._get_vectors([text, other_text])
        return _compute_cosine(vectors[text], vectors[other_text])

    def score_answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score how well texts answer a question, from 0 to 1; usual similarity counts as 0."""
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
    """Return a vector cache if the choice names or is an embedder."""
    if isinstance(choice, Embedder | str | Mapping):
        embedder = open_embedder(choice, open_store(load_settings(store="ram://").settings))
        return None if embedder is None else TextVectors(embedder)
    return None


def build_matcher(threshold: Any, choice: Any, vectors: TextVectors | None) -> ValueMatcher:
    """Check the arguments and return a matcher of values."""
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
                f"similarity_fn returned {format_value(score)}.", hint="It must return a number."
            ) from None

    return similarity
