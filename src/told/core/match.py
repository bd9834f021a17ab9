"""How well passages match a query, in plain Python: what every index computes, however it does it.

A passage is any key that grows in the order passages were written; what is said of passages is said by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from told.core.query import Candidate
from told.core.question import QueryStatistics
from told.core.score import (
    NEIGHBOUR_WEIGHTS,
    bm25,
    centred_cosine,
    cosine,
    fixed_point_weight,
    norm,
    query_cosine,
    query_coverage,
)

K = TypeVar("K", int, tuple[int, int])
UNRANKED = 1 << 62


@dataclass(frozen=True, slots=True)
class PassageOrigin:
    """Who said a passage, in which slot of which fact, when, and in which conversation."""

    seq: int
    slot: int
    said_at: int
    talk: int
    role: str | None
    actor: str | None


def sum_codes(codes: Iterable[bytes]) -> tuple[Sequence[int], int]:
    """The sum of codes, each times its share, and how many there are."""
    total: list[int] = []
    count = 0
    for code in codes:
        weight, values = fixed_point_weight(norm(code)), memoryview(code).cast("b")
        total = [a + weight * b for a, b in zip(total or [0] * len(values), values, strict=True)]
        count += 1
    return total, count


@dataclass(frozen=True, slots=True)
class TurnOrder(Generic[K]):
    """Which visible turn was said after which; of several after one, the first."""

    before: Mapping[K, K]
    after: Mapping[K, K]

    @classmethod
    def from_previous(cls, before: Mapping[K, K]) -> TurnOrder[K]:
        """From the turn before each, in the order they were written."""
        after: dict[K, K] = {}
        for key, previous in before.items():
            after.setdefault(previous, key)
        return cls(before, after)

    def neighbour_at(self, key: K, distance: int) -> K | None:
        """The turn so many turns later, or earlier."""
        links, current = self.after if distance > 0 else self.before, key
        for _ in range(abs(distance)):
            if current not in links:
                return None
            current = links[current]
        return current

    def weighted_window(self, key: K) -> list[tuple[K, float]]:
        """A turn and those around it, each with what its words count for."""
        window = [(key, 1.0)]
        for distance, weight in NEIGHBOUR_WEIGHTS:
            if (neighbour := self.neighbour_at(key, distance)) is not None:
                window.append((neighbour, weight))
        return window


@dataclass(slots=True)
class PassageScorer(Generic[K]):
    """The visible passages held against a question: their lengths, their terms of it, their vectors and their turns."""

    stats: QueryStatistics
    lengths: Mapping[K, int]
    term_counts: Mapping[K, Mapping[str, int]]
    codes: Mapping[K, bytes]
    turn_order: TurnOrder[K]
    cosines: dict[K, float] = field(init=False)
    hubness: dict[K, float] = field(init=False)
    centred_cosines: dict[K, float] = field(init=False)
    bm25_scores: dict[K, float] = field(init=False)

    def __post_init__(self) -> None:
        query_code, centroid = self.stats.query_code, self.stats.centroid
        codes = {key: code for key, code in self.codes.items() if any(code)} if query_code else {}
        self.cosines = {key: query_cosine(query_code, code) for key, code in codes.items()}
        self.hubness = {
            key: centroid.hubness(cosine(centroid.code, code))
            for key, code in codes.items()
            if centroid.length
        }
        centring = self.stats.centring
        self.centred_cosines = {
            key: centred_cosine(raw_cosine, self.hubness.get(key, 0.0), centring)
            for key, raw_cosine in self.cosines.items()
        }
        self.bm25_scores = {key: self._score_bm25(key) for key in self.term_counts}

    def _score_bm25(self, key: K) -> float:
        """A passage's score by its words; each term counts once, in the order it was asked in."""
        counts, length, average = (
            self.term_counts[key],
            self.lengths[key],
            self.stats.average_length,
        )
        score = 0.0
        for term, weight in self.stats.term_weights.items():
            if term in counts:
                score += bm25(weight, counts[term], length, average)
        return score

    def matched_weight(self, key: K) -> float:
        """What the terms tell that stand in a turn or near it, each counted where it counts most."""
        window, total = self.turn_order.weighted_window(key), 0.0
        for term, weight in self.stats.term_weights.items():
            total += weight * max(
                (
                    factor
                    for neighbour, factor in window
                    if term in self.term_counts.get(neighbour, ())
                ),
                default=0.0,
            )
        return total

    def dense_score(self, key: K) -> float | None:
        """How much nearer than the average a turn is, over its own window and that of the turn after it."""
        own, after = self.centred_cosines.get(key), self.turn_order.after.get(key)
        next_score = None if after is None else self.centred_cosines.get(after)
        if own is None:
            return None
        return (own if next_score is None else (own + next_score) / 2) - self.stats.expected_cosine

    def rank_best(self, scores: Mapping[K, float], selected: Iterable[K]) -> list[tuple[float, K]]:
        """The best of the chosen by some scores, at most as deep as asked; equals go to the newer."""
        ranked = [(scores[key], key) for key in selected if key in scores]
        return sorted(ranked, reverse=True)[: self.stats.index_query.depth]

    def select_candidates(
        self, best_ranks_by_key: Mapping[K, int], selected: Mapping[K, PassageOrigin]
    ) -> list[K]:
        """What is offered of the chosen: what is listed, the turns around the first, and what the probe asks for."""
        index_query = self.stats.index_query
        offered = set(best_ranks_by_key)
        for key, rank in best_ranks_by_key.items():
            if rank <= index_query.neighbour_depth:
                offered.update(neighbour for neighbour, _ in self.turn_order.weighted_window(key))
        offered.update(
            key for key, origin in selected.items() if origin.seq in index_query.extra_seqs
        )
        in_spans = [
            key
            for key, origin in selected.items()
            if any(a <= origin.said_at < b for a, b in index_query.time_spans)
        ]
        offered.update(sorted(in_spans)[-index_query.depth :])
        return sorted(key for key in offered if key in selected)

    def build_candidate(
        self, key: K, origin: PassageOrigin, vector_rank: int | None, word_rank: int | None
    ) -> Candidate:
        """Everything known of a passage."""
        code: Any = self.codes.get(key, b"") if self.stats.query_code else b""
        return Candidate(
            origin.seq,
            origin.slot,
            origin.said_at,
            origin.talk,
            origin.role,
            origin.actor,
            self.cosines.get(key),
            self.dense_score(key),
            self.hubness.get(key, 0.0),
            self.bm25_scores.get(key, 0.0),
            query_coverage(self.matched_weight(key), self.stats.total_weight),
            vector_rank,
            word_rank,
            bytes(code),
        )


def best_ranks(vector_ranks: Mapping[K, int], word_ranks: Mapping[K, int]) -> dict[K, int]:
    """The better of the places each passage has in the two lists."""
    return {
        key: min(vector_ranks.get(key, UNRANKED), word_ranks.get(key, UNRANKED))
        for key in vector_ranks.keys() | word_ranks.keys()
    }
