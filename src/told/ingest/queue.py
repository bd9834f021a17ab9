"""The extraction queue: evidence in the ledger that a model has not been asked about yet.

The ledger is the queue. Pending evidence names its extractor in its metadata, and a cursor marks
how far extraction has come. The claims commit together with the cursor, so no evidence is lost or
extracted twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any

from told.curation.decisions import EVICTED, NEGATED, SUPERSEDED
from told.flow import Flow, call
from told.ingest.messages import (
    OWN_SPANS_KEY,
    InputTurn,
    TurnSegment,
    restore_own_text,
    segment_turns,
)
from told.ledger import consumer
from told.ledger.consumer import Consumer, Failure, Job, JobBatch, Mutex, drain
from told.ledger.history import load_threads_from_evidence
from told.model.entry import Asserted, Claim, Draft, Entry, Observed, Retracted
from told.model.fact import UNLISTED_KINDS
from told.model.query import Event
from told.model.scope import Scope
from told.ports import CursorStep, Store, Usage
from told.text.tokens import estimate_tokens

CONSUMER = "extraction"
OPTIONS_KEY = "ask"
"""The metadata key of pending evidence that holds its extraction options."""

META_KEY = "meta"
"""The metadata key of pending evidence that holds the metadata for its facts."""

PAGE = 256


@dataclass(frozen=True, slots=True)
class ExtractionJob:
    """Evidence to extract from together, split into the segments that each speaker said."""

    scope: Scope
    seqs: tuple[int, ...]
    evidence_ids: tuple[str, ...]
    segments: tuple[TurnSegment, ...]
    options: Mapping[str, Any]
    observed_at: int


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """The result of one extraction job."""

    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    skipped: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The result of a drain: outcomes by evidence ids, skipped jobs and the stopping failure."""

    outcomes: Mapping[tuple[str, ...], ExtractionOutcome]
    failed: tuple[tuple[str, ...], ...] = ()
    failure: Failure | None = None


def sum_usage(outcomes: Iterable[ExtractionOutcome]) -> Usage:
    """Return the total token usage of some outcomes."""
    return sum((outcome.usage for outcome in outcomes), Usage())


JobHandler = Callable[[ExtractionJob, "CursorStep | None"], Flow[ExtractionOutcome]]
"""A function that runs the extractor on a job and commits the claims with the cursor step."""


def drain_queue(
    store: Store, account: str, handle_job: JobHandler, attempts: int, mutex: Mutex
) -> Flow[DrainResult]:
    """Extract from all pending evidence in order; only one drain runs per process."""
    run = yield from drain(
        store, account, make_extraction_consumer(store, account, handle_job, attempts, mutex)
    )
    outcomes: dict[tuple[str, ...], ExtractionOutcome] = {}
    failed: list[tuple[str, ...]] = []
    for job, outcome in run.outcomes:
        if isinstance(outcome, Failure):
            failed.append(job.evidence_ids)
        else:
            outcomes[job.evidence_ids] = outcome
    return DrainResult(outcomes, tuple(failed), run.failure)


def make_extraction_consumer(
    store: Store, account: str, handle_job: JobHandler, attempts: int, mutex: Mutex
) -> Consumer[ExtractionJob, ExtractionOutcome]:
    """Build the consumer that extracts claims from pending evidence."""
    return Consumer(
        name=CONSUMER,
        load_batch=partial(_load_batch, store, account),
        process=handle_job,
        is_intact=partial(is_job_intact, store, account),
        list_unreadable=lambda outcome: outcome.unreadable_replies,
        attempts=attempts,
        mutex=mutex,
    )


def _load_batch(store: Store, account: str) -> Flow[JobBatch[ExtractionJob]]:
    before = yield from call(store.get_cursor, account, CONSUMER)
    job, after = yield from _load_next_job(store, account, before)
    if job is None:
        return JobBatch(cursors={CONSUMER: after}, is_last=True)
    return JobBatch([Job(job, CursorStep(CONSUMER, before, after), job.seqs)])


def _load_next_job(
    store: Store, account: str, after: int
) -> Flow[tuple[ExtractionJob | None, int]]:
    """Return the next job after a position, and the cursor after it.

    Skip evidence that was withdrawn and resolve its faults.
    """
    while entries := (yield from call(store.scan_entries, account, after, PAGE)):
        pending = list(filter(is_pending, entries))
        while pending:
            failed = yield from consumer.load_faults(store, account, CONSUMER, [pending[0].seq])
            job = build_job(pending, single_call=bool(failed))
            withdrawn = yield from _find_withdrawn(store, account, pending[: len(job.seqs)])
            if not withdrawn:
                return job, job.seqs[-1]
            yield from consumer.resolve_faults(store, account, CONSUMER, withdrawn)
            pending = [entry for entry in pending if entry.seq not in withdrawn]
        after = entries[-1].seq
    return None, after


def _find_withdrawn(store: Store, account: str, entries: Sequence[Entry]) -> Flow[set[int]]:
    """Return the positions of evidence whose facts its author retracted before extraction."""
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
    """Return, for each segment, the claims found by rules that the author has retracted since."""
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
    """Return the history of every memory derived from an observation."""
    histories: list[Sequence[Entry]] = []
    for thread in (
        yield from load_threads_from_evidence(store, account, [_get_observation(observed).id])
    ):
        histories += [(yield from call(store.scan_entries, account, thread=thread))]
    return histories


def _is_retracted_by_author(observed: Entry, history: Sequence[Entry]) -> bool | None:
    """Return whether the author retracted a memory last; None for kinds that are not listed."""
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
    """Return whether no evidence of a job was erased or withdrawn."""
    observed: list[Entry] = []
    for seq, evidence in zip(job.seqs, job.evidence_ids, strict=bool(job.seqs)):
        entries = yield from call(store.scan_entries, account, seq - 1, 1)
        if not entries or not is_pending(entries[0]) or _get_observation(entries[0]).id != evidence:
            return False
        observed += entries
    return not (yield from _find_withdrawn(store, account, observed))


def is_pending(entry: Entry) -> bool:
    """Return whether an entry is evidence that is queued for extraction."""
    draft = entry.draft
    return (
        draft is not None
        and isinstance(draft.verb, Observed)
        and OPTIONS_KEY in draft.verb.evidence.meta
    )


def build_job(entries: Sequence[Entry], *, single_call: bool) -> ExtractionJob:
    """Build a job from the first entries with the same scope and options.

    With `single_call`, include only entries of one transaction, to isolate a job that failed.
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


# Faults


def retry_faults(
    store: Store,
    account: str,
    handle_job: JobHandler,
    fault_ids: Sequence[int],
    attempts: int,
    mutex: Mutex,
) -> Flow[tuple[int, int]]:
    """Extract again from evidence that failed; return how many faults are resolved and remain."""
    extraction = make_extraction_consumer(store, account, handle_job, attempts, mutex)
    load_job = partial(_load_job_at, store, account)
    return (
        yield from consumer.retry_faults(
            store, account, extraction, fault_ids, load_job, drain_first=True
        )
    )


def _load_job_at(store: Store, account: str, seq: int) -> Flow[Job[ExtractionJob] | None]:
    """Return the job at a position, or None if its evidence was erased or withdrawn."""
    entries = yield from call(store.scan_entries, account, seq - 1, PAGE)
    if not entries or not is_pending(entries[0]):
        return None
    pending = list(filter(is_pending, entries))
    job = build_job(pending, single_call=True)
    if (yield from _find_withdrawn(store, account, pending[: len(job.seqs)])):
        return None
    return Job(job, seqs=job.seqs)


def redact_faults(store: Store, account: str, seqs: Collection[int]) -> Flow[None]:
    """Redact the faults of jobs that contain any of the entries to erase."""
    faults = []
    for fault in (yield from consumer.select_faults(store, account, CONSUMER)):
        entries = yield from call(store.scan_entries, account, fault.seq - 1, PAGE)
        if (
            entries
            and is_pending(entries[0])
            and not set(build_job(entries, single_call=False).seqs).isdisjoint(seqs)
        ):
            faults.append(fault)
    yield from consumer.redact_faults(store, account, faults)


def is_threshold_reached(
    store: Store, account: str, threshold: int, scope: Scope | None = None
) -> Flow[bool]:
    """Return whether enough tokens are pending in a scope, or in any scope, to ask a model."""
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
    """Return the number of evidence entries that are queued for extraction."""
    after, count = (yield from call(store.get_cursor, account, CONSUMER)), 0
    while entries := (yield from call(store.scan_entries, account, after, PAGE)):
        count += sum(1 for entry in entries if is_pending(entry))
        after = entries[-1].seq
    return count
