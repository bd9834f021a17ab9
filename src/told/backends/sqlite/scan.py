"""The visible part of a partition searched with NumPy: exactly while it is small, by a one-bit sketch once it is not.

Codes are small integers, so single-precision sums of their products are exact for a stretch of dimensions, and sums of
stretches are exact in double precision: the order of summing cannot matter. What the sketch finds is scored exactly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from math import sqrt
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from told.backends.sqlite.partition import Answer, Listing, Speaker
from told.core.match import Question
from told.core.query import Mark
from told.core.score import K1, REACH, B, Centre, Corpus

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = npt.NDArray[Any]

RESCORED_LEAST: Final = 400
RESCORED_SHARE: Final = 50
EXACT_DIMS: Final = 2**24 // 128**2
APART: Final = 4096
NOBODY: Final = -1
NO_VECTOR: Final = (None, None, 0.0, b"")
"""The cosine, the density, the hub and the code of what has no vector."""



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
    """The postings of all terms end to end, and the number of the term each belongs to."""

    ordinals: Ints
    tf: Array
    terms: Ints
    count: int


@dataclass(frozen=True, slots=True)
class Codes:
    """The vectors of all passages, and which of them had one at the moment of a look.

    `apart` is what was taken apart of them lately.
    """

    rows: Array
    norms: Floats
    sketch: Array
    there: Mask
    apart: dict[int, bytes]

    def each(self, picked: Ints) -> Sequence[bytes | None]:
        """Codes one by one; those of vectors are remembered, for it takes a while to take an array apart."""
        ordinals = picked.tolist()
        found: list[Any] = list(map(self.apart.get, ordinals))
        if None in found:
            body, dim = self.rows[picked].astype(np.int8).tobytes(), self.rows.shape[1]
            found = [body[start : start + dim] for start in range(0, len(body), dim)]
            if len(self.apart) + len(found) > APART:
                self.apart.clear()
            self.apart.update(pair for pair in zip(ordinals, found, strict=True) if self.there[pair[0]])
        return found

    def cosines(self, code: bytes, picked: Ints) -> Floats:
        """How near passages that have a vector are to a code."""
        values = np.frombuffer(code, np.int8)
        asked, exact = values.astype(np.float32), values.astype(np.float64)
        whole = len(picked) * 2 > len(self.rows) and self.rows.dtype != np.int8
        dots = _dots(self.rows, asked)[picked] if whole else _dots(self.rows[picked].astype(np.float32), asked)
        cosines: Floats = dots / (sqrt(exact @ exact) * self.norms[picked])
        return cosines


class Hubs:
    """How near passages are to all that can be seen, each measured when it is first asked for."""

    def __init__(self, middle: Centre, codes: Codes) -> None:
        self.middle = middle
        self._codes = codes
        self._values = np.zeros(len(codes.there))
        self._known = ~codes.there

    def of(self, picked: Ints) -> Floats:
        """Those of some passages; nothing for what has no vector."""
        new = picked[~self._known[picked]] if self.middle.length else picked[:0]
        if len(new):
            self._values[new] = self.middle.length * self._codes.cosines(self.middle.code, new)
            self._known[new] = True
        found: Floats = self._values[picked]
        return found


@dataclass
class Scene:
    """What can be seen of a partition, and all that follows from that whatever is asked.

    Unless something is written, it is the same `since` one instant `until` another. `summed` is the sum of the vectors,
    each times its share, and how many there are.
    """

    table: Table
    codes: Codes
    voices: tuple[Speaker, ...]
    seen: Mask
    counted: Mask
    summed: tuple[Sequence[int], int]
    since: int
    until: int
    _hubs: Hubs | None = None

    @cached_property
    def corpus(self) -> Corpus:
        """How much of what is visible counts."""
        return Corpus(int(np.count_nonzero(self.counted)), int(self.table.length[self.counted].sum()))

    @cached_property
    def speakers(self) -> frozenset[str]:
        """The names of those who speak."""
        if not any(actor for _, actor in self.voices):
            return frozenset()
        heard = np.flatnonzero(np.bincount(self.table.voice[self.seen], minlength=1))
        return frozenset(name for number in heard.tolist() if (name := self.voices[number][1]))

    @cached_property
    def who(self) -> Array:
        """The roles and the names of those who speak, by their numbers."""
        return np.array(self.voices, object).T

    @cached_property
    def able(self) -> Ints:
        """What has a vector."""
        return np.flatnonzero(self.seen & self.codes.there)

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

    def hubs(self, middle: Centre) -> Hubs:
        """How near everything is to a centre, remembered for the last one."""
        found = self._hubs
        if found is None or found.middle != middle:
            found = self._hubs = Hubs(middle, self.codes)
        return found


@dataclass(frozen=True, slots=True)
class ArraySight:
    """The visible part of an array partition, what of it a filter chose, and where the terms of a query stand."""

    scene: Scene
    chosen: Mask
    postings: Postings

    @property
    def corpus(self) -> Corpus:
        """How much of what is visible counts."""
        return self.scene.corpus

    def speakers(self) -> frozenset[str]:
        """The names of those who speak."""
        return self.scene.speakers

    def containing(self) -> Sequence[int]:
        """How many visible passages contain each term."""
        postings = self.postings
        there = postings.terms[self.scene.counted[postings.ordinals]]
        counts: list[int] = np.bincount(there, minlength=postings.count).tolist()
        return counts

    def total(self) -> tuple[Sequence[int], int]:
        """The sum of the visible vectors."""
        return self.scene.summed

    def answer(self, question: Question) -> Answer:
        """The best passages of each retriever."""
        return ArrayAnswer(self, question)

    def only(self, ordinals: Ints) -> Ints:
        """Those of the passages that are chosen."""
        return ordinals[self.chosen[ordinals]]


class ArrayAnswer:
    """What an array partition offers for a question."""

    def __init__(self, sight: ArraySight, question: Question) -> None:
        self.sight = sight
        self.question = question
        self.table, self.codes, self.turns = sight.scene.table, sight.scene.codes, sight.scene.turns
        self.hubs = sight.scene.hubs(question.middle)
        self.bm25 = self._bm25()
        self._cosines = np.zeros(len(self.table.seq))
        self._unmeasured = self.codes.there.copy()
        self.words = self._by_words()
        self.near = self._by_vector()

    # By words

    def _bm25(self) -> Floats:
        """Every passage's score by its words; a passage's parts are added up in the order of the terms."""
        postings, size = self.sight.postings, len(self.table.seq)
        if not len(postings.ordinals):
            return np.zeros(size)
        tf = postings.tf.astype(np.float64)
        norm = K1 * (1.0 - B + B * self.table.length[postings.ordinals] / self.question.average)
        parts: Floats = self._weights()[postings.terms] * (tf * (K1 + 1.0)) / (tf + norm)
        return np.bincount(postings.ordinals, parts, size).astype(np.float64, copy=False)

    def _weights(self) -> Floats:
        return np.array(list(self.question.weights.values()))

    def _by_words(self) -> Listing:
        found = self.sight.only(np.flatnonzero(self.bm25 > 0.0))
        return self._best(found, self.bm25[found], self.bm25)

    def _told(self, picked: Ints) -> Floats:
        """What the terms tell that stand in these turns or near them, each counted where it counts most."""
        postings = self.sight.postings
        if not postings.count:
            return np.zeros(len(picked))
        has = np.zeros((postings.count, len(self.table.seq)), np.bool_)
        has[postings.terms, postings.ordinals] = True
        parts = has[:, picked].astype(np.float64)
        for distance, part in REACH if self.turns else ():
            others = self._step(picked, distance)
            parts = np.maximum(parts, np.where(others >= 0, has[:, others] * part, 0.0))
        running: Floats = np.cumsum(parts * self._weights()[:, None], axis=0)  # a sum may not go in the order of terms
        total: Floats = running[-1]
        return total

    # By vectors

    def _by_vector(self) -> Listing:
        scene, chosen = self.sight.scene, self.sight.chosen
        able = scene.able if chosen is scene.seen else self.sight.only(scene.able)
        if not self.question.asked or not len(able):
            return Listing([], [], [], [])
        likely = self._likely(able)
        return self._best(likely, self._above(likely), self._cosines)

    def _above(self, picked: Ints) -> Floats:
        """How near passages are to the query with some of the mean direction taken off."""
        new = picked[self._unmeasured[picked]]
        if len(new):
            self._cosines[new] = self.codes.cosines(self.question.asked, new)
            self._unmeasured[new] = False
        above: Floats = self._cosines[picked] - self.question.off * self.hubs.of(picked)
        return above

    def _dense(self, picked: Ints) -> Floats:
        """How much nearer than the average turns are, over their own windows and those of the turns after them."""
        near = self._above(picked)
        if self.turns is not None:
            after = self._step(picked, 1)
            there = np.flatnonzero((after >= 0) & self.codes.there[after])
            near[there] = (near[there] + self._above(after[there])) / 2
        return near - self.question.level

    def _likely(self, able: Ints) -> Ints:
        """The ordinals whose sketches are nearest, enough of them that the true best are among them."""
        codes = self.codes
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

    def marks(self, near: Mapping[int, int], words: Mapping[int, int]) -> list[Mark]:
        """Everything known of what is offered, given the places it took in the two lists."""
        picked = self._offered(near, words)
        if not len(picked):
            return []
        table, told, mass, ordinals = self.table, self._told(picked), self.question.mass, picked.tolist()
        roles, actors = self.sight.scene.who[:, table.voice[picked]].tolist()
        cosines, dense, hubs, codes = self._measured(picked) if self.question.asked else _unmeasured(len(picked))
        columns = (
            table.seq[picked].tolist(), table.slot[picked].tolist(), table.said[picked].tolist(),
            table.seq[table.first[picked]].tolist(), roles, actors, cosines, dense, hubs, self.bm25[picked].tolist(),
            (told / sqrt(mass) if mass else told).tolist(), map(near.get, ordinals), map(words.get, ordinals), codes,
        )  # fmt: skip
        return list(map(partial(tuple.__new__, Mark), zip(*columns, strict=True)))

    def _measured(self, picked: Ints) -> Sequence[Sequence[Any]]:
        """Cosines, how dense passages are, hubs and codes."""
        dense, codes = self._dense(picked), self.codes.each(picked)
        columns = (self._cosines[picked].tolist(), dense.tolist(), self.hubs.of(picked).tolist(), codes)
        able = self.codes.there[picked]
        return columns if able.all() else [
            [value if has else none for value, has in zip(column, able.tolist(), strict=True)]
            for column, none in zip(columns, NO_VECTOR, strict=True)
        ]  # fmt: skip

    def _offered(self, near: Mapping[int, int], words: Mapping[int, int]) -> Ints:
        """What is listed, the turns around the first, and what the probe asks for besides, in order."""
        sight, probe = self.sight, self.question.probe
        offered = np.zeros(len(sight.chosen), np.bool_)
        for listed in (near, words):
            offered[np.fromiter(listed, np.int64, len(listed))] = True
            if self.turns and probe.beside:
                first = np.array([ordinal for ordinal, place in listed.items() if place <= probe.beside], np.int64)
                around = np.concatenate([self._step(first, distance) for distance, _ in REACH])
                offered[around[around >= 0]] = True
        if probe.also:
            offered[self._at(probe.also)] = True
        if probe.spans:
            said = self.table.said
            inside = np.any([(said >= start) & (said < end) for start, end in probe.spans], axis=0)
            offered[np.flatnonzero(sight.chosen & inside)[-probe.depth :]] = True
        return np.flatnonzero(offered & sight.chosen)

    def _at(self, seqs: tuple[int, ...]) -> Ints:
        """The passages at some ledger positions, which only grow along a partition."""
        first, last = (np.searchsorted(self.table.seq, seqs, side) for side in ("left", "right"))
        spans = zip(first.tolist(), last.tolist(), strict=True)
        return np.array([ordinal for start, end in spans for ordinal in range(start, end)], np.int64)

    def _step(self, picked: Ints, distance: int) -> Ints:
        """The turns so many turns later, or earlier."""
        before, after = self.turns or ((), ())
        way, found = np.asarray(after if distance > 0 else before), picked
        for _ in range(abs(distance)):
            found = np.where(found >= 0, way[found], NOBODY)
        return found

    def _best(self, ordinals: Ints, scores: Floats, shown: Floats) -> Listing:
        """The best by some scores, at most as deep as asked; equals go to the newer."""
        depth = self.question.probe.depth
        if len(ordinals) > depth:
            kept = scores >= np.partition(scores, len(scores) - depth)[len(scores) - depth]
            ordinals, scores = ordinals[kept], scores[kept]
        newest = (-scores[::-1]).argsort(kind="stable")[:depth]
        best, scores = ordinals[::-1][newest], scores[::-1][newest]
        return Listing(self.table.seq[best].tolist(), shown[best].tolist(), scores.tolist(), best.tolist())


def _unmeasured(count: int) -> Sequence[Sequence[Any]]:
    return [[none] * count for none in NO_VECTOR]


def sketched(codes: Array) -> Array:
    """One bit for each dimension, 64 to a word, a row of words for each stretch of dimensions."""
    bits = np.packbits(codes > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64).T


def _dots(codes: Array, query: Array) -> Floats:
    """The products of codes with a query."""
    dots: Floats = np.zeros(len(codes))
    with one_thread():
        for first in range(0, len(query), EXACT_DIMS):
            dots += codes[:, first : first + EXACT_DIMS] @ query[first : first + EXACT_DIMS]
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
