"""A source that is no longer believed: what it said, and whatever was made of that, is held no more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from told.core.entry import Asserted, Draft, Entry, Retracted
from told.core.fact import Fact
from told.core.query import Event, Receipt
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.erase import DERIVED_FROM, Closure, of_source
from told.ports import Guard, ThreadAt
from told.write.desk import Desk, Plan, settle
from told.write.embed import catch_up

REVOKED: Final = "revoked"


def revoke(desk: Desk, account: str, source: str) -> Flow[Receipt]:
    """Give up everything that rests on a source; a memory that stood on its own before goes back to how it stood.

    Nothing is destroyed: what was believed stays readable as of then, and `erase` is for what must go.
    """

    def decide() -> Flow[Receipt]:
        found = yield from of_source(desk.store, account, source)
        plan = Plan([], [], [])
        fallen: dict[str, Fact] = {}
        for thread in found.threads:
            fact = yield from call(desk.store.fact, account, thread)
            if fact is not None and (yield from _rests(desk, fact, found.evidence.keys() | fallen.keys())):
                spoken = fact.evidence in found.evidence  # what was derived has no earlier state of its own
                entries = (yield from call(desk.store.thread, account, thread)) if spoken else ()
                _give_up(desk, plan, fact, _before(entries, found))
                fallen[thread] = fact
        if not fallen:
            return Receipt()
        return (yield from settle(desk, next(iter(fallen.values())).scope, plan))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from catch_up(desk.store, desk.embedder, account, receipt, desk.settings))


def _rests(desk: Desk, fact: Fact, fallen: Collection[str]) -> Flow[bool]:
    """Whether what a thread says now was taken from one of these, or derived from it."""
    if fact.evidence in fallen:
        return True
    links = yield from call(desk.store.links, fact.scope.account, [fact.id])
    return any(link.src == fact.id and link.rel == DERIVED_FROM and link.dst in fallen for link in links)


def _before(entries: Sequence[Entry], found: Closure) -> Asserted | None:
    """The last thing said on a thread that does not rest on the source, if it was held when the source spoke."""
    held: Asserted | None = None
    for entry in entries:
        match entry.verb:
            case Retracted():
                held = None
            case Asserted() as said if said.claim.evidence not in found.evidence:
                held = said
            case _:
                pass
    return held


def _give_up(desk: Desk, plan: Plan, fact: Fact, before: Asserted | None) -> None:
    guard: Guard = ThreadAt(fact.id, fact.seq)
    plan.guards.append(guard)
    plan.drafts.append(Draft(Retracted(fact.id, REVOKED), fact.scope, desk.author))
    plan.events.append(Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor))
    if before is not None:
        claim = before.claim
        plan.drafts.append(Draft(Asserted(fact.id, claim, fact.created_at), fact.scope, desk.author))
        plan.events.append(Event("ADD", fact.id, claim.text, None, claim.role, claim.actor))
