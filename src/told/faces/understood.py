"""The verbs about what was understood, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.engine import Engine
from told.faces import kinds, shapes
from told.flow import Flow


def wait(engine: Engine) -> Flow[dict[str, Any]]:
    """Ask the model about everything that waits for it."""
    drained = yield from engine.catch_up()
    events = [
        shapes.event_to_dict(event)
        for outcome in drained.outcomes.values()
        for event in outcome.events
    ]
    notes = [note for outcome in drained.outcomes.values() for note in outcome.warnings]
    body: dict[str, Any] = {
        "results": events,
        "understood": len(drained.outcomes),
        "failed": len(drained.failed),
    }
    body |= {"pending": (yield from engine.waiting())}
    judgement = yield from engine.judge()
    body |= {"judged": judgement.turns} if engine.settings.judge else {}
    failures = [
        str(failure) for failure in (drained.failure, judgement.failure) if failure is not None
    ]
    return {**body, "warnings": [*notes, *failures]}


def faults(engine: Engine) -> Flow[dict[str, Any]]:
    """What could not be done, with what a model answered."""
    return {"results": [shapes.fault_to_dict(fault) for fault in (yield from engine.faults())]}


def retry_faults(engine: Engine, ids: Any) -> Flow[dict[str, Any]]:
    """Ask again about what failed."""
    return dict((yield from engine.retry_faults(ids)))


def drop_faults(engine: Engine, ids: Any) -> Flow[dict[str, Any]]:
    """Forget what failed."""
    return {"dropped": (yield from engine.drop_faults(ids))}


def contradictions(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Memories that say different things of the same."""
    return {
        "results": [
            contradiction.as_dict() for contradiction in (yield from engine.contradictions(ids))
        ]
    }


def entities(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Whom and what a scope speaks of."""
    return {"results": [shapes.entity_to_dict(node) for node in (yield from engine.entities(ids))]}


def relations(engine: Engine, name: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """How one that is spoken of bears on others."""
    return {
        "results": [
            shapes.relation_to_dict(relation)
            for relation in (yield from engine.relations(name, ids))
        ]
    }


def identify(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Draw edges between names that may mean the same."""
    return {"results": [link.as_dict() for link in (yield from engine.identify(ids))]}


def quarantine(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """The claims that wait for a review."""
    return shapes.facts_to_dict((yield from engine.quarantine(ids)))


def reveal(engine: Engine, memory_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """What a memory says with the secrets in it that are kept encrypted."""
    return {"id": memory_id, "memory": (yield from engine.reveal(memory_id, ids=ids))}


def review(
    engine: Engine, memory_id: str, ids: Mapping[str, Any], *, accept: Any
) -> Flow[dict[str, Any]]:
    """Let a claim out of quarantine, or give it up."""
    return shapes.receipt_to_dict((yield from engine.review(memory_id, accept=accept, ids=ids)))


def tool_result(
    engine: Engine, text: Any, ids: Mapping[str, Any], *, tool: Any, source: Any
) -> Flow[dict[str, Any]]:
    """Keep a tool's output whole, and give back as much of it as an agent needs."""
    result = yield from engine.tool_result(text, ids, tool=tool, source=source)
    blob_fields = (
        {} if result.blob is None else {"blob": result.blob, "properties": result.properties}
    )
    return {**shapes.receipt_to_dict(result.receipt), "text": result.text, **blob_fields}


def revoke(engine: Engine, source: Any) -> Flow[dict[str, Any]]:
    """Give up everything that was taken from a source."""
    return shapes.receipt_to_dict((yield from engine.revoke(source)))


def infer_kinds(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """The kinds that claims in quarantine ask for."""
    return {
        "results": kinds.propose_kinds(
            (yield from engine.quarantine(ids)), engine.extraction.ontology
        )
    }
