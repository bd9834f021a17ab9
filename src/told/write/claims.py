"""From what an extractor found to the entries of a plan: curated, carried out, and woven into the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.core.echo import OwnText
from told.core.entry import Claim
from told.core.fact import QUARANTINE
from told.core.hearsay import blank_quoted_spans, find_quoted_spans
from told.core.query import Receipt
from told.core.trust import TRUST_KEY, Trust, trust_of_channel
from told.flow import Flow, call
from told.ledger.commit import retry_on_conflict
from told.ports import CursorStep, EntryIntact, Guard, Usage
from told.write import chunk
from told.write.curate.graph import plan_graph
from told.write.curate.plan import ClaimPlan, PlanContext, get_bounded_kinds, plan_claims
from told.write.curate.slots import is_same_statement
from told.write.desk import FACT_KEY, WriteContext, WritePlan, commit_plan
from told.write.extract.ground import GroundingIndex
from told.write.extract.parse import DUPLICATE
from told.write.extract.verbatim import KindExtractor
from told.write.hearing import TurnSegment
from told.write.shape import Decision, ExtractedClaim, ExtractionInput, ExtractionResult, Extractor
from told.write.understand import (
    CursorConflict,
    ExtractionJob,
    ExtractionOutcome,
    JobHandler,
    is_job_intact,
    load_retracted_claims,
)

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
    """Add to a plan what becomes of the claims; `parts` says what of which turn of the plan each heard turn is."""
    quarantined = [
        ExtractedClaim(item.claim, item.turn or 0)
        for item in result.rejected
        if item.claim is not None
    ]
    is_kind_extractor = isinstance(extractor, KindExtractor)
    marked = (
        result.claims
        if is_kind_extractor
        else [replace(item, claim=_mark_quoted_claim(inputs, item)) for item in result.claims]
    )
    claims = [
        _attach_turn_context(inputs, item, segments[item.turn].own_text, expires)
        for item in (*marked, *quarantined)
    ]
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
        asserted = list(_list_asserted_threads(curation.decisions, written))
        texts = [turn.evidence.content for turn in inputs.turns]
        graph = yield from plan_graph(
            ctx.store,
            plan_ctx,
            result.entities,
            result.relations,
            asserted,
            evidence_ids,
            _choose_role(inputs),
            texts,
        )
        plan.drafts += graph.drafts
        plan.guards += graph.guards
    _report_decisions(plan, curation.decisions, written)
    threads = zip(curation.decisions, written.threads, strict=True)
    plan.covered_turns |= {
        segments[decision.turn].turn_index for decision, thread in threads if thread is not None
    }
    rejected = (item for item in result.rejected if item.claim is None and item.reason != DUPLICATE)
    plan.skipped += [_make_skipped_row(item.reason, item.text) for item in rejected]
    plan.warnings.update(dict.fromkeys(curation.warnings))
    plan.unreadable_replies += curation.unreadable_replies
    return curation.usage


def _report_decisions(plan: WritePlan, decisions: Sequence[Decision], written: ClaimPlan) -> None:
    """Tell what became of each claim: what is held now, and what waits for somebody to look at it."""
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


def _make_skipped_row(reason: str, text: str) -> dict[str, Any]:
    return {"reason": reason, FACT_KEY: text}


def _list_asserted_threads(
    decisions: Sequence[Decision], written: ClaimPlan
) -> Iterator[tuple[str, str]]:
    """The threads that claims were put on, and what they say now; no name leads to what is in doubt."""
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
    """Who speaks for what was heard: the least trusted of those who do."""
    return min((turn.evidence.role for turn in inputs.turns), key=trust_of_channel, default="user")


def _mark_quoted_claim(inputs: ExtractionInput, extracted: ExtractedClaim) -> Claim:
    """A claim with the stamp of a document, where it stands in what the speaker quotes and nowhere else in the turn."""
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
    """A claim with what the caller attached to the turn it was found in, and its span in the evidence itself."""
    claim, turn = extracted.claim, inputs.turns[extracted.turn]
    meta = {**turn.meta, **claim.meta} if turn.meta else claim.meta
    span = None if claim.span is None else own_text.to_source_span(*claim.span)
    expires_at = claim.expires if expires is None else expires
    return replace(extracted, claim=replace(claim, meta=meta, span=span, expires=expires_at))


def make_job_handler(ctx: WriteContext) -> JobHandler:
    """What asks an extractor about a case and commits what comes of it, together with the step."""

    def handle_job(job: ExtractionJob, step: CursorStep | None) -> Flow[ExtractionOutcome]:
        extractor = ctx.create_extractor(str(job.options["by"]))
        inputs = _build_input(ctx, job)
        result = yield from chunk.extract_claims(
            extractor, replace(inputs, ontology=ctx.extraction.catalogue), ctx.settings
        )
        usage = result.usage

        def decide() -> Flow[tuple[Receipt, WritePlan]]:
            nonlocal usage
            account = job.scope.account
            if (
                step is not None
                and (yield from call(ctx.store.get_cursor, account, step.consumer)) != step.before
            ):
                raise CursorConflict
            head_seq = (yield from call(ctx.store.get_head, account)).seq
            if not (yield from is_job_intact(ctx.store, account, job)):
                raise CursorConflict
            guards: list[Guard] = [EntryIntact(seq) for seq in job.seqs]
            is_first_run = (
                step is not None
            )  # whoever is asked once more has been counted as a witness
            plan = WritePlan(
                [],
                guards,
                [],
                evidence_ids=list(job.evidence_ids),
                is_new=[is_first_run] * len(job.evidence_ids),
            )
            expires = job.options.get("expires")
            retracted = yield from load_retracted_claims(ctx.store, account, job)
            repeated = [
                item
                for item in result.claims
                if any(
                    is_same_statement(item.claim, retracted_claim)
                    for retracted_claim in retracted[item.turn]
                )
            ]
            plan.skipped += [
                {
                    **_make_skipped_row(RETRACTED_BEFORE_EXTRACTION, item.claim.text),
                    "role": item.claim.role,
                }
                for item in repeated
            ]
            remaining = replace(
                result, claims=tuple(item for item in result.claims if item not in repeated)
            )
            curation_usage = yield from curate_claims(
                ctx, plan, inputs, remaining, extractor, job.segments, expires, head_seq
            )
            usage = usage + curation_usage
            receipt = yield from commit_plan(ctx, job.scope, plan, head_seq, step=step)
            return receipt, plan

        receipt, plan = yield from retry_on_conflict(ctx.settings.conflict_retries, decide)
        warnings = (*result.warnings, *receipt.warnings)
        return ExtractionOutcome(
            receipt.events,
            warnings,
            (*result.unreadable_replies, *plan.unreadable_replies),
            usage,
            receipt.skipped,
        )

    return handle_job


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
