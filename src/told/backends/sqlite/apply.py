"""Apply row operations to tables, inside the transaction that appends their entries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from struct import Struct
from typing import Any, Final, TypeAlias, assert_never

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.connection import run_batched, run_many, run_query
from told.backends.sqlite.rows import (
    PART_BITS,
    find_space,
    format_meta,
    format_spoken_text,
    get_id_range,
    get_passage_id_range,
    to_fact_row,
)
from told.errors import ScopeError
from told.ids import hash_text
from told.model.fact import EvidenceRow, Fact, Link, Passage, Tick, join_with_previous
from told.model.scope import Scope
from told.model.scoring import count_term_frequencies
from told.ports import CloseThread, EndVersion, RowOp
from told.text.tokens import extract_terms

CHUNK_BITS: Final = 11
TF_BITS: Final = 4
POSTING_BYTES: Final = 4
FOLD_SIZE: Final = 64
"""Passages per posting block; the SQL view `extent` uses the same number."""
MAX_INT64: Final = 2**63 - 1
FIRST_PASSAGE_COLUMN: Final = -2
"""Index of a fact row's first-passage column; the last-passage column follows it."""
HASH_COLUMN: Final = 8
"""Index of a passage row's column with the hash of the embedded text."""
READY_COLUMN: Final = 10
"""Index of a passage row's ready column."""

IndexedTurn: TypeAlias = tuple[int, str]
"""A passage that others may follow: its ordinal and text."""

FactText: TypeAlias = tuple[int, int | None, str | None, list[Any] | None]
"""A fact id, its `until`, its text, and its row if it is still buffered."""
NO_FACT_TEXT: Final[FactText] = (0, None, None, None)

_pack_posting: Final = Struct("<I").pack


@dataclass(slots=True)
class ViewWriter:
    """Buffers one account's view and index rows during a transaction and writes them together.

    `row_starts` and `row_counts` are the passage counts of each partition before and after;
    `ended_threads` maps threads to the position that ends their version; `passage_bounds` maps
    facts to their first and last passage. `written_scopes` and `written_digests` (of texts and
    evidence) tell which guards buffered rows may break.
    """

    db: apsw.Connection
    account: int
    account_name: str
    model: vectors.StoredModel | None = None
    new_vectors: Mapping[bytes, Sequence[float]] = field(default_factory=dict)
    spaces: dict[Scope, tuple[int, int]] = field(default_factory=dict)
    partition_sizes: dict[int, int] = field(default_factory=dict)
    tick_totals: dict[int, tuple[int, int]] = field(default_factory=dict)
    cached_facts: dict[tuple[str, int], Fact] = field(default_factory=dict)
    row_counts: dict[int, int] = field(default_factory=dict)
    row_starts: dict[int, int] = field(default_factory=dict)
    changed_parts: set[int] = field(default_factory=set)
    ended_threads: dict[str, int] = field(default_factory=dict)
    passage_bounds: dict[int, tuple[int, int]] = field(default_factory=dict)
    entry_rows: list[tuple[Any, ...]] = field(default_factory=list)
    buffered_rows: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    passage_terms: dict[int, list[str]] = field(default_factory=dict)
    pending_vectors: dict[bytes, Sequence[float]] = field(default_factory=dict)
    indexed_turns: dict[tuple[int, str], IndexedTurn] = field(default_factory=dict)
    recent_scope: tuple[Scope | None, tuple[int, int]] = (None, (0, 0))
    written_scopes: set[Scope] = field(default_factory=set)
    written_digests: set[str | bytes] = field(default_factory=set)
    latest_fact: FactText = NO_FACT_TEXT
    id_base: int = field(init=False)

    def __post_init__(self) -> None:
        self.id_base, _ = get_id_range(self.account)

    def apply_ops(self, ops: Iterable[RowOp]) -> None:
        """Apply the operations in order and flush."""
        self.buffer_ops(ops)
        self.flush()

    def buffer_ops(self, ops: Iterable[RowOp]) -> None:
        """Apply the operations in order; most rows are written by `flush`."""
        for op in ops:
            match op:
                case Fact():
                    self._add_fact(op)
                case Passage():
                    space, part = self.get_or_create_space(op.scope)
                    self.index_passage(
                        part, self.id_base + op.seq, space, op, self._find_previous_turn(space, op)
                    )
                case EvidenceRow():
                    self._add_evidence(op)
                case Tick():
                    self._add_tick(op)
                case Link():
                    self._add_link(op)
                case EndVersion(thread=thread, seq=seq):
                    self._close_thread(thread, seq)
                case CloseThread(thread=thread, seq=seq):
                    self._close_thread(thread, seq)
                    self.cached_facts.clear()
                    run_query(self.db, "retire_thread", seq, thread, *get_id_range(self.account))
                case _:
                    assert_never(op)

    def flush(self) -> None:
        """Write all buffered rows, advance the partitions and fold full vector blocks."""
        for part, rows in self.row_counts.items():
            fold_terms(self.db, part, self.row_starts[part], rows, self.passage_terms)
            self.partition_sizes[part] = rows
        self._flush_rows()
        for part in self.changed_parts - self.row_counts.keys():
            run_query(self.db, "bump_part", part)
        if self.model is not None:
            if awaited := self.model.store_vectors(self.db, self.pending_vectors):
                vectors.mark_vectors_ready(
                    self.db, self.model, vectors.find_waiting_passages(self.db, awaited)
                )
            for part, rows in self.row_counts.items():
                vectors.build_blocks(self.db, self.model, part, self.row_starts[part], rows)
        for buffer in (
            self.pending_vectors,
            self.row_counts,
            self.changed_parts,
            self.indexed_turns,
        ):
            buffer.clear()

    def flush_entries(self) -> None:
        """Write the entry rows, which fact rows refer to."""
        run_batched(self.db, "add_entry", self.entry_rows, len(self.entry_rows))
        self.entry_rows.clear()

    def _flush_rows(self) -> None:
        """End superseded versions and write the view rows."""
        if self.entry_rows:
            self.flush_entries()
        self._end_versions(self.ended_threads)
        self.ended_threads.clear()
        self.latest_fact = NO_FACT_TEXT
        passages = self.buffered_rows.get("add_passage", ())
        for row in passages:
            if (passage_words := self.passage_terms.pop(row[0], None)) is not None:
                row[-1] = " ".join(passage_words)
        self._mark_ready([row for row in passages if row[READY_COLUMN] is None])
        for query, rows in self.buffered_rows.items():
            run_batched(self.db, query, rows, len(rows))
        self.buffered_rows.clear()
        if self.passage_bounds:
            run_many(
                self.db,
                "place_fact",
                [(fact, *bounds) for fact, bounds in self.passage_bounds.items()],
            )
            self.passage_bounds.clear()

    def _mark_ready(self, rows: Sequence[list[Any]]) -> None:
        """Mark passages as embedded if their text already has a vector."""
        if not rows or self.model is None:
            return
        cached = vectors.find_cached_hashes(self.db, [row[HASH_COLUMN] for row in rows])
        for row in rows:
            row[READY_COLUMN] = 1 if row[HASH_COLUMN] in cached else None

    def get_or_create_space(self, scope: Scope) -> tuple[int, int]:
        """Return the space and partition of a scope, creating them on first use."""
        if scope is self.recent_scope[0]:
            return self.recent_scope[1]
        if scope.account != self.account_name:
            raise ScopeError(
                f"A draft of account {scope.account!r} cannot be written to {self.account_name!r}."
            )
        location = self.spaces.get(scope) or find_space(self.db, self.account, scope)
        if location is None:
            part = run_query(self.db, "part", self.account, scope.partition_key()).get
            if part is None:
                part = run_query(self.db, "add_part", self.account, scope.partition_key()).get
            ids = (scope.user_id, scope.agent_id, scope.run_id)
            location = (run_query(self.db, "add_space", self.account, part, *ids).get, part)
        self.spaces[scope] = location
        self.recent_scope = (scope, location)
        self.written_scopes.add(scope)
        return location

    def _add_fact(self, fact: Fact) -> None:
        if fact.id in self.ended_threads:
            self._flush_rows()
        self.ended_threads[fact.id] = fact.seq
        self.written_digests.add(fact.md5)
        row = to_fact_row(fact, self.id_base + fact.seq, self.get_or_create_space(fact.scope)[0])
        self.buffered_rows["add_fact"].append(row)
        self.latest_fact = (row[0], fact.until, format_spoken_text(fact), row)

    def _close_thread(self, thread: str, seq: int) -> None:
        """End the thread's latest version, which may still be buffered."""
        if thread in self.ended_threads:
            self._flush_rows()
        self._end_versions({thread: seq})

    def _end_versions(self, ends: Mapping[str, int]) -> None:
        """End the latest versions of these threads at their positions."""
        threads = ((thread, self.id_base + seq) for thread, seq in ends.items())
        for id_, thread in run_batched(self.db, "held", threads, len(ends), self.id_base):
            self.cached_facts.pop((self.account_name, id_ - self.id_base), None)
            run_query(self.db, "close_fact", ends[thread], id_)
            closed = run_query(self.db, "close_passages", ends[thread], id_).fetchall()
            self.changed_parts.update(part for (part,) in closed)

    def _add_link(self, link: Link) -> None:
        space, _ = self.get_or_create_space(link.scope)
        id_ = self.id_base + link.seq
        row = (
            id_,
            link.src,
            link.rel,
            link.dst,
            space,
            link.weight,
            link.until,
            format_meta(link.meta),
        )
        self.buffered_rows["add_link"].append(row)

    def _add_evidence(self, evidence: EvidenceRow) -> None:
        space, _ = self.get_or_create_space(evidence.scope)
        id_ = self.id_base + evidence.seq
        self.written_digests.add(evidence.digest)
        self.buffered_rows["add_evidence"].append(
            (id_, evidence.id, space, evidence.digest, evidence.source)
        )
        if evidence.blobs:
            run_batched(
                self.db,
                "add_holding",
                ((id_, name) for name in evidence.blobs),
                len(evidence.blobs),
            )

    def _add_tick(self, tick: Tick) -> None:
        space, part = self.get_or_create_space(tick.scope)
        turns, tokens = (
            self.tick_totals.get(part) or run_query(self.db, "last_tick", part).fetchone() or (0, 0)
        )
        totals = self.tick_totals[part] = (
            min(turns + tick.turns, MAX_INT64),
            min(tokens + tick.tokens, MAX_INT64),
        )
        self.buffered_rows["add_tick"].append(
            (self.id_base + tick.seq, space, part, tick.at, tick.turns, tick.tokens, *totals)
        )

    def _get_partition_size(self, part: int) -> int:
        """Return a partition's passage count before this transaction."""
        size = self.partition_sizes.get(part)
        return int(run_query(self.db, "part_state", part).fetchone()[0]) if size is None else size

    def _find_previous_turn(self, space: int, passage: Passage) -> IndexedTurn | None:
        """Return the turn before a passage, which may still be buffered."""
        if passage.after is None:
            return None
        buffered = self.indexed_turns.get((space, passage.after))
        row = None if buffered else run_query(self.db, "turn", passage.after, space).fetchone()
        return buffered or (None if row is None else (row[0], row[1]))

    def _load_fact_text(self, fact: int) -> FactText:
        """Return a fact's text, which may still be buffered."""
        if fact == self.latest_fact[0]:
            return self.latest_fact
        until, text = run_query(self.db, "spoken", fact).fetchone() or (None, None)
        return fact, until, text, None

    def index_passage(
        self, part: int, fact: int, space: int, passage: Passage, previous_turn: IndexedTurn | None
    ) -> IndexedTurn:
        """Append a passage to its partition with its terms and, if known, its vector."""
        ordinal = self.row_counts.get(part)
        if ordinal is None:
            ordinal = self.row_starts[part] = self._get_partition_size(part)
        words = extract_terms(passage.text)
        previous_ordinal, previous_text = (None, None) if previous_turn is None else previous_turn
        digest = hash_text(join_with_previous(previous_text, passage.text))
        id_ = part << PART_BITS | ordinal
        self.passage_terms[id_] = words
        _, until, text, row = self._load_fact_text(fact)
        if row is None:
            self.passage_bounds[fact] = (self.passage_bounds.get(fact, (id_,))[0], id_)
        else:
            row[FIRST_PASSAGE_COLUMN:] = (
                id_ if row[FIRST_PASSAGE_COLUMN] is None else row[FIRST_PASSAGE_COLUMN],
                id_,
            )
        vector = self.new_vectors.get(digest)
        if vector is not None:
            self.pending_vectors.setdefault(digest, vector)
        self.buffered_rows["add_passage"].append(
            [
                id_,
                fact,
                passage.slot,
                space,
                passage.until if until is None else until,
                passage.expires,
                previous_ordinal,
                len(words),
                digest,
                None if text == passage.text else passage.text,
                None if vector is None else 1,
                None,
            ]
        )
        self.row_counts[part] = ordinal + 1
        turn = (ordinal, passage.text)
        if passage.thread is not None:
            self.indexed_turns.setdefault((space, passage.thread), turn)
        return turn


def fold_terms(
    db: apsw.Connection, part: int, start: int, row_count: int, new_terms: dict[int, list[str]]
) -> None:
    """Move the terms of every full block of passages into postings.

    Terms come from stored passages and from `new_terms` by id. Where folding stops depends only
    on the passage count, so a grown and a rebuilt partition are equal.
    """
    folded, fold_end = start - start % FOLD_SIZE, row_count - row_count % FOLD_SIZE
    if fold_end <= folded:
        return
    lo, _ = get_passage_id_range(part)
    stored_terms = {
        ordinal: words.split()
        for ordinal, words in run_query(db, "part_terms", lo + folded, lo + fold_end)
    }
    for chunk in range(folded >> CHUNK_BITS, (fold_end - 1 >> CHUNK_BITS) + 1):
        postings: dict[str, bytes] = {}
        for ordinal in range(
            max(folded, chunk << CHUNK_BITS), min(fold_end, chunk + 1 << CHUNK_BITS)
        ):
            shifted = ordinal << TF_BITS
            single_posting = _pack_posting(shifted | 1)
            for term, count in count_term_frequencies(
                new_terms.pop(lo + ordinal, ()) or stored_terms.get(ordinal, ())
            ).items():
                posting = single_posting if count == 1 else _pack_posting(shifted | count)
                existing = postings.get(term)
                postings[term] = posting if existing is None else existing + posting
        ordered = sorted(postings)
        rows = zip(repeat(part), ordered, repeat(chunk), map(postings.__getitem__, ordered))
        run_batched(db, "add_posting", rows, len(postings))
    run_query(db, "drop_terms", lo + folded, lo + fold_end)


def iter_postings(ordinal: int, words: str) -> Iterator[tuple[str, int]]:
    """Yield a passage's terms with their postings (ordinal and frequency)."""
    for term, count in count_term_frequencies(words.split(" ") if words else ()).items():
        yield term, ordinal << TF_BITS | count
