"""The consolidation sweep: judge, drop, summarise and file turns, then run the follow-up stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from told.flow import Flow, call
from told.ledger.consumer import Failure, run_stage, select_faults
from told.maintenance import importance, summaries, tail
from told.maintenance.tail import find_retracted_turns, find_tail_start, load_importance
from told.model.fact import NEVER, TOPIC, Fact
from told.model.scope import Scope
from told.model.topics import SUPER
from told.ports import StoredTurn
from told.text.dates import format_iso

if TYPE_CHECKING:
    from told.ingest.context import WriteContext

CONSUMER = "sweep"
COUNT_FIELDS = (
    "judged",
    "returned",
    "left",
    "dropped",
    "summarised",
    "filed",
    "topics",
    "forgotten",
)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The counts of a sweep.

    They count turns, except for `filed` and `topics` (exchanges) and `forgotten` (memories).
    """

    judged: int = 0
    returned: int = 0
    left: int = 0
    dropped: int = 0
    summarised: int = 0
    filed: int = 0
    topics: int = 0
    forgotten: int = 0
    failed: int = 0
    warnings: tuple[str, ...] = ()

    def __add__(self, other: SweepResult) -> SweepResult:
        sums = {
            name: getattr(self, name) + getattr(other, name) for name in (*COUNT_FIELDS, "failed")
        }
        return SweepResult(**sums, warnings=tuple(dict.fromkeys((*self.warnings, *other.warnings))))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and warnings as a JSON object."""
        return {
            **{name: getattr(self, name) for name in COUNT_FIELDS},
            "warnings": list(self.warnings),
        }


FollowUpStage = Callable[[Sequence[Scope]], Flow[SweepResult]]
"""A stage that runs after filing and follows its own cursor."""


def load_covered_scopes(ctx: WriteContext, account: str, scope: Scope | None) -> Flow[list[Scope]]:
    """Return the stored scopes that a scope covers, or all of them."""
    scopes = yield from call(ctx.store.list_scopes, account)
    return [candidate for candidate in scopes if scope is None or scope.covers(candidate)]


def select_widest_scopes(scopes: Sequence[Scope]) -> list[Scope]:
    """Return the scopes that no other one in the list covers."""
    known_scopes = frozenset(scopes)
    return [scope for scope in scopes if known_scopes.isdisjoint(_list_wider_scopes(scope))]


def _list_wider_scopes(scope: Scope) -> list[Scope]:
    """Return every scope that covers this one, except itself."""
    ids = product(*({None, id_} for id_ in (scope.user_id, scope.agent_id, scope.run_id)))
    return [wider for scope_ids in ids if (wider := Scope(scope.account, *scope_ids)) != scope]


def run_sweep(
    ctx: WriteContext,
    account: str,
    scope: Scope | None = None,
    *,
    force: bool = False,
    follow_ups: Sequence[FollowUpStage] = (),
) -> Flow[SweepResult]:
    """Consolidate the scopes that a scope covers, or the whole account.

    A failure in one scope does not stop the others. A full sweep without failures clears earlier
    faults.
    """
    earlier_faults = yield from select_faults(ctx.store, account, CONSUMER)
    scopes = yield from load_covered_scopes(ctx, account, scope)
    judge_result = yield from importance.judge_turns(
        ctx, account, None if scope is None else scopes
    )
    warnings = () if judge_result.failure is None else (f"Not judged yet: {judge_result.failure}",)
    total = SweepResult(judge_result.turns, judge_result.restored, warnings=warnings)
    for covered_scope in scopes:
        total += yield from _run_stage(ctx, account, _sweep_scope(ctx, covered_scope, force=force))
    for work in follow_ups:
        total += yield from _run_stage(ctx, account, work(scopes))
    if earlier_faults and scope is None and not total.failed:
        yield from call(ctx.store.clear_faults, account, [fault.id for fault in earlier_faults])
    return total


def _sweep_scope(ctx: WriteContext, scope: Scope, *, force: bool) -> Flow[SweepResult]:
    """Consolidate one scope."""
    tail_result = yield from tail.process_tail(ctx, scope, force=force)
    summarised, warnings = yield from summaries.summarise_turns(ctx, scope)
    filed = yield from summaries.file_exchanges(ctx, scope, force=force)
    filed += yield from summaries.enforce_index_cap(ctx, scope)
    return SweepResult(
        left=tail_result.turns,
        dropped=tail_result.dropped,
        summarised=summarised,
        filed=filed,
        warnings=warnings,
    )


def _run_stage(ctx: WriteContext, account: str, work: Flow[SweepResult]) -> Flow[SweepResult]:
    """Run one stage of the sweep; report a failure as a fault and a warning."""
    outcome = yield from run_stage(ctx.store, account, CONSUMER, work)
    if isinstance(outcome, Failure):
        return SweepResult(failed=1, warnings=(f"Not consolidated: {outcome}",))
    return outcome


@dataclass(frozen=True, slots=True)
class ScoredTurn:
    """A turn and its importance."""

    turn: Fact
    importance: float

    def as_dict(self) -> dict[str, Any]:
        """Return the turn as a JSON object."""
        said_at = self.turn.created_at if self.turn.said_at is None else self.turn.said_at
        row = {"id": self.turn.id, "memory": self.turn.text, "role": self.turn.role}
        return {**row, "importance": self.importance, "at": format_iso(said_at)}


@dataclass(frozen=True, slots=True)
class TierState:
    """The turns of a scope by tier.

    `tail` is oldest first. `hot` holds recently recalled facts, newest first. `index` counts the
    unfiled turns outside the tail, and the cold ones among them.
    """

    tail: tuple[ScoredTurn, ...]
    index: tuple[int, int]
    hot: tuple[Fact, ...]
    exchanges: int
    newest: int | None
    topics: int

    def as_dict(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
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
    """Return the tiers of everything a scope covers; `hot` are its recently recalled positions."""
    store, account, size = ctx.store, scope.account, ctx.settings.maintenance.tail_size
    scopes = yield from load_covered_scopes(ctx, account, scope)
    stored_turns: list[StoredTurn] = []
    count = cold_count = exchanges = topics = 0
    for covered_scope in scopes:
        stored_turns += yield from call(store.list_turns, covered_scope, limit=size, newest=True)
        unfiled = yield from summaries.count_unfiled(
            ctx, covered_scope, (yield from find_tail_start(store, covered_scope, size))
        )
        count, cold_count = count + unfiled[0], cold_count + unfiled[1]
        exchanges += yield from summaries.count_exchanges(ctx, covered_scope)
        topic_facts = yield from call(
            store.current_facts, covered_scope, ctx.id_generator.now(), kinds=[TOPIC]
        )
        topics += sum(not topic.meta.get(SUPER) for topic in topic_facts)
    tail = [turn.fact for turn in sorted(stored_turns, key=lambda turn: turn.said_seq)[-size:]]
    importance_by_id = yield from load_importance(store, account, tail)
    newest_exchanges = (yield from summaries.load_newest(ctx, scopes, 1)) if exchanges else []
    hot_versions = yield from call(store.find_versions, account, seqs=list(hot))
    versions = {fact.seq: fact for fact in hot_versions}
    hot_facts = [versions[seq] for seq in hot if seq in versions and versions[seq].until == NEVER]
    retracted = yield from find_retracted_turns(store, account, [*tail, *hot_facts])
    return TierState(
        tuple(
            ScoredTurn(turn, importance_by_id[turn.id]) for turn in tail if turn.id not in retracted
        ),
        (count, cold_count),
        tuple(fact for fact in hot_facts if fact.id not in retracted),
        exchanges,
        summaries.get_said_at(newest_exchanges[0].turns[0]) if newest_exchanges else None,
        topics,
    )
