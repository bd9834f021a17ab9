"""One partition in memory: the columns every search needs, kept fresh row by row.

`arrays.py` keeps them in NumPy, `plain.py` in plain Python; both answer alike to the last bit.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import DOC_BYTES, TF_BITS, docs_of
from told.backends.sqlite.connect import run
from told.backends.sqlite.rows import part_span
from told.core.errors import StoreCorrupt
from told.core.query import Mark
from told.core.question import Question
from told.core.score import Centre, Corpus

ROW_BYTES = 350
TF_MASK = (1 << TF_BITS) - 1


class Look(NamedTuple):
    """What of a partition a search may see; `base` and `chosen` are ordinals where SQL had to decide."""

    spaces: frozenset[int]
    seq: int
    at: int
    show_expired: bool
    base: frozenset[int] | None = None
    chosen: frozenset[int] | None = None
    centred: bool = False


class Row(NamedTuple):
    """What a search needs of one passage.

    `before` is the ordinal of the turn it was said after, else -1, and `first` that of the turn the talk began with.
    What is no memory but stands behind one is not `counted` in any statistics.
    """

    seq: int
    space: int
    until: int
    expires: int
    length: int
    slot: int
    before: int
    said: int
    counted: int
    voice: int
    first: int


Speaker: TypeAlias = tuple[str | None, str | None]
"""A role and a name."""


class Listing(NamedTuple):
    """What a retriever offers of a partition, best first: ordinals, and for whoever asks what is known of each.

    That is its position, the score to show, and the score that orders them.
    """

    ordinals: list[int]
    known: Callable[[], Iterable[tuple[int, float, float]]]


class Answer(Protocol):
    """What one partition offers for a question: each list best first, and all that is known of what is in them."""

    near: Listing
    words: Listing

    def marks(self, near: Mapping[int, int], words: Mapping[int, int]) -> Sequence[Mark]:
        """The marks of what is offered, in order of ordinals, given the places by ordinal that each list gave."""


class Sight(Protocol):
    """The visible part of a partition at one moment."""

    @property
    def corpus(self) -> Corpus:
        """How much is visible."""

    def speakers(self) -> frozenset[str]:
        """The names of those who speak in it."""

    def containing(self) -> Sequence[int]:
        """How many visible passages contain each term looked for."""

    def total(self) -> tuple[Sequence[int], int]:
        """The sum of the visible vectors, each times its share, and how many there are."""

    def middle(self) -> Centre:
        """The centre of the visible vectors."""

    def answer(self, question: Question) -> Answer:
        """The best passages of each retriever."""


class Partition(ABC):
    """What both kinds of partition share: how they follow the file."""

    def __init__(self, part: int, model: vectors.Model | None, exact_rows: int) -> None:
        self.part = part
        self.model = model
        self.exact_rows = exact_rows
        self.rows = 0
        self.folded = 0
        self.version = -1
        self.epoch = -1
        self.closed_to = 0
        self.missing: set[int] = set()
        self.lock = threading.Lock()
        self._tail: dict[str, list[int]] = {}
        self._postings: dict[str, tuple[Any, int]] = {}
        self._words = 0
        self.voices: list[Speaker] = []
        self._numbers: dict[Speaker, int] = {}
        self._firsts: list[int] = []

    def refresh(self, db: apsw.Connection, most: int) -> bool:
        """Catch up with the file; False when another thread has already seen a later state than this snapshot.

        New rows, closed rows and late vectors are added; after an erasure or a rebuild everything is read anew. If more
        than so many rows are new, none is read, and it is False as well.
        """
        state = run(db, "part_state", self.part).fetchone()
        if state is None:
            raise self._damaged("passages")
        rows, folded, version, epoch = state
        if version == self.version:
            return True
        if version < self.version or rows - (self.rows if epoch == self.epoch else 0) > most:
            return False
        if epoch != self.epoch:
            self._clear()
            self.rows, self.folded, self.closed_to, self.missing = 0, -1, 0, set()
            self.voices, self._numbers, self._firsts = [], {}, []
        self.version = self.epoch = -1  # should this break off half-way, the next one begins anew
        first, self.rows = self.rows, rows
        fresh: Sequence[tuple[Any, ...]] = ()
        if rows > first:
            fresh = run(db, "part_rows", *part_span(self.part, first)).fetchall()
            if len(fresh) != rows - first or (fresh[0][0], fresh[-1][0]) != (first, rows - 1):
                raise self._damaged("passages")
            try:
                self._append(self._columns(fresh))
            except (TypeError, ValueError, OverflowError) as error:
                raise self._damaged("passages") from error
            self.missing.update(range(first, rows))
        self._load_terms(db, folded, fresh)
        for ordinal, until in run(db, "part_closed", self.part, self.closed_to).fetchall():
            self._close(ordinal, until)
            self.closed_to = max(self.closed_to, until)
        self._load_vectors(db, epoch, first)
        self.version, self.epoch = version, epoch
        return True

    def _columns(self, fresh: Sequence[tuple[Any, ...]]) -> Sequence[Sequence[int]]:
        """Rows of the file as the columns of `Row`."""
        _, *columns, roles, actors, _terms = zip(*fresh, strict=True)
        speakers = list(zip(roles, actors, strict=True))
        for speaker in dict.fromkeys(speakers):
            if speaker not in self._numbers:
                self._numbers[speaker] = len(self.voices)
                self.voices.append(speaker)
        firsts = self._firsts
        for before in columns[Row._fields.index("before")]:
            firsts.append(firsts[before] if 0 <= before < len(firsts) else len(firsts))
        return *columns, [self._numbers[speaker] for speaker in speakers], firsts[-len(fresh) :]

    def _load_vectors(self, db: apsw.Connection, epoch: int, first: int) -> None:
        if self.model is None or not self.missing:
            return
        start = min(first, *self.missing)
        for ordinal, codes in vectors.load(db, self.model, self.part, epoch, start, self.rows).items():
            self._vectors(ordinal, codes)
            self.missing.difference_update(range(ordinal, ordinal + len(codes) // self.model.dim))

    def _load_terms(self, db: apsw.Connection, folded: int, fresh: Iterable[tuple[Any, ...]]) -> None:
        """Keep the postings of passages not yet folded at hand; once more are folded, begin both anew."""
        if folded != self.folded:
            self.folded, self._words = folded, 0
            self._postings.clear()
            self._tail.clear()
            fresh = run(db, "part_terms", *part_span(self.part, folded)).fetchall()
        for ordinal, *_, words in fresh:
            if not isinstance(words, str):
                raise self._damaged("terms")
            for term, doc in docs_of(ordinal, words):
                self._tail.setdefault(term, []).append(doc)

    def postings(self, db: apsw.Connection, term: str) -> Any:
        """A term's postings as this kind of partition likes them: those folded, then those of the newest passages."""
        found, taken = self._postings.get(term, (None, 0))
        tail = self._tail.get(term, ())
        if found is None or len(tail) > taken:
            whole = self._load_postings(db, term) if found is None else found
            whole = self._joined(whole, tail[taken:]) if tail else whole
            self._words += (len(whole) - (0 if found is None else len(found))) * DOC_BYTES
            self._postings[term] = found, _ = whole, len(tail)
        return found

    def _load_postings(self, db: apsw.Connection, term: str) -> Any:
        """A term's folded postings: whole numbers, each of a later passage than the one before, all of them folded."""
        blobs = [docs for (docs,) in run(db, "postings", self.part, term)]
        if not all(isinstance(blob, bytes) and len(blob) % DOC_BYTES == 0 for blob in blobs):
            raise self._damaged("postings")
        found = self._unpack(b"".join(blobs))
        if len(found) and not (found[-1] >> TF_BITS < self.folded and self._ascending(found)):
            raise self._damaged("postings")
        return found

    def _damaged(self, what: str) -> StoreCorrupt:
        return StoreCorrupt(f"The {what} of partition {self.part} are damaged.", hint="Run `told rebuild`.")

    @property
    def size(self) -> int:
        """Roughly how many bytes the partition takes."""
        dim = self.model.dim if self.model else 0
        return self.rows * (ROW_BYTES + self._vector_bytes(dim)) + self._words

    # What a kind of partition must know how to do

    @abstractmethod
    def look(self, db: apsw.Connection, look: Look, terms: Sequence[str]) -> Sight:
        """What is visible now, with the postings of these terms at hand."""

    @abstractmethod
    def _clear(self) -> None:
        """Forget every row."""

    @abstractmethod
    def _append(self, columns: Sequence[Sequence[int]]) -> None:
        """Take in rows that follow those known, as the columns of `Row`."""

    @abstractmethod
    def _close(self, ordinal: int, until: int) -> None:
        """Note that a passage stopped being the latest."""

    @abstractmethod
    def _vectors(self, ordinal: int, codes: bytes) -> None:
        """Take in the codes of one or more passages from an ordinal on."""

    @abstractmethod
    def _unpack(self, blob: bytes) -> Any:
        """Postings as this kind likes them."""

    @abstractmethod
    def _ascending(self, docs: Any) -> bool:
        """Whether postings are in order, as they were written."""

    @abstractmethod
    def _joined(self, docs: Any, tail: Sequence[int]) -> Any:
        """Postings with those of the newest passages after them."""

    @abstractmethod
    def _vector_bytes(self, dim: int) -> int:
        """What a vector takes in memory."""
