"""One partition in memory as NumPy arrays, kept fresh row by row; `scan.py` searches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import apsw
import numpy as np

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import TF_BITS
from told.backends.sqlite.partition import TF_MASK, Look, Partition, Row, Sight
from told.backends.sqlite.scan import (
    APART,
    Array,
    ArraySight,
    Codes,
    Floats,
    Ints,
    Mask,
    Postings,
    Scene,
    Table,
    sketched,
)
from told.core.score import UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

NO_DOCS: Final = np.zeros(0, np.uint32)
SUMMED_AT_ONCE: Final = 4096
ALWAYS: Final = np.iinfo(np.int64)
SCENES: Final = 4
"""How many different looks at a partition are remembered."""
APART_BYTES: Final = 120
"""What a code that was taken apart takes beside its own bytes."""
STORED_BYTES: Final = 150
"""What is remembered of a passage that was offered."""


class ArrayPartition(Partition):
    """A partition in growing arrays; `codes` are floats while it is small, bytes beside a sketch once it is not."""

    _total: tuple[Floats, Mask]
    _seen_at: int

    def __init__(self, part: int, model: vectors.Model | None, exact_rows: int) -> None:
        super().__init__(part, model, exact_rows)
        self._clear()

    def look(self, db: apsw.Connection, look: Look, terms: Sequence[str]) -> Sight:
        """What is visible now: masks are made here, under the partition's lock, so later changes do not reach in."""
        scene = self._scene(look)
        chosen = scene.seen if look.chosen is None else scene.seen & _members(look.chosen, self.rows)
        docs = [self.postings(db, term) for term in terms]
        joined = np.concatenate(docs) if docs else NO_DOCS
        numbers = np.arange(len(docs)).repeat(list(map(len, docs)))
        words = Postings((joined >> TF_BITS).astype(np.int64), joined & TF_MASK, numbers, len(docs))
        return ArraySight(scene, chosen, words)

    def _scene(self, look: Look) -> Scene:
        """What a look sees: what it saw before, if nothing was written or expired since."""
        if self._seen_at != self.version:
            self._scenes.clear()
            self._seen_at = self.version
        key = (look.spaces, look.seq, look.show_expired, look.centred)
        found = self._scenes.get(key) if look.base is None else None
        if found is None or not found.since <= look.at < found.until:
            found = self._seen(look)
            if len(self._scenes) >= SCENES:
                self._scenes.clear()
            if look.base is None:
                self._scenes[key] = found
        return found

    def _seen(self, look: Look) -> Scene:
        n = self.rows
        table = Table(*self.table[:, :n])
        seen = (table.seq <= look.seq) & (table.until > look.seq) if look.base is None else _members(look.base, n)
        fresh = table.expires > look.at
        if not look.show_expired:
            seen &= fresh
        one = len(look.spaces) < 2
        seen &= table.space == next(iter(look.spaces), -1) if one else np.isin(table.space, list(look.spaces))
        counted = seen & (table.counted > 0)
        norms = self.norms[:n]
        codes = Codes(self.codes[:n], np.maximum(norms, 1.0), self.sketch[:, :n], norms > 0, self.apart)
        total = self._summed(counted) if look.centred else ((), 0)
        since, until = table.expires[~fresh].max(initial=ALWAYS.min), table.expires[fresh].min(initial=ALWAYS.max)
        return Scene(table, codes, self.voices, seen, counted, total, int(since), int(until))

    @property
    def size(self) -> int:
        """Roughly how many bytes the partition takes, once as much is taken apart and remembered as ever is."""
        apart = self.model.dim + APART_BYTES if self.model else 0
        return super().size + min(self.rows, APART) * (apart + STORED_BYTES)

    def _summed(self, seen: Mask) -> tuple[Sequence[int], int]:
        """The sum of the visible vectors, from the last one asked for and the rows in which the two differ.

        Every term is a whole number below 2 ** 53, so doubles add them up exactly in any order.
        """
        n = len(seen)
        mask = seen & (self.norms[:n] > 0)
        total, summed = self._total
        total, changed = total.copy(), np.flatnonzero(mask ^ _grown(summed, n, axis=0))
        for first in range(0, len(changed), SUMMED_AT_ONCE):
            rows = changed[first : first + SUMMED_AT_ONCE]
            shares = np.rint(UNIT / self.norms[rows]) * np.where(mask[rows], 1.0, -1.0)
            total += shares @ self.codes[rows].astype(np.float64)
        self._total = total, mask
        return tuple(total.astype(np.int64).tolist()), int(np.count_nonzero(mask))

    def _clear(self) -> None:
        self.table: Ints = np.zeros((len(Row._fields), 0), np.int64)
        dim = self.model.dim if self.model else 0
        self.codes: Array = np.zeros((0, dim), np.float32)
        self.norms: Floats = np.zeros(0, np.float64)
        self.apart: dict[int, bytes] = {}
        self.sketch: Array = np.zeros((-(-dim // 64), 0), np.uint64)
        self._total = np.zeros(dim, np.float64), np.zeros(0, np.bool_)
        self._scenes: dict[tuple[frozenset[int], int, bool, bool], Scene] = {}
        self._seen_at = -1

    def _append(self, columns: Sequence[Sequence[int]]) -> None:
        fresh = np.array(columns, np.int64)
        first, last = self.rows - fresh.shape[1], self.rows
        if last > self.table.shape[1]:
            self._reserve(max(last, self.table.shape[1] * 3 // 2, 16))
        self.table[:, first:last] = fresh

    def _reserve(self, capacity: int) -> None:
        """Grow into new arrays, so that a sight taken earlier keeps the old ones."""
        large = capacity > self.exact_rows
        self.table = _grown(self.table, capacity, axis=1)
        codes = self.codes.astype(np.int8) if large and self.codes.dtype != np.int8 else self.codes
        self.codes = _grown(codes, capacity, axis=0)
        self.norms = _grown(self.norms, capacity, axis=0)
        was_small = large and not self.sketch.any()
        self.sketch = _grown(self.sketch, capacity, axis=1)
        if was_small and self.model is not None:
            self.sketch[:, : len(codes)] = sketched(codes)

    def _close(self, ordinal: int, until: int) -> None:
        self.table[Row._fields.index("until"), ordinal] = until

    def _vectors(self, ordinal: int, codes: bytes) -> None:
        rows = np.frombuffer(codes, np.int8).reshape(-1, self.codes.shape[1])
        stop = ordinal + len(rows)
        self.codes[ordinal:stop] = rows
        self.norms[ordinal:stop] = np.sqrt(np.square(rows.astype(np.int64)).sum(axis=1))
        if self.codes.dtype == np.int8:
            self.sketch[:, ordinal:stop] = sketched(rows)

    def _unpack(self, blob: bytes) -> npt.NDArray[np.uint32]:
        return np.frombuffer(blob, "<u4")

    def _ascending(self, docs: npt.NDArray[np.uint32]) -> bool:
        ordinals = docs >> TF_BITS
        return bool((ordinals[1:] > ordinals[:-1]).all())

    def _joined(self, docs: npt.NDArray[np.uint32], tail: Sequence[int]) -> npt.NDArray[np.uint32]:
        return np.concatenate((docs, np.array(tail, np.uint32)))

    def _vector_bytes(self, dim: int) -> int:
        return dim * self.codes.itemsize + dim // 8


def _members(ordinals: frozenset[int], n: int) -> Mask:
    mask = np.zeros(n, np.bool_)
    mask[[ordinal for ordinal in ordinals if ordinal < n]] = True
    return mask


def _grown(old: Array, capacity: int, axis: int) -> Array:
    shape = list(old.shape)
    shape[axis] = capacity
    new = np.zeros(shape, old.dtype)
    new[tuple(slice(size) for size in old.shape)] = old
    return new
