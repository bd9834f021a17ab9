"""plan → gather → fuse → rank → expand → guard → select → assemble → trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from told.core.belief import BeliefConflicts, find_belief_conflicts
from told.core.errors import InvalidInput
from told.core.fact import Fact
from told.core.query import LATEST, MAX_LIMIT, AccessCount, FactQuery, Hit, Trace, TracedCandidate
from told.core.text import validate_text
from told.core.trust import trust_of_source
from told.core.when import from_us
from told.flow import Flow, call
from told.ports import DEFAULT_SPREAD
from told.read import cache, rank, trace
from told.read.asked import analyse_query
from told.read.expand import expand_candidates
from told.read.fading import measure_strengths
from told.read.fold import CLAIM_LABEL
from told.read.fuse import FUSED_METHOD
from told.read.gather import (
    ReadContext,
    build_index_query,
    embed_query,
    label_hot_seqs,
    search_index,
)
from told.read.guard import find_denials
from told.read.meeting import record_topic_cooccurrence
from told.read.rank import ScoredCandidate
from told.read.recall import (
    SearchRequest,
    SearchResult,
    SearchState,
    fetch_distinct,
    fetch_facts,
    take_first_facts,
    take_first_seqs,
)
from told.read.rerank import rerank_head
from told.read.settle import get_link_seq, load_related, resolve_candidates
from told.read.tiered import apply_tiered_scores
from told.settings import Settings

GUARD_STAGE: Final = "guard"
GATHER_NOTE: Final = "{} by vector, {} by words, the rest beside them"


# Search ---------------------------------------------------------------------------------------------------------------


def search(ctx: ReadContext, request: SearchRequest) -> Flow[SearchResult]:
    """The facts that answer a query best, with the reason for each."""
    state = yield from retrieve(ctx, request)
    hits, confidence = (
        _build_hits(state, ctx.settings),
        rank.estimate_confidence(state.all_scored, state.index_result, ctx.settings),
    )
    warnings = yield from record_access(ctx, request.fact_query, hits, state)
    return SearchResult(hits, (*state.warnings, *warnings), confidence)


def explain(ctx: ReadContext, request: SearchRequest) -> Flow[tuple[SearchResult, Trace]]:
    """What a search would find, and what became of every candidate it looked at."""
    state = yield from retrieve(ctx, request)
    yield from fetch_facts(ctx, state, rank.list_seqs(state.all_scored))
    state.hot_labels = label_hot_seqs(ctx, state.index_query)
    state.timer.update_stage(
        GUARD_STAGE, len(state.facts), len(state.denied), _build_denial_note(state)
    )
    confidence = rank.estimate_confidence(state.all_scored, state.index_result, ctx.settings)
    steps, candidates = state.timer.build_steps(), tuple(_trace_candidates(state, ctx.settings))
    search_trace = Trace(
        request.query,
        request.fact_query.as_of,
        steps,
        candidates,
        trace.intent_to_json(state.intent),
    )
    return SearchResult(
        _build_hits(state, ctx.settings), tuple(state.warnings), confidence
    ), search_trace


def _build_hits(state: SearchState, settings: Settings) -> tuple[Hit, ...]:
    """What is left of a read, each fact by its best passage."""
    scale = rank.build_calibration(state.index_result, settings)
    return tuple(
        [
            build_hit(item, state, scale(item.score))
            for item in rank.keep_best_per_fact(state.scored)
        ]
    )


def retrieve(
    ctx: ReadContext, request: SearchRequest, extra_seqs: tuple[int, ...] = ()
) -> Flow[SearchState]:
    """Everything up to the selection: the passages that answer, in order, with their facts."""
    timer = trace.StageTimer()
    query = _clean_query(request.query, ctx.settings)
    now = request.now or from_us(request.fact_query.as_of.at)
    intent = analyse_query(query, now=now, zone=ctx.settings.zone or None)
    vector, warnings = yield from embed_query(ctx, query)
    index_query = build_index_query(
        ctx, intent, request.fact_query, vector, MAX_LIMIT if request.deep else ctx.settings.depth
    )
    if extra_seqs:
        index_query = replace(index_query, extra_seqs=(*index_query.extra_seqs, *extra_seqs))
    timer.record_stage(
        "plan",
        len(index_query.terms),
        note=lambda: f"{intent.purpose}; {'no' if vector is None else 'a'} vector",
    )
    index_result, index_warnings = yield from search_index(ctx, index_query)
    timer.record_stage(
        "gather",
        len(index_result.candidates),
        note=lambda: GATHER_NOTE.format(len(index_result.by_vector), len(index_result.by_terms)),
    )
    spread = ctx.settings.spread or getattr(ctx.embedder, "spread", DEFAULT_SPREAD)
    scored = rank.rank_candidates(index_result, intent, ctx.settings, spread)
    timer.record_stage("rank", len(scored), note=lambda: ctx.settings.fusion)
    state = SearchState(
        request, intent, index_query, index_result, scored, [*warnings, *index_warnings], timer
    )
    yield from _enrich_and_expand(ctx, state, spread)
    yield from _select(ctx, state)
    return state


def _enrich_and_expand(ctx: ReadContext, state: SearchState, spread: float) -> Flow[None]:
    """Fetch the facts of the best, add what only facts tell, and follow what they point to."""
    settings, request = ctx.settings, state.request
    is_fused = settings.fusion == FUSED_METHOD
    if is_fused:
        yield from apply_tiered_scores(ctx, state)
    needs_facts = not is_fused and rank.needs_facts(state.intent, settings)
    fetch_count = _count_to_fetch(state, settings)
    yield from fetch_distinct(
        ctx, state, max(fetch_count, settings.depth) if needs_facts else fetch_count
    )
    if needs_facts:
        head = [item for item in state.scored if item.candidate.seq in state.facts]
        rest = [item for item in state.scored if item.candidate.seq not in state.facts]
        access_counts = (
            (yield from _load_access_counts(ctx, state)) if settings.rank_hotness else {}
        )
        salience = (yield from _load_salience(ctx, state)) if settings.rank_salience else {}
        now = request.fact_query.as_of.at
        head = rank.add_fact_scores(
            head, state.facts, access_counts, state.intent, ctx.kinds, settings, now, salience
        )
        state.scored = [*head, *rest]
    if state.index_result.has_links:
        expanded_items, state.expansion_labels = yield from expand_candidates(
            ctx,
            state.index_query,
            lambda index_result: rank.rank_candidates(index_result, state.intent, settings, spread),
            state.scored,
            state.facts,
            state.link_cache,
            request.lens,
        )
        if state.expansion_labels:
            state.scored = expanded_items
            yield from (
                apply_tiered_scores(ctx, state)
                if is_fused
                else fetch_distinct(ctx, state, fetch_count)
            )
    state.all_scored = state.scored
    link_count = len(state.expansion_labels)
    state.timer.record_stage("expand", len(state.scored), note=lambda: f"{link_count} by links")


def _load_access_counts(ctx: ReadContext, state: SearchState) -> Flow[Mapping[str, AccessCount]]:
    """How often what was found was recalled before; of the past that is not known."""
    fact_query, threads = state.request.fact_query, [fact.id for fact in state.facts.values()]
    if fact_query.as_of.seq < LATEST:
        return {}
    return (
        yield from cache.load_access_counts(
            ctx.store, ctx.hot_buffers, fact_query.scope.account, threads
        )
    )


def _load_salience(ctx: ReadContext, state: SearchState) -> Flow[Mapping[int, float]]:
    """How much what was found weighs by now, by its position."""
    strength_by_seq = yield from measure_strengths(
        ctx, list(state.facts.values()), state.request.fact_query
    )
    return {seq: strength.weight for seq, strength in strength_by_seq.items()}


def _select(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Guard, make one of what is one, put the newest first, and keep as many as were asked for."""
    settings, request, initial_count = ctx.settings, state.request, len(state.scored)
    yield from _resolve_until_enough(ctx, state)
    if state.added_utterances or state.denied:
        state.all_scored = [
            item
            for item in (*state.all_scored, *state.added_utterances)
            if item.candidate.seq not in state.denied
        ]
        state.expansion_labels |= {
            item.candidate.seq: CLAIM_LABEL for item in state.added_utterances
        }
    state.scored = rank.put_newest_first(
        state.scored, state.intent, state.index_result.centroid_length, settings
    )
    state.scored = rank.diversify(state.scored, state.index_result.centroid_length, settings)
    if request.rerank:
        state.scored, warnings = yield from rerank_head(
            ctx, request.query, state.scored, state.facts
        )
        state.warnings += warnings
    sources = [trust_of_source(state.facts[item.candidate.seq]) for item in state.scored]
    state.scored = rank.put_users_first(state.scored, sources, state.intent, settings)
    if request.min_score:
        state.keep_only(_filter_by_score(state, settings), "select", "below the least score")
    state.keep_only(take_first_facts(state.scored, request.limit), "select", "after the limit")
    state.timer.record_stage(
        "select", len(rank.keep_best_per_fact(state.scored)), initial_count - len(state.scored)
    )


def _resolve_until_enough(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Settle what was found; where that leaves too little, and there is more to fetch, with more of it."""
    all_items, reach = state.scored, _count_to_fetch(state, ctx.settings)
    while True:
        yield from load_related(ctx, state, reach)
        state.timer.record_stage(
            GUARD_STAGE, len(state.facts), len(state.denied), _build_denial_note(state)
        )
        resolve_candidates(state, ctx.settings)
        if _count_final_answers(state, all_items, reach) >= _count_required(
            state, ctx.settings
        ) or reach >= len(all_items):
            break
        state.restart(all_items)
        state.timer.stages.pop()
        reach *= 2
        yield from fetch_facts(ctx, state, take_first_seqs(all_items, reach))


def _count_final_answers(
    state: SearchState, all_items: Sequence[ScoredCandidate], reach: int
) -> int:
    """How many answers are left that nothing beyond the reach comes before; a claim that was led to may be such."""
    best = rank.keep_best_per_fact(state.scored)
    beyond = all_items[len(take_first_seqs(all_items, reach)) :] if state.evidence_groups else ()
    if not beyond:
        return len(best)
    best_beyond = rank.pick_best(beyond)
    return sum(1 for item in best if rank.is_ranked_before(item, best_beyond))


def _build_denial_note(state: SearchState) -> trace.StageNote:
    """How many were stopped so far, for each reason."""
    reasons = tuple(state.denied.values())
    return lambda: "; ".join(f"{number} {reason}" for reason, number in Counter(reasons).items())


def _count_required(state: SearchState, settings: Settings) -> int:
    """How many answers there must be: as many as asked for, and all that a later step looks at."""
    rerank_count = settings.rerank_depth if state.request.rerank else 0
    diversity_count = rank.DIVERSITY_DEPTH if settings.diversity else 0
    return max(state.request.limit, settings.newest_among, rerank_count, diversity_count)


def _count_to_fetch(state: SearchState, settings: Settings) -> int:
    """How many facts are fetched: some more than needed, for some of them may be one."""
    expand_count = settings.expand_from if state.index_result.has_links else 0
    return max(state.request.limit + settings.spare, _count_required(state, settings), expand_count)


def _filter_by_score(state: SearchState, settings: Settings) -> list[ScoredCandidate]:
    """What scores at least as high as asked for."""
    min_score, scale = state.request.min_score, rank.build_calibration(state.index_result, settings)
    return [item for item in state.scored if scale(item.score) >= min_score]


def build_hit(item: ScoredCandidate, state: SearchState, score: float) -> Hit:
    """A passage that was found, as what a reader gets of it."""
    fact = state.facts[item.candidate.seq]
    conflicts = state.conflicts.rivals.get(fact.id, ())
    return Hit(
        fact,
        score,
        trace.build_score_parts(item),
        item.candidate.slot,
        state.merged_threads.get(fact.seq, ()),
        conflicts,
        state.superseded_by.get(fact.seq, ""),
    )


def _trace_candidates(state: SearchState, settings: Settings) -> Iterator[TracedCandidate]:
    """Every fact that was looked at, each by its best passage: those kept first, then the others as they ranked."""
    kept, outcomes = rank.keep_best_per_fact(state.scored), state.outcome_log.resolve_outcomes()
    scale = rank.build_calibration(state.index_result, settings)
    for item in rank.keep_best_per_fact([*kept, *state.all_scored]):
        if (fact := state.facts.get(item.candidate.seq)) is not None:
            sources = trace.list_sources(
                item.candidate, state.index_query, state.expansion_labels, state.hot_labels
            )
            outcome = outcomes.get((item.candidate.seq, item.candidate.slot), trace.KEPT_OUTCOME)
            yield trace.build_traced_candidate(item, fact, scale(item.score), sources, outcome)


def record_access(
    ctx: ReadContext, fact_query: FactQuery, hits: Sequence[Hit], state: SearchState | None = None
) -> Flow[tuple[str, ...]]:
    """Note what was selected, and which topics came up for it, unless the read was one of the past."""
    if fact_query.as_of.seq < LATEST:
        return ()
    if state is not None:
        yield from record_topic_cooccurrence(ctx, state)
    if not hits:
        return ()
    ctx.hot_buffers.access_buffer.record_hits(
        fact_query.scope.account, hits, state.request.query if state else "", fact_query.as_of.at
    )
    codes = (
        {item.candidate.seq: item.candidate.code for item in reversed(state.scored)}
        if state
        else {}
    )
    facts = [hit.fact for hit in hits]
    return (
        yield from cache.record_read(
            ctx.store, ctx.hot_buffers, fact_query.scope, facts, fact_query.as_of.at, codes
        )
    )


def list_facts(
    ctx: ReadContext, fact_query: FactQuery, belief: str | None = None
) -> Flow[tuple[Sequence[Fact], BeliefConflicts]]:
    """The facts a scope holds at a point in time, oldest first, as far as every guard lets them through.

    With a belief, without those that lost a contradiction.
    """
    if not ctx.guards and belief is None:
        return (yield from call(ctx.store.find_facts, fact_query)), BeliefConflicts()
    facts = yield from call(ctx.store.find_facts, replace(fact_query, limit=None, offset=0))
    denied = find_denials(facts, ctx.guards)
    visible = [fact for fact in facts if fact.seq not in denied]
    conflicts = BeliefConflicts()
    if belief is not None and len(visible) > 1:
        links = yield from call(
            ctx.store.find_links,
            fact_query.scope.account,
            [fact.id for fact in visible],
            get_link_seq(fact_query),
        )
        conflicts = find_belief_conflicts(visible, links, belief)
    return [fact for fact in visible if fact.id not in conflicts.replaced_by][fact_query.offset :][
        : fact_query.limit
    ], conflicts


def _clean_query(query: str, settings: Settings) -> str:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput(
            "The query is empty.", hint="Ask for something, or use get_all() to list everything."
        )
    return validate_text(query, limit=settings.text_limit)
