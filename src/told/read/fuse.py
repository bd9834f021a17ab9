"""How relevant a passage is by its vector and its words together, each way on a scale of about ten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import TypeAlias

from told.core.query import Mark, Ranked
from told.core.tiers import fused_score
from told.settings import Settings

SCALE = 10.0
FUSED = "fused"
"""The way of fusing by which nothing counts but how similar, recent and important something is."""

HALF = 4.0
"""The BM25 score that is half of what any could be worth."""

Relevance: TypeAlias = tuple[list[float], list[float]]
"""What the vectors of the passages offered bring to their relevance, and what their words do."""


def fusion(found: Ranked, settings: Settings, spread: float) -> Relevance:
    """How relevant everything offered is, by the way of fusing that the settings name."""
    return WAYS[settings.fusion](found, settings, spread)


def weighted(found: Ranked, settings: Settings, spread: float) -> Relevance:
    """How many spreads nearer than the average, and how much of the query is covered."""
    near, held = settings.rank_dense / spread, settings.rank_cover
    dense = [0.0 if mark.dense is None else near * mark.dense for mark in found.marks]
    return dense, [held * mark.cover for mark in found.marks]


def rrf(found: Ranked, settings: Settings, _: float) -> Relevance:
    """Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""
    k = settings.rrf_k
    perfect = (bool(found.near) + bool(found.words)) / (k + 1)

    def part(place: int | None) -> float:
        return SCALE / (k + place) / perfect if place else 0.0

    return [part(mark.near) for mark in found.marks], [part(mark.words) for mark in found.marks]


def anchored(found: Ranked, settings: Settings, _: float) -> Relevance:
    """The vector leads and the words help: so much of the cosine, and the rest of a BM25 that saturates."""
    alpha = settings.fusion_alpha
    dense = [SCALE * alpha * max(mark.cosine or 0.0, 0.0) for mark in found.marks]
    return dense, [SCALE * (1.0 - alpha) * (mark.bm25 / (mark.bm25 + HALF)) for mark in found.marks]


def fused(found: Ranked, _: Settings, __: float) -> Relevance:
    """What similarity brings to the score of the tiers: the cosine, or without vectors the share of the query held."""
    whole = sqrt(found.mass)

    def words(mark: Mark) -> float:
        return 0.0 if found.near or not whole else min(mark.cover / whole, 1.0)

    dense = [SCALE * fused_score(similarity=max(mark.cosine or 0.0, 0.0)) for mark in found.marks]
    return dense, [SCALE * fused_score(similarity=words(mark)) for mark in found.marks]


WAYS: Mapping[str, Callable[[Ranked, Settings, float], Relevance]] = {
    "weighted": weighted, "rrf": rrf, "anchored": anchored, FUSED: fused,
}  # fmt: skip
