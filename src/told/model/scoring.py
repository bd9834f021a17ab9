"""The definition of every score: BM25 and coverage of one scope, and cosine of quantised vectors.

A backend may compute these faster, never differently: the formulas are written so that the same IEEE operations in the
same order give the same bits in plain Python and in vectorised code. Statistics are those of the facts a read can see,
so neither another tenant's data nor a later write can move a score.
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
from told.runtime import fast_frozen_init

K1 = 1.2
B = 0.75
TF_CAP = 15
FIXED_POINT_ONE = 1 << 20
BYTE_BIAS = 128
BIASED_BYTES = bytes((value + BYTE_BIAS) % 256 for value in range(256))
BYTE_FLOATS = tuple(map(float, range(256)))
"""What `math.dist` is quickest with, each made once for all codes."""

INT16_MAX = 32767
QUERY_CODE_LENGTH = 4000
"""The length of a query's code: its own square, and products of 1024 dimensions, add up exactly in single precision."""

PRIOR_COUNT = 20
"""So many vectors tell as much of what is usual as the embedder itself says."""

NEIGHBOUR_WEIGHTS: tuple[tuple[int, float], ...] = ((-1, 0.8), (1, 0.6), (-2, 0.6), (2, 0.5))
"""How much a word counts for a turn when it stands in the turn before it, after it, and so on."""


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """How many passages a read can see, and how many terms they hold."""

    passage_count: int
    term_count: int

    @property
    def average_length(self) -> float:
        """The mean length of a passage."""
        return self.term_count / self.passage_count if self.term_count else 1.0


def idf(corpus: CorpusStatistics, document_frequency: int) -> float:
    """How much a term tells, given how many visible passages contain it."""
    return log(1.0 + (corpus.passage_count - document_frequency + 0.5) / (document_frequency + 0.5))


def bm25(weight: float, tf: int, length: int, average: float) -> float:
    """One term's part of a passage's score."""
    return weight * (tf * (K1 + 1.0)) / (tf + K1 * (1.0 - B + B * length / average))


def count_term_frequencies(terms: Sequence[str]) -> dict[str, int]:
    """How often each term occurs, capped where BM25 has long been flat."""
    counts_of_one = dict.fromkeys(terms, 1)
    if len(counts_of_one) == len(terms):
        return counts_of_one
    counts = Counter(terms)
    for term, count in counts.items():
        if count > TF_CAP:
            counts[term] = TF_CAP
    return counts


def quantise(vector: Sequence[float]) -> bytes:
    """Eight bits for each dimension; cosine does not care about the scale that is lost."""
    peak = max(map(abs, vector), default=0.0)
    if not peak:
        return bytes(len(vector))
    scale = 127.0 / peak
    return array("b", map(round, [value * scale for value in vector])).tobytes()


def encode_query(vector: Sequence[float]) -> bytes:
    """A query in two bytes for each dimension, raised like the values of any code; nothing, if it has no direction.

    What it is held against is rounded to one byte; its own rounding shall not show beside that. It is made of whole
    numbers before its length is taken, so that no order of summing matters.
    """
    peak = max(map(abs, vector), default=0.0)
    if not peak:
        return b""
    integers = [round(value / peak * INT16_MAX) for value in vector]
    scale = QUERY_CODE_LENGTH / sqrt(sum(map(mul, integers, integers)))
    return array("h", [round(value * scale) + BYTE_BIAS for value in integers]).tobytes()


def query_cosine(query_code: bytes, code: bytes) -> float:
    """The cosine of a query, as `fine` has it, with a quantised vector; zero when that is empty."""
    values, square = _decode_query(query_code)
    norms = sqrt(square) * norm(code)
    return (
        _dot_from_distance(dist(values, _decode_biased(code)), square, _squared_norm(code)) / norms
        if norms
        else 0.0
    )


def cosine(a: bytes, b: bytes) -> float:
    """The cosine of two quantised vectors; zero when either is empty."""
    norms = norm(a) * norm(b)
    return _dot_product(a, b) / norms if norms else 0.0


@lru_cache(maxsize=4096)
def norm(code: bytes) -> float:
    """The length of a quantised vector."""
    return sqrt(_squared_norm(code))


@lru_cache(maxsize=4096)
def _squared_norm(code: bytes) -> int:
    return _squared_length(_decode_biased(code))


@lru_cache(maxsize=16)
def _decode_query(query_code: bytes) -> tuple[tuple[float, ...], int]:
    """The values of a query's code and the square of its length."""
    values = tuple(map(float, array("h", query_code)))
    return values, _squared_length(values)


def _squared_length(values: tuple[float, ...]) -> int:
    """The square of the length of raised values."""
    length = dist(values, (BYTE_FLOATS[BYTE_BIAS],) * len(values))
    return round(length * length)


@lru_cache(maxsize=512)
def _decode_biased(code: bytes) -> tuple[float, ...]:
    """The values of a code, each raised so that none is negative, for bytes come apart quickest that way."""
    return tuple([BYTE_FLOATS[value] for value in code.translate(BIASED_BYTES)])


@lru_cache(maxsize=4096)
def _dot_product(a: bytes, b: bytes) -> int:
    """The product of two codes."""
    a, b = a[: len(b)], b[: len(a)]
    return _dot_from_distance(
        dist(_decode_biased(a), _decode_biased(b)), _squared_norm(a), _squared_norm(b)
    )


def _dot_from_distance(distance: float, square_a: int, square_b: int) -> int:
    """The product of two codes by way of the distance between them, which is done in C, and the squares of lengths.

    All these squares are whole numbers far below 2 ** 53, so rounding brings them back exactly.
    """
    return (square_a + square_b - round(distance * distance)) // 2


@dataclass(frozen=True, slots=True)
class Centroid:
    """The mean direction of a scope's vectors, quantised, and its length: 1.0 when they all point one way."""

    code: bytes = b""
    length: float = 0.0

    def hubness(self, cosine: float) -> float:
        """The mean cosine of a passage with all others of its scope, given its cosine with the centre."""
        return self.length * cosine


def fixed_point_weight(norm: float) -> int:
    """What a code counts for in a sum of unit vectors: whole numbers, so that no order of summing matters."""
    return round(FIXED_POINT_ONE / norm)


def compute_centroid(
    total: Sequence[int], count: int, encode: Callable[[Sequence[float]], bytes] = quantise
) -> Centroid:
    """The centre of so many vectors, given the sum of their codes, each times its share; `code` quantises it."""
    return _cached_centroid(tuple(total), count, encode) if count and any(total) else Centroid()


@lru_cache(maxsize=256)
def _cached_centroid(
    total: tuple[int, ...], count: int, encode: Callable[[Sequence[float]], bytes]
) -> Centroid:
    """The same, remembered: it changes with every write and with no read."""
    return Centroid(encode(total), sqrt(sum(map(mul, total, total))) / (FIXED_POINT_ONE * count))


def centred_cosine(cosine: float, hubness: float, centring: float) -> float:
    """A cosine with some of the scope's mean direction taken off."""
    return cosine - centring * hubness


def sample_confidence(count: int) -> float:
    """How much the mean of so many vectors tells of what is usual; that of a few tells little."""
    return count / (count + PRIOR_COUNT)


def expected_cosine(
    centroid_cosine: float, centroid: Centroid, centring: float, usual: float, confidence: float
) -> float:
    """What `above` comes to on the average: that of the scope, as far as it is trusted, and else what is usual.

    `near` is the cosine of the query with the centre.
    """
    return centred_cosine(
        confidence * centroid.hubness(centroid_cosine) + (1.0 - confidence) * usual,
        centroid.length * centroid.length,
        centring,
    )


def query_coverage(matched_weight: float, total_weight: float) -> float:
    """How much of a query a turn holds, given what the terms it has tell and what all of them tell."""
    return matched_weight / sqrt(total_weight) if total_weight else 0.0


def find_named_speakers(
    speakers: Iterable[str], words: Sequence[QueryWord]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """The speakers a query names, by a name of theirs or the capitalised beginning of one, and the terms that do."""
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
    """The terms of a query that count: all but names, unless it is nothing but names."""
    return frozenset(terms) - name_terms or frozenset(terms)


def rank_top(scores: Mapping[int, float], depth: int) -> list[tuple[int, float]]:
    """The best positions with their scores; equals go to the newer one."""
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:depth]


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """A probe as every part of an index answers it: with the statistics of everything the read can see.

    `off` is how much of the mean direction is really taken off, and `level` how near a passage then is on the average.
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
        """What all terms of the query tell together."""
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
    """What is asked, given its vector's code and what is visible: how much, with which terms, by whom, and where.

    The last is the centre of so many vectors; `toward` is what the cosine of a query with a code is found by.
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
