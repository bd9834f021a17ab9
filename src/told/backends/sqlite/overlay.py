"""What the store keeps beside the ledger: a conversation's clock, and what reads and consumers leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import apsw

from told.backends.sqlite import beside, ledger
from told.backends.sqlite.connect import Database, run_query
from told.backends.sqlite.rows import ScopeLookup, make_entry_id, to_json_list
from told.backends.sqlite.writer import GroupCommitWriter
from told.core.fact import Tick
from told.core.query import LATEST, AccessCount
from told.core.recall import AccessBatch, AccessOutcome, AccessRecord, AccessState, ReviewTask
from told.core.scope import Scope

T = TypeVar("T")


class SqliteOverlay:
    """`told.ports.Overlay` over the tables of a file."""

    _database: Database
    _write: GroupCommitWriter

    @contextmanager
    def _read_account(self, account: str) -> Iterator[tuple[apsw.Connection, int]]:
        """A snapshot and the number of an account; an account never written to has none that matches anything."""
        with self._database.read_transaction() as db:
            row = run_query(db, "account", account).fetchone()
            yield db, 0 if row is None else row[0]

    def _write_account(self, account: str, work: Callable[[apsw.Connection, int], T]) -> T | None:
        """Write to an account; to one that was never written to there is nothing to add that counts."""

        def job(db: apsw.Connection) -> T | None:
            row = run_query(db, "account", account).fetchone()
            return None if row is None else work(db, row[0])

        return self._write(job, keeps_cache=True)

    def list_ticks(
        self, scope: Scope, upto: int | None = None, limit: int = 4096
    ) -> Sequence[Tick]:
        """The last turns at the home of a scope."""
        with self._read_account(scope.account) as (db, account_id):
            part = run_query(db, "part", account_id, scope.partition_key()).get
            last_id = make_entry_id(account_id, LATEST if upto is None else upto)
            rows = (
                ()
                if part is None
                else run_query(db, "ticks", part, last_id, max(limit, 0)).fetchall()
            )
            scopes = ScopeLookup(db, scope.account)
            return [Tick(seq, scopes[space], *rest) for seq, space, *rest in reversed(rows)]

    def tick_totals(self, scope: Scope, seqs: Sequence[int]) -> Mapping[int, tuple[int, int]]:
        """What the turns at the home of a scope come to up to some positions."""
        with self._read_account(scope.account) as (db, account_id):
            part = run_query(db, "part", account_id, scope.partition_key()).get
            entry_ids = [make_entry_id(account_id, seq) for seq in seqs]
            rows = run_query(db, "ticked", part, to_json_list(entry_ids)).fetchall()
        return {seq: (turns, tokens) for seq, (_, turns, tokens) in zip(seqs, rows, strict=True)}

    # What reads leave behind ------------------------------------------------------------------------------------------

    def record_accesses(self, account: str, batch: AccessBatch) -> None:
        """Count recalls and topics that met, note recalls and queue tasks, in one transaction."""
        self._write_account(
            account, lambda db, account_id: beside.record_access(db, account_id, batch)
        )

    # Topics that came up together -------------------------------------------------------------------------------------

    def record_cooccurrence(
        self, account: str, pairs: Mapping[tuple[str, str], AccessCount]
    ) -> None:
        """Count that topics came up together."""
        self._write_account(
            account,
            lambda db, account_id: beside.record_access(
                db, account_id, AccessBatch(cooccurrences=pairs)
            ),
        )

    def cooccurrence(
        self, account: str, topics: Sequence[str]
    ) -> Mapping[tuple[str, str], AccessCount]:
        """How often topics came up together with others."""
        with self._read_account(account) as (db, account_id):
            rows = run_query(db, "met", account_id, to_json_list(topics)).fetchall()
        return {(one, other): AccessCount(count, last) for one, other, count, last in rows}

    # Recalls one by one -----------------------------------------------------------------------------------------------

    def access_records(self, account: str, thread: str) -> Sequence[AccessRecord]:
        """The recalls of a thread, oldest first."""
        with self._read_account(account) as (db, account_id):
            rows = run_query(db, "recalls", account_id, thread).fetchall()
        return [
            AccessRecord(thread, at, rank, score, query, AccessOutcome(access))
            for at, rank, score, query, access in rows
        ]

    def access_states(self, account: str, threads: Sequence[str]) -> Sequence[AccessState]:
        """The states of threads, by thread and oldest first."""
        with self._read_account(account) as (db, account_id):
            return [
                AccessState(*row)
                for row in run_query(db, "recall_states", account_id, to_json_list(threads))
            ]

    # What is to be thought over ---------------------------------------------------------------------------------------

    def enqueue_tasks(self, account: str, tasks: Sequence[ReviewTask], window: int) -> int:
        """Queue tasks; how many were new."""
        return (
            self._write_account(
                account, lambda db, account_id: beside.enqueue_tasks(db, account_id, tasks, window)
            )
            or 0
        )

    def list_tasks(self, account: str, limit: int = 100) -> Sequence[ReviewTask]:
        """The open tasks, most urgent first."""
        with self._read_account(account) as (db, account_id):
            return [
                beside.parse_task(row) for row in run_query(db, "tasks", account_id, max(limit, 0))
            ]

    def claim_tasks(self, account: str, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Take tasks that are due and free."""
        return (
            self._write_account(
                account,
                lambda db, account_id: beside.claim_tasks(db, account_id, now, limit, lease),
            )
            or ()
        )

    def complete_tasks(self, account: str, task_ids: Sequence[int]) -> int:
        """Close tasks; how many there were."""
        return (
            self._write_account(
                account, lambda db, account_id: beside.complete_tasks(db, account_id, task_ids)
            )
            or 0
        )

    # What consumers note for themselves -------------------------------------------------------------------------------

    def read_notes(
        self, account: str, consumer: str, keys: Sequence[str] | None = None
    ) -> Mapping[str, bytes]:
        """What a consumer noted."""
        with self._read_account(account) as (db, account_id):
            if keys is None:
                return dict(run_query(db, "notes", account_id, consumer).fetchall())
            return dict(
                run_query(db, "notes_named", account_id, consumer, to_json_list(keys)).fetchall()
            )

    def write_notes(self, account: str, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note something outside a commit."""
        self._write(
            lambda db: beside.write_notes(
                db, ledger.get_or_create_account(db, account).id, consumer, notes
            )
        )
