"""The visible part of a partition searched with NumPy: exactly while it is small, by a one-bit sketch once it is not.

Codes are small integers, so single-precision sums of their products are exact for a stretch of dimensions, and sums of
stretches are exact in double precision: the order of summing cannot matter. What the sketch finds is scored exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from told.backends.sqlite.partition import Answer, Listing, Speaker
from told.backends.sqlite.vectors import asked, code_of
from told.core.lazy import cached_property
from told.core.query import Mark, Marks
from told.core.question import Question
from told.core.score import K1, REACH, TF_CAP, B, Centre, Corpus, centre, norm

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"
Array: TypeAlias = "npt.NDArray[Any]"

RESCORED_LEAST: Final = 400
RESCORED_SHARE: Final = 50
EXACT_DIMS: Final = 1024
GAINS: Final = np.arange(TF_CAP + 1) * (K1 + 1.0)
APART: Final = 4096
NOBODY: Final = -1
NO_VECTOR: Final[Mapping[str, Any]] = {"cosine": None, "dense": None, "hub": 0.0, "code": b""}
"""What is known of a passage without a vector in place of what only a vector tells."""


class Table(NamedTuple):
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


class Postings(NamedTuple):
    """The postings of all terms end to end, and the number of the term each belongs to."""

    ordinals: Ints
    tf: Array
    terms: Ints
    numbers: int


class Codes(NamedTuple):
    """The vectors of all passages, and which of them had one at the moment of a look; what had none is of length 1.

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


class Bearings:
    """How near passages are to a direction, so many times: each measured when it is first asked for, or all at once."""

    def __init__(self, codes: Codes, aim: Array, length: float, times: float = 1.0) -> None:
        self._codes = codes
        self._aim = aim
        self._length = length
        self._times = times
        self._every: Floats | None = None
        self._some: tuple[Floats, Mask] | None = None

    def of(self, picked: Ints) -> Floats:
        """Those of some passages; nothing for what has no vector."""
        rows = self._codes.rows
        if self._every is None and len(picked) * 2 > len(rows) and rows.dtype != np.int8:
            self._every = self._measured(slice(None))
        if self._every is not None:
            return self._every[picked]
        if self._some is None:
            self._some = np.zeros(len(rows)), self._codes.there.copy()
        values, unknown = self._some
        new = picked[unknown[picked]]
        if len(new):
            values[new] = self._measured(new)
            unknown[new] = False
        return values[picked]

    def _measured(self, picked: Ints | slice) -> Floats:
        rows = self._codes.rows[picked].astype(np.float32, copy=False)
        measured: Floats = _dots(rows, self._aim) / (self._length * self._codes.norms[picked])
        return measured if self._times == 1.0 else self._times * measured


class Scene:
    """What can be seen of a partition, and all that follows from that whatever is asked.

    Unless something is written, it is the same `since` one instant `until` another. `summed` is the sum of the vectors,
    each times its share, and how many there are.
    """

    def __init__(
        self, table: Table, codes: Codes, voices: Sequence[Speaker], seen: Mask, counted: Mask,
        summed: tuple[Sequence[int], int], since: int, until: int,
    ) -> None:  # fmt: skip
        self.table, self.codes, self.voices = table, codes, tuple(voices)
        self.seen, self.counted, self.summed = seen, counted, summed
        self.since, self.until = since, until
        self._hubs: tuple[Centre, Bearings | None] = (Centre(), None)
        self._norms: tuple[float, Floats] = (0.0, np.zeros(0))
        self._stored: tuple[Ints, Mapping[str, list[Any]]] = (np.zeros(0, np.int64), {})

    @cached_property
    def corpus(self) -> Corpus:
        """How much of what is visible counts."""
        return Corpus(int(np.count_nonzero(self.counted)), int(self.table.length[self.counted].sum()))

    @cached_property
    def middle(self) -> Centre:
        """The centre of the vectors."""
        return centre(*self.summed, code_of)

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
        return np.array(self.voices, object).reshape(-1, 2).T

    @cached_property
    def visible(self) -> Ints:
        """What can be seen."""
        return np.flatnonzero(self.seen)

    @cached_property
    def able(self) -> Ints:
        """What has a vector; the very array of all that can be seen, if all of it has one."""
        able = np.flatnonzero(self.seen & self.codes.there)
        return self.visible if len(able) == len(self.visible) else able

    @cached_property
    def turns(self) -> tuple[Ints, Ints] | None:
        """For each passage the visible turn before it and the first visible one after it; nothing, if nobody talks."""
        talking = np.flatnonzero(self.seen & (self.table.before >= 0))
        if not len(talking):
            return None
        earlier = self.table.before[talking]
        both = self.seen[earlier]
        talking, earlier = talking[both], earlier[both]
        if not len(talking):
            return None
        before, after = np.full((2, len(self.seen)), NOBODY)
        before[talking] = earlier
        after[earlier[::-1]] = talking[::-1]
        return before, after

    def hubs(self, middle: Centre) -> Bearings | None:
        """How near everything is to a centre, remembered for the last one; nothing, if there is none."""
        known, found = self._hubs
        if known is not middle and known != middle:
            aim = np.frombuffer(middle.code, np.int8).astype(np.float32)
            found = Bearings(self.codes, aim, norm(middle.code), middle.length) if middle.length else None
            self._hubs = middle, found
        return found

    def stored(self, picked: Ints) -> Mapping[str, list[Any]]:
        """What is known of passages whatever is asked, in columns, remembered for the last ones."""
        known, found = self._stored
        if not found or not (known is picked or np.array_equal(known, picked)):
            table, (roles, actors) = self.table, self.who[:, self.table.voice[picked]].tolist()
            found = {
                "seq": table.seq[picked].tolist(), "slot": table.slot[picked].tolist(),
                "said_at": table.said[picked].tolist(), "talk": table.seq[table.first[picked]].tolist(),
                "role": roles, "actor": actors,
            }  # fmt: skip
            self._stored = picked, found
        return found

    def norms(self, average: float) -> Floats:
        """What the length of each passage does to its score by words, remembered for the last average length."""
        known, found = self._norms
        if known != average:
            found = np.asarray(K1 * (1.0 - B + B * self.table.length / average), np.float64)
            self._norms = average, found
        return found


class ArraySight:
    """The visible part of an array partition, what of it a filter chose, and where the terms of a query stand."""

    def __init__(self, scene: Scene, chosen: Mask, postings: Postings) -> None:
        self.scene = scene
        self.chosen = chosen
        self.postings = postings

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
        counts: list[int] = np.bincount(there, minlength=postings.numbers).tolist()
        return counts

    def total(self) -> tuple[Sequence[int], int]:
        """The sum of the visible vectors."""
        return self.scene.summed

    def middle(self) -> Centre:
        """The centre of the visible vectors."""
        return self.scene.middle

    def answer(self, question: Question) -> Answer:
        """The best passages of each retriever."""
        return ArrayAnswer(self, question)


class ArrayAnswer:
    """What an array partition offers for a question."""

    def __init__(self, sight: ArraySight, question: Question) -> None:
        self.sight = sight
        self.question = question
        self.table, self.codes, self.turns = sight.scene.table, sight.scene.codes, sight.scene.turns
        self.hubs = sight.scene.hubs(question.middle)
        self.weights = np.array(list(question.weights.values()))
        self.telling = self.weights[sight.postings.terms]
        self.bm25 = self._bm25()
        self.cosines = Bearings(self.codes, *asked(question.asked)) if question.asked else None
        self._last: tuple[Ints | None, Floats] = None, np.zeros(0)
        self.words = self._by_words()
        self.near = self._by_vector()

    # By words

    def _bm25(self) -> Floats:
        """Every passage's score by its words."""
        postings = self.sight.postings
        norms = self.sight.scene.norms(self.question.average)[postings.ordinals]
        parts: Floats = self.telling * GAINS[postings.tf] / (postings.tf + norms)
        return self._added(parts)

    def _added(self, parts: Floats) -> Floats:
        """For each passage the sum of what its postings bring, added up in the order of the terms."""
        return np.asarray(np.bincount(self.sight.postings.ordinals, parts, len(self.table.seq)), np.float64)

    def _by_words(self) -> Listing:
        (found,) = ((self.bm25 > 0.0) & self.sight.chosen).nonzero()
        return self._best(found, self.bm25[found])

    def cover(self, picked: Ints) -> Floats:
        """How much of the query these turns hold."""
        told, mass = self._told(picked), self.question.mass
        return told / sqrt(mass) if mass else told

    def _told(self, picked: Ints) -> Floats:
        """What the terms tell that stand in these turns or near them, each counted where it counts most."""
        postings = self.sight.postings
        if self.turns is None or not postings.numbers:
            return self._added(self.telling)[picked]
        has = np.zeros((postings.numbers, len(self.table.seq)), np.bool_)
        has[postings.terms, postings.ordinals] = True
        parts = has[:, picked].astype(np.float64)
        for distance, part in REACH:
            others = self._step(picked, distance)
            parts = np.maximum(parts, np.where(others >= 0, has[:, others] * part, 0.0))
        running: Floats = np.cumsum(parts * self.weights[:, None], axis=0)  # a sum may not go in the order of terms
        total: Floats = running[-1]
        return total

    # By vectors

    def _by_vector(self) -> Listing:
        scene, chosen = self.sight.scene, self.sight.chosen
        able = scene.able if chosen is scene.seen else scene.able[chosen[scene.able]]
        if self.cosines is None or not len(able):
            return Listing([], list)
        likely = self._likely(able)
        return self._best(likely, self._above(likely, self.cosines), self.cosines)

    def _above(self, picked: Ints, cosines: Bearings) -> Floats:
        """How near passages are to the query with some of the mean direction taken off, remembered for the last."""
        if self._last[0] is not picked:
            near = cosines.of(picked)
            self._last = picked, near if self.hubs is None else near - self.question.off * self.hubs.of(picked)
        return self._last[1]

    def dense(self, picked: Ints, cosines: Bearings) -> Floats:
        """How much nearer than the average turns are, over their own windows and those of the turns after them."""
        near = self._above(picked, cosines)
        if self.turns is not None:
            after = self._step(picked, 1)
            there = np.flatnonzero((after >= 0) & self.codes.there[after])
            near = near.copy()
            near[there] = (near[there] + self._above(after[there], cosines)) / 2
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
        (query, _), middle = asked(self.question.asked), np.frombuffer(self.question.middle.code, np.int8)
        unit: Floats = query / np.linalg.norm(query)
        if not len(middle):
            return unit
        off = self.question.off * self.question.middle.length
        return unit - off * (middle / np.linalg.norm(middle))

    # What is offered

    def marks(self, near: Mapping[int, int], words: Mapping[int, int]) -> Sequence[Mark]:
        """Everything known of what is offered, given the places it took in the two lists."""
        return ArrayMarks(self, near, words)

    def offered(self, near: Mapping[int, int], words: Mapping[int, int]) -> Ints:
        """What is listed, the turns around the first, and what the probe asks for besides, in order."""
        sight, probe = self.sight, self.question.probe
        within = sight.scene.visible if sight.chosen is sight.scene.seen else np.flatnonzero(sight.chosen)
        if len(near) == len(within):
            return within
        offered = np.zeros(len(sight.chosen), np.bool_)
        for listed in (near, words):
            offered[np.fromiter(listed, np.int64, len(listed))] = True
            if self.turns and probe.beside:
                first = np.array([ordinal for ordinal, place in listed.items() if place <= probe.beside], np.int64)
                around = np.concatenate([self._step(first, distance) for distance, _ in REACH])
                offered[around[around >= 0]] = True
        if probe.also:
            also = np.array(probe.also)  # positions, which only grow along a partition
            first, last = (self.table.seq.searchsorted(also, side).tolist() for side in ("left", "right"))
            for start, end in zip(first, last, strict=True):
                offered[start:end] = True
        if probe.spans:
            said = self.table.said
            inside = np.any([(said >= start) & (said < end) for start, end in probe.spans], axis=0)
            offered[np.flatnonzero(sight.chosen & inside)[-probe.depth :]] = True
        return np.flatnonzero(offered & sight.chosen)

    def _step(self, picked: Ints, distance: int) -> Ints:
        """The turns so many turns later, or earlier."""
        before, after = self.turns or ((), ())
        way, found = np.asarray(after if distance > 0 else before), picked
        for _ in range(abs(distance)):
            found = np.where(found >= 0, way[found], NOBODY)
        return found

    def _best(self, ordinals: Ints, scores: Floats, shown: Bearings | None = None) -> Listing:
        """The best by some scores, which are shown unless others are; at most as deep as asked, equals newest first."""
        depth = self.question.probe.depth
        if len(ordinals) > depth:
            kept = scores >= np.partition(scores, -depth)[-depth]
            ordinals, scores = ordinals[kept], scores[kept]
        ordinals, scores = ordinals[::-1], scores[::-1]  # newest first, for what sorts them leaves equals as they are
        order = (-scores).argsort(kind="stable")[:depth]
        best = ordinals[order]

        def known() -> Iterable[tuple[int, float, float]]:
            showing = scores[order] if shown is None else shown.of(best)
            return zip(self.table.seq[best].tolist(), showing.tolist(), scores[order].tolist(), strict=True)

        return Listing(best.tolist(), known)


class ArrayMarks(Marks):
    """What an array partition offers: a column is made when it is asked for, a mark when somebody looks at it."""

    def __init__(self, answer: ArrayAnswer, near: Mapping[int, int], words: Mapping[int, int]) -> None:
        self._answer = answer
        self._listed = {"near": near, "words": words}
        self._picked = answer.offered(near, words)
        self._stored = answer.sight.scene.stored(self._picked)
        self._lists: dict[str, Sequence[Any]] = {}

    @cached_property
    def made(self) -> Sequence[Mark]:
        """All of them."""
        return self.some(range(len(self)))

    def __len__(self) -> int:
        return len(self._picked)

    def column(self, name: str) -> Sequence[Any]:
        """One thing that is known of each."""
        if name in self._stored:
            return self._stored[name]
        if name not in self._lists:
            self._lists[name] = self._measured(name, self._picked)
        return self._lists[name]

    def some(self, places: Sequence[int]) -> Sequence[Mark]:
        """Those at some places."""
        picked, known = self._picked[np.array(places, np.int64)], {**self._stored, **self._lists}
        columns = [
            map(known[name].__getitem__, places) if name in known else self._measured(name, picked)
            for name in Mark._fields
        ]
        return list(map(partial(tuple.__new__, Mark), zip(*columns, strict=True)))

    def _measured(self, name: str, picked: Ints) -> Sequence[Any]:
        """What a question brings to one column of some passages."""
        answer = self._answer
        found: list[Any]
        if name in self._listed:
            return list(map(self._listed[name].get, picked.tolist()))
        if name in ("bm25", "cover"):
            found = (answer.bm25[picked] if name == "bm25" else answer.cover(picked)).tolist()
            return found
        measures = answer.hubs if name == "hub" else answer.cosines
        if measures is None or answer.cosines is None:
            return [NO_VECTOR[name]] * len(picked)
        if name == "code":
            found = list(answer.codes.each(picked))
        else:
            found = (answer.dense(picked, measures) if name == "dense" else measures.of(picked)).tolist()
        if answer.sight.scene.able is answer.sight.scene.visible:
            return found
        able = answer.codes.there[picked].tolist()
        return [value if has else NO_VECTOR[name] for value, has in zip(found, able, strict=True)]


def sketched(codes: Array) -> Array:
    """One bit for each dimension, 64 to a word, a row of words for each stretch of dimensions."""
    bits = np.packbits(codes > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64).T


def _dots(codes: Array, aim: Array) -> Array:
    """The products of codes with a direction; row by row, for what multiplies matrices wakes other threads for it."""
    dots: Array = np.vecdot(codes[:, :EXACT_DIMS], aim[:EXACT_DIMS])
    if len(aim) <= EXACT_DIMS:
        return dots
    return dots.astype(np.float64) + _dots(codes[:, EXACT_DIMS:], aim[EXACT_DIMS:])
