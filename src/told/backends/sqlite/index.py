"""Search a scope with in-memory partitions, within a byte budget.

Statistics cover visible passages only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from itertools import count as counting
from typing import Any, Final, NamedTuple

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.connection import ReadSnapshot, add_condition, run_query
from told.backends.sqlite.filters import compile_filter
from told.backends.sqlite.group_commit import GroupCommitWriter
from told.backends.sqlite.partition import Partition, PartitionRanking, PartitionView, Visibility
from told.backends.sqlite.rows import (
    PART_BITS,
    PART_MASK,
    ScopeLookup,
    find_visible_spaces,
    make_entry_id,
    parse_fact,
    to_json_list,
)
from told.model.fact import NEVER, Fact
from told.model.filter import MATCH_ALL, Filter, matches_filter, to_record
from told.model.query import Candidate, FactQuery, IndexQuery, IndexResult, LazySequence, RankedList
from told.model.scoring import Centroid, CorpusStatistics, build_query_statistics, compute_centroid

FactRows = list[tuple[Any, ...]]
MAX_ROWS_ON_WRITER: Final = 256
"""New passages that may be read while writers are blocked."""


def choose_partition_class() -> type[Partition]:
    """Return the NumPy partition class, or the pure-Python one without NumPy."""
    try:
        from told.backends.sqlite.partition_numpy import NumpyPartition
    except ImportError:
        from told.backends.sqlite.partition_python import PythonPartition

        return PythonPartition
    return NumpyPartition


@dataclass(slots=True)
class PartitionCache:
    """An LRU cache of partitions within a byte budget."""

    budget: int
    exact_rows: int
    factory: Callable[[int, vectors.StoredModel | None, int], Partition] | None = None
    _parts: OrderedDict[tuple[int, int | None], Partition] = field(default_factory=OrderedDict)
    _sizes: dict[tuple[int, int | None], int] = field(default_factory=dict)
    _total: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get_partition(self, part: int, model: vectors.StoredModel | None) -> Partition:
        """Return a cached or new partition."""
        key = (part, model.id if model else None)
        with self._lock:
            partition = self._parts.pop(key, None)
            if partition is None:
                self.factory = self.factory or choose_partition_class()
                partition = self.factory(part, model, self.exact_rows)
            self._parts[key] = partition
        return partition

    def update_size(self, partition: Partition) -> None:
        """Record a partition's size and evict the least recently used ones over budget."""
        key = (partition.part, partition.model.id if partition.model else None)
        size = partition.size
        if self._sizes.get(key) == size:
            return
        with self._lock:
            if key in self._parts:
                self._total += size - self._sizes.get(key, 0)
                self._sizes[key] = size
            while self._total > self.budget and len(self._parts) > 1:
                evicted, _ = self._parts.popitem(last=False)
                self._total -= self._sizes.pop(evicted, 0)

    def clear(self) -> None:
        """Drop every partition."""
        with self._lock:
            self._parts.clear()
            self._sizes.clear()
            self._total = 0


class VisiblePartitions(NamedTuple):
    """The views of a read's partitions and whether the account has links."""

    views: list[PartitionView]
    has_links: bool


class SqliteIndex:
    """The index of one store."""

    def __init__(self, writer: GroupCommitWriter, cache: PartitionCache) -> None:
        self.writer = writer
        self.cache = cache

    def search(self, index_query: IndexQuery) -> IndexResult:
        """Rank passages with each retriever, on the writer's warm pages if little must be read."""
        runs_on_writer = (
            index_query.query.as_of.valid_at is None and index_query.query.filter == MATCH_ALL
        )
        visible = (
            self.writer.read_on_writer(
                lambda db: self._load_visible(ReadSnapshot(db), index_query, MAX_ROWS_ON_WRITER)
            )
            if runs_on_writer
            else None
        )
        while visible is None:
            visible = self._load_visible(
                self.writer.database.read_transaction(), index_query, NEVER
            )
        return _rank_passages(visible.views, index_query, has_links=visible.has_links)

    def _load_visible(
        self,
        snapshot: AbstractContextManager[apsw.Connection],
        index_query: IndexQuery,
        max_rows: int,
    ) -> VisiblePartitions | None:
        """Load what a read can see; None if the cache is newer or too many rows must be read."""
        with snapshot as db:
            row = run_query(db, "searched", index_query.query.scope.account).fetchone()
            if row is None:
                return VisiblePartitions([], has_links=False)
            account, has_links, *model = row
            views = self._load_partition_views(
                db, account, index_query, _check_query_model(model, index_query), max_rows
            )
            return None if views is None else VisiblePartitions(views, has_links=bool(has_links))

    def _load_partition_views(
        self,
        db: apsw.Connection,
        account: int,
        index_query: IndexQuery,
        model: vectors.StoredModel | None,
        max_rows: int,
    ) -> list[PartitionView] | None:
        """Load the view of each partition of the scope; None as `_load_visible`."""
        query = index_query.query
        spaces = find_visible_spaces(db, account, query.scope)
        parts: dict[int, set[int]] = {}
        for space, part in spaces.items():
            parts.setdefault(part, set()).add(space)
        base_ordinals, filtered_ordinals = _resolve_in_sql(db, account, query, list(spaces))
        terms = tuple(dict.fromkeys(index_query.terms))
        views: list[PartitionView] = []
        for part, members in parts.items():
            visibility = Visibility(
                frozenset(members),
                query.as_of.seq,
                query.as_of.at,
                query.show_expired,
                None if base_ordinals is None else base_ordinals.get(part, frozenset()),
                None if filtered_ordinals is None else filtered_ordinals.get(part, frozenset()),
                bool(index_query.centre),
            )
            partition = self.cache.get_partition(part, model)
            acquired = [False]
            try:
                # A read on the writer blocks writers, so it never waits for the lock. `map` takes
                # it and records that without a gap for interrupts.
                acquired[:] = map(partition.lock.acquire, (max_rows == NEVER,))
                if not acquired[0] or not partition.refresh(db, max_rows):
                    return None
                views.append(partition.select_visible(db, visibility, terms))
            finally:
                if acquired[0]:
                    partition.lock.release()
            self.cache.update_size(partition)
        return views


def _check_query_model(row: Sequence[Any], index_query: IndexQuery) -> vectors.StoredModel | None:
    """Return the model of the query vector, or raise `ModelMismatch`."""
    if index_query.vector is None or row[0] is None:
        return None
    model = vectors.StoredModel(*row)
    model.require_match(index_query.model, len(index_query.vector))
    return model


def _rank_passages(
    views: Sequence[PartitionView], index_query: IndexQuery, *, has_links: bool
) -> IndexResult:
    """Rank all partitions with the statistics of everything visible."""
    corpus = _sum_corpora([view.corpus for view in views])
    document_frequencies = _sum_columns([view.get_document_frequencies() for view in views])
    speakers = (
        {name for view in views for name in view.get_speaker_names()} if index_query.words else ()
    )
    centred = index_query.centre and index_query.vector is not None
    centroid, count = _compute_centroid(views) if centred else (Centroid(), 0)
    query_code = b"" if index_query.vector is None else vectors.pack_query(index_query.vector)
    stats = build_query_statistics(
        index_query,
        query_code,
        corpus,
        document_frequencies if views else [0] * len(set(index_query.terms)),
        speakers,
        centroid,
        count,
        vectors.compute_query_cosine,
    )
    results = [view.rank_passages(stats) for view in views]
    vector_ranking = _merge_rankings([result.by_vector for result in results], index_query.depth)
    word_ranking = _merge_rankings([result.by_terms for result in results], index_query.depth)

    def build_candidates() -> Sequence[Candidate]:
        ranked = zip(
            results,
            vector_ranking.split_ranks(len(results)),
            word_ranking.split_ranks(len(results)),
            strict=True,
        )
        candidates = [result.build_candidates(*ranks) for result, *ranks in ranked]
        return candidates[0] if len(candidates) == 1 else sorted(chain.from_iterable(candidates))

    return IndexResult(
        vector_ranking.ranked_list,
        word_ranking.ranked_list,
        LazySequence(build_candidates),
        stats.named_speakers,
        stats.total_weight,
        stats.centroid.length,
        stats.passage_count,
        has_links,
    )


def _sum_corpora(corpora: Sequence[CorpusStatistics]) -> CorpusStatistics:
    """Sum corpus statistics over partitions."""
    return (
        corpora[0]
        if len(corpora) == 1
        else CorpusStatistics(
            sum(c.passage_count for c in corpora), sum(c.term_count for c in corpora)
        )
    )


def _compute_centroid(views: Sequence[PartitionView]) -> tuple[Centroid, int]:
    """Return the centroid of all visible vectors and their count."""
    totals = [total for view in views if (total := view.sum_vectors())[1]]
    count = sum(count for _, count in totals)
    if len(views) == 1:
        return views[0].get_centroid(), count
    return compute_centroid(
        _sum_columns([total for total, _ in totals]), count, vectors.pack_vector
    ), count


def _sum_columns(totals: Sequence[Sequence[int]]) -> Sequence[int]:
    """Sum vectors or counts column by column."""
    return totals[0] if len(totals) == 1 else [sum(values) for values in zip(*totals, strict=True)]


class MergedRanking(NamedTuple):
    """Partition rankings merged into one, with the origin of each passage."""

    ranked_list: RankedList
    ordinals: Sequence[int]
    owners: Sequence[int] = ()

    def split_ranks(self, list_count: int) -> list[dict[int, int]]:
        """Return each partition's ranks by ordinal."""
        if list_count == 1:
            return [dict(zip(self.ordinals, counting(1), strict=False))]
        ranks: list[dict[int, int]] = [{} for _ in range(list_count)]
        for rank, (owner, ordinal) in enumerate(zip(self.owners, self.ordinals, strict=True), 1):
            ranks[owner][ordinal] = rank
        return ranks


def _merge_rankings(rankings: Sequence[PartitionRanking], depth: int) -> MergedRanking:
    """Merge the rankings of all partitions, best first, up to a depth."""
    if len(rankings) == 1:
        [only_ranking] = rankings
        ranked_list = RankedList(
            bool(only_ranking.ordinals),
            lambda: ((seq, shown) for seq, shown, _ in only_ranking.load_scores()),
        )
        return MergedRanking(ranked_list, only_ranking.ordinals)
    entries = (
        (score, seq, ordinal, owner, shown)
        for owner, ranking in enumerate(rankings)
        for ordinal, (seq, shown, score) in zip(
            ranking.ordinals, ranking.load_scores(), strict=True
        )
    )
    best = sorted(entries, reverse=True)[:depth]
    _, seqs, ordinals, owners, shown = zip(*best, strict=True) if best else ((),) * 5
    return MergedRanking(
        RankedList(bool(best), lambda: zip(seqs, shown, strict=True)), ordinals, owners
    )


# Facts by SQL


def find_facts(
    db: apsw.Connection, account: int, query: FactQuery, spaces: Sequence[int]
) -> list[Fact]:
    """Find the facts of a query in ledger order, before offset and limit."""
    condition, params, residual = compile_filter(query.filter)
    if query.after:
        condition = f"({condition}) AND f.id > ?" if condition else "f.id > ?"
        params = [*params, make_entry_id(account, query.after)]
    tail = " ORDER BY f.id"
    if residual == MATCH_ALL and query.limit is not None:
        tail += " LIMIT ? OFFSET ?"
        params = [*params, query.limit, query.offset]
    rows = _select_fact_rows(db, account, query, spaces, condition, params, tail)
    scopes = ScopeLookup(db, query.scope.account)
    facts = (parse_fact(row, scopes[row[3]]) for row in rows)
    if residual == MATCH_ALL:
        kept = list(facts)
        return kept if query.limit is not None else kept[query.offset :]
    kept = [fact for fact in facts if matches_filter(residual, to_record(fact))]
    return kept[query.offset : None if query.limit is None else query.offset + query.limit]


def _select_fact_rows(
    db: apsw.Connection,
    account: int,
    query: FactQuery,
    spaces: Sequence[int],
    condition: str,
    params: Sequence[Any],
    tail: str = "",
) -> FactRows:
    """Select the fact rows that a query can see, with a compiled filter."""
    as_of = query.as_of
    name = "facts_latest" if as_of.valid_at is None else "facts_valid"
    bounds = [
        to_json_list(spaces),
        make_entry_id(account, as_of.seq),
        as_of.seq,
        query.show_expired,
        as_of.at,
    ]
    if as_of.valid_at is not None:
        bounds.append(as_of.valid_at)
    return db.execute(add_condition(name, condition, tail), (*bounds, *params)).fetchall()


OrdinalsByPart = dict[int, frozenset[int]]


def _resolve_in_sql(
    db: apsw.Connection, account: int, query: FactQuery, spaces: Sequence[int]
) -> tuple[OrdinalsByPart | None, OrdinalsByPart | None]:
    """Return the ordinals that only SQL can decide: by valid time and by metadata filter."""
    if not spaces:
        return None, None
    base_ordinals = None
    if query.as_of.valid_at is not None:
        base_ordinals = _find_ordinals(db, account, query, spaces, MATCH_ALL)
    filtered_ordinals = None
    if query.filter != MATCH_ALL:
        filtered_ordinals = _find_ordinals(db, account, query, spaces, query.filter)
    return base_ordinals, filtered_ordinals


def _find_ordinals(
    db: apsw.Connection, account: int, query: FactQuery, spaces: Sequence[int], filter_: Filter
) -> OrdinalsByPart:
    condition, params, residual = compile_filter(filter_)
    rows = _select_fact_rows(db, account, query, spaces, condition, params)
    if residual != MATCH_ALL:
        scopes = ScopeLookup(db, query.scope.account)
        rows = [
            row
            for row in rows
            if matches_filter(residual, to_record(parse_fact(row, scopes[row[3]])))
        ]
    by_part: dict[int, set[int]] = {}
    for id_, _ in run_query(db, "passages_of_facts", to_json_list([row[0] for row in rows])):
        by_part.setdefault(id_ >> PART_BITS, set()).add(id_ & PART_MASK)
    return {part: frozenset(ordinals) for part, ordinals in by_part.items()}
