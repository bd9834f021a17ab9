"""The verbs about topics, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.engine import Engine
from told.faces import shapes
from told.flow import Flow


def topics(engine: Engine, ids: Mapping[str, Any], *, as_of: Any) -> Flow[dict[str, Any]]:
    """The topics of a scope."""
    return {"results": [topic.as_dict() for topic in (yield from engine.topics(ids, as_of=as_of))]}


def topic(engine: Engine, topic_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """One topic, with the turns in it."""
    topic, turns = yield from engine.topic(topic_id, ids=ids)
    return {**topic.as_dict(), **shapes.facts_to_dict(turns)}


def file_topics(engine: Engine) -> Flow[dict[str, Any]]:
    """Put what waits into topics."""
    filed = yield from engine.file_topics()
    return {
        "filed": filed.exchanges,
        "made": filed.created,
        "split": filed.split,
        "warnings": list(filed.warnings),
    }


def merge_topics(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Make one of topics that are nearly the same."""
    result = yield from engine.merge_topics(ids)
    merged = [{"id": younger, "into": older} for younger, older in result.merged]
    return {"merged": merged, "warnings": list(result.warnings)}


def abstract_topics(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Make topics of topics."""
    result = yield from engine.abstract_topics(ids)
    supers = [
        topic.as_dict()
        for topic in (yield from engine.topics(ids))
        if topic.fact.id in result.supertopics
    ]
    return {"results": supers, "warnings": list(result.warnings)}
