"""Convert results of the engine to the JSON-ready dictionaries that callers get."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from told.model.fact import NEVER, Fact
from told.model.query import Bundle, Certificate, Event, Hit, Receipt, Trace, VerifyResult
from told.model.salience import DecayClock
from told.text.dates import format_iso

if TYPE_CHECKING:
    from pathlib import Path

    from told.engine.results import (
        DecayReport,
        ErasurePreview,
        FactListing,
        QueuedReview,
        WaitResult,
    )
    from told.ingest.documents import Document
    from told.ingest.tool_output import ToolOutput
    from told.maintenance.delta_apply import DeltaResult
    from told.maintenance.forgetting import ForgottenFact
    from told.maintenance.reconsolidation import ReconsolidationResult
    from told.maintenance.topics import TopicAssignmentResult, TopicMergeResult
    from told.model.decay import Strength
    from told.model.entry import Blob, Linked
    from told.model.kind import Ontology
    from told.model.query import AccessRecord, AccessState
    from told.ports import Embedder, Fault
    from told.retrieval.listing import EntityRelation, MemoryDetail, OwnerStatistics
    from told.retrieval.state import SearchResult
    from told.retrieval.topics import TopicListing


class Serializable(Protocol):
    """A value that knows its JSON form."""

    def as_dict(self) -> dict[str, Any]:
        """Return the value as a dictionary."""


# Memories


def fact_to_dict(fact: Fact, score: float | None = None) -> dict[str, Any]:
    """Serialise a memory; optional fields appear only if they differ from their defaults."""
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
    """Return the known parts of a subject-predicate-object triple."""
    return _drop_none(subject=fact.subject, predicate=fact.predicate, object=fact.object)


def _validity_fields(fact: Fact) -> Mapping[str, Any]:
    """Return the valid interval unless it just starts when the memory was said."""
    valid = fact.valid_interval()
    if valid.end is None and valid.start == fact.said_at:
        return {}
    start, end = (None if at is None else format_iso(at) for at in (valid.start, valid.end))
    return _drop_none(valid_from=start, valid_to=end, precision=valid.precision)


def _drop_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _copy_json(value: Any) -> Any:
    """Copy nested JSON so that callers may change it."""
    if isinstance(value, dict):
        return {key: _copy_json(member) for key, member in value.items()}
    return [_copy_json(member) for member in value] if isinstance(value, list) else value


def event_to_dict(event: Event) -> dict[str, Any]:
    """Serialise an event, with both spellings of the previous text."""
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
    """Serialise a receipt."""
    body: dict[str, Any] = {"results": [event_to_dict(event) for event in receipt.events]}
    if receipt.extraction:
        body |= {"extraction": receipt.extraction, "usage": dict(receipt.usage)}
    if receipt.skipped:
        body["skipped"] = [dict(row) for row in receipt.skipped]
    if receipt.warnings:
        body["warnings"] = list(receipt.warnings)
    return body


def search_to_dict(search: tuple[SearchResult, bool]) -> dict[str, Any]:
    """Serialise a search result, with score details if they were asked for."""
    result, with_details = search
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


def explanation_to_dict(explanation: tuple[SearchResult, Trace]) -> dict[str, Any]:
    """Serialise a search and its trace."""
    result, trace = explanation
    return _add_nonempty(
        {**trace.as_dict(), "confidence": result.confidence}, warnings=result.warnings
    )


def bundle_to_dict(bundle: Bundle) -> dict[str, Any]:
    """Serialise a context bundle."""
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
    """Serialise a fault."""
    row = {
        "id": fault.id,
        "consumer": fault.consumer,
        "seq": fault.seq,
        "error": fault.error,
        "at": format_iso(fault.at),
    }
    return {**row, "attempts": fault.attempts, **({"raw": fault.raw} if fault.raw else {})}


def entity_to_dict(node: Fact) -> dict[str, Any]:
    """Serialise an entity."""
    fields = {
        name: node.meta[name] for name in ("name", "type", "description") if name in node.meta
    }
    return {"id": node.id, **fields}


def relation_to_dict(relation: EntityRelation) -> dict[str, Any]:
    """Serialise a relation between entities."""
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
    """Add the lists that are not empty."""
    return {**body, **{name: list(rows) for name, rows in lists.items() if rows}}


def facts_to_dict(
    facts: Sequence[Fact], conflicts: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Serialise memories and their conflicts."""
    conflicts_by_id = conflicts or {}
    return {
        "results": [
            _add_nonempty(fact_to_dict(fact), conflicts=conflicts_by_id.get(fact.id, ()))
            for fact in facts
        ]
    }


def optional_fact_to_dict(fact: Fact | None) -> dict[str, Any] | None:
    """Serialise a memory, or return None if there is none."""
    return None if fact is None else fact_to_dict(fact)


def listing_to_dict(listing: FactListing) -> dict[str, Any]:
    """Serialise the memories of a scope."""
    body = facts_to_dict(listing.facts, listing.conflicts.rivals)
    return _add_nonempty(body, warnings=listing.warnings)


def keep_bundle(bundle: Bundle) -> Bundle:
    """Return a context bundle unchanged."""
    return bundle


# Generic results


def to_dict(value: Serializable) -> dict[str, Any]:
    """Serialise a value that knows its JSON form."""
    return value.as_dict()


def to_list(values: Iterable[Serializable]) -> list[dict[str, Any]]:
    """Serialise values that know their JSON form."""
    return [value.as_dict() for value in values]


def to_results(values: Iterable[Serializable]) -> dict[str, Any]:
    """Serialise values that know their JSON form as results."""
    return {"results": to_list(values)}


def copy_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a mapping that is JSON already."""
    return dict(values)


# Writes


def update_to_dict(receipt: Receipt) -> dict[str, Any]:
    """Serialise the receipt of an update."""
    return {"message": "Memory updated successfully!", **receipt_to_dict(receipt)}


def deletion_to_dict(receipt: Receipt) -> dict[str, Any]:
    """Serialise the receipt of a deletion."""
    return {"message": "Memory deleted successfully!", **receipt_to_dict(receipt)}


def deletions_to_dict(receipt: Receipt) -> dict[str, Any]:
    """Serialise the receipt of the deletion of a scope."""
    return {"message": "Memories deleted successfully!", **receipt_to_dict(receipt)}


def link_to_dict(linked: tuple[Linked, Receipt]) -> dict[str, Any]:
    """Serialise a new link."""
    link, receipt = linked
    ends = {"src": link.src, "rel": link.rel, "dst": link.dst}
    return {"message": "Linked.", **ends, "tx": receipt.tx}


def upload_to_dict(upload: tuple[Receipt, Document]) -> dict[str, Any]:
    """Serialise the receipt of an uploaded document."""
    receipt, document = upload
    fields = {
        "hash": document.sha256,
        "title": document.title,
        "media_type": document.media_type,
    }
    return {**receipt_to_dict(receipt), "document": fields}


def tool_output_to_dict(output: ToolOutput) -> dict[str, Any]:
    """Serialise a stored tool output."""
    body = {**receipt_to_dict(output.receipt), "text": output.text}
    return (
        body
        if output.blob is None
        else {**body, "blob": output.blob, "properties": output.properties}
    )


def erasure_to_dict(erasure: Certificate | ErasurePreview) -> dict[str, Any]:
    """Serialise an erasure certificate or the preview of a dry run."""
    if isinstance(erasure, Certificate):
        return erasure.as_dict()
    return {**facts_to_dict(erasure.facts), **erasure.closure.as_dict()}


def reset_to_dict(_: None) -> dict[str, Any]:
    """Return the message of a reset."""
    return {"message": "All memories reset"}


# Blobs and secrets


def blob_to_dict(blob: Blob) -> dict[str, Any]:
    """Serialise a blob with its bytes in base64."""
    body = {"hash": blob.hash, "media_type": blob.media_type, "size": blob.size}
    return {**body, "data": b64encode(blob.data).decode("ascii")}


def revealed_to_dict(revealed: tuple[str, str]) -> dict[str, Any]:
    """Serialise a memory with its secrets decrypted."""
    memory_id, text = revealed
    return {"id": memory_id, "memory": text}


# Extraction


def wait_to_dict(result: WaitResult) -> dict[str, Any]:
    """Serialise the outcome of pending extraction."""
    outcomes = result.drained.outcomes.values()
    body: dict[str, Any] = {
        "results": [event_to_dict(event) for outcome in outcomes for event in outcome.events],
        "understood": len(outcomes),
        "failed": len(result.drained.failed),
        "pending": result.pending,
    }
    if result.judgement is not None:
        body["judged"] = result.judgement.turns
    warnings = [warning for outcome in outcomes for warning in outcome.warnings]
    return {**body, "warnings": [*warnings, *result.failures]}


def faults_to_dict(faults: Iterable[Fault]) -> dict[str, Any]:
    """Serialise faults."""
    return {"results": [fault_to_dict(fault) for fault in faults]}


def dropped_to_dict(count: int) -> dict[str, Any]:
    """Serialise the number of dropped faults."""
    return {"dropped": count}


def entities_to_dict(nodes: Iterable[Fact]) -> dict[str, Any]:
    """Serialise entities."""
    return {"results": [entity_to_dict(node) for node in nodes]}


def relations_to_dict(relations: Iterable[EntityRelation]) -> dict[str, Any]:
    """Serialise relations."""
    return {"results": [relation_to_dict(relation) for relation in relations]}


def kind_proposals_to_dict(claims: tuple[Sequence[Fact], Ontology]) -> dict[str, Any]:
    """Propose kinds for quarantined claims."""
    from told.api import kinds

    return {"results": kinds.propose_kinds(*claims)}


# Reconsolidation


def recalls_to_dict(
    recalls: tuple[Sequence[AccessRecord], Sequence[AccessState]],
) -> dict[str, Any]:
    """Serialise the access log of a memory."""
    records, states = recalls
    return {
        "results": [_access_to_dict(record) for record in records],
        "states": [_access_state_to_dict(state) for state in states],
    }


def _access_to_dict(record: AccessRecord) -> dict[str, Any]:
    row = {
        "at": format_iso(record.at),
        "rank": record.rank,
        "score": record.score,
        "access": record.access.value,
    }
    return {**row, **({"query_hash": record.query} if record.query else {})}


def _access_state_to_dict(state: AccessState) -> dict[str, Any]:
    until = None if state.until >= NEVER else format_iso(state.until)
    return {
        "since": format_iso(state.since),
        "until": until,
        "count": state.count,
        "strength": state.strength,
    }


def enqueued_to_dict(enqueued: tuple[str, bool]) -> dict[str, Any]:
    """Serialise whether a memory was queued."""
    memory_id, is_new = enqueued
    return {"id": memory_id, "queued": is_new}


def queue_to_dict(queue: Iterable[QueuedReview]) -> dict[str, Any]:
    """Serialise the reconsolidation queue."""
    return {"results": [_queued_to_dict(queued) for queued in queue]}


def _queued_to_dict(queued: QueuedReview) -> dict[str, Any]:
    task = queued.task
    row = {
        "task": task.id,
        "id": task.thread,
        "memory": queued.fact.text,
        "reason": task.reason.value,
        "priority": task.priority,
        "due": format_iso(task.due),
        "attempts": task.attempts,
    }
    return {**row, **({"why": list(queued.why)} if queued.why else {})}


def reflection_to_dict(result: ReconsolidationResult) -> dict[str, Any]:
    """Serialise the outcome of reconsolidation."""
    from told.maintenance.deltas import operation_to_json

    return {
        "results": [event_to_dict(event) for event in result.events],
        "operations": [operation_to_json(operation) for operation in result.operations],
        "tasks": result.tasks,
        "failed": result.failed,
        "usage": result.usage.as_dict(),
        "warnings": list(result.warnings),
    }


def delta_to_dict(result: DeltaResult) -> dict[str, Any]:
    """Serialise an applied delta."""
    from told.maintenance.deltas import operation_to_json

    operations = [operation_to_json(operation) for operation in result.applied]
    return {**receipt_to_dict(result.receipt), "operations": operations}


# Decay


def decay_to_dict(report: DecayReport) -> dict[str, Any]:
    """Serialise a decay curve; readings count from when the memory was first said."""
    detail, strength = report.detail, report.detail.strength
    return {
        "id": detail.fact.id,
        "memory": detail.fact.text,
        "kind": detail.fact.kind,
        **_strength_fields(detail),
        "now": strength.age,
        "said": [reading - strength.mention_readings[0] for reading in strength.mention_readings],
        "threshold": strength.curve.floor,
        "curve": [list(point) for point in report.points],
    }


def details_to_dict(details: Iterable[MemoryDetail]) -> dict[str, Any]:
    """Serialise memories with their quotes and strengths."""
    return {"results": [_detail_to_dict(detail) for detail in details]}


def _detail_to_dict(detail: MemoryDetail) -> dict[str, Any]:
    fact = detail.fact
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    row = {
        "id": fact.id,
        "memory": fact.text,
        "kind": fact.kind,
        "said_at": format_iso(said_at),
        "said": len(detail.strength.mention_readings),
        "words": detail.quote,
        **_strength_fields(detail),
        **fact.scope.ids(),
    }
    return {**row, **_drop_none(role=fact.role, actor_id=fact.actor, source=fact.source)}


def _strength_fields(detail: MemoryDetail) -> dict[str, Any]:
    strength = detail.strength
    return {
        "tier": None if detail.kind is None else detail.kind.tier.value,
        "clock": strength.clock.value,
        "salience": strength.weight,
        "faded": strength.is_faded,
        "fades_at": _fading_fields(strength),
    }


def _fading_fields(strength: Strength) -> dict[str, Any] | None:
    """Return when a memory fades, by its clock and as a time, or None if it never does."""
    remaining, end = strength.remaining, strength.fade_time
    if remaining is None:
        return None
    is_time_clock = strength.clock is DecayClock.TIME
    return {
        "reading": strength.age + remaining,
        "left": remaining,
        "unit": "days" if is_time_clock else "turns",
        "time": None if end is None else format_iso(end),
        "estimated": not is_time_clock,
    }


def forgotten_to_dict(forgotten: Iterable[ForgottenFact]) -> dict[str, Any]:
    """Serialise archived memories with their last salience."""
    return {"results": [_forgotten_to_dict(item) for item in forgotten]}


def _forgotten_to_dict(forgotten: ForgottenFact) -> dict[str, Any]:
    fact = forgotten.fact
    event = Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor)
    return {**event_to_dict(event), "kind": fact.kind, "salience": forgotten.weight}


# Topics


def topic_to_dict(topic: tuple[TopicListing, Sequence[Fact]]) -> dict[str, Any]:
    """Serialise a topic with its turns."""
    listing, turns = topic
    return {**listing.as_dict(), **facts_to_dict(turns)}


def filed_topics_to_dict(result: TopicAssignmentResult) -> dict[str, Any]:
    """Serialise the outcome of topic assignment."""
    return {
        "filed": result.exchanges,
        "made": result.created,
        "split": result.split,
        "warnings": list(result.warnings),
    }


def merged_topics_to_dict(result: TopicMergeResult) -> dict[str, Any]:
    """Serialise merged topics."""
    merged = [{"id": younger, "into": older} for younger, older in result.merged]
    return {"merged": merged, "warnings": list(result.warnings)}


def supertopics_to_dict(
    abstraction: tuple[TopicMergeResult, Sequence[TopicListing]],
) -> dict[str, Any]:
    """Serialise supertopics."""
    result, topics = abstraction
    return {"results": to_list(topics), "warnings": list(result.warnings)}


# Administration


def verification_to_dict(verification: tuple[VerifyResult, Sequence[str]]) -> dict[str, Any]:
    """Serialise the outcome of a verification."""
    result, problems = verification
    return {**result.as_dict(), "ok": result.ok and not problems, "index_problems": list(problems)}


def rebuild_to_dict(counts: Mapping[str, int]) -> dict[str, Any]:
    """Serialise the row counts of rebuilt views."""
    return {"rebuilt": dict(counts)}


def reindex_to_dict(reindexed: tuple[int, Embedder]) -> dict[str, Any]:
    """Serialise the outcome of a reindex."""
    count, embedder = reindexed
    return {"embedded": count, "model": embedder.model, "dim": embedder.dim}


def users_to_dict(owners: Iterable[OwnerStatistics]) -> dict[str, Any]:
    """Serialise users, agents and runs."""
    return {
        "results": [
            {
                "type": owner.owner_type,
                "name": owner.name,
                "total_memories": owner.memory_count,
                "created_at": format_iso(owner.first_at),
                "updated_at": format_iso(owner.last_at),
            }
            for owner in owners
        ]
    }


def export_to_dict(exported: tuple[int, Path | None]) -> dict[str, Any]:
    """Serialise the outcome of an export."""
    entries, path = exported
    return {"entries": entries} if path is None else {"entries": entries, "path": str(path)}


def import_to_dict(imported: tuple[int, Sequence[str]]) -> dict[str, Any]:
    """Serialise the outcome of an import."""
    entries, warnings = imported
    return _add_nonempty({"entries": entries}, warnings=warnings)


def backup_to_dict(path: Path) -> dict[str, Any]:
    """Serialise the path of a backup."""
    return {"path": str(path)}
