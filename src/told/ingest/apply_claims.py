"""Curate extracted claims, run extraction jobs, and upsert the values of concepts.

Each plans the resulting entries, graph links included, and commits them in one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.curation.decisions import (
    REPEAT_META,
    ClaimPlan,
    PlanContext,
    get_bounded_kinds,
    plan_claims,
)
from told.curation.graph import plan_graph
from told.curation.predicates import is_same_statement
from told.errors import NotFoundError
from told.flow import Flow, call
from told.ingest import chunking
from told.ingest.context import FACT_KEY, WriteContext, WritePlan, commit_plan
from told.ingest.embedding import embed_after_commit
from told.ingest.messages import TurnSegment
from told.ingest.queue import (
    ExtractionJob,
    ExtractionOutcome,
    JobHandler,
    is_job_intact,
    load_retracted_claims,
)
from told.ingest.types import Decision, ExtractedClaim, ExtractionInput, ExtractionResult, Extractor
from told.ledger import clocks
from told.ledger.commit import commit_batch, retry_on_conflict
from told.ledger.consumer import CursorConflict, check_cursor
from told.ledger.erase import SUPPORTS
from told.ledger.views import TICK_SORT, TOKENS_KEY, TURNS_KEY
from told.model.beliefs import TRUST_KEY, Trust, trust_of_channel
from told.model.concepts import (
    EVICTED,
    FADED,
    FORGOTTEN,
    NEGATED,
    VALUE_KEY,
    ConceptBelief,
    ConceptRules,
    ConceptScopes,
    WeightedValue,
    select_evicted,
)
from told.model.entry import Asserted, Claim, Draft, Evidence, Linked, Observed, Retracted, Verb
from told.model.fact import QUARANTINE
from told.model.kind import Kind
from told.model.query import Event, Receipt
from told.model.salience import reinforce
from told.model.scope import Scope
from told.ports import (
    Batch,
    CursorStep,
    EntryIntact,
    Guard,
    Store,
    ThreadAt,
    ThreadUntouched,
    UnchangedSlot,
    Usage,
)
from told.text.echo import OwnText, blank_quoted_spans, find_quoted_spans

RETRACTED_BEFORE_EXTRACTION = "it was given up before a model was asked"


def curate_claims(
    ctx: WriteContext,
    plan: WritePlan,
    inputs: ExtractionInput,
    result: ExtractionResult,
    extractor: Extractor,
    segments: Sequence[TurnSegment],
    expires: int | None,
    head_seq: int,
) -> Flow[Usage]:
    """Decide about extracted claims and add the entries to a plan; return the model usage.

    `segments` maps the turns of `inputs` to those of the plan.
    """
    from told.extraction.replies import DUPLICATE

    claims = _collect_claims(inputs, result, extractor, segments, expires)
    curation = yield from ctx.extraction.create_curator(extractor, ctx.store, ctx.embedder).decide(
        inputs, claims
    )
    evidence_ids = [plan.evidence_ids[segment.turn_index] for segment in segments]
    is_new = [plan.is_new[segment.turn_index] for segment in segments]
    plan_ctx = PlanContext(
        inputs.scope,
        extractor.name,
        head_seq,
        inputs.now,
        ctx.id_generator,
        get_bounded_kinds(inputs.ontology),
    )
    written = plan_claims(plan_ctx, curation.decisions, evidence_ids, is_new)
    plan.drafts += written.drafts
    plan.guards += written.guards
    if result.entities or result.relations:
        graph = yield from plan_graph(
            ctx.store,
            plan_ctx,
            result.entities,
            result.relations,
            list(_list_asserted_threads(curation.decisions, written)),
            evidence_ids,
            _choose_role(inputs),
            [turn.evidence.content for turn in inputs.turns],
        )
        plan.drafts += graph.drafts
        plan.guards += graph.guards
    _report_decisions(plan, curation.decisions, written, segments)
    rejected = (item for item in result.rejected if item.claim is None and item.reason != DUPLICATE)
    plan.skipped += [_make_skipped_row(item.reason, item.text) for item in rejected]
    plan.warnings.update(dict.fromkeys(curation.warnings))
    plan.unreadable_replies += curation.unreadable_replies
    return curation.usage


def _collect_claims(
    inputs: ExtractionInput,
    result: ExtractionResult,
    extractor: Extractor,
    segments: Sequence[TurnSegment],
    expires: int | None,
) -> list[ExtractedClaim]:
    """Return the accepted and quarantined claims with the context of their turns."""
    from told.extraction.registry import KindExtractor

    quarantined = [
        ExtractedClaim(item.claim, item.turn or 0)
        for item in result.rejected
        if item.claim is not None
    ]
    marked = (
        result.claims
        if isinstance(extractor, KindExtractor)
        else [replace(item, claim=_mark_quoted_claim(inputs, item)) for item in result.claims]
    )
    return [
        _attach_turn_context(inputs, item, segments[item.turn].own_text, expires)
        for item in (*marked, *quarantined)
    ]


def _report_decisions(
    plan: WritePlan,
    decisions: Sequence[Decision],
    written: ClaimPlan,
    segments: Sequence[TurnSegment],
) -> None:
    """Add an event for each stored claim, a skipped row for the others, and the turns covered."""
    for decision, event in zip(decisions, written.events, strict=True):
        claim, fact = decision.claim, decision.fact
        if claim is not None and QUARANTINE in (claim.kind, fact.kind if fact else None):
            reason = str(claim.meta.get("why") or decision.why)
            plan.skipped.append(
                {**_make_skipped_row(reason, event.text or ""), "id": event.id, "role": event.role}
            )
        elif event.id:
            plan.events.append(event)
        else:
            plan.skipped.append(
                {**_make_skipped_row(decision.why, event.text or ""), "role": event.role}
            )
    plan.covered_turns |= {
        segments[decision.turn].turn_index
        for decision, thread in zip(decisions, written.threads, strict=True)
        if thread is not None
    }


def _make_skipped_row(reason: str, text: str) -> dict[str, Any]:
    return {"reason": reason, FACT_KEY: text}


def _list_asserted_threads(
    decisions: Sequence[Decision], written: ClaimPlan
) -> Iterator[tuple[str, str]]:
    """Iterate over threads with new text; skip quarantined ones, which get no graph links."""
    for decision, thread, event in zip(decisions, written.threads, written.events, strict=True):
        is_quarantined = decision.claim is not None and decision.claim.kind == QUARANTINE
        if (
            thread is not None
            and event.text is not None
            and event.event in ("ADD", "UPDATE")
            and not is_quarantined
        ):
            yield thread, event.text


def _choose_role(inputs: ExtractionInput) -> str:
    """Return the least trusted role among the turns."""
    return min((turn.evidence.role for turn in inputs.turns), key=trust_of_channel, default="user")


def _mark_quoted_claim(inputs: ExtractionInput, extracted: ExtractedClaim) -> Claim:
    """Lower a claim's trust to a document's if it is grounded only in quoted text."""
    from told.extraction.grounding import GroundingIndex

    claim, evidence = extracted.claim, inputs.turns[extracted.turn].evidence
    blocks = find_quoted_spans(evidence.content)
    if not any(
        claim.span is None or (claim.span[0] < end and start < claim.span[1])
        for start, end in blocks
    ):
        return claim
    ground = GroundingIndex(
        [
            replace(
                inputs.turns[extracted.turn],
                evidence=replace(evidence, content=blank_quoted_spans(evidence.content)),
            )
        ]
    )
    if ground.locate_claim(claim) is not None:
        return claim
    return replace(claim, meta={**claim.meta, TRUST_KEY: Trust.DOCUMENT.label})


def _attach_turn_context(
    inputs: ExtractionInput, extracted: ExtractedClaim, own_text: OwnText, expires: int | None
) -> ExtractedClaim:
    """Add the turn's metadata and expiry to a claim, and map its span to the evidence."""
    claim, turn = extracted.claim, inputs.turns[extracted.turn]
    meta = {**turn.meta, **claim.meta} if turn.meta else claim.meta
    span = None if claim.span is None else own_text.to_source_span(*claim.span)
    expires_at = claim.expires if expires is None else expires
    return replace(extracted, claim=replace(claim, meta=meta, span=span, expires=expires_at))


def make_job_handler(ctx: WriteContext) -> JobHandler:
    """Return a handler that extracts a job and commits the result with the cursor step."""

    def handle_job(job: ExtractionJob, step: CursorStep | None) -> Flow[ExtractionOutcome]:
        extractor = ctx.create_extractor(str(job.options["by"]))
        inputs = _build_input(ctx, job)
        result = yield from chunking.extract_claims(
            extractor, replace(inputs, ontology=ctx.extraction.catalogue), ctx.settings
        )
        usage = result.usage

        def decide() -> Flow[tuple[Receipt, WritePlan]]:
            nonlocal usage
            head_seq = yield from _check_job(ctx.store, job, step)
            plan = _start_plan(job, is_first_run=step is not None)
            remaining = yield from _drop_retracted(ctx.store, job, result, plan)
            curation_usage = yield from curate_claims(
                ctx,
                plan,
                inputs,
                remaining,
                extractor,
                job.segments,
                job.options.get("expires"),
                head_seq,
            )
            usage = usage + curation_usage
            receipt = yield from commit_plan(ctx, job.scope, plan, head_seq, step=step)
            return receipt, plan

        receipt, plan = yield from retry_on_conflict(
            ctx.settings.ingestion.conflict_retries, decide
        )
        return ExtractionOutcome(
            receipt.events,
            (*result.warnings, *receipt.warnings),
            (*result.unreadable_replies, *plan.unreadable_replies),
            usage,
            receipt.skipped,
        )

    return handle_job


def _check_job(store: Store, job: ExtractionJob, step: CursorStep | None) -> Flow[int]:
    """Return the ledger head; raise CursorConflict if the cursor moved or the job changed."""
    account = job.scope.account
    yield from check_cursor(store, account, step)
    head_seq = (yield from call(store.get_head, account)).seq
    if not (yield from is_job_intact(store, account, job)):
        raise CursorConflict
    return head_seq


def _start_plan(job: ExtractionJob, *, is_first_run: bool) -> WritePlan:
    """Return the plan of a job; on a retry its evidence already counts as support."""
    guards: list[Guard] = [EntryIntact(seq) for seq in job.seqs]
    return WritePlan(
        [],
        guards,
        [],
        evidence_ids=list(job.evidence_ids),
        is_new=[is_first_run] * len(job.evidence_ids),
    )


def _drop_retracted(
    store: Store, job: ExtractionJob, result: ExtractionResult, plan: WritePlan
) -> Flow[ExtractionResult]:
    """Return the result without claims that were retracted meanwhile, noting them as skipped."""
    retracted = yield from load_retracted_claims(store, job.scope.account, job)
    repeated = [
        item
        for item in result.claims
        if any(is_same_statement(item.claim, claim) for claim in retracted[item.turn])
    ]
    plan.skipped += [
        {
            **_make_skipped_row(RETRACTED_BEFORE_EXTRACTION, item.claim.text),
            "role": item.claim.role,
        }
        for item in repeated
    ]
    return replace(result, claims=tuple(item for item in result.claims if item not in repeated))


def _build_input(ctx: WriteContext, job: ExtractionJob) -> ExtractionInput:
    options: Mapping[str, Any] = job.options
    turns, facts = tuple(segment.turn for segment in job.segments), tuple(options.get("facts", ()))
    return ExtractionInput(
        turns,
        job.observed_at,
        job.scope,
        ctx.extraction.ontology,
        (),
        options.get("prompt"),
        ctx.settings.zone,
        facts,
    )


QUOTE: Final = "quote"
"""Sort of evidence that quotes a sentence of a turn and is no turn itself."""


@dataclass(frozen=True, slots=True)
class ConceptStatement:
    """An asserted or negated concept value, with the sentence that states it."""

    kind: Kind
    value: str
    polarity: str
    quote: str


@dataclass(slots=True)
class _ConceptUpdate:
    """Plans the entries of one concept statement."""

    ctx: WriteContext
    scope: Scope
    statement: ConceptStatement
    head_seq: int
    plan: WritePlan = field(default_factory=lambda: WritePlan([], [], []))

    def add_evidence(self) -> str:
        """Plan the evidence and return its id."""
        evidence = self.ctx.id_generator.new_id()
        self._add_draft(
            Observed(
                evidence,
                Evidence(self.statement.quote, said_at=self.ctx.id_generator.now(), sort=QUOTE),
            )
        )
        return evidence

    def add_belief(self, thread: str, evidence: str) -> None:
        """Plan a new belief."""
        from told.extraction.grounding import DEFAULT_SPEAKER

        kind, value = self.statement.kind, self.statement.value
        text = f"{kind.label or kind.name}: {value}"
        meta = {VALUE_KEY: value}
        claim = Claim(
            text,
            kind.name,
            DEFAULT_SPEAKER,
            kind.name,
            value,
            evidence=evidence,
            role="user",
            meta=meta,
        )
        self._add_draft(Asserted(thread, claim))
        self.plan.guards.append(
            UnchangedSlot(self.scope, DEFAULT_SPEAKER, (kind.name,), self.head_seq)
        )
        self.plan.events.append(Event("ADD", thread, text))

    def add_support(self, belief: ConceptBelief, evidence: str) -> None:
        """Plan more support for a belief."""
        thread = belief.fact.id
        self._add_draft(Linked(evidence, SUPPORTS, thread, meta=REPEAT_META))
        self.plan.guards.append(ThreadAt(thread, belief.fact.seq))
        self.plan.events.append(Event("NONE", thread))

    def retract_belief(self, thread: str, why: str) -> None:
        """Plan the retraction of a belief, unless it changes meanwhile."""
        self._add_draft(Retracted(thread, why))
        self.plan.guards.append(ThreadUntouched(thread, self.head_seq))
        self.plan.events.append(Event("DELETE", thread))

    def _add_draft(self, verb: Verb) -> None:
        self.plan.drafts.append(Draft(verb, self.scope, self.ctx.author))


def upsert_value(
    ctx: WriteContext,
    concept_scopes: ConceptScopes,
    rules: ConceptRules,
    statement: ConceptStatement,
) -> Flow[Receipt]:
    """Add, reinforce or retract a concept value."""
    scope = concept_scopes.scope_for(statement.kind.tier)

    def decide() -> Flow[Receipt]:
        head = yield from call(ctx.store.get_head, scope.account)
        beliefs = yield from clocks.load_beliefs(
            ctx.store, concept_scopes, rules, ctx.settings, [statement.kind.name]
        )
        plan = _plan_update(_ConceptUpdate(ctx, scope, statement, head.seq), rules, beliefs)
        return (yield from commit_plan(ctx, scope, plan, head.seq))

    receipt = yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide)
    return (
        yield from embed_after_commit(ctx.store, ctx.embedder, scope.account, receipt, ctx.settings)
    )


def _plan_update(
    update: _ConceptUpdate, rules: ConceptRules, beliefs: Sequence[ConceptBelief]
) -> WritePlan:
    """Plan the retraction of faded beliefs and the effect of a statement."""
    statement, evidence = update.statement, update.add_evidence()
    active = [belief.to_weighted_value() for belief in beliefs if not belief.strength.is_faded]
    for belief in beliefs:
        if belief.strength.is_faded:
            update.retract_belief(belief.fact.id, FADED)
    matched = rules.matcher.find_match(statement.value, active)
    if statement.polarity == NEGATED:
        if matched is not None:
            update.retract_belief(matched.id, NEGATED)
    elif matched is not None:
        update.add_support(
            next(belief for belief in beliefs if belief.fact.id == matched.id), evidence
        )
    else:
        _make_room(update, rules, active, evidence)
    return update.plan


def _make_room(
    update: _ConceptUpdate, rules: ConceptRules, active: Sequence[WeightedValue], evidence: str
) -> None:
    """Plan a new belief and evict others over capacity; skip the belief if it would be evicted."""
    kind, thread = update.statement.kind, update.ctx.id_generator.new_id()
    weight = reinforce(rules.build_curve(kind.name, kind.tier), 0.0)
    last_place = max((candidate.position for candidate in active), default=0)
    evicted = [
        candidate.id
        for candidate in select_evicted(
            kind, [*active, WeightedValue(thread, update.statement.value, weight, last_place + 1)]
        )
    ]
    for candidate in evicted:
        if candidate != thread:
            update.retract_belief(candidate, EVICTED)
    if thread not in evicted:
        update.add_belief(thread, evidence)


def record_turns(ctx: WriteContext, scope: Scope, turns: int, tokens: int | None) -> Flow[Receipt]:
    """Advance the turn clock by some turns, with `turn_tokens` each unless `tokens` is given."""
    size = turns * ctx.settings.maintenance.turn_tokens if tokens is None else tokens
    evidence = Evidence(
        "",
        "system",
        said_at=ctx.id_generator.now(),
        sort=TICK_SORT,
        meta={TURNS_KEY: turns, TOKENS_KEY: size},
    )
    draft = Draft(Observed(ctx.id_generator.new_id(), evidence), scope, ctx.author)
    entries = yield from commit_batch(ctx.store, Batch(scope.account, [draft]))
    return Receipt(tx=entries[0].tx)


def forget_beliefs(
    ctx: WriteContext, concept_scopes: ConceptScopes, threads: Sequence[str]
) -> Flow[Receipt]:
    """Retract beliefs, current or faded; their history is kept."""
    account = concept_scopes.lasting.account
    drafts: list[Draft] = []
    for thread in threads:
        scope = yield from _load_thread_scope(ctx.store, account, thread)
        if scope not in concept_scopes.distinct:
            raise NotFoundError(
                f"There is no memory {thread!r} here.", hint="List them with about()."
            )
        drafts.append(Draft(Retracted(thread, FORGOTTEN), scope, ctx.author))
    entries = yield from commit_batch(ctx.store, Batch(account, drafts))
    return Receipt(tuple(Event("DELETE", thread) for thread in threads), tx=entries[0].tx)


def _load_thread_scope(store: Store, account: str, thread: str) -> Flow[Scope | None]:
    """Return the scope of a thread, current or not."""
    entries = yield from call(store.scan_entries, account, thread=thread)
    return next((entry.draft.scope for entry in entries if entry.draft is not None), None)
