"""What a read sees and how well it matches, in naive loops over one account: what other indexes are held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from told.backends.ram_account import InMemoryAccount
from told.core.fact import UNLISTED_KINDS, Fact, Passage
from told.core.filter import matches_filter, to_record
from told.core.ids import hash_text
from told.core.match import PassageOrigin, PassageScorer, TurnOrder, best_ranks, sum_codes
from told.core.query import FactQuery, IndexQuery, IndexResult, RankedList, select_version
from told.core.question import build_query_statistics
from told.core.score import CorpusStatistics, compute_centroid, count_term_frequencies, encode_query
from told.core.text import extract_terms


def select_visible(account: InMemoryAccount, query: FactQuery) -> Sequence[Fact]:
    """The facts a scope can see at a point in time, oldest first, before any filter on what they say."""
    threads: dict[str, list[Fact]] = {}
    for fact in account.facts.values():
        if query.scope.covers(fact.scope):
            threads.setdefault(fact.id, []).append(fact)
    current = [
        current
        for versions in threads.values()
        if (current := select_version(versions, query.as_of)) is not None
    ]
    unexpired = [fact for fact in current if query.show_expired or fact.expires > query.as_of.at]
    return sorted(unexpired, key=lambda fact: fact.seq)


def apply_filter(facts: Sequence[Fact], query: FactQuery) -> Sequence[Fact]:
    """Those of the facts that the find's filter lets through."""
    return [fact for fact in facts if matches_filter(query.filter, to_record(fact))]


def search_account(
    account: InMemoryAccount, vectors: Mapping[bytes, bytes], index_query: IndexQuery
) -> IndexResult:
    """The best `depth` of each retriever among what the find lets through; its limit plays no part.

    The statistics are those of every memory the find sees before its filter, so that a filter moves no score.
    """
    current = {fact.seq: fact for fact in select_visible(account, index_query.query)}
    passages = {
        key: passage for key, passage in sorted(account.passages.items()) if key[0] in current
    }
    matching = {fact.seq for fact in apply_filter(list(current.values()), index_query.query)}
    tokens = {key: extract_terms(passage.text) for key, passage in passages.items()}
    counts = {key: count_term_frequencies(words) for key, words in tokens.items()}
    all_codes = {
        key: vectors.get(hash_text(account.build_embedded_text(passage)), b"")
        for key, passage in passages.items()
    }
    codes = {key: code for key, code in all_codes.items() if any(code)}
    previous = {
        key: (other.seq, other.slot)
        for key, passage in passages.items()
        if (other := account.find_previous_passage(passage)) is not None
    }
    listed = [key for key in passages if current[key[0]].kind not in UNLISTED_KINDS]
    needs_centre = index_query.centre and index_query.vector is not None
    vector_sum = (
        sum_codes(codes[key] for key in listed if key in codes) if needs_centre else ((), 0)
    )
    statistics = build_query_statistics(
        index_query,
        b"" if index_query.vector is None else encode_query(index_query.vector),
        CorpusStatistics(len(listed), sum(len(tokens[key]) for key in listed)),
        [sum(term in counts[key] for key in listed) for term in dict.fromkeys(index_query.terms)],
        [fact.actor for fact in current.values() if fact.actor],
        compute_centroid(*vector_sum),
        vector_sum[1],
    )
    turns = TurnOrder.from_previous(
        {key: other_key for key, other_key in previous.items() if other_key in passages}
    )
    scorer = PassageScorer(
        statistics, {key: len(words) for key, words in tokens.items()}, counts, codes, turns
    )
    voices = {
        key: _build_voice(current[key[0]], passage, account)
        for key, passage in passages.items()
        if key[0] in matching
    }
    return replace(_rank_matches(scorer, voices), has_links=bool(account.links))


def _build_voice(fact: Fact, passage: Passage, account: InMemoryAccount) -> PassageOrigin:
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    first = passage
    while (previous := account.find_previous_passage(first)) is not None:
        first = previous
    return PassageOrigin(fact.seq, passage.slot, said_at, first.seq, fact.role, fact.actor)


def _rank_matches(
    scorer: PassageScorer[tuple[int, int]], voices: Mapping[tuple[int, int], PassageOrigin]
) -> IndexResult:
    vector_hits = scorer.rank_best(scorer.centred_cosines, voices)
    word_hits = scorer.rank_best(
        {key: score for key, score in scorer.bm25_scores.items() if score > 0.0}, voices
    )
    vector_ranks, word_ranks = (
        {key: rank for rank, (_, key) in enumerate(hits, 1)} for hits in (vector_hits, word_hits)
    )
    keys = scorer.select_candidates(best_ranks(vector_ranks, word_ranks), voices)
    candidates = [
        scorer.build_candidate(key, voices[key], vector_ranks.get(key), word_ranks.get(key))
        for key in keys
    ]
    statistics = scorer.stats
    return IndexResult(
        RankedList(
            bool(vector_hits), lambda: ((key[0], scorer.cosines[key]) for _, key in vector_hits)
        ),
        RankedList(bool(word_hits), lambda: ((key[0], score) for score, key in word_hits)),
        candidates,
        statistics.named_speakers,
        statistics.total_weight,
        statistics.centroid.length,
        statistics.passage_count,
    )
