"""Implement `add`: gate, extract by rules, curate, commit, embed, extract by a model.

Evidence is committed before a model is asked. Claims found by rules commit together with it; those
of a model follow, immediately or through the extraction queue. A repeated idempotency key returns
the first receipt, rebuilt from the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from told.curation.write_policies import check_given_fields
from told.errors import IdempotencyConflict, StoreCorrupt
from told.flow import Flow, call
from told.ids import hash_text
from told.ingest import chunking, gate, messages, queue
from told.ingest.apply_claims import curate_claims, make_job_handler
from told.ingest.context import (
    CLOSED,
    LOCAL,
    VERBATIM,
    ExtractionOptions,
    IdempotencyKey,
    WriteContext,
    WritePlan,
    commit_plan,
    parse_sentence,
)
from told.ingest.embedding import (
    NewText,
    VectorLookup,
    attach_vectors,
    embed_after_commit,
    find_near_duplicate,
)
from told.ingest.gate import GateDecision
from told.ingest.messages import ParsedMessages, TurnSegment, segment_turns
from told.ingest.observe import get_turn_trust, options_to_meta, plan_evidence
from told.ingest.queue import ExtractionJob, ExtractionOutcome
from told.ingest.types import ExtractionInput, ExtractionResult, Extractor
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import Failure, catch_failure
from told.ledger.history import load_threads_from_evidence
from told.ledger.views import format_indexed_text
from told.model.beliefs import safe_kind
from told.model.entry import Asserted, Blob, Entry, Evidence
from told.model.fact import TURN, UNLISTED_KINDS, Fact
from told.model.kind import Kind, WriteMode
from told.model.query import Event, Receipt
from told.model.scope import Scope
from told.ports import ExistingState, IdempotencyRecord, Store, Vector
from told.text.tokens import md5_hex, normalise_text

PLAIN_KIND = "memory"
"""The kind of a memory that was given no other kind."""

PENDING, FAILED, DONE = "pending", "failed", "done"
"""The states of model extraction in a receipt."""

NO_RESULT = ExtractionResult()


# Idempotent replay


def replay_receipt(
    store: Store, account: str, key: IdempotencyKey, record: IdempotencyRecord
) -> Flow[Receipt]:
    """Rebuild the receipt of an idempotent write from its record and the ledger."""
    if record.digest != key.digest:
        raise IdempotencyConflict()
    if record.thread_ids() is None or not isinstance(record.seq, int):
        raise StoreCorrupt(
            "The stored result of this idempotency key cannot be read.", hint="Run `told rebuild`."
        )
    outcome = json.loads(record.outcome)
    before = record.seq - outcome.get("entries", 0)
    events: list[Event] = []
    threads: dict[str, ReplayedThread] = {}
    for event, id_, role, actor in outcome["events"]:
        if id_ not in threads:
            entries = yield from call(store.scan_entries, account, thread=id_)
            threads[id_] = ReplayedThread(
                [entry for entry in entries if entry.seq <= record.seq], before
            )
        thread = threads[id_]
        previous = thread.current_text if event in ("UPDATE", "DELETE") else None
        text = thread.advance() if event in ("ADD", "UPDATE") else thread.current_text
        events.append(Event(event, id_, text, previous, role, actor))
    return Receipt(tuple(events), tuple(outcome["skipped"]), tuple(outcome["warnings"]))


class ReplayedThread:
    """The text of a thread before a write, and after each assertion of it."""

    def __init__(self, entries: Sequence[Entry], before: int) -> None:
        texts = [
            (entry.seq, _get_asserted_text(entry)) for entry in entries if entry.sort == "asserted"
        ]
        self.current_text = next((text for seq, text in reversed(texts) if seq <= before), None)
        self._remaining = iter([text for seq, text in texts if seq > before])

    def advance(self) -> str | None:
        """Return the text after the next assertion, or the current text if there is none."""
        self.current_text = next(self._remaining, self.current_text)
        return self.current_text


def _get_asserted_text(entry: Entry) -> str | None:
    return entry.verb.claim.text if isinstance(entry.verb, Asserted) else None


# Request


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A validated add: scope, gate decisions and extraction options."""

    scope: Scope
    decisions: tuple[GateDecision, ...]
    skipped: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]
    kind: str
    kind_rules: Kind | None
    expires: int | None
    options: ExtractionOptions
    blobs: tuple[Blob, ...] = ()


def build_request(
    ctx: WriteContext,
    scope: Scope,
    parsed: ParsedMessages,
    *,
    expires: int | None,
    kind: str,
    options: ExtractionOptions,
) -> WriteRequest:
    """Apply the gate and build a write request.

    Refused turns are dropped; skipped ones are stored as evidence only. Verbatim turns are never
    skipped.
    """
    verbatim = options.extractor == VERBATIM or kind != PLAIN_KIND
    extraction = ctx.extraction
    gate_result = gate.apply_gate(
        parsed, scope.account, ctx.settings, extraction.echoes, extraction.vault, verbatim=verbatim
    )
    kind_rules = extraction.ontology.get(kind)
    field_warnings = (
        () if kind_rules is None else _check_kind_fields(kind_rules, gate_result.decisions)
    )
    warnings = tuple(dict.fromkeys((*parsed.warnings, *gate_result.warnings, *field_warnings)))
    return WriteRequest(
        scope,
        gate_result.decisions,
        gate_result.skipped,
        warnings,
        kind,
        kind_rules,
        expires,
        options,
        parsed.blobs,
    )


def _check_kind_fields(kind_rules: Kind, decisions: Sequence[GateDecision]) -> list[str]:
    """Return warnings about the metadata fields of a kind, or about a missing key."""
    keyed = kind_rules.is_keyed
    metas = {
        id(decision.turn.meta): decision.turn.meta
        for decision in decisions
        if keyed or decision.turn.meta
    }
    return [note for meta in metas.values() for note in check_given_fields(kind_rules, meta)]


def write_memories(
    ctx: WriteContext, request: WriteRequest, key: IdempotencyKey | None
) -> Flow[Receipt]:
    """Store turns and the claims extracted from them.

    A local extractor runs before the commit: the chosen one, or rules ahead of a deferred model.
    """
    options = request.options
    extractor = _choose_extractor(ctx, request)
    asks_model = extractor is not None and not extractor.local
    if not asks_model:
        first_extractor = extractor
    elif options.deferred:
        first_extractor = ctx.create_extractor(LOCAL)
    else:
        first_extractor = None
    segments = (
        []
        if extractor is None
        else _segment_kept_turns(request, whole_turns=_is_single_claim(request))
    )
    inputs = None if extractor is None else _build_input(ctx, request, segments)
    result = NO_RESULT
    if first_extractor is not None and inputs is not None and segments:
        result = yield from chunking.extract_claims(
            first_extractor, replace(inputs, ontology=ctx.extraction.catalogue), ctx.settings
        )
    receipt, plan = yield from _commit_evidence(
        ctx, request, inputs, segments, first_extractor, result, key, asks_model=asks_model
    )
    receipt = yield from embed_after_commit(
        ctx.store, ctx.embedder, request.scope.account, receipt, ctx.settings
    )
    if not asks_model or plan is None or not segments:
        return receipt
    if options.deferred:
        return replace(receipt, extraction=PENDING)
    return (yield from _extract_now(ctx, request, plan, receipt))


def _choose_extractor(ctx: WriteContext, request: WriteRequest) -> Extractor | None:
    """Return the extractor of a request; None to store turns verbatim.

    A memory given with a kind that has its own write rules is taken as one claim.
    """
    if _is_single_claim(request):
        from told.extraction.registry import KindExtractor

        return KindExtractor(request.kind, ctx.author)
    if request.options.extractor == VERBATIM or request.kind != PLAIN_KIND:
        return None
    if not request.options.facts:
        return ctx.create_extractor(request.options.extractor)
    from told.extraction.given import GivenExtractor

    return GivenExtractor(parse_sentence)


def _is_single_claim(request: WriteRequest) -> bool:
    """Return True if each turn is one claim of a kind with write rules of its own."""
    return request.kind_rules is not None and request.kind_rules.write is not WriteMode.APPEND


def _segment_kept_turns(request: WriteRequest, *, whole_turns: bool) -> list[TurnSegment]:
    """Return segments of the kept turns; with `whole_turns`, one per turn."""
    kept = [
        (index, decision)
        for index, decision in enumerate(request.decisions)
        if decision.outcome == "keep"
    ]
    segments = segment_turns((index, decision.turn, decision.own_text) for index, decision in kept)
    return (
        list({segment.turn_index: segment for segment in reversed(segments)}.values())[::-1]
        if whole_turns
        else segments
    )


def _build_input(
    ctx: WriteContext, request: WriteRequest, segments: Sequence[TurnSegment]
) -> ExtractionInput:
    """Build the extraction input."""
    turns = tuple(segment.turn for segment in segments)
    options, extraction = request.options, ctx.extraction
    return ExtractionInput(
        turns,
        ctx.id_generator.now(),
        request.scope,
        extraction.ontology,
        (),
        options.prompt,
        ctx.settings.zone,
        options.facts,
    )


@dataclass(frozen=True, slots=True)
class TurnKeys:
    """The hashes and indexed texts by which turns are looked up in the store."""

    md5s: list[str]
    digests: list[bytes]
    passages: list[str]
    passage_hashes: list[bytes]


def _build_keys(ctx: WriteContext, evidence: Sequence[Evidence]) -> TurnKeys:
    is_local = ctx.embedder is not None and ctx.embedder.local
    passages = [_format_passage(item) for item in evidence] if is_local else []
    return TurnKeys(
        [md5_hex(item.content) for item in evidence],
        [item.digest() for item in evidence],
        passages,
        list(map(hash_text, passages)),
    )


def _commit_evidence(
    ctx: WriteContext,
    request: WriteRequest,
    inputs: ExtractionInput | None,
    segments: Sequence[TurnSegment],
    extractor: Extractor | None,
    result: ExtractionResult,
    key: IdempotencyKey | None,
    *,
    asks_model: bool,
) -> Flow[tuple[Receipt, WritePlan | None]]:
    """Commit the evidence with claims found by rules; the plan is None for a replayed key."""
    scope, kinds = request.scope, _choose_kinds(request, segments, result, asks_model=asks_model)
    evidence = [decision.turn.evidence for decision in request.decisions]
    keys = _build_keys(ctx, evidence)
    needs_preceding = (
        bool(evidence) and evidence[0].said_at is not None and messages.is_repliable(evidence[0])
    )

    def decide() -> Flow[tuple[Receipt, WritePlan | None]]:
        existing = yield from call(
            ctx.store.lookup_existing,
            scope,
            keys.md5s,
            keys.digests,
            key.name if key else None,
            keys.passage_hashes,
            include_last_turn=needs_preceding,
        )
        if key and existing.idempotency:
            receipt = yield from replay_receipt(ctx.store, scope.account, key, existing.idempotency)
            return receipt, None
        plan = yield from _plan_turns(ctx, request, kinds, keys, existing, asks_model=asks_model)
        plan.warnings.update(dict.fromkeys((*request.warnings, *result.warnings)))
        if extractor is not None and inputs is not None and result is not NO_RESULT:
            yield from curate_claims(
                ctx, plan, inputs, result, extractor, segments, request.expires, existing.read_seq
            )
            if not asks_model and request.options.extractor != CLOSED:
                _promote_uncovered_turns(plan, kinds, request.kind)
        receipt = yield from commit_plan(ctx, scope, plan, existing.read_seq, key, request.skipped)
        return receipt, plan

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


def _plan_turns(
    ctx: WriteContext,
    request: WriteRequest,
    kinds: Sequence[str | None],
    keys: TurnKeys,
    existing: ExistingState,
    *,
    asks_model: bool,
) -> Flow[WritePlan]:
    """Plan the entries of the turns, given what the store already has of them."""
    turns = list(zip(request.decisions, kinds, keys.md5s, strict=True))
    known_vectors: Mapping[bytes, Vector] = {}
    if request.options.extractor != VERBATIM:
        existing, known_vectors = yield from _match_near_duplicates(ctx, request, turns, existing)
    requeued_ids = (
        (yield from _find_retracted_evidence(ctx.store, request.scope.account, existing))
        if asks_model and request.options.deferred
        else ()
    )
    plan = plan_evidence(
        ctx,
        request.scope,
        turns,
        existing,
        expires=request.expires,
        options=request.options if asks_model else None,
        requeued_ids=requeued_ids,
    )
    plan.blobs, plan.vectors = request.blobs, known_vectors
    plan.vector_lookup = VectorLookup(
        dict(zip(keys.passages, keys.passage_hashes, strict=True)), existing.vectors, existing.model
    )
    return plan


def _find_retracted_evidence(store: Store, account: str, existing: ExistingState) -> Flow[set[str]]:
    """Return evidence whose facts were all retracted; adding it again extracts it again."""
    evidence_ids: set[str] = set()
    for evidence in existing.evidence.values():
        has_retracted = has_listed = False
        for thread in (yield from load_threads_from_evidence(store, account, [evidence])):
            fact = yield from call(store.get_fact, account, thread)
            has_retracted = has_retracted or fact is None
            has_listed = has_listed or (fact is not None and fact.kind not in UNLISTED_KINDS)
        if has_retracted and not has_listed:
            evidence_ids.add(evidence)
    return evidence_ids


def _promote_uncovered_turns(plan: WritePlan, kinds: Sequence[str | None], kind: str) -> None:
    """Give the turns without stored claims the requested kind, so that they become memories."""
    uncovered = {
        plan.evidence_ids[index]
        for index, turn_kind in enumerate(kinds)
        if turn_kind == TURN and index not in plan.covered_turns
    }
    for index, draft in enumerate(plan.drafts):
        verb = draft.verb
        if (
            isinstance(verb, Asserted)
            and verb.claim.kind == TURN
            and verb.claim.evidence in uncovered
        ):
            plan.drafts[index] = replace(
                draft, verb=replace(verb, claim=replace(verb.claim, kind=kind))
            )
            claim = verb.claim
            plan.events.append(Event("ADD", verb.thread, claim.text, None, claim.role, claim.actor))


def _match_near_duplicates(
    ctx: WriteContext,
    request: WriteRequest,
    turns: Iterable[tuple[GateDecision, str | None, str]],
    existing: ExistingState,
) -> Flow[tuple[ExistingState, Mapping[bytes, Vector]]]:
    """Add near-duplicates to the existing facts; return them with the vectors computed."""
    unmatched = [
        (text_md5, item.turn.evidence)
        for item, kind, text_md5 in turns
        if kind == PLAIN_KIND and text_md5 not in existing.facts
    ]
    if not unmatched:
        return existing, {}
    new_texts = [
        NewText(evidence.content, evidence.role, evidence.name, evidence.said_at)
        for _, evidence in unmatched
    ]
    local_embedder = ctx.embedder if ctx.embedder is not None and ctx.embedder.local else None
    new_texts = list((yield from attach_vectors(local_embedder, new_texts)))
    facts = dict(existing.facts)
    for (text_md5, _), new_text in zip(unmatched, new_texts, strict=True):
        now = ctx.id_generator.now()
        duplicate = yield from find_near_duplicate(
            ctx.store, request.scope, new_text, now, ctx.settings, kinds=[PLAIN_KIND]
        )
        if duplicate is not None:
            facts[text_md5] = duplicate
    vectors = {
        hash_text(item.passage): item.vector for item in new_texts if item.vector is not None
    }
    return replace(existing, facts=facts), vectors


def _choose_kinds(
    request: WriteRequest,
    segments: Sequence[TurnSegment],
    result: ExtractionResult,
    *,
    asks_model: bool,
) -> list[str | None]:
    """Return the kind of each turn: the requested one, TURN behind its claims, or None.

    A turn of no kind is stored as evidence only: it was skipped, or a claim has the same text.
    """
    verbatim = request.options.extractor == VERBATIM
    texts: dict[int, list[str]] = {}
    for extracted in result.claims:
        texts.setdefault(segments[extracted.turn].turn_index, []).append(extracted.claim.text)
    kinds: list[str | None] = []
    for index, decision in enumerate(request.decisions):
        if decision.outcome == "skip":
            kinds.append(None)
            continue
        claim_texts = texts.get(index)
        if claim_texts and normalise_text(decision.turn.evidence.content) in map(
            normalise_text, claim_texts
        ):
            kinds.append(None)
        else:
            kept_kind = (
                request.kind if verbatim else safe_kind(request.kind, get_turn_trust(decision.turn))
            )
            kinds.append(
                TURN
                if claim_texts or asks_model or request.options.extractor == CLOSED
                else kept_kind
            )
    return kinds


def _format_passage(evidence: Evidence) -> str:
    """Return the indexed text of a short turn that is no reply."""
    return format_indexed_text(evidence.name or evidence.role, evidence.content)


# Extraction by a model


def _extract_now(
    ctx: WriteContext, request: WriteRequest, plan: WritePlan, receipt: Receipt
) -> Flow[Receipt]:
    """Run the extraction queue now; failures become warnings and stay queued."""
    account, retries = request.scope.account, ctx.settings.maintenance.consumer_attempts
    if not (
        yield from queue.is_threshold_reached(
            ctx.store, account, ctx.settings.extract_threshold, request.scope
        )
    ):
        return replace(receipt, extraction=PENDING)
    own_evidence = set(plan.evidence_ids)
    repeated = yield from _extract_repeated(ctx, request, plan)
    progress = yield from queue.drain_queue(
        ctx.store, account, make_job_handler(ctx), retries, ctx.extraction.mutex
    )
    outcomes = [
        *repeated,
        *(
            outcome
            for evidence, outcome in progress.outcomes.items()
            if not own_evidence.isdisjoint(evidence)
        ),
    ]
    failed = any(not own_evidence.isdisjoint(evidence) for evidence in progress.failed)
    status = DONE if outcomes else FAILED if failed else PENDING if progress.failure else DONE
    warnings = (
        *receipt.warnings,
        *(note for outcome in outcomes for note in outcome.warnings),
        *_build_notes(progress.failure, outcomes, status),
    )
    return replace(
        receipt,
        events=(*receipt.events, *(event for outcome in outcomes for event in outcome.events)),
        skipped=(*receipt.skipped, *(row for outcome in outcomes for row in outcome.skipped)),
        warnings=tuple(dict.fromkeys(warnings)),
        extraction=status,
        usage=queue.sum_usage(outcomes).as_dict(),
    )


def _build_notes(
    failure: Failure | None, outcomes: Sequence[ExtractionOutcome], status: str
) -> Iterator[str]:
    """Iterate over warnings about extraction that failed or is still to be done."""
    if failure:
        yield f"Extraction is pending; the messages are stored: {failure}"
    if any(outcome.unreadable_replies for outcome in outcomes):
        yield (
            "Part of the model's reply could not be parsed; the messages are stored. "
            "See `told faults list`."
        )
    if status == FAILED:
        yield "Extraction failed; the messages are stored. See `told faults list`."


def _extract_repeated(
    ctx: WriteContext, request: WriteRequest, plan: WritePlan
) -> Flow[list[ExtractionOutcome]]:
    """Handle repeated turns: report their current facts, or extract them again."""
    indexes = [
        index
        for index, is_new in enumerate(plan.is_new)
        if not is_new and request.decisions[index].outcome == "keep"
    ]
    if not indexes:
        return []
    ids = tuple(plan.evidence_ids[index] for index in indexes)
    facts = yield from _load_derived_facts(ctx.store, request.scope.account, ids)
    if facts and request.options.prompt is None and not request.options.facts:
        return [
            ExtractionOutcome(
                tuple(
                    Event("NONE", fact.id, fact.text, None, fact.role, fact.actor) for fact in facts
                )
            )
        ]
    decisions = [request.decisions[index] for index in indexes]
    segments = segment_turns(
        (number, decision.turn, decision.own_text) for number, decision in enumerate(decisions)
    )
    job = ExtractionJob(
        request.scope,
        (),
        ids,
        tuple(segments),
        options_to_meta(request.options, request.expires),
        ctx.id_generator.now(),
    )
    outcome = yield from catch_failure(make_job_handler(ctx)(job, None))
    if isinstance(outcome, Failure):
        return [
            ExtractionOutcome(warnings=(f"Extraction failed; the messages are stored: {outcome}",))
        ]
    return [outcome]


def _load_derived_facts(store: Store, account: str, evidence: Sequence[str]) -> Flow[list[Fact]]:
    """Return the facts of some evidence, or none if any of them changed."""
    facts: list[Fact] = []
    for thread in (yield from load_threads_from_evidence(store, account, evidence)):
        fact = yield from call(store.get_fact, account, thread)
        if fact is None or fact.evidence not in evidence:
            return []
        if fact.kind not in UNLISTED_KINDS:
            facts.append(fact)
    return facts
