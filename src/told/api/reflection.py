"""The verbs of the sleep path: as flows from plain arguments to plain JSON, and in both colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.api import serialize
from told.api.session import Opened
from told.engine import Engine
from told.engine.reflecting import QueuedReview
from told.flow import Flow
from told.maintenance.deltas import operation_to_json
from told.model.fact import NEVER
from told.model.query import AccessRecord, AccessState
from told.text.dates import format_iso

# Flows ----------------------------------------------------------------------------------------------------------------


def recalls(engine: Engine, memory_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """When a memory was recalled, and how much it was in use."""
    accesses, states = yield from engine.recalls(memory_id, ids=ids)
    return {
        "results": [_access_to_row(item) for item in accesses],
        "states": [_access_state_to_row(item) for item in states],
    }


def enqueue(
    engine: Engine, memory_id: str, ids: Mapping[str, Any], *, reason: Any, priority: Any
) -> Flow[dict[str, Any]]:
    """Queue a memory to be thought over."""
    new = yield from engine.enqueue(memory_id, reason=reason, priority=priority, ids=ids)
    return {"id": memory_id, "queued": bool(new)}


def queue(engine: Engine, limit: Any) -> Flow[dict[str, Any]]:
    """What is to be thought over."""
    return {"results": [_queued_to_row(item) for item in (yield from engine.queue(limit=limit))]}


def reflect(engine: Engine, limit: Any) -> Flow[dict[str, Any]]:
    """Think over what is due."""
    result = yield from engine.reflect(limit=limit)
    body = {
        "results": [serialize.event_to_dict(event) for event in result.events],
        "operations": [operation_to_json(op) for op in result.operations],
    }
    counts = {"tasks": result.tasks, "failed": result.failed, "usage": result.usage.as_dict()}
    return {**body, **counts, "warnings": list(result.warnings)}


def apply_delta(engine: Engine, delta: Any, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Do what a delta says, all of it or nothing."""
    result = yield from engine.apply_delta(delta, ids)
    return {
        **serialize.receipt_to_dict(result.receipt),
        "operations": [operation_to_json(op) for op in result.applied],
    }


def _access_to_row(record: AccessRecord) -> dict[str, Any]:
    row = {
        "at": format_iso(record.at),
        "rank": record.rank,
        "score": record.score,
        "access": record.access.value,
    }
    return {**row, **({"query_hash": record.query} if record.query else {})}


def _access_state_to_row(state: AccessState) -> dict[str, Any]:
    until = None if state.until >= NEVER else format_iso(state.until)
    return {
        "since": format_iso(state.since),
        "until": until,
        "count": state.count,
        "strength": state.strength,
    }


def _queued_to_row(queued: QueuedReview) -> dict[str, Any]:
    task = queued.task
    row = {
        "task": task.id,
        "id": task.thread,
        "memory": queued.fact.text,
        "reason": task.reason.value,
    }
    row |= {"priority": task.priority, "due": format_iso(task.due), "attempts": task.attempts}
    return {**row, **({"why": list(queued.why)} if queued.why else {})}


# Colours --------------------------------------------------------------------------------------------------------------


class Reflected(Opened):
    """What reads leave behind and what is made of it, blocking."""

    def recalls(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """When a memory was recalled, at which rank and with which score, and how much it was in use."""
        return self._run(recalls(self.engine, memory_id, _scope_ids(user_id, agent_id, run_id)))

    def enqueue(
        self,
        memory_id: str,
        *,
        reason: str = "explicit",
        priority: float = 1.0,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Queue a memory to be thought over by `reflect()`."""
        ids = _scope_ids(user_id, agent_id, run_id)
        return self._run(enqueue(self.engine, memory_id, ids, reason=reason, priority=priority))

    def queue(self, *, limit: int | None = None) -> dict[str, Any]:
        """What is to be thought over, the most urgent first, with the reasons why somebody should look at it."""
        return self._run(queue(self.engine, limit))

    def reflect(self, *, limit: int | None = None) -> dict[str, Any]:
        """Think over what is queued and due; what comes of it stands beside the memories it came from."""
        return self._run(reflect(self.engine, limit))

    def apply_delta(
        self,
        delta: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Do what a delta says, an operation or a list of them as JSON: all of it, or nothing and an error."""
        return self._run(apply_delta(self.engine, delta, _scope_ids(user_id, agent_id, run_id)))


class AsyncReflected(Opened):
    """What reads leave behind and what is made of it, on the event loop."""

    async def recalls(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """When a memory was recalled, at which rank and with which score, and how much it was in use."""
        return await self._arun(
            recalls(self.engine, memory_id, _scope_ids(user_id, agent_id, run_id))
        )

    async def enqueue(
        self,
        memory_id: str,
        *,
        reason: str = "explicit",
        priority: float = 1.0,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Queue a memory to be thought over by `reflect()`."""
        ids = _scope_ids(user_id, agent_id, run_id)
        return await self._arun(
            enqueue(self.engine, memory_id, ids, reason=reason, priority=priority)
        )

    async def queue(self, *, limit: int | None = None) -> dict[str, Any]:
        """What is to be thought over, the most urgent first, with the reasons why somebody should look at it."""
        return await self._arun(queue(self.engine, limit))

    async def reflect(self, *, limit: int | None = None) -> dict[str, Any]:
        """Think over what is queued and due; what comes of it stands beside the memories it came from."""
        return await self._arun(reflect(self.engine, limit))

    async def apply_delta(
        self,
        delta: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Do what a delta says, an operation or a list of them as JSON: all of it, or nothing and an error."""
        return await self._arun(
            apply_delta(self.engine, delta, _scope_ids(user_id, agent_id, run_id))
        )


def _scope_ids(
    user_id: str | None, agent_id: str | None, run_id: str | None
) -> dict[str, str | None]:
    return {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
