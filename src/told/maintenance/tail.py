"""The tail of a conversation: its newest turns, as the ledger has them, and what becomes of those that leave it.

A turn that leaves the tail stays in the index if it is important enough. Otherwise it is retracted: its evidence stays,
and a model that later finds it important brings it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ledger.commit import retry_on_conflict
from told.model.entry import Asserted, Draft, Entry, Retracted
from told.model.fact import TURN, Fact
from told.model.query import LATEST, AsOf
from told.model.scope import Scope
from told.ports import CursorStep, Guard, Store, ThreadAt
from told.retrieval.grouping import group_by_evidence
from told.text.importance import INFORMATIVE_SCORE, score_importance, stated_importance

AS_OF_LATEST = AsOf(LATEST, 0)


def find_retracted_turns(store: Store, account: str, turns: Iterable[Fact]) -> Flow[frozenset[str]]:
    """The threads of those turns of which nothing is held any more that was taken from them."""
    evidence = {turn.evidence for turn in turns if turn.kind == TURN and turn.evidence is not None}
    return (
        select_retracted_threads(
            (yield from call(store.find_versions, account, evidence=sorted(evidence)))
        )
        if evidence
        else frozenset()
    )


def select_retracted_threads(versions: Iterable[Fact]) -> frozenset[str]:
    """The threads of such turns among all versions of all that was taken from some evidence."""
    groups = group_by_evidence(versions, AS_OF_LATEST, {}).values()
    return frozenset(
        group.turn.id for group in groups if group.turn is not None and group.is_fully_retracted
    )


IMPORTANCE = "importance"
"""The relation from evidence to the thread of its turn whose weight is what a model judged it to be worth."""


def load_importance(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, float]]:
    """How important each of these turns is, by thread; one that a claim was taken from tells something."""
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
    """What a model last said these threads are worth, as far as it was asked."""
    thread_ids = set(threads)
    links = yield from call(store.find_links, account, list(threads))
    ordered_links = sorted(
        (link for link in links if link.rel == IMPORTANCE and link.dst in thread_ids),
        key=lambda link: link.seq,
    )
    return {link.dst: link.weight for link in ordered_links}


def resolve_importance(turn: Fact, judgement: float | None, *, has_claim: bool = False) -> float:
    """How important one turn is, given what a model judged and whether a claim was taken from it."""
    stated_value = stated_importance(turn.meta)
    if stated_value is not None or judgement is not None:
        return stated_value if stated_value is not None else judgement or 0.0
    text_importance = score_importance(turn.text, turn.role or "user")
    return max(text_importance, INFORMATIVE_SCORE) if has_claim else text_importance


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
                (yield from call(ctx.store.scan_entries, scope.account, thread=thread))
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
