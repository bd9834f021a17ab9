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
"""A fact of more characters is not kept: many of them would take more room than it takes time to read them."""


@dataclass(slots=True)
class AccountHead:
    """An account inside a transaction; its head moves with every entry, and all that came since a position is known."""

    id: int
    name: str
    seq: int
    at: int
    hash: bytes
    cached_since: int


@dataclass(slots=True)
class ReadCache:
    """Heads, spaces, sizes and clocks of partitions, the model and facts, good for one version of the file.

    The version is unknown while a transaction runs. Only a commit makes it known again, so whatever was noted by one
    that failed, or before somebody else wrote, is never looked at.
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
        """The memo to use for a transaction on this version of the file."""
        read_cache = (
            self if self.version == version and len(self.spaces) < MAX_CACHED else ReadCache()
        )
        read_cache.version = UNKNOWN_VERSION
        return read_cache

    def record_writes(self, account: AccountHead, drafts: Iterable[Draft]) -> None:
        """Note that something was written to the scopes of some drafts."""
        last: object = self
        for draft in drafts:
            if draft.scope is not last:
                last = draft.scope
                self.last_writes[draft.scope] = account.seq

    def is_guard_satisfied(self, account: AccountHead, guard: Guard, read_seq: int) -> bool:
        """Whether a guard is known to hold: nothing was written since, or nothing to the scope that it watches."""
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
        """Note facts that were just read, given their rows; those noted before make room once there are many."""
        if len(self.facts) >= MAX_CACHED:
            self.facts.clear()
        for fact, row in zip(facts, rows, strict=True):
            if sum([len(value) for value in row if isinstance(value, str)]) <= MAX_CACHED_CHARS:
                self.facts[account, fact.seq] = fact


@dataclass(slots=True)
class WriteBuffer:
    """Everything gathered in a transaction, and how much of it was written."""

    watch: Callable[[str], object] = len
    buffered_count: int = 0
    written_count: int = 0
    flush_failed: bool = False
    _view_writers: dict[str, tuple[AccountHead, ViewWriter]] = field(default_factory=dict)

    def get_view_writer(
        self, account: AccountHead, factory: Callable[[], ViewWriter]
    ) -> ViewWriter:
        """What grows an account to which something is about to be added: from here on there are traces of it."""
        self.buffered_count += 1
        entry = self._view_writers.get(account.name)
        if entry is None:
            entry = self._view_writers[account.name] = (account, factory())
        return entry[1]

    def has_relevant_writes(self, guards: Iterable[Guard]) -> bool:
        """Whether something gathered may be what a guard looks out for."""
        return any(
            _has_relevant_writes(view_writer, guard)
            for _, view_writer in self._view_writers.values()
            for guard in guards
        )

    def flush(self, db: apsw.Connection) -> None:
        """Write what was gathered; if that fails, nobody can say whose it was."""
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
"""How a lock is tried, by `map`: it takes the lock and notes so in one step, between which no interrupt can strike."""
MAX_SLEEP_SECONDS: Final = 1.0
"""The longest anybody sleeps: an interrupt may strike whoever was about to wake them."""

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


@dataclass(slots=True, eq=False)
class WriteJob(Generic[T]):
    """One caller's work and what came of it."""

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
        """Wake whoever waits for the job, or let it not fall asleep."""
        with suppress(RuntimeError):
            self.wake_lock.release()


@dataclass(slots=True)
class GroupCommitWriter:
    """The one door to the file's write lock."""

    database: Database
    limit: int
    watch: Callable[[str], object] = (
        len  # nobody watches: the least that can be done with the name of a step
    )
    read_cache: ReadCache = field(default_factory=ReadCache)
    write_buffer: WriteBuffer = field(default_factory=WriteBuffer)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: deque[WriteJob[Any]] = field(default_factory=deque)
    _finished: deque[WriteJob[Any]] = field(default_factory=deque)
    _committed: bool = False
    _one_by_one: bool = False

    def __call__(self, work: Work[T], *, keeps_cache: bool = False, uses_buffer: bool = False) -> T:
        """Do some work in a transaction and return once it is durable; it is said if it keeps the memo, or gathers."""
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
        """Do some work on the writing connection outside any transaction, while nobody else writes."""
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
        """Close the file once the write that is going on is done; those who wait to write are told so."""
        try:
            with self._lock:
                self.database.close()
        finally:
            self._wake_next_writer()

    def read_on_writer(self, work: Work[T]) -> T:
        """Do some quick reading where the pages just written are still at hand, unless somebody is writing now.

        Each statement sees the file as it is: who needs one view of it over several of them reads in a snapshot.
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
        """What was noted of the file as a glance sees it; beside somebody who writes, nothing."""
        if db is not self.database.writer:
            return ReadCache()
        db.execute(
            "PRAGMA data_version"
        ).fetchall()  # a connection knows of others' commits once it reads
        if self.read_cache.version != db.data_version():
            self.read_cache = ReadCache(db.data_version())
        return self.read_cache

    def pause_writes(self) -> bool:
        """Wait until nobody writes and let nobody begin until `resume`; False if that takes too long."""
        return self._lock.acquire(timeout=self.database.busy_timeout)

    def resume_writes(self) -> None:
        """Let others write again."""
        self._lock.release()
        self._wake_next_writer()

    def _wake_next_writer(self) -> None:
        """Let the first of those who came meanwhile write for all; done once the lock is free, lest one sleeps on."""
        if self._queue:
            with suppress(IndexError):
                self._queue[0].wake()

    def _wait_for_wake(self, job: WriteJob[Any]) -> None:
        """Sleep until stirred, being stirred before counts, or a while; however that ends, the next one is roused."""
        job.asleep = True
        try:
            job.wake_lock.acquire(timeout=MAX_SLEEP_SECONDS)
        finally:
            job.asleep = False
            self._wake_finished()

    def _wake_finished(self) -> None:
        """Wake one of those whose jobs are done; each sleeper among them rouses another, so all of them get up.

        One who was awake already may have looked for another before any was here, and is not relied upon.
        """
        with suppress(IndexError):
            while True:
                job = self._finished.popleft()
                job.wake()
                if job.asleep:
                    return

    def _finish_jobs(self, *jobs: WriteJob[Any]) -> None:
        """Let those who wait for jobs go on; one that came to nothing is done again by its own thread."""
        for job in jobs:
            job.done = self._committed or job.error is not None
            if job.asleep:
                self._finished.append(job)
            else:
                job.wake()
        self._wake_finished()

    def _get_connection(self) -> apsw.Connection:
        """The connection to write on; what was noted counts for as long as it is the same, whose versions it names."""
        db = self.database.writer
        if db is None:
            self.read_cache, db = ReadCache(), self.database.open_writer()
        return db

    def _write_group(self, own_job: WriteJob[Any]) -> None:
        """Write for whoever waits, in one transaction; one that spoils it fails, and the others are done again.

        What interrupts this thread is no concern of the others: unless theirs are done, their jobs wait for another.
        """
        jobs: list[WriteJob[Any]] = []
        jobs += (
            map(deque.popleft, (self._queue,)) if self._queue else (own_job,)
        )  # one an interrupt lost is done again
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
                self.database.close_writer()  # the interrupt may have struck before the transaction could be ended
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
        """Do jobs in one transaction, and those of whoever comes meanwhile; if one spoils it, nothing is done.

        Nothing is done either if what they gathered cannot be written; from then on each settles its own.
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
        """Do a job; whether the transaction is sound thereafter: the job did not fail, or not after it wrote."""
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
        """Whose fault it is that a job failed; nobody knows if it may have been in writing what others had gathered."""
        if self._one_by_one or not (failed.uses_buffer or self.write_buffer.flush_failed):
            return failed
        if len(jobs) > 1:
            self._one_by_one, failed.error = True, None
            return None
        jobs[0].error = failed.error
        return jobs[0]

    def _count_changes(self, db: apsw.Connection) -> tuple[int, int]:
        """What jobs have done so far: the rows they changed by themselves, and how often they gathered."""
        return (
            db.total_changes() - self.write_buffer.written_count,
            self.write_buffer.buffered_count,
        )


def _do_nothing(db: apsw.Connection) -> None:
    """What is left to do once everybody's work is done: whatever they gathered is written before it."""


class WriteSession:
    """A writing connection that is in no transaction thereafter; an interrupt, which may leave more, closes it."""

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
