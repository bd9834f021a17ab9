"""The dictionaries callers see; one place, so that every face shows the same thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.core.fact import NEVER, Fact
from told.core.query import Bundle, Event, Hit, Receipt, Trace
from told.core.when import iso
from told.ports import Fault
from told.read.entities import Relation
from told.read.recall import Seen


def item(fact: Fact, score: float | None = None) -> dict[str, Any]:
    """One memory: what each has, and what this one has beside it that is known and out of the ordinary."""
    created = iso(fact.created_at)
    row: dict[str, Any] = {
        "id": fact.id, "memory": fact.text, "hash": fact.md5,
        "metadata": {key: _copied(value) for key, value in fact.meta.items()} if fact.meta else {}, "score": score,
        "created_at": created, "updated_at": created if fact.updated_at == fact.created_at else iso(fact.updated_at),
        **fact.scope.ids(),
    }  # fmt: skip
    if fact.actor is not None:
        row["actor_id"] = fact.actor
    if fact.role is not None:
        row["role"] = fact.role
    if fact.source is not None:
        row["source"] = fact.source
    if fact.kind != "memory":
        row["kind"] = fact.kind
    if fact.said_at is not None:
        row["said_at"] = iso(fact.said_at)
    if fact.expires != NEVER:
        row["expiration_date"] = iso(fact.expires)
    if fact.predicate is not None:
        row |= _triple(fact)
    if fact.polarity != "asserted":
        row["polarity"] = fact.polarity
    if fact.modality != "stated":
        row["modality"] = fact.modality
    if fact.confidence != 1.0:
        row["confidence"] = fact.confidence
    if fact.precision != "open":
        row |= _valid(fact)
    return row


def _triple(fact: Fact) -> Mapping[str, Any]:
    """What a memory says of whom, as far as that is known."""
    return _known(subject=fact.subject, predicate=fact.predicate, object=fact.object)


def _valid(fact: Fact) -> Mapping[str, Any]:
    """When a memory holds in the world, where that is more than since it was said."""
    valid = fact.valid()
    if valid.end is None and valid.start == fact.said_at:
        return {}
    start, end = (None if at is None else iso(at) for at in (valid.start, valid.end))
    return _known(valid_from=start, valid_to=end, precision=valid.precision)


def _known(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _copied(value: Any) -> Any:
    """The same JSON, the caller's to change."""
    if isinstance(value, dict):
        return {key: _copied(member) for key, member in value.items()}
    return [_copied(member) for member in value] if isinstance(value, list) else value


def event(change: Event) -> dict[str, Any]:
    """What a write did to one memory, in both spellings its readers know."""
    row: dict[str, Any] = {"id": change.id, "event": change.event, "memory": change.text}
    if change.event in ("ADD", "UPDATE"):
        row["new_memory"] = change.text
    if change.event in ("UPDATE", "DELETE"):
        row["old_memory"] = row["previous_memory"] = change.previous
    if change.actor is not None:
        row["actor_id"] = change.actor
    if change.role is not None:
        row["role"] = change.role
    return row


def receipt(done: Receipt) -> dict[str, Any]:
    """What a write did."""
    body: dict[str, Any] = {"results": [event(change) for change in done.events]}
    if done.extraction:
        body |= {"extraction": done.extraction, "usage": dict(done.usage)}
    if done.skipped:
        body["skipped"] = [dict(row) for row in done.skipped]
    if done.warnings:
        body["warnings"] = list(done.warnings)
    return body


def results(seen: Seen, *, explained: bool = False) -> dict[str, Any]:
    """What a search found."""
    rows = [_hit(hit, explained=explained) for hit in seen.hits]
    body: dict[str, Any] = {"results": rows, "confidence": seen.confidence}
    return _with(body, warnings=seen.warnings)


def _hit(hit: Hit, *, explained: bool) -> dict[str, Any]:
    row = item(hit.fact, hit.score)
    if hit.also or hit.conflicts:
        row = _with(row, also=hit.also, conflicts=hit.conflicts)
    if hit.superseded:
        row["superseded_by"] = hit.superseded
    return {**row, "score_details": {**hit.parts, "final_score": hit.score}} if explained else row


def explanation(seen: Seen, trace: Trace) -> dict[str, Any]:
    """Why a search found what it found."""
    return _with({**trace.as_dict(), "confidence": seen.confidence}, warnings=seen.warnings)


def bundle(found: Bundle) -> dict[str, Any]:
    """A context as JSON."""
    body = {
        "text": found.text, "tokens": found.tokens, "budget": found.budget,
        "results": [_hit(hit, explained=False) for hit in found.hits], "trace": found.trace.as_dict(),
    }  # fmt: skip
    return _with(body, warnings=found.warnings, messages=[dict(message) for message in found.messages])


def fault(found: Fault) -> dict[str, Any]:
    """What could not be done."""
    row = {"id": found.id, "consumer": found.consumer, "seq": found.seq, "error": found.error, "at": iso(found.at)}
    return {**row, "attempts": found.attempts, **({"raw": found.raw} if found.raw else {})}


def entity(node: Fact) -> dict[str, Any]:
    """Whom or what memories speak of."""
    about = {name: node.meta[name] for name in ("name", "type", "description") if name in node.meta}
    return {"id": node.id, **about}


def relation(found: Relation) -> dict[str, Any]:
    """How one bears on another."""
    source, target = (node.meta.get("name", node.text) for node in (found.source, found.target))
    return {"source": source, "relation": found.relation, "target": target, "weight": found.weight}


def _with(body: dict[str, Any], **lists: Sequence[Any]) -> dict[str, Any]:
    """The body and those lists that are not empty."""
    return {**body, **{name: list(rows) for name, rows in lists.items() if rows}}


def listing(facts: Sequence[Fact], against: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """Memories without scores."""
    others = against or {}
    return {"results": [_with(item(fact), conflicts=others.get(fact.id, ())) for fact in facts]}


def counts(rows: Mapping[str, int]) -> dict[str, Any]:
    """Row counts by view."""
    return {"rebuilt": dict(rows)}
