"""The state of the tiers at a glance: tail, index, hot buffer, registry and topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from told.core.fact import NEVER, TOPIC, Fact
from told.core.scope import Scope
from told.core.topics import SUPER
from told.core.when import format_iso
from told.flow import Flow, call
from told.ports import StoredTurn
from told.tend import registry
from told.tend.silence import find_retracted_turns
from told.tend.sweep import load_covered_scopes
from told.tend.tail import find_tail_start
from told.tend.worth import load_importance
from told.write.desk import WriteContext


@dataclass(frozen=True, slots=True)
class ScoredTurn:
    """A turn and what it is worth."""

    turn: Fact
    importance: float

    def as_dict(self) -> dict[str, Any]:
        """The turn as JSON."""
        said_at = self.turn.created_at if self.turn.said_at is None else self.turn.said_at
        row = {"id": self.turn.id, "memory": self.turn.text, "role": self.turn.role}
        return {**row, "importance": self.importance, "at": format_iso(said_at)}


@dataclass(frozen=True, slots=True)
class TierState:
    """Where the turns of a scope are.

    `tail` is oldest first, `hot` what was recalled last, newest first; `index` counts the turns that have left the tail
    and are not filed, and those of them that are cold.
    """

    tail: tuple[ScoredTurn, ...]
    index: tuple[int, int]
    hot: tuple[Fact, ...]
    exchanges: int
    newest: int | None
    topics: int

    def as_dict(self) -> dict[str, Any]:
        """The state as JSON."""
        return {
            "tail": [turn.as_dict() for turn in self.tail],
            "index": {"count": self.index[0], "cold": self.index[1]},
            "hot": [{"id": fact.id, "memory": fact.text} for fact in self.hot],
            "registry": {
                "exchanges": self.exchanges,
                "newest": None if self.newest is None else format_iso(self.newest),
            },
            "topics": {"count": self.topics},
        }


def load_tier_state(ctx: WriteContext, scope: Scope, hot: Sequence[int]) -> Flow[TierState]:
    """Where everything is that a scope covers; `hot` are the positions it recalled last."""
    store, account, size = ctx.store, scope.account, ctx.settings.tail_size
    scopes = yield from load_covered_scopes(ctx, account, scope)
    stored_turns: list[StoredTurn] = []
    count = cold_count = exchanges = topics = 0
    for covered_scope in scopes:
        stored_turns += yield from call(store.list_turns, covered_scope, limit=size, newest=True)
        unfiled = yield from registry.count_unfiled(
            ctx, covered_scope, (yield from find_tail_start(store, covered_scope, size))
        )
        count, cold_count = count + unfiled[0], cold_count + unfiled[1]
        exchanges += yield from registry.count_exchanges(ctx, covered_scope)
        topic_facts = yield from call(
            store.current_facts, covered_scope, ctx.id_generator.now(), kinds=[TOPIC]
        )
        topics += sum(not topic.meta.get(SUPER) for topic in topic_facts)
    tail = [turn.fact for turn in sorted(stored_turns, key=lambda turn: turn.said_seq)[-size:]]
    importance_by_id = yield from load_importance(store, account, tail)
    newest_exchanges = (yield from registry.load_newest(ctx, scopes, 1)) if exchanges else []
    versions = yield from call(store.facts_by_seq, account, list(hot))
    hot_facts = [versions[seq] for seq in hot if seq in versions and versions[seq].until == NEVER]
    retracted = yield from find_retracted_turns(store, account, [*tail, *hot_facts])
    return TierState(
        tuple(
            ScoredTurn(turn, importance_by_id[turn.id]) for turn in tail if turn.id not in retracted
        ),
        (count, cold_count),
        tuple(fact for fact in hot_facts if fact.id not in retracted),
        exchanges,
        registry.get_said_at(newest_exchanges[0].turns[0]) if newest_exchanges else None,
        topics,
    )
