"""One partition in memory as NumPy arrays: exact scans of small ones, a one-bit sketch with exact rescoring of large.

Codes are small integers, so single-precision sums of their products are exact for a stretch of dimensions, and sums of
stretches are exact in double precision: the order of summing cannot matter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import apsw
import numpy as np
import numpy.typing as npt

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import TF_BITS
from told.backends.sqlite.partition import TF_MASK, Look, Partition, Sight
from told.core.score import K1, B, Corpus

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = npt.NDArray[Any]

COLUMNS: Final = ("seq", "space", "until", "expires", "length")
RESCORED_LEAST: Final = 400
RESCORED_SHARE: Final = 50
EXACT_DIMS: Final = 2**24 // 128**2
NO_DOCS: Final = np.zeros(0, np.uint32)


class ArrayPartition(Partition):
    """A partition in growing arrays; `codes` are floats while it is small, bytes beside a sketch once it is not."""

    def __init__(self, part: int, model: vectors.Model | None, exact_rows: int) -> None:
        super().__init__(part, model, exact_rows)
        self._clear()

    def look(self, db: apsw.Connection, look: Look, terms: Sequence[str]) -> Sight:
        """What is visible now: masks are made here, under the partition's lock, so later changes do not reach in."""
        n = self.rows
        table = self.table[:, :n]
        seq, space, until, expires, length = table
        seen = (seq <= look.seq) & (until > look.seq) if look.base is None else _members(look.base, n)
        if not look.show_expired:
            seen &= expires > look.at
        seen &= np.isin(space, list(look.spaces)) if len(look.spaces) > 1 else space == next(iter(look.spaces), -1)
        chosen = seen if look.chosen is None else seen & _members(look.chosen, n)
        docs = [self.postings(db, term) for term in terms]
        sizes = tuple(map(len, docs))
        joined = np.concatenate(docs) if docs else NO_DOCS
        vectors_ = (self.codes[:n], self.norms[:n], self.sketch[:, :n])
        return ArraySight(seq, length, seen, chosen, joined >> TF_BITS, joined & TF_MASK, sizes, *vectors_)

    def _clear(self) -> None:
        self.table: Ints = np.zeros((len(COLUMNS), 0), np.int64)
        dim = self.model.dim if self.model else 0
        self.codes: Array = np.zeros((0, dim), np.float32)
        self.norms: Floats = np.zeros(0, np.float64)
        self.sketch: Array = np.zeros((-(-dim // 64), 0), np.uint64)

    def _append(self, rows: Sequence[tuple[int, ...]]) -> None:
        fresh = np.array(rows, np.int64)[:, 1:].T
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
            self.sketch[:, : len(codes)] = _sketch(codes)

    def _close(self, ordinal: int, until: int) -> None:
        self.table[2, ordinal] = until

    def _vectors(self, ordinal: int, codes: bytes) -> None:
        rows = np.frombuffer(codes, np.int8).reshape(-1, self.codes.shape[1])
        stop = ordinal + len(rows)
        self.codes[ordinal:stop] = rows
        self.norms[ordinal:stop] = np.sqrt(np.square(rows.astype(np.int64)).sum(axis=1))
        if self.codes.dtype == np.int8:
            self.sketch[:, ordinal:stop] = _sketch(rows)

    def _unpack(self, blob: bytes) -> npt.NDArray[np.uint32]:
        return np.frombuffer(blob, "<u4")

    def _ascending(self, docs: npt.NDArray[np.uint32]) -> bool:
        ordinals = docs >> TF_BITS
        return bool((ordinals[1:] > ordinals[:-1]).all())

    def _joined(self, docs: npt.NDArray[np.uint32], tail: list[int]) -> npt.NDArray[np.uint32]:
        return np.concatenate((docs, np.array(tail, np.uint32)))

    def _vector_bytes(self, dim: int) -> int:
        return dim * self.codes.itemsize + dim // 8


@dataclass(frozen=True, slots=True)
class ArraySight:
    """The visible part of an array partition."""

    seq: Ints
    length: Ints
    seen: Mask
    chosen: Mask
    ordinals: Array
    tf: Array
    sizes: tuple[int, ...]
    codes: Array
    norms: Floats
    sketch: Array

    @property
    def corpus(self) -> Corpus:
        """How much is visible."""
        return Corpus(int(np.count_nonzero(self.seen)), int(self.length[self.seen].sum()))

    def containing(self) -> Sequence[int]:
        """How many visible passages contain each term: the postings of all terms lie end to end."""
        if not self.sizes:
            return []
        running = np.concatenate(([0], np.cumsum(self.seen[self.ordinals])))
        ends = np.cumsum(self.sizes, dtype=np.int64)
        counts: list[int] = (running[ends] - running[ends - self.sizes]).tolist()
        return counts

    def words(self, weights: Sequence[float], average: float, depth: int) -> Sequence[tuple[int, float]]:
        """The best passages by their words; a passage's parts are added up in the order of the terms."""
        if not len(self.ordinals):
            return []
        tf = self.tf.astype(np.float64)
        norm = K1 * (1.0 - B + B * self.length[self.ordinals] / average)
        parts = np.repeat(np.asarray(weights), self.sizes) * (tf * (K1 + 1.0)) / (tf + norm)
        scores: Array = np.bincount(self.ordinals, parts, len(self.seq))
        return self._top(np.flatnonzero(self.chosen & (scores > 0.0)), scores, depth)

    def near(self, vector: Sequence[float], depth: int) -> Sequence[tuple[int, float]]:
        """The best passages by their vectors."""
        query = np.frombuffer(vectors.pack([vector])[0], np.int8)
        norm = float(np.sqrt(np.square(query.astype(np.int64)).sum()))
        able = np.flatnonzero(self.chosen & (self.norms > 0))
        if not norm or not len(able):
            return []
        if self.codes.dtype == np.int8:
            able = self._likely(query, able, depth)
            dots = _dots(self.codes[able].astype(np.float32), query)
        else:
            whole = len(able) * 2 > len(self.codes)
            dots = _dots(self.codes, query)[able] if whole else _dots(self.codes[able], query)
        scores = np.zeros(len(self.seq))
        scores[able] = dots / (norm * self.norms[able])
        return self._top(able, scores, depth)

    def _likely(self, query: Array, able: Ints, depth: int) -> Ints:
        """The ordinals whose sketches are nearest, enough of them that the true best are among them."""
        wanted = max(RESCORED_LEAST, len(able) // RESCORED_SHARE, depth * 4)
        if len(able) <= wanted:
            return able
        signs = _sketch(query.reshape(1, -1))[:, 0]
        distance = np.zeros(self.sketch.shape[1], np.uint16)
        for row, sign in zip(self.sketch, signs, strict=True):
            distance += np.bitwise_count(row ^ sign)
        kept = distance[able]
        limit = np.partition(kept, wanted - 1)[wanted - 1]
        likely: Ints = able[kept <= limit]
        return likely

    def _top(self, ordinals: Ints, scores: Floats, depth: int) -> Sequence[tuple[int, float]]:
        if len(ordinals) > depth:
            values = scores[ordinals]
            limit = np.partition(values, len(values) - depth)[len(values) - depth]
            ordinals = ordinals[values >= limit]
        order = np.lexsort((-self.seq[ordinals], -scores[ordinals]))[:depth]
        best = ordinals[order]
        return list(zip(self.seq[best].tolist(), scores[best].tolist(), strict=True))


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


def _sketch(codes: Array) -> Array:
    """One bit for each dimension, 64 to a word, a row of words for each stretch of dimensions."""
    bits = np.packbits(codes > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64).T


def _dots(codes: Array, query: Array) -> Floats:
    dots: Floats = np.zeros(len(codes), np.float64)
    with one_thread():
        for first in range(0, len(query), EXACT_DIMS):
            stretch = slice(first, first + EXACT_DIMS)
            dots += np.inner(codes[:, stretch], query[stretch].astype(np.float32))
    return dots


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS on one thread: for a scan this small, waking others costs more than they bring."""
    threads = _blas()
    if threads is None:
        yield
        return
    get, put = threads
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _blas() -> tuple[Any, Any] | None:
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
            if hasattr(library, name.format("set")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None
