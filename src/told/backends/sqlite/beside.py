"""What is kept beside the ledger, inside a transaction: what reads leave behind, and what consumers note."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from told.backends.sqlite.connect import run, run_many
from told.backends.sqlite.rows import json_list, span
from told.core.fact import NEVER
from told.core.query import Touch
from told.core.recall import Reason, Recalled, RecallState, Task, paired, urgency

TABLES = ("met", "recall", "recall_state", "task", "note")
THREADS = ("met_one", "met_other", "recall", "recall_state", "task", "note")
"""Every place a thread is named in."""


def meet(db: apsw.Connection, account: int, pairs: Mapping[tuple[str, str], Touch]) -> None:
    """Count that topics came up together."""
    known = _known(db, account, (topic for pair in pairs for topic in pair))
    for (one, other), touch in pairs.items():
        if one != other and {one, other} <= known:
            run(db, "meet", account, *paired(one, other), touch.count, touch.last)


def recalled(db: apsw.Connection, account: int, recalls: Sequence[Recalled], keep: int) -> None:
    """Note recalls and what each made of its thread, then let go of the oldest of both."""
    known = _known(db, account, (recall.thread for recall in recalls))
    noted = [recall for recall in recalls if recall.thread in known]
    said = ((account, r.thread, r.at, r.rank, r.score, r.query, r.access.value) for r in noted)
    run_many(db, "add_recall", said)
    moved = _moved(db, account, noted)
    # No thread has more rows than it was recalled times.
    full = [(account, thread, max(keep, 0)) for thread, states in moved.items() if states[-1].count > keep]
    run_many(db, "trim_recalls", full)
    run_many(db, "trim_recall_states", full)


def _moved(db: apsw.Connection, account: int, recalls: Sequence[Recalled]) -> Mapping[str, Sequence[RecallState]]:
    """Begin a new state of its thread with each recall, closing the open one there; the new states of each thread."""
    rows = run(db, "open_recall_states", account, json_list([*{recall.thread for recall in recalls}])).fetchall()
    last = {thread: RecallState(thread, *rest) for _, thread, *rest in rows}
    begun: dict[str, list[RecallState]] = {}
    for recall in recalls:
        before = last.get(recall.thread)
        after = RecallState.first(recall.thread, recall.at) if before is None else before.after(recall.at)
        last[recall.thread] = after
        begun.setdefault(recall.thread, []).append(after)
    run_many(db, "close_recall_state", ((begun[thread][0].since, id_) for id_, thread, *_ in rows))
    run_many(db, "add_recall_state", (
        (account, state.thread, state.since, until, state.count, state.strength)
        for states in begun.values()
        for state, until in zip(states, [*(after.since for after in states[1:]), NEVER], strict=True)
    ))  # fmt: skip
    return begun


def enqueue(db: apsw.Connection, account: int, tasks: Sequence[Task], window: int) -> int:
    """Queue tasks, each as one with the first that it can wait with; how many were new."""
    known, new = _known(db, account, (task.thread for task in tasks)), 0
    for task in tasks:
        if task.thread in known:
            whose = (account, task.thread, task.reason.value)
            alike = run(db, "task_alike", *whose, task.due - window, task.due + window).get
            if alike is None:
                run(db, "add_task", *whose, task.priority, task.due)
                new += 1
            else:
                run(db, "urge_task", task.priority, task.due, alike)
    return new


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


def _known(db: apsw.Connection, account: int, threads: Iterable[str]) -> frozenset[str]:
    """Those of some threads that have a version in the account."""
    rows = run(db, "known_threads", json_list(sorted(set(threads))), *span(account))
    return frozenset(thread for (thread,) in rows)
