"""Reconsolidation: what was recalled is taken from the queue and reflected on, with what it belongs to.

Nothing runs by itself: somebody asks for it. A task is taken for a while; whoever fails leaves it for the next look,
and what fails time and again is a fault and leaves the queue. A review that nobody has settled stays in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.errors import ToldError
from told.flow import Flow, call
from told.ids import canonical_json, sha256
from told.ingest.context import WriteContext
from told.ingest.queue import REDACTED_ERROR, UNREADABLE_REPLY
from told.ledger.consumer import Failure, catch_failure
from told.maintenance.delta_apply import NEEDS_REVIEW, DeltaAuthor, DeltaResult, apply_operations
from told.maintenance.deltas import NEEDS_CONTRADICTION_REVIEW, Operation
from told.maintenance.reflection import (
    AUTHOR,
    DAY_US,
    ReflectionInput,
    load_reflection_input,
    propose_operations,
    reflect_by_rules,
)
from told.model.beliefs import CONTRADICTS, Trust
from told.model.fact import NEVER, Fact, Link
from told.model.query import AccessBatch, ReviewReason, ReviewTask
from told.ports import LLM, Fault, Store, Usage

CONSUMER: Final = "reconsolidation"
REVIEW_INTERVAL_US: Final = 7 * DAY_US
"""After how long a review that nobody has settled is due again."""

SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ReconsolidationResult:
    """What a look into the queue came to: how many memories were thought over, what was done, and what went wrong."""

    tasks: int = 0
    failed: int = 0
    operations: tuple[Operation, ...] = ()
    events: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: ReconsolidationResult) -> ReconsolidationResult:
        return ReconsolidationResult(
            self.tasks + other.tasks,
            self.failed + other.failed,
            self.operations + other.operations,
            self.events + other.events,
            self.warnings + other.warnings,
            self.usage + other.usage,
        )


def reconsolidate(ctx: WriteContext, account: str, limit: int) -> Flow[ReconsolidationResult]:
    """Think over what is due, the most urgent first and at most so many, a few at a time."""
    total, count = ReconsolidationResult(), 0
    lease = ctx.settings.reconsolidate_lease * SECOND_US
    while count < limit:
        batch_size = min(ctx.settings.reconsolidate_batch, limit - count)
        tasks = yield from call(
            ctx.store.claim_tasks, account, ctx.id_generator.now(), batch_size, lease
        )
        if not tasks:
            break
        count += len(tasks)
        for task in tasks:
            total += yield from _process_task(ctx, account, task)
    return total


def _process_task(ctx: WriteContext, account: str, task: ReviewTask) -> Flow[ReconsolidationResult]:
    """Think a memory over; a failure leaves it taken until its lease is over, the last one makes it a fault."""
    outcome = yield from catch_failure(review_memory(ctx, account, task))
    if not isinstance(outcome, Failure):
        yield from call(ctx.store.complete_tasks, account, [task.id])
        return replace(outcome, tasks=1)
    if task.attempts >= ctx.settings.consumer_attempts:
        yield from _record_fault(
            ctx.store, account, task.thread, str(outcome), _get_raw_reply(outcome)
        )
        yield from call(ctx.store.complete_tasks, account, [task.id])
    return ReconsolidationResult(
        failed=1, warnings=(f"The memory {task.thread} could not be thought over: {outcome}",)
    )


def _get_raw_reply(failure: Failure) -> str:
    detail = failure.error.detail if isinstance(failure.error, ToldError) else {}
    return str(detail.get("raw") or "")


def _record_fault(store: Store, account: str, thread: str, error: str, raw: str) -> Flow[None]:
    fact = yield from call(store.get_fact, account, thread)
    if fact is not None:
        yield from call(store.record_fault, account, CONSUMER, fact.seq, error, raw)


def review_memory(ctx: WriteContext, account: str, task: ReviewTask) -> Flow[ReconsolidationResult]:
    """Reflect on a memory and apply what comes of it: by rules, then by a model if one is to be asked."""
    fact = yield from call(ctx.store.get_fact, account, task.thread)
    if fact is None:
        return ReconsolidationResult()
    now, zone = ctx.id_generator.now(), ctx.settings.zone or None
    inputs = yield from load_reflection_input(ctx.store, fact, now, zone)
    rule_result = yield from _apply_rules(ctx, account, inputs, now)
    llm_result = yield from _apply_proposals(ctx, account, fact, inputs, now)
    if task.reason is ReviewReason.SCHEDULED_REVIEW:
        yield from _requeue_review(ctx, account, fact, now)
    return rule_result + llm_result


def _apply_rules(
    ctx: WriteContext, account: str, inputs: ReflectionInput, now: int
) -> Flow[ReconsolidationResult]:
    operations = reflect_by_rules(inputs, ctx.extraction.ontology, now)
    if not operations:
        return ReconsolidationResult()
    result = yield from apply_operations(
        ctx, account, operations, DeltaAuthor(AUTHOR, Trust.INFERENCE)
    )
    return _to_result(result)


def _to_result(delta_result: DeltaResult) -> ReconsolidationResult:
    return ReconsolidationResult(
        operations=delta_result.applied,
        events=delta_result.receipt.events,
        warnings=delta_result.receipt.warnings,
    )


# With a model ---------------------------------------------------------------------------------------------------------


def choose_reflection_llm(ctx: WriteContext) -> LLM | None:
    """The model that reflects, if one is to."""
    return (
        None
        if ctx.settings.reflect == "rules"
        else ctx.extraction.curation_llm or ctx.extraction.llm
    )


def _apply_proposals(
    ctx: WriteContext, account: str, fact: Fact, inputs: ReflectionInput, now: int
) -> Flow[ReconsolidationResult]:
    """Ask a model about several memories that it has not seen as they are now."""
    llm = choose_reflection_llm(ctx)
    if (
        llm is None
        or len(inputs.facts) < 2
        or (yield from _is_already_reviewed(ctx, account, fact, inputs, llm))
    ):
        return ReconsolidationResult()
    proposal = yield from propose_operations(llm, inputs.facts, now, ctx.settings.zone or None)
    result = ReconsolidationResult(
        usage=proposal.usage,
        warnings=tuple(f"Refused: operation {refusal}" for refusal in proposal.refused),
    )
    if proposal.unreadable_reply:
        yield from call(
            ctx.store.record_fault,
            account,
            CONSUMER,
            fact.seq,
            UNREADABLE_REPLY,
            proposal.unreadable_reply,
        )
        return result + ReconsolidationResult(warnings=(UNREADABLE_REPLY,))
    if proposal.operations:
        author = DeltaAuthor(f"{AUTHOR}:{llm.model}", Trust.INFERENCE)
        result += _to_result(
            (yield from apply_operations(ctx, account, proposal.operations, author))
        )
    inputs_after = yield from load_reflection_input(ctx.store, fact, now, ctx.settings.zone or None)
    yield from call(
        ctx.store.update_consumer,
        account,
        CONSUMER,
        notes={fact.id: _compute_digest(inputs_after, llm)},
    )
    return result


def _is_already_reviewed(
    ctx: WriteContext, account: str, fact: Fact, inputs: ReflectionInput, llm: LLM
) -> Flow[bool]:
    noted = yield from call(ctx.store.read_notes, account, CONSUMER, [fact.id])
    return noted.get(fact.id) == _compute_digest(inputs, llm)


def _compute_digest(inputs: ReflectionInput, llm: LLM) -> bytes:
    """What a model was shown, as a hash of positions."""
    return sha256(canonical_json([llm.model, [fact.seq for fact in inputs.facts]]))


# Reviews --------------------------------------------------------------------------------------------------------------


def _requeue_review(ctx: WriteContext, account: str, fact: Fact, now: int) -> Flow[None]:
    """Keep a review in the queue for as long as there is a reason for it."""
    links = yield from call(ctx.store.find_links, account, [fact.id])
    review_reasons = collect_review_reasons(links).get(fact.id, ())
    rivals = {
        end
        for link in links
        if link.rel == CONTRADICTS and link.until == NEVER
        for end in (link.src, link.dst)
    }
    open_reasons = [reason for reason in review_reasons if reason != NEEDS_CONTRADICTION_REVIEW]
    for rival in sorted(rivals - {fact.id}):
        if not open_reasons and (yield from call(ctx.store.get_fact, account, rival)) is not None:
            open_reasons = [NEEDS_CONTRADICTION_REVIEW]
    if open_reasons:
        task = ReviewTask(fact.id, ReviewReason.SCHEDULED_REVIEW, 0.0, now + REVIEW_INTERVAL_US)
        yield from call(ctx.store.record_accesses, account, AccessBatch(tasks=[task]))


def collect_review_reasons(links: Sequence[Link]) -> Mapping[str, tuple[str, ...]]:
    """Why somebody is to look at each of some memories."""
    reasons_by_fact: dict[str, tuple[str, ...]] = {}
    for link in links:
        if link.rel == NEEDS_REVIEW and link.until == NEVER:
            reasons_by_fact[link.dst] = (
                *reasons_by_fact.get(link.dst, ()),
                str(link.meta.get("why", "")),
            )
    return reasons_by_fact


# Looking after what failed --------------------------------------------------------------------------------------------


def redact_reflection_faults(store: Store, account: str) -> Flow[None]:
    """Take every answer of a model out of the faults of reflection: it may speak of what is to be erased."""
    faults: Sequence[Fault] = yield from call(store.list_faults, account)
    for fault in faults:
        if fault.consumer == CONSUMER and fault.raw:
            yield from call(store.clear_faults, account, [fault.id])
            yield from call(store.record_fault, account, CONSUMER, fault.seq, REDACTED_ERROR)
