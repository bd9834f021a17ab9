"""Update, retract, link and review memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from told.curation.decisions import PlanContext, get_bounded_kinds, plan_claims
from told.curation.rules import RuleCurator
from told.errors import InvalidInput, NotFoundError
from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan, parse_sentence
from told.ingest.embedding import embed_after_commit
from told.ingest.messages import InputTurn
from told.ingest.types import CONCEPT, ExtractedClaim, ExtractionInput
from told.ledger.commit import commit_batch, retry_on_conflict
from told.model.beliefs import TRUST_KEY
from told.model.entry import Asserted, Claim, Draft, Evidence, Linked, Retracted
from told.model.fact import NEVER, QUARANTINE, Fact
from told.model.kind import lookup_predicate
from told.model.query import Event, FactQuery, Receipt
from told.model.scope import Scope
from told.ports import Batch, Store, ThreadAt
from told.text.dates import ALWAYS, Interval


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """The changes to a memory; `expires` applies only if `set_expiry` is true."""

    text: str | None = None
    meta: Mapping[str, Any] | None = None
    set_expiry: bool = False
    expires: int | None = None
    valid: Interval = ALWAYS


def require_fact(store: Store, account: str, thread: str, scope: Scope | None = None) -> Flow[Fact]:
    """Return the latest version of a thread, or raise NotFoundError if absent or out of scope."""
    fact = yield from call(store.get_fact, account, thread)
    if fact is None or (scope is not None and not scope.covers(fact.scope)):
        raise NotFoundError(
            f"There is no memory {thread!r} here.", hint="List them with get_all()."
        )
    return fact


def update_memory(
    ctx: WriteContext, account: str, thread: str, update: MemoryUpdate, scope: Scope | None = None
) -> Flow[Receipt]:
    """Add a new version to a thread; the previous one stays in its history."""

    def decide() -> Flow[Receipt]:
        fact = yield from require_fact(ctx.store, account, thread, scope)
        claim = _apply_update(fact, update)
        draft = Draft(Asserted(thread, claim, fact.created_at), fact.scope, ctx.author)
        event = Event("UPDATE", thread, claim.text, fact.text, claim.role, claim.actor)
        plan = WritePlan([draft], [ThreadAt(thread, fact.seq)], [event])
        return (yield from commit_plan(ctx, fact.scope, plan))

    receipt = yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide)
    return (yield from embed_after_commit(ctx.store, ctx.embedder, account, receipt, ctx.settings))


def _apply_update(fact: Fact, update: MemoryUpdate) -> Claim:
    """Build the new claim.

    A new text is a new statement valid from now; new metadata alone describes the same statement.
    """
    text_changed = update.text is not None and update.text != fact.text
    expires = (
        update.expires if update.set_expiry else None if fact.expires == NEVER else fact.expires
    )
    is_new_statement = text_changed or update.valid is not ALWAYS
    valid = update.valid if is_new_statement else fact.valid_interval()
    statement = _parse_statement(fact, update.text if text_changed else None)
    return Claim(
        fact.text if update.text is None else update.text,
        fact.kind,
        statement.subject,
        statement.predicate,
        statement.object,
        statement.polarity,
        statement.modality,
        statement.confidence,
        valid,
        expires,
        evidence=None if text_changed else fact.evidence,
        role=fact.role,
        actor=fact.actor,
        said_at=update.valid.start if is_new_statement else fact.said_at,
        source=fact.source,
        after=None if is_new_statement else fact.after,
        meta=fact.meta if update.meta is None else update.meta,
    )


def _parse_statement(fact: Fact, text: str | None) -> Fact | Claim:
    """Return the source of the triple: the fact itself, or its new text parsed."""
    if text is None or fact.predicate is None:
        return fact
    return parse_sentence(text) or Claim(text)


def retract_memory(
    ctx: WriteContext, account: str, thread: str, why: str, scope: Scope | None = None
) -> Flow[Receipt]:
    """Delete a memory; its history is kept."""

    def decide() -> Flow[Receipt]:
        fact = yield from require_fact(ctx.store, account, thread, scope)
        return (yield from _commit_retractions(ctx, account, [fact], why))

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


def retract_all(ctx: WriteContext, query: FactQuery, why: str) -> Flow[Receipt]:
    """Delete all memories matching a query in one transaction."""

    def decide() -> Flow[Receipt]:
        facts = yield from call(ctx.store.find_facts, query)
        return (
            (yield from _commit_retractions(ctx, query.scope.account, facts, why))
            if facts
            else Receipt()
        )

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


def _commit_retractions(
    ctx: WriteContext, account: str, facts: Sequence[Fact], why: str
) -> Flow[Receipt]:
    drafts = [Draft(Retracted(fact.id, why), fact.scope, ctx.author) for fact in facts]
    guards = [ThreadAt(fact.id, fact.seq) for fact in facts]
    entries = yield from commit_batch(ctx.store, Batch(account, drafts, guards))
    events = (
        Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor) for fact in facts
    )
    return Receipt(tuple(events), tx=entries[0].tx)


def link_memories(ctx: WriteContext, scope: Scope, new_link: Linked) -> Flow[Receipt]:
    """Link two memories of a scope."""

    def decide() -> Flow[Receipt]:
        guards = []
        for node in dict.fromkeys((new_link.src, new_link.dst)):
            fact = yield from require_fact(ctx.store, scope.account, node, scope)
            guards.append(ThreadAt(fact.id, fact.seq))
        entries = yield from commit_batch(
            ctx.store, Batch(scope.account, [Draft(new_link, scope, ctx.author)], guards)
        )
        return Receipt((Event("LINK", new_link.dst),), tx=entries[0].tx)

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


ACCEPTED, REJECTED, PLAIN_KIND = "accepted", "rejected", "memory"
QUARANTINE_META_KEYS = frozenset({"kind", "why", "modality", CONCEPT, TRUST_KEY})
"""Metadata that a claim has only while in quarantine."""


def review_quarantined(
    ctx: WriteContext, account: str, thread: str, scope: Scope | None, *, accept: bool
) -> Flow[Receipt]:
    """Accept or reject a quarantined claim; its history is kept."""

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

    receipt = yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide)
    return (yield from embed_after_commit(ctx.store, ctx.embedder, account, receipt, ctx.settings))


def _accept_claim(ctx: WriteContext, plan: WritePlan, fact: Fact) -> Flow[None]:
    """Curate an accepted claim by the rules."""
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
    """Return the quarantined claim as extracted; the reviewer's trust allows its original kind."""
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
