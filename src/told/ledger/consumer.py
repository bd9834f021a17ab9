"""Run deferred work: the one implementation of draining, retrying, leasing and fault recording.

A consumer is a value: it loads jobs and processes one job, and `drain` does the rest. A job that
follows the ledger commits its cursor step together with its effect; a job from the task queue
holds a lease instead. This is the only module that catches every exception: a failing model or
plugin must never lose input.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from told.errors import Conflict, Diverged, IdempotencyConflict, ToldError
from told.flow import Flow, call
from told.model.query import ReviewTask
from told.model.scope import Scope
from told.ports import CursorStep, Fault, Store
from told.runtime import at_fork

T = TypeVar("T")
Payload = TypeVar("Payload")
Result = TypeVar("Result")

WAIT_SECONDS: Final = 0.25
PERMANENT_STATUSES: Final = frozenset({400, 404, 405, 410, 413, 415, 422})
UNREADABLE_REPLY: Final = "The model's answer could not be read."
REDACTED_ERROR: Final = "It failed; what the model answered was erased with what it spoke of."


# Failures


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that was caught and returned as a value."""

    error: Exception

    def __str__(self) -> str:
        if isinstance(self.error, ToldError):
            return str(self.error)
        return f"{type(self.error).__name__}: {self.error}"

    @property
    def is_transient(self) -> bool:
        """Return whether a retry may succeed; a provider rejects an invalid request every time."""
        detail = self.error.detail if isinstance(self.error, ToldError) else {}
        return detail.get("status") not in PERMANENT_STATUSES

    @property
    def raw_reply(self) -> str:
        """Return the model reply that could not be parsed, or an empty string."""
        detail = self.error.detail if isinstance(self.error, ToldError) else {}
        return str(detail.get("raw") or "")


class CursorConflict(Exception):
    """Another worker advanced the cursor, or the job's entries no longer exist."""


def catch_failure(flow: Flow[T]) -> Flow[T | Failure]:
    """Run a flow and return its result, or a `Failure` if it raises."""
    try:
        return (yield from flow)
    except Exception as error:
        return Failure(error)


# Exclusion within a process


class Mutex:
    """A lock that is polled, so that a task cancelled while waiting leaves nothing locked.

    A forked child starts with the mutex released.
    """

    def __init__(self) -> None:
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Reset to the released state."""
        self._condition = threading.Condition()
        self._locked = False

    def try_acquire(self) -> bool:
        """Acquire the mutex if it is free and return whether that succeeded."""
        with self._condition:
            acquired, self._locked = not self._locked, True
            return acquired

    def release(self) -> None:
        """Release the mutex and wake the waiters."""
        with self._condition:
            self._locked = False
            self._condition.notify_all()

    def wait_released(self, seconds: float) -> None:
        """Wait until the mutex is free, at most this long."""
        with self._condition:
            if self._locked:
                self._condition.wait(seconds)


def run_exclusive(mutex: Mutex, flow: Flow[T]) -> Flow[T]:
    """Run a flow while holding the mutex."""
    while not mutex.try_acquire():
        yield from call(mutex.wait_released, WAIT_SECONDS)
    try:
        return (yield from flow)
    finally:
        mutex.release()


# Jobs and consumers


@dataclass(frozen=True, slots=True)
class Job(Generic[Payload]):
    """A unit of work: its payload, the cursor step or lease that completes it, and its entries.

    A fault of the job is recorded at the first of `seqs`.
    """

    payload: Payload
    step: CursorStep | None = None
    seqs: Sequence[int] = ()
    lease: ReviewTask | None = None


@dataclass(frozen=True, slots=True)
class JobBatch(Generic[Payload]):
    """Jobs to process in order, and the positions their cursors reach once all are handled."""

    jobs: Sequence[Job[Payload]] = ()
    cursors: Mapping[str, int] = field(default_factory=dict)
    is_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer(Generic[Payload, Result]):
    """A deferred task: where its jobs come from, how one is processed, how failures are handled.

    `process` commits the step it is given together with its effect and raises `CursorConflict` if
    the cursor has moved; without a step it only applies the effect. `load_batch` returns None when
    no work is left.
    """

    name: str
    load_batch: Callable[[], Flow[JobBatch[Payload] | None]]
    process: Callable[[Payload, CursorStep | None], Flow[Result]]
    is_intact: Callable[[Payload], Flow[bool]] | None = None
    """Check after processing that the job's entries still exist; if not, load again."""
    list_unreadable: Callable[[Result], Sequence[str]] | None = None
    """List the model replies in a result that could not be parsed; they become a fault."""
    split: Callable[[Payload], Sequence[Job[Payload]]] | None = None
    """Split a failed job to retry its parts at once. A falsy result of a part proves nothing."""
    find_fault_seq: Callable[[Payload], Flow[int | None]] | None = None
    """Find the position to record a fault at, for jobs without `seqs`."""
    attempts: int = 0
    """Failures after which a job is skipped. 0 stops at the first one and records no fault."""
    conflict_attempts: int = 1
    """The number of times to load and process a job whose commit conflicts."""
    skips_permanent: bool = True
    """Skip a job at once if its failure is not transient."""
    keeps_replies: bool = True
    """Store the unparsed model reply in the fault."""
    mutex: Mutex | None = None


@dataclass(slots=True)
class ConsumerRun(Generic[Payload, Result]):
    """The outcome of a drain: each handled job with its result or failure, and what stopped it."""

    outcomes: list[tuple[Payload, Result | Failure]] = field(default_factory=list)
    failure: Failure | None = None

    @property
    def results(self) -> list[Result]:
        """Return the results of the jobs that succeeded."""
        return [outcome for _, outcome in self.outcomes if not isinstance(outcome, Failure)]

    def raise_failure(self) -> None:
        """Raise the exception that stopped the drain, if any."""
        if self.failure is not None:
            raise self.failure.error


def drain(
    store: Store, account: str, consumer: Consumer[Payload, Result]
) -> Flow[ConsumerRun[Payload, Result]]:
    """Process every pending job in order, until none is left or a failure stops the consumer."""
    flow = _process_batches(store, account, consumer)
    if consumer.mutex is None:
        return (yield from flow)
    return (yield from run_exclusive(consumer.mutex, flow))


def _process_batches(
    store: Store, account: str, consumer: Consumer[Payload, Result]
) -> Flow[ConsumerRun[Payload, Result]]:
    """Process batches in order; load again whenever a job or its cursor changed meanwhile."""
    run = ConsumerRun[Payload, Result]()
    conflicts = 0
    while (batch := (yield from consumer.load_batch())) is not None:
        for job in batch.jobs:
            outcome = yield from catch_failure(consumer.process(job.payload, job.step))
            if not (yield from _is_intact(consumer, job)) or _is_cursor_conflict(outcome):
                break
            if _is_commit_conflict(outcome):
                conflicts += 1
                if conflicts < consumer.conflict_attempts:
                    break
            conflicts = 0
            if isinstance(outcome, Failure):
                run.failure = yield from _handle_failure(store, account, consumer, job, outcome)
                if run.failure is not None:
                    return run
                if consumer.split is not None and not (yield from _is_intact(consumer, job)):
                    break
            else:
                yield from _complete_job(store, account, consumer, job, outcome)
            run.outcomes.append((job.payload, outcome))
        else:
            for name, seq in batch.cursors.items():
                yield from _advance_to(store, account, name, seq)
            if batch.is_last:
                return run
    return run


def _is_intact(consumer: Consumer[Payload, Result], job: Job[Payload]) -> Flow[bool]:
    return consumer.is_intact is None or (yield from consumer.is_intact(job.payload))


def _is_cursor_conflict(outcome: object) -> bool:
    return isinstance(outcome, Failure) and isinstance(outcome.error, CursorConflict)


def _is_commit_conflict(outcome: object) -> bool:
    """Return whether a commit lost against another writer and may succeed on fresh data."""
    return (
        isinstance(outcome, Failure)
        and isinstance(outcome.error, Conflict)
        and not isinstance(outcome.error, IdempotencyConflict | Diverged)
    )


def _complete_job(
    store: Store,
    account: str,
    consumer: Consumer[Payload, Result],
    job: Job[Payload],
    result: Result,
) -> Flow[None]:
    """Complete the lease, and resolve the job's faults unless a reply was unreadable."""
    if job.lease is not None:
        yield from call(store.complete_tasks, account, [job.lease.id])
    replies = consumer.list_unreadable(result) if consumer.list_unreadable else ()
    if replies:
        yield from record_unreadable(store, account, consumer.name, job.seqs[0], replies)
    elif job.seqs:
        yield from resolve_faults(store, account, consumer.name, job.seqs)


def _handle_failure(
    store: Store,
    account: str,
    consumer: Consumer[Payload, Result],
    job: Job[Payload],
    failure: Failure,
) -> Flow[Failure | None]:
    """Record a failure; return the one that stops the drain, or None to go on with the next job."""
    if consumer.split is not None:
        return (yield from _process_parts(store, account, consumer, consumer.split(job.payload)))
    if job.lease is not None:
        if job.lease.attempts >= consumer.attempts:
            yield from _record_failure(store, account, consumer, job, failure)
            yield from call(store.complete_tasks, account, [job.lease.id])
        return None
    if not consumer.attempts:
        return failure
    attempts = yield from _record_failure(store, account, consumer, job, failure)
    may_recover = failure.is_transient or not consumer.skips_permanent
    if attempts < consumer.attempts and may_recover:
        return failure
    if job.step is not None:
        yield from skip_step(store, account, job.step)
    return None


def _process_parts(
    store: Store,
    account: str,
    consumer: Consumer[Payload, Result],
    parts: Sequence[Job[Payload]],
) -> Flow[Failure | None]:
    """Find the parts that make a job fail and record them as faults.

    If no part succeeds, the service is down: return the first failure and skip nothing.
    """
    has_succeeded = False
    failed: list[tuple[Job[Payload], Failure]] = []
    for part in parts:
        outcome = yield from _retry_now(consumer, part)
        if isinstance(outcome, Failure):
            failed.append((part, outcome))
            if not has_succeeded and len(failed) >= consumer.attempts:
                break
        elif outcome:
            has_succeeded = True
    if failed and not has_succeeded:
        return failed[0][1]
    for part, failure in failed:
        yield from call(store.record_fault, account, consumer.name, part.seqs[0], str(failure))
    return None


def _retry_now(
    consumer: Consumer[Payload, Result], job: Job[Payload]
) -> Flow[Result | Failure | None]:
    outcome: Result | Failure | None = None
    for _ in range(consumer.attempts):
        outcome = yield from catch_failure(consumer.process(job.payload, job.step))
        if not isinstance(outcome, Failure):
            return outcome
    return outcome


# Cursors


def get_cursor_name(stage: str, scope: Scope) -> str:
    """Return the name of a stage's cursor for one scope; stores drop it with the scope's data."""
    return f"{stage}:{scope.digest()}"


def check_cursor(store: Store, account: str, step: CursorStep | None) -> Flow[None]:
    """Raise `CursorConflict` if the cursor is no longer where the step starts."""
    if step is not None:
        cursor = yield from call(store.get_cursor, account, step.consumer)
        if cursor != step.before:
            raise CursorConflict


def skip_step(store: Store, account: str, step: CursorStep) -> Flow[None]:
    """Move the cursor past a job that commits nothing, unless another worker has moved it."""
    if (yield from call(store.get_cursor, account, step.consumer)) == step.before:
        yield from call(store.update_consumer, account, step.consumer, cursor=step.after)


def _advance_to(store: Store, account: str, name: str, seq: int) -> Flow[None]:
    """Move a cursor forward, never back."""
    if (yield from call(store.get_cursor, account, name)) < seq:
        yield from call(store.update_consumer, account, name, cursor=seq)


# Faults


def select_faults(
    store: Store, account: str, name: str, fault_ids: Collection[int] = ()
) -> Flow[list[Fault]]:
    """Return the faults of a consumer, or those of them with the given ids."""
    faults = yield from call(store.list_faults, account)
    return [
        fault
        for fault in faults
        if fault.consumer == name and (not fault_ids or fault.id in fault_ids)
    ]


def load_faults(store: Store, account: str, name: str, seqs: Collection[int]) -> Flow[list[Fault]]:
    """Return the faults of a consumer at the given positions."""
    faults = yield from select_faults(store, account, name)
    return [fault for fault in faults if fault.seq in seqs]


def resolve_faults(store: Store, account: str, name: str, seqs: Collection[int]) -> Flow[None]:
    """Clear the faults of a consumer at the given positions."""
    faults = yield from load_faults(store, account, name, seqs)
    if faults:
        yield from call(store.clear_faults, account, [fault.id for fault in faults])


def record_unreadable(
    store: Store, account: str, name: str, seq: int, replies: Sequence[str]
) -> Flow[None]:
    """Record model replies that could not be parsed as a fault."""
    yield from call(store.record_fault, account, name, seq, UNREADABLE_REPLY, "\n\n".join(replies))


def redact_faults(store: Store, account: str, faults: Iterable[Fault]) -> Flow[None]:
    """Replace the error and reply of faults that may quote erased text."""
    for fault in faults:
        yield from call(store.clear_faults, account, [fault.id])
        yield from call(store.record_fault, account, fault.consumer, fault.seq, REDACTED_ERROR)


def _record_failure(
    store: Store,
    account: str,
    consumer: Consumer[Payload, Result],
    job: Job[Payload],
    failure: Failure,
) -> Flow[int]:
    """Record a job's failure as a fault and return how often the job has failed."""
    seqs: Sequence[int] = job.seqs
    if not seqs and consumer.find_fault_seq is not None:
        seq = yield from consumer.find_fault_seq(job.payload)
        seqs = () if seq is None else (seq,)
    if not seqs:
        return 1
    raw = failure.raw_reply if consumer.keeps_replies else ""
    yield from call(store.record_fault, account, consumer.name, seqs[0], str(failure), raw)
    faults = yield from load_faults(store, account, consumer.name, seqs)
    return max((fault.attempts for fault in faults), default=1)


def retry_faults(
    store: Store,
    account: str,
    consumer: Consumer[Payload, Result],
    fault_ids: Sequence[int],
    load_job: Callable[[int], Flow[Job[Payload] | None]],
    *,
    drain_first: bool = False,
) -> Flow[tuple[int, int]]:
    """Process the jobs of faults again; return how many faults are resolved and how many remain.

    `load_job` rebuilds the job at a position, or returns None if its entries no longer exist.
    With `drain_first`, drain the consumer, retry only jobs it has passed and count each failure.
    """
    selected = yield from select_faults(store, account, consumer.name, fault_ids)
    retried = selected
    if drain_first:
        yield from drain(store, account, consumer)
        cursor = yield from call(store.get_cursor, account, consumer.name)
        remaining = yield from select_faults(store, account, consumer.name, fault_ids)
        retried = [fault for fault in remaining if fault in selected and fault.seq <= cursor]
    for fault in retried:
        job = yield from load_job(fault.seq)
        if job is None:
            yield from call(store.clear_faults, account, [fault.id])
            continue
        outcome = yield from catch_failure(consumer.process(job.payload, None))
        if not (yield from _is_intact(consumer, job)):
            continue
        if not isinstance(outcome, Failure):
            yield from _complete_job(store, account, consumer, job, outcome)
        elif drain_first:
            yield from _record_failure(store, account, consumer, job, outcome)
    remaining_ids = {
        fault.id for fault in (yield from select_faults(store, account, consumer.name, fault_ids))
    }
    unresolved = sum(1 for fault in selected if fault.id in remaining_ids)
    return len(selected) - unresolved, unresolved


def run_stage(store: Store, account: str, name: str, flow: Flow[T]) -> Flow[T | Failure]:
    """Run a flow; if it fails, record a fault at the head of the ledger and return the failure."""
    outcome = yield from catch_failure(flow)
    if isinstance(outcome, Failure):
        head = yield from call(store.get_head, account)
        yield from call(store.record_fault, account, name, head.seq, str(outcome))
    return outcome
