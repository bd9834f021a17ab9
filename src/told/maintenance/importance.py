"""Judge the importance of turns with a language model, several turns per request.

A score is stored as a link from the evidence of a turn to its thread, with the score as weight. A
turn that was dropped as unimportant is restored if its score is high enough; an erased turn stays
erased.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from told.errors import InvalidInput, LLMError
from told.extraction.prompting import ask_llm, fence_as_data, load_prompt
from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ledger import consumer
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import (
    Consumer,
    Failure,
    Job,
    JobBatch,
    check_cursor,
    drain,
    get_cursor_name,
)
from told.maintenance.tail import (
    IMPORTANCE,
    build_restore_draft,
    load_judgements,
    resolve_importance,
    select_retracted_threads,
)
from told.model.entry import Draft, Entry, Linked, Observed
from told.model.fact import NEVER, NODE, QUARANTINE, Fact
from told.model.scope import Scope
from told.ports import LLM, CursorStep, EntryIntact, Guard, Store, ThreadAt
from told.text.tokens import make_snippet, parse_lenient_json

CONSUMER: Final = "judging"
PAGE: Final = 256
MAX_WAITING: Final = 1000
"""The number of pending turns at which partial batches are asked too."""

MAX_TURN_CHARS: Final = 1000
"""The number of characters of a turn that the model sees."""

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
    """A turn without a score: the position and id of its evidence, its scope, role and text."""

    seq: int
    evidence: str
    scope: Scope
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """The number of judged and restored turns, and the failure that stopped the judge."""

    turns: int = 0
    restored: int = 0
    failure: Failure | None = None

    def __add__(self, other: JudgeResult) -> JudgeResult:
        return JudgeResult(
            self.turns + other.turns, self.restored + other.restored, other.failure or self.failure
        )


Turns = Sequence[UnjudgedTurn]


def judge_turns(
    ctx: WriteContext,
    account: str,
    scopes: Sequence[Scope] | None = None,
    *,
    full_only: bool = False,
) -> Flow[JudgeResult]:
    """Judge every unjudged turn of some scopes, or of all; a request never mixes scopes.

    With `full_only`, ask only full batches until too many turns are pending.
    """
    if (
        ctx.extraction.background_llm is None
        or not ctx.settings.judge
        or (scopes is not None and not scopes)
    ):
        return JudgeResult()
    judge = make_judge_consumer(ctx, account, scopes, full_only=full_only)
    run = yield from drain(ctx.store, account, judge)
    return sum(run.results, JudgeResult(failure=run.failure))


def make_judge_consumer(
    ctx: WriteContext,
    account: str,
    scopes: Sequence[Scope] | None = None,
    *,
    full_only: bool = False,
) -> Consumer[Turns, JudgeResult]:
    """Build the consumer that judges turns."""
    return Consumer(
        name=CONSUMER,
        load_batch=partial(_load_questions, ctx, account, scopes, full_only=full_only),
        process=partial(_judge_batch, ctx),
        attempts=ctx.settings.maintenance.consumer_attempts,
        mutex=ctx.extraction.mutex,
    )


# Pending turns


@dataclass(frozen=True, slots=True)
class JudgeBacklog:
    """The pending turns and the cursor of each scope, and how far the ledger was scanned."""

    turns: Mapping[Scope, Turns]
    cursors: Mapping[Scope, int]
    last_seq: int
    has_more: bool

    def build_questions(self, max_turns: int, *, full_only: bool) -> list[Job[Turns]]:
        """Split the turns into one job per request."""
        questions: list[Job[Turns]] = []
        for scope, turns in self.turns.items():
            name, before = get_cursor_name(CONSUMER, scope), self.cursors[scope]
            end = len(turns) - max_turns + 1 if full_only else len(turns)
            for start in range(0, end, max_turns):
                page = turns[start : start + max_turns]
                after = page[-1].seq
                seqs = [turn.seq for turn in page]
                questions.append(Job(page, CursorStep(name, before, after), seqs))
                before = after
        return questions

    def compute_cursor(self, questions: Sequence[Job[Turns]]) -> int:
        """Return the position before which every turn is in one of these questions."""
        asked_seqs = {seq for question in questions for seq in question.seqs}
        remaining = (
            turn.seq
            for turns in self.turns.values()
            for turn in turns
            if turn.seq not in asked_seqs
        )
        return min(remaining, default=self.last_seq + 1) - 1


def _load_questions(
    ctx: WriteContext, account: str, scopes: Sequence[Scope] | None, *, full_only: bool
) -> Flow[JobBatch[Turns]]:
    after = yield from _load_start_cursor(ctx.store, account, scopes)
    backlog = yield from _load_backlog(ctx.store, account, scopes, after)
    questions = backlog.build_questions(
        ctx.settings.maintenance.judge_batch, full_only=full_only and not backlog.has_more
    )
    names = [CONSUMER] if scopes is None else [get_cursor_name(CONSUMER, scope) for scope in scopes]
    cursors = dict.fromkeys(names, backlog.compute_cursor(questions))
    return JobBatch(questions, cursors, is_last=not backlog.has_more)


def _load_start_cursor(store: Store, account: str, scopes: Sequence[Scope] | None) -> Flow[int]:
    """Return the position before which no turn of these scopes is pending."""
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
    """Load the next pending turns, about `MAX_WAITING` at most."""
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


# Requests


def _judge_batch(ctx: WriteContext, turns: Turns, step: CursorStep | None) -> Flow[JudgeResult]:
    """Ask the model about the turns that have no score yet and commit the scores with the step."""
    llm = ctx.extraction.background_llm
    if llm is None:
        raise LLMError("No language model is configured.")
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
        yield from check_cursor(ctx.store, account, step)
        plan, score_count, restored = yield from _plan_scores(ctx, llm, unjudged, scores)
        yield from commit_plan(ctx, turns[0].scope, plan, step=step)
        return JudgeResult(score_count, restored)

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


def _use_current_text(turn: UnjudgedTurn, fact: Fact) -> UnjudgedTurn:
    """Return the turn with its current text if it was corrected."""
    return turn if fact.evidence == turn.evidence else replace(turn, text=fact.text)


def _ask_for_scores(llm: LLM, turns: Sequence[UnjudgedTurn]) -> Flow[Mapping[str, float]]:
    """Ask the model for scores by evidence id; raise `LLMError` if the reply has none."""
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
    """Parse the scores in a reply by turn number, clamped to 0..1; accept several JSON shapes."""
    try:
        data = parse_lenient_json(reply)
    except InvalidInput:
        return {}
    if isinstance(data, Mapping):
        items = next((data[name] for name in LIST_KEYS if isinstance(data.get(name), list)), None)
        if items is not None:
            data = items
        elif any(name in data for name in SCORE_KEYS):
            data = [data]
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(data, Mapping):
        pairs = data.items()
    elif isinstance(data, list):
        pairs = enumerate(data, 1)
    scores = (_parse_score(position, item) for position, item in pairs)
    return {number: score for number, score in filter(None, scores) if 0 < number <= count}


def _parse_score(position: object, item: object) -> tuple[int, float] | None:
    """Parse one score and its turn number, which defaults to its position."""
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


# Scores


def _load_turn_facts(
    store: Store, account: str, turns: Sequence[UnjudgedTurn]
) -> Flow[Mapping[str, Fact]]:
    """Return the latest version of each turn's fact, current or retracted, by evidence id.

    Turns that were gated out, erased or fully retracted have none.
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
    """Plan the score links and restored threads; return the plan and the count of each.

    Turns retracted for any reason other than being unimportant are not judged.
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
            and resolve_importance(fact, score) >= ctx.settings.maintenance.keep_importance
        ):
            plan.drafts.append(restore_draft)
            restored += 1
    return plan, count, restored


# Faults


def retry_faults(
    ctx: WriteContext, account: str, fault_ids: Sequence[int]
) -> Flow[tuple[int, int]]:
    """Judge again the turns of faults; return how many faults are resolved and how many remain."""
    judge = make_judge_consumer(ctx, account)
    load_job = partial(_load_job_at, ctx, account)
    return (yield from consumer.retry_faults(ctx.store, account, judge, fault_ids, load_job))


def _load_job_at(ctx: WriteContext, account: str, seq: int) -> Flow[Job[Turns] | None]:
    """Return the question that starts at a position, or None if that turn no longer exists."""
    entries = yield from call(ctx.store.scan_entries, account, seq - 1, PAGE)
    candidates = list(_parse_turns(entries))
    turns = [turn for turn in candidates if turn.scope == candidates[0].scope]
    turns = turns[: ctx.settings.maintenance.judge_batch]
    if not turns or turns[0].seq != seq:
        return None
    return Job(turns, seqs=[turn.seq for turn in turns])


def redact_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Redact the faults whose reply may quote entries that are to be erased."""
    last = max(seqs, default=0)
    faults = yield from consumer.select_faults(store, account, CONSUMER)
    stale = [fault for fault in faults if fault.raw and fault.seq <= last]
    yield from consumer.redact_faults(store, account, stale)
