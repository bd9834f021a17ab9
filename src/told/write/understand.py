"""What a model makes of what was said: the evidence waits in the ledger until the model has been asked about it.

The ledger is the queue: evidence that a model is to be asked about says so, and a cursor says how far that has come.
What the model's answer comes to is committed together with the cursor, so nothing is asked twice and nothing is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeVar

from told.core import size
from told.core.entry import Asserted, Claim, Draft, Entry, Observed, Retracted
from told.core.errors import ToldError
from told.core.fact import UNLISTED
from told.core.query import Event
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import Fault, Step, Store, Usage
from told.write.alone import Turnstile
from told.write.curate.verdicts import EVICTED, NEGATED, SUPERSEDED
from told.write.hearing import HEARD, Piece, pieces, recalled
from told.write.messages import Turn

T = TypeVar("T")
CONSUMER = "extraction"
ASK = "ask"
"""The metadata of evidence that says which extractor is to be asked about it, and how."""

META = "meta"
"""The metadata of such evidence that is to be attached to what is found in it."""

PAGE = 256
PATIENCE = 0.25
FOR_GOOD = frozenset({400, 404, 405, 410, 413, 415, 422})
GARBLED = "The model's answer could not be read."
UNSAID = "It failed; what the model answered was erased with what it spoke of."


class Overtaken(Exception):
    """Another worker of the consumer was quicker, or what was asked about is no longer there."""


@dataclass(frozen=True, slots=True)
class Case:
    """What was said in one call and is to be understood together; `parts` is what is heard of each evidence."""

    scope: Scope
    seqs: tuple[int, ...]
    evidence: tuple[str, ...]
    parts: tuple[Piece, ...]
    ask: Mapping[str, Any]
    at: int


@dataclass(frozen=True, slots=True)
class Understood:
    """What one case came to."""

    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = ()
    garbled: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    skipped: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a consumer came: what it understood, by the evidence of each case, and what stopped it."""

    done: Mapping[tuple[str, ...], Understood]
    failed: tuple[tuple[str, ...], ...] = ()
    failure: Failure | None = None


def total(found: Iterable[Understood]) -> Usage:
    """What it cost to understand all this."""
    return sum((each.usage for each in found), Usage())


Understand = Callable[[Case, "Step | None"], Flow[Understood]]
"""What asks an extractor about a case and commits what comes of it, together with the step."""


def drain(
    store: Store, account: str, understand: Understand, attempts: int, alone: Turnstile
) -> Flow[Progress]:
    """Ask about everything that waits, in order; stop where a model is down, pass over what fails time and again.

    Whoever else in this process would ask the same waits until it is answered.
    """
    return (yield from one_at_a_time(alone, _drain(store, account, understand, attempts)))


def one_at_a_time(alone: Turnstile, flow: Flow[T]) -> Flow[T]:
    """Run a flow when nobody else in this process is inside."""
    while not alone.enter():
        yield from call(alone.wait, PATIENCE)
    try:
        return (yield from flow)
    finally:
        alone.leave()


def _drain(store: Store, account: str, understand: Understand, attempts: int) -> Flow[Progress]:
    done: dict[tuple[str, ...], Understood] = {}
    failed: list[tuple[str, ...]] = []
    while True:
        before = yield from call(store.cursor, account, CONSUMER)
        case, after = yield from _next(store, account, before)
        if case is None:
            if after > before:
                yield from call(store.advance, account, CONSUMER, after)
            return Progress(done, tuple(failed))
        found = yield from attempt(understand(case, Step(CONSUMER, before, after)))
        if not (yield from intact(store, account, case)):
            continue
        if isinstance(found, Understood):
            yield from _noted(store, account, case, found)
            done[case.evidence] = found
        elif not isinstance(found.error, Overtaken):
            if (yield from _tried(store, account, case, found)) < attempts and _passing(found):
                return Progress(done, tuple(failed), found)
            yield from call(store.advance, account, CONSUMER, after)
            failed.append(case.evidence)


def _passing(failure: Failure) -> bool:
    """Whether the cause may pass by itself; a request that a provider refuses as such will be refused again."""
    error = failure.error
    return not isinstance(error, ToldError) or error.detail.get("status") not in FOR_GOOD


def _noted(store: Store, account: str, case: Case, found: Understood) -> Flow[None]:
    """Keep what could not be read of an answer, and forget earlier failures of the same case."""
    if found.garbled:
        yield from call(store.fault, account, CONSUMER, case.seqs[0], GARBLED, "\n\n".join(found.garbled))
        return
    yield from _settled(store, account, case.seqs)


def _settled(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Forget every failure of what was said at some positions."""
    earlier = yield from _faults(store, account, seqs)
    if earlier:
        yield from call(store.settle, account, [fault.id for fault in earlier])


def _tried(store: Store, account: str, case: Case, failure: Failure) -> Flow[int]:
    """Keep a failure; how often this case has failed by now."""
    detail = failure.error.detail if isinstance(failure.error, ToldError) else {}
    raw = str(detail.get("raw") or "")
    yield from call(store.fault, account, CONSUMER, case.seqs[0], str(failure), raw)
    faults = yield from _faults(store, account, case.seqs)
    return max((fault.attempts for fault in faults), default=1)


def _faults(store: Store, account: str, seqs: Collection[int]) -> Flow[list[Fault]]:
    faults = yield from call(store.faults, account)
    return [fault for fault in faults if fault.consumer == CONSUMER and fault.seq in seqs]


def _next(store: Store, account: str, after: int) -> Flow[tuple[Case | None, int]]:
    """The next case after a position, and up to which position nothing else waits; what was withdrawn is no fault."""
    while entries := (yield from call(store.scan, account, after, PAGE)):
        waiting = list(filter(waits, entries))
        while waiting:
            failed = yield from _faults(store, account, [waiting[0].seq])
            case = case_of(waiting, alone=bool(failed))
            withdrawn = yield from _withdrawn(store, account, waiting[: len(case.seqs)])
            if not withdrawn:
                return case, case.seqs[-1]
            yield from _settled(store, account, withdrawn)
            waiting = [entry for entry in waiting if entry.seq not in withdrawn]
        after = entries[-1].seq
    return None, after


def _withdrawn(store: Store, account: str, asked: Sequence[Entry]) -> Flow[set[int]]:
    """What was given up by whoever said it before anybody asked a model about it; what tends itself is not that."""
    found: set[int] = set()
    for entry in asked:
        fates = [_given_up(entry, life) for life in (yield from _lives(store, account, entry))]
        if True in fates and False not in fates:
            found.add(entry.seq)
    return found


def taken_back(store: Store, account: str, case: Case) -> Flow[list[list[Claim]]]:
    """What rules had understood of each part of a case and whoever said it gave up; nothing, where it is said again."""
    found: list[list[Claim]] = []
    for part in case.parts:
        entries = (yield from call(store.scan, account, case.seqs[part.place] - 1, 1)) if case.seqs else ()
        lives = (yield from _lives(store, account, entries[0])) if entries and waits(entries[0]) else ()
        verbs = [each.verb for life in lives if _given_up(entries[0], life) for each in life]
        claims = [verb.claim for verb in verbs if isinstance(verb, Asserted)]
        found.append([claim for claim in claims if claim.kind not in UNLISTED])
    return found


def _lives(store: Store, account: str, said: Entry) -> Flow[list[Sequence[Entry]]]:
    """The entries of every memory that was taken from what was said."""
    lives: list[Sequence[Entry]] = []
    for thread in (yield from call(store.derived, account, [_said(said).id])):
        lives += [(yield from call(store.thread, account, thread))]
    return lives


def _given_up(said: Entry, life: Sequence[Entry]) -> bool | None:
    """Whether the last word on a memory is that whoever said it gives it up; what is not listed has no say."""
    last = next((entry.draft for entry in reversed(life) if isinstance(entry.verb, Asserted | Retracted)), None)
    match last:
        case Draft(verb=Retracted(why=why), author=author):
            return said.draft is not None and author == said.draft.author and why not in (NEGATED, SUPERSEDED, EVICTED)
        case Draft(verb=Asserted(claim=claim)) if claim.kind in UNLISTED:
            return None
    return False


def intact(store: Store, account: str, case: Case) -> Flow[bool]:
    """Whether all of a case is still there; what was erased or given up while a model was asked is asked no more."""
    said: list[Entry] = []
    for seq, evidence in zip(case.seqs, case.evidence, strict=bool(case.seqs)):
        entries = yield from call(store.scan, account, seq - 1, 1)
        if not entries or not waits(entries[0]) or _said(entries[0]).id != evidence:
            return False
        said += entries
    return not (yield from _withdrawn(store, account, said))


def waits(entry: Entry) -> bool:
    """Whether an entry is evidence that a model is to be asked about."""
    draft = entry.draft
    return draft is not None and isinstance(draft.verb, Observed) and ASK in draft.verb.evidence.meta


def case_of(entries: Sequence[Entry], *, alone: bool) -> Case:
    """The case that begins with the first of these entries: what was said next in the same scope, to be asked alike.

    What failed before stays alone, with what was said in the same call, so that it cannot make others fail with it.
    """
    first = entries[0]
    scope, ask = _scope(first), _said(first).evidence.meta[ASK]

    def belongs(entry: Entry) -> bool:
        alike = (_scope(entry), _said(entry).evidence.meta[ASK]) == (scope, ask)
        return alike and (entry.tx == first.tx or not alone)

    kept = [(entry.seq, _said(entry)) for entry in takewhile(belongs, filter(waits, entries))]
    parts = pieces((place, _turn(said), recalled(said.evidence)) for place, (_, said) in enumerate(kept))
    ids = tuple(said.id for _, said in kept)
    return Case(scope, tuple(seq for seq, _ in kept), ids, tuple(parts), ask, first.at)


def _said(entry: Entry) -> Observed:
    assert entry.draft is not None
    assert isinstance(entry.draft.verb, Observed)
    return entry.draft.verb


def _scope(entry: Entry) -> Scope:
    assert entry.draft is not None
    assert entry.draft.scope is not None
    return entry.draft.scope


def _turn(said: Observed) -> Turn:
    meta = {name: value for name, value in said.evidence.meta.items() if name not in (ASK, META, HEARD)}
    return Turn(replace(said.evidence, meta=meta), said.evidence.meta.get(META, {}))


# Looking after what failed --------------------------------------------------------------------------------------------


def retry(
    store: Store, account: str, understand: Understand, chosen: Sequence[int], attempts: int, alone: Turnstile
) -> Flow[tuple[int, int]]:
    """Ask again about what failed; how many of these faults are mended, and how many are not."""
    wanted = yield from _chosen(store, account, chosen)
    yield from drain(store, account, understand, attempts, alone)
    passed = yield from call(store.cursor, account, CONSUMER)
    for fault in (yield from _chosen(store, account, chosen)):
        if fault.seq <= passed and fault in wanted:
            yield from _again(store, account, understand, fault)
    left = {fault.id for fault in (yield from _chosen(store, account, chosen))}
    again = sum(1 for fault in wanted if fault.id in left)
    return len(wanted) - again, again


def _chosen(store: Store, account: str, chosen: Sequence[int]) -> Flow[list[Fault]]:
    faults = yield from call(store.faults, account)
    return [fault for fault in faults if fault.consumer == CONSUMER and (not chosen or fault.id in chosen)]


def _again(store: Store, account: str, understand: Understand, fault: Fault) -> Flow[None]:
    """Ask once more about what was passed over; what was erased meanwhile is no fault any more."""
    entries = yield from call(store.scan, account, fault.seq - 1, PAGE)
    if not entries or not waits(entries[0]):
        yield from call(store.settle, account, [fault.id])
        return
    waiting = list(filter(waits, entries))
    case = case_of(waiting, alone=True)
    if (yield from _withdrawn(store, account, waiting[: len(case.seqs)])):
        yield from call(store.settle, account, [fault.id])
        return
    found = yield from attempt(understand(case, None))
    if not (yield from intact(store, account, case)):
        return
    if isinstance(found, Failure):
        yield from _tried(store, account, case, found)
    else:
        yield from _noted(store, account, case, found)


def unsay(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Take a model's answer out of every fault whose case was about entries that are to be erased."""
    for fault in (yield from _chosen(store, account, ())):
        entries = yield from call(store.scan, account, fault.seq - 1, PAGE)
        if entries and waits(entries[0]) and not set(case_of(entries, alone=False).seqs).isdisjoint(seqs):
            yield from call(store.settle, account, [fault.id])
            yield from call(store.fault, account, CONSUMER, fault.seq, UNSAID)


def enough(store: Store, account: str, threshold: int, scope: Scope | None = None) -> Flow[bool]:
    """Whether so much waits in a scope, or in any, that it is worth a question to a model."""
    if not threshold:
        return True
    after, tokens = (yield from call(store.cursor, account, CONSUMER)), Counter[Scope]()
    while entries := (yield from call(store.scan, account, after, PAGE)):
        for entry in filter(waits, entries):
            tokens[_scope(entry)] += size.tokens(_said(entry).evidence.content)
        if any(count >= threshold for where, count in tokens.items() if scope in (None, where)):
            return True
        after = entries[-1].seq
    return False


def waiting(store: Store, account: str) -> Flow[int]:
    """How many pieces of evidence wait for a model."""
    after, count = (yield from call(store.cursor, account, CONSUMER)), 0
    while entries := (yield from call(store.scan, account, after, PAGE)):
        count += sum(1 for entry in entries if waits(entry))
        after = entries[-1].seq
    return count
