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


def rrf(ranked: Ranked, *, k: int, depth: int, limit: int) -> tuple[list[Fused], int]:
    """The best of the lists together, and how many were in any; 1.0 is the first place in every list there is.

    Only the first `depth` of each list are fused. What lies deeper follows after all of them, in the order of the
    lists, so that asking for more never moves what was first.
    """
    near, words = _places(ranked.near), _places(ranked.words)
    totals: dict[int, float] = {}
    for places in (near, words):
        for seq, place in places.items():
            if place <= depth:
                totals[seq] = totals.get(seq, 0.0) + 1.0 / (k + place)
    order = [(-score, -seq) for seq, score in totals.items()]
    order.sort()
    if limit > len(order):
        deeper = dict.fromkeys(seq for places in (near, words) for seq in places if seq not in totals)
        order += [(-1.0 / (k + depth + place), -seq) for place, seq in enumerate(deeper, 1)]
    perfect = (bool(near) + bool(words)) / (k + 1)
    cosines, bm25s = dict(ranked.near), dict(ranked.words)
    fused = [
        Fused(-seq, -score / perfect, {
            "cosine": cosines.get(-seq), "cosine_rank": near.get(-seq),
            "bm25": bm25s.get(-seq), "bm25_rank": words.get(-seq),
        })
        for score, seq in order[:limit]
    ]  # fmt: skip
    return fused, len(order)


def _places(ranks: Sequence[tuple[int, float]]) -> dict[int, int]:
    return dict(zip([seq for seq, _ in ranks], range(1, len(ranks) + 1), strict=True))
