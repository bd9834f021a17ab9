"""The sweep: what has left the tail is weighed, what is cold is filed, and whoever works on that comes after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.consume import Failure, catch_failure
from told.tend import judge, registry, summarise, tail
from told.write.desk import WriteContext

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
    """What a sweep did, by turns; by exchanges for what was filed and put into topics; by memories for what faded."""

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
        """What was done, as JSON."""
        return {
            **{name: getattr(self, name) for name in COUNT_FIELDS},
            "warnings": list(self.warnings),
        }


FollowUpStage = Callable[[Sequence[Scope]], Flow[SweepResult]]
"""What works on what was filed in some scopes, going on from a cursor of its own."""


def load_covered_scopes(ctx: WriteContext, account: str, scope: Scope | None) -> Flow[list[Scope]]:
    """The exact scopes that a scope covers, or all there are."""
    scopes = yield from call(ctx.store.list_scopes, account)
    return [candidate for candidate in scopes if scope is None or scope.covers(candidate)]


def select_widest_scopes(scopes: Sequence[Scope]) -> list[Scope]:
    """Those of these scopes that no other one of them covers."""
    known_scopes = frozenset(scopes)
    return [scope for scope in scopes if known_scopes.isdisjoint(_list_wider_scopes(scope))]


def _list_wider_scopes(scope: Scope) -> list[Scope]:
    """Every scope that covers another one and is not the same."""
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
    """Consolidate what a scope covers, or the whole account; what fails in one conversation stops no other.

    When the whole account went well, what failed in earlier sweeps is mended.
    """
    earlier_faults = [
        fault
        for fault in (yield from call(ctx.store.list_faults, account))
        if fault.consumer == CONSUMER
    ]
    scopes = yield from load_covered_scopes(ctx, account, scope)
    judge_result = yield from judge.judge_turns(ctx, account, None if scope is None else scopes)
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
    """One conversation: its tail first, then what can be filed."""
    tail_result = yield from tail.process_tail(ctx, scope, force=force)
    summarised, warnings = yield from summarise.summarise_turns(ctx, scope)
    filed = yield from registry.file_exchanges(ctx, scope, force=force)
    filed += yield from registry.enforce_index_cap(ctx, scope)
    return SweepResult(
        left=tail_result.turns,
        dropped=tail_result.dropped,
        summarised=summarised,
        filed=filed,
        warnings=warnings,
    )


def _run_stage(ctx: WriteContext, account: str, work: Flow[SweepResult]) -> Flow[SweepResult]:
    """Do a part of the sweep; if it fails, keep that as a fault at the end of the ledger as it stands, and say so."""
    outcome = yield from catch_failure(work)
    if not isinstance(outcome, Failure):
        return outcome
    head = yield from call(ctx.store.get_head, account)
    yield from call(ctx.store.record_fault, account, CONSUMER, head.seq, str(outcome))
    return SweepResult(failed=1, warnings=(f"Not consolidated: {outcome}",))
