"""Why a memory is not among the hits: the first thing in its way, from whether it is there at all to its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from told.core.errors import NotFoundError
from told.core.fact import QUARANTINE, Fact
from told.core.filter import matches, record
from told.core.query import Find
from told.flow import Flow, call
from told.read import path, rank, trace
from told.read.gather import Eye, heat_of
from told.read.guard import denials
from told.read.recall import Want


@dataclass(frozen=True, slots=True)
class Reason:
    """What became of one memory in one search: the stage that decided, why, and what it scored if it got that far."""

    id: str
    found: bool
    stage: str
    reason: str
    place: int | None = None
    score: float | None = None
    least: float | None = None
    parts: dict[str, float | None] | None = None
    sources: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The reason as JSON."""
        body = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**{name: value for name, value in body.items() if value is not None}, "sources": list(self.sources)}


def why_not(eye: Eye, want: Want, thread: str) -> Flow[Reason]:
    """Where a memory stands in a search, or what keeps it out of it."""
    find = want.find
    fact = yield from call(eye.store.fact, find.scope.account, thread, find.as_of)
    if fact is None or not find.scope.covers(fact.scope):
        return (yield from _absent(eye, find, thread))
    if denials([fact], eye.guards):
        return Reason(thread, False, "guard", "it may not be shown to this caller")
    if obstacle := _obstacle(fact, find):
        return Reason(thread, False, "plan", obstacle)
    recall = yield from path.recalled(eye, want, also=(fact.seq,))
    order = rank.best_of_facts([*recall.scored, *recall.all])
    places = [one.mark.seq for one in order]
    if fact.seq not in places:
        return Reason(thread, False, "gather", "the index has nothing of it; run `told verify`")
    place = places.index(fact.seq)
    one = order[place]
    score = rank.calibrated(one.score, recall.found, eye.settings)
    probe = replace(recall.probe, also=recall.probe.also[:-1])
    came = trace.sources(one.mark, probe, recall.labels, heat_of(eye, probe))
    kept = any(other.mark.seq == fact.seq for other in recall.scored)
    stage, why = recall.fates.fates().get((fact.seq, one.mark.slot), trace.KEPT)
    reason = f"it is hit number {place + 1}" if kept else why or "after the limit"
    last = rank.calibrated(recall.scored[-1].score, recall.found, eye.settings) if recall.scored else None
    return Reason(thread, kept, stage, reason, place + 1, score, last, trace.parts(one), came)


def _absent(eye: Eye, find: Find, thread: str) -> Flow[Reason]:
    """Nothing of it counts there and then: it never existed, belongs to others, or is no longer or not yet held."""
    account = find.scope.account
    now = yield from call(eye.store.fact, account, thread)
    entries = yield from call(eye.store.thread, account, thread)
    seen = now is None or find.scope.covers(now.scope)
    if not entries or not seen:
        raise NotFoundError(f"There is no memory {thread!r} here.", hint="List them with get_all().")
    gone = "it was given up" if now is None else "it was not held at that time"
    return Reason(thread, False, "plan", gone)


def _obstacle(fact: Fact, find: Find) -> str:
    if fact.kind == QUARANTINE:
        return "it is in quarantine, and waits for somebody to look at it"
    if not find.show_expired and fact.expires <= find.as_of.at:
        return "it has expired; show_expired=True shows it"
    return "" if matches(find.filter, record(fact)) else "the filters leave it out"
