"""How relevant a passage is by its vector and its words together, each way on a scale of about ten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import TypeAlias

from told.core.query import IndexResult, to_candidates
from told.core.tiers import fuse_scores
from told.settings import Settings

SCORE_SCALE = 10.0
FUSED_METHOD = "fused"
"""The way of fusing by which nothing counts but how similar, recent and important something is."""

BM25_HALF = 4.0
"""The BM25 score that is half of what any could be worth."""

RelevanceColumns: TypeAlias = tuple[list[float], list[float]]
"""What the vectors of the passages offered bring to their relevance, and what their words do."""


def compute_relevance(
    index_result: IndexResult, settings: Settings, spread: float
) -> RelevanceColumns:
    """How relevant everything offered is, by the way of fusing that the settings name."""
    return FUSION_METHODS[settings.fusion](index_result, settings, spread)


def fuse_weighted(index_result: IndexResult, settings: Settings, spread: float) -> RelevanceColumns:
    """How many spreads nearer than the average, and how much of the query is covered."""
    dense_weight, cover_weight = settings.rank_dense / spread, settings.rank_cover
    candidates = to_candidates(index_result.candidates)
    dense = [
        0.0 if dense is None else dense_weight * dense for dense in candidates.get_column("dense")
    ]
    return dense, [cover_weight * cover for cover in candidates.get_column("cover")]


def fuse_rrf(index_result: IndexResult, settings: Settings, _: float) -> RelevanceColumns:
    """Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""
    k = settings.rrf_k
    max_score = (bool(index_result.by_vector) + bool(index_result.by_terms)) / (k + 1)

    def score_rank(rank: int | None) -> float:
        return SCORE_SCALE / (k + rank) / max_score if rank else 0.0

    candidates = to_candidates(index_result.candidates)
    return list(map(score_rank, candidates.get_column("near"))), list(
        map(score_rank, candidates.get_column("words"))
    )


def fuse_anchored(index_result: IndexResult, settings: Settings, _: float) -> RelevanceColumns:
    """The vector leads and the words help: so much of the cosine, and the rest of a BM25 that saturates."""
    alpha, candidates = settings.fusion_alpha, to_candidates(index_result.candidates)
    dense = [
        SCORE_SCALE * alpha * max(cosine or 0.0, 0.0) for cosine in candidates.get_column("cosine")
    ]
    return dense, [
        SCORE_SCALE * (1.0 - alpha) * (bm25 / (bm25 + BM25_HALF))
        for bm25 in candidates.get_column("bm25")
    ]


def fuse_tiered(index_result: IndexResult, _: Settings, __: float) -> RelevanceColumns:
    """What similarity brings to the score of the tiers: the cosine, or without vectors the share of the query held."""
    full_cover, candidates = sqrt(index_result.total_weight), to_candidates(index_result.candidates)

    def score_cover(cover: float) -> float:
        return 0.0 if index_result.by_vector or not full_cover else min(cover / full_cover, 1.0)

    dense = [
        SCORE_SCALE * fuse_scores(similarity=max(cosine or 0.0, 0.0))
        for cosine in candidates.get_column("cosine")
    ]
    return dense, [
        SCORE_SCALE * fuse_scores(similarity=score_cover(cover))
        for cover in candidates.get_column("cover")
    ]


FUSION_METHODS: Mapping[str, Callable[[IndexResult, Settings, float], RelevanceColumns]] = {
    "weighted": fuse_weighted, "rrf": fuse_rrf, "anchored": fuse_anchored, FUSED_METHOD: fuse_tiered,
}  # fmt: skip
