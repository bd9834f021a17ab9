"""One in-memory partition in pure Python, used when NumPy is not installed."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import TF_BITS
from told.backends.sqlite.partition import (
    TF_MASK,
    Partition,
    PartitionRanking,
    PartitionResult,
    PartitionView,
    PassageRow,
    Speaker,
    Visibility,
)
from told.model.query import Candidate
from told.model.scoring import (
    Centroid,
    CorpusStatistics,
    PassageOrigin,
    PassageScorer,
    QueryStatistics,
    TurnOrder,
    best_ranks,
    compute_centroid,
    sum_codes,
)


class PythonPartition(Partition):
    """A partition in lists."""

    def __init__(self, part: int, model: vectors.StoredModel | None, exact_rows: int) -> None:
        super().__init__(part, model, exact_rows)
        self._clear()

    def select_visible(
        self, db: apsw.Connection, visibility: Visibility, terms: Sequence[str]
    ) -> PartitionView:
        """Return the visible rows."""
        base_ordinals = visibility.base_ordinals
        visible = {
            ordinal: row
            for ordinal, row in enumerate(self.table)
            if row.space in visibility.spaces
            and (
                ordinal in base_ordinals
                if base_ordinals is not None
                else row.seq <= visibility.seq < row.until
            )
            and (visibility.show_expired or row.expires > visibility.at)
        }
        filtered = (
            frozenset(visible)
            if visibility.filtered_ordinals is None
            else visibility.filtered_ordinals
        )
        term_counts: dict[int, dict[str, int]] = {}
        for term in terms:
            for doc in self.get_postings(db, term):
                if doc >> TF_BITS in visible:
                    term_counts.setdefault(doc >> TF_BITS, {})[term] = doc & TF_MASK
        codes = {ordinal: code for ordinal in visible if any(code := self.codes.get(ordinal, b""))}
        speakers = {ordinal: self.speaker_table[row.speaker] for ordinal, row in visible.items()}
        first_turn_seqs = {
            ordinal: self.table[row.first_turn].seq for ordinal, row in visible.items()
        }
        return PythonPartitionView(
            tuple(terms), visible, filtered, term_counts, codes, speakers, first_turn_seqs
        )

    def _clear(self) -> None:
        self.table: list[PassageRow] = []
        self.codes: dict[int, bytes] = {}

    def _append_rows(self, columns: Sequence[Sequence[int]]) -> None:
        self.table.extend(map(PassageRow._make, zip(*columns, strict=True)))

    def _close_passage(self, ordinal: int, until: int) -> None:
        self.table[ordinal] = self.table[ordinal]._replace(until=until)

    def _store_codes(self, ordinal: int, codes: bytes) -> None:
        dim = self.model.dim if self.model else 1
        for number in range(len(codes) // dim):
            self.codes[ordinal + number] = codes[number * dim : (number + 1) * dim]

    def _unpack_postings(self, blob: bytes) -> array[int]:
        return array("I", blob)

    def _is_ascending(self, docs: array[int]) -> bool:
        return all(
            current >> TF_BITS < following >> TF_BITS for current, following in pairwise(docs)
        )

    def _append_postings(self, docs: array[int], tail: Sequence[int]) -> array[int]:
        return docs + array("I", tail)

    def _vector_bytes(self, dim: int) -> int:
        return dim + 60


@dataclass(frozen=True, slots=True)
class PythonPartitionView:
    """The visible rows of a pure-Python partition."""

    terms: tuple[str, ...]
    visible: Mapping[int, PassageRow]
    filtered: frozenset[int]
    term_counts: Mapping[int, Mapping[str, int]]
    codes: Mapping[int, bytes]
    speakers: Mapping[int, Speaker]
    first_turn_seqs: Mapping[int, int]

    @property
    def corpus(self) -> CorpusStatistics:
        """Return the corpus statistics of visible memories."""
        lengths = [row.length for row in self.visible.values() if row.counted]
        return CorpusStatistics(len(lengths), sum(lengths))

    def get_speaker_names(self) -> frozenset[str]:
        """Return the names of the speakers."""
        return frozenset(actor for _, actor in self.speakers.values() if actor)

    def get_document_frequencies(self) -> Sequence[int]:
        """Return each term's number of visible passages."""
        passage_counts = [
            count for ordinal, count in self.term_counts.items() if self.visible[ordinal].counted
        ]
        return [sum(term in count for count in passage_counts) for term in self.terms]

    def sum_vectors(self) -> tuple[Sequence[int], int]:
        """Return the sum of the visible vectors and their count."""
        return sum_codes(
            code for ordinal, code in self.codes.items() if self.visible[ordinal].counted
        )

    def get_centroid(self) -> Centroid:
        """Return the centroid of the visible vectors."""
        return compute_centroid(*self.sum_vectors())

    def rank_passages(self, stats: QueryStatistics) -> PartitionResult:
        """Rank passages with each retriever."""
        lengths = {ordinal: row.length for ordinal, row in self.visible.items()}
        before = {
            ordinal: row.before
            for ordinal, row in self.visible.items()
            if row.before in self.visible
        }
        matches = PassageScorer(
            stats, lengths, self.term_counts, self.codes, TurnOrder.from_previous(before)
        )
        return PythonPartitionResult(self, matches)


class PythonPartitionResult:
    """The ranked passages of a pure-Python partition for one query."""

    def __init__(self, view: PythonPartitionView, matches: PassageScorer[int]) -> None:
        self.matches = matches
        self.origins = {
            ordinal: PassageOrigin(
                row.seq,
                row.slot,
                row.said_at,
                view.first_turn_seqs[ordinal],
                *view.speakers[ordinal],
            )
            for ordinal, row in view.visible.items()
            if ordinal in view.filtered
        }
        word_scores = {
            ordinal: score for ordinal, score in matches.bm25_scores.items() if score > 0.0
        }
        self.by_vector = self._build_ranking(matches.centred_cosines, matches.cosines)
        self.by_terms = self._build_ranking(word_scores, word_scores)

    def _build_ranking(
        self, scores: Mapping[int, float], shown_scores: Mapping[int, float]
    ) -> PartitionRanking:
        best_ordinals = [ordinal for _, ordinal in self.matches.rank_best(scores, self.origins)]
        return PartitionRanking(
            best_ordinals,
            lambda: ((self.origins[o].seq, shown_scores[o], scores[o]) for o in best_ordinals),
        )

    def build_candidates(
        self, vector_ranks: Mapping[int, int], word_ranks: Mapping[int, int]
    ) -> list[Candidate]:
        """Build the candidates, given their ranks in the two lists."""
        ordinals = self.matches.select_candidates(
            best_ranks(vector_ranks, word_ranks), self.origins
        )
        return [
            self.matches.build_candidate(o, self.origins[o], vector_ranks.get(o), word_ranks.get(o))
            for o in ordinals
        ]
