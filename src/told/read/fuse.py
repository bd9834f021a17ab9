"""Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from told.core.query import Match


@dataclass(frozen=True, slots=True)
class Fused:
    """A match with its fused score in [0, 1] and the parts it is made of."""

    seq: int
    score: float
    parts: Mapping[str, float | None]


def rrf(matches: Sequence[Match], k: int) -> list[Fused]:
    """The matches, best first; 1.0 is the first place in every list there is."""
    by_cosine = _ranks({m.seq: m.cosine for m in matches if m.cosine is not None})
    by_words = _ranks({m.seq: m.bm25 for m in matches if m.bm25 is not None})
    lists = [ranks for ranks in (by_cosine, by_words) if ranks]
    best = len(lists) / (k + 1)
    fused = []
    for match in matches:
        total = 0.0
        for ranks in lists:
            if match.seq in ranks:
                total += 1.0 / (k + ranks[match.seq])
        parts: dict[str, float | None] = {
            "cosine": match.cosine, "bm25": match.bm25,
            "cosine_rank": by_cosine.get(match.seq), "bm25_rank": by_words.get(match.seq),
        }  # fmt: skip
        fused.append(Fused(match.seq, total / best, parts))
    return sorted(fused, key=lambda item: (-item.score, -item.seq))


def _ranks(scores: Mapping[int, float]) -> dict[int, int]:
    order = sorted(scores, key=lambda seq: (-scores[seq], -seq))
    return {seq: place for place, seq in enumerate(order, 1)}
