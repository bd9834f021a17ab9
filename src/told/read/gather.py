"""Asking the index, and following what links say of the best that it found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from told.core.cues import COMMON
from told.core.errors import ModelMismatch
from told.core.fact import Fact
from told.core.filter import Test, every
from told.core.kind import Ontology, builtin
from told.core.query import LATEST, Find, Probe, Ranked, Word
from told.core.score import quantise
from told.core.text import query_terms
from told.core.value import quick
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Embedder, Reranker, Store, Vector, sound
from told.read.asked import Asked
from told.read.cache import Overlay
from told.read.guard import Guard
from told.read.limits import thresholds
from told.settings import Settings

NO_EMBEDDER = "No embedder is in use, so memories are found by their words only; `told models install` adds one."
OTHER_EMBEDDER = "The store's embedder {} is not available here, so memories are found by their words only."
MOST_TERMS = 64
_EDGES = re.compile(r"^\W+|\W+$")


def unheard(_account: str, _text: str) -> None:
    """Nobody listens to what is rendered."""


@quick
@dataclass(frozen=True, slots=True)
class Eye:
    """What a read works with; `echo` hears the account and the text of every context that is rendered."""

    store: Store
    settings: Settings
    embedder: Embedder | None = None
    overlay: Overlay = field(default_factory=Overlay)
    guards: tuple[Guard, ...] = ()
    reranker: Reranker | LLM | None = None
    echo: Callable[[str, str], object] = unheard
    kinds: Ontology = field(default_factory=builtin)

    @property
    def sources(self) -> frozenset[str]:
        """Where candidates may come from beside vectors and words."""
        return _names(self.settings.sources)


@lru_cache
def _names(listed: str) -> frozenset[str]:
    """The names in a list that a setting is."""
    return frozenset(listed.replace(",", " ").split())


def words_of(query: str) -> tuple[Word, ...]:
    """The words of a query that may name a speaker; the capital of "How" tells nothing of Howard."""
    written = query.replace("\u2019", "'").replace("'s", " ").split()
    bare = dict.fromkeys([word if word.isalnum() else _EDGES.sub("", word) for word in written])
    words = [(word.casefold(), word) for word in bare if len(word) > 1]
    return tuple([Word(low, word, word[0].isupper() and low not in COMMON) for low, word in words])


def probe_of(eye: Eye, asked: Asked, find: Find, vector: Vector | None, depth: int) -> Probe:
    """What to ask the index."""
    settings, sources = eye.settings, eye.sources
    terms = tuple(dict.fromkeys(query_terms(asked.text)))[:MOST_TERMS]
    spans = tuple(
        (span.start, span.end)
        for span in asked.spans
        if span.start is not None and span.end is not None and "time" in sources
    )
    latest = find.as_of.seq >= LATEST and find.as_of.valid_at is None
    hot = eye.overlay.hot(find.scope) if "hot" in sources and latest else ()
    model = eye.embedder.model if eye.embedder else None
    usual = settings.usual or getattr(eye.embedder, "usual", 0.0)
    words = words_of(asked.text)
    return Probe(find, terms, vector, depth, model, settings.centre, usual, words, spans, settings.beside, hot)


def heat_of(eye: Eye, probe: Probe) -> dict[int, str]:
    """What the scope recalled last, by position: hot if it is near enough to the query to answer it, else just warm."""
    kept = [seq for seq in eye.overlay.hot(probe.find.scope) if seq in probe.also]
    if not kept or probe.vector is None:
        return dict.fromkeys(kept, "hot")
    near = eye.overlay.hot(probe.find.scope, quantise(probe.vector), thresholds(eye.settings, eye.embedder).hot)
    return {seq: "hot" if seq in near else "warm" for seq in kept}


def ask(eye: Eye, probe: Probe) -> Flow[tuple[Ranked, tuple[str, ...]]]:
    """What the index offers; by words alone, with a warning, when its vectors are of another model."""
    try:
        return (yield from call(eye.store.index.search, probe)), ()
    except ModelMismatch as mismatch:
        warning = f"Memories are found by their words only: {mismatch}"
        return (yield from call(eye.store.index.search, replace(probe, vector=None))), (warning,)


def by_id(eye: Eye, find: Find, threads: Iterable[str]) -> Flow[Sequence[Fact]]:
    """What a read can see of some threads, in one look; the guards are still to be asked."""
    wanted = every((find.filter, Test("id", "in", tuple(sorted(threads)))))
    return (yield from call(eye.store.facts, replace(find, filter=wanted, limit=None, offset=0)))


def vector_of(eye: Eye, query: str) -> Flow[tuple[Vector | None, tuple[str, ...]]]:
    """The query's vector, or a warning that says why there is none."""
    if eye.embedder is None:
        bound = yield from call(eye.store.model)
        return None, (OTHER_EMBEDDER.format(bound[0]) if bound else NO_EMBEDDER,)
    vector = yield from attempt(_embedded(eye.embedder, query))
    if isinstance(vector, Failure):
        return None, (f"The embedder failed, so memories are found by their words only: {vector}",)
    return vector, ()


def _embedded(embedder: Embedder, query: str) -> Flow[Vector]:
    vectors = yield from call(embedder.embed, [query], "query")
    return sound(embedder, vectors, 1)[0]
