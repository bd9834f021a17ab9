"""The verbs about the tiers: consolidate what is cold, and see where everything is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.core.policy import Action
from told.core.scope import Scope
from told.engine.base import verb
from told.engine.fading import Fading
from told.engine.topical import Topical
from told.flow import Flow
from told.read import plan
from told.read.guard import denials
from told.tend import judge, registry, state, sweep
from told.tend.judge import Judged
from told.tend.registry import Filed
from told.tend.state import State
from told.tend.sweep import After, Swept


class Tiering(Fading, Topical):
    """Tail, index, registry."""

    __slots__ = ()

    @verb(Action.WRITE)
    def consolidate(self, ids: Mapping[str, Any], *, force: Any = False) -> Flow[Swept]:
        """Weigh what has left the tail and file what is cold, in a scope or, with no id, in the whole account."""
        anyway = plan.flag(force, "force")
        return (yield from sweep.sweep(
            self.desk, self.account, self.within(ids), force=anyway, afterwards=self._afterwards()
        ))  # fmt: skip

    @verb(Action.DERIVE_CLAIMS)
    def judge(self, *, full: bool = False) -> Flow[Judged]:
        """Ask the model how important turns are, if that is asked for at all."""
        return (yield from judge.judge(self.desk, self.account, full=full))

    @verb(Action.READ_CONTENT)
    def tiers(self, ids: Mapping[str, Any]) -> Flow[State]:
        """Where the turns of a scope are."""
        scope, guards = self.scope(ids), self.eye.guards
        found = yield from state.state(self.desk, scope, self.overlay.hot(scope))
        hidden = denials([*(each.turn for each in found.tail), *found.hot], guards)
        tail = tuple(each for each in found.tail if each.turn.seq not in hidden)
        return replace(found, tail=tail, hot=tuple(fact for fact in found.hot if fact.seq not in hidden))

    @verb(Action.READ_CONTENT)
    def registry(self, ids: Mapping[str, Any], *, limit: Any = None) -> Flow[Sequence[Filed]]:
        """The exchanges of a scope that were said last."""
        scope, guards = self.scope(ids), self.eye.guards
        most = plan.size(limit, None, self.settings)
        scopes = yield from sweep.covered(self.desk, self.account, scope)
        found = yield from registry.newest(self.desk, scopes, most)
        return [each for each in found if not denials(each.turns, guards)]

    # What comes after filing ------------------------------------------------------------------------------------------

    def _afterwards(self) -> tuple[After, ...]:
        """What works on what was filed, in this order."""
        return self._into_topics, self._let_fade

    def _into_topics(self, _: Sequence[Scope]) -> Flow[Swept]:
        """Put what was filed into topics."""
        done = yield from self.file_topics()
        return Swept(topics=done.exchanges, warnings=tuple(done.warnings))

    def _let_fade(self, scopes: Sequence[Scope]) -> Flow[Swept]:
        """Give up what has faded."""
        lost = 0
        for scope in sweep.widest(scopes):
            lost += len((yield from self.forget(None, scope.ids())))
        return Swept(forgotten=lost)
