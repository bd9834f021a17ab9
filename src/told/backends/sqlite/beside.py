"""What is kept beside the ledger, inside a transaction: what reads leave behind, and what consumers note."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

import apsw

from told.backends.sqlite.connect import run, run_many
from told.backends.sqlite.rows import json_list, span
from told.core.fact import NEVER
from told.core.query import Touch
from told.core.recall import Left, Reason, Recalled, RecallState, Task, paired, urgency

TABLES = ("met", "recall", "recall_state", "task", "note")
THREADS = ("met_one", "met_other", "recall", "recall_state", "task", "note")
"""Every place a thread is named in."""

Known: TypeAlias = frozenset[str]
"""Those of some threads that have a version in the account."""


def write_down(db: apsw.Connection, account: int, left: Left) -> None:
    """Count recalls and topics that met, note recalls and queue tasks."""
    known = _known(db, account, {
        *left.counts, *chain.from_iterable(left.met),
        *(recall.thread for recall in left.recalls), *(task.thread for task in left.tasks),
    })  # fmt: skip
    _count(db, account, left.counts, known)
    _meet(db, account, left.met, known)
    _enqueue(db, account, left.tasks, left.window, known)
    if left.keep:
        _note_recalls(db, account, left.recalls, left.keep, known)


def _count(db: apsw.Connection, account: int, counts: Mapping[str, Touch], known: Known) -> None:
    rows = [(account, thread, touch.count, touch.last) for thread, touch in counts.items() if thread in known]
    run_many(db, "add_access", sorted(rows))


def _meet(db: apsw.Connection, account: int, pairs: Mapping[tuple[str, str], Touch], known: Known) -> None:
    run_many(db, "meet", [
        (account, *paired(one, other), touch.count, touch.last)
        for (one, other), touch in pairs.items()
        if one != other and one in known and other in known
    ])  # fmt: skip


# Recalls one by one ---------------------------------------------------------------------------------------------------


def _note_recalls(db: apsw.Connection, account: int, recalls: Sequence[Recalled], keep: int, known: Known) -> None:
    """Note recalls and what each made of its thread, then let go of the oldest of both; by thread, a page at a time."""
    noted = sorted([recall for recall in recalls if recall.thread in known], key=attrgetter("thread"))
    run_many(db, "add_recall", [(account, r.thread, r.at, r.rank, r.score, r.query, r.access) for r in noted])
    last = _moved(db, account, noted)
    # No thread has more rows than it was recalled times.
    full = json_list([state.thread for state in last if state.count > keep])
    run(db, "trim_recalls", account, full, keep)
    run(db, "trim_recall_states", account, full, keep)


def _moved(db: apsw.Connection, account: int, noted: Sequence[Recalled]) -> Collection[RecallState]:
    """Begin a new state of its thread with each recall, closing the open one there; the last state of each thread."""
    rows = run(db, "open_recall_states", account, json_list(list(dict.fromkeys(r.thread for r in noted)))).fetchall()
    last = {thread: RecallState(thread, *rest) for _, thread, *rest in rows}
    opened, begun, closing = {thread: id_ for id_, thread, *_ in rows}, list[RecallState](), list[tuple[int, int]]()
    for recall in noted:
        thread, before = recall.thread, last.get(recall.thread)
        after = RecallState.first(thread, recall.at) if before is None else before.after(recall.at)
        if thread in opened:
            closing.append((after.since, opened.pop(thread)))
        last[thread] = after
        begun.append(after)
    run_many(db, "close_recall_state", closing)
    run_many(db, "add_recall_state", [
        (account, one.thread, one.since, NEVER if one is last[one.thread] else after.since, one.count, one.strength)
        for one, after in zip(begun, [*begun[1:], *begun[:1]], strict=True)
    ])  # fmt: skip
    return last.values()


# What is to be thought over -------------------------------------------------------------------------------------------


def enqueue(db: apsw.Connection, account: int, tasks: Sequence[Task], window: int) -> int:
    """Queue tasks, each as one with the first that it can wait with; how many were new."""
    return _enqueue(db, account, tasks, window, _known(db, account, {task.thread for task in tasks}))


@dataclass(slots=True)
class _Waiting:
    """A task in the queue, or one that is about to be and has no id yet."""

    priority: float
    due: int
    id: int = NEVER
    claimed: int = 0


def _enqueue(db: apsw.Connection, account: int, tasks: Sequence[Task], window: int, known: Known) -> int:
    """Queue tasks of known threads; what is as urgent and due already is not written again."""
    wanted = [task for task in tasks if task.thread in known]
    queues: dict[tuple[str, str], list[_Waiting]] = {}
    for thread, reason, *rest in run(db, "open_tasks", account, json_list(sorted({t.thread for t in wanted}))):
        queues.setdefault((thread, reason), []).append(_Waiting(*rest))
    new, moved = list[tuple[Task, _Waiting]](), dict[int, _Waiting]()
    for task in wanted:
        queue = queues.setdefault((task.thread, task.reason), [])
        alike = _alike(queue, task.due, window)
        if alike is None:
            queue.append(_Waiting(task.priority, task.due))
            new.append((task, queue[-1]))
        elif task.priority > alike.priority or task.due < alike.due:
            alike.priority, alike.due = max(alike.priority, task.priority), min(alike.due, task.due)
            moved[alike.id] = alike
    moved.pop(NEVER, None)
    run_many(db, "add_task", [(account, t.thread, t.reason, one.priority, one.due) for t, one in new])
    run_many(db, "urge_task", [(one.priority, one.due, one.id) for one in moved.values()])
    return len(new)


def _alike(queue: Sequence[_Waiting], due: int, window: int) -> _Waiting | None:
    """The first open task that a new one is one with: of one that is being worked on, only within the window."""
    near = [t for t in queue if t.due <= due + window and (not t.claimed or t.due >= due - window)]
    return min(near, key=attrgetter("due", "id")) if near else None


def claim(db: apsw.Connection, account: int, now: int, limit: int, lease: int) -> list[Task]:
    """Take tasks that are due and free."""
    rows = run(db, "claim_tasks", account, now, now - lease, max(limit, 0)).fetchall()
    return sorted(map(task_of, rows), key=urgency)


def done(db: apsw.Connection, account: int, tasks: Sequence[int]) -> int:
    """Close tasks; how many there were."""
    run(db, "drop_tasks", account, json_list(tasks))
    return db.changes()


def note(db: apsw.Connection, account: int, consumer: str, notes: Mapping[str, bytes | None]) -> None:
    """Note some things and forget others."""
    kept = [(account, consumer, key, value) for key, value in notes.items() if value is not None]
    gone = [(account, consumer, key) for key, value in notes.items() if value is None]
    for query, rows in (("put_note", kept), ("drop_note", gone)):
        if rows:
            run_many(db, query, rows)


def forget(db: apsw.Connection, account: int, threads: Sequence[str]) -> None:
    """Leave nothing that belongs to any of these threads."""
    listed = json_list(threads)
    for place in THREADS:
        run(db, f"forget_{place}", account, listed)


def wipe(db: apsw.Connection, account: int) -> None:
    """Leave nothing at all."""
    for table in TABLES:
        run(db, f"drop_account_{table}", account)


def task_of(row: tuple[Any, ...]) -> Task:
    """A task from the task table."""
    thread, reason, *rest = row
    return Task(thread, Reason(reason), *rest)


def _known(db: apsw.Connection, account: int, threads: Collection[str]) -> Known:
    """Those of some threads that have a version in the account."""
    rows = run(db, "known_threads", json_list(sorted(threads)), *span(account))
    return frozenset(thread for (thread,) in rows)
