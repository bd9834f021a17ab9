"""What becomes of proposals: each is placed where it was said, quarantined where it was not, and told once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from told.core.entry import Claim
from told.core.fact import QUARANTINE
from told.core.text import normalise_text
from told.core.when import ALWAYS
from told.ports import Usage
from told.write.extract.ground import DEFAULT_SPEAKER, GroundingIndex, TextLocation
from told.write.extract.items import HYPOTHESIS, INFERRED, ClaimProposal
from told.write.extract.parse import DUPLICATE, ParsedReply, split_duplicates
from told.write.messages import InputTurn
from told.write.shape import (
    QUARANTINED,
    ExtractedClaim,
    ExtractionInput,
    ExtractionResult,
    RejectedClaim,
)

USER_ROLE: Final = "user"
UNGROUNDED: Final = "its value is not in what was said"
ASSISTANT_ONLY: Final = "only the assistant said so"


@dataclass(frozen=True, slots=True)
class GroundingOptions:
    """How strictly proposals are held against what was said.

    `strict` quarantines what cannot be found there; `replies` lets an assistant's own words count.
    """

    strict: bool = True
    replies: bool = False


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Claims in their places, and what was not let through."""

    claims: tuple[ExtractedClaim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()


def build_result(
    validated: ValidationResult, parsed: ParsedReply, usage: Usage
) -> ExtractionResult:
    """Claims in their places, with everything that is to be said of the answer they came from."""
    rejected = (*parsed.rejected, *validated.rejected)
    return ExtractionResult(
        validated.claims, (), (), rejected, parsed.warnings, parsed.unreadable_replies, usage
    )


def get_speaker_name(inputs: ExtractionInput) -> str:
    """Whom facts are about unless they say so: the user who speaks, by name if there is one name."""
    names = {turn.evidence.name for turn in inputs.turns if turn.evidence.role == USER_ROLE}
    return names.pop() or DEFAULT_SPEAKER if len(names) == 1 else DEFAULT_SPEAKER


def validate_proposals(
    inputs: ExtractionInput,
    grounding: GroundingIndex,
    proposals: Iterable[ClaimProposal],
    options: GroundingOptions,
) -> ValidationResult:
    """Every proposal as a claim in its place, or why it is none."""
    unique, duplicates = split_duplicates(
        proposals, lambda proposal: (normalise_text(proposal.claim.text), proposal.claim.polarity)
    )
    rejected = [RejectedClaim(DUPLICATE, proposal.claim.text) for proposal in duplicates]
    claims: list[ExtractedClaim] = []
    for proposal in unique:
        result = _validate_proposal(inputs, grounding, proposal, options)
        if isinstance(result, RejectedClaim):
            rejected.append(result)
        else:
            claims.append(result)
    return ValidationResult(tuple(claims), tuple(rejected))


def _validate_proposal(
    inputs: ExtractionInput,
    grounding: GroundingIndex,
    proposal: ClaimProposal,
    options: GroundingOptions,
) -> ExtractedClaim | RejectedClaim:
    quote_location = grounding.locate_quote(proposal.quote) if proposal.quote else None
    location = _locate_proposal(grounding, proposal, quote_location)
    if location is None:
        turn = quote_location.turn if quote_location else grounding.get_fallback_turn()
        claim = attach_source(
            proposal.claim, inputs.turns[turn], quote_location.span if quote_location else None
        )
        return ExtractedClaim(
            quarantine_claim(claim, UNGROUNDED) if options.strict else _mark_ungrounded(claim), turn
        )
    if location.unconfirmed and not options.replies:
        return RejectedClaim(ASSISTANT_ONLY, proposal.claim.text, location.turn)
    return ExtractedClaim(
        attach_source(proposal.claim, inputs.turns[location.turn], location.span), location.turn
    )


def _locate_proposal(
    grounding: GroundingIndex, proposal: ClaimProposal, quote_location: TextLocation | None
) -> TextLocation | None:
    """Where the claim's value was said; the quotation is the place if the value is in its turn or was said yes to."""
    claim = proposal.claim
    if quote_location is not None and not quote_location.unconfirmed:
        candidates = [
            location
            for location in (quote_location, grounding.find_confirmed_turn(quote_location))
            if location is not None
        ]
        if any(grounding.is_claim_at(claim, location) for location in candidates):
            return quote_location
    location = grounding.locate_claim(claim)
    if (
        location is None
        and claim.modality in (INFERRED, HYPOTHESIS)
        and claim.subject not in (None, DEFAULT_SPEAKER)
    ):
        return grounding.find_value(str(claim.subject))
    return location


def attach_source(claim: Claim, turn: InputTurn, span: tuple[int, int] | None) -> Claim:
    """The claim with who said it, when and where; it holds from then on unless it says otherwise."""
    evidence = turn.evidence
    return replace(
        _name_subject(claim, evidence.name if evidence.role == USER_ROLE else None),
        span=span,
        role=evidence.role,
        actor=evidence.name,
        said_at=evidence.said_at,
        source=evidence.source,
        valid=turn.valid if claim.valid == ALWAYS else claim.valid,
    )


def _name_subject(claim: Claim, name: str | None) -> Claim:
    """The claim about whoever said it, by name where there is one."""
    if name is None or claim.subject not in (None, DEFAULT_SPEAKER):
        return claim
    head, rest = claim.text[: len(DEFAULT_SPEAKER)], claim.text[len(DEFAULT_SPEAKER) :]
    text = (
        f"{name}{rest}"
        if head == DEFAULT_SPEAKER and rest[:1] in (" ", "'", "\u2019")
        else claim.text
    )
    return replace(claim, text=text, subject=claim.subject and name)


def quarantine_claim(claim: Claim, reason: str) -> Claim:
    """The claim as it waits for somebody to look at it; its own kind and the reason stand in its metadata."""
    meta = {**claim.meta, "kind": claim.kind, "why": reason, "modality": claim.modality}
    return replace(claim, kind=QUARANTINE, modality=QUARANTINED, meta=meta)


def _mark_ungrounded(claim: Claim) -> Claim:
    return replace(claim, meta={**claim.meta, "grounded": False})
