"""How important turns are, judged by the language model: a consumer that asks about some turns at a time.

What it answers is an entry, a link from the evidence of a turn to its thread whose weight is the score; so it counts
wherever the turn is by then. A turn that was let go in the meantime comes back if it turns out to be important, and
one that was erased stays erased.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.core.entry import Draft, Entry, Linked, Observed
from told.core.errors import InvalidInput, LLMError, ToldError
from told.core.fact import NEVER, NODE, QUARANTINE, Fact
from told.core.scope import Scope
from told.core.text import loads_forgiving, snippet
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Fault, Guard, Intact, Step, Store, ThreadAt
from told.tend.silence import silent
from told.tend.tail import consumer, returned
from told.tend.worth import IMPORTANCE, judgements, worth
from told.write.desk import Desk, Plan, settle
from told.write.extract.brief import asked, fenced, page
from told.write.understand import FOR_GOOD, UNSAID, Overtaken, one_at_a_time

CONSUMER: Final = "judging"
PAGE: Final = 256
MANY: Final = 1000
"""So many turns may wait for others to be asked about with."""

LONGEST: Final = 1000
"""How many characters of a turn a model is shown; the rest rarely changes what it is worth."""

MOST: Final = 1e9
SPEAKERS: Final = ("user", "assistant")
LISTS: Final = ("scores", "turns", "results", "judgements", "items")
NAMES: Final = ("importance", "score", "weight", "value")
SCHEMA: Final[Mapping[str, Any]] = {
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
class Said:
    """A turn to be judged: where its evidence stands, which it is, its scope and its words."""

    seq: int
    evidence: str
    scope: Scope
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How many turns were judged, how many came back for it, and what stopped the judge."""

    turns: int = 0
    returned: int = 0
    failure: Failure | None = None

    def __add__(self, other: Judged) -> Judged:
        return Judged(self.turns + other.turns, self.returned + other.returned, other.failure or self.failure)


def judge(desk: Desk, account: str, scopes: Sequence[Scope] | None = None, *, full: bool = False) -> Flow[Judged]:
    """Ask about every turn of some scopes, or of all, that nobody was asked about yet, never about two in one question.

    It stops where the model is down and passes over what it garbles. With `full` only as many turns at a time as one
    question may hold: fewer are left for later, until too many wait. Whoever else in this process would ask the same
    waits until it is answered.
    """
    llm = desk.mind.thinking
    if llm is None or not desk.settings.judge or (scopes is not None and not scopes):
        return Judged()
    return (yield from one_at_a_time(desk.mind.alone, _drained(desk, llm, account, scopes, full=full)))


def _drained(desk: Desk, llm: LLM, account: str, scopes: Sequence[Scope] | None, *, full: bool) -> Flow[Judged]:
    total, more = Judged(), True
    after = yield from _start(desk.store, account, scopes)
    while more:
        found = yield from _waiting(desk.store, account, scopes, after)
        questions = found.questions(desk.settings.judge_batch, full=full and not found.more)
        try:
            done = yield from _round(desk, llm, questions)
        except Overtaken:
            continue
        total += done
        if done.failure is not None:
            return total
        yield from _passed(desk.store, account, scopes, found.end(questions))
        after, more = found.last, found.more
    return total


# What waits -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """Turns of one scope that are asked about together, and the step that goes past them."""

    turns: Sequence[Said]
    step: Step


@dataclass(frozen=True, slots=True)
class Waiting:
    """The turns that wait, by scope, with how far each has come; how far was looked, and whether there may be more."""

    turns: Mapping[Scope, Sequence[Said]]
    cursors: Mapping[Scope, int]
    last: int
    more: bool

    def questions(self, most: int, *, full: bool) -> list[Question]:
        """What to ask, so many turns at a time, or only questions that are as long as that."""
        found: list[Question] = []
        for scope, turns in self.turns.items():
            before = self.cursors[scope]
            for start in range(0, len(turns) - most + 1 if full else len(turns), most):
                page = turns[start : start + most]
                found.append(Question(page, Step(consumer(CONSUMER, scope), before, page[-1].seq)))
                before = page[-1].seq
        return found

    def end(self, asked: Sequence[Question]) -> int:
        """The position up to which nothing waits any more once these are answered."""
        done = {turn.seq for question in asked for turn in question.turns}
        left = (turn.seq for turns in self.turns.values() for turn in turns if turn.seq not in done)
        return min(left, default=self.last + 1) - 1


def _start(store: Store, account: str, scopes: Sequence[Scope] | None) -> Flow[int]:
    """The position up to which nothing waits in any of these scopes."""
    after = yield from call(store.cursor, account, CONSUMER)
    own = NEVER
    for scope in scopes or ():
        own = min(own, (yield from call(store.cursor, account, consumer(CONSUMER, scope))))
    return max(after, own) if scopes else after


def _waiting(store: Store, account: str, scopes: Sequence[Scope] | None, after: int) -> Flow[Waiting]:
    """The next turns that wait to be judged, no more than a good many."""
    wanted = None if scopes is None else frozenset(scopes)
    turns: dict[Scope, list[Said]] = {}
    cursors: dict[Scope, int] = {}
    count = 0
    while count < MANY and (entries := (yield from call(store.scan, account, after, PAGE))):
        for turn in _turns(entries):
            if wanted is not None and turn.scope not in wanted:
                continue
            if turn.scope not in cursors:
                cursors[turn.scope] = yield from call(store.cursor, account, consumer(CONSUMER, turn.scope))
            if turn.seq > cursors[turn.scope]:
                turns.setdefault(turn.scope, []).append(turn)
                count += 1
        after = entries[-1].seq
    return Waiting(turns, cursors, after, count >= MANY)


def _round(desk: Desk, llm: LLM, questions: Sequence[Question]) -> Flow[Judged]:
    """Ask one question after the other, until the model fails in a way that may pass."""
    total = Judged()
    for question in questions:
        done = yield from attempt(_judged(desk, llm, question.turns, question.step))
        if isinstance(done, Judged):
            total += done
        elif isinstance(done.error, Overtaken):
            raise done.error
        else:
            account = question.turns[0].scope.account
            tried = yield from _failed(desk.store, account, question.turns[0].seq, done)
            if tried < desk.settings.consumer_attempts and _passing(done):
                return total + Judged(failure=done)
            yield from call(desk.store.advance, account, question.step.consumer, question.step.after)
    return total


def _passed(store: Store, account: str, scopes: Sequence[Scope] | None, end: int) -> Flow[None]:
    """Remember that nothing waits up to a position, in some scopes or in all."""
    names = [CONSUMER] if scopes is None else [consumer(CONSUMER, scope) for scope in scopes]
    for name in names:
        if (yield from call(store.cursor, account, name)) < end:
            yield from call(store.advance, account, name, end)


def _turns(entries: Sequence[Entry]) -> Iterator[Said]:
    for entry in entries:
        match entry.draft:
            case Draft(verb=Observed(id=id_, evidence=said), scope=Scope() as scope) if said.role in SPEAKERS:
                if said.sort == "turn":
                    yield Said(entry.seq, id_, scope, said.role, said.content)
            case _:
                pass


# Asking ---------------------------------------------------------------------------------------------------------------


def _judged(desk: Desk, llm: LLM, turns: Sequence[Said], step: Step | None) -> Flow[Judged]:
    """Ask about those turns that stand for something, and keep what the model says, together with the step."""
    account = turns[0].scope.account
    known = yield from _threads(desk.store, account, turns)
    before = yield from judgements(desk.store, account, [fact.id for fact in known.values()])
    open_ = [_as_held(turn, fact) for turn in turns if (fact := known.get(turn.evidence)) and fact.id not in before]
    scores = (yield from _asked(llm, open_)) if open_ else {}

    def decide() -> Flow[Judged]:
        if step is not None and (yield from call(desk.store.cursor, account, step.consumer)) != step.before:
            raise Overtaken
        plan, count, back = yield from _planned(desk, llm, open_, scores)
        yield from settle(desk, turns[0].scope, plan, step=step)
        return Judged(count, back)

    done = yield from decided(desk.settings.conflict_retries, decide)
    yield from _settled(desk.store, account, [turn.seq for turn in turns])
    return done


def _as_held(turn: Said, fact: Fact) -> Said:
    """A turn in the words it has now; who corrected them does not want the old ones judged."""
    return turn if fact.evidence == turn.evidence else replace(turn, text=fact.text)


def _asked(llm: LLM, turns: Sequence[Said]) -> Flow[Mapping[str, float]]:
    """What the model says each of these turns is worth, by evidence; an answer that gives no score is an error."""
    lines = [f"{number}. {turn.role}: {snippet(turn.text, LONGEST)}" for number, turn in enumerate(turns, 1)]
    reply, _ = yield from asked(llm, page("judge"), fenced("turns", lines), SCHEMA)
    scores = read(str(reply), len(turns))
    if not scores:
        raise LLMError(f"{llm.model} gave no score that can be read.", raw=str(reply))
    return {turns[number - 1].evidence: score for number, score in scores.items()}


def read(reply: str, count: int) -> dict[int, float]:
    """The scores of an answer by the number of the turn, in whichever of the usual shapes, each from 0 to 1."""
    try:
        said = loads_forgiving(reply)
    except InvalidInput:
        return {}
    if isinstance(said, Mapping):
        listed = next((said[name] for name in LISTS if isinstance(said.get(name), list)), None)
        said = [said] if listed is None and any(name in said for name in NAMES) else said if listed is None else listed
    pairs = said.items() if isinstance(said, Mapping) else enumerate(said, 1) if isinstance(said, list) else ()
    found = (_score(place, item) for place, item in pairs)
    return {number: score for number, score in filter(None, found) if 0 < number <= count}


def _score(place: object, item: object) -> tuple[int, float] | None:
    """One score with the number of its turn, which is its place unless it says another."""
    value = item
    if isinstance(item, Mapping):
        place = next((item[name] for name in ("turn", "id", "number", "index") if name in item), place)
        value = next((item[name] for name in NAMES if name in item), None)
    number, score = _number(place), _number(value)
    return None if number is None or score is None else (int(number), min(max(score, 0.0), 1.0))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(str(value).strip().lstrip("#"))
    except ValueError:
        return None
    return number if abs(number) < MOST else None


# Keeping what it says -------------------------------------------------------------------------------------------------


def _threads(store: Store, account: str, turns: Sequence[Said]) -> Flow[Mapping[str, Fact]]:
    """The latest version of the thread that stands for each of these turns, held or not, by evidence.

    A turn that the gate kept out has none, nor has one that was erased, nor one of which everything was given up.
    """
    taken = yield from call(store.taken, account, [turn.evidence for turn in turns])
    hidden = silent(taken)
    first: dict[str, str] = {}
    for fact in taken:
        if fact.evidence is not None and fact.kind not in (NODE, QUARANTINE):
            first.setdefault(fact.evidence, fact.id)
    latest = {fact.id: fact for fact in taken}
    wanted = {turn.evidence for turn in turns}
    return {
        evidence: latest[thread] for evidence, thread in first.items() if evidence in wanted and thread not in hidden
    }


def _planned(
    desk: Desk, llm: LLM, turns: Sequence[Said], scores: Mapping[str, float]
) -> Flow[tuple[Plan, int, int]]:
    """The links that keep the scores, and the threads that come back for theirs; how many there are of each.

    What somebody gave up for another reason than being unimportant is nobody's to judge any more.
    """
    plan, count, back = Plan([], [], []), 0, 0
    if not turns:
        return plan, 0, 0
    account = turns[0].scope.account
    known = yield from _threads(desk.store, account, turns)
    before = yield from judgements(desk.store, account, [fact.id for fact in known.values()])
    judged = [turn for turn in turns if turn.evidence in known and turn.evidence in scores]
    new = [turn for turn in judged if known[turn.evidence].id not in before]
    for turn in new:
        fact, score = known[turn.evidence], scores[turn.evidence]
        held = yield from call(desk.store.fact, account, fact.id)
        again = None if held else returned((yield from call(desk.store.thread, account, fact.id)))
        if held is None and again is None:
            continue
        plan.drafts.append(Draft(Linked(turn.evidence, IMPORTANCE, fact.id, score), turn.scope, llm.model))
        guards: list[Guard] = [Intact(turn.seq), ThreadAt(fact.id, None if held is None else held.seq)]
        plan.guards += guards
        count += 1
        if again is not None and worth(fact, score) >= desk.settings.keep_importance:
            plan.drafts.append(again)
            back += 1
    return plan, count, back


# Looking after what failed --------------------------------------------------------------------------------------------


def _passing(failure: Failure) -> bool:
    """Whether the cause may pass by itself; a request that a provider refuses as such will be refused again."""
    error = failure.error
    return not isinstance(error, ToldError) or error.detail.get("status") not in FOR_GOOD


def _failed(store: Store, account: str, seq: int, failure: Failure) -> Flow[int]:
    """Keep a failure; how often it has failed by now."""
    detail = failure.error.detail if isinstance(failure.error, ToldError) else {}
    yield from call(store.fault, account, CONSUMER, seq, str(failure), str(detail.get("raw") or ""))
    return max((fault.attempts for fault in (yield from _faults(store, account, [seq]))), default=1)


def _settled(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    done = yield from _faults(store, account, seqs)
    if done:
        yield from call(store.settle, account, [fault.id for fault in done])


def _faults(store: Store, account: str, seqs: Collection[int]) -> Flow[list[Fault]]:
    faults = yield from call(store.faults, account)
    return [fault for fault in faults if fault.consumer == CONSUMER and fault.seq in seqs]


def retry(desk: Desk, account: str, chosen: Sequence[int]) -> Flow[tuple[int, int]]:
    """Ask again about what was passed over; how many of these faults are mended, and how many are not."""
    known = yield from call(desk.store.faults, account)
    wanted = [fault for fault in known if fault.consumer == CONSUMER and (not chosen or fault.id in chosen)]
    left, llm = 0, desk.mind.thinking
    for fault in wanted:
        entries = yield from call(desk.store.scan, account, fault.seq - 1, PAGE)
        found = list(_turns(entries))
        turns = [turn for turn in found if turn.scope == found[0].scope][: desk.settings.judge_batch]
        if not turns or turns[0].seq != fault.seq:
            yield from call(desk.store.settle, account, [fault.id])
        elif llm is None or isinstance((yield from attempt(_judged(desk, llm, turns, None))), Failure):
            left += 1
    return len(wanted) - left, left


def unsay(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Take a model's answer out of every fault that may speak of entries that are to be erased."""
    last = max(seqs, default=0)
    for fault in (yield from call(store.faults, account)):
        if fault.consumer == CONSUMER and fault.raw and fault.seq <= last:
            yield from call(store.settle, account, [fault.id])
            yield from call(store.fault, account, CONSUMER, fault.seq, UNSAID)
