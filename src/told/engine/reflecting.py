"""The verbs of the sleep path: what was recalled, what is to be thought over, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.errors import InvalidInput, NotFoundError
from told.core.fact import Fact
from told.core.policy import Action
from told.core.recall import Reason, Recalled, RecallState, Task
from told.core.text import shown
from told.engine.base import named, verb
from told.engine.minding import Minding
from told.flow import Flow, call
from told.read import plan
from told.read.guard import denials
from told.tend import apply as applying
from told.tend import reconsolidate
from told.tend.apply import Applied, Hand
from told.tend.delta import Clock, read
from told.tend.reconsolidate import Outcome
from told.write.change import held

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """A memory that is to be thought over, and why somebody is to look at it, if somebody is."""

    task: Task
    fact: Fact
    why: tuple[str, ...] = ()


class Reflecting(Minding):
    """What reads leave behind, and what is made of it while nobody asks."""

    __slots__ = ()

    @verb(Action.READ_CONTENT)
    def recalls(self, id: str, *, ids: Mapping[str, Any]) -> Flow[tuple[Sequence[Recalled], Sequence[RecallState]]]:
        """The recalls of a memory one by one, and how much it was in use from when until when."""
        fact = yield from self._visible(named(id), ids)
        yield from self.flush()
        noted = yield from call(self.store.recalls, self.account, fact.id)
        return noted, (yield from call(self.store.states, self.account, [fact.id]))

    @verb(Action.DERIVE_CLAIMS)
    def enqueue(self, id: str, *, reason: Any, priority: Any, ids: Mapping[str, Any]) -> Flow[int]:
        """Queue a memory to be thought over; how many tasks are new."""
        if not isinstance(reason, str) or reason not in list(Reason):
            raise InvalidInput(f"There is no reason {shown(reason)}.", hint=f"Use one of {', '.join(Reason)}.")
        if isinstance(priority, bool) or not isinstance(priority, int | float) or not 0 <= priority <= 1:
            raise InvalidInput(f"priority must be a number from 0 to 1, not {shown(priority)}.")
        fact = yield from self._visible(named(id), ids)
        task = Task(fact.id, Reason(reason), float(priority), self.store.mint.now())
        window = self.settings.reconsolidate_window * SECOND
        return (yield from call(self.store.enqueue, self.account, [task], window))

    @verb(Action.READ_CONTENT)
    def queue(self, *, limit: Any = None) -> Flow[Sequence[Waiting]]:
        """What is to be thought over, the most urgent first."""
        most = plan.size(limit, None, self.settings)
        yield from self.flush()
        tasks = yield from call(self.store.queue, self.account, most)
        links = yield from call(self.store.links, self.account, list({task.thread for task in tasks}))
        whys = reconsolidate.reasons(links)
        waiting: list[Waiting] = []
        for task in tasks:
            fact = yield from call(self.store.fact, self.account, task.thread)
            if fact is not None and not denials([fact], self.eye.guards):
                waiting.append(Waiting(task, fact, whys.get(fact.id, ())))
        return waiting

    @verb(Action.DERIVE_CLAIMS)
    def reflect(self, *, limit: Any = None) -> Flow[Outcome]:
        """Think over what is due, and hold what comes of it beside what it came from."""
        most = plan.size(limit, None, self.settings)
        yield from self.flush()
        return (yield from reconsolidate.reconsolidate(self.desk, self.account, most))

    @verb(Action.WRITE)
    def apply_delta(self, delta: Any, ids: Mapping[str, Any]) -> Flow[Applied]:
        """Do what a delta says, all of it or nothing."""
        clock = Clock(self.store.mint.now(), self.settings.zone or None)
        operations = read(delta, clock).whole()
        hand = Hand(self.caller.name, scope=self.within(ids))
        return (yield from applying.apply(self.desk, self.account, operations, hand))

    def _visible(self, thread: str, ids: Mapping[str, Any]) -> Flow[Fact]:
        """A memory that the caller may see."""
        fact = yield from held(self.store, self.account, thread, self.within(ids))
        if denials([fact], self.eye.guards):
            raise NotFoundError(f"There is no memory {thread!r} here.", hint="List them with get_all().")
        return fact
