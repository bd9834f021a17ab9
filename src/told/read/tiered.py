"""The fused score of the tiers: 0.6 similarity + 0.3 recency + 0.1 importance, of everything that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from told.core.fact import Fact, Link
from told.core.importance import score_importance, stated_importance
from told.core.tiers import compute_recency, fuse_scores
from told.core.topics import IN_EXCHANGE
from told.flow import Flow
from told.read.fuse import SCORE_SCALE
from told.read.gather import ReadContext
from told.read.leads import load_links
from told.read.rank import ScoredCandidate, list_seqs, sort_by_score
from told.read.recall import SearchState, fetch_facts
from told.settings import Settings

IMPORTANCE = "importance"


def apply_tiered_scores(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Add to what was found how recent and important it is, of all of it, and put it into that order."""
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
    """What threads were last said to be worth."""
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
    """What recency and importance bring; what is filed under an exchange ages as the registry does."""
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    recency_score = compute_recency(
        now - said_at, settings.registry_days if is_filed else settings.index_days
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
    """The same with these parts, in the place of those of the same names."""
    replaced_sum = sum(item.parts.get(name, 0.0) for name in parts)
    return (
        ScoredCandidate(
            item.candidate, item.score - replaced_sum + sum(parts.values()), {**item.parts, **parts}
        )
        if parts
        else item
    )
