"""Search, list and assemble, each step timed and each candidate accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter_ns

from told.core.errors import InvalidInput, ModelMismatch
from told.core.fact import Fact
from told.core.query import MAX_LIMIT, Bundle, Candidate, Find, Hit, Probe, Step, Trace
from told.core.text import clean, query_terms
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import Embedder, Store, Vector, sound
from told.read.assemble import Item, assemble
from told.read.fuse import rrf
from told.settings import Settings

NO_EMBEDDER = "No embedder is in use, so memories are found by their words only; `told models install` adds one."

OTHER_EMBEDDER = "The store's embedder {} is not available here, so memories are found by their words only."


@dataclass(frozen=True, slots=True)
class Eye:
    """What a read works with."""

    store: Store
    settings: Settings
    embedder: Embedder | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The hits of a search, what became of the other candidates, and what was not as it should be."""

    hits: tuple[Hit, ...]
    trace: Trace
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Clock:
    """Steps of a trace as they happen."""

    steps: list[Step] = field(default_factory=list)
    last: int = field(default_factory=perf_counter_ns)

    def mark(self, stage: str, kept: int, dropped: int = 0, note: str = "") -> None:
        """A stage ended just now."""
        now = perf_counter_ns()
        self.steps.append(Step(stage, kept, dropped, (now - self.last) / 1000, note))
        self.last = now


def search(eye: Eye, query: str, find: Find, *, limit: int, threshold: float = 0.0) -> Flow[Seen]:
    """The facts that answer a query best, with the reason for each."""
    clock = Clock()
    words = tuple(dict.fromkeys(query_terms(_query(query, eye.settings))))
    vector, warnings = yield from _vector(eye, query)
    clock.mark("plan", len(words), note=f"{len(words)} terms, {'a' if vector is not None else 'no'} vector")
    model = eye.embedder.model if eye.embedder else None
    depth = eye.settings.depth if limit <= eye.settings.depth else MAX_LIMIT
    probe = Probe(find, words, vector, depth, model)
    try:
        ranked = yield from call(eye.store.index.search, probe)
    except ModelMismatch as mismatch:
        warnings = (*warnings, f"Memories are found by their words only: {mismatch}")
        ranked = yield from call(eye.store.index.search, replace(probe, vector=None))
    near, by_words = len(ranked.near), len(ranked.words)
    clock.mark("gather", near + by_words, note=f"{near} by vector, {by_words} by words")
    fused, offered = rrf(ranked, k=eye.settings.rrf_k, depth=eye.settings.depth, limit=limit)
    clock.mark("fuse", len(fused), offered - len(fused))
    chosen = [item for item in fused if item.score >= threshold]
    clock.mark("rank", len(chosen), len(fused) - len(chosen))
    facts = yield from call(eye.store.versions, find.scope.account, [item.seq for item in chosen])
    hits = tuple(Hit(facts[item.seq], item.score, item.parts) for item in chosen if item.seq in facts)
    clock.mark("fetch", len(hits))
    trace = Trace(query, find.as_of, tuple(clock.steps))
    return Seen(hits, trace, warnings)


def explain(eye: Eye, query: str, find: Find, *, limit: int, threshold: float = 0.0) -> Flow[Seen]:
    """A search that also accounts for every candidate it dropped."""
    everything = yield from search(eye, query, find, limit=max(limit, eye.settings.depth * 2))
    kept: list[Hit] = []
    candidates: list[Candidate] = []
    for hit in everything.hits:
        reason = "below the threshold" if hit.score < threshold else "after the limit" if len(kept) >= limit else ""
        if not reason:
            kept.append(hit)
        candidates.append(replace(_kept(hit), kept=not reason, reason=reason, stage="rank"))
    trace = replace(everything.trace, candidates=tuple(candidates))
    return Seen(tuple(kept), trace, everything.warnings)


def listing(eye: Eye, find: Find) -> Flow[Sequence[Fact]]:
    """The facts a scope holds at a point in time, newest first."""
    return (yield from call(eye.store.facts, find))


def context(eye: Eye, query: str | None, find: Find, *, limit: int, budget: int) -> Flow[Bundle]:
    """A block of text for a prompt: what answers the query, or without one what was learned last."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise InvalidInput(f"budget must be a positive number of tokens, not {budget!r}.")
    seen = yield from search(eye, query, find, limit=limit) if query is not None else _newest(eye, find, limit)
    items = [Item(hit, (hit.fact.text,)) for hit in seen.hits]
    block = assemble(items, budget, eye.settings.encoding, zone=eye.settings.zone or None)
    inside = {*block.levels}
    candidates = tuple(
        replace(_kept(hit), stage="assemble", kept=hit.fact.seq in inside,
                reason="" if hit.fact.seq in inside else "does not fit the budget")
        for hit in seen.hits
    )  # fmt: skip
    hits = tuple(item.hit for item in block.items)
    step = Step("assemble", len(hits), len(seen.hits) - len(hits), note=f"{block.tokens} of {budget} tokens")
    trace = replace(seen.trace, steps=(*seen.trace.steps, step), candidates=candidates)
    tight = (f"No memory fits a budget of {budget} tokens.",) if seen.hits and not hits else ()
    return Bundle(block.text, block.tokens, budget, hits, trace, (*seen.warnings, *tight))


def _newest(eye: Eye, find: Find, limit: int) -> Flow[Seen]:
    facts = yield from call(eye.store.facts, replace(find, limit=None))
    hits = tuple(Hit(fact, 1.0) for fact in reversed(facts[-limit:]))
    return Seen(hits, Trace("", find.as_of, (Step("newest", len(hits), len(facts) - len(hits)),)))


def _query(query: str, settings: Settings) -> str:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("The query is empty.", hint="Ask for something, or use get_all() to list everything.")
    return clean(query, limit=settings.text_limit)


def _vector(eye: Eye, query: str) -> Flow[tuple[Vector | None, tuple[str, ...]]]:
    """The query's vector, or a warning that says why there is none."""
    if eye.embedder is None:
        bound = yield from call(eye.store.model)
        return None, (OTHER_EMBEDDER.format(bound[0]) if bound else NO_EMBEDDER,)
    vector = yield from attempt(_asked(eye.embedder, query))
    if isinstance(vector, Failure):
        return None, (f"The embedder failed, so memories are found by their words only: {vector}",)
    return vector, ()


def _asked(embedder: Embedder, query: str) -> Flow[Vector]:
    vectors = yield from call(embedder.embed, [query], "query")
    return sound(embedder, vectors, 1)[0]


def _kept(hit: Hit) -> Candidate:
    return Candidate(hit.fact.id, hit.fact.seq, hit.fact.text, hit.score, hit.parts, "fetch", True)

