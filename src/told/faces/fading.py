"""The verbs about forgetting, as flows from plain arguments to plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from told.core.fading import Strength
from told.core.query import Event
from told.core.salience import DecayClock
from told.core.when import format_iso
from told.engine import Engine
from told.faces import shapes
from told.flow import Flow
from told.read.about import MemoryDetail
from told.read.plan import parse_int
from told.tend.forget import ForgottenFact

MAX_POINTS = 10_000


def decay(
    engine: Engine, memory_id: str, ids: Mapping[str, Any], *, points: Any, clock: Any, as_of: Any
) -> Flow[dict[str, Any]]:
    """How a memory fades; every reading of its clock is counted from when it was first said."""
    point_count = parse_int(points, "points", 2, MAX_POINTS)
    entry = yield from engine.decay(memory_id, clock=clock, as_of=as_of, ids=ids)
    strength = entry.strength
    return {
        "id": entry.fact.id,
        "memory": entry.fact.text,
        "kind": entry.fact.kind,
        **_strength_fields(entry),
        "now": strength.age,
        "said": [reading - strength.mention_readings[0] for reading in strength.mention_readings],
        "threshold": strength.curve.floor,
        "curve": [list(point) for point in strength.sample_curve(point_count)],
    }


def about(engine: Engine, ids: Mapping[str, Any], *, as_of: Any) -> Flow[dict[str, Any]]:
    """Everything that is remembered, those of a kind together, the strongest first."""
    return {
        "results": [
            _remembered_to_row(entry) for entry in (yield from engine.about(ids, as_of=as_of))
        ]
    }


def forget(engine: Engine, memory_id: str | None, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Give up one memory, or all of a scope that have faded."""
    return {
        "results": [
            _forgotten_to_row(forgotten) for forgotten in (yield from engine.forget(memory_id, ids))
        ]
    }


def _strength_fields(entry: MemoryDetail) -> dict[str, Any]:
    """How strong a memory is, by which rules, and for how long."""
    strength = entry.strength
    return {
        "tier": None if entry.kind is None else entry.kind.tier.value,
        "clock": strength.clock.value,
        "salience": strength.weight,
        "faded": strength.is_faded,
        "fades_at": _fading_fields(strength),
    }


def _fading_fields(strength: Strength) -> dict[str, Any] | None:
    """When a memory fades: by its own clock, how far that is away, and the time, estimated unless that is its clock."""
    remaining, end = strength.remaining, strength.fade_time
    if remaining is None:
        return None
    unit = "days" if strength.clock is DecayClock.TIME else "turns"
    time = None if end is None else format_iso(end)
    return {
        "reading": strength.age + remaining,
        "left": remaining,
        "unit": unit,
        "time": time,
        "estimated": strength.clock is not DecayClock.TIME,
    }


def _remembered_to_row(entry: MemoryDetail) -> dict[str, Any]:
    fact = entry.fact
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    row = {
        "id": fact.id,
        "memory": fact.text,
        "kind": fact.kind,
        "said_at": format_iso(said_at),
        "said": len(entry.strength.mention_readings),
        "words": entry.quote,
        **_strength_fields(entry),
        **fact.scope.ids(),
    }
    extras = {"role": fact.role, "actor_id": fact.actor, "source": fact.source}
    return {**row, **{name: value for name, value in extras.items() if value is not None}}


def _forgotten_to_row(forgotten: ForgottenFact) -> dict[str, Any]:
    fact = forgotten.fact
    event = Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor)
    return {**shapes.event_to_dict(event), "kind": fact.kind, "salience": forgotten.weight}
