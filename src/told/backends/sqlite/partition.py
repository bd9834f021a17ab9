"""One in-memory partition: the columns every search needs, refreshed incrementally.

`partition_numpy` and `partition_python` implement it and return equal results.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import POSTING_BYTES, TF_BITS, iter_postings
from told.backends.sqlite.connection import run_query
from told.backends.sqlite.rows import get_passage_id_range
from told.errors import StoreCorrupt
from told.model.query import Candidate
from told.model.scoring import Centroid, CorpusStatistics, QueryStatistics

PASSAGE_BYTES = 350
TF_MASK = (1 << TF_BITS) - 1


class Visibility(NamedTuple):
    """The rows a search may see; `base` and `chosen` are ordinals that SQL selected."""

    spaces: frozenset[int]
    seq: int
    at: int
    show_expired: bool
    base_ordinals: frozenset[int] | None = None
    filtered_ordinals: frozenset[int] | None = None
    needs_centroid: bool = False


class PassageRow(NamedTuple):
    """The fields of a passage that a search needs.

    `before` is the ordinal of the previous turn or -1, and `first` that of the conversation's
    first turn. Only `counted` passages enter the statistics.
    """

    seq: int
    space: int
    until: int
    expires: int
    length: int
    slot: int
    before: int
    said_at: int
    counted: int
    speaker: int
    first_turn: int


Speaker: TypeAlias = tuple[str | None, str | None]
"""A role and a name."""


class PartitionRanking(NamedTuple):
    """A retriever's ranking of a partition: ordinals, positions, shown and sorting scores."""

    ordinals: list[int]
    load_scores: Callable[[], Iterable[tuple[int, float, float]]]


class PartitionResult(Protocol):
    """The rankings of one partition for a query and the data of its candidates."""

    by_vector: PartitionRanking
    by_terms: PartitionRanking

    def build_candidates(
        self, vector_ranks: Mapping[int, int], word_ranks: Mapping[int, int]
    ) -> Sequence[Candidate]:
        """Build the candidates by ordinal, given their ranks in each list."""


class PartitionView(Protocol):
    """The visible rows of a partition at one moment."""

    @property
    def corpus(self) -> CorpusStatistics:
        """Return the corpus statistics."""

    def get_speaker_names(self) -> frozenset[str]:
        """Return the names of the speakers."""

    def get_document_frequencies(self) -> Sequence[int]:
        """Return each query term's number of visible passages."""

    def sum_vectors(self) -> tuple[Sequence[int], int]:
        """Return the weighted sum of the visible vectors and their count."""

    def get_centroid(self) -> Centroid:
        """Return the centroid of the visible vectors."""

    def rank_passages(self, stats: QueryStatistics) -> PartitionResult:
        """Rank passages with each retriever."""


class Partition(ABC):
    """The base class of partitions: how they follow the file."""

    def __init__(self, part: int, model: vectors.StoredModel | None, exact_rows: int) -> None:
        self.part = part
        self.model = model
        self.exact_rows = exact_rows
        self.row_count = 0
        self.folded_count = 0
        self.version = -1
        self.epoch = -1
        self.closed_seq = 0
        self.missing_vectors: set[int] = set()
        self.lock = threading.Lock()
        self._unfolded_postings: dict[str, list[int]] = {}
        self._postings_cache: dict[str, tuple[Any, int]] = {}
        self._postings_bytes = 0
        self.speaker_table: list[Speaker] = []
        self._speaker_ids: dict[Speaker, int] = {}
        self._first_turns: list[int] = []

    def refresh(self, db: apsw.Connection, max_rows: int) -> bool:
        """Catch up with the file; return False if this snapshot is older than the cached state.

        New rows, closed rows and late vectors are added; after an erasure or a rebuild
        everything is reloaded. Also return False, reading nothing, if more than `max_rows`
        rows are new.
        """
        state = run_query(db, "part_state", self.part).fetchone()
        if state is None:
            raise self._build_corrupt_error("passages")
        row_count, folded, version, epoch = state
        if version == self.version:
            return True
        if (
            version < self.version
            or row_count - (self.row_count if epoch == self.epoch else 0) > max_rows
        ):
            return False
        if epoch != self.epoch:
            self._clear()
            self.row_count, self.folded_count, self.closed_seq, self.missing_vectors = (
                0,
                -1,
                0,
                set(),
            )
            self.speaker_table, self._speaker_ids, self._first_turns = [], {}, []
        self.version = self.epoch = -1  # if this is interrupted, the next refresh starts over
        start, self.row_count = self.row_count, row_count
        new_rows: Sequence[tuple[Any, ...]] = ()
        if row_count > start:
            new_rows = run_query(
                db, "part_rows", *get_passage_id_range(self.part, start)
            ).fetchall()
            if len(new_rows) != row_count - start or (new_rows[0][0], new_rows[-1][0]) != (
                start,
                row_count - 1,
            ):
                raise self._build_corrupt_error("passages")
            try:
                self._append_rows(self._build_columns(new_rows))
            except (TypeError, ValueError, OverflowError) as error:
                raise self._build_corrupt_error("passages") from error
            self.missing_vectors.update(range(start, row_count))
        self._load_terms(db, folded, new_rows)
        for ordinal, until in run_query(db, "part_closed", self.part, self.closed_seq).fetchall():
            self._close_passage(ordinal, until)
            self.closed_seq = max(self.closed_seq, until)
        self._load_vectors(db, epoch, start)
        self.version, self.epoch = version, epoch
        return True

    def _build_columns(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[Sequence[int]]:
        """Transpose file rows into the columns of `PassageRow`."""
        _, *columns, roles, actors, _terms = zip(*rows, strict=True)
        speakers = list(zip(roles, actors, strict=True))
        for speaker in dict.fromkeys(speakers):
            if speaker not in self._speaker_ids:
                self._speaker_ids[speaker] = len(self.speaker_table)
                self.speaker_table.append(speaker)
        first_turns = self._first_turns
        for previous in columns[PassageRow._fields.index("before")]:
            first_turns.append(
                first_turns[previous] if 0 <= previous < len(first_turns) else len(first_turns)
            )
        return (
            *columns,
            [self._speaker_ids[speaker] for speaker in speakers],
            first_turns[-len(rows) :],
        )

    def _load_vectors(self, db: apsw.Connection, epoch: int, new_start: int) -> None:
        if self.model is None or not self.missing_vectors:
            return
        start = min(new_start, *self.missing_vectors)
        for ordinal, codes in vectors.load_codes(
            db, self.model, self.part, epoch, start, self.row_count
        ).items():
            self._store_codes(ordinal, codes)
            self.missing_vectors.difference_update(
                range(ordinal, ordinal + len(codes) // self.model.dim)
            )

    def _load_terms(
        self, db: apsw.Connection, folded: int, rows: Iterable[tuple[Any, ...]]
    ) -> None:
        """Keep postings of unfolded passages; reset them when more are folded."""
        if folded != self.folded_count:
            self.folded_count, self._postings_bytes = folded, 0
            self._postings_cache.clear()
            self._unfolded_postings.clear()
            rows = run_query(db, "part_terms", *get_passage_id_range(self.part, folded)).fetchall()
        for ordinal, *_, words in rows:
            if not isinstance(words, str):
                raise self._build_corrupt_error("terms")
            for term, doc in iter_postings(ordinal, words):
                self._unfolded_postings.setdefault(term, []).append(doc)

    def get_postings(self, db: apsw.Connection, term: str) -> Any:
        """Return a term's postings, folded ones first, in this class's representation."""
        cached, joined_count = self._postings_cache.get(term, (None, 0))
        tail = self._unfolded_postings.get(term, ())
        if cached is None or len(tail) > joined_count:
            merged = self._load_postings(db, term) if cached is None else cached
            merged = self._append_postings(merged, tail[joined_count:]) if tail else merged
            self._postings_bytes += (
                len(merged) - (0 if cached is None else len(cached))
            ) * POSTING_BYTES
            self._postings_cache[term] = cached, _ = merged, len(tail)
        return cached

    def _load_postings(self, db: apsw.Connection, term: str) -> Any:
        """Load a term's folded postings in ascending order."""
        blobs = [docs for (docs,) in run_query(db, "postings", self.part, term)]
        if not all(isinstance(blob, bytes) and len(blob) % POSTING_BYTES == 0 for blob in blobs):
            raise self._build_corrupt_error("postings")
        postings = self._unpack_postings(b"".join(blobs))
        if len(postings) and not (
            postings[-1] >> TF_BITS < self.folded_count and self._is_ascending(postings)
        ):
            raise self._build_corrupt_error("postings")
        return postings

    def _build_corrupt_error(self, part_name: str) -> StoreCorrupt:
        return StoreCorrupt(
            f"The {part_name} of partition {self.part} are damaged.", hint="Run `told rebuild`."
        )

    @property
    def size(self) -> int:
        """Estimate the partition's size in bytes."""
        dim = self.model.dim if self.model else 0
        return self.row_count * (PASSAGE_BYTES + self._vector_bytes(dim)) + self._postings_bytes

    # Implemented by each partition class

    @abstractmethod
    def select_visible(
        self, db: apsw.Connection, visibility: Visibility, terms: Sequence[str]
    ) -> PartitionView:
        """Return the visible rows with the postings of these terms."""

    @abstractmethod
    def _clear(self) -> None:
        """Drop every row."""

    @abstractmethod
    def _append_rows(self, columns: Sequence[Sequence[int]]) -> None:
        """Append rows given as the columns of `PassageRow`."""

    @abstractmethod
    def _close_passage(self, ordinal: int, until: int) -> None:
        """Record that a passage is no longer the latest."""

    @abstractmethod
    def _store_codes(self, ordinal: int, codes: bytes) -> None:
        """Store the codes of consecutive passages."""

    @abstractmethod
    def _unpack_postings(self, blob: bytes) -> Any:
        """Unpack postings into this class's representation."""

    @abstractmethod
    def _is_ascending(self, docs: Any) -> bool:
        """Return whether postings are in ascending order."""

    @abstractmethod
    def _append_postings(self, docs: Any, tail: Sequence[int]) -> Any:
        """Append the newest passages' postings."""

    @abstractmethod
    def _vector_bytes(self, dim: int) -> int:
        """Return a vector's size in memory."""
