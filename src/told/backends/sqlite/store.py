"""The SQLite store: ledger, views and index in one file that processes may share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from told.backends.sqlite import access, erase, integrity, rows, vectors
from told.backends.sqlite.connection import Database, parse_url, run_named, run_query
from told.backends.sqlite.group_commit import GroupCommitWriter
from told.backends.sqlite.index import PartitionCache, SqliteIndex, find_facts
from told.backends.sqlite.rows import (
    SEQ_MASK,
    ScopeLookup,
    find_visible_spaces,
    get_id_base,
    get_id_range,
    load_view_rows,
    make_entry_id,
    parse_entry,
    parse_link,
    to_hex_list,
    to_json_list,
)
from told.backends.sqlite.write import (
    bind_first_model,
    commit_batch,
    delete_faults,
    erase_entries,
    get_current_model,
    get_or_create_account,
    import_entries,
    load_current_facts,
    load_versions,
    lookup_existing,
    move_cursor,
    put_vectors,
    rebuild_views,
    record_fault,
    reset_account,
    switch_model,
)
from told.errors import ModelMismatch
from told.ids import IdGenerator
from told.model.entry import GENESIS, Blob, Draft, Entry
from told.model.fact import NEVER, EvidenceRow, Fact, Link, Tick, join_with_previous
from told.model.query import (
    LATEST,
    AccessBatch,
    AccessCount,
    AccessOutcome,
    AccessRecord,
    AccessState,
    AsOf,
    FactQuery,
    ReviewTask,
)
from told.model.scope import Scope
from told.ports import (
    AccessHistory,
    Batch,
    ExistingState,
    Fault,
    Fold,
    Head,
    ScopeTally,
    StoredTurn,
    TickTotals,
    View,
    ViewRow,
)
from told.runtime import at_fork

T = TypeVar("T")


class SqliteSideData:
    """The access log and queue ports over the tables of a file."""

    _database: Database
    _write: GroupCommitWriter

    @contextmanager
    def _read_account(self, account: str) -> Iterator[tuple[apsw.Connection, int]]:
        """Open a snapshot and return it with the account's id, or 0 if there is none."""
        with self._database.read_transaction() as db:
            row = run_query(db, "account", account).fetchone()
            yield db, 0 if row is None else row[0]

    def _write_account(self, account: str, work: Callable[[apsw.Connection, int], T]) -> T | None:
        """Write to an account; do nothing if it was never written to."""

        def job(db: apsw.Connection) -> T | None:
            row = run_query(db, "account", account).fetchone()
            return None if row is None else work(db, row[0])

        return self._write(job, keeps_cache=True)

    def tick_totals(self, scope: Scope, seqs: Sequence[int], recent: int = 0) -> TickTotals:
        """Return the turns and tokens up to each position, and the last ticks."""
        with self._read_account(scope.account) as (db, account_id):
            part = run_query(db, "part", account_id, scope.partition_key()).get
            entry_ids = [make_entry_id(account_id, seq) for seq in seqs]
            sums = run_query(db, "ticked", part, to_json_list(entry_ids)).fetchall()
            totals = {
                seq: (turns, tokens) for seq, (_, turns, tokens) in zip(seqs, sums, strict=True)
            }
            if part is None or recent <= 0 or not entry_ids:
                return TickTotals(totals)
            scopes = ScopeLookup(db, scope.account)
            rows = run_query(db, "ticks", part, max(entry_ids), recent).fetchall()
            ticks = [Tick(seq, scopes[space], *rest) for seq, space, *rest in reversed(rows)]
        return TickTotals(totals, ticks)

    # Access log

    def record_accesses(self, account: str, batch: AccessBatch) -> int:
        """Apply a batch of accesses in one transaction; return how many tasks are new."""
        return (
            self._write_account(
                account, lambda db, account_id: access.record_access(db, account_id, batch)
            )
            or 0
        )

    def cooccurrence(
        self, account: str, topics: Sequence[str]
    ) -> Mapping[tuple[str, str], AccessCount]:
        """Return the counts of pairs with any of these topics."""
        with self._read_account(account) as (db, account_id):
            rows = run_query(db, "met", account_id, to_json_list(topics)).fetchall()
        return {(one, other): AccessCount(count, last) for one, other, count, last in rows}

    def access_history(self, account: str, thread: str) -> AccessHistory:
        """Return the logged accesses and the access states of a thread."""
        with self._read_account(account) as (db, account_id):
            rows = run_query(db, "recalls", account_id, thread).fetchall()
            states = run_query(db, "recall_states", account_id, to_json_list([thread])).fetchall()
        records = [
            AccessRecord(thread, at, rank, score, query, AccessOutcome(access))
            for at, rank, score, query, access in rows
        ]
        return AccessHistory(records, [AccessState(*row) for row in states])

    # Queue

    def list_tasks(self, account: str, limit: int = 100) -> Sequence[ReviewTask]:
        """Return open tasks, the most urgent first."""
        with self._read_account(account) as (db, account_id):
            return [
                access.parse_task(row) for row in run_query(db, "tasks", account_id, max(limit, 0))
            ]

    def claim_tasks(self, account: str, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Claim due tasks whose lease is free."""
        return (
            self._write_account(
                account,
                lambda db, account_id: access.claim_tasks(db, account_id, now, limit, lease),
            )
            or ()
        )

    def complete_tasks(self, account: str, task_ids: Sequence[int]) -> int:
        """Delete tasks and return how many there were."""
        return (
            self._write_account(
                account, lambda db, account_id: access.complete_tasks(db, account_id, task_ids)
            )
            or 0
        )

    def read_notes(
        self, account: str, consumer: str, keys: Sequence[str] | None = None
    ) -> Mapping[str, bytes]:
        """Return a consumer's notes."""
        with self._read_account(account) as (db, account_id):
            if keys is None:
                return dict(run_query(db, "notes", account_id, consumer).fetchall())
            return dict(
                run_query(db, "notes_named", account_id, consumer, to_json_list(keys)).fetchall()
            )

    def update_consumer(
        self,
        account: str,
        consumer: str,
        *,
        cursor: int | None = None,
        notes: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Set a consumer's cursor and write its notes."""

        def job(db: apsw.Connection) -> None:
            if cursor is not None:
                move_cursor(db, account, consumer, cursor)
            if notes is not None:
                account_id = get_or_create_account(db, account).id
                access.write_notes(db, account_id, consumer, notes)

        self._write(job)


LATEST_AS_OF = AsOf(LATEST, 0)
EMPTY_HEAD = Head(0, 0, GENESIS)


class SqliteStore(SqliteSideData):
    """A store in one file."""

    def __init__(self, path: Path, mint: IdGenerator, options: Mapping[str, Any]) -> None:
        self.mint = mint
        self.path = path
        self._vacuum = bool(options.get("erase_vacuum", True))
        self._database = Database(
            path,
            durability=options.get("durability", "full"),
            busy_timeout=options.get("busy_timeout", 60.0),
        )
        self._write = GroupCommitWriter(self._database, options.get("group_limit", 256))
        cache = PartitionCache(
            options.get("cache_bytes", 256 * 2**20), options.get("exact_rows", 4096)
        )
        self.index = SqliteIndex(self._write, cache)
        self._forking_thread: int | None = None
        at_fork(
            self, before="prepare_fork", in_parent="resume_in_parent", in_child="reset_in_child"
        )
        self.scrub()

    def prepare_fork(self) -> None:
        """Close all connections before a fork, so that the child inherits none."""
        if not self._database.closed and self._write.pause_writes():
            self._forking_thread = threading.get_ident()
            self._database.close_before_fork()

    def resume_in_parent(self) -> None:
        """Resume in the parent after a fork."""
        if self._forking_thread == threading.get_ident():
            self._forking_thread = None
            self._database.resume_after_fork()
            self._write.resume_writes()

    def reset_in_child(self) -> None:
        """Start with new connections in the child after a fork."""
        self._database.reset_in_child(
            closed_before_fork=self._forking_thread == threading.get_ident()
        )
        self._forking_thread = None
        self._write = GroupCommitWriter(self._database, self._write.limit)
        self.index = SqliteIndex(
            self._write, PartitionCache(self.index.cache.budget, self.index.cache.exact_rows)
        )

    def watch(self, callback: Callable[[str], object]) -> None:
        """Call back at each named step of a commit; used by crash tests."""
        self._write.watch = callback

    # Ledger

    def commit(self, batch: Batch, fold: Fold) -> Sequence[Entry]:
        """Seal, fold and make durable, in one transaction with other waiting commits."""
        write = self._write
        return write(
            lambda db: commit_batch(
                db, write.read_cache, write.write_buffer, self.mint, batch, fold
            ),
            keeps_cache=True,
            uses_buffer=True,
        )

    def import_entries(self, account: str, entries: Sequence[Entry], fold: Fold) -> int:
        """Append entries sealed elsewhere; return how many were new."""
        new, shredded = self._write(lambda db: import_entries(db, account, entries, fold))
        if shredded:
            self.index.cache.clear()
        return new

    def erase(
        self, account: str, seqs: Sequence[int], draft: Draft
    ) -> tuple[Entry, Mapping[str, int]]:
        """Destroy content, append a tombstone and mark the file for scrubbing."""
        result = self._write(lambda db: erase_entries(db, self.mint, account, seqs, draft))
        self.index.cache.clear()
        return result

    def reset(self, account: str, draft: Draft) -> Entry:
        """Destroy an account's ledger and begin a new chain."""
        entry = self._write(lambda db: reset_account(db, self.mint, account, draft))
        self.index.cache.clear()
        return entry

    def scrub(self) -> Sequence[str]:
        """Remove traces of destroyed content from the files, if a scrub is due."""
        if not self._write.read_on_writer(lambda db: run_query(db, "scrub_owed").get):
            return ()
        return self._write.run_exclusive(lambda db: integrity.scrub_file(db, vacuum=self._vacuum))

    def rebuild(self, account: str, views: Sequence[View], fold: Fold) -> Mapping[str, int]:
        """Fold views again from the ledger, in one transaction."""
        counts = self._write(lambda db: rebuild_views(db, account, views, fold))
        self.index.cache.clear()
        return counts

    def list_accounts(self) -> Mapping[str, Sequence[View]]:
        """Return every account that has a ledger, with its stale views."""

        def load(db: apsw.Connection) -> dict[str, Sequence[View]]:
            names = [name for (name,) in run_query(db, "accounts").fetchall()]
            return {
                name: [view for (view,) in run_query(db, "behind", name).fetchall()]
                for name in names
            }

        return self._write.read_on_writer(load)

    def get_head(self, account: str, at: int | None = None) -> Head:
        """Return the last entry, or by bisection the last one at or before an instant."""
        with self._database.read_transaction() as db:
            row = run_query(db, "account", account).fetchone()
            if row is None:
                return EMPTY_HEAD
            account_id, head = row[0], Head(*row[1:])
            if at is None or head.at <= at:
                return head
            low, high = 0, head.seq - 1
            while low < high:
                middle = (low + high + 1) // 2
                if run_query(db, "entry_at", make_entry_id(account_id, middle)).get <= at:
                    low = middle
                else:
                    high = middle - 1
            if low == 0:
                return EMPTY_HEAD
            first, last = make_entry_id(account_id, low - 1), get_id_range(account_id)[1]
            [entry] = run_query(db, "scan", first, last, 1).fetchall()
        return Head(low, entry[2], entry[6])

    def scan_entries(
        self, account: str, after: int = 0, limit: int | None = None, *, thread: str | None = None
    ) -> Sequence[Entry]:
        """Return entries in order."""
        with self._read_account(account) as (db, account_id):
            first, last = make_entry_id(account_id, after), get_id_range(account_id)[1]
            count = -1 if limit is None else limit
            if thread is None:
                rows = run_query(db, "scan", first, last, count).fetchall()
            else:
                rows = run_query(db, "thread", thread, first, last).fetchall()[:limit]
        return [parse_entry(row, account) for row in rows]

    def tombstoned_digests(self, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Return the digests of erased content."""
        with self._database.read_transaction() as db:
            return frozenset(
                digest for (digest,) in run_query(db, "tombstoned", to_hex_list(digests))
            )

    # Facts

    def lookup_existing(
        self,
        scope: Scope,
        md5s: Sequence[str],
        digests: Sequence[bytes],
        key: str | None,
        text_hashes: Sequence[bytes] = (),
        *,
        include_last_turn: bool = False,
    ) -> ExistingState:
        """Return what exactly this scope already has."""
        return self._write.read_on_writer(
            lambda db: lookup_existing(
                db, scope, md5s, digests, key, text_hashes, include_last_turn=include_last_turn
            )
        )

    def current_facts(
        self,
        scope: Scope,
        now: int,
        *,
        slots: Sequence[tuple[str, str]] = (),
        kinds: Sequence[str] = (),
    ) -> Sequence[Fact]:
        """Return the current facts of exactly this scope in some slots or of some kinds."""
        return self._write.read_on_writer(
            lambda db: load_current_facts(db, scope, now, slots, kinds)
        )

    def find_facts(self, query: FactQuery) -> Sequence[Fact]:
        """Return the facts visible to a scope at a point in time, oldest first."""
        with self._read_account(query.scope.account) as (db, account_id):
            return find_facts(
                db, account_id, query, list(find_visible_spaces(db, account_id, query.scope))
            )

    def get_fact(self, account: str, thread: str, as_of: AsOf | None = None) -> Fact | None:
        """Return the version of a thread at a point in time."""
        at = as_of or LATEST_AS_OF
        bounds: dict[str, Any] = {"thread": thread, "seq": at.seq}
        with self._read_account(account) as (db, account_id):
            bounds |= {
                "base": get_id_base(account_id),
                "pos": make_entry_id(account_id, at.seq),
                "valid": at.valid_at,
            }
            name = "fact_latest" if at.valid_at is None else "fact_valid"
            rows = run_named(db, name, bounds).fetchall()
            facts = ScopeLookup(db, account).parse_facts(rows)
        return facts[0] if facts else None

    def find_versions(
        self,
        account: str,
        *,
        seqs: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        evidence: Sequence[str] | None = None,
        scope: Scope | None = None,
    ) -> Sequence[Fact]:
        """Return fact versions by position, thread, evidence or scope, in ledger order."""
        if seqs is not None:
            valid_seqs = sorted({seq for seq in seqs if 0 < seq <= SEQ_MASK})
            versions = self._write.read_on_writer(
                lambda db: load_versions(db, self._write.get_read_cache(db), account, valid_seqs)
            )
            return list(versions.values())
        with self._read_account(account) as (db, account_id):
            bounds = get_id_range(account_id)
            if threads is not None:
                rows = run_query(db, "tellings", *bounds, to_json_list(threads)).fetchall()
            elif evidence is not None:
                rows = run_query(db, "taken", *bounds, to_json_list(evidence)).fetchall()
            elif scope is not None:
                spaces = list(find_visible_spaces(db, account_id, scope))
                rows = run_query(db, "lives", to_json_list(spaces)).fetchall()
            else:
                rows = []
            return ScopeLookup(db, account).parse_facts(rows)

    def find_links(
        self, account: str, nodes: Sequence[str], seq: int | None = None
    ) -> Sequence[Link]:
        """Return the links that touch any of these nodes."""
        at = LATEST if seq is None else seq
        with self._read_account(account) as (db, account_id):
            bounds = {
                "nodes": to_json_list(nodes),
                "base": get_id_base(account_id),
                "pos": make_entry_id(account_id, at),
                "seq": at,
            }
            scopes = ScopeLookup(db, account)
            return [
                parse_link(row, scopes[row[4]]) for row in run_named(db, "links", bounds).fetchall()
            ]

    def list_scopes(self, account: str) -> Sequence[Scope]:
        """Return every exact scope that has rows."""
        with self._read_account(account) as (db, account_id):
            return rows.list_scopes(db, account_id, account)

    def scope_tallies(self, account: str) -> Sequence[ScopeTally]:
        """Return the memories and the first and last write of each exact scope."""
        with self._read_account(account) as (db, account_id):
            return rows.count_by_scope(db, account_id, account)

    def list_turns(
        self,
        scope: Scope,
        after: int = 0,
        before: int = NEVER,
        limit: int = 1000,
        *,
        newest: bool = False,
    ) -> Sequence[StoredTurn]:
        """Return the turns of exactly this scope between two positions."""
        with self._read_account(scope.account) as (db, account_id):
            return rows.list_turns(db, account_id, scope, after, before, limit, newest=newest)

    def evidence_rows(
        self,
        account: str,
        *,
        scope: Scope | None = None,
        source: str | None = None,
        ids: Sequence[str] = (),
    ) -> Sequence[EvidenceRow]:
        """Return the evidence that meets all given conditions."""
        with self._read_account(account) as (db, account_id):
            if scope is not None:
                rows = run_query(
                    db,
                    "evidence_by_space",
                    to_json_list(list(find_visible_spaces(db, account_id, scope))),
                )
            elif source is not None:
                rows = run_query(db, "evidence_by_source", source, *get_id_range(account_id))
            else:
                rows = run_query(db, "evidence_named", *get_id_range(account_id), to_json_list(ids))
            scopes = ScopeLookup(db, account)
            wanted_ids = set(ids)
            is_filtered = scope is not None or source is not None
            return [
                EvidenceRow(
                    name,
                    id_ - get_id_base(account_id),
                    scopes[space],
                    digest,
                    row_source,
                    tuple(json.loads(blob_hashes)),
                )
                for id_, name, space, digest, row_source, blob_hashes in rows.fetchall()
                if source in (None, row_source)
                and (name in wanted_ids or (not wanted_ids and is_filtered))
            ]

    def view_rows(self, account: str, view: View) -> Iterator[tuple[Any, ...]]:
        """Return the stored rows of a view, postings included, for tests."""
        with self._read_account(account) as (db, account_id):
            view_rows = run_query(db, f"rows_{view}", *get_id_range(account_id)).fetchall()
            if view == "passages":
                view_rows += run_query(db, "rows_postings", account_id).fetchall()
        return iter(view_rows)

    def rows_between(self, account: str, after: int, upto: int) -> Sequence[ViewRow]:
        """Return the view rows of some entries."""
        with self._read_account(account) as (db, account_id):
            return load_view_rows(db, account_id, account, after, upto)

    # Vectors

    def current_model(self) -> tuple[str, int] | None:
        """Return the model the store is bound to."""
        model = self._write.read_on_writer(
            lambda db: get_current_model(db, self._write.get_read_cache(db))
        )
        return None if model is None else (model.name, model.dim)

    def bind_model(self, name: str, dim: int, *, switch: bool = False) -> None:
        """Bind the store to its first model, or switch to another one."""
        if switch:
            self._write(lambda db: switch_model(db, name, dim))
            self.index.cache.clear()
            return
        bound = self.current_model()
        if bound is None:
            self._write(lambda db: bind_first_model(db, name, dim))
            bound = self.current_model()
        if bound != (name, dim) and bound is not None:
            raise ModelMismatch(
                f"The store was indexed with {bound[0]} ({bound[1]} dimensions), "
                f"not {name} ({dim}).",
                hint=f"Open it with embedder={bound[0]!r}, or run `told reindex --embedder {name}` "
                "to embed it anew.",
            )

    def pending_texts(
        self,
        limit: int | None = 1000,
        model: str | None = None,
        *,
        account: str | None = None,
        seqs: Sequence[int] | None = None,
    ) -> Mapping[bytes, str]:
        """Return texts without a vector under a model."""
        with self._database.read_transaction() as db:
            chosen = (
                vectors.load_current_model(db) if model is None else vectors.load_model(db, model)
            )
            model_id, count = 0 if chosen is None else chosen.id, -1 if limit is None else limit
            if account is None or seqs is None:
                rows = run_query(db, "pending", model_id, count).fetchall()
            else:
                row = run_query(db, "account", account).fetchone()
                entry_ids = [] if row is None else [make_entry_id(row[0], seq) for seq in seqs]
                rows = run_query(
                    db, "pending_of", to_json_list(entry_ids), model_id, count
                ).fetchall()
        return {
            digest: join_with_previous(previous_text, text) for digest, previous_text, text in rows
        }

    def put_vectors(
        self, vectors_: Mapping[bytes, Sequence[float]], model: str | None = None
    ) -> None:
        """Store vectors by text hash."""
        self._write(lambda db: put_vectors(db, vectors_, model))

    # Consumers

    def get_cursor(self, account: str, consumer: str) -> int:
        """Return the position a consumer has reached."""
        with self._read_account(account) as (db, account_id):
            return run_query(db, "cursor", account_id, consumer).get or 0

    def record_fault(
        self, account: str, consumer: str, seq: int, error: str, raw: str = ""
    ) -> None:
        """Record a failure; a repeated one counts another attempt."""
        at = self.mint.now()
        self._write(lambda db: record_fault(db, account, consumer, seq, error, raw, at))

    def clear_faults(self, account: str, fault_ids: Sequence[int]) -> int:
        """Delete faults and return how many there were."""
        return self._write(lambda db: delete_faults(db, account, fault_ids))

    def list_faults(self, account: str) -> Sequence[Fault]:
        """Return all faults in the order they first occurred."""
        with self._read_account(account) as (db, account_id):
            return [Fault(row[0], account, *row[1:]) for row in run_query(db, "faults", account_id)]

    # Blobs

    def get_blobs(self, account: str, hashes: Sequence[str] | None = None) -> Mapping[str, Blob]:
        """Return some blobs, or all of them without their bytes."""
        with self._read_account(account) as (db, account_id):
            if hashes is None:
                blobs = erase.list_blobs(db, account_id)
            else:
                loaded = [erase.load_blob(db, account_id, name) for name in hashes]
                blobs = [blob for blob in loaded if blob is not None]
        return {blob.hash: blob for blob in blobs}

    def access_counts(self, account: str, threads: Sequence[str]) -> Mapping[str, AccessCount]:
        """Return how often threads were recalled."""
        with self._read_account(account) as (db, account_id):
            rows = run_query(db, "touched", account_id, to_json_list(threads)).fetchall()
        return {thread: AccessCount(count, last) for thread, count, last in rows}

    # Maintenance

    def check_integrity(self, *, types_only: bool = False) -> Sequence[str]:
        """Return the problems of the file and of the index."""
        with self._database.read_transaction() as db:
            if types_only:
                return list(integrity.find_type_errors(db))
            return integrity.check_store(db)

    def repair(self) -> int:
        """Rebuild damaged parts of the index; return how many there were."""
        repaired = self._write(integrity.repair_index)
        self.index.cache.clear()
        return repaired

    def get_stats(self, account: str) -> Mapping[str, Any]:
        """Return counts and sizes."""
        with self._read_account(account) as (db, account_id):
            return integrity.collect_stats(db, account_id or None, self.path)

    def backup(self, target: Path) -> None:
        """Write a consistent copy without blocking others."""
        with self._database.borrow_connection() as db:
            integrity.write_backup(db, target)

    def close(self) -> None:
        """Close all connections after the current write; closing twice is allowed."""
        self._write.close()


def open_store(
    url: str, *, mint: IdGenerator | None = None, settings: Mapping[str, Any] | None = None
) -> SqliteStore:
    """Open the store of a `sqlite:///` URL; create the file if it is missing."""
    return SqliteStore(parse_url(url), mint or IdGenerator(), settings or {})
