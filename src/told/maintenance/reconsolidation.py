"""Reconsolidation: review recalled memories from the task queue together with related memories.

It runs only on request. A task is leased while it is processed; a failed task is retried after its
lease expires, and becomes a fault when its attempts are used up. Open reviews stay in the queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from told.flow import Flow, call
from told.ids import canonical_json, sha256
from told.ledger.consumer import (
    UNREADABLE_REPLY,
    Consumer,
    Failure,
    Job,
    JobBatch,
    drain,
    record_unreadable,
    redact_faults,
    select_faults,
)
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
from told.ports import LLM, CursorStep, Store, Usage

if TYPE_CHECKING:
    from told.ingest.context import WriteContext

CONSUMER: Final = "reconsolidation"
REVIEW_INTERVAL_US: Final = 7 * DAY_US
"""The time until an open review is due again."""

SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ReconsolidationResult:
    """The result of a run: reviewed and failed tasks, applied operations, events and warnings."""

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
    """Review at most `limit` due memories, the most urgent first."""
    remaining = limit
    lease = ctx.settings.maintenance.reconsolidate_lease * SECOND_US

    def lease_tasks() -> Flow[JobBatch[ReviewTask] | None]:
        nonlocal remaining
        batch_size = min(ctx.settings.maintenance.reconsolidate_batch, remaining)
        if batch_size <= 0:
            return None
        now = ctx.id_generator.now()
        tasks = yield from call(ctx.store.claim_tasks, account, now, batch_size, lease)
        remaining -= len(tasks)
        return JobBatch([Job(task, lease=task) for task in tasks]) if tasks else None

    def find_fault_seq(task: ReviewTask) -> Flow[int | None]:
        fact = yield from call(ctx.store.get_fact, account, task.thread)
        return None if fact is None else fact.seq

    reviewer: Consumer[ReviewTask, ReconsolidationResult] = Consumer(
        name=CONSUMER,
        load_batch=lease_tasks,
        process=partial(_review_task, ctx, account),
        find_fault_seq=find_fault_seq,
        attempts=ctx.settings.maintenance.consumer_attempts,
    )
    run = yield from drain(ctx.store, account, reviewer)
    return sum((_to_task_result(*outcome) for outcome in run.outcomes), ReconsolidationResult())


def _to_task_result(
    task: ReviewTask, outcome: ReconsolidationResult | Failure
) -> ReconsolidationResult:
    if isinstance(outcome, Failure):
        warning = f"The memory {task.thread} could not be reviewed: {outcome}"
        return ReconsolidationResult(failed=1, warnings=(warning,))
    return replace(outcome, tasks=1)


def _review_task(
    ctx: WriteContext, account: str, task: ReviewTask, _: CursorStep | None
) -> Flow[ReconsolidationResult]:
    return review_memory(ctx, account, task)


def review_memory(ctx: WriteContext, account: str, task: ReviewTask) -> Flow[ReconsolidationResult]:
    """Review a memory by rules, then with the model if one is configured, and apply the changes."""
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


# Model proposals


def choose_reflection_llm(ctx: WriteContext) -> LLM | None:
    """Return the model to reflect with, or None if only rules apply."""
    return (
        None
        if ctx.settings.reflect == "rules"
        else ctx.extraction.curation_llm or ctx.extraction.llm
    )


def _apply_proposals(
    ctx: WriteContext, account: str, fact: Fact, inputs: ReflectionInput, now: int
) -> Flow[ReconsolidationResult]:
    """Ask the model for operations, unless it has seen these versions of the memories."""
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
        yield from record_unreadable(
            ctx.store, account, CONSUMER, fact.seq, [proposal.unreadable_reply]
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
    """Return a hash of the model and the fact versions it was shown."""
    return sha256(canonical_json([llm.model, [fact.seq for fact in inputs.facts]]))


# Reviews


def _requeue_review(ctx: WriteContext, account: str, fact: Fact, now: int) -> Flow[None]:
    """Queue a review again if a reason for it remains."""
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
    """Return the open review reasons of each memory."""
    reasons_by_fact: dict[str, tuple[str, ...]] = {}
    for link in links:
        if link.rel == NEEDS_REVIEW and link.until == NEVER:
            reasons_by_fact[link.dst] = (
                *reasons_by_fact.get(link.dst, ()),
                str(link.meta.get("why", "")),
            )
    return reasons_by_fact


# Faults


def redact_reflection_faults(store: Store, account: str) -> Flow[None]:
    """Redact every fault with a model reply, since it may quote text that is to be erased."""
    faults = yield from select_faults(store, account, CONSUMER)
    yield from redact_faults(store, account, [fault for fault in faults if fault.raw])
