"""The state of the tiers at a glance: tail, index, hot buffer, registry and topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from told.core.fact import NEVER, TOPIC, Fact
from told.core.scope import Scope
from told.core.topics import SUPER
from told.core.when import iso
from told.flow import Flow, call
from told.ports import Turn
from told.tend import registry
from told.tend.silence import given_up
from told.tend.sweep import covered
from told.tend.tail import edge
from told.tend.worth import worths
from told.write.desk import Desk


@dataclass(frozen=True, slots=True)
class Weighed:
    """A turn and what it is worth."""

    turn: Fact
    importance: float

    def as_dict(self) -> dict[str, Any]:
        """The turn as JSON."""
        said = self.turn.created_at if self.turn.said_at is None else self.turn.said_at
        row = {"id": self.turn.id, "memory": self.turn.text, "role": self.turn.role}
        return {**row, "importance": self.importance, "at": iso(said)}


@dataclass(frozen=True, slots=True)
class State:
    """Where the turns of a scope are.

    `tail` is oldest first, `hot` what was recalled last, newest first; `index` counts the turns that have left the tail
    and are not filed, and those of them that are cold.
    """

    tail: tuple[Weighed, ...]
    index: tuple[int, int]
    hot: tuple[Fact, ...]
    exchanges: int
    newest: int | None
    topics: int

    def as_dict(self) -> dict[str, Any]:
        """The state as JSON."""
        return {
            "tail": [each.as_dict() for each in self.tail],
            "index": {"count": self.index[0], "cold": self.index[1]},
            "hot": [{"id": fact.id, "memory": fact.text} for fact in self.hot],
            "registry": {"exchanges": self.exchanges, "newest": None if self.newest is None else iso(self.newest)},
            "topics": {"count": self.topics},
        }  # fmt: skip


def state(desk: Desk, scope: Scope, hot: Sequence[int]) -> Flow[State]:
    """Where everything is that a scope covers; `hot` are the positions it recalled last."""
    store, account, size = desk.store, scope.account, desk.settings.tail_size
    scopes = yield from covered(desk, account, scope)
    said: list[Turn] = []
    count = chilled = exchanges = topics = 0
    for each in scopes:
        said += yield from call(store.turns, each, limit=size, newest=True)
        waiting = yield from registry.waiting(desk, each, (yield from edge(store, each, size)))
        count, chilled = count + waiting[0], chilled + waiting[1]
        exchanges += yield from registry.count(desk, each)
        held = yield from call(store.held, each, desk.mint.now(), kinds=[TOPIC])
        topics += sum(not topic.meta.get(SUPER) for topic in held)
    last = [turn.fact for turn in sorted(said, key=lambda turn: turn.place)[-size:]]
    worth = yield from worths(store, account, last)
    filed = (yield from registry.newest(desk, scopes, 1)) if exchanges else []
    versions = yield from call(store.versions, account, list(hot))
    warm = [versions[seq] for seq in hot if seq in versions and versions[seq].until == NEVER]
    silent = yield from given_up(store, account, [*last, *warm])
    return State(
        tuple(Weighed(turn, worth[turn.id]) for turn in last if turn.id not in silent), (count, chilled),
        tuple(fact for fact in warm if fact.id not in silent), exchanges,
        registry.when(filed[0].turns[0]) if filed else None, topics,
    )  # fmt: skip
