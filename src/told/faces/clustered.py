"""The verbs about topics, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.engine import Engine
from told.faces import shapes
from told.flow import Flow


def topics(engine: Engine, ids: Mapping[str, Any], *, as_of: Any) -> Flow[dict[str, Any]]:
    """The topics of a scope."""
    return {"results": [each.as_dict() for each in (yield from engine.topics(ids, as_of=as_of))]}


def topic(engine: Engine, topic_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """One topic, with the turns in it."""
    found, turns = yield from engine.topic(topic_id, ids=ids)
    return {**found.as_dict(), **shapes.listing(turns)}


def file_topics(engine: Engine) -> Flow[dict[str, Any]]:
    """Put what waits into topics."""
    done = yield from engine.file_topics()
    return {"filed": done.exchanges, "made": done.made, "split": done.split, "warnings": list(done.warnings)}


def merge_topics(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Make one of topics that are nearly the same."""
    done = yield from engine.merge_topics(ids)
    merged = [{"id": younger, "into": older} for younger, older in done.merged]
    return {"merged": merged, "warnings": list(done.warnings)}


def abstract_topics(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Make topics of topics."""
    done = yield from engine.abstract_topics(ids)
    supers = [each.as_dict() for each in (yield from engine.topics(ids)) if each.fact.id in done.supers]
    return {"results": supers, "warnings": list(done.warnings)}
