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

Relevance: TypeAlias = list[tuple[float, float]]
"""What the vector and the words of each passage offered bring to its relevance."""


def fusion(found: Ranked, settings: Settings, spread: float) -> Relevance:
    """How relevant everything offered is, by the way of fusing that the settings name."""
    return WAYS[settings.fusion](found, settings, spread)


def weighted(found: Ranked, settings: Settings, spread: float) -> Relevance:
    """How many spreads nearer than the average, and how much of the query is covered."""
    dense, cover = settings.rank_dense / spread, settings.rank_cover
    return [(0.0 if mark.dense is None else dense * mark.dense, cover * mark.cover) for mark in found.marks]


def rrf(found: Ranked, settings: Settings, _: float) -> Relevance:
    """Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""
    k = settings.rrf_k
    perfect = (bool(found.near) + bool(found.words)) / (k + 1)

    def part(place: int | None) -> float:
        return SCALE / (k + place) / perfect if place else 0.0

    return [(part(mark.near), part(mark.words)) for mark in found.marks]


def anchored(found: Ranked, settings: Settings, _: float) -> Relevance:
    """The vector leads and the words help: so much of the cosine, and the rest of a BM25 that saturates."""
    alpha = settings.fusion_alpha

    def parts(mark: Mark) -> tuple[float, float]:
        words = mark.bm25 / (mark.bm25 + HALF)
        return SCALE * alpha * max(mark.cosine or 0.0, 0.0), SCALE * (1.0 - alpha) * words

    return list(map(parts, found.marks))


def fused(found: Ranked, _: Settings, __: float) -> Relevance:
    """What similarity brings to the score of the tiers: the cosine, or without vectors the share of the query held."""
    whole = sqrt(found.mass)

    def parts(mark: Mark) -> tuple[float, float]:
        words = 0.0 if found.near or not whole else min(mark.cover / whole, 1.0)
        return SCALE * fused_score(similarity=max(mark.cosine or 0.0, 0.0)), SCALE * fused_score(similarity=words)

    return list(map(parts, found.marks))


WAYS: Mapping[str, Callable[[Ranked, Settings, float], Relevance]] = {
    "weighted": weighted, "rrf": rrf, "anchored": anchored, FUSED: fused,
}  # fmt: skip
