"""Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from told.core.query import Ranked


@dataclass(frozen=True, slots=True)
class Fused:
    """A ledger position with its fused score in [0, 1] and the parts it is made of."""

    seq: int
    score: float
    parts: Mapping[str, float | None]


def rrf(ranked: Ranked, k: int, limit: int) -> tuple[list[Fused], int]:
    """The best of the lists together, and how many were in any; 1.0 is the first place in every list there is."""
    lists = [ranks for ranks in (ranked.near, ranked.words) if ranks]
    totals: dict[int, float] = {}
    for ranks in lists:
        for place, (seq, _) in enumerate(ranks, k + 1):
            totals[seq] = totals.get(seq, 0.0) + 1.0 / place
    best = sorted(((-score, -seq) for seq, score in totals.items()))[:limit]
    perfect = len(lists) / (k + 1)
    near, words = _places(ranked.near), _places(ranked.words)
    return [Fused(-seq, -score / perfect, _parts(-seq, near, words)) for score, seq in best], len(totals)


Places = Mapping[int, tuple[int, float]]


def _places(ranks: Sequence[tuple[int, float]]) -> Places:
    return {seq: (place, score) for place, (seq, score) in enumerate(ranks, 1)}


def _parts(seq: int, near: Places, words: Places) -> dict[str, float | None]:
    near_rank, cosine = near.get(seq, (None, None))
    word_rank, bm25 = words.get(seq, (None, None))
    return {"cosine": cosine, "cosine_rank": near_rank, "bm25": bm25, "bm25_rank": word_rank}
