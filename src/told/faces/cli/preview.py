"""What an erasure would reach, before anything is destroyed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from told.core.errors import InvalidInput, NotFoundError
from told.core.policy import Action
from told.flow import Flow, run
from told.ledger import erase

if TYPE_CHECKING:
    from told.engine import Engine
    from told.faces.sdk import Memory


def erasure(memory: Memory, memory_id: str | None, ids: Mapping[str, Any], source: str | None) -> dict[str, Any]:
    """The memories, the evidence and the number of ledger entries an erasure would destroy."""
    memory.engine.allow(Action.REQUEST_DELETION)
    found = run(_reach(memory.engine, memory_id, ids, source))
    if not found.seqs:
        raise NotFoundError("There is nothing to erase there.")
    held = [memory.get(thread) for thread in found.threads]
    return {
        "results": [row for row in held if row is not None], "memories": list(found.threads),
        "evidence": len(found.evidence), "entries": len(found.seqs),
    }  # fmt: skip


def _reach(
    engine: Engine, memory_id: str | None, ids: Mapping[str, Any], source: str | None
) -> Flow[erase.Closure]:
    named = {name: value for name, value in ids.items() if value is not None}
    if (memory_id is not None) + bool(named) + (source is not None) != 1:
        raise InvalidInput("Say what to erase: a memory id, a scope or a source, and only one of them.")
    if memory_id is not None:
        return erase.of_thread(engine.store, engine.account, memory_id)
    if source is not None:
        return erase.of_source(engine.store, engine.account, source)
    return erase.of_scope(engine.store, engine.scope(named))
