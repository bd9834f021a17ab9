"""The verbs of the sleep path: what was recalled, what is to be thought over, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.engine.base import check_memory_id, requires_action
from told.engine.minding import ExtractionVerbs
from told.errors import InvalidInput, NotFoundError
from told.flow import Flow, call
from told.ingest.edit import require_fact
from told.maintenance import delta_apply as applying
from told.maintenance import reconsolidation
from told.maintenance.delta_apply import DeltaAuthor, DeltaResult
from told.maintenance.deltas import DeltaClock, parse_delta
from told.maintenance.reconsolidation import ReconsolidationResult
from told.model.fact import Fact
from told.model.policy import Action
from told.model.query import AccessBatch, AccessRecord, AccessState, ReviewReason, ReviewTask
from told.retrieval import request
from told.retrieval.candidates import find_denials
from told.text.tokens import format_value

SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class QueuedReview:
    """A memory that is to be thought over, and why somebody is to look at it, if somebody is."""

    task: ReviewTask
    fact: Fact
    why: tuple[str, ...] = ()


class ReflectionVerbs(ExtractionVerbs):
    """What reads leave behind, and what is made of it while nobody asks."""

    __slots__ = ()

    @requires_action(Action.READ_CONTENT)
    def recalls(
        self, id: str, *, ids: Mapping[str, Any]
    ) -> Flow[tuple[Sequence[AccessRecord], Sequence[AccessState]]]:
        """The recalls of a memory one by one, and how much it was in use from when until when."""
        fact = yield from self._get_visible_memory(check_memory_id(id), ids)
        yield from self.flush_accesses()
        return (yield from call(self.store.access_history, self.account, fact.id))

    @requires_action(Action.DERIVE_CLAIMS)
    def enqueue(self, id: str, *, reason: Any, priority: Any, ids: Mapping[str, Any]) -> Flow[int]:
        """Queue a memory to be thought over; how many tasks are new."""
        if not isinstance(reason, str) or reason not in list(ReviewReason):
            raise InvalidInput(
                f"There is no reason {format_value(reason)}.",
                hint=f"Use one of {', '.join(ReviewReason)}.",
            )
        if (
            isinstance(priority, bool)
            or not isinstance(priority, int | float)
            or not 0 <= priority <= 1
        ):
            raise InvalidInput(
                f"priority must be a number from 0 to 1, not {format_value(priority)}."
            )
        fact = yield from self._get_visible_memory(check_memory_id(id), ids)
        task = ReviewTask(fact.id, ReviewReason(reason), float(priority), self.store.mint.now())
        window = self.settings.reconsolidate_window * SECOND_US
        batch = AccessBatch(tasks=[task], window=window)
        return (yield from call(self.store.record_accesses, self.account, batch))

    @requires_action(Action.READ_CONTENT)
    def queue(self, *, limit: Any = None) -> Flow[Sequence[QueuedReview]]:
        """What is to be thought over, the most urgent first."""
        size = request.parse_limit(limit, None, self.settings)
        yield from self.flush_accesses()
        tasks = yield from call(self.store.list_tasks, self.account, size)
        links = yield from call(
            self.store.find_links, self.account, list({task.thread for task in tasks})
        )
        reasons_by_id = reconsolidation.collect_review_reasons(links)
        queued: list[QueuedReview] = []
        for task in tasks:
            fact = yield from call(self.store.get_fact, self.account, task.thread)
            if fact is not None and not find_denials([fact], self.read_context.guards):
                queued.append(QueuedReview(task, fact, reasons_by_id.get(fact.id, ())))
        return queued

    @requires_action(Action.DERIVE_CLAIMS)
    def reflect(self, *, limit: Any = None) -> Flow[ReconsolidationResult]:
        """Think over what is due, and hold what comes of it beside what it came from."""
        size = request.parse_limit(limit, None, self.settings)
        yield from self.flush_accesses()
        return (yield from reconsolidation.reconsolidate(self.write_context, self.account, size))

    @requires_action(Action.WRITE)
    def apply_delta(self, delta: Any, ids: Mapping[str, Any]) -> Flow[DeltaResult]:
        """Do what a delta says, all of it or nothing."""
        clock = DeltaClock(self.store.mint.now(), self.settings.zone or None)
        operations = parse_delta(delta, clock).require_complete()
        hand = DeltaAuthor(self.caller.name, scope=self.resolve_optional_scope(ids))
        return (
            yield from applying.apply_operations(self.write_context, self.account, operations, hand)
        )

    def _get_visible_memory(self, thread: str, ids: Mapping[str, Any]) -> Flow[Fact]:
        """A memory that the caller may see."""
        fact = yield from require_fact(
            self.store, self.account, thread, self.resolve_optional_scope(ids)
        )
        if find_denials([fact], self.read_context.guards):
            raise NotFoundError(
                f"There is no memory {thread!r} here.", hint="List them with get_all()."
            )
        return fact
