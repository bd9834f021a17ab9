"""What is kept beside the ledger, inside a transaction: what reads leave behind, and what consumers note."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
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


def recalled(db: apsw.Connection, account: int, recalls: Sequence[Recalled], keep: int) -> None:
    """Note recalls and what each made of its thread, then let go of the oldest of both."""
    _note_recalls(db, account, recalls, max(keep, 0), _known(db, account, {recall.thread for recall in recalls}))


def _note_recalls(db: apsw.Connection, account: int, recalls: Sequence[Recalled], keep: int, known: Known) -> None:
    """Note recalls thread by thread, for so each page of a table is written to once; none that would go at once."""
    noted: dict[str, list[Recalled]] = {thread: [] for thread in sorted({r.thread for r in recalls} & known)}
    for recall in recalls:
        if recall.thread in known:
            noted[recall.thread].append(recall)
    run_many(db, "add_recall", [
        (account, r.thread, r.at, r.rank, r.score, r.query, r.access)
        for own in noted.values()
        for r in _newest(own, keep)
    ])  # fmt: skip
    moved = _moved(db, account, noted, keep)
    # No thread has more rows than it was recalled times.
    full = json_list([thread for thread, state in moved.items() if state.count > keep])
    run(db, "trim_recalls", account, full, keep)
    run(db, "trim_recall_states", account, full, keep)


def _newest(recalls: list[Recalled], keep: int) -> Sequence[Recalled]:
    """The newest recalls of a thread, in the order in which they were told."""
    if len(recalls) <= keep:
        return recalls
    newest = sorted(range(len(recalls)), key=lambda place: (recalls[place].at, place))[len(recalls) - keep :]
    return [recalls[place] for place in sorted(newest)]


def _moved(
    db: apsw.Connection, account: int, noted: Mapping[str, Sequence[Recalled]], keep: int
) -> Mapping[str, RecallState]:
    """Begin a new state of its thread with each recall, closing the open one there; the last state of each thread."""
    rows = run(db, "open_recall_states", account, json_list(list(noted))).fetchall()
    before = {thread: RecallState(thread, *rest) for _, thread, *rest in rows}
    begun = {thread: _states(before.get(thread), own) for thread, own in noted.items()}
    run_many(db, "close_recall_state", [(begun[thread][0].since, id_) for id_, thread, *_ in rows])
    run_many(db, "add_recall_state", [
        (account, thread, state.since, until, state.count, state.strength)
        for thread, states in begun.items()
        for state, until in _closed(states)[max(len(states) - keep, 0) :]
    ])  # fmt: skip
    return {thread: states[-1] for thread, states in begun.items()}


def _states(before: RecallState | None, recalls: Sequence[Recalled]) -> list[RecallState]:
    """The states that some recalls of a thread begin."""
    states: list[RecallState] = []
    for recall in recalls:
        before = RecallState.first(recall.thread, recall.at) if before is None else before.after(recall.at)
        states.append(before)
    return states


def _closed(states: Sequence[RecallState]) -> list[tuple[RecallState, int]]:
    """States, each with the instant at which the next one begins."""
    return list(zip(states, [*(after.since for after in states[1:]), NEVER], strict=True))


# What is to be thought over -------------------------------------------------------------------------------------------


def enqueue(db: apsw.Connection, account: int, tasks: Sequence[Task], window: int) -> int:
    """Queue tasks, each as one with the first that it can wait with; how many were new."""
    return _enqueue(db, account, tasks, window, _known(db, account, {task.thread for task in tasks}))


def _enqueue(db: apsw.Connection, account: int, tasks: Sequence[Task], window: int, known: Known) -> int:
    """Queue tasks of known threads; what is as urgent and due already is not written again."""
    wanted = [task for task in tasks if task.thread in known]
    queues: dict[tuple[str, Reason], dict[int, Task]] = {}
    for row in run(db, "open_tasks", account, json_list(sorted({task.thread for task in wanted}))).fetchall():
        task = task_of(row)
        queues.setdefault((task.thread, task.reason), {})[task.id] = task
    new, moved, ids = dict[int, Task](), dict[int, Task](), count(NEVER)
    for task in wanted:
        queue = queues.setdefault((task.thread, task.reason), {})
        alike = _alike(queue.values(), task, window)
        if alike is None:
            place = next(ids)
            new[place] = queue[place] = replace(task, id=place, claimed=0)
        elif task.priority > alike.priority or task.due < alike.due:
            priority, due = max(alike.priority, task.priority), min(alike.due, task.due)
            queue[alike.id] = replace(alike, priority=priority, due=due)
            (new if alike.id in new else moved)[alike.id] = queue[alike.id]
    run_many(db, "add_task", [(account, t.thread, t.reason, t.priority, t.due) for t in new.values()])
    run_many(db, "urge_task", [(t.priority, t.due, t.id) for t in moved.values()])
    return len(new)


def _alike(queue: Collection[Task], task: Task, window: int) -> Task | None:
    """The first open task that a new one is one with: of one that is being worked on, only within the window."""
    near = [t for t in queue if t.due <= task.due + window and (not t.claimed or t.due >= task.due - window)]
    return min(near, key=lambda t: (t.due, t.id)) if len(near) > 1 else near[0] if near else None


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
