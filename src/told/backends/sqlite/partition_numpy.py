"""One in-memory partition as NumPy arrays; `numpy_scan` searches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import apsw
import numpy as np

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import TF_BITS
from told.backends.sqlite.numpy_scan import (
    CODE_CACHE_SIZE,
    Array,
    CodeMatrix,
    Floats,
    Ints,
    Mask,
    NumpyPartitionView,
    PassageColumns,
    QueryPostings,
    VisibleRows,
    build_sketch,
)
from told.backends.sqlite.partition import TF_MASK, Partition, PartitionView, PassageRow, Visibility
from told.model.scoring import FIXED_POINT_ONE

if TYPE_CHECKING:
    import numpy.typing as npt

NO_POSTINGS: Final = np.zeros(0, np.uint32)
SUM_CHUNK_ROWS: Final = 4096
INT64_LIMITS: Final = np.iinfo(np.int64)
MAX_CACHED_VISIBILITIES: Final = 4
"""Cached visibilities per partition."""
CODE_CACHE_ENTRY_BYTES: Final = 120
"""Overhead per cached code in bytes."""
STATIC_COLUMNS_BYTES: Final = 150
"""Bytes cached per candidate."""


class NumpyPartition(Partition):
    """A partition in growing arrays; large ones keep byte codes and a sketch."""

    _last_sum: tuple[Floats, Mask]
    _cache_version: int

    def __init__(self, part: int, model: vectors.StoredModel | None, exact_rows: int) -> None:
        super().__init__(part, model, exact_rows)
        self._clear()

    def select_visible(
        self, db: apsw.Connection, visibility: Visibility, terms: Sequence[str]
    ) -> PartitionView:
        """Return the visible rows, isolated from later changes."""
        visible_rows = self._get_visible_rows(visibility)
        chosen_mask = (
            visible_rows.visible_mask
            if visibility.filtered_ordinals is None
            else visible_rows.visible_mask
            & _build_mask(visibility.filtered_ordinals, self.row_count)
        )
        term_postings = [self.get_postings(db, term) for term in terms]
        joined = np.concatenate(term_postings) if term_postings else NO_POSTINGS
        term_indices = np.arange(len(term_postings)).repeat(list(map(len, term_postings)))
        query_postings = QueryPostings(
            (joined >> TF_BITS).astype(np.int64), joined & TF_MASK, term_indices, len(term_postings)
        )
        return NumpyPartitionView(visible_rows, chosen_mask, query_postings)

    def _get_visible_rows(self, visibility: Visibility) -> VisibleRows:
        """Return the visible rows, cached while nothing is written or expires."""
        if self._cache_version != self.version:
            self._visible_cache.clear()
            self._cache_version = self.version
        key = (
            visibility.spaces,
            visibility.seq,
            visibility.show_expired,
            visibility.needs_centroid,
        )
        cached = self._visible_cache.get(key) if visibility.base_ordinals is None else None
        if cached is None or not cached.valid_from <= visibility.at < cached.valid_until:
            cached = self._compute_visible_rows(visibility)
            if len(self._visible_cache) >= MAX_CACHED_VISIBILITIES:
                self._visible_cache.clear()
            if visibility.base_ordinals is None:
                self._visible_cache[key] = cached
        return cached

    def _compute_visible_rows(self, visibility: Visibility) -> VisibleRows:
        """Compute the masks of visible and counted rows, and until when they hold."""
        n = self.row_count
        table = PassageColumns(*self.table[:, :n])
        visible_mask = (
            (table.seq <= visibility.seq) & (table.until > visibility.seq)
            if visibility.base_ordinals is None
            else _build_mask(visibility.base_ordinals, n)
        )
        unexpired = table.expires > visibility.at
        if not visibility.show_expired:
            visible_mask &= unexpired
        single_space = len(visibility.spaces) < 2
        visible_mask &= (
            table.space == next(iter(visibility.spaces), -1)
            if single_space
            else np.isin(table.space, list(visibility.spaces))
        )
        counted_mask = visible_mask & (table.counted > 0)
        norms = self.norms[:n]
        codes = CodeMatrix(
            self.codes[:n], np.maximum(norms, 1.0), self.sketch[:, :n], norms > 0, self.code_cache
        )
        vector_sum = self._sum_vectors(counted_mask) if visibility.needs_centroid else ((), 0)
        valid_from, valid_until = (
            table.expires[~unexpired].max(initial=INT64_LIMITS.min),
            table.expires[unexpired].min(initial=INT64_LIMITS.max),
        )
        return VisibleRows(
            table,
            codes,
            self.speaker_table,
            visible_mask,
            counted_mask,
            vector_sum,
            int(valid_from),
            int(valid_until),
        )

    @property
    def size(self) -> int:
        """Estimate the size in bytes, caches at their maximum included."""
        code_bytes = self.model.dim + CODE_CACHE_ENTRY_BYTES if self.model else 0
        return super().size + min(self.row_count, CODE_CACHE_SIZE) * (
            code_bytes + STATIC_COLUMNS_BYTES
        )

    def _sum_vectors(self, visible_mask: Mask) -> tuple[Sequence[int], int]:
        """Sum the visible vectors incrementally from the last result.

        Every term is an integer below 2 ** 53, so float64 sums are exact in any order.
        """
        n = len(visible_mask)
        mask = visible_mask & (self.norms[:n] > 0)
        total, summed_mask = self._last_sum
        total, changed = total.copy(), np.flatnonzero(mask ^ _grow_array(summed_mask, n, axis=0))
        for first in range(0, len(changed), SUM_CHUNK_ROWS):
            rows = changed[first : first + SUM_CHUNK_ROWS]
            shares = np.rint(FIXED_POINT_ONE / self.norms[rows]) * np.where(mask[rows], 1.0, -1.0)
            total += shares @ self.codes[rows].astype(np.float64)
        self._last_sum = total, mask
        return tuple(total.astype(np.int64).tolist()), int(np.count_nonzero(mask))

    def _clear(self) -> None:
        self.table: Ints = np.zeros((len(PassageRow._fields), 0), np.int64)
        dim = self.model.dim if self.model else 0
        self.codes: Array = np.zeros((0, dim), np.float32)
        self.norms: Floats = np.zeros(0, np.float64)
        self.code_cache: dict[int, bytes] = {}
        self.sketch: Array = np.zeros((-(-dim // 64), 0), np.uint64)
        self._last_sum = np.zeros(dim, np.float64), np.zeros(0, np.bool_)
        self._visible_cache: dict[tuple[frozenset[int], int, bool, bool], VisibleRows] = {}
        self._cache_version = -1

    def _append_rows(self, columns: Sequence[Sequence[int]]) -> None:
        new_rows = np.array(columns, np.int64)
        first, last = self.row_count - new_rows.shape[1], self.row_count
        if last > self.table.shape[1]:
            self._reserve_capacity(max(last, self.table.shape[1] * 3 // 2, 16))
        self.table[:, first:last] = new_rows

    def _reserve_capacity(self, capacity: int) -> None:
        """Grow into new arrays, so that earlier views keep the old ones."""
        large = capacity > self.exact_rows
        self.table = _grow_array(self.table, capacity, axis=1)
        codes = self.codes.astype(np.int8) if large and self.codes.dtype != np.int8 else self.codes
        self.codes = _grow_array(codes, capacity, axis=0)
        self.norms = _grow_array(self.norms, capacity, axis=0)
        was_small = large and not self.sketch.any()
        self.sketch = _grow_array(self.sketch, capacity, axis=1)
        if was_small and self.model is not None:
            self.sketch[:, : len(codes)] = build_sketch(codes)

    def _close_passage(self, ordinal: int, until: int) -> None:
        self.table[PassageRow._fields.index("until"), ordinal] = until

    def _store_codes(self, ordinal: int, codes: bytes) -> None:
        rows = np.frombuffer(codes, np.int8).reshape(-1, self.codes.shape[1])
        stop = ordinal + len(rows)
        self.codes[ordinal:stop] = rows
        self.norms[ordinal:stop] = np.sqrt(np.square(rows.astype(np.int64)).sum(axis=1))
        if self.codes.dtype == np.int8:
            self.sketch[:, ordinal:stop] = build_sketch(rows)

    def _unpack_postings(self, blob: bytes) -> npt.NDArray[np.uint32]:
        return np.frombuffer(blob, "<u4")

    def _is_ascending(self, docs: npt.NDArray[np.uint32]) -> bool:
        ordinals = docs >> TF_BITS
        return bool((ordinals[1:] > ordinals[:-1]).all())

    def _append_postings(
        self, docs: npt.NDArray[np.uint32], tail: Sequence[int]
    ) -> npt.NDArray[np.uint32]:
        return np.concatenate((docs, np.array(tail, np.uint32)))

    def _vector_bytes(self, dim: int) -> int:
        return dim * self.codes.itemsize + dim // 8


def _build_mask(ordinals: frozenset[int], n: int) -> Mask:
    mask = np.zeros(n, np.bool_)
    mask[[ordinal for ordinal in ordinals if ordinal < n]] = True
    return mask


def _grow_array(array: Array, capacity: int, axis: int) -> Array:
    shape = list(array.shape)
    shape[axis] = capacity
    grown = np.zeros(shape, array.dtype)
    grown[tuple(slice(size) for size in array.shape)] = array
    return grown
