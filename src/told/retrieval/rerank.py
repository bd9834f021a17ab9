"""Rerank with a model, and compute the tiered score of similarity, recency and importance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from math import isfinite
from typing import Any, SupportsFloat

from told.flow import Flow, call
from told.ledger.consumer import Failure, catch_failure
from told.model.fact import Fact, Link
from told.model.salience import compute_recency, fuse_scores
from told.model.topics import IN_EXCHANGE
from told.ports import LLM, Reranker
from told.retrieval.candidates import ReadContext, load_links
from told.retrieval.ranking import SCORE_SCALE, ScoredCandidate, list_seqs, sort_by_score
from told.retrieval.state import SearchState, fetch_facts
from told.settings import Settings
from told.text.importance import score_importance, stated_importance
from told.text.tokens import parse_lenient_json

SCORES_SCHEMA = {
    "type": "object",
    "required": ["scores"],
    "properties": {"scores": {"type": "array", "items": {"type": "number"}}},
}
NO_RERANKER_WARNING = (
    "rerank had no effect: no reranker is configured; pass one as Memory(reranker=...)."
)


def rerank_head(
    ctx: ReadContext, query: str, scored: Sequence[ScoredCandidate], facts: Mapping[int, Fact]
) -> Flow[tuple[list[ScoredCandidate], tuple[str, ...]]]:
    """Reorder the first few by a reranker; each takes the score of its new place."""
    if ctx.reranker is None:
        return list(scored), (NO_RERANKER_WARNING,)
    head = list(scored[: ctx.settings.ranking.rerank_depth])
    texts = [facts[item.candidate.seq].text for item in head]
    reply = yield from catch_failure(_request_scores(ctx.reranker, query, texts))
    if isinstance(reply, Failure):
        return list(scored), (
            f"The reranker {ctx.reranker.model} failed, so the default order is used: {reply}",
        )
    scores = _parse_scores(reply, len(head))
    if scores is None:
        return list(scored), (
            f"The reranker {ctx.reranker.model} did not return {len(head)} numbers.",
        )
    order = sorted(range(len(head)), key=lambda index: (-scores[index], index))
    places = zip(order, head, strict=True)
    reordered = [
        head[index].add_parts(rerank=place.score - head[index].score) for index, place in places
    ]
    return [*reordered, *scored[len(head) :]], ()


def _parse_scores(reply: Any, count: int) -> list[float] | None:
    """Return the reranker's scores if they are `count` finite numbers."""
    listed = reply.tolist() if hasattr(reply, "tolist") else reply
    if not isinstance(listed, list | tuple) or len(listed) != count:
        return None
    numbers = [float(score) for score in listed if isinstance(score, SupportsFloat)]
    return numbers if len(numbers) == count and all(map(isfinite, numbers)) else None


def _request_scores(reranker: Reranker | LLM, query: str, texts: Sequence[str]) -> Flow[Any]:
    if not isinstance(reranker, LLM):
        return (yield from call(reranker.score, query, texts))
    listed = "\n".join(f"{index}. {' '.join(text.split())}" for index, text in enumerate(texts, 1))
    system = resources.files("told.retrieval").joinpath("prompts", "rerank.md").read_text("utf-8")
    reply = yield from call(
        reranker.ask, system, f"Question: {query}\n\nMemories:\n{listed}", schema=SCORES_SCHEMA
    )
    parsed = parse_lenient_json(reply)
    return parsed.get("scores") if isinstance(parsed, dict) else parsed


IMPORTANCE = "importance"


def apply_tiered_scores(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Add recency and importance to all candidates and sort them."""
    yield from fetch_facts(ctx, state, list_seqs(state.scored))
    threads = sorted({fact.id for fact in state.facts.values()})
    links = (
        (yield from load_links(ctx, state.request.fact_query, threads, state.link_cache))
        if state.index_result.has_links
        else ()
    )
    now, settings = state.index_query.query.as_of.at, ctx.settings
    filed_threads = {link.src for link in links if link.rel == IN_EXCHANGE}
    importance_by_thread = collect_importance(links)
    parts_by_seq = {
        seq: _compute_tier_parts(
            fact, now, settings, fact.id in filed_threads, importance_by_thread
        )
        for seq, fact in state.facts.items()
    }
    state.scored = sort_by_score(
        _replace_parts(item, parts_by_seq.get(item.candidate.seq, {})) for item in state.scored
    )


def collect_importance(links: Sequence[Link]) -> dict[str, float]:
    """Return the latest importance of each thread."""
    sorted_links = sorted(
        (link for link in links if link.rel == IMPORTANCE), key=lambda link: link.seq
    )
    return {link.dst: link.weight for link in sorted_links}


def _compute_tier_parts(
    fact: Fact,
    now: int,
    settings: Settings,
    is_filed: bool,
    importance_by_thread: Mapping[str, float],
) -> dict[str, float]:
    """Return the recency and importance parts; facts filed under an exchange age more slowly."""
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    recency_score = compute_recency(
        now - said_at,
        settings.maintenance.registry_days if is_filed else settings.maintenance.index_days,
    )
    given_importance = stated_importance(fact.meta)
    importance_score = (
        importance_by_thread.get(fact.id, score_importance(fact.text, fact.role or "user"))
        if given_importance is None
        else given_importance
    )
    return {
        "recency": SCORE_SCALE * fuse_scores(recency=recency_score),
        "importance": SCORE_SCALE * fuse_scores(importance=importance_score),
    }


def _replace_parts(item: ScoredCandidate, parts: Mapping[str, float]) -> ScoredCandidate:
    """Return a copy with these parts replaced."""
    replaced_sum = sum(item.parts.get(name, 0.0) for name in parts)
    return (
        ScoredCandidate(
            item.candidate, item.score - replaced_sum + sum(parts.values()), {**item.parts, **parts}
        )
        if parts
        else item
    )
