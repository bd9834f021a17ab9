"""plan → gather → fuse → rank → expand → guard → select → assemble → trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from told.core.belief import Sides, sides
from told.core.errors import InvalidInput
from told.core.fact import Fact
from told.core.query import LATEST, MAX_LIMIT, Candidate, Find, Hit, Touch, Trace
from told.core.text import clean
from told.core.trust import source_of
from told.core.when import from_us
from told.flow import Flow, call
from told.ports import SPREAD
from told.read import cache, rank, trace
from told.read.asked import asked
from told.read.expand import expanded
from told.read.fading import strengths
from told.read.fold import KEY
from told.read.fuse import FUSED
from told.read.gather import Eye, ask, heat_of, probe_of, vector_of
from told.read.guard import denials
from told.read.meeting import came_up
from told.read.rank import Scored
from told.read.recall import Recall, Seen, Want, fetch, fill, first, first_seqs
from told.read.rerank import reranked
from told.read.settle import at, related, settled
from told.read.tiered import weighed
from told.settings import Settings

GUARD: Final = "guard"
OFFERED: Final = "{} by vector, {} by words, the rest beside them"


# Search ---------------------------------------------------------------------------------------------------------------


def search(eye: Eye, want: Want) -> Flow[Seen]:
    """The facts that answer a query best, with the reason for each."""
    recall = yield from recalled(eye, want)
    hits, sure = _hits(recall, eye.settings), rank.confidence(recall.all, recall.found, eye.settings)
    warnings = yield from noted(eye, want.find, hits, recall)
    return Seen(hits, (*recall.warnings, *warnings), sure)


def explain(eye: Eye, want: Want) -> Flow[tuple[Seen, Trace]]:
    """What a search would find, and what became of every candidate it looked at."""
    recall = yield from recalled(eye, want)
    yield from fetch(eye, recall, rank.seqs_of(recall.all))
    recall.heat = heat_of(eye, recall.probe)
    recall.clock.recount(GUARD, len(recall.facts), len(recall.denied), _reasons(recall))
    sure = rank.confidence(recall.all, recall.found, eye.settings)
    steps, candidates = recall.clock.steps(), tuple(_candidates(recall, eye.settings))
    told = Trace(want.query, want.find.as_of, steps, candidates, trace.understood(recall.asked))
    return Seen(_hits(recall, eye.settings), tuple(recall.warnings), sure), told


def _hits(recall: Recall, settings: Settings) -> tuple[Hit, ...]:
    """What is left of a read, each fact by its best passage."""
    scale = rank.scale(recall.found, settings)
    return tuple([hit(one, recall, scale(one.score)) for one in rank.best_of_facts(recall.scored)])


def recalled(eye: Eye, want: Want, also: tuple[int, ...] = ()) -> Flow[Recall]:
    """Everything up to the selection: the passages that answer, in order, with their facts."""
    clock = trace.Clock()
    query = _query(want.query, eye.settings)
    at = want.now or from_us(want.find.as_of.at)
    said = asked(query, now=at, zone=eye.settings.zone or None)
    vector, warnings = yield from vector_of(eye, query)
    probe = probe_of(eye, said, want.find, vector, MAX_LIMIT if want.deep else eye.settings.depth)
    if also:
        probe = replace(probe, also=(*probe.also, *also))
    clock.mark("plan", len(probe.terms), note=lambda: f"{said.intent}; {'no' if vector is None else 'a'} vector")
    found, more = yield from ask(eye, probe)
    clock.mark("gather", len(found.marks), note=lambda: OFFERED.format(len(found.near), len(found.words)))
    spread = eye.settings.spread or getattr(eye.embedder, "spread", SPREAD)
    scored = rank.ranked(found, said, eye.settings, spread)
    clock.mark("rank", len(scored), note=lambda: eye.settings.fusion)
    recall = Recall(want, said, probe, found, scored, [*warnings, *more], clock)
    yield from _grown(eye, recall, spread)
    yield from _selected(eye, recall)
    return recall


def _grown(eye: Eye, recall: Recall, spread: float) -> Flow[None]:
    """Fetch the facts of the best, add what only facts tell, and follow what they point to."""
    settings, want = eye.settings, recall.want
    fused = settings.fusion == FUSED
    if fused:
        yield from weighed(eye, recall)
    deep = not fused and rank.wants_facts(recall.asked, settings)
    most = _most(recall, settings)
    yield from fill(eye, recall, max(most, settings.depth) if deep else most)
    if deep:
        head = [one for one in recall.scored if one.mark.seq in recall.facts]
        rest = [one for one in recall.scored if one.mark.seq not in recall.facts]
        touches = (yield from _touches(eye, recall)) if settings.rank_hotness else {}
        alive = (yield from _weights(eye, recall)) if settings.rank_salience else {}
        now = want.find.as_of.at
        head = rank.with_facts(head, recall.facts, touches, recall.asked, eye.kinds, settings, now, alive)
        recall.scored = [*head, *rest]
    if recall.found.linked:
        grown, recall.labels = yield from expanded(
            eye, recall.probe, lambda found: rank.ranked(found, recall.asked, settings, spread), recall.scored,
            recall.facts, recall.web, want.lens,
        )  # fmt: skip
        if recall.labels:
            recall.scored = grown
            yield from weighed(eye, recall) if fused else fill(eye, recall, most)
    recall.all = recall.scored
    led = len(recall.labels)
    recall.clock.mark("expand", len(recall.scored), note=lambda: f"{led} by links")


def _touches(eye: Eye, recall: Recall) -> Flow[Mapping[str, Touch]]:
    """How often what was found was recalled before; of the past that is not known."""
    find, threads = recall.want.find, [fact.id for fact in recall.facts.values()]
    if find.as_of.seq < LATEST:
        return {}
    return (yield from cache.touched(eye.store, eye.overlay, find.scope.account, threads))


def _weights(eye: Eye, recall: Recall) -> Flow[Mapping[int, float]]:
    """How much what was found weighs by now, by its position."""
    found = yield from strengths(eye, list(recall.facts.values()), recall.want.find)
    return {seq: each.weight for seq, each in found.items()}


def _selected(eye: Eye, recall: Recall) -> Flow[None]:
    """Guard, make one of what is one, put the newest first, and keep as many as were asked for."""
    settings, want, count = eye.settings, recall.want, len(recall.scored)
    yield from _settled(eye, recall)
    if recall.led or recall.denied:
        recall.all = [one for one in (*recall.all, *recall.led) if one.mark.seq not in recall.denied]
        recall.labels |= {one.mark.seq: KEY for one in recall.led}
    recall.scored = rank.newest_first(recall.scored, recall.asked, recall.found.mean, settings)
    recall.scored = rank.diverse(recall.scored, recall.found.mean, settings)
    if want.rerank:
        recall.scored, warnings = yield from reranked(eye, want.query, recall.scored, recall.facts)
        recall.warnings += warnings
    sources = [source_of(recall.facts[one.mark.seq]) for one in recall.scored]
    recall.scored = rank.user_first(recall.scored, sources, recall.asked, settings)
    if want.least:
        recall.keep(_above(recall, settings), "select", "below the least score")
    recall.keep(first(recall.scored, want.limit), "select", "after the limit")
    recall.clock.mark("select", len(rank.best_of_facts(recall.scored)), count - len(recall.scored))


def _settled(eye: Eye, recall: Recall) -> Flow[None]:
    """Settle what was found; where that leaves too little, and there is more to fetch, with more of it."""
    everything, wanted = recall.scored, _most(recall, eye.settings)
    while True:
        yield from related(eye, recall, wanted)
        recall.clock.mark(GUARD, len(recall.facts), len(recall.denied), _reasons(recall))
        settled(recall, eye.settings)
        if _sure(recall, everything, wanted) >= _least(recall, eye.settings) or wanted >= len(everything):
            break
        recall.begin_again(everything)
        recall.clock.stages.pop()
        wanted *= 2
        yield from fetch(eye, recall, first_seqs(everything, wanted))


def _sure(recall: Recall, everything: Sequence[Scored], reach: int) -> int:
    """How many answers are left that nothing beyond the reach comes before; a claim that was led to may be such."""
    best = rank.best_of_facts(recall.scored)
    beyond = everything[len(first_seqs(everything, reach)) :] if recall.kins else ()
    if not beyond:
        return len(best)
    bar = rank.best(beyond)
    return sum(1 for one in best if rank.before(one, bar))


def _reasons(recall: Recall) -> trace.Note:
    """How many were stopped so far, for each reason."""
    reasons = tuple(recall.denied.values())
    return lambda: "; ".join(f"{number} {reason}" for reason, number in Counter(reasons).items())


def _least(recall: Recall, settings: Settings) -> int:
    """How many answers there must be: as many as asked for, and all that a later step looks at."""
    judged = settings.rerank_depth if recall.want.rerank else 0
    spread = rank.DIVERSE if settings.diversity else 0
    return max(recall.want.limit, settings.newest_among, judged, spread)


def _most(recall: Recall, settings: Settings) -> int:
    """How many facts are fetched: some more than needed, for some of them may be one."""
    followed = settings.expand_from if recall.found.linked else 0
    return max(recall.want.limit + settings.spare, _least(recall, settings), followed)


def _above(recall: Recall, settings: Settings) -> list[Scored]:
    """What scores at least as high as asked for."""
    least, scale = recall.want.least, rank.scale(recall.found, settings)
    return [one for one in recall.scored if scale(one.score) >= least]


def hit(one: Scored, recall: Recall, score: float) -> Hit:
    """A passage that was found, as what a reader gets of it."""
    fact = recall.facts[one.mark.seq]
    against = recall.sides.against.get(fact.id, ())
    return Hit(
        fact, score, trace.parts(one), one.mark.slot, recall.also.get(fact.seq, ()), against,
        recall.superseded.get(fact.seq, ""),
    )  # fmt: skip


def _candidates(recall: Recall, settings: Settings) -> Iterator[Candidate]:
    """Every fact that was looked at, each by its best passage: those kept first, then the others as they ranked."""
    kept, fates = rank.best_of_facts(recall.scored), recall.fates.fates()
    scale = rank.scale(recall.found, settings)
    for one in rank.best_of_facts([*kept, *recall.all]):
        if (fact := recall.facts.get(one.mark.seq)) is not None:
            came = trace.sources(one.mark, recall.probe, recall.labels, recall.heat)
            fate = fates.get((one.mark.seq, one.mark.slot), trace.KEPT)
            yield trace.candidate(one, fact, scale(one.score), came, fate)


def noted(eye: Eye, find: Find, hits: Sequence[Hit], recall: Recall | None = None) -> Flow[tuple[str, ...]]:
    """Note what was selected, and which topics came up for it, unless the read was one of the past."""
    if find.as_of.seq < LATEST:
        return ()
    if recall is not None:
        yield from came_up(eye, recall)
    if not hits:
        return ()
    eye.overlay.recalls.note(find.scope.account, hits, recall.want.query if recall else "", find.as_of.at)
    codes = {one.mark.seq: one.mark.code for one in reversed(recall.scored)} if recall else {}
    facts = [hit.fact for hit in hits]
    return (yield from cache.noted(eye.store, eye.overlay, find.scope, facts, find.as_of.at, codes))


def listing(eye: Eye, find: Find, belief: str | None = None) -> Flow[tuple[Sequence[Fact], Sides]]:
    """The facts a scope holds at a point in time, oldest first, as far as every guard lets them through.

    With a belief, without those that lost a contradiction.
    """
    if not eye.guards and belief is None:
        return (yield from call(eye.store.facts, find)), Sides()
    facts = yield from call(eye.store.facts, replace(find, limit=None, offset=0))
    denied = denials(facts, eye.guards)
    seen = [fact for fact in facts if fact.seq not in denied]
    told = Sides()
    if belief is not None and len(seen) > 1:
        links = yield from call(eye.store.links, find.scope.account, [fact.id for fact in seen], at(find))
        told = sides(seen, links, belief)
    return [fact for fact in seen if fact.id not in told.lost][find.offset :][: find.limit], told


def _query(query: str, settings: Settings) -> str:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("The query is empty.", hint="Ask for something, or use get_all() to list everything.")
    return clean(query, limit=settings.text_limit)
