"""The verbs about forgetting, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.core.fading import Strength
from told.core.query import Event
from told.core.salience import Clock
from told.core.when import iso
from told.engine import Engine
from told.faces import shapes
from told.flow import Flow
from told.read.about import Remembered
from told.read.plan import whole
from told.tend.forget import Lost

MOST_POINTS = 10_000


def decay(
    engine: Engine, memory_id: str, ids: Mapping[str, Any], *, points: Any, clock: Any, as_of: Any
) -> Flow[dict[str, Any]]:
    """How a memory fades; every reading of its clock is counted from when it was first said."""
    wanted = whole(points, "points", 2, MOST_POINTS)
    found = yield from engine.decay(memory_id, clock=clock, as_of=as_of, ids=ids)
    strong = found.strength
    return {
        "id": found.fact.id, "memory": found.fact.text, "kind": found.fact.kind, **_standing(found),
        "now": strong.age, "said": [reading - strong.said[0] for reading in strong.said],
        "threshold": strong.curve.floor, "curve": [list(point) for point in strong.drawn(wanted)],
    }  # fmt: skip


def about(engine: Engine, ids: Mapping[str, Any], *, as_of: Any) -> Flow[dict[str, Any]]:
    """Everything that is remembered, those of a kind together, the strongest first."""
    return {"results": [_remembered(each) for each in (yield from engine.about(ids, as_of=as_of))]}


def forget(engine: Engine, memory_id: str | None, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Give up one memory, or all of a scope that have faded."""
    return {"results": [_lost(each) for each in (yield from engine.forget(memory_id, ids))]}


def _standing(found: Remembered) -> dict[str, Any]:
    """How strong a memory is, by which rules, and for how long."""
    strong = found.strength
    return {
        "tier": None if found.kind is None else found.kind.tier.value, "clock": strong.clock.value,
        "salience": strong.weight, "faded": strong.faded, "fades_at": _fades_at(strong),
    }  # fmt: skip


def _fades_at(strong: Strength) -> dict[str, Any] | None:
    """When a memory fades: by its own clock, how far that is away, and the time, estimated unless that is its clock."""
    left, ends = strong.left, strong.ends
    if left is None:
        return None
    unit = "days" if strong.clock is Clock.TIME else "turns"
    time = None if ends is None else iso(ends)
    return {"reading": strong.age + left, "left": left, "unit": unit, "time": time,
            "estimated": strong.clock is not Clock.TIME}  # fmt: skip


def _remembered(found: Remembered) -> dict[str, Any]:
    fact = found.fact
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    row = {
        "id": fact.id, "memory": fact.text, "kind": fact.kind, "said_at": iso(said_at),
        "said": len(found.strength.said), "words": found.words, **_standing(found), **fact.scope.ids(),
    }  # fmt: skip
    extras = {"role": fact.role, "actor_id": fact.actor, "source": fact.source}
    return {**row, **{name: value for name, value in extras.items() if value is not None}}


def _lost(each: Lost) -> dict[str, Any]:
    fact = each.fact
    event = Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor)
    return {**shapes.event(event), "kind": fact.kind, "salience": each.weight}
