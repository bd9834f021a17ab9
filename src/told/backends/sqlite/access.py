"""Write the access log, the review queue and consumer notes, inside a transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

import apsw

from told.backends.sqlite.connection import run_many, run_query
from told.backends.sqlite.rows import get_id_range, to_json_list
from told.model.fact import NEVER
from told.model.query import (
    AccessBatch,
    AccessCount,
    AccessRecord,
    AccessState,
    ReviewReason,
    ReviewTask,
    order_pair,
    urgency_key,
)

OVERLAY_TABLES = ("met", "recall", "recall_state", "task", "note")
THREAD_COLUMNS = ("met_one", "met_other", "recall", "recall_state", "task", "note")
"""Every table and column that names a thread."""

KnownThreads: TypeAlias = frozenset[str]
"""Threads that have a version in the account."""


def record_access(db: apsw.Connection, account: int, batch: AccessBatch) -> int:
    """Write an access batch; return how many of its tasks are new."""
    known_threads = _find_known_threads(
        db,
        account,
        {
            *batch.counts,
            *chain.from_iterable(batch.cooccurrences),
            *(record.thread for record in batch.records),
            *(task.thread for task in batch.tasks),
        },
    )
    _add_access_counts(db, account, batch.counts, known_threads)
    _record_cooccurrence(db, account, batch.cooccurrences, known_threads)
    new_tasks = _enqueue_known(db, account, batch.tasks, batch.window, known_threads)
    if batch.keep_per_thread:
        _record_access_log(db, account, batch.records, batch.keep_per_thread, known_threads)
    return new_tasks


def _add_access_counts(
    db: apsw.Connection,
    account: int,
    counts: Mapping[str, AccessCount],
    known_threads: KnownThreads,
) -> None:
    rows = [
        (account, thread, access.count, access.last)
        for thread, access in counts.items()
        if thread in known_threads
    ]
    run_many(db, "add_access", sorted(rows))


def _record_cooccurrence(
    db: apsw.Connection,
    account: int,
    pairs: Mapping[tuple[str, str], AccessCount],
    known_threads: KnownThreads,
) -> None:
    run_many(
        db,
        "meet",
        [
            (account, *order_pair(one, other), access.count, access.last)
            for (one, other), access in pairs.items()
            if one != other and one in known_threads and other in known_threads
        ],
    )


# Access log


def _record_access_log(
    db: apsw.Connection,
    account: int,
    records: Sequence[AccessRecord],
    keep: int,
    known_threads: KnownThreads,
) -> None:
    """Append access-log rows and states by thread, then drop the oldest of both."""
    known_records = sorted(
        [record for record in records if record.thread in known_threads], key=attrgetter("thread")
    )
    run_many(
        db,
        "add_recall",
        [(account, r.thread, r.at, r.rank, r.score, r.query, r.access) for r in known_records],
    )
    states = _advance_states(db, account, known_records)
    # A thread has at most one row per access.
    overflowing = to_json_list([state.thread for state in states if state.count > keep])
    run_query(db, "trim_recalls", account, overflowing, keep)
    run_query(db, "trim_recall_states", account, overflowing, keep)


def _advance_states(
    db: apsw.Connection, account: int, records: Sequence[AccessRecord]
) -> Collection[AccessState]:
    """Open a new state per access, closing the previous one; return the last of each thread."""
    rows = run_query(
        db,
        "open_recall_states",
        account,
        to_json_list(list(dict.fromkeys(r.thread for r in records))),
    ).fetchall()
    latest = {thread: AccessState(thread, *rest) for _, thread, *rest in rows}
    open_ids = {thread: id_ for id_, thread, *_ in rows}
    new_states = list[AccessState]()
    closed = list[tuple[int, int]]()
    for record in records:
        thread, previous = record.thread, latest.get(record.thread)
        next_state = (
            AccessState.from_first_access(thread, record.at)
            if previous is None
            else previous.next_state(record.at)
        )
        if thread in open_ids:
            closed.append((next_state.since, open_ids.pop(thread)))
        latest[thread] = next_state
        new_states.append(next_state)
    run_many(db, "close_recall_state", closed)
    run_many(
        db,
        "add_recall_state",
        [
            (
                account,
                state.thread,
                state.since,
                NEVER if state is latest[state.thread] else next_state.since,
                state.count,
                state.strength,
            )
            for state, next_state in zip(
                new_states, [*new_states[1:], *new_states[:1]], strict=True
            )
        ],
    )
    return latest.values()


# Review queue


@dataclass(slots=True)
class _QueuedTask:
    """A queued task, or a new one without an id yet."""

    priority: float
    due: int
    id: int = NEVER
    claimed: int = 0


def _enqueue_known(
    db: apsw.Connection,
    account: int,
    tasks: Sequence[ReviewTask],
    window: int,
    known_threads: KnownThreads,
) -> int:
    """Queue tasks of known threads; skip writes that change nothing."""
    known_tasks = [task for task in tasks if task.thread in known_threads]
    queues: dict[tuple[str, str], list[_QueuedTask]] = {}
    for thread, reason, *rest in run_query(
        db, "open_tasks", account, to_json_list(sorted({t.thread for t in known_tasks}))
    ):
        queues.setdefault((thread, reason), []).append(_QueuedTask(*rest))
    new, updated = list[tuple[ReviewTask, _QueuedTask]](), dict[int, _QueuedTask]()
    for task in known_tasks:
        queue = queues.setdefault((task.thread, task.reason), [])
        mergeable = _find_mergeable(queue, task.due, window)
        if mergeable is None:
            queue.append(_QueuedTask(task.priority, task.due))
            new.append((task, queue[-1]))
        elif task.priority > mergeable.priority or task.due < mergeable.due:
            mergeable.priority = max(mergeable.priority, task.priority)
            mergeable.due = min(mergeable.due, task.due)
            updated[mergeable.id] = mergeable
    updated.pop(NEVER, None)
    run_many(
        db,
        "add_task",
        [(account, t.thread, t.reason, queued.priority, queued.due) for t, queued in new],
    )
    run_many(
        db, "urge_task", [(queued.priority, queued.due, queued.id) for queued in updated.values()]
    )
    return len(new)


def _find_mergeable(queue: Sequence[_QueuedTask], due: int, window: int) -> _QueuedTask | None:
    """Return the open task that a new one merges with; a leased task only within the window."""
    mergeable = [
        t for t in queue if t.due <= due + window and (not t.claimed or t.due >= due - window)
    ]
    return min(mergeable, key=attrgetter("due", "id")) if mergeable else None


def claim_tasks(
    db: apsw.Connection, account: int, now: int, limit: int, lease: int
) -> list[ReviewTask]:
    """Lease tasks that are due and free."""
    rows = run_query(db, "claim_tasks", account, now, now - lease, max(limit, 0)).fetchall()
    return sorted(map(parse_task, rows), key=urgency_key)


def complete_tasks(db: apsw.Connection, account: int, task_ids: Sequence[int]) -> int:
    """Delete tasks and return how many there were."""
    run_query(db, "drop_tasks", account, to_json_list(task_ids))
    return db.changes()


def write_notes(
    db: apsw.Connection, account: int, consumer: str, notes: Mapping[str, bytes | None]
) -> None:
    """Write consumer notes; None deletes a key."""
    kept = [(account, consumer, key, value) for key, value in notes.items() if value is not None]
    dropped = [(account, consumer, key) for key, value in notes.items() if value is None]
    for query, rows in (("put_note", kept), ("drop_note", dropped)):
        if rows:
            run_many(db, query, rows)


def forget_threads(db: apsw.Connection, account: int, threads: Sequence[str]) -> None:
    """Delete every overlay row of these threads."""
    threads_json = to_json_list(threads)
    for column in THREAD_COLUMNS:
        run_query(db, f"forget_{column}", account, threads_json)


def wipe_overlay(db: apsw.Connection, account: int) -> None:
    """Delete every overlay row of an account."""
    for table in OVERLAY_TABLES:
        run_query(db, f"drop_account_{table}", account)


def parse_task(row: tuple[Any, ...]) -> ReviewTask:
    """Build a task from its row."""
    thread, reason, *rest = row
    return ReviewTask(thread, ReviewReason(reason), *rest)


def _find_known_threads(
    db: apsw.Connection, account: int, threads: Collection[str]
) -> KnownThreads:
    """Return the threads that have a version in the account."""
    rows = run_query(db, "known_threads", to_json_list(sorted(threads)), *get_id_range(account))
    return frozenset(thread for (thread,) in rows)
