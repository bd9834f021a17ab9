"""The decisions a curator can come to, and the few questions every rule asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from told.core.belief import CONTRADICTS
from told.core.entry import Claim, Linked
from told.core.fact import QUARANTINE, Fact
from told.core.trust import STAMP, may_touch, trust_of
from told.core.when import Interval
from told.write.curate.slots import slot_of
from told.write.shape import QUARANTINED, SELF, Decision

MINUTE: Final = 60_000_000
TENTATIVE: Final = frozenset({"hedged", "planned", "hypothetical", "conditional", "desired", QUARANTINED})
"""Modalities of what may turn out otherwise: it stands beside what is stated and never takes its place."""
NEGATED, SUPERSEDED, EVICTED = "negated", "superseded", "evicted"
OUTRANKED: Final = "a more trusted source says otherwise"


def said(it: Claim | Fact, now: int) -> int:
    """When something was said; what carries no time was said when it was written."""
    if it.said_at is not None:
        return it.said_at
    return it.updated_at if isinstance(it, Fact) else now


def late(claim: Claim, fact: Fact, now: int) -> bool:
    """Whether a claim is older than what is held, although it arrives only now.

    Where either carries no time of its own, clocks are compared, and two who write at once must not be history to each
    other: a minute is no difference.
    """
    haste = 0 if claim.said_at is not None and fact.said_at is not None else MINUTE
    return said(claim, now) < said(fact, now) - haste


def ended(it: Claim | Fact, now: int) -> bool:
    """Whether something is over."""
    if isinstance(it, Fact):
        return it.valid_to <= now
    return it.valid.end is not None and it.valid.end <= now


def tentative(it: Claim | Fact, now: int) -> bool:
    """Whether something is not stated of the present: it is hedged, planned, or only begins."""
    begins = it.valid_from if isinstance(it, Fact) else it.valid.start
    return it.modality in TENTATIVE or (begins is not None and begins > max(now, said(it, now)))


def outranks(claim: Claim, fact: Fact) -> bool:
    """Whether a claim may replace or retire a memory."""
    return may_touch(trust_of(claim), trust_of(fact))


def joined(fact: Fact, claim: Claim) -> dict[str, Any]:
    """The metadata of both, the claim's before the memory's; what a memory was worth says nothing of a claim."""
    return {**{name: value for name, value in fact.meta.items() if name != STAMP}, **claim.meta}


# Decisions ------------------------------------------------------------------------------------------------------------


def add(claim: Claim, why: str, *links: Linked) -> Decision:
    """A memory of its own."""
    return Decision("ADD", claim, links=links, why=why)


def update(claim: Claim, fact: Fact, why: str) -> Decision:
    """A new version of what is held."""
    return Decision("UPDATE", claim, fact, why=why)


def none(claim: Claim, fact: Fact | None, why: str) -> Decision:
    """Nothing new; what is held gains a witness."""
    return Decision("NONE", claim, fact, why=why)


def delete(claim: Claim, fact: Fact, why: str) -> Decision:
    """What is held is held no more."""
    return Decision("DELETE", claim, fact, why=why)


def contradiction(claim: Claim, fact: Fact) -> Linked:
    """That a claim and a memory cannot both be true, and of what."""
    values = [fact.object or fact.text, claim.object or claim.text]
    return Linked(SELF, CONTRADICTS, fact.id, meta={"slot": slot_of(claim.predicate or ""), "values": values})


def quarantined(claim: Claim, fact: Fact, why: str = OUTRANKED) -> Decision:
    """A claim that may not touch what it contradicts: it waits for somebody to look at it, and no recall shows it."""
    doubted = {**claim.meta, "kind": claim.kind, "why": why}
    waiting = replace(claim, kind=QUARANTINE, modality=QUARANTINED, meta=doubted)
    return add(waiting, why, contradiction(claim, fact))


def historical(claim: Claim, fact: Fact, now: int) -> Claim:
    """A claim that was true until what is held began."""
    start = claim.valid.start
    if start is None or start >= said(fact, now):
        start = said(claim, now)
    end = fact.valid_from if start < fact.valid_from else max(said(fact, now), start + 1)
    precision = "instant" if claim.valid.precision == "open" else claim.valid.precision
    return replace(claim, valid=Interval(start, end, precision))
