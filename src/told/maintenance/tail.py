"""The tail of a conversation: its newest turns, and what happens when a turn leaves it.

An important turn stays in the index. Any other turn is retracted; its evidence is kept, and a later
judgement by a model can restore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import Consumer, Job, JobBatch, drain, get_cursor_name
from told.model.entry import Asserted, Draft, Entry, Retracted
from told.model.fact import TURN, Fact
from told.model.query import LATEST, AsOf
from told.model.scope import Scope
from told.ports import CursorStep, Guard, Store, ThreadAt
from told.retrieval.grouping import group_by_evidence
from told.text.importance import INFORMATIVE_SCORE, score_importance, stated_importance

AS_OF_LATEST = AsOf(LATEST, 0)


def find_retracted_turns(store: Store, account: str, turns: Iterable[Fact]) -> Flow[frozenset[str]]:
    """Return the threads of turns whose derived facts were all retracted."""
    evidence = {turn.evidence for turn in turns if turn.kind == TURN and turn.evidence is not None}
    return (
        select_retracted_threads(
            (yield from call(store.find_versions, account, evidence=sorted(evidence)))
        )
        if evidence
        else frozenset()
    )


def select_retracted_threads(versions: Iterable[Fact]) -> frozenset[str]:
    """Select the fully retracted turns from all versions of the facts of some evidence."""
    groups = group_by_evidence(versions, AS_OF_LATEST, {}).values()
    return frozenset(
        group.turn.id for group in groups if group.turn is not None and group.is_fully_retracted
    )


IMPORTANCE = "importance"
"""The relation from evidence to the thread of its turn; its weight is the judged importance."""


def load_importance(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, float]]:
    """Return the importance of turns by thread; a turn with a claim is at least informative."""
    judgements = yield from load_judgements(store, account, [turn.id for turn in turns])
    unjudged = [
        turn for turn in turns if stated_importance(turn.meta) is None and turn.id not in judgements
    ]
    evidence = [turn.evidence for turn in unjudged if turn.evidence is not None]
    facts = yield from call(store.find_versions, account, evidence=evidence)
    evidence_with_claims = {fact.evidence for fact in facts if fact.predicate is not None}
    return {
        turn.id: resolve_importance(
            turn, judgements.get(turn.id), has_claim=turn.evidence in evidence_with_claims
        )
        for turn in turns
    }


def load_judgements(
    store: Store, account: str, threads: Sequence[str]
) -> Flow[Mapping[str, float]]:
    """Return the latest score a model gave each thread, if any."""
    thread_ids = set(threads)
    links = yield from call(store.find_links, account, list(threads))
    ordered_links = sorted(
        (link for link in links if link.rel == IMPORTANCE and link.dst in thread_ids),
        key=lambda link: link.seq,
    )
    return {link.dst: link.weight for link in ordered_links}


def resolve_importance(turn: Fact, judgement: float | None, *, has_claim: bool = False) -> float:
    """Return the importance of a turn: stated by the caller, judged by a model, or computed."""
    stated_value = stated_importance(turn.meta)
    if stated_value is not None or judgement is not None:
        return stated_value if stated_value is not None else judgement or 0.0
    text_importance = score_importance(turn.text, turn.role or "user")
    return max(text_importance, INFORMATIVE_SCORE) if has_claim else text_importance


STAGE = "tail"
UNIMPORTANT = "unimportant"
AUTHOR = "told"
DROPPABLE_KINDS = frozenset({"memory", TURN})
"""The kinds that may be dropped; a turn with an explicit kind is kept."""


@dataclass(frozen=True, slots=True)
class TailResult:
    """The number of turns that left the tail, and of those that were dropped."""

    turns: int = 0
    dropped: int = 0

    def __add__(self, other: TailResult) -> TailResult:
        return TailResult(self.turns + other.turns, self.dropped + other.dropped)


def find_tail_start(store: Store, scope: Scope, size: int) -> Flow[int]:
    """Return the ledger position where the tail of a scope starts."""
    newest = yield from call(store.list_turns, scope, limit=size, newest=True)
    return newest[0].said_seq if len(newest) >= size else 0


def process_tail(ctx: WriteContext, scope: Scope, *, force: bool = False) -> Flow[TailResult]:
    """Drop the unimportant turns that have left the tail, or with `force` those in it too."""
    store, account = ctx.store, scope.account
    head = yield from call(store.get_head, account)
    end = (
        head.seq + 1
        if force
        else (yield from find_tail_start(store, scope, ctx.settings.maintenance.tail_size))
    )
    dropping: Consumer[Sequence[Fact], Sequence[Fact]] = Consumer(
        name=STAGE,
        load_batch=partial(_load_leaving_turns, ctx, scope, end),
        process=partial(_drop_unimportant, ctx, scope),
        conflict_attempts=ctx.settings.ingestion.conflict_retries,
    )
    run = yield from drain(store, account, dropping)
    total = TailResult(sum(len(facts) for facts, _ in run.outcomes))
    for dropped in run.results:
        restored = yield from restore_important(ctx, scope, dropped)
        total += TailResult(0, len(dropped) - restored)
    run.raise_failure()
    return total


def _load_leaving_turns(
    ctx: WriteContext, scope: Scope, end: int
) -> Flow[JobBatch[Sequence[Fact]] | None]:
    """Return the next page of turns before a position."""
    name = get_cursor_name(STAGE, scope)
    before = yield from call(ctx.store.get_cursor, scope.account, name)
    turns = yield from call(
        ctx.store.list_turns, scope, before, end, ctx.settings.maintenance.consumer_batch
    )
    if not turns:
        return None
    step = CursorStep(name, before, turns[-1].said_seq)
    return JobBatch([Job([turn.fact for turn in turns], step)])


def _drop_unimportant(
    ctx: WriteContext, scope: Scope, facts: Sequence[Fact], step: CursorStep | None
) -> Flow[Sequence[Fact]]:
    """Retract the unimportant turns among these with the cursor step; return them."""
    importance_by_id = yield from load_importance(ctx.store, scope.account, facts)
    dropped = [
        fact
        for fact in facts
        if importance_by_id[fact.id] < ctx.settings.maintenance.keep_importance
        and fact.kind in DROPPABLE_KINDS
    ]
    drafts = [Draft(Retracted(fact.id, UNIMPORTANT), scope, AUTHOR) for fact in dropped]
    guards: list[Guard] = [ThreadAt(fact.id, fact.seq) for fact in dropped]
    yield from commit_plan(ctx, scope, WritePlan(drafts, guards, []), step=step)
    return dropped


def restore_important(ctx: WriteContext, scope: Scope, dropped: Sequence[Fact]) -> Flow[int]:
    """Restore turns that were judged important while they were dropped; return the count."""
    importance_by_id = yield from load_importance(ctx.store, scope.account, dropped)
    important = [
        turn.id
        for turn in dropped
        if importance_by_id[turn.id] >= ctx.settings.maintenance.keep_importance
    ]
    return (yield from restore_turns(ctx, scope, important)) if important else 0


def restore_turns(ctx: WriteContext, scope: Scope, threads: Sequence[str]) -> Flow[int]:
    """Restore threads that were dropped as unimportant; return the count."""

    def decide() -> Flow[int]:
        plan = WritePlan([], [], [])
        for thread in threads:
            draft = build_restore_draft(
                (yield from call(ctx.store.scan_entries, scope.account, thread=thread))
            )
            if draft is not None:
                plan.drafts.append(draft)
                plan.guards.append(ThreadAt(thread, None))
        yield from commit_plan(ctx, scope, plan)
        return len(plan.drafts)

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


def build_restore_draft(entries: Sequence[Entry]) -> Draft | None:
    """Return the draft that restores a thread, or None if it was not dropped as unimportant."""
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
