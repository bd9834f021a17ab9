"""plan → gather → fuse → rank → expand → guard → select → assemble → trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from told.core.errors import InvalidInput
from told.core.fact import PIECE, Fact
from told.core.kind import builtin
from told.core.query import LATEST, MAX_LIMIT, Candidate, Find, Hit, Probe, Ranked, Trace
from told.core.text import clean, normalise
from told.core.when import from_us
from told.flow import Flow, call
from told.ports import SPREAD
from told.read import cache, rank, trace
from told.read.asked import Asked, asked
from told.read.expand import expanded
from told.read.gather import Eye, ask, probe_of, vector_of
from told.read.guard import denials
from told.read.rank import Scored
from told.read.rerank import reranked
from told.settings import Settings


@dataclass(frozen=True, slots=True)
class Want:
    """What a read is asked for; a deep one looks at as many candidates as there can be results."""

    query: str
    find: Find
    limit: int
    least: float = 0.0
    rerank: bool = False
    now: datetime | None = None
    deep: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """The hits of a search, what became of the other candidates, how sure it is, and what was not as it should be."""

    hits: tuple[Hit, ...]
    trace: Trace
    warnings: tuple[str, ...] = ()
    confidence: float = 0.0


@dataclass(slots=True)
class Recall:
    """A read on its way: what was understood, what was found, what is left of it, and what became of the rest."""

    want: Want
    asked: Asked
    probe: Probe
    found: Ranked
    scored: list[Scored]
    warnings: list[str]
    clock: trace.Clock
    facts: dict[int, Fact] = field(default_factory=dict)
    labels: Mapping[int, str] = field(default_factory=dict)
    fates: trace.Ledger = field(default_factory=trace.Ledger)
    also: dict[int, tuple[str, ...]] = field(default_factory=dict)
    denied: dict[int, str] = field(default_factory=dict)
    all: list[Scored] = field(default_factory=list)

    def keep(self, kept: list[Scored], stage: str, reason: str) -> None:
        """Go on with these; the others end here."""
        if len(kept) < len(self.scored):
            inside = {(one.mark.seq, one.mark.slot) for one in kept}
            self.fates.drop([one for one in self.scored if (one.mark.seq, one.mark.slot) not in inside], stage, reason)
        self.scored = kept


# Search ---------------------------------------------------------------------------------------------------------------


def search(eye: Eye, want: Want) -> Flow[Seen]:
    """The facts that answer a query best, with the reason for each."""
    recall = yield from recalled(eye, want)
    seen = _seen(eye, recall)
    warnings = yield from noted(eye, want.find, [hit.fact for hit in seen.hits])
    return replace(seen, warnings=(*seen.warnings, *warnings))


def explain(eye: Eye, want: Want) -> Flow[Seen]:
    """A search that also accounts for every candidate it dropped."""
    recall = yield from recalled(eye, want)
    yield from _fetch(eye, recall, recall.all)
    _count_denied(recall)
    seen = _seen(eye, recall)
    candidates = tuple(_candidates(recall, eye.settings))
    return replace(seen, trace=replace(seen.trace, candidates=candidates))


def _seen(eye: Eye, recall: Recall) -> Seen:
    """What is left of a read, as hits."""
    best = rank.best_of_facts(recall.scored)
    hits = tuple(hit(one, recall, eye.settings) for one in best)
    steps = tuple(recall.clock.steps)
    told = Trace(recall.want.query, recall.want.find.as_of, steps, (), trace.understood(recall.asked))
    sure = rank.confidence(recall.all, recall.found, eye.settings)
    return Seen(hits, told, tuple(recall.warnings), sure)


def recalled(eye: Eye, want: Want, also: tuple[int, ...] = ()) -> Flow[Recall]:
    """Everything up to the selection: the passages that answer, in order, with their facts."""
    clock = trace.Clock()
    query = _query(want.query, eye.settings)
    at = want.now or from_us(want.find.as_of.at)
    said = asked(query, now=at, zone=eye.settings.zone or None)
    vector, warnings = yield from vector_of(eye, query)
    probe = probe_of(eye, said, want.find, vector, MAX_LIMIT if want.deep else eye.settings.depth)
    probe = replace(probe, also=(*probe.also, *also))
    clock.mark("plan", len(probe.terms), note=f"{said.intent}; {'a' if vector is not None else 'no'} vector")
    found, more = yield from ask(eye, probe)
    near, words = len(found.near), len(found.words)
    clock.mark("gather", len(found.marks), note=f"{near} by vector, {words} by words, the rest beside them")
    spread = eye.settings.spread or getattr(eye.embedder, "spread", SPREAD)
    scored = rank.ranked(found, said, eye.settings, spread)
    clock.mark("rank", len(scored), note=eye.settings.fusion)
    recall = Recall(want, said, probe, found, scored, [*warnings, *more], clock)
    recall.all = list(scored)
    yield from _grown(eye, recall, spread)
    yield from _selected(eye, recall)
    return recall


def _grown(eye: Eye, recall: Recall, spread: float) -> Flow[None]:
    """Fetch the facts of the best, add what only facts tell, and follow what they point to."""
    settings, want = eye.settings, recall.want
    deep = rank.wants_facts(recall.asked, settings)
    most = _most(recall, settings)
    yield from _fill(eye, recall, max(most, settings.depth) if deep else most)
    if deep:
        head = [one for one in recall.scored if one.mark.seq in recall.facts]
        rest = [one for one in recall.scored if one.mark.seq not in recall.facts]
        threads = [fact.id for fact in recall.facts.values()]
        past = want.find.as_of.seq < LATEST
        account, now = want.find.scope.account, want.find.as_of.at
        touches = {} if past else (yield from cache.touched(eye.store, eye.overlay, account, threads))
        head = rank.with_facts(head, recall.facts, touches, recall.asked, builtin(), settings, now)
        recall.scored = [*head, *rest]
    if recall.found.linked or any(fact.kind != "memory" for fact in recall.facts.values()):
        grown, recall.labels = yield from expanded(
            eye, recall.probe, lambda found: rank.ranked(found, recall.asked, settings, spread), recall.scored,
            recall.facts,
        )  # fmt: skip
        if recall.labels:
            recall.scored = grown
            yield from _fill(eye, recall, most)
    recall.all = list(recall.scored)
    recall.clock.mark("expand", len(recall.scored), note=f"{len(recall.labels)} by links")


def _selected(eye: Eye, recall: Recall) -> Flow[None]:
    """Guard, merge what says the same, put the newest first, and keep as many as were asked for."""
    settings, want, count = eye.settings, recall.want, len(recall.scored)
    recall.all = [one for one in recall.all if one.mark.seq not in recall.denied]
    recall.keep([one for one in recall.scored if one.mark.seq in recall.facts], "select", "after the limit")
    recall.clock.mark("guard", len(recall.facts))
    _count_denied(recall)
    recall.keep(_distinct(recall), "fuse", "says the same as one before it")
    recall.scored = rank.newest_first(recall.scored, recall.asked, recall.found.mean, settings)
    recall.scored = rank.diverse(recall.scored, recall.found.mean, settings)
    if want.rerank:
        recall.scored, warnings = yield from reranked(eye, want.query, recall.scored, recall.facts)
        recall.warnings += warnings
    if want.least:
        recall.keep(_above(recall, settings), "select", "below the least score")
    recall.keep(list(_first(recall.scored, want.limit)), "select", "after the limit")
    recall.clock.mark("select", len(rank.best_of_facts(recall.scored)), count - len(recall.scored))


def _count_denied(recall: Recall) -> None:
    """Say in the trace how many were stopped so far, and why."""
    reasons = Counter(recall.denied.values())
    note = "; ".join(f"{number} {reason}" for reason, number in reasons.items())
    recall.clock.steps = [
        replace(step, kept=len(recall.facts), dropped=len(recall.denied), note=note) if step.stage == "guard" else step
        for step in recall.clock.steps
    ]


def _most(recall: Recall, settings: Settings) -> int:
    """How many facts are fetched: more than asked for, and all that a later step looks at."""
    judged = settings.rerank_depth if recall.want.rerank else 0
    followed = settings.expand_from if recall.found.linked else 0
    spread = rank.DIVERSE if settings.diversity else 0
    return max(recall.want.limit + settings.spare, settings.newest_among, judged, followed, spread)


def _above(recall: Recall, settings: Settings) -> list[Scored]:
    """What scores at least as high as asked for."""
    least = recall.want.least
    return [one for one in recall.scored if rank.calibrated(one.score, recall.found, settings) >= least]


def _distinct(recall: Recall) -> list[Scored]:
    """One of those that say the same thing by the same speaker; it remembers the others."""
    first: dict[tuple[str | None, str], int] = {}
    kept: list[Scored] = []
    for one in recall.scored:
        fact = recall.facts[one.mark.seq]
        words = normalise(fact.text) if len(fact.text) < PIECE else fact.md5
        seq = first.setdefault((fact.actor, words), fact.seq)
        if seq == fact.seq:
            kept.append(one)
        elif fact.id not in recall.also.get(seq, ()):
            recall.also[seq] = (*recall.also.get(seq, ()), fact.id)
    return kept


def _first(scored: Sequence[Scored], facts: int) -> Iterator[Scored]:
    """The passages up to so many different facts."""
    seen: set[int] = set()
    for one in scored:
        seen.add(one.mark.seq)
        if len(seen) > facts:
            return
        yield one


def _fill(eye: Eye, recall: Recall, wanted: int) -> Flow[None]:
    """Fetch the facts of the best until as many as wanted may be seen that say different things, or no more."""
    reach = wanted
    while True:
        head = list(_first(recall.scored, reach))
        yield from _fetch(eye, recall, head)
        if len({(fact.actor, fact.md5) for fact in recall.facts.values()}) >= wanted or len(head) == len(recall.scored):
            return
        reach *= 2


def _fetch(eye: Eye, recall: Recall, scored: Sequence[Scored]) -> Flow[None]:
    """Fetch the facts of these passages that are not here yet; only what every guard lets through comes in."""
    known = recall.facts.keys() | recall.denied.keys()
    missing = list(dict.fromkeys(one.mark.seq for one in scored if one.mark.seq not in known))
    if missing:
        fetched = yield from call(eye.store.versions, recall.want.find.scope.account, missing)
        denied = denials(fetched.values(), eye.guards)
        recall.denied |= denied
        recall.facts |= {seq: fact for seq, fact in fetched.items() if seq not in denied}


def hit(one: Scored, recall: Recall, settings: Settings) -> Hit:
    """A passage that was found, as what a reader gets of it."""
    fact = recall.facts[one.mark.seq]
    score = rank.calibrated(one.score, recall.found, settings)
    return Hit(fact, score, trace.parts(one), one.mark.slot, recall.also.get(fact.seq, ()))


def _candidates(recall: Recall, settings: Settings) -> Iterator[Candidate]:
    """Every fact that was looked at, each by its best passage: those kept first, then the others as they ranked."""
    kept = rank.best_of_facts(recall.scored)
    for one in rank.best_of_facts([*kept, *recall.all]):
        if (fact := recall.facts.get(one.mark.seq)) is not None:
            score = rank.calibrated(one.score, recall.found, settings)
            yield recall.fates.candidate(one, fact, score, trace.sources(one.mark, recall.probe, recall.labels))


def noted(eye: Eye, find: Find, facts: Sequence[Fact]) -> Flow[tuple[str, ...]]:
    """Note what was selected, unless the read was one of the past."""
    if find.as_of.seq < LATEST or not facts:
        return ()
    return (yield from cache.noted(eye.store, eye.overlay, find.scope, facts, find.as_of.at))


def listing(eye: Eye, find: Find) -> Flow[Sequence[Fact]]:
    """The facts a scope holds at a point in time, oldest first, as far as every guard lets them through."""
    if not eye.guards:
        return (yield from call(eye.store.facts, find))
    facts = yield from call(eye.store.facts, replace(find, limit=None, offset=0))
    denied = denials(facts, eye.guards)
    seen = [fact for fact in facts if fact.seq not in denied]
    return seen[find.offset :][: find.limit]


def _query(query: str, settings: Settings) -> str:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("The query is empty.", hint="Ask for something, or use get_all() to list everything.")
    return clean(query, limit=settings.text_limit)
