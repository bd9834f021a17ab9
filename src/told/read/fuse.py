"""Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
    near = [seq for seq, _ in ranked.near]
    words = [seq for seq, _ in ranked.words]
    weights = _weights(k, depth)
    totals = dict(zip(near, weights, strict=False))
    for seq, weight in zip(words, weights, strict=False):
        totals[seq] = totals.get(seq, 0.0) + weight
    order = [(-score, -seq) for seq, score in totals.items()]
    order.sort()
    if limit > len(order):
        deeper = dict.fromkeys(seq for seq in (*near, *words) if seq not in totals)
        order += [(-1.0 / (k + depth + place), -seq) for place, seq in enumerate(deeper, 1)]
    perfect = (bool(near) + bool(words)) / (k + 1)
    lists = (dict(ranked.near), _places(near), dict(ranked.words), _places(words))
    return [Fused(-seq, -score / perfect, _parts(-seq, *lists)) for score, seq in order[:limit]], len(order)


@lru_cache(maxsize=8)
def _weights(k: int, depth: int) -> tuple[float, ...]:
    """What each place in a list is worth."""
    return tuple(1.0 / (k + place) for place in range(1, depth + 1))


def _places(seqs: Sequence[int]) -> dict[int, int]:
    return dict(zip(seqs, range(1, len(seqs) + 1), strict=True))


def _parts(
    seq: int, cosines: Mapping[int, float], near: Mapping[int, int], bm25s: Mapping[int, float],
    words: Mapping[int, int],
) -> dict[str, float | None]:  # fmt: skip
    return {
        "cosine": cosines.get(seq), "cosine_rank": near.get(seq), "bm25": bm25s.get(seq), "bm25_rank": words.get(seq),
    }  # fmt: skip
