"""What one account of the ram store keeps beside its ledger; like there, values are frozen and a copy is shallow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from told.core.query import AccessCount
from told.core.recall import AccessRecord, AccessState, ReviewTask, order_pair, urgency_key

T = TypeVar("T")


@dataclass(slots=True)
class InMemoryOverlayState:
    """Topics that met, recalls and what they made of each thread, open tasks, and the notes of consumers."""

    cooccurrences: dict[tuple[str, str], AccessCount] = field(default_factory=dict)
    accesses: dict[str, tuple[AccessRecord, ...]] = field(default_factory=dict)
    states: dict[str, tuple[AccessState, ...]] = field(default_factory=dict)
    tasks: dict[int, ReviewTask] = field(default_factory=dict)
    notes: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def copy(self) -> InMemoryOverlayState:
        """The same, free to be changed."""
        return InMemoryOverlayState(*(getattr(self, part.name).copy() for part in fields(self)))

    def record_cooccurrence(
        self, pairs: Mapping[tuple[str, str], AccessCount], known_threads: Collection[str]
    ) -> None:
        """Add to the counts of the pairs whose ends are both known."""
        for (first, second), count in pairs.items():
            if first != second and first in known_threads and second in known_threads:
                pair = order_pair(first, second)
                self.cooccurrences[pair] = (
                    count + self.cooccurrences[pair] if pair in self.cooccurrences else count
                )

    def record_accesses(
        self, accesses: Sequence[AccessRecord], keep: int, known_threads: Collection[str]
    ) -> None:
        """Note recalls of known threads, and what each made of its thread."""
        for access in accesses:
            thread = access.thread
            if thread in known_threads:
                history = sorted((*self.accesses.get(thread, ()), access), key=lambda past: past.at)
                self.accesses[thread] = _keep_newest(history, keep)
                self.states[thread] = _keep_newest(
                    _append_state(self.states.get(thread, ()), access), keep
                )

    def enqueue_tasks(
        self,
        tasks: Sequence[ReviewTask],
        window: int,
        known_threads: Collection[str],
        ids: Iterator[int],
    ) -> int:
        """Queue tasks of known threads, each new one under the next id; how many were new."""
        count_before = len(self.tasks)
        for task in tasks:
            if task.thread in known_threads:
                merged = self._find_mergeable_task(task, window) or replace(
                    task, id=next(ids), claimed=0, attempts=0
                )
                priority, due = max(merged.priority, task.priority), min(merged.due, task.due)
                self.tasks[merged.id] = replace(merged, priority=priority, due=due)
        return len(self.tasks) - count_before

    def _find_mergeable_task(self, task: ReviewTask, window: int) -> ReviewTask | None:
        """The first open task that a new one is one with: of one that is being worked on, only within the window."""
        candidates = [
            t for t in self.tasks.values() if (t.thread, t.reason) == (task.thread, task.reason)
        ]
        mergeable = [
            t
            for t in candidates
            if t.due <= task.due + window and (not t.claimed or t.due >= task.due - window)
        ]
        return min(mergeable, key=lambda t: (t.due, t.id), default=None)

    def claim_tasks(self, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Take what is due and free."""
        available = [
            t
            for t in self.tasks.values()
            if t.due <= now and (t.claimed == 0 or t.claimed < now - lease)
        ]
        claimed = [
            replace(t, claimed=now, attempts=t.attempts + 1)
            for t in sorted(available, key=urgency_key)[: max(limit, 0)]
        ]
        self.tasks.update((task.id, task) for task in claimed)
        return claimed

    def write_notes(self, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note some things and forget others."""
        for key, value in notes.items():
            if value is None:
                self.notes.pop((consumer, key), None)
            else:
                self.notes[consumer, key] = bytes(value)

    def drop_threads(self, threads: Collection[str]) -> None:
        """Leave nothing that belongs to any of these threads."""
        self.cooccurrences = {
            pair: count
            for pair, count in self.cooccurrences.items()
            if not set(pair) & set(threads)
        }
        self.accesses = {
            thread: history for thread, history in self.accesses.items() if thread not in threads
        }
        self.states = {
            thread: history for thread, history in self.states.items() if thread not in threads
        }
        self.tasks = {id_: task for id_, task in self.tasks.items() if task.thread not in threads}
        self.notes = {name: value for name, value in self.notes.items() if name[1] not in threads}


def _append_state(states: Sequence[AccessState], access: AccessRecord) -> Sequence[AccessState]:
    """The states of a thread after one more recall: the open one is closed where the new one begins."""
    if not states:
        return (AccessState.from_first_access(access.thread, access.at),)
    opened = states[-1].next_state(access.at)
    return (*states[:-1], replace(states[-1], until=opened.since), opened)


def _keep_newest(values: Sequence[T], keep: int) -> tuple[T, ...]:
    return tuple(values[-keep:]) if keep > 0 else ()
