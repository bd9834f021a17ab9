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
from told.ledger.commit import retry_on_conflict
from told.ports import CursorStep, Guard, Store, ThreadAt
from told.tend.worth import load_importance
from told.write.desk import WriteContext, WritePlan, commit_plan

STAGE = "tail"
UNIMPORTANT = "unimportant"
AUTHOR = "told"
DROPPABLE_KINDS = frozenset({"memory", TURN})
"""The kinds of turns that may be let go; who says of what kind something is wants it kept."""


@dataclass(frozen=True, slots=True)
class TailResult:
    """How many turns left the tail, and how many of them were not important enough to stay."""

    turns: int = 0
    dropped: int = 0

    def __add__(self, other: TailResult) -> TailResult:
        return TailResult(self.turns + other.turns, self.dropped + other.dropped)


def get_cursor_name(stage: str, scope: Scope) -> str:
    """The name of a stage's cursor for one scope; a store forgets it when nothing of the scope is left."""
    return f"{stage}:{scope.digest()}"


def find_tail_start(store: Store, scope: Scope, size: int) -> Flow[int]:
    """The ledger position at which the tail of a scope begins; what is before it has left."""
    newest = yield from call(store.list_turns, scope, limit=size, newest=True)
    return newest[0].said_seq if len(newest) >= size else 0


def process_tail(ctx: WriteContext, scope: Scope, *, force: bool = False) -> Flow[TailResult]:
    """Decide about every turn that has left the tail since it was last asked, or with force about the tail too."""
    store, account, name = ctx.store, scope.account, get_cursor_name(STAGE, scope)
    head = yield from call(store.get_head, account)
    end = (
        head.seq + 1
        if force
        else (yield from find_tail_start(store, scope, ctx.settings.tail_size))
    )
    total = TailResult()

    def decide() -> Flow[tuple[TailResult, Sequence[Fact]]]:
        before = yield from call(store.get_cursor, account, name)
        turns = yield from call(store.list_turns, scope, before, end, ctx.settings.consumer_batch)
        if not turns:
            return TailResult(), ()
        facts = [turn.fact for turn in turns]
        importance_by_id = yield from load_importance(store, account, facts)
        dropped = [
            fact
            for fact in facts
            if importance_by_id[fact.id] < ctx.settings.keep_importance
            and fact.kind in DROPPABLE_KINDS
        ]
        drafts = [Draft(Retracted(fact.id, UNIMPORTANT), scope, AUTHOR) for fact in dropped]
        guards: list[Guard] = [ThreadAt(fact.id, fact.seq) for fact in dropped]
        step = CursorStep(name, before, turns[-1].said_seq)
        yield from commit_plan(ctx, scope, WritePlan(drafts, guards, []), step=step)
        return TailResult(len(turns), len(dropped)), dropped

    while (outcome := (yield from retry_on_conflict(ctx.settings.conflict_retries, decide)))[
        0
    ].turns:
        total += outcome[0]
        restored = yield from restore_important(ctx, scope, outcome[1])
        total += TailResult(0, -restored)
    return total


def restore_important(ctx: WriteContext, scope: Scope, dropped: Sequence[Fact]) -> Flow[int]:
    """Bring back what turned out to be important while it was being let go; how many came back."""
    importance_by_id = yield from load_importance(ctx.store, scope.account, dropped)
    important = [
        turn.id for turn in dropped if importance_by_id[turn.id] >= ctx.settings.keep_importance
    ]
    return (yield from restore_turns(ctx, scope, important)) if important else 0


def restore_turns(ctx: WriteContext, scope: Scope, threads: Sequence[str]) -> Flow[int]:
    """Hold again what was let go as unimportant, and nothing else; how many there were."""

    def decide() -> Flow[int]:
        plan = WritePlan([], [], [])
        for thread in threads:
            draft = build_restore_draft(
                (yield from call(ctx.store.thread_entries, scope.account, thread))
            )
            if draft is not None:
                plan.drafts.append(draft)
                plan.guards.append(ThreadAt(thread, None))
        yield from commit_plan(ctx, scope, plan)
        return len(plan.drafts)

    return (yield from retry_on_conflict(ctx.settings.conflict_retries, decide))


def build_restore_draft(entries: Sequence[Entry]) -> Draft | None:
    """The draft that holds a thread again, if being unimportant is why it is not held."""
    history = [entry for entry in entries if isinstance(entry.verb, Asserted | Retracted)]
    last = history[-1].verb if history else None
    assertions = [entry for entry in history if isinstance(entry.verb, Asserted)]
    if not assertions or not isinstance(last, Retracted) or last.why != UNIMPORTANT:
        return None
    latest, first = assertions[-1].draft, assertions[0]
    assert latest is not None
    assert isinstance(latest.verb, Asserted)
    assert isinstance(first.verb, Asserted)
    since = first.at if first.verb.since is None else first.verb.since
    return Draft(
        Asserted(latest.verb.thread, latest.verb.claim, since), latest.scope, latest.author
    )
