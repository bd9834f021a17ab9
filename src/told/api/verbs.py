"""Every public verb as a flow from plain arguments to plain JSON; the SDK, the CLI and the servers all call these.

A verb that a face leaves out is named in that face's list of declined verbs, and a test walks both.
"""

from __future__ import annotations

import io
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from told.api import files, kinds, reflection, serialize
from told.engine import Engine
from told.errors import InvalidInput, StoreError, Unsupported
from told.flow import Flow
from told.ingest.context import LOCAL, VERBATIM
from told.maintenance.forgetting import ForgottenFact
from told.model.decay import Strength
from told.model.query import Bundle, Event
from told.model.salience import DecayClock
from told.plugins import open_embedder
from told.ports import View
from told.retrieval.listing import MemoryDetail, OwnerStatistics
from told.retrieval.request import parse_flag, parse_int
from told.text.dates import format_iso
from told.text.tokens import format_value, validate_label


def topics(engine: Engine, ids: Mapping[str, Any], *, as_of: Any) -> Flow[dict[str, Any]]:
    """The topics of a scope."""
    return {"results": [topic.as_dict() for topic in (yield from engine.topics(ids, as_of=as_of))]}


def topic(engine: Engine, topic_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """One topic, with the turns in it."""
    topic, turns = yield from engine.topic(topic_id, ids=ids)
    return {**topic.as_dict(), **serialize.facts_to_dict(turns)}


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
    return {**serialize.event_to_dict(event), "kind": fact.kind, "salience": forgotten.weight}


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


def wait(engine: Engine) -> Flow[dict[str, Any]]:
    """Ask the model about everything that waits for it."""
    drained = yield from engine.catch_up()
    events = [
        serialize.event_to_dict(event)
        for outcome in drained.outcomes.values()
        for event in outcome.events
    ]
    notes = [note for outcome in drained.outcomes.values() for note in outcome.warnings]
    body: dict[str, Any] = {
        "results": events,
        "understood": len(drained.outcomes),
        "failed": len(drained.failed),
    }
    body |= {"pending": (yield from engine.waiting())}
    judgement = yield from engine.judge()
    body |= {"judged": judgement.turns} if engine.settings.judge else {}
    failures = [
        str(failure) for failure in (drained.failure, judgement.failure) if failure is not None
    ]
    return {**body, "warnings": [*notes, *failures]}


def faults(engine: Engine) -> Flow[dict[str, Any]]:
    """What could not be done, with what a model answered."""
    return {"results": [serialize.fault_to_dict(fault) for fault in (yield from engine.faults())]}


def retry_faults(engine: Engine, ids: Any) -> Flow[dict[str, Any]]:
    """Ask again about what failed."""
    return dict((yield from engine.retry_faults(ids)))


def drop_faults(engine: Engine, ids: Any) -> Flow[dict[str, Any]]:
    """Forget what failed."""
    return {"dropped": (yield from engine.drop_faults(ids))}


def contradictions(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Memories that say different things of the same."""
    return {
        "results": [
            contradiction.as_dict() for contradiction in (yield from engine.contradictions(ids))
        ]
    }


def entities(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Whom and what a scope speaks of."""
    return {
        "results": [serialize.entity_to_dict(node) for node in (yield from engine.entities(ids))]
    }


def relations(engine: Engine, name: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """How one that is spoken of bears on others."""
    return {
        "results": [
            serialize.relation_to_dict(relation)
            for relation in (yield from engine.relations(name, ids))
        ]
    }


def identify(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Draw edges between names that may mean the same."""
    return {"results": [link.as_dict() for link in (yield from engine.identify(ids))]}


def quarantine(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """The claims that wait for a review."""
    return serialize.facts_to_dict((yield from engine.quarantine(ids)))


def reveal(engine: Engine, memory_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """What a memory says with the secrets in it that are kept encrypted."""
    return {"id": memory_id, "memory": (yield from engine.reveal(memory_id, ids=ids))}


def review(
    engine: Engine, memory_id: str, ids: Mapping[str, Any], *, accept: Any
) -> Flow[dict[str, Any]]:
    """Let a claim out of quarantine, or give it up."""
    return serialize.receipt_to_dict((yield from engine.review(memory_id, accept=accept, ids=ids)))


def tool_result(
    engine: Engine, text: Any, ids: Mapping[str, Any], *, tool: Any, source: Any
) -> Flow[dict[str, Any]]:
    """Keep a tool's output whole, and give back as much of it as an agent needs."""
    result = yield from engine.tool_result(text, ids, tool=tool, source=source)
    blob_fields = (
        {} if result.blob is None else {"blob": result.blob, "properties": result.properties}
    )
    return {**serialize.receipt_to_dict(result.receipt), "text": result.text, **blob_fields}


def revoke(engine: Engine, source: Any) -> Flow[dict[str, Any]]:
    """Give up everything that was taken from a source."""
    return serialize.receipt_to_dict((yield from engine.revoke(source)))


def infer_kinds(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """The kinds that claims in quarantine ask for."""
    return {
        "results": kinds.propose_kinds(
            (yield from engine.quarantine(ids)), engine.extraction.ontology
        )
    }


UNUSED_REASON = "nothing that was asked for reads it."
BINARY_FILE_HINT = 'Open a file with open(path, "rb") or open(path, "wb"), or give its path.'
UNSET: Any = object()
MAX_KIND_LENGTH = 128
MEMORY_TYPES = (None, "procedural_memory", "semantic_memory", "episodic_memory")


def scope_ids(user_id: Any, agent_id: Any, run_id: Any) -> dict[str, Any]:
    """The three ids as one mapping."""
    return {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}


def add(
    engine: Engine,
    messages: Any,
    ids: Mapping[str, Any],
    *,
    metadata: Any,
    timestamp: Any,
    expiration_date: Any,
    kind: Any,
    infer: Any,
    memory_type: Any,
    source: Any,
    idempotency_key: Any,
    prompt: Any,
    filters: Any,
    extract: Any = None,
    facts: Any = None,
    deferred: Any = None,
) -> Flow[dict[str, Any]]:
    """Remember what was said."""
    extractor = extract if parse_flag(infer, "infer") else VERBATIM
    options = engine.extraction_options(
        extractor,
        prompt=prompt,
        facts=facts,
        later=None if deferred is None else parse_flag(deferred, "deferred"),
    )
    if not isinstance(memory_type, str | None) or memory_type not in MEMORY_TYPES:
        hint = 'Leave it out, or use "procedural_memory".'
        raise InvalidInput(f"memory_type {format_value(memory_type)} is unknown.", hint=hint)
    implied_kind = "skill" if memory_type == "procedural_memory" else None
    if kind is not None and implied_kind not in (None, kind):
        raise InvalidInput(
            f"memory_type says {implied_kind!r} and kind {format_value(kind)}; give one of them."
        )
    receipt = yield from engine.add(
        messages,
        ids,
        metadata=metadata,
        timestamp=timestamp,
        expires=expiration_date,
        source=source,
        key=idempotency_key,
        kind=validate_label(kind, "kind", limit=MAX_KIND_LENGTH)
        if kind is not None
        else implied_kind or "memory",
        options=options,
    )
    kept_verbatim = options.extractor == VERBATIM or kind is not None or implied_kind is not None
    unused = {
        "filters": filters,
        "prompt": prompt if kept_verbatim or options.extractor == LOCAL or facts else None,
        "facts": facts if kept_verbatim else None,
    }
    return _warn_unused(serialize.receipt_to_dict(receipt), UNUSED_REASON, **unused)


def _warn_unused(body: dict[str, Any], why: str, **unused: Any) -> dict[str, Any]:
    """Say which arguments had no effect; nothing is ignored in silence."""
    given_names = [
        name for name, value in unused.items() if value is not None and value is not False
    ]
    notes = [f"{name} had no effect: {why}" for name in given_names]
    return {**body, "warnings": [*body.get("warnings", ()), *notes]} if notes else body


def search(
    engine: Engine, query: str, ids: Mapping[str, Any], *, explain: Any, **options: Any
) -> Flow[dict[str, Any]]:
    """The memories that answer a query best."""
    with_details = parse_flag(explain, "explain")
    return serialize.search_result_to_dict(
        (yield from engine.search(query, ids, **options)), with_details=with_details
    )


def explain(
    engine: Engine, query: str, ids: Mapping[str, Any], **options: Any
) -> Flow[dict[str, Any]]:
    """Why a search finds what it finds."""
    return serialize.explanation_to_dict(*(yield from engine.explain(query, ids, **options)))


def why_not(
    engine: Engine, query: str, memory_id: str, ids: Mapping[str, Any], **options: Any
) -> Flow[dict[str, Any]]:
    """What keeps a memory out of a search, or where it stands in it."""
    return (yield from engine.why_not(query, memory_id, ids, **options)).as_dict()


def context(
    engine: Engine, query: str | None, ids: Mapping[str, Any], **options: Any
) -> Flow[Bundle]:
    """A block of memories that fits a token budget."""
    return (yield from engine.context(query, ids, **options))


def get(
    engine: Engine, memory_id: str, ids: Mapping[str, Any], **times: Any
) -> Flow[dict[str, Any] | None]:
    """One memory."""
    fact = yield from engine.get(memory_id, ids=ids, **times)
    return None if fact is None else serialize.fact_to_dict(fact)


def get_all(engine: Engine, ids: Mapping[str, Any], **options: Any) -> Flow[dict[str, Any]]:
    """Everything a scope holds."""
    facts, sides, warnings = yield from engine.get_all(ids, **options)
    body = serialize.facts_to_dict(facts, sides.rivals)
    return {**body, "warnings": list(warnings)} if warnings else body


def update(
    engine: Engine,
    memory_id: str,
    ids: Mapping[str, Any],
    *,
    text: Any,
    data: Any,
    metadata: Any,
    expiration_date: Any,
    timestamp: Any,
) -> Flow[dict[str, Any]]:
    """A new version of a memory."""
    is_same_text = isinstance(text, str) and isinstance(data, str) and text == data
    if text is not None and data is not None and not is_same_text:
        raise InvalidInput("text and data are two names of one thing; give one of them.")
    set_expiry = expiration_date is not UNSET
    receipt = yield from engine.update(
        memory_id,
        text=text if text is not None else data,
        metadata=metadata,
        set_expiry=set_expiry,
        expires=expiration_date if set_expiry else None,
        timestamp=timestamp,
        ids=ids,
    )
    return {"message": "Memory updated successfully!", **serialize.receipt_to_dict(receipt)}


def delete(engine: Engine, memory_id: str, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Give up a memory."""
    receipt = yield from engine.retract(memory_id, why="deleted", ids=ids)
    return {"message": "Memory deleted successfully!", **serialize.receipt_to_dict(receipt)}


def retract(
    engine: Engine, memory_id: str, ids: Mapping[str, Any], *, why: str
) -> Flow[dict[str, Any]]:
    """Give up a memory and say why."""
    return serialize.receipt_to_dict((yield from engine.retract(memory_id, why=why, ids=ids)))


def delete_all(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Give up everything a scope holds."""
    receipt = yield from engine.retract_all(ids, why="deleted")
    return {"message": "Memories deleted successfully!", **serialize.receipt_to_dict(receipt)}


def history(engine: Engine, memory_id: str, ids: Mapping[str, Any]) -> Flow[list[dict[str, Any]]]:
    """Everything that happened to a memory."""
    return [change.as_dict() for change in (yield from engine.history(memory_id, ids=ids))]


def timeline(engine: Engine, ids: Mapping[str, Any], *, limit: Any) -> Flow[dict[str, Any]]:
    """Everything a scope came to believe or gave up; with a limit, the newest of it."""
    return {
        "results": [change.as_dict() for change in (yield from engine.timeline(ids, limit=limit))]
    }


def diff(engine: Engine, before: Any, after: Any, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """What changed in a scope between two moments."""
    return (yield from engine.diff(before, after, ids))


def link(
    engine: Engine,
    src: str,
    rel: str,
    dst: str,
    ids: Mapping[str, Any],
    *,
    weight: float,
    metadata: Any,
) -> Flow[dict[str, Any]]:
    """Say that one memory bears on another."""
    receipt = yield from engine.link(src, rel, dst, weight=weight, metadata=metadata, ids=ids)
    return {"message": "Linked.", "src": src, "rel": rel, "dst": dst, "tx": receipt.tx}


def upload(
    engine: Engine, content: Any, ids: Mapping[str, Any], *, expiration_date: Any, **options: Any
) -> Flow[dict[str, Any]]:
    """Remember a document: a path, bytes, a binary file or a URL."""
    receipt, document = yield from engine.upload(
        _read_content(content), ids, expires=expiration_date, **options
    )
    document_fields = {
        "hash": document.sha256,
        "title": document.title,
        "media_type": document.media_type,
    }
    return {**serialize.receipt_to_dict(receipt), "document": document_fields}


def _read_content(value: Any) -> Any:
    """A document as the engine takes it: a text is a path unless it is a URL, and a file is read."""
    if callable(read := getattr(value, "read", None)) and not isinstance(value, type):
        data = read()
        if not isinstance(data, bytes):
            raise InvalidInput("The file gives no bytes.", hint=BINARY_FILE_HINT)
        return data
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        return value
    return files.to_path(value, "content") if isinstance(value, str | os.PathLike) else value


def blob(engine: Engine, hash: Any, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """The bytes of a document or an image, in base64."""
    stored = yield from engine.blob(hash, ids=ids)
    blob_fields = {"hash": stored.hash, "media_type": stored.media_type, "size": stored.size}
    return {**blob_fields, "data": b64encode(stored.data).decode("ascii")}


def blobs(engine: Engine, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Every document and image of a scope."""
    return {"results": [stored.as_dict() for stored in (yield from engine.blobs(ids))]}


def erase(
    engine: Engine,
    memory_id: str | None,
    ids: Mapping[str, Any],
    *,
    source: Any,
    why: str,
    dry_run: Any,
) -> Flow[dict[str, Any]]:
    """Destroy content and everything derived from it; the certificate, or for a dry run what would go."""
    if parse_flag(dry_run, "dry_run"):
        reach = yield from engine.reach(memory_id, ids, source=source)
        facts_by_thread = {}
        for thread in reach.threads:
            facts_by_thread[thread] = yield from engine.get(
                thread, as_of=None, valid_at=None, ids={}
            )
        return {
            **serialize.facts_to_dict(
                [fact for fact in facts_by_thread.values() if fact is not None]
            ),
            **reach.as_dict(),
        }
    return (yield from engine.erase(memory_id, ids, source=source, why=why)).as_dict()


def reset(engine: Engine) -> Flow[dict[str, Any]]:
    """Destroy everything in the account."""
    yield from engine.reset()
    return {"message": "All memories reset"}


def verify(engine: Engine) -> Flow[dict[str, Any]]:
    """Prove the ledger and check the index."""
    result, problems = yield from engine.verify()
    return {**result.as_dict(), "ok": result.ok and not problems, "index_problems": list(problems)}


def rebuild(engine: Engine, views: Sequence[View] | None) -> Flow[dict[str, Any]]:
    """Fold views again from the ledger."""
    return serialize.rebuild_counts_to_dict((yield from engine.rebuild(views)))


def reindex(engine: Engine, embedder: Any) -> Flow[dict[str, Any]]:
    """Embed everything with another model, or what has no vector yet with this one."""
    chosen = engine.embedder if embedder is None else open_embedder(embedder, engine.store)
    if chosen is None:
        raise Unsupported(
            "There is no embedder to reindex with.",
            hint="Run `told models install`, or pass embedder=.",
        )
    embedded = yield from engine.reindex(chosen)
    return {"embedded": embedded, "model": chosen.model, "dim": chosen.dim}


def export(engine: Engine, target: Any) -> Flow[dict[str, Any]]:
    """Write the ledger as JSONL to a path, its owner's alone and all at once, or to a binary file."""
    if isinstance(target, str | os.PathLike):
        path = files.to_path(target, "target")
        with files.replace_file(path) as file:
            return {"entries": (yield from engine.export(_byte_writer(file))), "path": str(path)}
    return {"entries": (yield from engine.export(_byte_writer(target)))}


def _byte_writer(target: Any) -> Callable[[bytes], Any]:
    """How bytes are written to a file that a caller opened."""
    write = getattr(target, "write", None)
    if not callable(write) or isinstance(target, type):
        raise InvalidInput(
            f"target must be a path or a binary file, not {format_value(target)}.",
            hint=BINARY_FILE_HINT,
        )

    def write_bytes(data: bytes) -> Any:
        try:
            return write(data)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"The target takes no bytes: {str(error).rstrip('.')}.", hint=BINARY_FILE_HINT
            ) from error
        except OSError as error:
            raise StoreError(f"The export cannot be written: {error.strerror or error}.") from error

    return write_bytes


def import_(engine: Engine, source: Any) -> Flow[dict[str, Any]]:
    """Append an exported ledger from a path, bytes or a binary file."""
    if isinstance(source, str | os.PathLike):
        with files.open_for_reading(files.to_path(source, "source")) as file:
            return _import_to_dict((yield from engine.import_(file)))
    lines = io.BytesIO(source) if isinstance(source, bytes | bytearray | memoryview) else source
    if not isinstance(lines, Iterable):
        raise InvalidInput(
            f"source must be a path, bytes or a binary file, not {format_value(source)}.",
            hint=BINARY_FILE_HINT,
        )
    return _import_to_dict((yield from engine.import_(lines)))


def _import_to_dict(result: tuple[int, Sequence[str]]) -> dict[str, Any]:
    entries, warnings = result
    return {"entries": entries, **({"warnings": list(warnings)} if warnings else {})}


def backup(engine: Engine, target: Any) -> Flow[dict[str, Any]]:
    """Write a consistent copy of the store."""
    path = files.to_path(target, "target")
    yield from engine.backup(path, files.create_copy)
    return {"path": str(path)}


VERBS: Mapping[str, Callable[..., Any]] = {
    verb.__name__: verb
    for verb in (
        add, search, explain, why_not, context, get, get_all, update, delete, retract, delete_all, history, timeline,
        diff, link, upload, blob, blobs, erase, reset, verify, rebuild, reindex, export, import_, backup,
        stats, users,
        wait, faults, retry_faults, drop_faults, contradictions,
        entities, relations, identify, quarantine, review,
        revoke, infer_kinds, tool_result, reveal,
        consolidate, tiers, registry, decay, about, forget,
        reflection.recalls, reflection.enqueue, reflection.queue, reflection.reflect, reflection.apply_delta,
        topics, topic, file_topics, merge_topics, abstract_topics,
    )
}  # fmt: skip
