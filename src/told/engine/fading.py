"""The verbs about forgetting: how a memory fades, what is remembered and how well, and letting go of what has faded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.core.errors import InvalidInput, NotFoundError
from told.core.fact import Fact
from told.core.policy import Action
from told.core.query import AsOf, Find
from told.core.salience import Clock
from told.core.text import shown
from told.engine.base import named, verb
from told.engine.minding import Minding
from told.flow import Flow, call
from told.read import about as remembering
from told.read.about import Remembered
from told.read.fading import strengths
from told.read.guard import denials
from told.tend import forget as forgetting
from told.tend.forget import FORGOTTEN, Lost
from told.write import change


class Fading(Minding):
    """How memories fade, and how they are let go."""

    __slots__ = ()

    @verb(Action.READ_CONTENT)
    def decay(self, id: str, *, clock: Any = None, as_of: Any = None, ids: Mapping[str, Any]) -> Flow[Remembered]:
        """How a memory fades, by the clock of its kind or another."""
        at = yield from self.point(as_of)
        fact = yield from self._known(id, at, ids)
        kinds = self.eye.kinds
        kind = kinds.get(fact.kind)
        if kind is not None and clock is not None:
            kind = replace(kind, clock=_clock(clock))
            kinds = kinds.plus(kind)
        found = yield from strengths(replace(self.eye, kinds=kinds), [fact], Find(fact.scope, at), paced=True)
        return Remembered(fact, kind, found[fact.seq])

    @verb(Action.READ_CONTENT)
    def about(self, ids: Mapping[str, Any], *, as_of: Any = None) -> Flow[list[Remembered]]:
        """Everything a scope remembers, from which words, how well, and for how long."""
        scope = self.scope(ids)
        return (yield from remembering.remembered(self.eye, Find(scope, (yield from self.point(as_of)))))

    @verb(Action.WRITE)
    def forget(self, id: str | None, ids: Mapping[str, Any]) -> Flow[Sequence[Lost]]:
        """Give up one memory, or everything of a scope that has faded."""
        if id is None:
            return (yield from forgetting.forget_faded(self.eye, self.scope(ids)))
        now = yield from self.point()
        fact = yield from self._known(id, now, ids)
        [found] = (yield from strengths(self.eye, [fact], Find(fact.scope, now))).values()
        yield from change.retract(self.desk, self.account, fact.id, FORGOTTEN, self.within(ids))
        return [Lost(fact, found.weight)]

    def _known(self, id: str, at: AsOf, ids: Mapping[str, Any]) -> Flow[Fact]:
        """The memory of an id that a call may see."""
        fact = yield from call(self.store.fact, self.account, named(id), at)
        scope = self.within(ids)
        if fact is None or (scope and not scope.covers(fact.scope)) or denials([fact], self.eye.guards):
            raise NotFoundError(f"There is no memory {shown(id)} here.", hint="It may have been given up already.")
        return fact


def _clock(value: Any) -> Clock:
    if not isinstance(value, str) or value not in tuple(Clock):
        raise InvalidInput(f"There is no clock {shown(value)}.", hint=f"Clocks: {', '.join(Clock)}.")
    return Clock(value)
