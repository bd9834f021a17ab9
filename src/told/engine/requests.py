"""Parse the arguments of verbs into checked requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from told.errors import InvalidInput, NotFoundError
from told.flow import Flow, call
from told.ids import canonical_json, sha256
from told.ingest import gate, messages
from told.ingest.context import (
    LOCAL,
    VERBATIM,
    ExtractionConfig,
    ExtractionOptions,
    IdempotencyKey,
)
from told.ingest.edit import MemoryUpdate
from told.ingest.messages import ParsedMessages
from told.model.entry import Linked
from told.model.query import FactQuery, ReviewReason
from told.model.salience import DecayClock
from told.model.scope import ID_LIMIT, Scope
from told.ports import VIEWS, Store, View
from told.retrieval import request
from told.retrieval.candidates import ReadContext
from told.retrieval.render import ContextRequest
from told.retrieval.request import parse_flag
from told.retrieval.state import SearchRequest
from told.settings import Settings
from told.text.tokens import format_value, validate_label, validate_text

ScopeIds: TypeAlias = Mapping[str, Any]
UNCHANGED: Any = object()
MAX_KIND_LENGTH = 128
MAX_KEY_LENGTH = 256
MEMORY_TYPES = (None, "procedural_memory", "semantic_memory", "episodic_memory")


@dataclass(frozen=True, slots=True)
class AddRequest:
    """A parsed add request; `unused` names the arguments that have no effect."""

    scope: Scope
    messages: ParsedMessages
    expires: int | None
    kind: str
    options: ExtractionOptions
    key: IdempotencyKey | None = None
    unused: tuple[str, ...] = ()


def parse_add_request(
    extraction: ExtractionConfig,
    settings: Settings,
    scope_ids: ScopeIds,
    account: str,
    content: Any,
    *,
    metadata: Any = None,
    timestamp: Any = None,
    expiration_date: Any = None,
    kind: Any = None,
    infer: Any = True,
    memory_type: Any = None,
    prompt: Any = None,
    filters: Any = None,
    source: Any = None,
    idempotency_key: Any = None,
    extract: Any = None,
    facts: Any = None,
    deferred: Any = None,
) -> AddRequest:
    """Check the arguments of `add`."""
    options = extraction.build_options(
        extract if parse_flag(infer, "infer") else VERBATIM,
        prompt=prompt,
        facts=facts,
        deferred=None if deferred is None else parse_flag(deferred, "deferred"),
    )
    given_kind = _parse_kind(kind, memory_type)
    scope = Scope.create(**scope_ids, account=account)
    parsed = messages.parse_messages(
        content, metadata=metadata, timestamp=timestamp, source=source, settings=settings
    )
    expires = messages.parse_expiry(expiration_date, settings)
    kind_name = given_kind or "memory"
    key = None
    if idempotency_key is not None:
        key_name = validate_label(idempotency_key, "idempotency_key", limit=MAX_KEY_LENGTH)
        key = IdempotencyKey(key_name, _compute_digest(scope, parsed, expires, kind_name, options))
    is_verbatim = options.extractor == VERBATIM or given_kind is not None
    unused = {
        "filters": filters,
        "prompt": prompt if is_verbatim or options.extractor == LOCAL or facts else None,
        "facts": facts if is_verbatim else None,
    }
    return AddRequest(scope, parsed, expires, kind_name, options, key, _warn_unused(unused))


def _parse_kind(kind: Any, memory_type: Any) -> str | None:
    """Return the kind that `kind` or `memory_type` names, or None."""
    if not isinstance(memory_type, str | None) or memory_type not in MEMORY_TYPES:
        hint = 'Leave it out, or use "procedural_memory".'
        raise InvalidInput(f"memory_type {format_value(memory_type)} is unknown.", hint=hint)
    implied = "skill" if memory_type == "procedural_memory" else None
    if kind is None:
        return implied
    if implied not in (None, kind):
        raise InvalidInput(
            f"memory_type means kind {implied!r}, not {format_value(kind)}; pass one of them."
        )
    return validate_label(kind, "kind", limit=MAX_KIND_LENGTH)


def _warn_unused(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{name} had no effect: this call does not use it."
        for name, value in arguments.items()
        if value is not None and value is not False
    )


def _compute_digest(
    scope: Scope,
    parsed: ParsedMessages,
    expires: int | None,
    kind: str,
    options: ExtractionOptions,
) -> bytes:
    """Hash the parsed request, so that equal requests with different spellings match."""
    turns = [
        [
            turn.evidence.digest().hex(),
            dict(turn.meta),
            turn.valid.as_json(),
            *(image.compute_identity() for image in turn.images),
        ]
        for turn in parsed.turns
    ]
    extraction = [options.extractor, options.prompt, list(options.facts)]
    return sha256(
        canonical_json([scope.ids(), turns, list(parsed.skipped), expires, kind, *extraction])
    )


def parse_update(
    settings: Settings,
    *,
    text: Any = None,
    metadata: Any = None,
    expiration_date: Any = UNCHANGED,
    data: Any = None,
    timestamp: Any = None,
) -> tuple[MemoryUpdate, tuple[str, ...]]:
    """Check the arguments of `update` and return the change with its warnings."""
    is_same_text = isinstance(text, str) and isinstance(data, str) and text == data
    if text is not None and data is not None and not is_same_text:
        raise InvalidInput("text and data are the same option; pass only one of them.")
    new_text = data if text is None else text
    warnings: Sequence[str] = ()
    set_expiry = expiration_date is not UNCHANGED
    if new_text is None and metadata is None and timestamp is None and not set_expiry:
        raise InvalidInput(
            "Nothing to update.",
            hint="Give a text, metadata, a timestamp or an expiration_date.",
        )
    if new_text is not None:
        if not isinstance(new_text, str) or not new_text.strip():
            raise InvalidInput("The new text is empty.", hint="Use delete() to delete a memory.")
        checked = validate_text(new_text, limit=settings.text_limit)
        new_text, warnings = gate.screen_text(checked, settings)
    update = MemoryUpdate(
        new_text,
        None if metadata is None else messages.check_metadata(metadata, settings),
        set_expiry,
        messages.parse_expiry(expiration_date, settings) if set_expiry else None,
        messages.parse_valid_since(timestamp, settings),
    )
    return update, tuple(warnings)


def parse_link(
    src: Any, rel: Any, dst: Any, settings: Settings, *, weight: Any = 1.0, metadata: Any = None
) -> Linked:
    """Check the arguments of `link`."""
    share = _parse_share(weight, "weight")
    meta = messages.check_metadata(metadata, settings)
    relation = validate_label(rel, "rel", limit=64)
    return Linked(parse_memory_id(src), relation, parse_memory_id(dst), share, meta)


def parse_upload_options(
    settings: Settings,
    *,
    metadata: Any = None,
    timestamp: Any = None,
    expiration_date: Any = None,
    **names: Any,
) -> dict[str, Any]:
    """Check the metadata and times of `upload`; the document's names are checked with it."""
    return {
        "metadata": messages.check_metadata(metadata, settings),
        "valid": messages.parse_valid_since(timestamp, settings),
        "expires": messages.parse_expiry(expiration_date, settings),
        **names,
    }


def parse_fact_query(
    ctx: ReadContext,
    account: str,
    ids: ScopeIds,
    *,
    filters: Any = None,
    kinds: Any = None,
    limit: Any = None,
    top_k: Any = None,
    as_of: Any = None,
    valid_at: Any = None,
    show_expired: Any = False,
    offset: Any = 0,
) -> Flow[tuple[FactQuery, int]]:
    """Build the query of a read and return it with its limit."""
    scope, rest = request.resolve_scope_and_filter(ids, filters, account)
    at = yield from request.resolve_as_of(
        ctx.store, ctx.store.mint, account, ctx.settings, as_of=as_of, valid_at=valid_at
    )
    size = request.parse_limit(limit, top_k, ctx.settings)
    fact_query = request.build_fact_query(
        scope, at, rest, limit=size, offset=offset, show_expired=show_expired
    )
    return request.restrict_to_kinds(fact_query, kinds), size


def parse_search_request(
    ctx: ReadContext,
    account: str,
    query: str,
    ids: ScopeIds,
    *,
    threshold: Any = None,
    min_score: Any = None,
    rerank: Any = False,
    reference_date: Any = None,
    belief: Any = None,
    lens: Any = None,
    **options: Any,
) -> Flow[SearchRequest]:
    """Check the arguments of `search` and the verbs like it."""
    side, name_lens = request.parse_belief(belief), request.parse_lens(lens)
    fact_query, limit = yield from parse_fact_query(ctx, account, ids, **options)
    return SearchRequest(
        query,
        fact_query,
        limit,
        now=request.parse_reference_date(reference_date, fact_query.as_of, ctx.settings),
        min_score=request.parse_min_score(threshold, min_score),
        rerank=parse_flag(rerank, "rerank"),
        deep=limit > ctx.settings.ranking.depth,
        belief=side,
        lens=name_lens,
    )


def parse_context_request(
    ctx: ReadContext,
    account: str,
    query: Any,
    ids: ScopeIds,
    *,
    budget: Any = None,
    format: Any = None,
    tail: Any = None,
    limit: Any = None,
    top_k: Any = None,
    **options: Any,
) -> Flow[tuple[SearchRequest | None, FactQuery, ContextRequest]]:
    """Check the arguments of `context`; without a query there is no search."""
    from told.retrieval.context import estimate_max_items

    form = request.parse_context_request(budget, format, tail, ctx.settings)
    size = (
        estimate_max_items(form.budget)
        if limit is None and top_k is None
        else request.parse_limit(limit, top_k, ctx.settings)
    )
    if query is None:
        plain_options = request.drop_query_options(options)
        fact_query, _ = yield from parse_fact_query(ctx, account, ids, limit=size, **plain_options)
        return None, fact_query, form
    search = yield from parse_search_request(ctx, account, query, ids, limit=size, **options)
    return replace(search, deep=False), search.fact_query, form


def parse_memory_id(value: Any) -> str:
    """Check a memory id."""
    return validate_label(value, "A memory id", limit=ID_LIMIT)


def parse_views(names: Any) -> Sequence[View]:
    """Check the names of views; None means all of them."""
    if names is None:
        return VIEWS
    hint = f"Views: {', '.join(VIEWS)}. Give a list of them, or leave it out for all."
    if not isinstance(names, list | tuple | set | frozenset) or not names:
        raise InvalidInput(f"views must be a list of names, not {format_value(names)}.", hint=hint)
    unknown = [name for name in names if name not in VIEWS]
    if unknown:
        raise InvalidInput(f"There is no view {format_value(unknown[0])}.", hint=hint)
    return tuple(view for view in VIEWS if view in names)


def parse_fault_ids(selection: Any) -> list[int]:
    """Check fault numbers; an empty list means all faults."""
    numbers = [] if selection is None else [selection] if isinstance(selection, int) else selection
    if not isinstance(numbers, list | tuple) or not all(type(item) is int for item in numbers):
        raise InvalidInput(
            f"Fault ids must be whole numbers, not {format_value(selection)}.",
            hint="List them with faults().",
        )
    return list(numbers)


def select_fault_ids(store: Store, account: str, ids: Sequence[int]) -> Flow[list[int]]:
    """Return the ids of the chosen faults, or of all; raise if none of the chosen exists."""
    faults = yield from call(store.list_faults, account)
    fault_ids = [fault.id for fault in faults if not ids or fault.id in ids]
    if ids and not fault_ids:
        raise NotFoundError(f"There is no fault {ids[0]}.", hint="List them with faults().")
    return fault_ids


def parse_clock(value: Any) -> DecayClock:
    """Check the name of a decay clock."""
    if not isinstance(value, str) or value not in tuple(DecayClock):
        raise InvalidInput(
            f"There is no clock {format_value(value)}.", hint=f"Clocks: {', '.join(DecayClock)}."
        )
    return DecayClock(value)


def parse_review_reason(value: Any) -> ReviewReason:
    """Check the reason for queuing a memory."""
    if not isinstance(value, str) or value not in list(ReviewReason):
        raise InvalidInput(
            f"Unknown review reason {format_value(value)}.",
            hint=f"Use one of {', '.join(ReviewReason)}.",
        )
    return ReviewReason(value)


def parse_priority(value: Any) -> float:
    """Check the priority of a queued memory."""
    return _parse_share(value, "priority")


def _parse_share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, not {format_value(value)}.")
    return float(value)
