"""Why a memory is not among the hits: the first thing in its way, from whether it is there at all to its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from told.core.errors import NotFoundError
from told.core.fact import QUARANTINE, Fact
from told.core.filter import matches_filter, to_record
from told.core.query import FactQuery
from told.flow import Flow, call
from told.read import path, rank, trace
from told.read.gather import ReadContext, label_hot_seqs
from told.read.guard import find_denials
from told.read.recall import SearchRequest


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What became of one memory in one search: the stage that decided, why, and what it scored if it got that far."""

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
        """The reason as JSON."""
        body = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            **{name: value for name, value in body.items() if value is not None},
            "sources": list(self.sources),
        }


def explain_why_not(ctx: ReadContext, request: SearchRequest, thread: str) -> Flow[WhyNot]:
    """Where a memory stands in a search, or what keeps it out of it."""
    fact_query = request.fact_query
    fact = yield from call(ctx.store.get_fact, fact_query.scope.account, thread, fact_query.as_of)
    if fact is None or not fact_query.scope.covers(fact.scope):
        return (yield from _explain_missing(ctx, fact_query, thread))
    if find_denials([fact], ctx.guards):
        return WhyNot(thread, False, "guard", "it may not be shown to this caller")
    if exclusion := _find_exclusion(fact, fact_query):
        return WhyNot(thread, False, "plan", exclusion)
    state = yield from path.retrieve(ctx, request, extra_seqs=(fact.seq,))
    items = rank.keep_best_per_fact([*state.scored, *state.all_scored])
    seqs = [item.candidate.seq for item in items]
    if fact.seq not in seqs:
        return WhyNot(thread, False, "gather", "the index has nothing of it; run `told verify`")
    position = seqs.index(fact.seq)
    item = items[position]
    score = rank.calibrate_score(item.score, state.index_result, ctx.settings)
    index_query = replace(state.index_query, extra_seqs=state.index_query.extra_seqs[:-1])
    sources = trace.list_sources(
        item.candidate, index_query, state.expansion_labels, label_hot_seqs(ctx, index_query)
    )
    kept = any(kept_item.candidate.seq == fact.seq for kept_item in state.scored)
    stage, drop_reason = state.outcome_log.resolve_outcomes().get(
        (fact.seq, item.candidate.slot), trace.KEPT_OUTCOME
    )
    reason = f"it is hit number {position + 1}" if kept else drop_reason or "after the limit"
    last_score = (
        rank.calibrate_score(state.scored[-1].score, state.index_result, ctx.settings)
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
        trace.build_score_parts(item),
        sources,
    )


def _explain_missing(ctx: ReadContext, fact_query: FactQuery, thread: str) -> Flow[WhyNot]:
    """Nothing of it counts there and then: it never existed, belongs to others, or is no longer or not yet held."""
    account = fact_query.scope.account
    current = yield from call(ctx.store.get_fact, account, thread)
    entries = yield from call(ctx.store.thread_entries, account, thread)
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
