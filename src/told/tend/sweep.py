"""The sweep: what has left the tail is weighed, what is cold is filed, and whoever works on that comes after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.tend import judge, registry, summarise, tail
from told.write.desk import Desk

CONSUMER = "sweep"

After = Callable[[Desk, Sequence[Scope]], Flow[Sequence[str]]]
"""What works on what was filed in some scopes, and gives back its warnings."""

AFTERWARDS: tuple[After, ...] = ()
"""What the sweep runs when everything is filed, in this order; each goes on from a cursor of its own."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did, by turns, and by exchanges for what was filed."""

    judged: int = 0
    returned: int = 0
    left: int = 0
    dropped: int = 0
    summarised: int = 0
    filed: int = 0
    warnings: tuple[str, ...] = ()

    def __add__(self, other: Swept) -> Swept:
        return Swept(
            self.judged + other.judged, self.returned + other.returned, self.left + other.left,
            self.dropped + other.dropped, self.summarised + other.summarised, self.filed + other.filed,
            tuple(dict.fromkeys((*self.warnings, *other.warnings))),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """What was done, as JSON."""
        names = ("judged", "returned", "left", "dropped", "summarised", "filed")
        return {**{name: getattr(self, name) for name in names}, "warnings": list(self.warnings)}


def covered(desk: Desk, account: str, scope: Scope | None) -> Flow[list[Scope]]:
    """The exact scopes that a scope covers, or all there are."""
    scopes = yield from call(desk.store.scopes, account)
    return [each for each in scopes if scope is None or scope.covers(each)]


def sweep(desk: Desk, account: str, scope: Scope | None = None, *, force: bool = False) -> Flow[Swept]:
    """Consolidate what a scope covers, or the whole account; what fails in one conversation stops no other."""
    scopes = yield from covered(desk, account, scope)
    judged = yield from judge.judge(desk, account)
    notes = () if judged.failure is None else (f"Not judged yet: {judged.failure}",)
    total = Swept(judged.turns, judged.returned, warnings=notes)
    for each in scopes:
        done = yield from attempt(_swept(desk, each, force=force))
        total += (yield from _unswept(desk, account, done)) if isinstance(done, Failure) else done
    for work in AFTERWARDS:
        told = yield from attempt(work(desk, scopes))
        if isinstance(told, Failure):
            total += yield from _unswept(desk, account, told)
        else:
            total += Swept(warnings=tuple(told))
    return total


def _swept(desk: Desk, scope: Scope, *, force: bool) -> Flow[Swept]:
    """One conversation: its tail first, then what can be filed."""
    left = yield from tail.leave(desk, scope, force=force)
    summarised, notes = yield from summarise.summarise(desk, scope)
    filed = yield from registry.file(desk, scope, force=force)
    filed += yield from registry.squeeze(desk, scope)
    return Swept(left=left.turns, dropped=left.dropped, summarised=summarised, filed=filed, warnings=notes)


def _unswept(desk: Desk, account: str, failure: Failure) -> Flow[Swept]:
    """Keep what went wrong as a fault at the end of the ledger as it stands, and say so."""
    head = yield from call(desk.store.head, account)
    yield from call(desk.store.fault, account, CONSUMER, head.seq, str(failure))
    return Swept(warnings=(f"Not consolidated: {failure}",))
