"""Group commit: whoever gets the lock writes for everybody who waits, in one transaction with one sync.

There is no writer thread: a lone caller pays for no hand-over, and sixty-four callers share a sync. Whoever comes while
jobs are done joins them. Every job is acknowledged after COMMIT, and a job that fails takes no other job with it: one
that had written nothing yet is just left out; if it had, the transaction is undone and the others are done again
without it. What jobs gather is written together at the end; if that cannot be written, each is done by itself, which
shows whose it was. Those whose jobs are done wake one another: all at once, they would fight for the interpreter.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import apsw

from told.backends.sqlite.connect import Database, translated
from told.backends.sqlite.growth import Growth
from told.backends.sqlite.memo import Memo

AT_ONCE: Final = (False,)
"""How a lock is tried, by `map`: it takes the lock and notes so in one step, between which no interrupt can strike."""
NAP: Final = 1.0
"""The longest anybody sleeps: an interrupt may strike whoever was about to wake them."""

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """One caller's work and what came of it."""

    work: Work[T]
    keeps: bool
    gathers: bool
    done: bool = False
    asleep: bool = False
    result: Any = None
    error: BaseException | None = None
    baton: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.baton.acquire()

    def stir(self) -> None:
        """Wake whoever waits for the job, or let it not fall asleep."""
        with suppress(RuntimeError):
            self.baton.release()


@dataclass(slots=True)
class Writer:
    """The one door to the file's write lock."""

    database: Database
    limit: int
    watch: Callable[[str], object] = len  # nobody watches: the least that can be done with the name of a step
    memo: Memo = field(default_factory=Memo)
    growth: Growth = field(default_factory=Growth)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: deque[Job[Any]] = field(default_factory=deque)
    _done: deque[Job[Any]] = field(default_factory=deque)
    _committed: bool = False
    _apart: bool = False

    def __call__(self, work: Work[T], *, keeps: bool = False, gathers: bool = False) -> T:
        """Do some work in a transaction and return once it is durable; it is said if it keeps the memo, or gathers."""
        job, taken = Job(work, keeps, gathers), [False]
        try:
            self._queue.append(job)
            while not job.done:
                taken[:] = map(self._lock.acquire, AT_ONCE)
                if not taken[0]:
                    self._sleep(job)
                while taken[0] and not job.done:
                    self._write(job)
        except BaseException:
            with suppress(ValueError):
                self._queue.remove(job)
            self._pass_on()
            raise
        finally:
            if taken[0]:
                self._lock.release()
                self._pass_on()
        if job.error is not None:
            with translated():
                raise job.error
        result: T = job.result
        return result

    def alone(self, work: Work[T]) -> T:
        """Do some work on the writing connection outside any transaction, while nobody else writes."""
        try:
            with self._lock, translated(), Ended(self.database, self._connection()) as db:
                return work(db)
        finally:
            self._pass_on()

    def close(self) -> None:
        """Close the file once the write that is going on is done; those who wait to write are told so."""
        try:
            with self._lock:
                self.database.close()
        finally:
            self._pass_on()

    def glance(self, work: Work[T]) -> T:
        """Do some quick reading where the pages just written are still at hand, unless somebody is writing now.

        Each statement sees the file as it is: who needs one view of it over several of them reads in a snapshot.
        """
        taken = [False]
        try:
            taken[:] = map(self._lock.acquire, AT_ONCE)
            if taken[0]:
                with translated(), Ended(self.database, self._connection()) as db:
                    return work(db)
            with self.database.lent() as db:
                return work(db)
        finally:
            if taken[0]:
                self._lock.release()
                self._pass_on()

    def noted(self, db: apsw.Connection) -> Memo:
        """What was noted of the file as a glance sees it; beside somebody who writes, nothing."""
        if db is not self.database.writer:
            return Memo()
        db.execute("PRAGMA data_version").fetchall()  # a connection knows of others' commits once it reads
        if self.memo.version != db.data_version():
            self.memo = Memo(db.data_version())
        return self.memo

    def pause(self) -> bool:
        """Wait until nobody writes and let nobody begin until `resume`; False if that takes too long."""
        return self._lock.acquire(timeout=self.database.patience)

    def resume(self) -> None:
        """Let others write again."""
        self._lock.release()
        self._pass_on()

    def _pass_on(self) -> None:
        """Let the first of those who came meanwhile write for all; done once the lock is free, lest one sleeps on."""
        if self._queue:
            with suppress(IndexError):
                self._queue[0].stir()

    def _sleep(self, job: Job[Any]) -> None:
        """Sleep until stirred, being stirred before counts, or a while; however that ends, the next one is roused."""
        job.asleep = True
        try:
            job.baton.acquire(timeout=NAP)
        finally:
            job.asleep = False
            self._rouse()

    def _rouse(self) -> None:
        """Wake one of those whose jobs are done; each sleeper among them rouses another, so all of them get up.

        One who was awake already may have looked for another before any was here, and is not relied upon.
        """
        with suppress(IndexError):
            while True:
                job = self._done.popleft()
                job.stir()
                if job.asleep:
                    return

    def _finish(self, *jobs: Job[Any]) -> None:
        """Let those who wait for jobs go on; one that came to nothing is done again by its own thread."""
        for job in jobs:
            job.done = self._committed or job.error is not None
            if job.asleep:
                self._done.append(job)
            else:
                job.stir()
        self._rouse()

    def _connection(self) -> apsw.Connection:
        """The connection to write on; what was noted counts for as long as it is the same, whose versions it names."""
        db = self.database.writer
        if db is None:
            self.memo, db = Memo(), self.database.writing()
        return db

    def _write(self, own: Job[Any]) -> None:
        """Write for whoever waits, in one transaction; one that spoils it fails, and the others are done again.

        What interrupts this thread is no concern of the others: unless theirs are done, their jobs wait for another.
        """
        jobs: list[Job[Any]] = []
        jobs += map(deque.popleft, (self._queue,)) if self._queue else (own,)  # one an interrupt lost is done again
        self._committed = self._apart = False
        try:
            with translated():
                while jobs and not self._committed:
                    spoiler = self._transact(self._connection(), jobs)
                    if spoiler is not None:
                        jobs.remove(spoiler)
                        self._finish(spoiler)
        except BaseException as error:
            if not isinstance(error, Exception):
                self.database.forsake()  # the interrupt may have struck before the transaction could be ended
                if not self._committed:
                    self._queue.extendleft(job for job in reversed(jobs) if job is not own)
                    jobs.clear()
                raise
            for job in jobs:
                if job.error is None:
                    job.error = error
        finally:
            try:
                self._finish(*jobs)
            except BaseException:
                self._finish(*jobs)
                raise

    def _transact(self, db: apsw.Connection, jobs: list[Job[Any]]) -> Job[Any] | None:
        """Do jobs in one transaction, and those of whoever comes meanwhile; if one spoils it, nothing is done.

        Nothing is done either if what they gathered cannot be written; from then on each settles its own.
        """
        with Ended(self.database, db):
            db.execute("BEGIN IMMEDIATE")
            self.memo, self.growth = self.memo.at(db.data_version()), Growth(self.watch)
            self.watch("begun")
            for job in jobs:
                if not self._perform(db, job):
                    return self._spoiler(job, jobs)
                if self._queue and len(jobs) < self.limit:
                    jobs += map(deque.popleft, (self._queue,))
            if not self._perform(db, last := Job(_nothing, keeps=True, gathers=False)):
                return self._spoiler(last, jobs)
            self.watch("written")
            try:
                db.execute("COMMIT")
            finally:
                self._committed = not db.in_transaction
            self.memo.version = db.data_version()
        self.watch("committed")
        return None

    def _perform(self, db: apsw.Connection, job: Job[Any]) -> bool:
        """Do a job; whether the transaction is sound thereafter: the job did not fail, or not after it wrote."""
        before, job.error = self._traces(db), None
        try:
            if not job.gathers:
                self.growth.settle(db)
            job.result = job.work(db)
            if self._apart:
                self.growth.settle(db)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise
            job.error = error
        if not job.keeps:
            self.memo = Memo()
        if job.error is None:
            return True
        return not self.growth.broken and db.in_transaction and self._traces(db) == before

    def _spoiler(self, failed: Job[Any], jobs: list[Job[Any]]) -> Job[Any] | None:
        """Whose fault it is that a job failed; nobody knows if it may have been in writing what others had gathered."""
        if self._apart or not (failed.gathers or self.growth.broken):
            return failed
        if len(jobs) > 1:
            self._apart, failed.error = True, None
            return None
        jobs[0].error = failed.error
        return jobs[0]

    def _traces(self, db: apsw.Connection) -> tuple[int, int]:
        """What jobs have done so far: the rows they changed by themselves, and how often they gathered."""
        return db.total_changes() - self.growth.written, self.growth.gathered


def _nothing(db: apsw.Connection) -> None:
    """What is left to do once everybody's work is done: whatever they gathered is written before it."""


class Ended:
    """A writing connection that is in no transaction thereafter; an interrupt, which may leave more, closes it."""

    __slots__ = ("_database", "_db")

    def __init__(self, database: Database, db: apsw.Connection) -> None:
        self._database = database
        self._db = db

    def __enter__(self) -> apsw.Connection:
        return self._db

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self._database.forsake()
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")
