"""Implement `search`, `explain`, `why_not` and `get_all`.

A search plans, gathers candidates from the index, ranks and expands them, applies guards, resolves
conflicts and duplicates, selects, and logs the access. `context` renders its result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.errors import InvalidInput, NotFoundError
from told.flow import Flow, call
from told.model.beliefs import BeliefConflicts, find_belief_conflicts, trust_of_source
from told.model.fact import QUARANTINE, Fact
from told.model.filter import matches_filter, to_record
from told.model.query import LATEST, MAX_LIMIT, AccessCount, FactQuery, Hit, Trace, TracedCandidate
from told.ports import DEFAULT_SPREAD
from told.retrieval import access_log, ranking
from told.retrieval.candidates import (
    ReadContext,
    build_index_query,
    embed_query,
    find_denials,
    get_link_seq,
    label_hot_seqs,
    search_index,
)
from told.retrieval.expansion import expand_candidates, record_topic_cooccurrence
from told.retrieval.grouping import CLAIM_LABEL
from told.retrieval.intent import analyse_query
from told.retrieval.listing import measure_strengths
from told.retrieval.ranking import FUSED_METHOD, ScoredCandidate
from told.retrieval.rerank import apply_tiered_scores, rerank_head
from told.retrieval.resolution import load_related, resolve_candidates
from told.retrieval.state import (
    KEPT_OUTCOME,
    SearchRequest,
    SearchResult,
    SearchState,
    StageNote,
    StageTimer,
    build_score_parts,
    build_traced_candidate,
    fetch_distinct,
    fetch_facts,
    intent_to_json,
    list_sources,
    take_first_facts,
    take_first_seqs,
)
from told.settings import Settings
from told.text.dates import from_us
from told.text.tokens import validate_text

GUARD_STAGE: Final = "guard"
GATHER_NOTE: Final = "{} by vector, {} by words, the rest beside them"


# Search


def search(ctx: ReadContext, request: SearchRequest) -> Flow[SearchResult]:
    """Return the facts that best answer a query."""
    state = yield from retrieve(ctx, request)
    hits = _build_hits(state, ctx.settings)
    confidence = ranking.estimate_confidence(state.all_scored, state.index_result, ctx.settings)
    warnings = yield from record_access(ctx, request.fact_query, hits, state)
    return SearchResult(hits, (*state.warnings, *warnings), confidence)


def explain(ctx: ReadContext, request: SearchRequest) -> Flow[tuple[SearchResult, Trace]]:
    """Run a search and trace every candidate it considered."""
    state = yield from retrieve(ctx, request)
    yield from fetch_facts(ctx, state, ranking.list_seqs(state.all_scored))
    state.hot_labels = label_hot_seqs(ctx, state.index_query)
    state.timer.update_stage(
        GUARD_STAGE, len(state.facts), len(state.denied), _build_denial_note(state)
    )
    confidence = ranking.estimate_confidence(state.all_scored, state.index_result, ctx.settings)
    steps, candidates = state.timer.build_steps(), tuple(_trace_candidates(state, ctx.settings))
    search_trace = Trace(
        request.query,
        request.fact_query.as_of,
        steps,
        candidates,
        intent_to_json(state.intent),
    )
    return SearchResult(
        _build_hits(state, ctx.settings), tuple(state.warnings), confidence
    ), search_trace


def _build_hits(state: SearchState, settings: Settings) -> tuple[Hit, ...]:
    """Return a hit per remaining fact, by its best passage."""
    scale = ranking.build_calibration(state.index_result, settings)
    return tuple(
        [
            build_hit(item, state, scale(item.score))
            for item in ranking.keep_best_per_fact(state.scored)
        ]
    )


def retrieve(
    ctx: ReadContext, request: SearchRequest, extra_seqs: tuple[int, ...] = ()
) -> Flow[SearchState]:
    """Run a search up to selection: the matching passages in order, with their facts."""
    timer = StageTimer()
    query = _clean_query(request.query, ctx.settings)
    now = request.now or from_us(request.fact_query.as_of.at)
    intent = analyse_query(query, now=now, zone=ctx.settings.zone or None)
    vector, warnings = yield from embed_query(ctx, query)
    index_query = build_index_query(
        ctx,
        intent,
        request.fact_query,
        vector,
        MAX_LIMIT if request.deep else ctx.settings.ranking.depth,
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
    spread = ctx.settings.ranking.spread or getattr(ctx.embedder, "spread", DEFAULT_SPREAD)
    scored = ranking.rank_candidates(index_result, intent, ctx.settings, spread)
    timer.record_stage("rank", len(scored), note=lambda: ctx.settings.fusion)
    state = SearchState(
        request, intent, index_query, index_result, scored, [*warnings, *index_warnings], timer
    )
    yield from _enrich_and_expand(ctx, state, spread)
    yield from _select(ctx, state)
    return state


def _enrich_and_expand(ctx: ReadContext, state: SearchState, spread: float) -> Flow[None]:
    """Fetch the facts of the best passages, add fact-based scores, and follow their links."""
    settings, request = ctx.settings, state.request
    is_fused = settings.fusion == FUSED_METHOD
    if is_fused:
        yield from apply_tiered_scores(ctx, state)
    needs_facts = not is_fused and ranking.needs_facts(state.intent, settings)
    fetch_count = _count_to_fetch(state, settings)
    yield from fetch_distinct(
        ctx, state, max(fetch_count, settings.ranking.depth) if needs_facts else fetch_count
    )
    if needs_facts:
        head = [item for item in state.scored if item.candidate.seq in state.facts]
        rest = [item for item in state.scored if item.candidate.seq not in state.facts]
        access_counts = (
            (yield from _load_access_counts(ctx, state)) if settings.ranking.hotness else {}
        )
        salience = (yield from _load_salience(ctx, state)) if settings.ranking.salience else {}
        now = request.fact_query.as_of.at
        head = ranking.add_fact_scores(
            head, state.facts, access_counts, state.intent, ctx.kinds, settings, now, salience
        )
        state.scored = [*head, *rest]
    if state.index_result.has_links:
        expanded_items, state.expansion_labels = yield from expand_candidates(
            ctx,
            state.index_query,
            lambda index_result: ranking.rank_candidates(
                index_result, state.intent, settings, spread
            ),
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
    """Return the access counts of the facts; none for reads of the past."""
    fact_query, threads = state.request.fact_query, [fact.id for fact in state.facts.values()]
    if fact_query.as_of.seq < LATEST:
        return {}
    return (
        yield from access_log.load_access_counts(
            ctx.store, ctx.hot_buffers, fact_query.scope.account, threads
        )
    )


def _load_salience(ctx: ReadContext, state: SearchState) -> Flow[Mapping[int, float]]:
    """Return the current salience of the facts, by seq."""
    strength_by_seq = yield from measure_strengths(
        ctx, list(state.facts.values()), state.request.fact_query
    )
    return {seq: strength.weight for seq, strength in strength_by_seq.items()}


def _select(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Apply guards, merge duplicates, reorder, and keep as many as requested."""
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
    state.scored = ranking.put_newest_first(
        state.scored, state.intent, state.index_result.centroid_length, settings
    )
    state.scored = ranking.diversify(state.scored, state.index_result.centroid_length, settings)
    if request.rerank:
        state.scored, warnings = yield from rerank_head(
            ctx, request.query, state.scored, state.facts
        )
        state.warnings += warnings
    sources = [trust_of_source(state.facts[item.candidate.seq]) for item in state.scored]
    state.scored = ranking.put_users_first(state.scored, sources, state.intent, settings)
    if request.min_score:
        state.keep_only(_filter_by_score(state, settings), "select", "below the least score")
    state.keep_only(take_first_facts(state.scored, request.limit), "select", "after the limit")
    state.timer.record_stage(
        "select", len(ranking.keep_best_per_fact(state.scored)), initial_count - len(state.scored)
    )


def _resolve_until_enough(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Resolve conflicts and duplicates, fetching more until enough answers remain."""
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
    """Return how many answers rank before everything that was not fetched yet.

    An utterance added through a claim may rank below unfetched passages.
    """
    best = ranking.keep_best_per_fact(state.scored)
    beyond = all_items[len(take_first_seqs(all_items, reach)) :] if state.evidence_groups else ()
    if not beyond:
        return len(best)
    best_beyond = ranking.pick_best(beyond)
    return sum(1 for item in best if ranking.is_ranked_before(item, best_beyond))


def _build_denial_note(state: SearchState) -> StageNote:
    """Return a note that counts the denials by reason."""
    reasons = tuple(state.denied.values())
    return lambda: "; ".join(f"{number} {reason}" for reason, number in Counter(reasons).items())


def _count_required(state: SearchState, settings: Settings) -> int:
    """Return how many answers are needed for the limit and for every later step."""
    rerank_count = settings.ranking.rerank_depth if state.request.rerank else 0
    diversity_count = ranking.DIVERSITY_DEPTH if settings.ranking.diversity else 0
    return max(state.request.limit, settings.ranking.newest_among, rerank_count, diversity_count)


def _count_to_fetch(state: SearchState, settings: Settings) -> int:
    """Return how many facts to fetch, with spares for merged duplicates."""
    expand_count = settings.ranking.expand_from if state.index_result.has_links else 0
    return max(
        state.request.limit + settings.ranking.spare, _count_required(state, settings), expand_count
    )


def _filter_by_score(state: SearchState, settings: Settings) -> list[ScoredCandidate]:
    """Return the passages that reach the minimum score."""
    min_score = state.request.min_score
    scale = ranking.build_calibration(state.index_result, settings)
    return [item for item in state.scored if scale(item.score) >= min_score]


def build_hit(item: ScoredCandidate, state: SearchState, score: float) -> Hit:
    """Build a hit from a scored passage."""
    fact = state.facts[item.candidate.seq]
    conflicts = state.conflicts.rivals.get(fact.id, ())
    return Hit(
        fact,
        score,
        build_score_parts(item),
        item.candidate.slot,
        state.merged_threads.get(fact.seq, ()),
        conflicts,
        state.superseded_by.get(fact.seq, ""),
    )


def _trace_candidates(state: SearchState, settings: Settings) -> Iterator[TracedCandidate]:
    """Iterate over trace entries, one per fact: kept ones first, then the others by rank."""
    kept, outcomes = ranking.keep_best_per_fact(state.scored), state.outcome_log.resolve_outcomes()
    scale = ranking.build_calibration(state.index_result, settings)
    for item in ranking.keep_best_per_fact([*kept, *state.all_scored]):
        if (fact := state.facts.get(item.candidate.seq)) is not None:
            sources = list_sources(
                item.candidate, state.index_query, state.expansion_labels, state.hot_labels
            )
            outcome = outcomes.get((item.candidate.seq, item.candidate.slot), KEPT_OUTCOME)
            yield build_traced_candidate(item, fact, scale(item.score), sources, outcome)


def record_access(
    ctx: ReadContext, fact_query: FactQuery, hits: Sequence[Hit], state: SearchState | None = None
) -> Flow[tuple[str, ...]]:
    """Log the selected hits and the topics they share, unless the read was of the past."""
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
        yield from access_log.record_read(
            ctx.store, ctx.hot_buffers, fact_query.scope, facts, fact_query.as_of.at, codes
        )
    )


def list_facts(
    ctx: ReadContext, fact_query: FactQuery, belief: str | None = None
) -> Flow[tuple[Sequence[Fact], BeliefConflicts]]:
    """Return the visible facts of a scope at a point in time, oldest first.

    With a belief, leave out those that lost a contradiction.
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
            "The query is empty.", hint="Pass a query, or use get_all() to list everything."
        )
    return validate_text(query, limit=settings.text_limit)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The outcome of one memory in one search, with its score if it got that far."""

    id: str
    found: bool
    stage: str
    reason: str
    place: int | None = None
    score: float | None = None
    least: float | None = None
    parts: dict[str, float | None] | None = None
    sources: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        body = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            **{name: value for name, value in body.items() if value is not None},
            "sources": list(self.sources),
        }


def explain_why_not(ctx: ReadContext, request: SearchRequest, thread: str) -> Flow[WhyNot]:
    """Return a memory's rank in a search, or the reason it is not in it."""
    fact_query = request.fact_query
    fact = yield from call(ctx.store.get_fact, fact_query.scope.account, thread, fact_query.as_of)
    if fact is None or not fact_query.scope.covers(fact.scope):
        return (yield from _explain_missing(ctx, fact_query, thread))
    if find_denials([fact], ctx.guards):
        return WhyNot(thread, False, "guard", "it may not be shown to this caller")
    if exclusion := _find_exclusion(fact, fact_query):
        return WhyNot(thread, False, "plan", exclusion)
    state = yield from retrieve(ctx, request, extra_seqs=(fact.seq,))
    items = ranking.keep_best_per_fact([*state.scored, *state.all_scored])
    seqs = [item.candidate.seq for item in items]
    if fact.seq not in seqs:
        return WhyNot(thread, False, "gather", "the index has nothing of it; run `told verify`")
    position = seqs.index(fact.seq)
    item = items[position]
    score = ranking.calibrate_score(item.score, state.index_result, ctx.settings)
    index_query = replace(state.index_query, extra_seqs=state.index_query.extra_seqs[:-1])
    sources = list_sources(
        item.candidate, index_query, state.expansion_labels, label_hot_seqs(ctx, index_query)
    )
    kept = any(kept_item.candidate.seq == fact.seq for kept_item in state.scored)
    stage, drop_reason = state.outcome_log.resolve_outcomes().get(
        (fact.seq, item.candidate.slot), KEPT_OUTCOME
    )
    reason = f"it is hit number {position + 1}" if kept else drop_reason or "after the limit"
    last_score = (
        ranking.calibrate_score(state.scored[-1].score, state.index_result, ctx.settings)
        if state.scored
        else None
    )
    return WhyNot(
        thread,
        kept,
        stage,
        reason,
        position + 1,
        score,
        last_score,
        build_score_parts(item),
        sources,
    )


def _explain_missing(ctx: ReadContext, fact_query: FactQuery, thread: str) -> Flow[WhyNot]:
    """Explain why a thread has no fact at this point, or raise NotFoundError."""
    account = fact_query.scope.account
    current = yield from call(ctx.store.get_fact, account, thread)
    entries = yield from call(ctx.store.scan_entries, account, thread=thread)
    is_visible = current is None or fact_query.scope.covers(current.scope)
    if not entries or not is_visible:
        raise NotFoundError(
            f"There is no memory {thread!r} here.", hint="List them with get_all()."
        )
    reason = "it was given up" if current is None else "it was not held at that time"
    return WhyNot(thread, False, "plan", reason)


def _find_exclusion(fact: Fact, fact_query: FactQuery) -> str:
    if fact.kind == QUARANTINE:
        return "it is in quarantine, and waits for somebody to look at it"
    if not fact_query.show_expired and fact.expires <= fact_query.as_of.at:
        return "it has expired; show_expired=True shows it"
    return "" if matches_filter(fact_query.filter, to_record(fact)) else "the filters leave it out"
