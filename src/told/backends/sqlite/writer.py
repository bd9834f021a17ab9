"""Group commit: whoever gets the lock writes for everybody who waits, in one transaction with one sync.

There is no writer thread: a lone caller pays for no hand-over, and sixty-four callers share a sync. Every job is
acknowledged after COMMIT, and a job that fails takes no other job with it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import apsw

from told.backends.sqlite.connect import Database, translated
from told.core.errors import StoreClosed

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


def _quiet(step: str) -> None:
    """Nobody watches the steps of a commit."""


@dataclass(slots=True)
class Job(Generic[T]):
    """One caller's work and what came of it."""

    work: Work[T]
    stir: threading.Event = field(default_factory=threading.Event)
    done: bool = False
    result: T | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class Writer:
    """The one door to the file's write lock."""

    database: Database
    limit: int
    watch: Callable[[str], None] = _quiet
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: deque[Job[Any]] = field(default_factory=deque)

    def __call__(self, work: Work[T]) -> T:
        """Do some work in a transaction and return once it is durable."""
        job = Job(work)
        self._queue.append(job)
        while not job.done:
            if self._lock.acquire(blocking=False):
                try:
                    while not job.done:
                        self._write()
                finally:
                    self._lock.release()
                self._pass_on()
            else:
                job.stir.wait()
                job.stir.clear()
        if job.error is not None:
            with translated():
                raise job.error
        return cast(T, job.result)

    def alone(self, work: Work[T]) -> T:
        """Do some work on the writing connection outside any transaction, while nobody else writes."""
        try:
            with self._lock, translated():
                return work(self._connection())
        finally:
            self._pass_on()

    def glance(self, work: Work[T]) -> T:
        """Do some quick reading where the pages just written are still at hand, unless somebody is writing now.

        Each statement sees the file as it is: who needs one view of it over several of them reads in a snapshot.
        """
        if not self._lock.acquire(blocking=False):
            with translated():
                return work(self.database.reader())
        try:
            with translated():
                return work(self._connection())
        finally:
            self._lock.release()
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the first of those who came meanwhile write for all; done once the lock is free, lest one sleeps on."""
        with suppress(IndexError):
            self._queue[0].stir.set()

    def _connection(self) -> apsw.Connection:
        if self.database.closed:
            raise StoreClosed()
        return self.database.writer

    def _write(self) -> None:
        jobs = [self._queue.popleft() for _ in range(min(len(self._queue), self.limit))]
        try:
            with translated():
                self._transact(self._connection(), jobs)
        except BaseException as error:
            for job in jobs:
                if job.error is None:
                    job.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for job in jobs:
                job.done = True
                job.stir.set()

    def _transact(self, db: apsw.Connection, jobs: list[Job[Any]]) -> None:
        db.execute("BEGIN IMMEDIATE")
        self.watch("begun")
        try:
            for job in jobs:
                self._perform(db, job, alone=len(jobs) == 1)
            self.watch("written")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self.watch("committed")

    def _perform(self, db: apsw.Connection, job: Job[Any], *, alone: bool) -> None:
        """Run one job; in company a failure undoes its own part, unless SQLite gave up the whole transaction."""
        if alone:
            job.result = job.work(db)
            return
        db.execute("SAVEPOINT job")
        try:
            job.result = job.work(db)
        except BaseException as error:
            if not db.in_transaction:
                raise
            db.execute("ROLLBACK TO job")
            job.error = error
        db.execute("RELEASE job")
