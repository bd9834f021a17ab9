"""The verbs about what was understood, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.engine import Engine
from told.faces import kinds, shapes
from told.flow import Flow


def wait(engine: Engine) -> Flow[dict[str, Any]]:
    """Ask the model about everything that waits for it."""
    done = yield from engine.catch_up()
    events = [shapes.event(event) for found in done.done.values() for event in found.events]
    notes = [note for found in done.done.values() for note in found.warnings]
    body: dict[str, Any] = {"results": events, "understood": len(done.done), "failed": len(done.failed)}
    body |= {"pending": (yield from engine.waiting())}
    judged = yield from engine.judge()
    body |= {"judged": judged.turns} if engine.settings.judge else {}
    failures = [str(failure) for failure in (done.failure, judged.failure) if failure is not None]
    return {**body, "warnings": [*notes, *failures]}


def faults(engine: Engine) -> Flow[dict[str, Any]]:
    """What could not be done, with what a model answered."""
    return {"results": [shapes.fault(each) for each in (yield from engine.faults())]}


def retry_faults(engine: Engine, ids: Any) -> Flow[dict[str, Any]]:
    """Ask again about what failed."""
    return dict((yield from engine.retry_faults(ids)))


def drop_faults(engine: Engine, ids: Any) -> Flow[dict[str, Any]]:
    """Forget what failed."""
    return {"dropped": (yield from engine.drop_faults(ids))}


def contradictions(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Memories that say different things of the same."""
    return {"results": [each.as_dict() for each in (yield from engine.contradictions(ids))]}


def entities(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Whom and what a scope speaks of."""
    return {"results": [shapes.entity(node) for node in (yield from engine.entities(ids))]}


def relations(engine: Engine, name: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """How one that is spoken of bears on others."""
    return {"results": [shapes.relation(each) for each in (yield from engine.relations(name, ids))]}


def identify(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Draw edges between names that may mean the same."""
    return {"results": [each.as_dict() for each in (yield from engine.identify(ids))]}


def quarantine(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """The claims that wait for a review."""
    return shapes.listing((yield from engine.quarantine(ids)))


def reveal(engine: Engine, memory_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """What a memory says with the secrets in it that are kept encrypted."""
    return {"id": memory_id, "memory": (yield from engine.reveal(memory_id, ids=ids))}


def review(engine: Engine, memory_id: str, ids: Mapping[str, Any], *, accept: Any) -> Flow[dict[str, Any]]:
    """Let a claim out of quarantine, or give it up."""
    return shapes.receipt((yield from engine.review(memory_id, accept=accept, ids=ids)))


def tool_result(
    engine: Engine, text: Any, ids: Mapping[str, Any], *, tool: Any, source: Any
) -> Flow[dict[str, Any]]:
    """Keep a tool's output whole, and give back as much of it as an agent needs."""
    done = yield from engine.tool_result(text, ids, tool=tool, source=source)
    about = {} if done.blob is None else {"blob": done.blob, "properties": done.properties}
    return {**shapes.receipt(done.receipt), "text": done.text, **about}


def revoke(engine: Engine, source: Any) -> Flow[dict[str, Any]]:
    """Give up everything that was taken from a source."""
    return shapes.receipt((yield from engine.revoke(source)))


def infer_kinds(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """The kinds that claims in quarantine ask for."""
    return {"results": kinds.inferred((yield from engine.quarantine(ids)), engine.mind.ontology)}
