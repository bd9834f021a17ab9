"""How important turns are, judged by the language model: a consumer that asks about some turns at a time.

What it answers is an entry, a link from the evidence of a turn to its thread whose weight is the score; so it counts
wherever the turn is by then. A turn that was let go in the meantime comes back if it turns out to be important, and
one that was erased stays erased.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.errors import InvalidInput, LLMError, ToldError
from told.extraction.prompting import ask_llm, fence_as_data, load_prompt
from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ingest.queue import PERMANENT_STATUSES, REDACTED_ERROR, CursorConflict, run_exclusive
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import Failure, catch_failure
from told.maintenance.tail import (
    IMPORTANCE,
    build_restore_draft,
    get_cursor_name,
    load_judgements,
    resolve_importance,
    select_retracted_threads,
)
from told.model.entry import Draft, Entry, Linked, Observed
from told.model.fact import NEVER, NODE, QUARANTINE, Fact
from told.model.scope import Scope
from told.ports import LLM, CursorStep, EntryIntact, Fault, Guard, Store, ThreadAt
from told.text.tokens import make_snippet, parse_lenient_json

CONSUMER: Final = "judging"
PAGE: Final = 256
MAX_WAITING: Final = 1000
"""So many turns may wait for others to be asked about with."""

MAX_TURN_CHARS: Final = 1000
"""How many characters of a turn a model is shown; the rest rarely changes what it is worth."""

MAX_NUMBER: Final = 1e9
JUDGED_ROLES: Final = ("user", "assistant")
LIST_KEYS: Final = ("scores", "turns", "results", "judgements", "items")
SCORE_KEYS: Final = ("importance", "score", "weight", "value")
RESPONSE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "scores": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"turn": {"type": "integer"}, "importance": {"type": "number"}},
                "required": ["turn", "importance"],
            },
        }
    },
    "required": ["scores"],
}


@dataclass(frozen=True, slots=True)
class UnjudgedTurn:
    """A turn to be judged: where its evidence stands, which it is, its scope and its words."""

    seq: int
    evidence: str
    scope: Scope
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """How many turns were judged, how many came back for it, and what stopped the judge."""

    turns: int = 0
    restored: int = 0
    failure: Failure | None = None

    def __add__(self, other: JudgeResult) -> JudgeResult:
        return JudgeResult(
            self.turns + other.turns, self.restored + other.restored, other.failure or self.failure
        )


def judge_turns(
    ctx: WriteContext,
    account: str,
    scopes: Sequence[Scope] | None = None,
    *,
    full_only: bool = False,
) -> Flow[JudgeResult]:
    """Ask about every turn of some scopes, or of all, that nobody was asked about yet, never about two in one question.

    It stops where the model is down and passes over what it garbles. With `full` only as many turns at a time as one
    question may hold: fewer are left for later, until too many wait. Whoever else in this process would ask the same
    waits until it is answered.
    """
    llm = ctx.extraction.background_llm
    if llm is None or not ctx.settings.judge or (scopes is not None and not scopes):
        return JudgeResult()
    return (
        yield from run_exclusive(
            ctx.extraction.mutex, _judge_backlog(ctx, llm, account, scopes, full_only=full_only)
        )
    )


def _judge_backlog(
    ctx: WriteContext, llm: LLM, account: str, scopes: Sequence[Scope] | None, *, full_only: bool
) -> Flow[JudgeResult]:
    total, has_more = JudgeResult(), True
    after = yield from _load_start_cursor(ctx.store, account, scopes)
    while has_more:
        backlog = yield from _load_backlog(ctx.store, account, scopes, after)
        questions = backlog.build_questions(
            ctx.settings.judge_batch, full_only=full_only and not backlog.has_more
        )
        try:
            result = yield from _ask_questions(ctx, llm, questions)
        except CursorConflict:
            continue
        total += result
        if result.failure is not None:
            return total
        yield from _advance_cursors(ctx.store, account, scopes, backlog.compute_cursor(questions))
        after, has_more = backlog.last_seq, backlog.has_more
    return total


# What waits -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """Turns of one scope that are asked about together, and the step that goes past them."""

    turns: Sequence[UnjudgedTurn]
    step: CursorStep


@dataclass(frozen=True, slots=True)
class JudgeBacklog:
    """The turns that wait, by scope, with how far each has come; how far was looked, and whether there may be more."""

    turns: Mapping[Scope, Sequence[UnjudgedTurn]]
    cursors: Mapping[Scope, int]
    last_seq: int
    has_more: bool

    def build_questions(self, max_turns: int, *, full_only: bool) -> list[JudgeQuestion]:
        """What to ask, so many turns at a time, or only questions that are as long as that."""
        questions: list[JudgeQuestion] = []
        for scope, turns in self.turns.items():
            before = self.cursors[scope]
            for start in range(
                0, len(turns) - max_turns + 1 if full_only else len(turns), max_turns
            ):
                page = turns[start : start + max_turns]
                questions.append(
                    JudgeQuestion(
                        page, CursorStep(get_cursor_name(CONSUMER, scope), before, page[-1].seq)
                    )
                )
                before = page[-1].seq
        return questions

    def compute_cursor(self, answered: Sequence[JudgeQuestion]) -> int:
        """The position up to which nothing waits any more once these are answered."""
        answered_seqs = {turn.seq for question in answered for turn in question.turns}
        remaining = (
            turn.seq
            for turns in self.turns.values()
            for turn in turns
            if turn.seq not in answered_seqs
        )
        return min(remaining, default=self.last_seq + 1) - 1


def _load_start_cursor(store: Store, account: str, scopes: Sequence[Scope] | None) -> Flow[int]:
    """The position up to which nothing waits in any of these scopes."""
    after = yield from call(store.get_cursor, account, CONSUMER)
    scope_cursor = NEVER
    for scope in scopes or ():
        scope_cursor = min(
            scope_cursor,
            (yield from call(store.get_cursor, account, get_cursor_name(CONSUMER, scope))),
        )
    return max(after, scope_cursor) if scopes else after


def _load_backlog(
    store: Store, account: str, scopes: Sequence[Scope] | None, after: int
) -> Flow[JudgeBacklog]:
    """The next turns that wait to be judged, no more than a good many."""
    scope_filter = None if scopes is None else frozenset(scopes)
    turns: dict[Scope, list[UnjudgedTurn]] = {}
    cursors: dict[Scope, int] = {}
    count = 0
    while count < MAX_WAITING and (
        entries := (yield from call(store.scan_entries, account, after, PAGE))
    ):
        for turn in _parse_turns(entries):
            if scope_filter is not None and turn.scope not in scope_filter:
                continue
            if turn.scope not in cursors:
                cursors[turn.scope] = yield from call(
                    store.get_cursor, account, get_cursor_name(CONSUMER, turn.scope)
                )
            if turn.seq > cursors[turn.scope]:
                turns.setdefault(turn.scope, []).append(turn)
                count += 1
        after = entries[-1].seq
    return JudgeBacklog(turns, cursors, after, count >= MAX_WAITING)


def _ask_questions(
    ctx: WriteContext, llm: LLM, questions: Sequence[JudgeQuestion]
) -> Flow[JudgeResult]:
    """Ask one question after the other, until the model fails in a way that may pass."""
    total = JudgeResult()
    for question in questions:
        outcome = yield from catch_failure(_judge_batch(ctx, llm, question.turns, question.step))
        if isinstance(outcome, JudgeResult):
            total += outcome
        elif isinstance(outcome.error, CursorConflict):
            raise outcome.error
        else:
            account = question.turns[0].scope.account
            attempts = yield from _record_failure(
                ctx.store, account, question.turns[0].seq, outcome
            )
            if attempts < ctx.settings.consumer_attempts and _is_transient(outcome):
                return total + JudgeResult(failure=outcome)
            yield from call(
                ctx.store.update_consumer,
                account,
                question.step.consumer,
                cursor=question.step.after,
            )
    return total


def _advance_cursors(
    store: Store, account: str, scopes: Sequence[Scope] | None, end: int
) -> Flow[None]:
    """Remember that nothing waits up to a position, in some scopes or in all."""
    names = [CONSUMER] if scopes is None else [get_cursor_name(CONSUMER, scope) for scope in scopes]
    for name in names:
        if (yield from call(store.get_cursor, account, name)) < end:
            yield from call(store.update_consumer, account, name, cursor=end)


def _parse_turns(entries: Sequence[Entry]) -> Iterator[UnjudgedTurn]:
    for entry in entries:
        match entry.draft:
            case Draft(verb=Observed(id=id_, evidence=evidence), scope=Scope() as scope) if (
                evidence.role in JUDGED_ROLES
            ):
                if evidence.sort == "turn":
                    yield UnjudgedTurn(entry.seq, id_, scope, evidence.role, evidence.content)
            case _:
                pass


# Asking ---------------------------------------------------------------------------------------------------------------


def _judge_batch(
    ctx: WriteContext, llm: LLM, turns: Sequence[UnjudgedTurn], step: CursorStep | None
) -> Flow[JudgeResult]:
    """Ask about those turns that stand for something, and keep what the model says, together with the step."""
    account = turns[0].scope.account
    facts_by_evidence = yield from _load_turn_facts(ctx.store, account, turns)
    existing_scores = yield from load_judgements(
        ctx.store, account, [fact.id for fact in facts_by_evidence.values()]
    )
    unjudged = [
        _use_current_text(turn, fact)
        for turn in turns
        if (fact := facts_by_evidence.get(turn.evidence)) and fact.id not in existing_scores
    ]
    scores = (yield from _ask_for_scores(llm, unjudged)) if unjudged else {}

    def decide() -> Flow[JudgeResult]:
        if (
            step is not None
            and (yield from call(ctx.store.get_cursor, account, step.consumer)) != step.before
        ):
            raise CursorConflict
        plan, score_count, restored = yield from _plan_scores(ctx, llm, unjudged, scores)
        yield from commit_plan(ctx, turns[0].scope, plan, step=step)
        return JudgeResult(score_count, restored)

    result = yield from retry_on_conflict(ctx.settings.conflict_retries, decide)
    yield from _resolve_faults(ctx.store, account, [turn.seq for turn in turns])
    return result


def _use_current_text(turn: UnjudgedTurn, fact: Fact) -> UnjudgedTurn:
    """A turn in the words it has now; who corrected them does not want the old ones judged."""
    return turn if fact.evidence == turn.evidence else replace(turn, text=fact.text)


def _ask_for_scores(llm: LLM, turns: Sequence[UnjudgedTurn]) -> Flow[Mapping[str, float]]:
    """What the model says each of these turns is worth, by evidence; an answer that gives no score is an error."""
    lines = [
        f"{number}. {turn.role}: {make_snippet(turn.text, MAX_TURN_CHARS)}"
        for number, turn in enumerate(turns, 1)
    ]
    reply, _ = yield from ask_llm(
        llm, load_prompt("judge"), fence_as_data("turns", lines), RESPONSE_SCHEMA
    )
    scores = parse_scores(str(reply), len(turns))
    if not scores:
        raise LLMError(f"{llm.model} gave no score that can be read.", raw=str(reply))
    return {turns[number - 1].evidence: score for number, score in scores.items()}


def parse_scores(reply: str, count: int) -> dict[int, float]:
    """The scores of an answer by the number of the turn, in whichever of the usual shapes, each from 0 to 1."""
    try:
        data = parse_lenient_json(reply)
    except InvalidInput:
        return {}
    if isinstance(data, Mapping):
        items = next((data[name] for name in LIST_KEYS if isinstance(data.get(name), list)), None)
        data = (
            [data]
            if items is None and any(name in data for name in SCORE_KEYS)
            else data
            if items is None
            else items
        )
    pairs = (
        data.items()
        if isinstance(data, Mapping)
        else enumerate(data, 1)
        if isinstance(data, list)
        else ()
    )
    scores = (_parse_score(position, item) for position, item in pairs)
    return {number: score for number, score in filter(None, scores) if 0 < number <= count}


def _parse_score(position: object, item: object) -> tuple[int, float] | None:
    """One score with the number of its turn, which is its place unless it says another."""
    value = item
    if isinstance(item, Mapping):
        position = next(
            (item[name] for name in ("turn", "id", "number", "index") if name in item), position
        )
        value = next((item[name] for name in SCORE_KEYS if name in item), None)
    number, score = _parse_number(position), _parse_number(value)
    return None if number is None or score is None else (int(number), min(max(score, 0.0), 1.0))


def _parse_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(str(value).strip().lstrip("#"))
    except ValueError:
        return None
    return number if abs(number) < MAX_NUMBER else None


# Keeping what it says -------------------------------------------------------------------------------------------------


def _load_turn_facts(
    store: Store, account: str, turns: Sequence[UnjudgedTurn]
) -> Flow[Mapping[str, Fact]]:
    """The latest version of the thread that stands for each of these turns, held or not, by evidence.

    A turn that the gate kept out has none, nor has one that was erased, nor one of which everything was given up.
    """
    versions = yield from call(
        store.find_versions, account, evidence=[turn.evidence for turn in turns]
    )
    retracted = select_retracted_threads(versions)
    thread_by_evidence: dict[str, str] = {}
    for fact in versions:
        if fact.evidence is not None and fact.kind not in (NODE, QUARANTINE):
            thread_by_evidence.setdefault(fact.evidence, fact.id)
    latest = {fact.id: fact for fact in versions}
    evidence_ids = {turn.evidence for turn in turns}
    return {
        evidence: latest[thread]
        for evidence, thread in thread_by_evidence.items()
        if evidence in evidence_ids and thread not in retracted
    }


def _plan_scores(
    ctx: WriteContext, llm: LLM, turns: Sequence[UnjudgedTurn], scores: Mapping[str, float]
) -> Flow[tuple[WritePlan, int, int]]:
    """The links that keep the scores, and the threads that come back for theirs; how many there are of each.

    What somebody gave up for another reason than being unimportant is nobody's to judge any more.
    """
    plan, count, restored = WritePlan([], [], []), 0, 0
    if not turns:
        return plan, 0, 0
    account = turns[0].scope.account
    facts_by_evidence = yield from _load_turn_facts(ctx.store, account, turns)
    existing_scores = yield from load_judgements(
        ctx.store, account, [fact.id for fact in facts_by_evidence.values()]
    )
    scored = [
        turn for turn in turns if turn.evidence in facts_by_evidence and turn.evidence in scores
    ]
    pending = [
        turn for turn in scored if facts_by_evidence[turn.evidence].id not in existing_scores
    ]
    for turn in pending:
        fact, score = facts_by_evidence[turn.evidence], scores[turn.evidence]
        current = yield from call(ctx.store.get_fact, account, fact.id)
        restore_draft = (
            None
            if current
            else build_restore_draft(
                (yield from call(ctx.store.scan_entries, account, thread=fact.id))
            )
        )
        if current is None and restore_draft is None:
            continue
        plan.drafts.append(
            Draft(Linked(turn.evidence, IMPORTANCE, fact.id, score), turn.scope, llm.model)
        )
        guards: list[Guard] = [
            EntryIntact(turn.seq),
            ThreadAt(fact.id, None if current is None else current.seq),
        ]
        plan.guards += guards
        count += 1
        if (
            restore_draft is not None
            and resolve_importance(fact, score) >= ctx.settings.keep_importance
        ):
            plan.drafts.append(restore_draft)
            restored += 1
    return plan, count, restored


# Looking after what failed --------------------------------------------------------------------------------------------


def _is_transient(failure: Failure) -> bool:
    """Whether the cause may pass by itself; a request that a provider refuses as such will be refused again."""
    error = failure.error
    return not isinstance(error, ToldError) or error.detail.get("status") not in PERMANENT_STATUSES


def _record_failure(store: Store, account: str, seq: int, failure: Failure) -> Flow[int]:
    """Keep a failure; how often it has failed by now."""
    detail = failure.error.detail if isinstance(failure.error, ToldError) else {}
    yield from call(
        store.record_fault, account, CONSUMER, seq, str(failure), str(detail.get("raw") or "")
    )
    return max(
        (fault.attempts for fault in (yield from _load_faults(store, account, [seq]))), default=1
    )


def _resolve_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    faults = yield from _load_faults(store, account, seqs)
    if faults:
        yield from call(store.clear_faults, account, [fault.id for fault in faults])


def _load_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[list[Fault]]:
    faults = yield from call(store.list_faults, account)
    return [fault for fault in faults if fault.consumer == CONSUMER and fault.seq in seqs]


def retry_faults(
    ctx: WriteContext, account: str, fault_ids: Sequence[int]
) -> Flow[tuple[int, int]]:
    """Ask again about what was passed over; how many of these faults are mended, and how many are not."""
    faults = yield from call(ctx.store.list_faults, account)
    selected = [
        fault
        for fault in faults
        if fault.consumer == CONSUMER and (not fault_ids or fault.id in fault_ids)
    ]
    unresolved, llm = 0, ctx.extraction.background_llm
    for fault in selected:
        entries = yield from call(ctx.store.scan_entries, account, fault.seq - 1, PAGE)
        candidates = list(_parse_turns(entries))
        turns = [turn for turn in candidates if turn.scope == candidates[0].scope][
            : ctx.settings.judge_batch
        ]
        if not turns or turns[0].seq != fault.seq:
            yield from call(ctx.store.clear_faults, account, [fault.id])
        elif llm is None or isinstance(
            (yield from catch_failure(_judge_batch(ctx, llm, turns, None))), Failure
        ):
            unresolved += 1
    return len(selected) - unresolved, unresolved


def redact_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Take a model's answer out of every fault that may speak of entries that are to be erased."""
    last = max(seqs, default=0)
    for fault in (yield from call(store.list_faults, account)):
        if fault.consumer == CONSUMER and fault.raw and fault.seq <= last:
            yield from call(store.clear_faults, account, [fault.id])
            yield from call(store.record_fault, account, CONSUMER, fault.seq, REDACTED_ERROR)
