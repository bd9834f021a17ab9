"""The visible part of a partition searched with NumPy: exactly while it is small, by a one-bit sketch once it is not.

Codes are small integers, so single-precision sums of their products are exact for a stretch of dimensions, and sums of
stretches are exact in double precision: the order of summing cannot matter. What the sketch finds is scored exactly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from math import sqrt
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from told.backends.sqlite.partition import Answer, Offer, Speaker
from told.core.match import Question, places
from told.core.query import Mark
from told.core.score import K1, REACH, B, Corpus

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = npt.NDArray[Any]

RESCORED_LEAST: Final = 400
RESCORED_SHARE: Final = 50
EXACT_DIMS: Final = 2**24 // 128**2
NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a partition's passages; see `partition.Row`."""

    seq: Ints
    space: Ints
    until: Ints
    expires: Ints
    length: Ints
    slot: Ints
    before: Ints
    said: Ints
    counted: Ints
    voice: Ints
    first: Ints


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of all terms end to end, and how many each has."""

    ordinals: Array
    tf: Array
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Codes:
    """The vectors of all passages; a norm of zero is none."""

    rows: Array
    norms: Floats
    sketch: Array


@dataclass(frozen=True)
class ArraySight:
    """The visible part of an array partition."""

    table: Table
    seen: Mask
    counted: Mask
    chosen: Mask
    postings: Postings
    codes: Codes
    voices: tuple[Speaker, ...]
    summed: tuple[Sequence[int], int]

    @property
    def corpus(self) -> Corpus:
        """How much of what is visible counts."""
        return Corpus(int(np.count_nonzero(self.counted)), int(self.table.length[self.counted].sum()))

    def speakers(self) -> set[str]:
        """The names of those who speak."""
        names = {number for number, (_, actor) in enumerate(self.voices) if actor}
        if not names:
            return set()
        heard = np.flatnonzero(np.bincount(self.table.voice[self.seen], minlength=1))
        return {self.voices[number][1] or "" for number in heard.tolist() if number in names}

    def containing(self) -> Sequence[int]:
        """How many visible passages contain each term."""
        sizes = self.postings.sizes
        if not sizes:
            return []
        running = np.concatenate(([0], np.cumsum(self.counted[self.postings.ordinals])))
        ends = np.cumsum(sizes, dtype=np.int64)
        counts: list[int] = (running[ends] - running[ends - sizes]).tolist()
        return counts

    def total(self) -> tuple[Sequence[int], int]:
        """The sum of the visible vectors."""
        return self.summed

    def answer(self, question: Question) -> Answer:
        """The best passages of each retriever."""
        return ArrayAnswer(self, question)

    @cached_property
    def turns(self) -> tuple[Ints, Ints] | None:
        """For each passage the visible turn before it and the first visible one after it; nothing, if nobody talks."""
        talking = np.flatnonzero(self.seen & (self.table.before >= 0))
        earlier = self.table.before[talking]
        both = self.seen[earlier]
        talking, earlier = talking[both], earlier[both]
        if not len(talking):
            return None
        before, after = np.full((2, len(self.seen)), NOBODY)
        before[talking] = earlier
        after[earlier[::-1]] = talking[::-1]
        return before, after


class ArrayAnswer:
    """What an array partition offers for a question."""

    def __init__(self, sight: ArraySight, question: Question) -> None:
        self.sight = sight
        self.question = question
        self.bm25 = self._bm25()
        self.words = self._best(np.flatnonzero(sight.chosen & (self.bm25 > 0.0)), self.bm25)
        self.near = self._near()

    # By words

    def _bm25(self) -> Floats:
        """Every passage's score by its words; a passage's parts are added up in the order of the terms."""
        table, postings = self.sight.table, self.sight.postings
        if not len(postings.ordinals):
            return np.zeros(len(table.seq))
        tf = postings.tf.astype(np.float64)
        norm = K1 * (1.0 - B + B * table.length[postings.ordinals] / self.question.average)
        weights = np.repeat(np.array(list(self.question.weights.values())), postings.sizes)
        parts: Floats = weights * (tf * (K1 + 1.0)) / (tf + norm)
        return np.bincount(postings.ordinals, parts, len(table.seq)).astype(np.float64, copy=False)

    def _told(self, picked: Ints) -> Floats:
        """What the terms tell that stand in these turns or near them, each counted where it counts most."""
        sizes = self.sight.postings.sizes
        has = np.zeros((len(sizes), len(self.sight.seen)), np.bool_)
        has[np.repeat(np.arange(len(sizes)), sizes), self.sight.postings.ordinals] = True
        parts = has[:, picked].astype(np.float64)
        for distance, part in REACH if self.sight.turns else ():
            others = self._step(picked, distance)
            parts = np.maximum(parts, np.where(others >= 0, has[:, others] * part, 0.0))
        total = np.zeros(len(picked))
        for weight, row in zip(self.question.weights.values(), parts, strict=True):
            total += weight * row
        return total

    # By vectors

    def _near(self) -> list[Offer]:
        able = np.flatnonzero(self.sight.chosen & (self.sight.codes.norms > 0))
        if not self.question.asked or not len(able):
            return []
        scores = np.zeros(len(self.sight.seen))
        likely = self._likely(able)
        scores[likely] = self._above(*self._cosines(likely))
        return self._best(likely, scores)

    def _cosines(self, picked: Ints) -> tuple[Floats, Floats]:
        """How near these passages are to the query, and to everything else."""
        codes, middle = self.sight.codes, self.question.middle
        asked = [self.question.asked, middle.code] if middle.length else [self.question.asked]
        queries = np.array([np.frombuffer(code, np.int8) for code in asked])
        lengths = np.sqrt(np.square(queries.astype(np.int64)).sum(axis=1))
        whole = len(picked) * 2 > len(codes.rows) and codes.rows.dtype != np.int8
        dots = _dots(codes.rows, queries)[picked] if whole else _dots(codes.rows[picked].astype(np.float32), queries)
        norms = codes.norms[picked]
        with np.errstate(invalid="ignore", divide="ignore"):
            cosines = np.where(norms > 0, dots[:, 0] / (lengths[0] * norms), np.nan)
            if not middle.length:
                return cosines, np.zeros(len(picked))
            return cosines, np.where(norms > 0, middle.length * (dots[:, 1] / (lengths[1] * norms)), 0.0)

    def _above(self, cosines: Floats, hubs: Floats) -> Floats:
        above: Floats = cosines - self.question.off * hubs
        return above

    def _dense(self, picked: Ints, near: Floats) -> Floats:
        """How much nearer than the average turns are, over their own windows and those of the turns after them."""
        if self.sight.turns is not None:
            after = self._step(picked, 1)
            there = np.flatnonzero(after >= 0)
            other = self._above(*self._cosines(after[there]))
            own, known = near[there], ~np.isnan(other)
            near = near.copy()
            near[there] = np.where(known, (own + other) / 2, own)
        return near - self.question.level

    def _likely(self, able: Ints) -> Ints:
        """The ordinals whose sketches are nearest, enough of them that the true best are among them."""
        codes = self.sight.codes
        wanted = max(RESCORED_LEAST, len(able) // RESCORED_SHARE, self.question.probe.depth * 4)
        if codes.rows.dtype != np.int8 or len(able) <= wanted:
            return able
        signs = sketched(self._direction().reshape(1, -1))[:, 0]
        distance = np.zeros(codes.sketch.shape[1], np.uint16)
        for row, sign in zip(codes.sketch, signs, strict=True):
            distance += np.bitwise_count(row ^ sign)
        kept = distance[able]
        limit = np.partition(kept, wanted - 1)[wanted - 1]
        likely: Ints = able[kept <= limit]
        return likely

    def _direction(self) -> Floats:
        """The query with some of the mean direction taken off."""
        asked, middle = (np.frombuffer(code, np.int8) for code in (self.question.asked, self.question.middle.code))
        unit: Floats = asked / np.linalg.norm(asked)
        if not len(middle):
            return unit
        off = self.question.off * self.question.middle.length
        return unit - off * (middle / np.linalg.norm(middle))

    # What is offered

    def marks(self, near: Mapping[int, int], words: Mapping[int, int]) -> Sequence[Mark]:
        """Everything known of what is offered, given the places it took in the two lists."""
        picked = self._offered(places(near, words))
        if not len(picked):
            return []
        table, codes, asked = self.sight.table, self.sight.codes, bool(self.question.asked)
        told = self._told(picked)
        cover = told / sqrt(self.question.mass) if self.question.mass else told
        cosines, hubs = self._cosines(picked) if asked else (np.full(len(picked), np.nan), np.zeros(len(picked)))
        dense = self._dense(picked, self._above(cosines, hubs)) if asked else cosines
        known = codes.norms[picked] > 0 if asked else np.zeros(len(picked), np.bool_)
        vectors = codes.rows[picked].astype(np.int8).tobytes() if asked else b""
        dim = codes.rows.shape[1]
        speakers = [self.sight.voices[voice] for voice in table.voice[picked].tolist()]
        rows = zip(
            picked.tolist(), table.seq[picked].tolist(), table.slot[picked].tolist(), table.said[picked].tolist(),
            table.seq[table.first[picked]].tolist(),
            speakers, known.tolist(), cosines.tolist(), dense.tolist(), hubs.tolist(),
            self.bm25[picked].tolist(), cover.tolist(), strict=True,
        )  # fmt: skip
        return [
            Mark(
                seq, slot, said, talk, role, actor, cosine if able else None, above if able else None, hub,
                bm25, share, near.get(ordinal), words.get(ordinal),
                vectors[row * dim : (row + 1) * dim] if able else b"",
            )
            for row, columns in enumerate(rows)
            for ordinal, seq, slot, said, talk, (role, actor), able, cosine, above, hub, bm25, share in (columns,)
        ]  # fmt: skip

    def _offered(self, listed: Mapping[int, int]) -> Ints:
        """What is listed, the turns around the first, and what the probe asks for besides, in order."""
        sight, probe = self.sight, self.question.probe
        found = [np.fromiter(listed, np.int64, len(listed))]
        if sight.turns and probe.beside:
            first = np.array([ordinal for ordinal, place in listed.items() if place <= probe.beside], np.int64)
            found += [self._step(first, distance) for distance, _ in REACH]
        if probe.also:
            found.append(self._at(probe.also))
        if probe.spans:
            said = sight.table.said
            inside = np.any([(said >= start) & (said < end) for start, end in probe.spans], axis=0)
            found.append(np.flatnonzero(sight.chosen & inside)[-probe.depth :])
        picked = _distinct(np.concatenate(found))
        picked = picked[picked >= 0]
        offered: Ints = picked[sight.chosen[picked]]
        return offered

    def _at(self, seqs: tuple[int, ...]) -> Ints:
        """The passages at some ledger positions, which only grow along a partition."""
        first, last = (np.searchsorted(self.sight.table.seq, seqs, side) for side in ("left", "right"))
        spans = zip(first.tolist(), last.tolist(), strict=True)
        return np.array([ordinal for start, end in spans for ordinal in range(start, end)], np.int64)

    def _step(self, picked: Ints, distance: int) -> Ints:
        """The turns so many turns later, or earlier."""
        before, after = self.sight.turns or ((), ())
        way, found = np.asarray(after if distance > 0 else before), picked
        for _ in range(abs(distance)):
            found = np.where(found >= 0, way[found], NOBODY)
        return found

    def _best(self, ordinals: Ints, scores: Floats) -> list[Offer]:
        """The best by some scores, at most as deep as asked; equals go to the newer."""
        depth, values = self.question.probe.depth, scores[ordinals]
        if len(ordinals) > depth:
            limit = np.partition(values, len(values) - depth)[len(values) - depth]
            ordinals = ordinals[values >= limit]
        best = ordinals[np.lexsort((-ordinals, -scores[ordinals]))[:depth]]
        return list(zip(scores[best].tolist(), self.sight.table.seq[best].tolist(), best.tolist(), strict=True))


def _distinct(values: Ints) -> Ints:
    """Each value once, in order; NumPy's own way loads masked arrays first."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    distinct: Ints = ordered[first]
    return distinct


def sketched(codes: Array) -> Array:
    """One bit for each dimension, 64 to a word, a row of words for each stretch of dimensions."""
    bits = np.packbits(codes > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64).T


def _dots(codes: Array, queries: Array) -> Floats:
    """The products of codes with queries, a column for each query."""
    dots: Floats = np.zeros((len(codes), len(queries)), np.float64)
    with one_thread():
        for first in range(0, queries.shape[1], EXACT_DIMS):
            stretch = slice(first, first + EXACT_DIMS)
            dots += np.inner(codes[:, stretch], queries[:, stretch].astype(np.float32))
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
