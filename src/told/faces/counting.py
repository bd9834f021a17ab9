"""The verbs that count, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from typing import Any

from told.core.when import format_iso
from told.engine import Engine
from told.flow import Flow
from told.read.census import OwnerStatistics


def stats(engine: Engine) -> Flow[dict[str, Any]]:
    """Counts and sizes."""
    return dict((yield from engine.stats()))


def users(engine: Engine, *, type: Any = None) -> Flow[dict[str, Any]]:
    """Whose memories there are."""
    return {"results": [_user_to_row(user) for user in (yield from engine.users(type=type))]}


def _user_to_row(user: OwnerStatistics) -> dict[str, Any]:
    """One of them, in words that code written for other memories knows."""
    return {
        "type": user.owner_type,
        "name": user.name,
        "total_memories": user.memory_count,
        "created_at": format_iso(user.first_at),
        "updated_at": format_iso(user.last_at),
    }
