"""A probe as every part of an index answers it: weighed with the statistics of everything the read can see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from told.core.query import IndexQuery
from told.core.score import (
    Centroid,
    CorpusStatistics,
    expected_cosine,
    find_named_speakers,
    idf,
    query_cosine,
    sample_confidence,
    select_query_terms,
)
from told.core.value import fast_frozen_init


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """A probe as every part of an index answers it: with the statistics of everything the read can see.

    `off` is how much of the mean direction is really taken off, and `level` how near a passage then is on the average.
    """

    index_query: IndexQuery
    term_weights: Mapping[str, float]
    average_length: float
    named_speakers: tuple[str, ...] = ()
    query_code: bytes = b""
    centroid: Centroid = field(default_factory=Centroid)
    centring: float = 0.0
    expected_cosine: float = 0.0
    passage_count: int = 0

    @property
    def total_weight(self) -> float:
        """What all terms of the query tell together."""
        return sum(self.term_weights.values())


def build_query_statistics(
    index_query: IndexQuery,
    query_code: bytes,
    corpus: CorpusStatistics,
    document_frequencies: Sequence[int],
    speakers: Iterable[str],
    centroid: Centroid,
    vector_count: int,
    cosine_fn: Callable[[bytes, bytes], float] = query_cosine,
) -> QueryStatistics:
    """What is asked, given its vector's code and what is visible: how much, with which terms, by whom, and where.

    The last is the centre of so many vectors; `toward` is what the cosine of a query with a code is found by.
    """
    terms = tuple(dict.fromkeys(index_query.terms))
    named_speakers, name_terms = (
        find_named_speakers(speakers, index_query.words) if index_query.words else ((), frozenset())
    )
    counted_terms = select_query_terms(terms, name_terms)
    pairs = zip(terms, document_frequencies, strict=True)
    term_weights = {
        term: idf(corpus, frequency) if term in counted_terms else 0.0 for term, frequency in pairs
    }
    confidence = sample_confidence(vector_count)
    centring = index_query.centre * confidence
    centroid_cosine = (
        cosine_fn(query_code, centroid.code) if query_code and centroid.length else 0.0
    )
    expected = (
        expected_cosine(centroid_cosine, centroid, centring, index_query.usual, confidence)
        if query_code
        else 0.0
    )
    return QueryStatistics(
        index_query,
        term_weights,
        corpus.average_length,
        named_speakers,
        query_code,
        centroid,
        centring,
        expected,
        corpus.passage_count,
    )
