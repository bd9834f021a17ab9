"""add: observe, gate, extract, curate and commit what was said.

Evidence is committed before a model is asked. What rules find is committed together with it; what a model finds comes
afterwards, at once or by the consumer that catches up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from told.curation.write_policies import check_given_fields
from told.errors import IdempotencyConflict, StoreCorrupt
from told.extraction.registry import KindExtractor
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
from told.ledger.views import format_indexed_text as spelt
from told.model.beliefs import safe_kind
from told.model.entry import Asserted, Blob, Entry, Evidence
from told.model.fact import TURN, UNLISTED_KINDS, Fact
from told.model.kind import Kind, WriteMode
from told.model.query import Event, Receipt
from told.model.scope import Scope
from told.ports import ExistingState, IdempotencyRecord, Store, Vector
from told.runtime import fast_frozen_init
from told.text.tokens import md5_hex, normalise_text


def replay_receipt(
    store: Store, account: str, key: IdempotencyKey, record: IdempotencyRecord
) -> Flow[Receipt]:
    """What the write of a key did; the ticket says what became of which thread, and the ledger what each said."""
    if record.digest != key.digest:
        raise IdempotencyConflict()
    if record.thread_ids() is None or not isinstance(record.seq, int):
        raise StoreCorrupt(
            "What was done under this key cannot be read any more.", hint="Run `told rebuild`."
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
    """What a thread said before a write and then, one assertion of the write after the other."""

    def __init__(self, entries: Sequence[Entry], before: int) -> None:
        texts = [
            (entry.seq, _get_asserted_text(entry)) for entry in entries if entry.sort == "asserted"
        ]
        self.current_text = next((text for seq, text in reversed(texts) if seq <= before), None)
        self._remaining = iter([text for seq, text in texts if seq > before])

    def advance(self) -> str | None:
        """What the thread says with its next assertion; what it says now, if there is none."""
        self.current_text = next(self._remaining, self.current_text)
        return self.current_text


def _get_asserted_text(entry: Entry) -> str | None:
    return entry.verb.claim.text if isinstance(entry.verb, Asserted) else None


PLAIN_KIND = "memory"
PENDING, FAILED, DONE = "pending", "failed", "done"
NO_RESULT = ExtractionResult()


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What an add is to do: whose it is, what was said and judged, and how it is to be kept and understood."""

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
    """Judge what was said: what is refused is gone; what is skipped is evidence only, unless it is to be verbatim."""
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
    """What to say of the fields that turns of a kind are given, or of a key that none of them gives."""
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
    """Keep what was said, and hold what it says."""
    options = request.options
    extractor = _choose_extractor(ctx, request)
    asks_model = extractor is not None and not extractor.local
    first_extractor = (
        ctx.create_extractor(LOCAL)
        if asks_model and options.deferred
        else None
        if asks_model
        else extractor
    )
    segments = (
        []
        if extractor is None
        else _segment_kept_turns(request, whole_turns=isinstance(extractor, KindExtractor))
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
    """Who finds facts in what was said; what is given as one of a kind with rules of its own is that as it stands."""
    if request.kind_rules is not None and request.kind_rules.write is not WriteMode.APPEND:
        return KindExtractor(request.kind, ctx.author)
    if request.options.extractor == VERBATIM or request.kind != PLAIN_KIND:
        return None
    if not request.options.facts:
        return ctx.create_extractor(request.options.extractor)
    from told.extraction.given import GivenExtractor

    return GivenExtractor(parse_sentence)


def _segment_kept_turns(request: WriteRequest, *, whole_turns: bool) -> list[TurnSegment]:
    """What is heard of the turns that passed the gate; what is to be kept as one of a kind is one piece of each."""
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
    """What extractors hear."""
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
    """Commit the evidence with what rules found in it; no plan is left where a key was handed in before."""
    scope, kinds = request.scope, _choose_kinds(request, segments, result, asks_model=asks_model)
    evidence = [decision.turn.evidence for decision in request.decisions]
    md5s, digests = (
        [md5_hex(item.content) for item in evidence],
        [item.digest() for item in evidence],
    )
    passages = (
        [_format_passage(item) for item in evidence] if ctx.embedder and ctx.embedder.local else []
    )
    hashes = list(map(hash_text, passages))
    needs_preceding = (
        bool(evidence) and evidence[0].said_at is not None and messages.is_repliable(evidence[0])
    )

    def decide() -> Flow[tuple[Receipt, WritePlan | None]]:
        name = key.name if key else None
        existing = yield from call(
            ctx.store.lookup_existing,
            scope,
            md5s,
            digests,
            name,
            hashes,
            include_last_turn=needs_preceding,
        )
        if key and existing.idempotency:
            return (
                yield from replay_receipt(ctx.store, scope.account, key, existing.idempotency)
            ), None
        known_vectors: Mapping[bytes, Vector] = {}
        if request.options.extractor != VERBATIM:
            existing, known_vectors = yield from _match_near_duplicates(
                ctx, request, zip(request.decisions, kinds, md5s, strict=True), existing
            )
        turns = zip(request.decisions, kinds, md5s, strict=True)
        requeued_ids = (
            (yield from _find_retracted_evidence(ctx.store, scope.account, existing))
            if asks_model and request.options.deferred
            else ()
        )
        options = request.options if asks_model else None
        plan = plan_evidence(
            ctx,
            scope,
            turns,
            existing,
            expires=request.expires,
            options=options,
            requeued_ids=requeued_ids,
        )
        plan.blobs, plan.vectors = request.blobs, known_vectors
        plan.warnings.update(dict.fromkeys((*request.warnings, *result.warnings)))
        plan.vector_lookup = VectorLookup(
            dict(zip(passages, hashes, strict=True)), existing.vectors, existing.model
        )
        if extractor is not None and inputs is not None and result is not NO_RESULT:
            yield from curate_claims(
                ctx, plan, inputs, result, extractor, segments, request.expires, existing.read_seq
            )
            if not asks_model and request.options.extractor != CLOSED:
                _promote_uncovered_turns(plan, kinds, request.kind)
        return (
            yield from commit_plan(ctx, scope, plan, existing.read_seq, key, request.skipped)
        ), plan

    return (yield from retry_on_conflict(ctx.settings.conflict_retries, decide))


def _find_retracted_evidence(store: Store, account: str, existing: ExistingState) -> Flow[set[str]]:
    """Evidence of which all that was understood has been given up: said again, it is to be asked about again."""
    evidence_ids: set[str] = set()
    for evidence in existing.evidence.values():
        has_retracted = has_listed = False
        for thread in (yield from load_threads_from_evidence(store, account, [evidence])):
            fact = yield from call(store.get_fact, account, thread)
            has_retracted, has_listed = (
                has_retracted or fact is None,
                has_listed or (fact is not None and fact.kind not in UNLISTED_KINDS),
            )
        if has_retracted and not has_listed:
            evidence_ids.add(evidence)
    return evidence_ids


def _promote_uncovered_turns(plan: WritePlan, kinds: Sequence[str | None], kind: str) -> None:
    """Make memories of the turns that nothing came of: what was found in them was not worth keeping beside them."""
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
    """What is known of plain memories that say almost word for word what is held, and the vectors asked for that."""
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
    """What each turn is kept as: a memory, a turn behind what was found in it, or evidence alone."""
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
    """What will be embedded of a turn that is short and answers nobody."""
    return spelt(evidence.name or evidence.role, evidence.content)


# Asking a model -------------------------------------------------------------------------------------------------------


def _extract_now(
    ctx: WriteContext, request: WriteRequest, plan: WritePlan, receipt: Receipt
) -> Flow[Receipt]:
    """Let the model see what was just committed, now; what it cannot do yet is a warning, and stays to be done."""
    account, retries = request.scope.account, ctx.settings.consumer_attempts
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
    notes = (
        [f"Not extracted yet, the words are kept: {progress.failure}"] if progress.failure else []
    )
    if any(outcome.unreadable_replies for outcome in outcomes):
        notes.append(
            "Some of the model's answer could not be read; the words are kept. See `told faults list`."
        )
    if status == FAILED:
        notes.append("Extraction failed; the words are kept. See `told faults list`.")
    warnings = (
        *receipt.warnings,
        *(note for outcome in outcomes for note in outcome.warnings),
        *notes,
    )
    return replace(
        receipt,
        events=(*receipt.events, *(event for outcome in outcomes for event in outcome.events)),
        skipped=(*receipt.skipped, *(row for outcome in outcomes for row in outcome.skipped)),
        warnings=tuple(dict.fromkeys(warnings)),
        extraction=status,
        usage=queue.sum_usage(outcomes).as_dict(),
    )


def _extract_repeated(
    ctx: WriteContext, request: WriteRequest, plan: WritePlan
) -> Flow[list[ExtractionOutcome]]:
    """What was said before in the same words: its facts are still held, or the model is asked once more."""
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
        return [ExtractionOutcome(warnings=(f"Not extracted, the words are kept: {outcome}",))]
    return [outcome]


def _load_derived_facts(store: Store, account: str, evidence: Sequence[str]) -> Flow[list[Fact]]:
    """The facts taken from some evidence, if each of them still says what it said."""
    facts: list[Fact] = []
    for thread in (yield from load_threads_from_evidence(store, account, evidence)):
        fact = yield from call(store.get_fact, account, thread)
        if fact is None or fact.evidence not in evidence:
            return []
        if fact.kind not in UNLISTED_KINDS:
            facts.append(fact)
    return facts
