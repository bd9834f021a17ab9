"""Group commit: the caller that gets the lock writes for all waiting callers in one transaction.

There is no writer thread: a single caller pays no hand-over, and many callers share one sync. Jobs
that arrive meanwhile join. Every job is acknowledged after COMMIT. A failed job takes no other with
it: if it wrote nothing it is left out, otherwise the transaction is rolled back and the others run
again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import apsw

from told.backends.sqlite.apply import ViewWriter
from told.backends.sqlite.connection import Database, run_query, translate_errors
from told.backends.sqlite.vectors import StoredModel
from told.model.entry import Draft
from told.model.fact import Fact
from told.model.scope import Scope
from told.ports import Guard, KindNotGrown, NoEvidence, NoFact, UnchangedSlot

UNKNOWN_VERSION: Final = -1
MAX_CACHED: Final = 4096
MAX_CACHED_CHARS: Final = 2048
"""Longer facts are not cached."""


@dataclass(slots=True)
class AccountHead:
    """An account's head inside a transaction; it advances with every entry."""

    id: int
    name: str
    seq: int
    at: int
    hash: bytes
    cached_since: int


@dataclass(slots=True)
class ReadCache:
    """Cached heads, spaces, partition sizes, model and facts, valid for one file version.

    The version is unknown during a transaction and set again by a commit only, so values cached
    in a failed transaction are never used.
    """

    version: int = UNKNOWN_VERSION
    accounts: dict[str, AccountHead] = field(default_factory=dict)
    spaces: dict[Scope, tuple[int, int]] = field(default_factory=dict)
    partition_sizes: dict[int, int] = field(default_factory=dict)
    tick_totals: dict[int, tuple[int, int]] = field(default_factory=dict)
    model: tuple[StoredModel | None] | None = None
    facts: dict[tuple[str, int], Fact] = field(default_factory=dict)
    last_writes: dict[Scope | None, int] = field(default_factory=dict)

    def reuse_for(self, version: int) -> ReadCache:
        """Return the cache to use for a transaction on this file version."""
        read_cache = (
            self if self.version == version and len(self.spaces) < MAX_CACHED else ReadCache()
        )
        read_cache.version = UNKNOWN_VERSION
        return read_cache

    def record_writes(self, account: AccountHead, drafts: Iterable[Draft]) -> None:
        """Record writes to the scopes of these drafts."""
        last: object = self
        for draft in drafts:
            if draft.scope is not last:
                last = draft.scope
                self.last_writes[draft.scope] = account.seq

    def is_guard_satisfied(self, account: AccountHead, guard: Guard, read_seq: int) -> bool:
        """Return whether a guard provably holds without a query."""
        if read_seq == account.seq:
            return True
        return (
            isinstance(guard, NoFact | NoEvidence)
            and read_seq >= account.cached_since
            and self.last_writes.get(guard.scope, 0) <= read_seq
        )

    def cache_facts(
        self, account: str, facts: Iterable[Fact], rows: Iterable[tuple[Any, ...]]
    ) -> None:
        """Cache facts unless their rows are long; clear the cache first when it is full."""
        if len(self.facts) >= MAX_CACHED:
            self.facts.clear()
        for fact, row in zip(facts, rows, strict=True):
            if sum([len(value) for value in row if isinstance(value, str)]) <= MAX_CACHED_CHARS:
                self.facts[account, fact.seq] = fact


@dataclass(slots=True)
class WriteBuffer:
    """The buffered writes of a transaction."""

    watch: Callable[[str], object] = len
    buffered_count: int = 0
    written_count: int = 0
    flush_failed: bool = False
    _view_writers: dict[str, tuple[AccountHead, ViewWriter]] = field(default_factory=dict)

    def get_view_writer(
        self, account: AccountHead, factory: Callable[[], ViewWriter]
    ) -> ViewWriter:
        """Return the account's view writer, marking the transaction as changed."""
        self.buffered_count += 1
        entry = self._view_writers.get(account.name)
        if entry is None:
            entry = self._view_writers[account.name] = (account, factory())
        return entry[1]

    def has_relevant_writes(self, guards: Iterable[Guard]) -> bool:
        """Return whether buffered rows may affect these guards."""
        return any(
            _has_relevant_writes(view_writer, guard)
            for _, view_writer in self._view_writers.values()
            for guard in guards
        )

    def flush(self, db: apsw.Connection) -> None:
        """Write the buffered rows; a failure cannot be attributed to one job."""
        if not self._view_writers:
            return
        changes_before, self.flush_failed = db.total_changes(), True
        for account, view_writer in self._view_writers.values():
            view_writer.flush_entries()
            self.watch("appended")
            view_writer.flush()
            self.watch("folded")
            run_query(db, "move_head", account.seq, account.at, account.hash, account.id)
            self.watch("headed")
        self._view_writers.clear()
        self.flush_failed = False
        self.written_count += db.total_changes() - changes_before


def _has_relevant_writes(view_writer: ViewWriter, guard: Guard) -> bool:
    match guard:
        case NoFact(md5s=digests) | NoEvidence(digests=digests):
            return not view_writer.written_digests.isdisjoint(digests)
        case UnchangedSlot(scope=scope) | KindNotGrown(scope=scope):
            return scope in view_writer.written_scopes
        case _:
            return True


NON_BLOCKING: Final = (False,)
"""Arguments to try a lock with `map`, which takes it and records that without a gap for
interrupts.
"""
MAX_SLEEP_SECONDS: Final = 1.0
"""Longest sleep; an interrupt may hit the thread that should wake others."""

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


@dataclass(slots=True, eq=False)
class WriteJob(Generic[T]):
    """A caller's work and its result."""

    work: Work[T]
    keeps_cache: bool
    uses_buffer: bool
    done: bool = False
    asleep: bool = False
    result: Any = None
    error: BaseException | None = None
    wake_lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.wake_lock.acquire()

    def wake(self) -> None:
        """Wake the waiting caller, or keep it from going to sleep."""
        with suppress(RuntimeError):
            self.wake_lock.release()


@dataclass(slots=True)
class GroupCommitWriter:
    """Runs write jobs under the file's write lock; nothing else takes it."""

    database: Database
    limit: int
    watch: Callable[[str], object] = len  # the cheapest way to evaluate the name
    read_cache: ReadCache = field(default_factory=ReadCache)
    write_buffer: WriteBuffer = field(default_factory=WriteBuffer)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: deque[WriteJob[Any]] = field(default_factory=deque)
    _finished: deque[WriteJob[Any]] = field(default_factory=deque)
    _committed: bool = False
    _one_by_one: bool = False

    def __call__(self, work: Work[T], *, keeps_cache: bool = False, uses_buffer: bool = False) -> T:
        """Run work in a transaction and return once it is durable.

        `keeps_cache` says that the work keeps the read cache valid, `uses_buffer` that it buffers
        its rows.
        """
        job, acquired = WriteJob(work, keeps_cache, uses_buffer), [False]
        try:
            self._queue.append(job)
            while not job.done:
                acquired[:] = map(self._lock.acquire, NON_BLOCKING)
                if not acquired[0]:
                    self._wait_for_wake(job)
                while acquired[0] and not job.done:
                    self._write_group(job)
        except BaseException:
            with suppress(ValueError):
                self._queue.remove(job)
            self._wake_next_writer()
            raise
        finally:
            if acquired[0]:
                self._lock.release()
                self._wake_next_writer()
        if job.error is not None:
            with translate_errors():
                raise job.error
        result: T = job.result
        return result

    def run_exclusive(self, work: Work[T]) -> T:
        """Run work on the writing connection outside a transaction, with writers blocked."""
        try:
            with (
                self._lock,
                translate_errors(),
                WriteSession(self.database, self._get_connection()) as db,
            ):
                return work(db)
        finally:
            self._wake_next_writer()

    def close(self) -> None:
        """Close the file after the current write; waiting writers get an error."""
        try:
            with self._lock:
                self.database.close()
        finally:
            self._wake_next_writer()

    def read_on_writer(self, work: Work[T]) -> T:
        """Run a quick read on the writing connection, if it is idle.

        Its page cache is warm. Each statement sees the current file; use a snapshot for
        several consistent statements.
        """
        acquired = [False]
        try:
            acquired[:] = map(self._lock.acquire, NON_BLOCKING)
            if acquired[0]:
                with translate_errors(), WriteSession(self.database, self._get_connection()) as db:
                    return work(db)
            with self.database.borrow_connection() as db:
                return work(db)
        finally:
            if acquired[0]:
                self._lock.release()
                self._wake_next_writer()

    def get_read_cache(self, db: apsw.Connection) -> ReadCache:
        """Return the read cache for a read on the writer, or an empty one while someone writes."""
        if db is not self.database.writer:
            return ReadCache()
        db.execute(
            "PRAGMA data_version"
        ).fetchall()  # a connection notices other commits when it reads
        if self.read_cache.version != db.data_version():
            self.read_cache = ReadCache(db.data_version())
        return self.read_cache

    def pause_writes(self) -> bool:
        """Block writers until `resume_writes`; return False on timeout."""
        return self._lock.acquire(timeout=self.database.busy_timeout)

    def resume_writes(self) -> None:
        """Unblock writers."""
        self._lock.release()
        self._wake_next_writer()

    def _wake_next_writer(self) -> None:
        """Wake the first waiting caller to write for all, after the lock is free."""
        if self._queue:
            with suppress(IndexError):
                self._queue[0].wake()

    def _wait_for_wake(self, job: WriteJob[Any]) -> None:
        """Sleep until woken or a timeout; then wake the next one."""
        job.asleep = True
        try:
            job.wake_lock.acquire(timeout=MAX_SLEEP_SECONDS)
        finally:
            job.asleep = False
            self._wake_finished()

    def _wake_finished(self) -> None:
        """Wake one finished caller, which wakes the next.

        A caller that was awake may have checked before any job finished, so it is not
        relied on.
        """
        with suppress(IndexError):
            while True:
                job = self._finished.popleft()
                job.wake()
                if job.asleep:
                    return

    def _finish_jobs(self, *jobs: WriteJob[Any]) -> None:
        """Release the callers of these jobs; a job without a result retries itself."""
        for job in jobs:
            job.done = self._committed or job.error is not None
            if job.asleep:
                self._finished.append(job)
            else:
                job.wake()
        self._wake_finished()

    def _get_connection(self) -> apsw.Connection:
        """Return the writing connection; a new one invalidates the read cache."""
        db = self.database.writer
        if db is None:
            self.read_cache, db = ReadCache(), self.database.open_writer()
        return db

    def _write_group(self, own_job: WriteJob[Any]) -> None:
        """Write all waiting jobs in one transaction; if one fails it, retry the others.

        An interrupt of this thread does not affect other callers: their unfinished jobs are
        run by another thread.
        """
        jobs: list[WriteJob[Any]] = []
        jobs += (
            map(deque.popleft, (self._queue,)) if self._queue else (own_job,)
        )  # retry a job that an interrupt lost
        self._committed = self._one_by_one = False
        try:
            with translate_errors():
                while jobs and not self._committed:
                    failed = self._run_transaction(self._get_connection(), jobs)
                    if failed is not None:
                        jobs.remove(failed)
                        self._finish_jobs(failed)
        except BaseException as error:
            if not isinstance(error, Exception):
                self.database.close_writer()  # the interrupt may have left the transaction open
                if not self._committed:
                    self._queue.extendleft(job for job in reversed(jobs) if job is not own_job)
                    jobs.clear()
                raise
            for job in jobs:
                if job.error is None:
                    job.error = error
        finally:
            try:
                self._finish_jobs(*jobs)
            except BaseException:
                self._finish_jobs(*jobs)
                raise

    def _run_transaction(
        self, db: apsw.Connection, jobs: list[WriteJob[Any]]
    ) -> WriteJob[Any] | None:
        """Run jobs, and those that arrive meanwhile, in one transaction.

        Return the job that spoiled it. If the flush of shared rows fails, nothing is
        committed and each job runs alone.
        """
        with WriteSession(self.database, db):
            db.execute("BEGIN IMMEDIATE")
            self.read_cache, self.write_buffer = (
                self.read_cache.reuse_for(db.data_version()),
                WriteBuffer(self.watch),
            )
            self.watch("begun")
            for job in jobs:
                if not self._run_job(db, job):
                    return self._find_failed_job(job, jobs)
                if self._queue and len(jobs) < self.limit:
                    jobs += map(deque.popleft, (self._queue,))
            if not self._run_job(
                db, final := WriteJob(_do_nothing, keeps_cache=True, uses_buffer=False)
            ):
                return self._find_failed_job(final, jobs)
            self.watch("written")
            try:
                db.execute("COMMIT")
            finally:
                self._committed = not db.in_transaction
            self.read_cache.version = db.data_version()
        self.watch("committed")
        return None

    def _run_job(self, db: apsw.Connection, job: WriteJob[Any]) -> bool:
        """Run a job; return False if it failed after writing."""
        changes_before, job.error = self._count_changes(db), None
        try:
            if not job.uses_buffer:
                self.write_buffer.flush(db)
            job.result = job.work(db)
            if self._one_by_one:
                self.write_buffer.flush(db)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise
            job.error = error
        if not job.keeps_cache:
            self.read_cache = ReadCache()
        if job.error is None:
            return True
        return (
            not self.write_buffer.flush_failed
            and db.in_transaction
            and self._count_changes(db) == changes_before
        )

    def _find_failed_job(
        self, failed: WriteJob[Any], jobs: list[WriteJob[Any]]
    ) -> WriteJob[Any] | None:
        """Return the job to blame, or None if the shared flush failed."""
        if self._one_by_one or not (failed.uses_buffer or self.write_buffer.flush_failed):
            return failed
        if len(jobs) > 1:
            self._one_by_one, failed.error = True, None
            return None
        jobs[0].error = failed.error
        return jobs[0]

    def _count_changes(self, db: apsw.Connection) -> tuple[int, int]:
        """Return the rows changed and the number of buffered writes so far."""
        return (
            db.total_changes() - self.write_buffer.written_count,
            self.write_buffer.buffered_count,
        )


def _do_nothing(db: apsw.Connection) -> None:
    """Do nothing; forces the flush of buffered rows."""


class WriteSession:
    """A context that leaves the writing connection outside any transaction."""

    __slots__ = ("_database", "_db")

    def __init__(self, database: Database, db: apsw.Connection) -> None:
        self._database = database
        self._db = db

    def __enter__(self) -> apsw.Connection:
        return self._db

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self._database.close_writer()
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")
