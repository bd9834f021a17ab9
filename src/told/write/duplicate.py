"""What is held already in almost the same words: the new text supports it instead of standing beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from told.core.errors import ModelMismatch
from told.core.fact import NODE, SILENT, Fact
from told.core.ids import text_hash
from told.core.query import LATEST, AsOf, Find, Mark, Probe, Ranked
from told.core.same import is_deictic, same_content
from told.core.scope import Scope
from told.core.text import query_terms
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import Embedder, Store, Vector
from told.settings import Settings
from told.views.passages import wording as spelt
from told.write.embed import embedded

NEAREST = 8
"""How many of the nearest are compared; what says the same is among the very first."""

MOST_TERMS = 32
LONGEST = 2000
"""A longer text is never the same as another by chance, and its exact double is found by its hash."""

DAY = 86_400_000_000
APART = SILENT | {NODE}


@dataclass(frozen=True, slots=True)
class Wording:
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


def with_vectors(embedder: Embedder | None, wordings: Sequence[Wording]) -> Flow[Sequence[Wording]]:
    """The wordings with their vectors, asked for at once; without them where there is no embedder or it fails."""
    if embedder is None or not wordings:
        return wordings
    texts = {text_hash(wording.passage): wording.passage for wording in wordings}
    vectors = yield from attempt(embedded(embedder, texts))
    if isinstance(vectors, Failure):
        return wordings
    return [replace(one, vector=vectors[text_hash(one.passage)], model=embedder.model) for one in wordings]


def near_duplicate(
    store: Store, scope: Scope, wording: Wording, now: int, settings: Settings, *, kinds: Collection[str] | None = None
) -> Flow[Fact | None]:
    """The held fact of exactly this scope that says the same, the nearest first; of these kinds only, if any are given.

    With a vector it must be as near as `near_duplicate` says; a turn that was embedded with the one before it, and one
    without a vector, is compared by its words alone.
    """
    if len(wording.text) > LONGEST:
        return None
    ranked = yield from _nearest(store, _probe(scope, wording, now))
    marks = sorted(_candidates(ranked, settings.near_duplicate), key=lambda mark: -(mark.cosine or 0.0))
    facts = yield from call(store.versions, scope.account, [mark.seq for mark in marks])
    cosines = {mark.seq: mark.cosine for mark in marks}
    for seq in dict.fromkeys(mark.seq for mark in marks):
        fact = facts.get(seq)
        if fact is None or fact.scope != scope or fact.kind in APART or (kinds is not None and fact.kind not in kinds):
            continue
        cosine = None if fact.after else cosines[seq]
        if (cosine is None or cosine >= settings.near_duplicate) and says_the_same(wording, fact):
            return fact
    return None


def says_the_same(wording: Wording, fact: Fact) -> bool:
    """Whether the same one says the same; "today" said on another day is something else."""
    if (wording.role, wording.actor) != (fact.role, fact.actor) or not same_content(wording.text, fact.text):
        return False
    return wording.said_at == fact.said_at or not is_deictic(wording.text) or _same_day(wording.said_at, fact)


def _same_day(said_at: int | None, fact: Fact) -> bool:
    return said_at is not None and fact.said_at is not None and said_at // DAY == fact.said_at // DAY


def _probe(scope: Scope, wording: Wording, now: int) -> Probe:
    terms = tuple(dict.fromkeys(query_terms(wording.text)))[:MOST_TERMS]
    return Probe(Find(scope, AsOf(LATEST, now)), terms, wording.vector, NEAREST, wording.model)


def _nearest(store: Store, probe: Probe) -> Flow[Ranked]:
    """What the index offers; by words alone where the store has moved on to another model."""
    try:
        return (yield from call(store.index.search, probe))
    except ModelMismatch:
        by_words = Probe(probe.find, probe.terms, None, probe.depth)
        return (yield from call(store.index.search, by_words))


def _candidates(ranked: Ranked, near: float) -> Iterator[Mark]:
    """The passages that may be doubles: whole texts, near enough or found by their words."""
    for mark in ranked.marks:
        if mark.slot == 0 and (mark.words is not None or (mark.cosine is not None and mark.cosine >= near)):
            yield mark
