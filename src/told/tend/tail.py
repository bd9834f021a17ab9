"""The tail of a conversation: its newest turns, as the ledger has them, and what becomes of those that leave it.

A turn that leaves the tail stays in the index if it is important enough. Otherwise it is retracted: its evidence stays,
and a model that later finds it important brings it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from told.core.entry import Asserted, Draft, Entry, Retracted
from told.core.fact import TURN, Fact
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ports import Guard, Step, Store, ThreadAt
from told.tend.worth import worths
from told.write.desk import Desk, Plan, settle

STAGE = "tail"
UNIMPORTANT = "unimportant"
AUTHOR = "told"
PLAIN = frozenset({"memory", TURN})
"""The kinds of turns that may be let go; who says of what kind something is wants it kept."""


@dataclass(frozen=True, slots=True)
class Left:
    """How many turns left the tail, and how many of them were not important enough to stay."""

    turns: int = 0
    dropped: int = 0

    def __add__(self, other: Left) -> Left:
        return Left(self.turns + other.turns, self.dropped + other.dropped)


def consumer(stage: str, scope: Scope) -> str:
    """The name of a stage's cursor for one scope; a store forgets it when nothing of the scope is left."""
    return f"{stage}:{scope.mark()}"


def edge(store: Store, scope: Scope, size: int) -> Flow[int]:
    """The ledger position at which the tail of a scope begins; what is before it has left."""
    newest = yield from call(store.turns, scope, limit=size, newest=True)
    return newest[0].place if len(newest) >= size else 0


def leave(desk: Desk, scope: Scope, *, force: bool = False) -> Flow[Left]:
    """Decide about every turn that has left the tail since it was last asked, or with force about the tail too."""
    store, account, name = desk.store, scope.account, consumer(STAGE, scope)
    head = yield from call(store.head, account)
    end = head.seq + 1 if force else (yield from edge(store, scope, desk.settings.tail_size))
    total = Left()

    def decide() -> Flow[tuple[Left, Sequence[Fact]]]:
        before = yield from call(store.cursor, account, name)
        turns = yield from call(store.turns, scope, before, end, desk.settings.consumer_batch)
        if not turns:
            return Left(), ()
        facts = [turn.fact for turn in turns]
        worth = yield from worths(store, account, facts)
        gone = [fact for fact in facts if worth[fact.id] < desk.settings.keep_importance and fact.kind in PLAIN]
        drafts = [Draft(Retracted(fact.id, UNIMPORTANT), scope, AUTHOR) for fact in gone]
        guards: list[Guard] = [ThreadAt(fact.id, fact.seq) for fact in gone]
        step = Step(name, before, turns[-1].place)
        yield from settle(desk, scope, Plan(drafts, guards, []), step=step)
        return Left(len(turns), len(gone)), gone

    while (done := (yield from decided(desk.settings.conflict_retries, decide)))[0].turns:
        total += done[0]
        back = yield from recheck(desk, scope, done[1])
        total += Left(0, -back)
    return total


def recheck(desk: Desk, scope: Scope, gone: Sequence[Fact]) -> Flow[int]:
    """Bring back what turned out to be important while it was being let go; how many came back."""
    worth = yield from worths(desk.store, scope.account, gone)
    wanted = [turn.id for turn in gone if worth[turn.id] >= desk.settings.keep_importance]
    return (yield from bring_back(desk, scope, wanted)) if wanted else 0


def bring_back(desk: Desk, scope: Scope, threads: Sequence[str]) -> Flow[int]:
    """Hold again what was let go as unimportant, and nothing else; how many there were."""

    def decide() -> Flow[int]:
        plan = Plan([], [], [])
        for thread in threads:
            again = returned((yield from call(desk.store.thread, scope.account, thread)))
            if again is not None:
                plan.drafts.append(again)
                plan.guards.append(ThreadAt(thread, None))
        yield from settle(desk, scope, plan)
        return len(plan.drafts)

    return (yield from decided(desk.settings.conflict_retries, decide))


def returned(entries: Sequence[Entry]) -> Draft | None:
    """The draft that holds a thread again, if being unimportant is why it is not held."""
    life = [entry for entry in entries if isinstance(entry.verb, Asserted | Retracted)]
    last = life[-1].verb if life else None
    said = [entry for entry in life if isinstance(entry.verb, Asserted)]
    if not said or not isinstance(last, Retracted) or last.why != UNIMPORTANT:
        return None
    latest, began = said[-1].draft, said[0]
    assert latest is not None
    assert isinstance(latest.verb, Asserted)
    assert isinstance(began.verb, Asserted)
    since = began.at if began.verb.since is None else began.verb.since
    return Draft(Asserted(latest.verb.thread, latest.verb.claim, since), latest.scope, latest.author)
