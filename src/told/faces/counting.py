"""The verbs that count, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from typing import Any

from told.core.when import iso
from told.engine import Engine
from told.flow import Flow
from told.read.census import Someone


def stats(engine: Engine) -> Flow[dict[str, Any]]:
    """Counts and sizes."""
    return dict((yield from engine.stats()))


def users(engine: Engine, *, type: Any = None) -> Flow[dict[str, Any]]:
    """Whose memories there are."""
    return {"results": [_row(each) for each in (yield from engine.users(type=type))]}


def _row(each: Someone) -> dict[str, Any]:
    """One of them, in words that code written for other memories knows."""
    return {
        "type": each.sort, "name": each.name, "total_memories": each.memories,
        "created_at": iso(each.first), "updated_at": iso(each.last),
    }  # fmt: skip
