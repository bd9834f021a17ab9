"""The verbs about the tiers, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.engine import Engine
from told.flow import Flow


def consolidate(engine: Engine, ids: Mapping[str, Any], *, force: Any) -> Flow[dict[str, Any]]:
    """File what is cold."""
    return (yield from engine.consolidate(ids, force=force)).as_dict()


def tiers(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Where the turns of a scope are."""
    return (yield from engine.tiers(ids)).as_dict()


def registry(engine: Engine, ids: Mapping[str, Any], *, limit: Any) -> Flow[dict[str, Any]]:
    """The exchanges that were said last."""
    return {
        "results": [
            exchange.as_dict() for exchange in (yield from engine.registry(ids, limit=limit))
        ]
    }
