"""What the store keeps beside the ledger: a conversation's clock, and what reads and consumers leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import apsw

from told.backends.sqlite import beside, ledger
from told.backends.sqlite.connect import Database, run
from told.backends.sqlite.rows import Scopes, json_list, position
from told.backends.sqlite.writer import Writer
from told.core.fact import Tick
from told.core.query import LATEST, Touch
from told.core.recall import Access, Left, Recalled, RecallState, Task
from told.core.scope import Scope

T = TypeVar("T")


class SqliteOverlay:
    """`told.ports.Overlay` over the tables of a file."""

    _database: Database
    _write: Writer

    @contextmanager
    def _in(self, account: str) -> Iterator[tuple[apsw.Connection, int]]:
        """A snapshot and the number of an account; an account never written to has none that matches anything."""
        with self._database.reading() as db:
            row = run(db, "account", account).fetchone()
            yield db, 0 if row is None else row[0]

    def _within(self, account: str, work: Callable[[apsw.Connection, int], T]) -> T | None:
        """Write to an account; to one that was never written to there is nothing to add that counts."""

        def job(db: apsw.Connection) -> T | None:
            row = run(db, "account", account).fetchone()
            return None if row is None else work(db, row[0])

        return self._write(job, keeps=True)

    def ticks(self, scope: Scope, upto: int | None = None, limit: int = 4096) -> Sequence[Tick]:
        """The last turns at the home of a scope."""
        with self._in(scope.account) as (db, number):
            part = run(db, "part", number, scope.home()).get
            at = position(number, LATEST if upto is None else upto)
            rows = () if part is None else run(db, "ticks", part, at, max(limit, 0)).fetchall()
            scopes = Scopes(db, scope.account)
            return [Tick(seq, scopes[space], *rest) for seq, space, *rest in reversed(rows)]

    def ticked(self, scope: Scope, places: Sequence[int]) -> Mapping[int, tuple[int, int]]:
        """What the turns at the home of a scope come to up to some positions."""
        with self._in(scope.account) as (db, number):
            part = run(db, "part", number, scope.home()).get
            asked = [position(number, place) for place in places]
            rows = run(db, "ticked", part, json_list(asked)).fetchall()
        return {place: (turns, tokens) for place, (_, turns, tokens) in zip(places, rows, strict=True)}

    # What reads leave behind ------------------------------------------------------------------------------------------

    def write_down(self, account: str, left: Left) -> None:
        """Count recalls and topics that met, note recalls and queue tasks, in one transaction."""
        self._within(account, lambda db, number: beside.write_down(db, number, left))

    # Topics that came up together -------------------------------------------------------------------------------------

    def meet(self, account: str, pairs: Mapping[tuple[str, str], Touch]) -> None:
        """Count that topics came up together."""
        self._within(account, lambda db, number: beside.write_down(db, number, Left(met=pairs)))

    def met(self, account: str, topics: Sequence[str]) -> Mapping[tuple[str, str], Touch]:
        """How often topics came up together with others."""
        with self._in(account) as (db, number):
            rows = run(db, "met", number, json_list(topics)).fetchall()
        return {(one, other): Touch(count, last) for one, other, count, last in rows}

    # Recalls one by one -----------------------------------------------------------------------------------------------

    def recalls(self, account: str, thread: str) -> Sequence[Recalled]:
        """The recalls of a thread, oldest first."""
        with self._in(account) as (db, number):
            rows = run(db, "recalls", number, thread).fetchall()
        return [Recalled(thread, at, rank, score, query, Access(how)) for at, rank, score, query, how in rows]

    def states(self, account: str, threads: Sequence[str]) -> Sequence[RecallState]:
        """The states of threads, by thread and oldest first."""
        with self._in(account) as (db, number):
            return [RecallState(*row) for row in run(db, "recall_states", number, json_list(threads))]

    # What is to be thought over ---------------------------------------------------------------------------------------

    def enqueue(self, account: str, tasks: Sequence[Task], window: int) -> int:
        """Queue tasks; how many were new."""
        return self._within(account, lambda db, number: beside.enqueue(db, number, tasks, window)) or 0

    def queue(self, account: str, limit: int = 100) -> Sequence[Task]:
        """The open tasks, most urgent first."""
        with self._in(account) as (db, number):
            return [beside.task_of(row) for row in run(db, "tasks", number, max(limit, 0))]

    def claim(self, account: str, now: int, limit: int, lease: int) -> Sequence[Task]:
        """Take tasks that are due and free."""
        return self._within(account, lambda db, number: beside.claim(db, number, now, limit, lease)) or ()

    def done(self, account: str, tasks: Sequence[int]) -> int:
        """Close tasks; how many there were."""
        return self._within(account, lambda db, number: beside.done(db, number, tasks)) or 0

    # What consumers note for themselves -------------------------------------------------------------------------------

    def notes(self, account: str, consumer: str, keys: Sequence[str] | None = None) -> Mapping[str, bytes]:
        """What a consumer noted."""
        with self._in(account) as (db, number):
            if keys is None:
                return dict(run(db, "notes", number, consumer).fetchall())
            return dict(run(db, "notes_named", number, consumer, json_list(keys)).fetchall())

    def note(self, account: str, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note something outside a commit."""
        self._write(lambda db: beside.note(db, ledger.account_of(db, account).id, consumer, notes))
