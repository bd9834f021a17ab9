"""The decisions a curator can come to, and the few questions every rule asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from told.core.belief import CONTRADICTS
from told.core.entry import Claim, Linked
from told.core.fact import QUARANTINE, Fact
from told.core.trust import TRUST_KEY, may_replace, trust_of_claim
from told.core.when import Interval
from told.write.curate.slots import get_slot
from told.write.shape import QUARANTINED, SELF_ID, Decision

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
