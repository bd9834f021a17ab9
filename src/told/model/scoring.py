"""Reference definition of every score: BM25, coverage and cosine of quantised vectors.

A backend may compute these faster but never differently: the formulas are written so that the same
IEEE operations in the same order give the same bits in plain Python and in vectorised code.
Statistics cover only the facts a read can see, so neither another tenant's data nor a later write
changes a score.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import dist, log, sqrt
from operator import mul
from typing import Any, Generic, TypeVar

from told.model.query import Candidate, IndexQuery, QueryWord

K1 = 1.2
B = 0.75
TF_CAP = 15
FIXED_POINT_ONE = 1 << 20
BYTE_BIAS = 128
BIASED_BYTES = bytes((value + BYTE_BIAS) % 256 for value in range(256))
BYTE_FLOATS = tuple(map(float, range(256)))
"""Precomputed floats, the fastest input of `math.dist`."""

INT16_MAX = 32767
QUERY_CODE_LENGTH = 4000
"""The length of a query code, small enough for exact single-precision sums in 1024 dimensions."""

PRIOR_COUNT = 20
"""The number of vectors at which the scope's mean weighs as much as the embedder's prior."""

NEIGHBOUR_WEIGHTS: tuple[tuple[int, float], ...] = ((-1, 0.8), (1, 0.6), (-2, 0.6), (2, 0.5))
"""The weight of a word in a neighbouring turn, by distance."""


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """The number of visible passages and of the terms they hold."""

    passage_count: int
    term_count: int

    @property
    def average_length(self) -> float:
        """Return the mean length of a passage."""
        return self.term_count / self.passage_count if self.term_count else 1.0


def idf(corpus: CorpusStatistics, document_frequency: int) -> float:
    """Return the inverse document frequency of a term."""
    return log(1.0 + (corpus.passage_count - document_frequency + 0.5) / (document_frequency + 0.5))


def bm25(weight: float, tf: int, length: int, average: float) -> float:
    """Return one term's share of a passage's score."""
    return weight * (tf * (K1 + 1.0)) / (tf + K1 * (1.0 - B + B * length / average))


def count_term_frequencies(terms: Sequence[str]) -> dict[str, int]:
    """Count terms, capped where BM25 is nearly flat."""
    counts_of_one = dict.fromkeys(terms, 1)
    if len(counts_of_one) == len(terms):
        return counts_of_one
    counts = Counter(terms)
    for term, count in counts.items():
        if count > TF_CAP:
            counts[term] = TF_CAP
    return counts


def quantise(vector: Sequence[float]) -> bytes:
    """Quantise a vector to one byte per dimension; its scale is lost, which cosine ignores."""
    peak = max(map(abs, vector), default=0.0)
    if not peak:
        return bytes(len(vector))
    scale = 127.0 / peak
    return array("b", map(round, [value * scale for value in vector])).tobytes()


def encode_query(vector: Sequence[float]) -> bytes:
    """Encode a query vector in two biased bytes per dimension, or empty if it is zero.

    Its own rounding must not matter beside the one-byte codes it is compared with. Its norm is
    taken of integers, so the order of summation does not matter.
    """
    peak = max(map(abs, vector), default=0.0)
    if not peak:
        return b""
    integers = [round(value / peak * INT16_MAX) for value in vector]
    scale = QUERY_CODE_LENGTH / sqrt(sum(map(mul, integers, integers)))
    return array("h", [round(value * scale) + BYTE_BIAS for value in integers]).tobytes()


def query_cosine(query_code: bytes, code: bytes) -> float:
    """Return the cosine of an encoded query with a quantised vector, zero if either is."""
    values, square = _decode_query(query_code)
    norms = sqrt(square) * norm(code)
    return (
        _dot_from_distance(dist(values, _decode_biased(code)), square, _squared_norm(code)) / norms
        if norms
        else 0.0
    )


def cosine(a: bytes, b: bytes) -> float:
    """Return the cosine of two quantised vectors, zero if either is."""
    norms = norm(a) * norm(b)
    return _dot_product(a, b) / norms if norms else 0.0


@lru_cache(maxsize=4096)
def norm(code: bytes) -> float:
    """Return the length of a quantised vector."""
    return sqrt(_squared_norm(code))


@lru_cache(maxsize=4096)
def _squared_norm(code: bytes) -> int:
    return _squared_length(_decode_biased(code))


@lru_cache(maxsize=16)
def _decode_query(query_code: bytes) -> tuple[tuple[float, ...], int]:
    """Return the values of a query code and its squared length."""
    values = tuple(map(float, array("h", query_code)))
    return values, _squared_length(values)


def _squared_length(values: tuple[float, ...]) -> int:
    """Return the squared length of biased values."""
    length = dist(values, (BYTE_FLOATS[BYTE_BIAS],) * len(values))
    return round(length * length)


@lru_cache(maxsize=512)
def _decode_biased(code: bytes) -> tuple[float, ...]:
    """Return the values of a code, biased to be non-negative, which decodes fastest."""
    return tuple([BYTE_FLOATS[value] for value in code.translate(BIASED_BYTES)])


@lru_cache(maxsize=4096)
def _dot_product(a: bytes, b: bytes) -> int:
    """Return the dot product of two codes."""
    a, b = a[: len(b)], b[: len(a)]
    return _dot_from_distance(
        dist(_decode_biased(a), _decode_biased(b)), _squared_norm(a), _squared_norm(b)
    )


def _dot_from_distance(distance: float, square_a: int, square_b: int) -> int:
    """Compute a dot product from a distance and two squared lengths.

    `math.dist` runs in C; all squares are integers far below 2 ** 53, so rounding is exact.
    """
    return (square_a + square_b - round(distance * distance)) // 2


@dataclass(frozen=True, slots=True)
class Centroid:
    """The quantised mean direction of a scope and its length, 1.0 if all vectors agree."""

    code: bytes = b""
    length: float = 0.0

    def hubness(self, cosine: float) -> float:
        """Return a passage's mean cosine with its scope, given its cosine with the centroid."""
        return self.length * cosine


def fixed_point_weight(norm: float) -> int:
    """Return a code's integer weight in a sum, so that the order does not matter."""
    return round(FIXED_POINT_ONE / norm)


def compute_centroid(
    total: Sequence[int], count: int, encode: Callable[[Sequence[float]], bytes] = quantise
) -> Centroid:
    """Return the centroid of `count` vectors, given the weighted sum of their codes."""
    return _cached_centroid(tuple(total), count, encode) if count and any(total) else Centroid()


@lru_cache(maxsize=256)
def _cached_centroid(
    total: tuple[int, ...], count: int, encode: Callable[[Sequence[float]], bytes]
) -> Centroid:
    """Compute a centroid; cached because only writes change it."""
    return Centroid(encode(total), sqrt(sum(map(mul, total, total))) / (FIXED_POINT_ONE * count))


def centred_cosine(cosine: float, hubness: float, centring: float) -> float:
    """Subtract a share of the scope's mean direction from a cosine."""
    return cosine - centring * hubness


def sample_confidence(count: int) -> float:
    """Return the confidence in the mean of this many vectors."""
    return count / (count + PRIOR_COUNT)


def expected_cosine(
    centroid_cosine: float, centroid: Centroid, centring: float, usual: float, confidence: float
) -> float:
    """Return the expected centred cosine, mixing the scope's average with the embedder's prior.

    `centroid_cosine` is the cosine of the query with the centroid.
    """
    return centred_cosine(
        confidence * centroid.hubness(centroid_cosine) + (1.0 - confidence) * usual,
        centroid.length * centroid.length,
        centring,
    )


def query_coverage(matched_weight: float, total_weight: float) -> float:
    """Return the share of a query covered by the terms that a turn contains."""
    return matched_weight / sqrt(total_weight) if total_weight else 0.0


def find_named_speakers(
    speakers: Iterable[str], words: Sequence[QueryWord]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the speakers a query names, in full or abbreviated, and the terms that name them."""
    named_speakers: dict[str, None] = {}
    terms: set[str] = set()
    for speaker in sorted(set(speakers)):
        names = speaker.casefold().split()
        for word in words:
            may_abbreviate = word.is_capitalised and len(word.text) > 2
            if any(
                name == word.text or (may_abbreviate and name.startswith(word.text))
                for name in names
            ):
                named_speakers[speaker] = None
                terms.update(word.terms)
    return tuple(named_speakers), frozenset(terms)


def select_query_terms(terms: Sequence[str], name_terms: frozenset[str]) -> frozenset[str]:
    """Return the query terms without names, or all of them if there are only names."""
    return frozenset(terms) - name_terms or frozenset(terms)


def rank_top(scores: Mapping[int, float], depth: int) -> list[tuple[int, float]]:
    """Return the best positions with their scores; ties go to the newer."""
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:depth]


@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """An index query with the statistics of everything the read can see.

    `centring` is the effective share of the mean direction to subtract, and `expected_cosine` the
    average cosine after that.
    """

    index_query: IndexQuery
    term_weights: Mapping[str, float]
    average_length: float
    named_speakers: tuple[str, ...] = ()
    query_code: bytes = b""
    centroid: Centroid = field(default_factory=Centroid)
    centring: float = 0.0
    expected_cosine: float = 0.0
    passage_count: int = 0

    @property
    def total_weight(self) -> float:
        """Return the sum of the query's term weights."""
        return sum(self.term_weights.values())


def build_query_statistics(
    index_query: IndexQuery,
    query_code: bytes,
    corpus: CorpusStatistics,
    document_frequencies: Sequence[int],
    speakers: Iterable[str],
    centroid: Centroid,
    vector_count: int,
    cosine_fn: Callable[[bytes, bytes], float] = query_cosine,
) -> QueryStatistics:
    """Combine a query with the statistics of the visible corpus.

    `vector_count` vectors make up the centroid; `cosine_fn` compares the query with a code.
    """
    terms = tuple(dict.fromkeys(index_query.terms))
    named_speakers, name_terms = (
        find_named_speakers(speakers, index_query.words) if index_query.words else ((), frozenset())
    )
    counted_terms = select_query_terms(terms, name_terms)
    pairs = zip(terms, document_frequencies, strict=True)
    term_weights = {
        term: idf(corpus, frequency) if term in counted_terms else 0.0 for term, frequency in pairs
    }
    confidence = sample_confidence(vector_count)
    centring = index_query.centre * confidence
    centroid_cosine = (
        cosine_fn(query_code, centroid.code) if query_code and centroid.length else 0.0
    )
    expected = (
        expected_cosine(centroid_cosine, centroid, centring, index_query.usual, confidence)
        if query_code
        else 0.0
    )
    return QueryStatistics(
        index_query,
        term_weights,
        corpus.average_length,
        named_speakers,
        query_code,
        centroid,
        centring,
        expected,
        corpus.passage_count,
    )


K = TypeVar("K", int, tuple[int, int])
UNRANKED = 1 << 62


@dataclass(frozen=True, slots=True)
class PassageOrigin:
    """The fact, slot, time, conversation and speaker of a passage."""

    seq: int
    slot: int
    said_at: int
    talk: int
    role: str | None
    actor: str | None


def sum_codes(codes: Iterable[bytes]) -> tuple[Sequence[int], int]:
    """Return the weighted sum of codes and their number."""
    total: list[int] = []
    count = 0
    for code in codes:
        weight, values = fixed_point_weight(norm(code)), memoryview(code).cast("b")
        total = [a + weight * b for a, b in zip(total or [0] * len(values), values, strict=True)]
        count += 1
    return total, count


@dataclass(frozen=True, slots=True)
class TurnOrder(Generic[K]):
    """The order of visible turns; if several follow one turn, the first counts."""

    before: Mapping[K, K]
    after: Mapping[K, K]

    @classmethod
    def from_previous(cls, before: Mapping[K, K]) -> TurnOrder[K]:
        """Build the order from each turn's predecessor, in write order."""
        after: dict[K, K] = {}
        for key, previous in before.items():
            after.setdefault(previous, key)
        return cls(before, after)

    def neighbour_at(self, key: K, distance: int) -> K | None:
        """Return the turn at a distance, negative for earlier."""
        links, current = self.after if distance > 0 else self.before, key
        for _ in range(abs(distance)):
            if current not in links:
                return None
            current = links[current]
        return current

    def weighted_window(self, key: K) -> list[tuple[K, float]]:
        """Return a turn and its neighbours with their word weights."""
        window = [(key, 1.0)]
        for distance, weight in NEIGHBOUR_WEIGHTS:
            if (neighbour := self.neighbour_at(key, distance)) is not None:
                window.append((neighbour, weight))
        return window


@dataclass(slots=True)
class PassageScorer(Generic[K]):
    """Scores of the visible passages for one query."""

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
        """Return a passage's BM25 score, adding terms in query order."""
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
        """Return the weight of terms in a turn or near it, each at its best place."""
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
        """Return a turn's cosine above the expected one, averaged with the next turn."""
        own, after = self.centred_cosines.get(key), self.turn_order.after.get(key)
        next_score = None if after is None else self.centred_cosines.get(after)
        if own is None:
            return None
        return (own if next_score is None else (own + next_score) / 2) - self.stats.expected_cosine

    def rank_best(self, scores: Mapping[K, float], selected: Iterable[K]) -> list[tuple[float, K]]:
        """Return the best selected passages by score, up to the depth; ties go to the newer."""
        ranked = [(scores[key], key) for key in selected if key in scores]
        return sorted(ranked, reverse=True)[: self.stats.index_query.depth]

    def select_candidates(
        self, best_ranks_by_key: Mapping[K, int], selected: Mapping[K, PassageOrigin]
    ) -> list[K]:
        """Return the candidates: ranked passages, their neighbours and requested ones."""
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
        """Return a passage with all its scores."""
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
    """Return the better rank of each passage in the two lists."""
    return {
        key: min(vector_ranks.get(key, UNRANKED), word_ranks.get(key, UNRANKED))
        for key in vector_ranks.keys() | word_ranks.keys()
    }
