"""How relevant a passage is by its vector and its words together, each way on a scale of about ten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import TypeAlias

from told.core.query import Ranked, columns
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
    marks = columns(found.marks)
    dense = [0.0 if dense is None else near * dense for dense in marks.column("dense")]
    return dense, [held * cover for cover in marks.column("cover")]


def rrf(found: Ranked, settings: Settings, _: float) -> Relevance:
    """Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""
    k = settings.rrf_k
    perfect = (bool(found.near) + bool(found.words)) / (k + 1)

    def part(place: int | None) -> float:
        return SCALE / (k + place) / perfect if place else 0.0

    marks = columns(found.marks)
    return list(map(part, marks.column("near"))), list(map(part, marks.column("words")))


def anchored(found: Ranked, settings: Settings, _: float) -> Relevance:
    """The vector leads and the words help: so much of the cosine, and the rest of a BM25 that saturates."""
    alpha, marks = settings.fusion_alpha, columns(found.marks)
    dense = [SCALE * alpha * max(cosine or 0.0, 0.0) for cosine in marks.column("cosine")]
    return dense, [SCALE * (1.0 - alpha) * (bm25 / (bm25 + HALF)) for bm25 in marks.column("bm25")]


def fused(found: Ranked, _: Settings, __: float) -> Relevance:
    """What similarity brings to the score of the tiers: the cosine, or without vectors the share of the query held."""
    whole, marks = sqrt(found.mass), columns(found.marks)

    def words(cover: float) -> float:
        return 0.0 if found.near or not whole else min(cover / whole, 1.0)

    dense = [SCALE * fused_score(similarity=max(cosine or 0.0, 0.0)) for cosine in marks.column("cosine")]
    return dense, [SCALE * fused_score(similarity=words(cover)) for cover in marks.column("cover")]


WAYS: Mapping[str, Callable[[Ranked, Settings, float], Relevance]] = {
    "weighted": weighted, "rrf": rrf, "anchored": anchored, FUSED: fused,
}  # fmt: skip
