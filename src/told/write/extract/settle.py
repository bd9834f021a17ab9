"""What becomes of proposals: each is placed where it was said, quarantined where it was not, and told once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from told.core.entry import Claim
from told.core.fact import QUARANTINE
from told.core.text import normalise
from told.core.when import ALWAYS
from told.ports import Usage
from told.write.extract.ground import SPEAKER, Ground, Place
from told.write.extract.items import HYPOTHESIS, INFERRED, Proposal
from told.write.extract.parse import DUPLICATE, Answer, once
from told.write.messages import Turn
from told.write.shape import QUARANTINED, Dropped, Extracted, Found, Heard

USER: Final = "user"
UNGROUNDED: Final = "its value is not in what was said"
BY_ASSISTANT: Final = "only the assistant said so"


@dataclass(frozen=True, slots=True)
class Rules:
    """How strictly proposals are held against what was said.

    `strict` quarantines what cannot be found there; `replies` lets an assistant's own words count.
    """

    strict: bool = True
    replies: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """Claims in their places, and what was not let through."""

    claims: tuple[Found, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def extracted(settled: Settled, answer: Answer, usage: Usage) -> Extracted:
    """Claims in their places, with everything that is to be said of the answer they came from."""
    dropped = (*answer.dropped, *settled.dropped)
    return Extracted(settled.claims, (), (), dropped, answer.warnings, answer.faults, usage)


def speaker_of(heard: Heard) -> str:
    """Whom facts are about unless they say so: the user who speaks, by name if there is one name."""
    names = {turn.evidence.name for turn in heard.turns if turn.evidence.role == USER}
    return names.pop() or SPEAKER if len(names) == 1 else SPEAKER


def settle(heard: Heard, ground: Ground, proposals: Iterable[Proposal], rules: Rules) -> Settled:
    """Every proposal as a claim in its place, or why it is none."""
    fresh, again = once(proposals, lambda one: (normalise(one.claim.text), one.claim.polarity))
    dropped = [Dropped(DUPLICATE, one.claim.text) for one in again]
    claims: list[Found] = []
    for one in fresh:
        done = _settled(heard, ground, one, rules)
        if isinstance(done, Dropped):
            dropped.append(done)
        else:
            claims.append(done)
    return Settled(tuple(claims), tuple(dropped))


def _settled(heard: Heard, ground: Ground, one: Proposal, rules: Rules) -> Found | Dropped:
    quoted = ground.quote(one.quote) if one.quote else None
    place = _placed(ground, one, quoted)
    if place is None:
        turn = quoted.turn if quoted else ground.last()
        claim = signed(one.claim, heard.turns[turn], quoted.span if quoted else None)
        return Found(quarantined(claim, UNGROUNDED) if rules.strict else _marked(claim), turn)
    if place.unconfirmed and not rules.replies:
        return Dropped(BY_ASSISTANT, one.claim.text, place.turn)
    return Found(signed(one.claim, heard.turns[place.turn], place.span), place.turn)


def _placed(ground: Ground, one: Proposal, quoted: Place | None) -> Place | None:
    """Where the claim's value was said; the quotation is the place if the value is in its turn or was said yes to."""
    claim = one.claim
    if quoted is not None and not quoted.unconfirmed:
        places = [place for place in (quoted, ground.consents(quoted)) if place is not None]
        if any(ground.holds(claim, place) for place in places):
            return quoted
    place = ground.said(claim)
    if place is None and claim.modality in (INFERRED, HYPOTHESIS) and claim.subject not in (None, SPEAKER):
        return ground.find(str(claim.subject))
    return place


def signed(claim: Claim, turn: Turn, span: tuple[int, int] | None) -> Claim:
    """The claim with who said it, when and where; it holds from then on unless it says otherwise."""
    said = turn.evidence
    return replace(
        _of(claim, said.name if said.role == USER else None),
        span=span, role=said.role, actor=said.name, said_at=said.said_at, source=said.source,
        valid=turn.valid if claim.valid == ALWAYS else claim.valid,
    )  # fmt: skip


def _of(claim: Claim, name: str | None) -> Claim:
    """The claim about whoever said it, by name where there is one."""
    if name is None or claim.subject not in (None, SPEAKER):
        return claim
    head, rest = claim.text[: len(SPEAKER)], claim.text[len(SPEAKER) :]
    text = f"{name}{rest}" if head == SPEAKER and rest[:1] in (" ", "'", "\u2019") else claim.text
    return replace(claim, text=text, subject=claim.subject and name)


def quarantined(claim: Claim, why: str) -> Claim:
    """The claim as it waits for somebody to look at it; its own kind and the reason stand in its metadata."""
    meta = {**claim.meta, "kind": claim.kind, "why": why, "modality": claim.modality}
    return replace(claim, kind=QUARANTINE, modality=QUARANTINED, meta=meta)


def _marked(claim: Claim) -> Claim:
    return replace(claim, meta={**claim.meta, "grounded": False})
