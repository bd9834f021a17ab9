"""From decisions to ledger entries: drafts, the guards that keep two writers from both winning, and the events to tell.

The drafts name evidence by id, so they can be committed together with it in one transaction, or after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.curation.predicates import build_lookup_pairs, get_slot
from told.ids import IdGenerator
from told.ingest.types import QUARANTINED, SELF_ID, Decision, make_planned_id
from told.ledger.erase import SUPPORTS
from told.model.beliefs import CONTRADICTS, TRUST_KEY, Trust, may_replace, trust_of_claim
from told.model.entry import Asserted, Claim, Draft, Linked, Retracted, Verb
from told.model.fact import QUARANTINE, UNLISTED_KINDS, Fact
from told.model.kind import Ontology
from told.model.query import Event
from told.model.scope import Scope
from told.ports import Guard, KindNotGrown, NoFact, ThreadAt, UnchangedSlot
from told.text.dates import Interval
from told.text.tokens import md5_hex

REPEAT_META: Final = {"said": "again"}


@dataclass(frozen=True, slots=True)
class PlanContext:
    """Where decisions are carried out: a scope, its author, the position and the time they were made at.

    `bounded` are the kinds of which only so many are held.
    """

    scope: Scope
    author: str
    position: int
    now: int
    id_generator: IdGenerator
    bounded_kinds: frozenset[str] = frozenset()


def get_bounded_kinds(ontology: Ontology) -> frozenset[str]:
    """The kinds of which only so many are held."""
    return frozenset(name for name, kind in ontology.items() if kind.cardinality is not None)


@dataclass(slots=True)
class ClaimPlan:
    """What decisions come to: drafts with their guards, an event for each, and the thread each one is about."""

    drafts: list[Draft] = field(default_factory=list)
    guards: dict[Guard, None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    threads: list[str | None] = field(default_factory=list)
    threads_by_alias: dict[str, str] = field(default_factory=dict)
    """The thread each decision is about, by the name that later decisions have for it."""
    supported: set[tuple[str | None, str]] = field(default_factory=set)
    """Which evidence already speaks for which thread."""


def plan_claims(
    ctx: PlanContext,
    decisions: Sequence[Decision],
    evidence: Sequence[str],
    fresh: Sequence[bool] | None = None,
) -> ClaimPlan:
    """The entries that carry decisions out.

    `evidence` is the id of each turn's evidence; `fresh` says which of it was never seen before (all of it, unless
    said): what was seen before has already been counted as a witness.
    """
    plan = ClaimPlan()
    for decision in decisions:
        evidence_id = evidence[decision.turn] if decision.turn < len(evidence) else None
        is_new = fresh is None or decision.turn >= len(fresh) or fresh[decision.turn]
        _apply_decision(plan, ctx, decision, evidence_id, is_new=is_new)
    return plan


def _apply_decision(
    plan: ClaimPlan, ctx: PlanContext, decision: Decision, evidence_id: str | None, *, is_new: bool
) -> None:
    aliases = plan.threads_by_alias
    fact = (
        None
        if decision.fact is None
        else replace(decision.fact, id=aliases.get(decision.fact.id, decision.fact.id))
    )
    thread = (
        ctx.id_generator.new_id() if decision.event == "ADD" else None if fact is None else fact.id
    )
    plan.threads.append(thread)
    if thread is not None:
        plan.guards.update(
            dict.fromkeys(_build_guards(ctx, decision, fact, is_own=thread in aliases.values()))
        )
        is_support = (
            is_new
            and (evidence_id, thread) not in plan.supported
            and fact is not None
            and fact.evidence != evidence_id
        )
        verbs = _build_verbs(decision, fact, thread, evidence_id, is_support=is_support)
        plan.drafts += [
            Draft(verb, ctx.scope, ctx.author)
            for verb in (*verbs, *_resolve_links(decision, thread, aliases))
        ]
        plan.supported.add((evidence_id, thread))
        aliases[make_planned_id(len(plan.threads) - 1)] = thread
    plan.events.append(_build_event(decision, fact, thread))


def _build_guards(
    ctx: PlanContext, decision: Decision, fact: Fact | None, *, is_own: bool
) -> list[Guard]:
    """What must still hold: nobody changed the memory, spoke of the same slot or filled the kind."""
    claim = decision.claim
    guards: list[Guard] = []
    if decision.event == "ADD" and claim is not None and claim.kind in ctx.bounded_kinds:
        guards.append(KindNotGrown(ctx.scope, claim.kind, ctx.position))
    if decision.event == "ADD" and claim is not None and claim.predicate is None:
        return [*guards, NoFact(ctx.scope, (md5_hex(claim.text),))]
    if fact is not None and not is_own:
        guards.append(ThreadAt(fact.id, fact.seq))
    if decision.event in ("ADD", "UPDATE") and claim is not None and claim.subject is not None:
        predicates = tuple(name for _, name in build_lookup_pairs(claim))
        guards.append(UnchangedSlot(ctx.scope, claim.subject, predicates, ctx.position))
    return guards


def _build_verbs(
    decision: Decision, fact: Fact | None, thread: str, evidence_id: str | None, *, is_support: bool
) -> list[Verb]:
    claim = decision.claim
    match decision.event:
        case "ADD" | "UPDATE" if claim is not None:
            created_at = None if fact is None else fact.created_at
            return [
                Asserted(thread, replace(claim, evidence=claim.evidence or evidence_id), created_at)
            ]
        case "DELETE":
            return [Retracted(thread, decision.why)]
        case _ if is_support and evidence_id is not None:
            return [Linked(evidence_id, SUPPORTS, thread, meta=_build_repeat_meta(claim))]
        case _:
            return []


def _build_repeat_meta(claim: Claim | None) -> dict[str, str]:
    """How a witness counts: as much as whoever spoke."""
    trust = Trust.USER if claim is None else trust_of_claim(claim)
    return REPEAT_META if trust is Trust.USER else {**REPEAT_META, TRUST_KEY: trust.label}


def _resolve_links(decision: Decision, thread: str, aliases: dict[str, str]) -> list[Linked]:
    if not decision.links:
        return []
    thread_ids = {**aliases, SELF_ID: thread}
    ends = (
        (link, thread_ids.get(link.src, link.src), thread_ids.get(link.dst, link.dst))
        for link in decision.links
    )
    return [replace(link, src=src, dst=dst) for link, src, dst in ends]


def _build_event(decision: Decision, fact: Fact | None, thread: str | None) -> Event:
    """What a receipt tells of a decision: of what is not held there is no id, and what was not listed is new."""
    claim = decision.claim
    if decision.event == "UPDATE" and fact is not None and fact.kind in UNLISTED_KINDS:
        decision, fact = replace(decision, event="ADD"), None
    new = claim.text if claim is not None and decision.event in ("ADD", "UPDATE") else None
    text = new or (fact.text if fact is not None else claim.text if claim is not None else None)
    old = fact.text if fact is not None and decision.event in ("UPDATE", "DELETE") else None
    role, actor = (claim.role, claim.actor) if claim is not None else (None, None)
    return Event(decision.event, thread or "", text, old, role, actor)


CLOCK_TOLERANCE: Final = 60_000_000
TENTATIVE_MODALITIES: Final = frozenset(
    {"hedged", "planned", "hypothetical", "conditional", "desired", QUARANTINED}
)
"""Modalities of what may turn out otherwise: it stands beside what is stated and never takes its place."""
NEGATED, SUPERSEDED, EVICTED = "negated", "superseded", "evicted"
OUTRANKED: Final = "a more trusted source says otherwise"


def get_said_time(item: Claim | Fact, now: int) -> int:
    """When something was said; what carries no time was said when it was written."""
    if item.said_at is not None:
        return item.said_at
    return item.updated_at if isinstance(item, Fact) else now


def is_late(claim: Claim, fact: Fact, now: int) -> bool:
    """Whether a claim is older than what is held, although it arrives only now.

    Where either carries no time of its own, clocks are compared, and two who write at once must not be history to each
    other: a minute is no difference.
    """
    tolerance = 0 if claim.said_at is not None and fact.said_at is not None else CLOCK_TOLERANCE
    return get_said_time(claim, now) < get_said_time(fact, now) - tolerance


def is_ended(item: Claim | Fact, now: int) -> bool:
    """Whether something is over."""
    if isinstance(item, Fact):
        return item.valid_to <= now
    return item.valid.end is not None and item.valid.end <= now


def is_tentative(item: Claim | Fact, now: int) -> bool:
    """Whether something is not stated of the present: it is hedged, planned, or only begins."""
    start = item.valid_from if isinstance(item, Fact) else item.valid.start
    return item.modality in TENTATIVE_MODALITIES or (
        start is not None and start > max(now, get_said_time(item, now))
    )


def is_trusted_over(claim: Claim, fact: Fact) -> bool:
    """Whether a claim may replace or retire a memory."""
    return may_replace(trust_of_claim(claim), trust_of_claim(fact))


def merge_meta(fact: Fact, claim: Claim) -> dict[str, Any]:
    """The metadata of both, the claim's before the memory's; what a memory was worth says nothing of a claim."""
    return {**{name: value for name, value in fact.meta.items() if name != TRUST_KEY}, **claim.meta}


# Decisions ------------------------------------------------------------------------------------------------------------


def decide_add(claim: Claim, reason: str, *links: Linked) -> Decision:
    """A memory of its own."""
    return Decision("ADD", claim, links=links, why=reason)


def decide_update(claim: Claim, fact: Fact, reason: str) -> Decision:
    """A new version of what is held."""
    return Decision("UPDATE", claim, fact, why=reason)


def decide_none(claim: Claim, fact: Fact | None, reason: str) -> Decision:
    """Nothing new; what is held gains a witness."""
    return Decision("NONE", claim, fact, why=reason)


def decide_delete(claim: Claim, fact: Fact, reason: str) -> Decision:
    """What is held is held no more."""
    return Decision("DELETE", claim, fact, why=reason)


def build_contradiction(claim: Claim, fact: Fact) -> Linked:
    """That a claim and a memory cannot both be true, and of what."""
    values = [fact.object or fact.text, claim.object or claim.text]
    return Linked(
        SELF_ID,
        CONTRADICTS,
        fact.id,
        meta={"slot": get_slot(claim.predicate or ""), "values": values},
    )


def decide_quarantine(claim: Claim, fact: Fact, reason: str = OUTRANKED) -> Decision:
    """A claim that may not touch what it contradicts: it waits for somebody to look at it, and no recall shows it."""
    meta = {**claim.meta, "kind": claim.kind, "why": reason}
    held_claim = replace(claim, kind=QUARANTINE, modality=QUARANTINED, meta=meta)
    return decide_add(held_claim, reason, build_contradiction(claim, fact))


def make_historical(claim: Claim, fact: Fact, now: int) -> Claim:
    """A claim that was true until what is held began."""
    start = claim.valid.start
    if start is None or start >= get_said_time(fact, now):
        start = get_said_time(claim, now)
    end = fact.valid_from if start < fact.valid_from else max(get_said_time(fact, now), start + 1)
    precision = "instant" if claim.valid.precision == "open" else claim.valid.precision
    return replace(claim, valid=Interval(start, end, precision))
