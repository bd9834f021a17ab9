"""What one account of the ram store keeps beside its ledger; like there, values are frozen and a copy is shallow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from told.core.query import Touch
from told.core.recall import Recalled, RecallState, Task, paired, urgency

T = TypeVar("T")


@dataclass(slots=True)
class Beside:
    """Topics that met, recalls and what they made of each thread, open tasks, and the notes of consumers."""

    met: dict[tuple[str, str], Touch] = field(default_factory=dict)
    recalls: dict[str, tuple[Recalled, ...]] = field(default_factory=dict)
    states: dict[str, tuple[RecallState, ...]] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    notes: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def copy(self) -> Beside:
        """The same, free to be changed."""
        return Beside(*(getattr(self, part.name).copy() for part in fields(self)))

    def meet(self, pairs: Mapping[tuple[str, str], Touch], known: Collection[str]) -> None:
        """Add to the counts of the pairs whose ends are both known."""
        for (one, other), touch in pairs.items():
            if one != other and one in known and other in known:
                pair = paired(one, other)
                self.met[pair] = touch + self.met[pair] if pair in self.met else touch

    def recalled(self, recalls: Sequence[Recalled], keep: int, known: Collection[str]) -> None:
        """Note recalls of known threads, and what each made of its thread."""
        for recall in recalls:
            thread = recall.thread
            if thread in known:
                noted = sorted((*self.recalls.get(thread, ()), recall), key=lambda each: each.at)
                self.recalls[thread] = _last(noted, keep)
                self.states[thread] = _last(_moved(self.states.get(thread, ()), recall), keep)

    def enqueue(self, tasks: Sequence[Task], window: int, known: Collection[str], ids: Iterator[int]) -> int:
        """Queue tasks of known threads, each new one under the next id; how many were new."""
        before = len(self.tasks)
        for task in tasks:
            if task.thread in known:
                alike = self._alike(task, window) or replace(task, id=next(ids), claimed=0, attempts=0)
                urgent, due = max(alike.priority, task.priority), min(alike.due, task.due)
                self.tasks[alike.id] = replace(alike, priority=urgent, due=due)
        return len(self.tasks) - before

    def _alike(self, task: Task, window: int) -> Task | None:
        """The first open task that a new one is one with: of one that is being worked on, only within the window."""
        same = [t for t in self.tasks.values() if (t.thread, t.reason) == (task.thread, task.reason)]
        near = [t for t in same if t.due <= task.due + window and (not t.claimed or t.due >= task.due - window)]
        return min(near, key=lambda t: (t.due, t.id), default=None)

    def claim(self, now: int, limit: int, lease: int) -> Sequence[Task]:
        """Take what is due and free."""
        free = [t for t in self.tasks.values() if t.due <= now and (t.claimed == 0 or t.claimed < now - lease)]
        taken = [replace(t, claimed=now, attempts=t.attempts + 1) for t in sorted(free, key=urgency)[: max(limit, 0)]]
        self.tasks.update((task.id, task) for task in taken)
        return taken

    def note(self, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note some things and forget others."""
        for key, value in notes.items():
            if value is None:
                self.notes.pop((consumer, key), None)
            else:
                self.notes[consumer, key] = bytes(value)

    def forget(self, threads: Collection[str]) -> None:
        """Leave nothing that belongs to any of these threads."""
        self.met = {pair: touch for pair, touch in self.met.items() if not set(pair) & set(threads)}
        self.recalls = {thread: noted for thread, noted in self.recalls.items() if thread not in threads}
        self.states = {thread: noted for thread, noted in self.states.items() if thread not in threads}
        self.tasks = {id_: task for id_, task in self.tasks.items() if task.thread not in threads}
        self.notes = {name: value for name, value in self.notes.items() if name[1] not in threads}


def _moved(states: Sequence[RecallState], recall: Recalled) -> Sequence[RecallState]:
    """The states of a thread after one more recall: the open one is closed where the new one begins."""
    if not states:
        return (RecallState.first(recall.thread, recall.at),)
    after = states[-1].after(recall.at)
    return (*states[:-1], replace(states[-1], until=after.since), after)


def _last(values: Sequence[T], keep: int) -> tuple[T, ...]:
    return tuple(values[-keep:]) if keep > 0 else ()
