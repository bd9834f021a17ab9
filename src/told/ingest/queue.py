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

from told.curation.decisions import EVICTED, NEGATED, SUPERSEDED
from told.errors import ToldError
from told.flow import Flow, call
from told.ingest.context import Mutex
from told.ingest.messages import (
    OWN_SPANS_KEY,
    InputTurn,
    TurnSegment,
    restore_own_text,
    segment_turns,
)
from told.ledger.consumer import Failure, catch_failure
from told.ledger.history import load_threads_from_evidence
from told.model.entry import Asserted, Claim, Draft, Entry, Observed, Retracted
from told.model.fact import UNLISTED_KINDS
from told.model.query import Event
from told.model.scope import Scope
from told.ports import CursorStep, Fault, Store, Usage
from told.text.tokens import estimate_tokens

T = TypeVar("T")
CONSUMER = "extraction"
OPTIONS_KEY = "ask"
"""The metadata of evidence that says which extractor is to be asked about it, and how."""

META_KEY = "meta"
"""The metadata of such evidence that is to be attached to what is found in it."""

PAGE = 256
WAIT_SECONDS = 0.25
PERMANENT_STATUSES = frozenset({400, 404, 405, 410, 413, 415, 422})
UNREADABLE_REPLY = "The model's answer could not be read."
REDACTED_ERROR = "It failed; what the model answered was erased with what it spoke of."


class CursorConflict(Exception):
    """Another worker of the consumer was quicker, or what was asked about is no longer there."""


@dataclass(frozen=True, slots=True)
class ExtractionJob:
    """What was said in one call and is to be understood together; `parts` is what is heard of each evidence."""

    scope: Scope
    seqs: tuple[int, ...]
    evidence_ids: tuple[str, ...]
    segments: tuple[TurnSegment, ...]
    options: Mapping[str, Any]
    observed_at: int


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """What one case came to."""

    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    skipped: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class DrainResult:
    """How far a consumer came: what it understood, by the evidence of each case, and what stopped it."""

    outcomes: Mapping[tuple[str, ...], ExtractionOutcome]
    failed: tuple[tuple[str, ...], ...] = ()
    failure: Failure | None = None


def sum_usage(outcomes: Iterable[ExtractionOutcome]) -> Usage:
    """What it cost to understand all this."""
    return sum((outcome.usage for outcome in outcomes), Usage())


JobHandler = Callable[[ExtractionJob, "CursorStep | None"], Flow[ExtractionOutcome]]
"""What asks an extractor about a case and commits what comes of it, together with the step."""


def drain_queue(
    store: Store, account: str, handle_job: JobHandler, attempts: int, mutex: Mutex
) -> Flow[DrainResult]:
    """Ask about everything that waits, in order; stop where a model is down, pass over what fails time and again.

    Whoever else in this process would ask the same waits until it is answered.
    """
    return (yield from run_exclusive(mutex, _process_queue(store, account, handle_job, attempts)))


def run_exclusive(mutex: Mutex, flow: Flow[T]) -> Flow[T]:
    """Run a flow when nobody else in this process is inside."""
    while not mutex.try_acquire():
        yield from call(mutex.wait_released, WAIT_SECONDS)
    try:
        return (yield from flow)
    finally:
        mutex.release()


def _process_queue(
    store: Store, account: str, handle_job: JobHandler, attempts: int
) -> Flow[DrainResult]:
    outcomes: dict[tuple[str, ...], ExtractionOutcome] = {}
    failed: list[tuple[str, ...]] = []
    while True:
        before = yield from call(store.get_cursor, account, CONSUMER)
        job, after = yield from _load_next_job(store, account, before)
        if job is None:
            if after > before:
                yield from call(store.update_consumer, account, CONSUMER, cursor=after)
            return DrainResult(outcomes, tuple(failed))
        outcome = yield from catch_failure(handle_job(job, CursorStep(CONSUMER, before, after)))
        if not (yield from is_job_intact(store, account, job)):
            continue
        if isinstance(outcome, ExtractionOutcome):
            yield from _record_outcome(store, account, job, outcome)
            outcomes[job.evidence_ids] = outcome
        elif not isinstance(outcome.error, CursorConflict):
            if (
                yield from _record_failure(store, account, job, outcome)
            ) < attempts and _is_transient(outcome):
                return DrainResult(outcomes, tuple(failed), outcome)
            yield from call(store.update_consumer, account, CONSUMER, cursor=after)
            failed.append(job.evidence_ids)


def _is_transient(failure: Failure) -> bool:
    """Whether the cause may pass by itself; a request that a provider refuses as such will be refused again."""
    error = failure.error
    return not isinstance(error, ToldError) or error.detail.get("status") not in PERMANENT_STATUSES


def _record_outcome(
    store: Store, account: str, job: ExtractionJob, outcome: ExtractionOutcome
) -> Flow[None]:
    """Keep what could not be read of an answer, and forget earlier failures of the same case."""
    if outcome.unreadable_replies:
        yield from call(
            store.record_fault,
            account,
            CONSUMER,
            job.seqs[0],
            UNREADABLE_REPLY,
            "\n\n".join(outcome.unreadable_replies),
        )
        return
    yield from _resolve_faults(store, account, job.seqs)


def _resolve_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Forget every failure of what was said at some positions."""
    faults = yield from _load_faults(store, account, seqs)
    if faults:
        yield from call(store.clear_faults, account, [fault.id for fault in faults])


def _record_failure(store: Store, account: str, job: ExtractionJob, failure: Failure) -> Flow[int]:
    """Keep a failure; how often this case has failed by now."""
    detail = failure.error.detail if isinstance(failure.error, ToldError) else {}
    raw = str(detail.get("raw") or "")
    yield from call(store.record_fault, account, CONSUMER, job.seqs[0], str(failure), raw)
    faults = yield from _load_faults(store, account, job.seqs)
    return max((fault.attempts for fault in faults), default=1)


def _load_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[list[Fault]]:
    faults = yield from call(store.list_faults, account)
    return [fault for fault in faults if fault.consumer == CONSUMER and fault.seq in seqs]


def _load_next_job(
    store: Store, account: str, after: int
) -> Flow[tuple[ExtractionJob | None, int]]:
    """The next case after a position, and up to which position nothing else waits; what was withdrawn is no fault."""
    while entries := (yield from call(store.scan_entries, account, after, PAGE)):
        pending = list(filter(is_pending, entries))
        while pending:
            failed = yield from _load_faults(store, account, [pending[0].seq])
            job = build_job(pending, single_call=bool(failed))
            withdrawn = yield from _find_withdrawn(store, account, pending[: len(job.seqs)])
            if not withdrawn:
                return job, job.seqs[-1]
            yield from _resolve_faults(store, account, withdrawn)
            pending = [entry for entry in pending if entry.seq not in withdrawn]
        after = entries[-1].seq
    return None, after


def _find_withdrawn(store: Store, account: str, entries: Sequence[Entry]) -> Flow[set[int]]:
    """What was given up by whoever said it before anybody asked a model about it; what tends itself is not that."""
    seqs: set[int] = set()
    for entry in entries:
        retractions = [
            _is_retracted_by_author(entry, history)
            for history in (yield from _load_histories(store, account, entry))
        ]
        if True in retractions and False not in retractions:
            seqs.add(entry.seq)
    return seqs


def load_retracted_claims(
    store: Store, account: str, job: ExtractionJob
) -> Flow[list[list[Claim]]]:
    """What rules had understood of each part of a case and whoever said it gave up; nothing, where it is said again."""
    claims_by_segment: list[list[Claim]] = []
    for segment in job.segments:
        entries = (
            (yield from call(store.scan_entries, account, job.seqs[segment.turn_index] - 1, 1))
            if job.seqs
            else ()
        )
        histories = (
            (yield from _load_histories(store, account, entries[0]))
            if entries and is_pending(entries[0])
            else ()
        )
        verbs = [
            entry.verb
            for history in histories
            if _is_retracted_by_author(entries[0], history)
            for entry in history
        ]
        claims = [verb.claim for verb in verbs if isinstance(verb, Asserted)]
        claims_by_segment.append([claim for claim in claims if claim.kind not in UNLISTED_KINDS])
    return claims_by_segment


def _load_histories(store: Store, account: str, observed: Entry) -> Flow[list[Sequence[Entry]]]:
    """The entries of every memory that was taken from what was said."""
    histories: list[Sequence[Entry]] = []
    for thread in (
        yield from load_threads_from_evidence(store, account, [_get_observation(observed).id])
    ):
        histories += [(yield from call(store.scan_entries, account, thread=thread))]
    return histories


def _is_retracted_by_author(observed: Entry, history: Sequence[Entry]) -> bool | None:
    """Whether the last word on a memory is that whoever said it gives it up; what is not listed has no say."""
    last = next(
        (
            entry.draft
            for entry in reversed(history)
            if isinstance(entry.verb, Asserted | Retracted)
        ),
        None,
    )
    match last:
        case Draft(verb=Retracted(why=why), author=author):
            return (
                observed.draft is not None
                and author == observed.draft.author
                and why not in (NEGATED, SUPERSEDED, EVICTED)
            )
        case Draft(verb=Asserted(claim=claim)) if claim.kind in UNLISTED_KINDS:
            return None
    return False


def is_job_intact(store: Store, account: str, job: ExtractionJob) -> Flow[bool]:
    """Whether all of a case is still there; what was erased or given up while a model was asked is asked no more."""
    observed: list[Entry] = []
    for seq, evidence in zip(job.seqs, job.evidence_ids, strict=bool(job.seqs)):
        entries = yield from call(store.scan_entries, account, seq - 1, 1)
        if not entries or not is_pending(entries[0]) or _get_observation(entries[0]).id != evidence:
            return False
        observed += entries
    return not (yield from _find_withdrawn(store, account, observed))


def is_pending(entry: Entry) -> bool:
    """Whether an entry is evidence that a model is to be asked about."""
    draft = entry.draft
    return (
        draft is not None
        and isinstance(draft.verb, Observed)
        and OPTIONS_KEY in draft.verb.evidence.meta
    )


def build_job(entries: Sequence[Entry], *, single_call: bool) -> ExtractionJob:
    """The case that begins with the first of these entries: what was said next in the same scope, to be asked alike.

    What failed before stays alone, with what was said in the same call, so that it cannot make others fail with it.
    """
    first = entries[0]
    scope, options = _get_scope(first), _get_observation(first).evidence.meta[OPTIONS_KEY]

    def is_same_job(entry: Entry) -> bool:
        is_alike = (_get_scope(entry), _get_observation(entry).evidence.meta[OPTIONS_KEY]) == (
            scope,
            options,
        )
        return is_alike and (entry.tx == first.tx or not single_call)

    members = [
        (entry.seq, _get_observation(entry))
        for entry in takewhile(is_same_job, filter(is_pending, entries))
    ]
    segments = segment_turns(
        (index, _build_turn(observation), restore_own_text(observation.evidence))
        for index, (_, observation) in enumerate(members)
    )
    ids = tuple(observation.id for _, observation in members)
    return ExtractionJob(
        scope, tuple(seq for seq, _ in members), ids, tuple(segments), options, first.at
    )


def _get_observation(entry: Entry) -> Observed:
    assert entry.draft is not None
    assert isinstance(entry.draft.verb, Observed)
    return entry.draft.verb


def _get_scope(entry: Entry) -> Scope:
    assert entry.draft is not None
    assert entry.draft.scope is not None
    return entry.draft.scope


def _build_turn(observation: Observed) -> InputTurn:
    meta = {
        name: value
        for name, value in observation.evidence.meta.items()
        if name not in (OPTIONS_KEY, META_KEY, OWN_SPANS_KEY)
    }
    return InputTurn(
        replace(observation.evidence, meta=meta), observation.evidence.meta.get(META_KEY, {})
    )


# Looking after what failed --------------------------------------------------------------------------------------------


def retry_faults(
    store: Store,
    account: str,
    handle_job: JobHandler,
    fault_ids: Sequence[int],
    attempts: int,
    mutex: Mutex,
) -> Flow[tuple[int, int]]:
    """Ask again about what failed; how many of these faults are mended, and how many are not."""
    selected = yield from _select_faults(store, account, fault_ids)
    yield from drain_queue(store, account, handle_job, attempts, mutex)
    cursor = yield from call(store.get_cursor, account, CONSUMER)
    for fault in (yield from _select_faults(store, account, fault_ids)):
        if fault.seq <= cursor and fault in selected:
            yield from _retry_fault(store, account, handle_job, fault)
    remaining_ids = {fault.id for fault in (yield from _select_faults(store, account, fault_ids))}
    unresolved = sum(1 for fault in selected if fault.id in remaining_ids)
    return len(selected) - unresolved, unresolved


def _select_faults(store: Store, account: str, fault_ids: Sequence[int]) -> Flow[list[Fault]]:
    faults = yield from call(store.list_faults, account)
    return [
        fault
        for fault in faults
        if fault.consumer == CONSUMER and (not fault_ids or fault.id in fault_ids)
    ]


def _retry_fault(store: Store, account: str, handle_job: JobHandler, fault: Fault) -> Flow[None]:
    """Ask once more about what was passed over; what was erased meanwhile is no fault any more."""
    entries = yield from call(store.scan_entries, account, fault.seq - 1, PAGE)
    if not entries or not is_pending(entries[0]):
        yield from call(store.clear_faults, account, [fault.id])
        return
    pending = list(filter(is_pending, entries))
    job = build_job(pending, single_call=True)
    if (yield from _find_withdrawn(store, account, pending[: len(job.seqs)])):
        yield from call(store.clear_faults, account, [fault.id])
        return
    outcome = yield from catch_failure(handle_job(job, None))
    if not (yield from is_job_intact(store, account, job)):
        return
    if isinstance(outcome, Failure):
        yield from _record_failure(store, account, job, outcome)
    else:
        yield from _record_outcome(store, account, job, outcome)


def redact_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Take a model's answer out of every fault whose case was about entries that are to be erased."""
    for fault in (yield from _select_faults(store, account, ())):
        entries = yield from call(store.scan_entries, account, fault.seq - 1, PAGE)
        if (
            entries
            and is_pending(entries[0])
            and not set(build_job(entries, single_call=False).seqs).isdisjoint(seqs)
        ):
            yield from call(store.clear_faults, account, [fault.id])
            yield from call(store.record_fault, account, CONSUMER, fault.seq, REDACTED_ERROR)


def is_threshold_reached(
    store: Store, account: str, threshold: int, scope: Scope | None = None
) -> Flow[bool]:
    """Whether so much waits in a scope, or in any, that it is worth a question to a model."""
    if not threshold:
        return True
    after, tokens = (yield from call(store.get_cursor, account, CONSUMER)), Counter[Scope]()
    while entries := (yield from call(store.scan_entries, account, after, PAGE)):
        for entry in filter(is_pending, entries):
            tokens[_get_scope(entry)] += estimate_tokens(_get_observation(entry).evidence.content)
        if any(
            count >= threshold
            for queued_scope, count in tokens.items()
            if scope in (None, queued_scope)
        ):
            return True
        after = entries[-1].seq
    return False


def count_pending(store: Store, account: str) -> Flow[int]:
    """How many pieces of evidence wait for a model."""
    after, count = (yield from call(store.get_cursor, account, CONSUMER)), 0
    while entries := (yield from call(store.scan_entries, account, after, PAGE)):
        count += sum(1 for entry in entries if is_pending(entry))
        after = entries[-1].seq
    return count
