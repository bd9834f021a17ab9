"""Quarantine and the way out of it: somebody looks at a claim in doubt and holds it, or gives it up."""

from __future__ import annotations

from dataclasses import replace

from told.core.entry import Claim, Draft, Evidence, Retracted
from told.core.errors import InvalidInput
from told.core.fact import NEVER, QUARANTINE, Fact
from told.core.predicates import lookup_predicate
from told.core.query import Event, Receipt
from told.core.scope import Scope
from told.core.trust import TRUST_KEY
from told.core.when import ALWAYS
from told.flow import Flow, call
from told.ledger.commit import retry_on_conflict
from told.ports import ThreadAt
from told.write.change import require_fact
from told.write.curate.plan import PlanContext, get_bounded_kinds, plan_claims
from told.write.curate.rules import RuleCurator
from told.write.desk import WriteContext, WritePlan, commit_plan
from told.write.embed import embed_after_commit
from told.write.messages import InputTurn
from told.write.shape import CONCEPT, ExtractedClaim, ExtractionInput

ACCEPTED, REJECTED, PLAIN_KIND = "accepted", "rejected", "memory"
QUARANTINE_META_KEYS = frozenset({"kind", "why", "modality", CONCEPT, TRUST_KEY})
"""The metadata of a claim in doubt that it has only there."""


def review_quarantined(
    ctx: WriteContext, account: str, thread: str, scope: Scope | None, *, accept: bool
) -> Flow[Receipt]:
    """Hold a claim that was in doubt as if its reviewer had said it, or give it up; the doubt stays in its history."""

    def decide() -> Flow[Receipt]:
        fact = yield from require_fact(ctx.store, account, thread, scope)
        if fact.kind != QUARANTINE:
            raise InvalidInput(
                f"The memory {thread!r} is not in quarantine.", hint="List those with quarantine()."
            )
        plan = WritePlan(
            [Draft(Retracted(thread, ACCEPTED if accept else REJECTED), fact.scope, ctx.author)],
            [ThreadAt(thread, fact.seq)],
            [],
        )
        if accept:
            yield from _accept_claim(ctx, plan, fact)
        else:
            plan.events.append(
                Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor)
            )
        return (yield from commit_plan(ctx, fact.scope, plan))

    receipt = yield from retry_on_conflict(ctx.settings.conflict_retries, decide)
    return (yield from embed_after_commit(ctx.store, ctx.embedder, account, receipt, ctx.settings))


def _accept_claim(ctx: WriteContext, plan: WritePlan, fact: Fact) -> Flow[None]:
    """Let the rules decide what becomes of a claim that is no longer in doubt."""
    now = ctx.id_generator.now()
    inputs = ExtractionInput(
        (InputTurn(Evidence(fact.text), {}),), now, fact.scope, ctx.extraction.ontology
    )
    head_seq = (yield from call(ctx.store.get_head, fact.scope.account)).seq
    curation = yield from RuleCurator(ctx.store, ctx.settings).decide(
        inputs, [ExtractedClaim(_restore_claim(fact), 0)]
    )
    plan_ctx = PlanContext(
        fact.scope, ctx.author, head_seq, now, ctx.id_generator, get_bounded_kinds(inputs.ontology)
    )
    written = plan_claims(plan_ctx, curation.decisions, [], [])
    plan.drafts += written.drafts
    plan.guards += written.guards
    plan.events += [event for event in written.events if event.id]


def _restore_claim(fact: Fact) -> Claim:
    """What was in doubt, as it was found; from the reviewer it may be of the kind its source could not give it."""
    meta = {name: value for name, value in fact.meta.items() if name not in QUARANTINE_META_KEYS}
    kind, modality = fact.meta.get("kind", PLAIN_KIND), fact.meta.get("modality", "stated")
    if kind == PLAIN_KIND and fact.predicate is not None:
        kind = lookup_predicate(fact.predicate).kind
    claim = Claim(
        fact.text,
        str(kind),
        fact.subject,
        fact.predicate,
        fact.object,
        fact.polarity,
        str(modality),
    )
    expires = None if fact.expires == NEVER else fact.expires
    valid = ALWAYS if fact.precision == ALWAYS.precision else fact.valid_interval()
    return replace(
        claim,
        confidence=fact.confidence,
        valid=valid,
        expires=expires,
        evidence=fact.evidence,
        role="user",
        actor=fact.actor,
        said_at=fact.said_at,
        source=fact.source,
        meta=meta,
    )
