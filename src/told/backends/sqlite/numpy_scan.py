"""Search a partition's visible rows with NumPy.

The search is exact while the partition is small and preselects with a one-bit sketch when it is
large. Codes are small integers, so float32 sums over a block of dimensions are exact, and float64
sums of blocks are too: the order of summation does not matter. Sketch results are scored exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from told.backends.sqlite.partition import PartitionRanking, PartitionResult, Speaker
from told.backends.sqlite.vectors import pack_vector, unpack_query
from told.model.query import Candidate, Candidates
from told.model.scoring import (
    K1,
    NEIGHBOUR_WEIGHTS,
    TF_CAP,
    B,
    Centroid,
    CorpusStatistics,
    QueryStatistics,
    compute_centroid,
    norm,
)
from told.runtime import cached_property

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"
Array: TypeAlias = "npt.NDArray[Any]"

MIN_RESCORED: Final = 400
RESCORED_DIVISOR: Final = 50
EXACT_DIMS: Final = 1024
TF_GAINS: Final = np.arange(TF_CAP + 1) * (K1 + 1.0)
CODE_CACHE_SIZE: Final = 4096
NO_TURN: Final = -1
NO_VECTOR_VALUES: Final[Mapping[str, Any]] = {
    "cosine": None,
    "dense": None,
    "hub": 0.0,
    "code": b"",
}
"""Values of vector-only fields for passages without a vector."""


class PassageColumns(NamedTuple):
    """The columns of a partition's passages; see `partition.PassageRow`."""

    seq: Ints
    space: Ints
    until: Ints
    expires: Ints
    length: Ints
    slot: Ints
    before: Ints
    said_at: Ints
    counted: Ints
    speaker: Ints
    first_turn: Ints


class QueryPostings(NamedTuple):
    """The concatenated postings of all query terms and each one's term index."""

    ordinals: Ints
    tf: Array
    term_indices: Ints
    term_count: int


class CodeMatrix(NamedTuple):
    """The vectors of all passages and a mask of which exist; missing ones have length 1.

    `apart` caches recently extracted codes.
    """

    rows: Array
    norms: Floats
    sketch: Array
    has_vector: Mask
    code_cache: dict[int, bytes]

    def get_codes(self, ordinals: Ints) -> Sequence[bytes | None]:
        """Return codes one by one, cached because slicing an array is slow."""
        keys = ordinals.tolist()
        codes: list[Any] = list(map(self.code_cache.get, keys))
        if None in codes:
            body, dim = self.rows[ordinals].astype(np.int8).tobytes(), self.rows.shape[1]
            codes = [body[start : start + dim] for start in range(0, len(body), dim)]
            if len(self.code_cache) + len(codes) > CODE_CACHE_SIZE:
                self.code_cache.clear()
            self.code_cache.update(
                pair for pair in zip(keys, codes, strict=True) if self.has_vector[pair[0]]
            )
        return codes


class LazySimilarities:
    """Cosines of passages with a direction, computed on demand or all at once."""

    def __init__(
        self, codes: CodeMatrix, direction: Array, direction_norm: float, scale: float = 1.0
    ) -> None:
        self._codes = codes
        self._direction = direction
        self._direction_norm = direction_norm
        self._scale = scale
        self._all_values: Floats | None = None
        self._partial_values: tuple[Floats, Mask] | None = None

    def compute(self, ordinals: Ints) -> Floats:
        """Return the cosines of these passages; NaN without a vector."""
        rows = self._codes.rows
        if self._all_values is None and len(ordinals) * 2 > len(rows) and rows.dtype != np.int8:
            self._all_values = self._compute_cosines(slice(None))
        if self._all_values is not None:
            return self._all_values[ordinals]
        if self._partial_values is None:
            self._partial_values = np.zeros(len(rows)), self._codes.has_vector.copy()
        values, unknown = self._partial_values
        missing = ordinals[unknown[ordinals]]
        if len(missing):
            values[missing] = self._compute_cosines(missing)
            unknown[missing] = False
        return values[ordinals]

    def _compute_cosines(self, ordinals: Ints | slice) -> Floats:
        rows = self._codes.rows[ordinals].astype(np.float32, copy=False)
        cosines: Floats = _compute_dot_products(rows, self._direction) / (
            self._direction_norm * self._codes.norms[ordinals]
        )
        return cosines if self._scale == 1.0 else self._scale * cosines


class VisibleRows:
    """The visible rows of a partition and everything that does not depend on the query.

    Unless something is written, they are the same from `since` until `until`. `summed` is the
    weighted sum of the vectors and their count.
    """

    def __init__(
        self,
        table: PassageColumns,
        codes: CodeMatrix,
        speaker_table: Sequence[Speaker],
        visible_mask: Mask,
        counted_mask: Mask,
        vector_sum: tuple[Sequence[int], int],
        valid_from: int,
        valid_until: int,
    ) -> None:
        self.table, self.codes, self.speaker_table = table, codes, tuple(speaker_table)
        self.visible_mask, self.counted_mask, self.vector_sum = (
            visible_mask,
            counted_mask,
            vector_sum,
        )
        self.valid_from, self.valid_until = valid_from, valid_until
        self._hub_cache: tuple[Centroid, LazySimilarities | None] = (Centroid(), None)
        self._norm_cache: tuple[float, Floats] = (0.0, np.zeros(0))
        self._static_cache: tuple[Ints, Mapping[str, list[Any]]] = (np.zeros(0, np.int64), {})

    @cached_property
    def corpus(self) -> CorpusStatistics:
        """Return the corpus statistics of visible memories."""
        return CorpusStatistics(
            int(np.count_nonzero(self.counted_mask)),
            int(self.table.length[self.counted_mask].sum()),
        )

    @cached_property
    def centroid(self) -> Centroid:
        """Return the centroid of the vectors."""
        return compute_centroid(*self.vector_sum, pack_vector)

    @cached_property
    def speaker_names(self) -> frozenset[str]:
        """Return the names of the speakers."""
        if not any(actor for _, actor in self.speaker_table):
            return frozenset()
        speaker_ids = np.flatnonzero(
            np.bincount(self.table.speaker[self.visible_mask], minlength=1)
        )
        return frozenset(
            name for number in speaker_ids.tolist() if (name := self.speaker_table[number][1])
        )

    @cached_property
    def speaker_columns(self) -> Array:
        """Return roles and names by speaker number."""
        return np.array(self.speaker_table, object).reshape(-1, 2).T

    @cached_property
    def visible_ordinals(self) -> Ints:
        """Return the visible ordinals."""
        return np.flatnonzero(self.visible_mask)

    @cached_property
    def vector_ordinals(self) -> Ints:
        """Return the ordinals with a vector; the same array if all have one."""
        ordinals = np.flatnonzero(self.visible_mask & self.codes.has_vector)
        return self.visible_ordinals if len(ordinals) == len(self.visible_ordinals) else ordinals

    @cached_property
    def neighbours(self) -> tuple[Ints, Ints] | None:
        """Return the previous and next visible turn of each passage, or None without turns."""
        current = np.flatnonzero(self.visible_mask & (self.table.before >= 0))
        if not len(current):
            return None
        previous = self.table.before[current]
        both_visible = self.visible_mask[previous]
        current, previous = current[both_visible], previous[both_visible]
        if not len(current):
            return None
        before, after = np.full((2, len(self.visible_mask)), NO_TURN)
        before[current] = previous
        after[previous[::-1]] = current[::-1]
        return before, after

    def get_hubness(self, centroid: Centroid) -> LazySimilarities | None:
        """Return cosines with a centroid, cached for the last one."""
        cached_centroid, similarities = self._hub_cache
        if cached_centroid is not centroid and cached_centroid != centroid:
            direction = np.frombuffer(centroid.code, np.int8).astype(np.float32)
            similarities = (
                LazySimilarities(self.codes, direction, norm(centroid.code), centroid.length)
                if centroid.length
                else None
            )
            self._hub_cache = centroid, similarities
        return similarities

    def get_static_columns(self, ordinals: Ints) -> Mapping[str, list[Any]]:
        """Return query-independent columns of these passages, cached for the last ones."""
        cached_ordinals, columns = self._static_cache
        if not columns or not (
            cached_ordinals is ordinals or np.array_equal(cached_ordinals, ordinals)
        ):
            table, (roles, actors) = (
                self.table,
                self.speaker_columns[:, self.table.speaker[ordinals]].tolist(),
            )
            columns = {
                "seq": table.seq[ordinals].tolist(),
                "slot": table.slot[ordinals].tolist(),
                "said_at": table.said_at[ordinals].tolist(),
                "talk": table.seq[table.first_turn[ordinals]].tolist(),
                "role": roles,
                "actor": actors,
            }
            self._static_cache = ordinals, columns
        return columns

    def get_length_norms(self, average: float) -> Floats:
        """Return BM25 length norms, cached for the last average length."""
        cached_average, norms = self._norm_cache
        if cached_average != average:
            norms = np.asarray(K1 * (1.0 - B + B * self.table.length / average), np.float64)
            self._norm_cache = average, norms
        return norms


class NumpyPartitionView:
    """The visible rows of a partition with the filter's selection and the query's postings."""

    def __init__(
        self, visible_rows: VisibleRows, chosen_mask: Mask, postings: QueryPostings
    ) -> None:
        self.visible_rows = visible_rows
        self.chosen_mask = chosen_mask
        self.postings = postings

    @property
    def corpus(self) -> CorpusStatistics:
        """Return the corpus statistics of visible memories."""
        return self.visible_rows.corpus

    def get_speaker_names(self) -> frozenset[str]:
        """Return the names of the speakers."""
        return self.visible_rows.speaker_names

    def get_document_frequencies(self) -> Sequence[int]:
        """Return each term's number of visible passages."""
        postings = self.postings
        visible_terms = postings.term_indices[self.visible_rows.counted_mask[postings.ordinals]]
        counts: list[int] = np.bincount(visible_terms, minlength=postings.term_count).tolist()
        return counts

    def sum_vectors(self) -> tuple[Sequence[int], int]:
        """Return the sum of the visible vectors and their count."""
        return self.visible_rows.vector_sum

    def get_centroid(self) -> Centroid:
        """Return the centroid of the visible vectors."""
        return self.visible_rows.centroid

    def rank_passages(self, stats: QueryStatistics) -> PartitionResult:
        """Rank passages with each retriever."""
        return NumpyPartitionResult(self, stats)


class NumpyPartitionResult:
    """The ranked passages of a partition for one query."""

    def __init__(self, view: NumpyPartitionView, stats: QueryStatistics) -> None:
        self.view = view
        self.stats = stats
        self.table, self.codes, self.neighbours = (
            view.visible_rows.table,
            view.visible_rows.codes,
            view.visible_rows.neighbours,
        )
        self.hubness = view.visible_rows.get_hubness(stats.centroid)
        self.term_weights = np.array(list(stats.term_weights.values()))
        self.posting_weights = self.term_weights[view.postings.term_indices]
        self.bm25_scores = self._compute_bm25()
        self.cosines = (
            LazySimilarities(self.codes, *unpack_query(stats.query_code))
            if stats.query_code
            else None
        )
        self._last_centred: tuple[Ints | None, Floats] = None, np.zeros(0)
        self.by_terms = self._rank_by_words()
        self.by_vector = self._rank_by_vector()

    # Words

    def _compute_bm25(self) -> Floats:
        """Compute every passage's BM25 score."""
        postings = self.view.postings
        norms = self.view.visible_rows.get_length_norms(self.stats.average_length)[
            postings.ordinals
        ]
        parts: Floats = self.posting_weights * TF_GAINS[postings.tf] / (postings.tf + norms)
        return self._sum_by_passage(parts)

    def _sum_by_passage(self, parts: Floats) -> Floats:
        """Sum the postings' contributions per passage in term order."""
        return np.asarray(
            np.bincount(self.view.postings.ordinals, parts, len(self.table.seq)), np.float64
        )

    def _rank_by_words(self) -> PartitionRanking:
        (matching,) = ((self.bm25_scores > 0.0) & self.view.chosen_mask).nonzero()
        return self._rank_best(matching, self.bm25_scores[matching])

    def compute_coverage(self, ordinals: Ints) -> Floats:
        """Return how much of the query these turns cover."""
        weight_sums, mass = self._sum_nearby_weights(ordinals), self.stats.total_weight
        return weight_sums / sqrt(mass) if mass else weight_sums

    def _sum_nearby_weights(self, ordinals: Ints) -> Floats:
        """Sum the weights of terms in or near these turns, each at its maximum."""
        postings = self.view.postings
        if self.neighbours is None or not postings.term_count:
            return self._sum_by_passage(self.posting_weights)[ordinals]
        contains = np.zeros((postings.term_count, len(self.table.seq)), np.bool_)
        contains[postings.term_indices, postings.ordinals] = True
        parts = contains[:, ordinals].astype(np.float64)
        for distance, part in NEIGHBOUR_WEIGHTS:
            neighbours = self._step_turns(ordinals, distance)
            parts = np.maximum(
                parts, np.where(neighbours >= 0, contains[:, neighbours] * part, 0.0)
            )
        running_sums: Floats = np.cumsum(
            parts * self.term_weights[:, None], axis=0
        )  # a plain sum may not keep the term order
        total: Floats = running_sums[-1]
        return total

    # Vectors

    def _rank_by_vector(self) -> PartitionRanking:
        visible_rows, chosen_mask = self.view.visible_rows, self.view.chosen_mask
        vector_ordinals = (
            visible_rows.vector_ordinals
            if chosen_mask is visible_rows.visible_mask
            else visible_rows.vector_ordinals[chosen_mask[visible_rows.vector_ordinals]]
        )
        if self.cosines is None or not len(vector_ordinals):
            return PartitionRanking([], list)
        nearest = self._preselect_by_sketch(vector_ordinals)
        return self._rank_best(
            nearest, self._compute_centred_cosines(nearest, self.cosines), self.cosines
        )

    def _compute_centred_cosines(self, ordinals: Ints, cosines: LazySimilarities) -> Floats:
        """Return centred cosines, cached for the last passages."""
        if self._last_centred[0] is not ordinals:
            values = cosines.compute(ordinals)
            self._last_centred = (
                ordinals,
                values
                if self.hubness is None
                else values - self.stats.centring * self.hubness.compute(ordinals),
            )
        return self._last_centred[1]

    def compute_dense(self, ordinals: Ints, cosines: LazySimilarities) -> Floats:
        """Return dense scores above the average, over each turn's window and the next."""
        values = self._compute_centred_cosines(ordinals, cosines)
        if self.neighbours is not None:
            next_turns = self._step_turns(ordinals, 1)
            with_next = np.flatnonzero((next_turns >= 0) & self.codes.has_vector[next_turns])
            values = values.copy()
            values[with_next] = (
                values[with_next] + self._compute_centred_cosines(next_turns[with_next], cosines)
            ) / 2
        return values - self.stats.expected_cosine

    def _preselect_by_sketch(self, vector_ordinals: Ints) -> Ints:
        """Preselect the ordinals with the nearest sketches, enough to include the true best."""
        codes = self.codes
        wanted_count = max(
            MIN_RESCORED, len(vector_ordinals) // RESCORED_DIVISOR, self.stats.index_query.depth * 4
        )
        if codes.rows.dtype != np.int8 or len(vector_ordinals) <= wanted_count:
            return vector_ordinals
        signs = build_sketch(self._build_query_direction().reshape(1, -1))[:, 0]
        distance = np.zeros(codes.sketch.shape[1], np.uint16)
        for row, sign in zip(codes.sketch, signs, strict=True):
            distance += np.bitwise_count(row ^ sign)
        distances = distance[vector_ordinals]
        limit = np.partition(distances, wanted_count - 1)[wanted_count - 1]
        nearest: Ints = vector_ordinals[distances <= limit]
        return nearest

    def _build_query_direction(self) -> Floats:
        """Return the query vector with part of the mean direction removed."""
        (query, _), centroid = (
            unpack_query(self.stats.query_code),
            np.frombuffer(self.stats.centroid.code, np.int8),
        )
        unit: Floats = query / np.linalg.norm(query)
        if not len(centroid):
            return unit
        offset = self.stats.centring * self.stats.centroid.length
        return unit - offset * (centroid / np.linalg.norm(centroid))

    # Candidates

    def build_candidates(
        self, vector_ranks: Mapping[int, int], word_ranks: Mapping[int, int]
    ) -> Sequence[Candidate]:
        """Build the candidates, given their ranks in the two lists."""
        return NumpyCandidates(self, vector_ranks, word_ranks)

    def select_candidates(
        self, vector_ranks: Mapping[int, int], word_ranks: Mapping[int, int]
    ) -> Ints:
        """Select the listed passages, turns around the top ones, and requested extras."""
        view, index_query = self.view, self.stats.index_query
        chosen = (
            view.visible_rows.visible_ordinals
            if view.chosen_mask is view.visible_rows.visible_mask
            else np.flatnonzero(view.chosen_mask)
        )
        if len(vector_ranks) == len(chosen):
            return chosen
        mask = np.zeros(len(view.chosen_mask), np.bool_)
        for ranks in (vector_ranks, word_ranks):
            mask[np.fromiter(ranks, np.int64, len(ranks))] = True
            if self.neighbours and index_query.neighbour_depth:
                first = np.array(
                    [
                        ordinal
                        for ordinal, rank in ranks.items()
                        if rank <= index_query.neighbour_depth
                    ],
                    np.int64,
                )
                nearby = np.concatenate(
                    [self._step_turns(first, distance) for distance, _ in NEIGHBOUR_WEIGHTS]
                )
                mask[nearby[nearby >= 0]] = True
        if index_query.extra_seqs:
            also_seqs = np.array(index_query.extra_seqs)  # positions ascend within a partition
            first, last = (
                self.table.seq.searchsorted(also_seqs, side).tolist() for side in ("left", "right")
            )
            for start, end in zip(first, last, strict=True):
                mask[start:end] = True
        if index_query.time_spans:
            said_at = self.table.said_at
            inside = np.any(
                [(said_at >= start) & (said_at < end) for start, end in index_query.time_spans],
                axis=0,
            )
            mask[np.flatnonzero(view.chosen_mask & inside)[-index_query.depth :]] = True
        return np.flatnonzero(mask & view.chosen_mask)

    def _step_turns(self, ordinals: Ints, distance: int) -> Ints:
        """Return the turns `distance` turns later or earlier."""
        before, after = self.neighbours or ((), ())
        step_map, turns = np.asarray(after if distance > 0 else before), ordinals
        for _ in range(abs(distance)):
            turns = np.where(turns >= 0, step_map[turns], NO_TURN)
        return turns

    def _rank_best(
        self, ordinals: Ints, scores: Floats, shown_scores: LazySimilarities | None = None
    ) -> PartitionRanking:
        """Rank by score to the requested depth; ties go to the newest."""
        depth = self.stats.index_query.depth
        if len(ordinals) > depth:
            mask = scores >= np.partition(scores, -depth)[-depth]
            ordinals, scores = ordinals[mask], scores[mask]
        ordinals, scores = (
            ordinals[::-1],
            scores[::-1],
        )  # newest first: the sort is stable
        order = (-scores).argsort(kind="stable")[:depth]
        best_ordinals = ordinals[order]

        def load_scores() -> Iterable[tuple[int, float, float]]:
            shown_values = (
                scores[order] if shown_scores is None else shown_scores.compute(best_ordinals)
            )
            return zip(
                self.table.seq[best_ordinals].tolist(),
                shown_values.tolist(),
                scores[order].tolist(),
                strict=True,
            )

        return PartitionRanking(best_ordinals.tolist(), load_scores)


class NumpyCandidates(Candidates):
    """Candidates of a NumPy partition; columns and values are computed on demand."""

    def __init__(
        self,
        result: NumpyPartitionResult,
        vector_ranks: Mapping[int, int],
        word_ranks: Mapping[int, int],
    ) -> None:
        self._result = result
        self._ranks = {"near": vector_ranks, "words": word_ranks}
        self._ordinals = result.select_candidates(vector_ranks, word_ranks)
        self._static_columns = result.view.visible_rows.get_static_columns(self._ordinals)
        self._computed_columns: dict[str, Sequence[Any]] = {}

    @cached_property
    def values(self) -> Sequence[Candidate]:
        """Return all candidates."""
        return self.take(range(len(self)))

    def __len__(self) -> int:
        return len(self._ordinals)

    def get_column(self, name: str) -> Sequence[Any]:
        """Return one field of every candidate."""
        if name in self._static_columns:
            return self._static_columns[name]
        if name not in self._computed_columns:
            self._computed_columns[name] = self._compute_column(name, self._ordinals)
        return self._computed_columns[name]

    def take(self, indices: Sequence[int]) -> Sequence[Candidate]:
        """Return the candidates at these indices."""
        ordinals, known_columns = (
            self._ordinals[np.array(indices, np.int64)],
            {**self._static_columns, **self._computed_columns},
        )
        columns = [
            map(known_columns[name].__getitem__, indices)
            if name in known_columns
            else self._compute_column(name, ordinals)
            for name in Candidate._fields
        ]
        return list(map(partial(tuple.__new__, Candidate), zip(*columns, strict=True)))

    def _compute_column(self, name: str, ordinals: Ints) -> Sequence[Any]:
        """Compute one query-dependent column of these passages."""
        result = self._result
        values: list[Any]
        if name in self._ranks:
            return list(map(self._ranks[name].get, ordinals.tolist()))
        if name in ("bm25", "cover"):
            values = (
                result.bm25_scores[ordinals]
                if name == "bm25"
                else result.compute_coverage(ordinals)
            ).tolist()
            return values
        similarities = result.hubness if name == "hub" else result.cosines
        if similarities is None or result.cosines is None:
            return [NO_VECTOR_VALUES[name]] * len(ordinals)
        if name == "code":
            values = list(result.codes.get_codes(ordinals))
        else:
            values = (
                result.compute_dense(ordinals, similarities)
                if name == "dense"
                else similarities.compute(ordinals)
            ).tolist()
        if result.view.visible_rows.vector_ordinals is result.view.visible_rows.visible_ordinals:
            return values
        vector_flags = result.codes.has_vector[ordinals].tolist()
        return [
            value if has_vector else NO_VECTOR_VALUES[name]
            for value, has_vector in zip(values, vector_flags, strict=True)
        ]


def build_sketch(codes: Array) -> Array:
    """Build one bit per dimension, packed 64 to a word, by block of dimensions."""
    bits = np.packbits(codes > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64).T


def _compute_dot_products(codes: Array, direction: Array) -> Array:
    """Multiply codes with a direction row by row; a matrix product would start threads."""
    dots: Array = np.vecdot(codes[:, :EXACT_DIMS], direction[:EXACT_DIMS])
    if len(direction) <= EXACT_DIMS:
        return dots
    return dots.astype(np.float64) + _compute_dot_products(
        codes[:, EXACT_DIMS:], direction[EXACT_DIMS:]
    )
