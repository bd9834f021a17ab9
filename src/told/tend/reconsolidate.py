"""Reconsolidation: what was recalled is taken from the queue and reflected on, with what it belongs to.

Nothing runs by itself: somebody asks for it. A task is taken for a while; whoever fails leaves it for the next look,
and what fails time and again is a fault and leaves the queue. A review that nobody has settled stays in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.core.belief import CONTRADICTS
from told.core.errors import ToldError
from told.core.fact import NEVER, Fact, Link
from told.core.ids import canonical, sha256
from told.core.recall import Reason, Task
from told.core.trust import Trust
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Fault, Store, Usage
from told.tend.apply import NEEDS_REVIEW, Applied, Hand, apply
from told.tend.delta import NEEDS_CONTRADICTION_REVIEW, Operation
from told.tend.propose import propose
from told.tend.reflect import AUTHOR, DAY, reflect
from told.tend.rows import Rows, gather
from told.write.desk import Desk
from told.write.understand import GARBLED, UNSAID

CONSUMER: Final = "reconsolidation"
AGAIN: Final = 7 * DAY
"""After how long a review that nobody has settled is due again."""

SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a look into the queue came to: how many memories were thought over, what was done, and what went wrong."""

    tasks: int = 0
    failed: int = 0
    done: tuple[Operation, ...] = ()
    events: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.tasks + other.tasks, self.failed + other.failed, self.done + other.done, self.events + other.events,
            self.warnings + other.warnings, self.usage + other.usage,
        )  # fmt: skip


def reconsolidate(desk: Desk, account: str, limit: int) -> Flow[Outcome]:
    """Think over what is due, the most urgent first and at most so many, a few at a time."""
    total, taken = Outcome(), 0
    lease = desk.settings.reconsolidate_lease * SECOND
    while taken < limit:
        some = min(desk.settings.reconsolidate_batch, limit - taken)
        tasks = yield from call(desk.store.claim, account, desk.mint.now(), some, lease)
        if not tasks:
            break
        taken += len(tasks)
        for task in tasks:
            total += yield from _tried(desk, account, task)
    return total


def _tried(desk: Desk, account: str, task: Task) -> Flow[Outcome]:
    """Think a memory over; a failure leaves it taken until its lease is over, the last one makes it a fault."""
    found = yield from attempt(think(desk, account, task))
    if not isinstance(found, Failure):
        yield from call(desk.store.done, account, [task.id])
        return replace(found, tasks=1)
    if task.attempts >= desk.settings.consumer_attempts:
        yield from _fault(desk.store, account, task.thread, str(found), _raw(found))
        yield from call(desk.store.done, account, [task.id])
    return Outcome(failed=1, warnings=(f"The memory {task.thread} could not be thought over: {found}",))


def _raw(failure: Failure) -> str:
    detail = failure.error.detail if isinstance(failure.error, ToldError) else {}
    return str(detail.get("raw") or "")


def _fault(store: Store, account: str, thread: str, error: str, raw: str) -> Flow[None]:
    fact = yield from call(store.fact, account, thread)
    if fact is not None:
        yield from call(store.fault, account, CONSUMER, fact.seq, error, raw)


def think(desk: Desk, account: str, task: Task) -> Flow[Outcome]:
    """Reflect on a memory and apply what comes of it: by rules, then by a model if one is to be asked."""
    fact = yield from call(desk.store.fact, account, task.thread)
    if fact is None:
        return Outcome()
    now, zone = desk.mint.now(), desk.settings.zone or None
    rows = yield from gather(desk.store, fact, now, zone)
    ruled = yield from _ruled(desk, account, rows, now)
    asked = yield from _asked(desk, account, fact, rows, now)
    if task.reason is Reason.SCHEDULED_REVIEW:
        yield from _again(desk, account, fact, now)
    return ruled + asked


def _ruled(desk: Desk, account: str, rows: Rows, now: int) -> Flow[Outcome]:
    operations = reflect(rows, desk.mind.ontology, now)
    if not operations:
        return Outcome()
    applied = yield from apply(desk, account, operations, Hand(AUTHOR, Trust.INFERENCE))
    return _outcome(applied)


def _outcome(applied: Applied) -> Outcome:
    return Outcome(done=applied.done, events=applied.receipt.events, warnings=applied.receipt.warnings)


# With a model ---------------------------------------------------------------------------------------------------------


def model_of(desk: Desk) -> LLM | None:
    """The model that reflects, if one is to."""
    return None if desk.settings.reflect == "rules" else desk.mind.curating or desk.mind.llm


def _asked(desk: Desk, account: str, fact: Fact, rows: Rows, now: int) -> Flow[Outcome]:
    """Ask a model about several memories that it has not seen as they are now."""
    llm = model_of(desk)
    if llm is None or len(rows.facts) < 2 or (yield from _seen(desk, account, fact, rows, llm)):
        return Outcome()
    proposed = yield from propose(llm, rows.facts, now, desk.settings.zone or None)
    done = Outcome(usage=proposed.usage, warnings=tuple(f"Refused: operation {each}" for each in proposed.refused))
    if proposed.garbled:
        yield from call(desk.store.fault, account, CONSUMER, fact.seq, GARBLED, proposed.garbled)
        return done + Outcome(warnings=(GARBLED,))
    if proposed.operations:
        hand = Hand(f"{AUTHOR}:{llm.model}", Trust.INFERENCE)
        done += _outcome((yield from apply(desk, account, proposed.operations, hand)))
    after = yield from gather(desk.store, fact, now, desk.settings.zone or None)
    yield from call(desk.store.note, account, CONSUMER, {fact.id: _digest(after, llm)})
    return done


def _seen(desk: Desk, account: str, fact: Fact, rows: Rows, llm: LLM) -> Flow[bool]:
    noted = yield from call(desk.store.notes, account, CONSUMER, [fact.id])
    return noted.get(fact.id) == _digest(rows, llm)


def _digest(rows: Rows, llm: LLM) -> bytes:
    """What a model was shown, as a hash of positions."""
    return sha256(canonical([llm.model, [fact.seq for fact in rows.facts]]))


# Reviews --------------------------------------------------------------------------------------------------------------


def _again(desk: Desk, account: str, fact: Fact, now: int) -> Flow[None]:
    """Keep a review in the queue for as long as there is a reason for it."""
    links = yield from call(desk.store.links, account, [fact.id])
    whys = reasons(links).get(fact.id, ())
    rivals = {end for link in links if link.rel == CONTRADICTS and link.until == NEVER for end in (link.src, link.dst)}
    standing = [why for why in whys if why != NEEDS_CONTRADICTION_REVIEW]
    for rival in sorted(rivals - {fact.id}):
        if not standing and (yield from call(desk.store.fact, account, rival)) is not None:
            standing = [NEEDS_CONTRADICTION_REVIEW]
    if standing:
        later = Task(fact.id, Reason.SCHEDULED_REVIEW, 0.0, now + AGAIN)
        yield from call(desk.store.enqueue, account, [later], 0)


def reasons(links: Sequence[Link]) -> Mapping[str, tuple[str, ...]]:
    """Why somebody is to look at each of some memories."""
    found: dict[str, tuple[str, ...]] = {}
    for link in links:
        if link.rel == NEEDS_REVIEW and link.until == NEVER:
            found[link.dst] = (*found.get(link.dst, ()), str(link.meta.get("why", "")))
    return found


# Looking after what failed --------------------------------------------------------------------------------------------


def unsay(store: Store, account: str) -> Flow[None]:
    """Take every answer of a model out of the faults of reflection: it may speak of what is to be erased."""
    faults: Sequence[Fault] = yield from call(store.faults, account)
    for fault in faults:
        if fault.consumer == CONSUMER and fault.raw:
            yield from call(store.settle, account, [fault.id])
            yield from call(store.fault, account, CONSUMER, fault.seq, UNSAID)
