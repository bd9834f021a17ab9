"""Turn decisions into ledger drafts, guards and events.

Drafts reference evidence by id, so they can be committed with the evidence or after it.
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
    """The scope, author, position and time that decisions are applied with.

    `bounded_kinds` are the kinds with a cardinality limit.
    """

    scope: Scope
    author: str
    position: int
    now: int
    id_generator: IdGenerator
    bounded_kinds: frozenset[str] = frozenset()


def get_bounded_kinds(ontology: Ontology) -> frozenset[str]:
    """Return the kinds with a cardinality limit."""
    return frozenset(name for name, kind in ontology.items() if kind.cardinality is not None)


@dataclass(slots=True)
class ClaimPlan:
    """Drafts with their guards, one event per decision, and the thread of each decision."""

    drafts: list[Draft] = field(default_factory=list)
    guards: dict[Guard, None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    threads: list[str | None] = field(default_factory=list)
    threads_by_alias: dict[str, str] = field(default_factory=dict)
    """The thread of each decision, by the planned id that later decisions use."""
    supported: set[tuple[str | None, str]] = field(default_factory=set)
    """The (evidence, thread) pairs that are already linked."""


def plan_claims(
    ctx: PlanContext,
    decisions: Sequence[Decision],
    evidence: Sequence[str],
    fresh: Sequence[bool] | None = None,
) -> ClaimPlan:
    """Build the entries for some decisions.

    `evidence` is the evidence id of each turn. `fresh` marks evidence not seen before (default:
    all); known evidence is not counted as support again.
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
    """Add the drafts, guards and event of one decision to the plan."""
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
    """Build guards against concurrent changes of the memory, its slot or its kind."""
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
    """Return the metadata of a support link, with the trust of its source."""
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
    """Build the receipt event of a decision.

    An update of an unlisted memory is reported as an ADD.
    """
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
"""Modalities that are kept beside stated facts and never replace them."""
NEGATED, SUPERSEDED, EVICTED = "negated", "superseded", "evicted"
OUTRANKED: Final = "a more trusted source says otherwise"


def get_said_time(item: Claim | Fact, now: int) -> int:
    """Return when a claim or fact was said; without a time, when it was written."""
    if item.said_at is not None:
        return item.said_at
    return item.updated_at if isinstance(item, Fact) else now


def is_late(claim: Claim, fact: Fact, now: int) -> bool:
    """Return True if a claim was said before the fact, although it arrives later.

    If either has no time of its own, differences below a minute are ignored, so that concurrent
    writers do not become history to each other.
    """
    tolerance = 0 if claim.said_at is not None and fact.said_at is not None else CLOCK_TOLERANCE
    return get_said_time(claim, now) < get_said_time(fact, now) - tolerance


def is_ended(item: Claim | Fact, now: int) -> bool:
    """Return True if the validity of a claim or fact is over."""
    if isinstance(item, Fact):
        return item.valid_to <= now
    return item.valid.end is not None and item.valid.end <= now


def is_tentative(item: Claim | Fact, now: int) -> bool:
    """Return True if a claim or fact is hedged, planned, or only valid in the future."""
    start = item.valid_from if isinstance(item, Fact) else item.valid.start
    return item.modality in TENTATIVE_MODALITIES or (
        start is not None and start > max(now, get_said_time(item, now))
    )


def is_trusted_over(claim: Claim, fact: Fact) -> bool:
    """Return True if a claim may replace or retire a memory."""
    return may_replace(trust_of_claim(claim), trust_of_claim(fact))


def merge_meta(fact: Fact, claim: Claim) -> dict[str, Any]:
    """Merge the metadata, preferring the claim's and dropping the memory's trust stamp."""
    return {**{name: value for name, value in fact.meta.items() if name != TRUST_KEY}, **claim.meta}


# Decisions


def decide_add(claim: Claim, reason: str, *links: Linked) -> Decision:
    """Add a new memory."""
    return Decision("ADD", claim, links=links, why=reason)


def decide_update(claim: Claim, fact: Fact, reason: str) -> Decision:
    """Write a new version of a memory."""
    return Decision("UPDATE", claim, fact, why=reason)


def decide_none(claim: Claim, fact: Fact | None, reason: str) -> Decision:
    """Change nothing; the memory gains support."""
    return Decision("NONE", claim, fact, why=reason)


def decide_delete(claim: Claim, fact: Fact, reason: str) -> Decision:
    """Retract a memory."""
    return Decision("DELETE", claim, fact, why=reason)


def build_contradiction(claim: Claim, fact: Fact) -> Linked:
    """Build the link that records a contradiction between a claim and a memory."""
    values = [fact.object or fact.text, claim.object or claim.text]
    return Linked(
        SELF_ID,
        CONTRADICTS,
        fact.id,
        meta={"slot": get_slot(claim.predicate or ""), "values": values},
    )


def decide_quarantine(claim: Claim, fact: Fact, reason: str = OUTRANKED) -> Decision:
    """Quarantine a claim that contradicts a more trusted memory."""
    meta = {**claim.meta, "kind": claim.kind, "why": reason}
    held_claim = replace(claim, kind=QUARANTINE, modality=QUARANTINED, meta=meta)
    return decide_add(held_claim, reason, build_contradiction(claim, fact))


def make_historical(claim: Claim, fact: Fact, now: int) -> Claim:
    """Return the claim with a validity that ends when the current fact began."""
    start = claim.valid.start
    if start is None or start >= get_said_time(fact, now):
        start = get_said_time(claim, now)
    end = fact.valid_from if start < fact.valid_from else max(get_said_time(fact, now), start + 1)
    precision = "instant" if claim.valid.precision == "open" else claim.valid.precision
    return replace(claim, valid=Interval(start, end, precision))
