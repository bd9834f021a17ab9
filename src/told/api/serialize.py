"""The dictionaries callers see; one place, so that every face shows the same thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.model.fact import NEVER, Fact
from told.model.query import Bundle, Event, Hit, Receipt, Trace
from told.ports import Fault
from told.retrieval.listing import EntityRelation
from told.retrieval.state import SearchResult
from told.text.dates import format_iso


def fact_to_dict(fact: Fact, score: float | None = None) -> dict[str, Any]:
    """One memory: what each has, and what this one has beside it that is known and out of the ordinary."""
    created = format_iso(fact.created_at)
    row: dict[str, Any] = {
        "id": fact.id,
        "memory": fact.text,
        "hash": fact.md5,
        "metadata": {key: _copy_json(value) for key, value in fact.meta.items()}
        if fact.meta
        else {},
        "score": score,
        "created_at": created,
        "updated_at": created
        if fact.updated_at == fact.created_at
        else format_iso(fact.updated_at),
        **fact.scope.ids(),
    }
    if fact.actor is not None:
        row["actor_id"] = fact.actor
    if fact.role is not None:
        row["role"] = fact.role
    if fact.source is not None:
        row["source"] = fact.source
    if fact.kind != "memory":
        row["kind"] = fact.kind
    if fact.said_at is not None:
        row["said_at"] = format_iso(fact.said_at)
    if fact.expires != NEVER:
        row["expiration_date"] = format_iso(fact.expires)
    if fact.predicate is not None:
        row |= _triple_fields(fact)
    if fact.polarity != "asserted":
        row["polarity"] = fact.polarity
    if fact.modality != "stated":
        row["modality"] = fact.modality
    if fact.confidence != 1.0:
        row["confidence"] = fact.confidence
    if fact.precision != "open":
        row |= _validity_fields(fact)
    return row


def _triple_fields(fact: Fact) -> Mapping[str, Any]:
    """What a memory says of whom, as far as that is known."""
    return _drop_none(subject=fact.subject, predicate=fact.predicate, object=fact.object)


def _validity_fields(fact: Fact) -> Mapping[str, Any]:
    """When a memory holds in the world, where that is more than since it was said."""
    valid = fact.valid_interval()
    if valid.end is None and valid.start == fact.said_at:
        return {}
    start, end = (None if at is None else format_iso(at) for at in (valid.start, valid.end))
    return _drop_none(valid_from=start, valid_to=end, precision=valid.precision)


def _drop_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _copy_json(value: Any) -> Any:
    """The same JSON, the caller's to change."""
    if isinstance(value, dict):
        return {key: _copy_json(member) for key, member in value.items()}
    return [_copy_json(member) for member in value] if isinstance(value, list) else value


def event_to_dict(event: Event) -> dict[str, Any]:
    """What a write did to one memory, in both spellings its readers know."""
    row: dict[str, Any] = {"id": event.id, "event": event.event, "memory": event.text}
    if event.event in ("ADD", "UPDATE"):
        row["new_memory"] = event.text
    if event.event in ("UPDATE", "DELETE"):
        row["old_memory"] = row["previous_memory"] = event.previous
    if event.actor is not None:
        row["actor_id"] = event.actor
    if event.role is not None:
        row["role"] = event.role
    return row


def receipt_to_dict(receipt: Receipt) -> dict[str, Any]:
    """What a write did."""
    body: dict[str, Any] = {"results": [event_to_dict(event) for event in receipt.events]}
    if receipt.extraction:
        body |= {"extraction": receipt.extraction, "usage": dict(receipt.usage)}
    if receipt.skipped:
        body["skipped"] = [dict(row) for row in receipt.skipped]
    if receipt.warnings:
        body["warnings"] = list(receipt.warnings)
    return body


def search_result_to_dict(result: SearchResult, *, with_details: bool = False) -> dict[str, Any]:
    """What a search found."""
    rows = [_hit_to_dict(hit, with_details=with_details) for hit in result.hits]
    body: dict[str, Any] = {"results": rows, "confidence": result.confidence}
    return _add_nonempty(body, warnings=result.warnings)


def _hit_to_dict(hit: Hit, *, with_details: bool) -> dict[str, Any]:
    row = fact_to_dict(hit.fact, hit.score)
    if hit.also or hit.conflicts:
        row = _add_nonempty(row, also=hit.also, conflicts=hit.conflicts)
    if hit.superseded:
        row["superseded_by"] = hit.superseded
    return (
        {**row, "score_details": {**hit.parts, "final_score": hit.score}} if with_details else row
    )


def explanation_to_dict(result: SearchResult, trace: Trace) -> dict[str, Any]:
    """Why a search found what it found."""
    return _add_nonempty(
        {**trace.as_dict(), "confidence": result.confidence}, warnings=result.warnings
    )


def bundle_to_dict(bundle: Bundle) -> dict[str, Any]:
    """A context as JSON."""
    body = {
        "text": bundle.text,
        "tokens": bundle.tokens,
        "budget": bundle.budget,
        "results": [_hit_to_dict(hit, with_details=False) for hit in bundle.hits],
        "trace": bundle.trace.as_dict(),
    }
    return _add_nonempty(
        body, warnings=bundle.warnings, messages=[dict(message) for message in bundle.messages]
    )


def fault_to_dict(fault: Fault) -> dict[str, Any]:
    """What could not be done."""
    row = {
        "id": fault.id,
        "consumer": fault.consumer,
        "seq": fault.seq,
        "error": fault.error,
        "at": format_iso(fault.at),
    }
    return {**row, "attempts": fault.attempts, **({"raw": fault.raw} if fault.raw else {})}


def entity_to_dict(node: Fact) -> dict[str, Any]:
    """Whom or what memories speak of."""
    fields = {
        name: node.meta[name] for name in ("name", "type", "description") if name in node.meta
    }
    return {"id": node.id, **fields}


def relation_to_dict(relation: EntityRelation) -> dict[str, Any]:
    """How one bears on another."""
    source, target = (
        node.meta.get("name", node.text) for node in (relation.source, relation.target)
    )
    return {
        "source": source,
        "relation": relation.relation,
        "target": target,
        "weight": relation.weight,
    }


def _add_nonempty(body: dict[str, Any], **lists: Sequence[Any]) -> dict[str, Any]:
    """The body and those lists that are not empty."""
    return {**body, **{name: list(rows) for name, rows in lists.items() if rows}}


def facts_to_dict(
    facts: Sequence[Fact], conflicts: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Memories without scores."""
    conflicts_by_id = conflicts or {}
    return {
        "results": [
            _add_nonempty(fact_to_dict(fact), conflicts=conflicts_by_id.get(fact.id, ()))
            for fact in facts
        ]
    }


def rebuild_counts_to_dict(rows: Mapping[str, int]) -> dict[str, Any]:
    """Row counts by view."""
    return {"rebuilt": dict(rows)}
