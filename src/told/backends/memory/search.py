"""Search of an in-memory account: every score computed from every visible passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from told.backends.memory.account import InMemoryAccount
from told.ids import hash_text
from told.model.fact import UNLISTED_KINDS, Fact, Passage
from told.model.filter import matches_filter, to_record
from told.model.query import FactQuery, IndexQuery, IndexResult, RankedList, select_version
from told.model.scoring import (
    CorpusStatistics,
    PassageOrigin,
    PassageScorer,
    TurnOrder,
    best_ranks,
    build_query_statistics,
    compute_centroid,
    count_term_frequencies,
    encode_query,
    sum_codes,
)
from told.text.tokens import extract_terms


def select_visible(account: InMemoryAccount, query: FactQuery) -> list[Fact]:
    """Return the facts a scope can see at a point in time, oldest first, before any filter."""
    threads: dict[str, list[Fact]] = {}
    for fact in account.facts.values():
        if query.scope.covers(fact.scope):
            threads.setdefault(fact.id, []).append(fact)
    versions = [select_version(thread, query.as_of) for thread in threads.values()]
    visible = [
        fact
        for fact in versions
        if fact is not None and (query.show_expired or fact.expires > query.as_of.at)
    ]
    return sorted(visible, key=lambda fact: fact.seq)


def apply_filter(facts: Sequence[Fact], query: FactQuery) -> list[Fact]:
    """Return the facts that match the query's filter."""
    return [fact for fact in facts if matches_filter(query.filter, to_record(fact))]


def search_account(
    account: InMemoryAccount, vectors: Mapping[bytes, bytes], index_query: IndexQuery
) -> IndexResult:
    """Return the best candidates of each retriever; statistics ignore the filter."""
    facts = {fact.seq: fact for fact in select_visible(account, index_query.query)}
    passages = {key: row for key, row in sorted(account.passages.items()) if key[0] in facts}
    tokens = {key: extract_terms(passage.text) for key, passage in passages.items()}
    term_counts = {key: count_term_frequencies(terms) for key, terms in tokens.items()}
    texts = {key: account.build_embedded_text(passage) for key, passage in passages.items()}
    codes = {key: vectors.get(hash_text(text), b"") for key, text in texts.items()}
    codes = {key: code for key, code in codes.items() if any(code)}
    previous = {key: account.find_previous_passage(row) for key, row in passages.items()}
    before = {key: (row.seq, row.slot) for key, row in previous.items() if row is not None}
    listed = [key for key in passages if facts[key[0]].kind not in UNLISTED_KINDS]
    is_centred = index_query.centre and index_query.vector is not None
    vector_sum = sum_codes(codes[key] for key in listed if key in codes) if is_centred else ((), 0)
    statistics = build_query_statistics(
        index_query,
        b"" if index_query.vector is None else encode_query(index_query.vector),
        CorpusStatistics(len(listed), sum(len(tokens[key]) for key in listed)),
        [sum(t in term_counts[key] for key in listed) for t in dict.fromkeys(index_query.terms)],
        [fact.actor for fact in facts.values() if fact.actor],
        compute_centroid(*vector_sum),
        vector_sum[1],
    )
    turn_order = TurnOrder.from_previous({k: v for k, v in before.items() if v in passages})
    lengths = {key: len(terms) for key, terms in tokens.items()}
    scorer = PassageScorer(statistics, lengths, term_counts, codes, turn_order)
    matching = {fact.seq for fact in apply_filter(list(facts.values()), index_query.query)}
    origins = {
        key: _build_origin(facts[key[0]], passage, account)
        for key, passage in passages.items()
        if key[0] in matching
    }
    by_vector = scorer.rank_best(scorer.centred_cosines, origins)
    positive = {key: score for key, score in scorer.bm25_scores.items() if score > 0.0}
    by_terms = scorer.rank_best(positive, origins)
    vector_ranks = {key: rank for rank, (_, key) in enumerate(by_vector, 1)}
    term_ranks = {key: rank for rank, (_, key) in enumerate(by_terms, 1)}
    offered = scorer.select_candidates(best_ranks(vector_ranks, term_ranks), origins)
    return IndexResult(
        RankedList(bool(by_vector), lambda: ((k[0], scorer.cosines[k]) for _, k in by_vector)),
        RankedList(bool(by_terms), lambda: ((key[0], score) for score, key in by_terms)),
        [
            scorer.build_candidate(key, origins[key], vector_ranks.get(key), term_ranks.get(key))
            for key in offered
        ],
        statistics.named_speakers,
        statistics.total_weight,
        statistics.centroid.length,
        statistics.passage_count,
        has_links=bool(account.links),
    )


def _build_origin(fact: Fact, passage: Passage, account: InMemoryAccount) -> PassageOrigin:
    """Return who said a passage, when, and in which conversation."""
    first = passage
    while (previous := account.find_previous_passage(first)) is not None:
        first = previous
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    return PassageOrigin(fact.seq, passage.slot, said_at, first.seq, fact.role, fact.actor)
