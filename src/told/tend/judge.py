"""How important turns are, judged by the language model: a consumer that asks about some turns at a time.

What it answers is an entry, a link from the evidence of a turn to its thread whose weight is the score; so it counts
wherever the turn is by then. A turn that was let go in the meantime comes back if it turns out to be important, and
one that was erased stays erased.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from told.core.entry import Draft, Entry, Linked, Observed
from told.core.errors import InvalidInput, LLMError, ToldError
from told.core.fact import NODE, QUARANTINE, Fact
from told.core.scope import Scope
from told.core.text import loads_forgiving, snippet
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Fault, Guard, Intact, Step, Store, ThreadAt
from told.tend.tail import returned
from told.tend.worth import IMPORTANCE, judgements, worth
from told.write.desk import Desk, Plan, settle
from told.write.extract.brief import asked, fenced, page
from told.write.understand import FOR_GOOD, UNSAID, Overtaken, one_at_a_time

CONSUMER: Final = "judging"
PAGE: Final = 256
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


def judge(desk: Desk, account: str, *, full: bool = False) -> Flow[Judged]:
    """Ask about every turn that nobody was asked about yet; stop where the model is down, pass over what it garbles.

    With `full` only as many turns at a time as one question may hold: fewer are left for later. Whoever else in this
    process would ask the same waits until it is answered.
    """
    llm = desk.mind.thinking
    if llm is None or not desk.settings.judge:
        return Judged()
    return (yield from one_at_a_time(desk.mind.alone, _drained(desk, llm, account, full=full)))


def _drained(desk: Desk, llm: LLM, account: str, *, full: bool) -> Flow[Judged]:
    total = Judged()
    while True:
        before = yield from call(desk.store.cursor, account, CONSUMER)
        turns, after = yield from _next(desk.store, account, before, desk.settings.judge_batch)
        if full and 0 < len(turns) < desk.settings.judge_batch:
            return total
        if not turns:
            if after > before:
                yield from call(desk.store.advance, account, CONSUMER, after)
            return total
        done = yield from attempt(_judged(desk, llm, turns, Step(CONSUMER, before, after)))
        if isinstance(done, Judged):
            total += done
        elif not isinstance(done.error, Overtaken):
            tried = yield from _failed(desk.store, account, turns[0].seq, done)
            if tried < desk.settings.consumer_attempts and _passing(done):
                return total + Judged(failure=done)
            yield from call(desk.store.advance, account, CONSUMER, after)


def _next(store: Store, account: str, after: int, most: int) -> Flow[tuple[list[Said], int]]:
    """The next turns that wait to be judged, and the position up to which nothing else waits."""
    turns: list[Said] = []
    while entries := (yield from call(store.scan, account, after, PAGE)):
        turns += islice(_turns(entries), most - len(turns))
        if len(turns) == most:
            return turns, turns[-1].seq
        after = entries[-1].seq
    return turns, after


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
    open_ = [turn for turn in turns if turn.evidence in known]
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

    A turn that the gate kept out has none, nor has one that was erased.
    """
    taken = yield from call(store.taken, account, [turn.evidence for turn in turns])
    first: dict[str, str] = {}
    for fact in taken:
        if fact.evidence is not None and fact.kind not in (NODE, QUARANTINE):
            first.setdefault(fact.evidence, fact.id)
    latest = {fact.id: fact for fact in taken}
    wanted = {turn.evidence for turn in turns}
    return {evidence: latest[thread] for evidence, thread in first.items() if evidence in wanted}


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
        turns = [turn for turn in islice(_turns(entries), desk.settings.judge_batch) if turn.seq >= fault.seq]
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
