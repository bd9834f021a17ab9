"""One partition in memory, in plain Python: what there is when NumPy is not installed.

`arrays.py` is the same thing in NumPy; both answer alike to the last bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import TF_BITS
from told.backends.sqlite.partition import TF_MASK, Answer, Listing, Look, Partition, Row, Sight, Speaker
from told.core.match import Matches, Turns, Voice, places, summed
from told.core.query import Mark
from told.core.question import Question
from told.core.score import Centre, Corpus, centre


class PlainPartition(Partition):
    """A partition in lists; what there is when NumPy is not installed."""

    def __init__(self, part: int, model: vectors.Model | None, exact_rows: int) -> None:
        super().__init__(part, model, exact_rows)
        self._clear()

    def look(self, db: apsw.Connection, look: Look, terms: Sequence[str]) -> Sight:
        """What is visible now."""
        base = look.base
        seen = {
            ordinal: row
            for ordinal, row in enumerate(self.table)
            if row.space in look.spaces and (ordinal in base if base is not None else row.seq <= look.seq < row.until)
            and (look.show_expired or row.expires > look.at)
        }  # fmt: skip
        chosen = frozenset(seen) if look.chosen is None else look.chosen
        counts: dict[int, dict[str, int]] = {}
        for term in terms:
            for doc in self.postings(db, term):
                if doc >> TF_BITS in seen:
                    counts.setdefault(doc >> TF_BITS, {})[term] = doc & TF_MASK
        codes = {ordinal: code for ordinal in seen if any(code := self.codes.get(ordinal, b""))}
        voices = {ordinal: self.voices[row.voice] for ordinal, row in seen.items()}
        firsts = {ordinal: self.table[row.first].seq for ordinal, row in seen.items()}
        return PlainSight(tuple(terms), seen, chosen, counts, codes, voices, firsts)

    def _clear(self) -> None:
        self.table: list[Row] = []
        self.codes: dict[int, bytes] = {}

    def _append(self, columns: Sequence[Sequence[int]]) -> None:
        self.table.extend(map(Row._make, zip(*columns, strict=True)))

    def _close(self, ordinal: int, until: int) -> None:
        self.table[ordinal] = self.table[ordinal]._replace(until=until)

    def _vectors(self, ordinal: int, codes: bytes) -> None:
        dim = self.model.dim if self.model else 1
        for number in range(len(codes) // dim):
            self.codes[ordinal + number] = codes[number * dim : (number + 1) * dim]

    def _unpack(self, blob: bytes) -> array[int]:
        return array("I", blob)

    def _ascending(self, docs: array[int]) -> bool:
        return all(one >> TF_BITS < other >> TF_BITS for one, other in pairwise(docs))

    def _joined(self, docs: array[int], tail: Sequence[int]) -> array[int]:
        return docs + array("I", tail)

    def _vector_bytes(self, dim: int) -> int:
        return dim + 60


@dataclass(frozen=True, slots=True)
class PlainSight:
    """The visible part of a plain partition."""

    terms: tuple[str, ...]
    seen: Mapping[int, Row]
    chosen: frozenset[int]
    counts: Mapping[int, Mapping[str, int]]
    codes: Mapping[int, bytes]
    voices: Mapping[int, Speaker]
    firsts: Mapping[int, int]

    @property
    def corpus(self) -> Corpus:
        """How much of what is visible counts."""
        counted = [row.length for row in self.seen.values() if row.counted]
        return Corpus(len(counted), sum(counted))

    def speakers(self) -> frozenset[str]:
        """Who speaks."""
        return frozenset(actor for _, actor in self.voices.values() if actor)

    def containing(self) -> Sequence[int]:
        """How many visible passages contain each term."""
        counted = [count for ordinal, count in self.counts.items() if self.seen[ordinal].counted]
        return [sum(term in count for count in counted) for term in self.terms]

    def total(self) -> tuple[Sequence[int], int]:
        """The sum of the visible vectors."""
        return summed(code for ordinal, code in self.codes.items() if self.seen[ordinal].counted)

    def middle(self) -> Centre:
        """The centre of the visible vectors."""
        return centre(*self.total())

    def answer(self, question: Question) -> Answer:
        """The best of each retriever."""
        lengths = {ordinal: row.length for ordinal, row in self.seen.items()}
        before = {ordinal: row.before for ordinal, row in self.seen.items() if row.before in self.seen}
        matches = Matches(question, lengths, self.counts, self.codes, Turns.of(before))
        return PlainAnswer(self, matches)


class PlainAnswer:
    """What a plain partition offers for a question."""

    def __init__(self, sight: PlainSight, matches: Matches[int]) -> None:
        self.matches = matches
        self.voices = {
            ordinal: Voice(row.seq, row.slot, row.said, sight.firsts[ordinal], *sight.voices[ordinal])
            for ordinal, row in sight.seen.items()
            if ordinal in sight.chosen
        }
        listed = {ordinal: score for ordinal, score in matches.words.items() if score > 0.0}
        self.near = self._listing(matches.near, matches.cosines)
        self.words = self._listing(listed, listed)

    def _listing(self, scores: Mapping[int, float], shown: Mapping[int, float]) -> Listing:
        best = [ordinal for _, ordinal in self.matches.best(scores, self.voices)]
        return Listing(best, lambda: ((self.voices[o].seq, shown[o], scores[o]) for o in best))

    def marks(self, near: Mapping[int, int], words: Mapping[int, int]) -> list[Mark]:
        """Everything known of what is offered, given the places it took in the two lists."""
        offered = self.matches.offered(places(near, words), self.voices)
        return [self.matches.mark(o, self.voices[o], near.get(o), words.get(o)) for o in offered]
