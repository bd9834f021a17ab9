"""The sweep: what has left the tail is weighed, what is cold is filed, and whoever works on that comes after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.tend import judge, registry, summarise, tail
from told.write.desk import Desk

CONSUMER = "sweep"
COUNTS = ("judged", "returned", "left", "dropped", "summarised", "filed", "topics", "forgotten")


@dataclass(frozen=True, slots=True)
class Swept:
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

    def __add__(self, other: Swept) -> Swept:
        sums = {name: getattr(self, name) + getattr(other, name) for name in (*COUNTS, "failed")}
        return Swept(**sums, warnings=tuple(dict.fromkeys((*self.warnings, *other.warnings))))

    def as_dict(self) -> dict[str, Any]:
        """What was done, as JSON."""
        return {**{name: getattr(self, name) for name in COUNTS}, "warnings": list(self.warnings)}


After = Callable[[Sequence[Scope]], Flow[Swept]]
"""What works on what was filed in some scopes, going on from a cursor of its own."""


def covered(desk: Desk, account: str, scope: Scope | None) -> Flow[list[Scope]]:
    """The exact scopes that a scope covers, or all there are."""
    scopes = yield from call(desk.store.scopes, account)
    return [each for each in scopes if scope is None or scope.covers(each)]


def widest(scopes: Sequence[Scope]) -> list[Scope]:
    """Those of these scopes that no other one of them covers."""
    known = frozenset(scopes)
    return [scope for scope in scopes if known.isdisjoint(_wider(scope))]


def _wider(scope: Scope) -> list[Scope]:
    """Every scope that covers another one and is not the same."""
    ids = product(*({None, id_} for id_ in (scope.user_id, scope.agent_id, scope.run_id)))
    return [wider for each in ids if (wider := Scope(scope.account, *each)) != scope]


def sweep(
    desk: Desk, account: str, scope: Scope | None = None, *, force: bool = False, afterwards: Sequence[After] = ()
) -> Flow[Swept]:
    """Consolidate what a scope covers, or the whole account; what fails in one conversation stops no other.

    When the whole account went well, what failed in earlier sweeps is mended.
    """
    known = [fault for fault in (yield from call(desk.store.faults, account)) if fault.consumer == CONSUMER]
    scopes = yield from covered(desk, account, scope)
    judged = yield from judge.judge(desk, account, None if scope is None else scopes)
    notes = () if judged.failure is None else (f"Not judged yet: {judged.failure}",)
    total = Swept(judged.turns, judged.returned, warnings=notes)
    for each in scopes:
        total += yield from _kept(desk, account, _swept(desk, each, force=force))
    for work in afterwards:
        total += yield from _kept(desk, account, work(scopes))
    if known and scope is None and not total.failed:
        yield from call(desk.store.settle, account, [fault.id for fault in known])
    return total


def _swept(desk: Desk, scope: Scope, *, force: bool) -> Flow[Swept]:
    """One conversation: its tail first, then what can be filed."""
    left = yield from tail.leave(desk, scope, force=force)
    summarised, notes = yield from summarise.summarise(desk, scope)
    filed = yield from registry.file(desk, scope, force=force)
    filed += yield from registry.squeeze(desk, scope)
    return Swept(left=left.turns, dropped=left.dropped, summarised=summarised, filed=filed, warnings=notes)


def _kept(desk: Desk, account: str, work: Flow[Swept]) -> Flow[Swept]:
    """Do a part of the sweep; if it fails, keep that as a fault at the end of the ledger as it stands, and say so."""
    done = yield from attempt(work)
    if not isinstance(done, Failure):
        return done
    head = yield from call(desk.store.head, account)
    yield from call(desk.store.fault, account, CONSUMER, head.seq, str(done))
    return Swept(failed=1, warnings=(f"Not consolidated: {done}",))
