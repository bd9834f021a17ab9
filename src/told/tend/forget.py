"""Forgetting: what has faded is given up, a page at a time; the past keeps it, and what is permanent never goes.

A memory that is said again while this happens stays: each page is given up only if nothing was said of it since it was
weighed, and is weighed again otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from told.core.entry import Draft, Retracted
from told.core.fact import Fact
from told.core.query import LATEST, AsOf, Find, listed
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.commit import commit, decided
from told.ports import Batch, Still
from told.read.fading import faded, strengths
from told.read.gather import Eye, by_id
from told.read.guard import denials

CONSUMER: Final = "forgetting"
FADED, FORGOTTEN = "faded", "forgotten"
PAGE: Final = 1000
"""How many memories are weighed at a time."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A memory that was given up, and what it weighed last."""

    fact: Fact
    weight: float


def forget_faded(eye: Eye, scope: Scope) -> Flow[tuple[Lost, ...]]:
    """Give up everything of a scope that has faded by now, in pages of the scope as it is at the beginning."""
    head = yield from call(eye.store.head, scope.account)
    find = listed(Find(scope, AsOf(head.seq, eye.store.mint.now()), show_expired=True, limit=PAGE))
    lost: list[Lost] = []
    while facts := (yield from call(eye.store.facts, find)):
        denied = denials(facts, eye.guards)
        gone = yield from faded(eye, [fact for fact in facts if fact.seq not in denied], find)
        lost += yield from _given_up(eye, find, [fact.id for fact in facts if fact.seq in gone])
        find = replace(find, after=facts[-1].seq)
    return tuple(lost)


def _given_up(eye: Eye, find: Find, threads: Sequence[str]) -> Flow[Sequence[Lost]]:
    """Give up those threads that have faded still, all of them together."""
    latest = replace(find, as_of=AsOf(LATEST, find.as_of.at), limit=None, after=0)

    def decide() -> Flow[Sequence[Lost]]:
        seen = (yield from call(eye.store.head, find.scope.account)).seq
        facts = yield from by_id(eye, latest, threads)
        found = yield from strengths(eye, facts, latest)
        lost = [Lost(fact, found[fact.seq].weight) for fact in facts if found[fact.seq].faded]
        if lost:
            yield from commit(eye.store, _batch(find.scope.account, [each.fact for each in lost], seen))
        return lost

    return (yield from decided(eye.settings.conflict_retries, decide)) if threads else ()


def _batch(account: str, facts: Sequence[Fact], seen: int) -> Batch:
    drafts = [Draft(Retracted(fact.id, FADED), fact.scope, CONSUMER) for fact in facts]
    return Batch(account, drafts, [Still(fact.id, seen) for fact in facts], seen)
