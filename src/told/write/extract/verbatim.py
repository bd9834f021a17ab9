"""The extractors that find nothing in what was said but itself: word for word, as it is or as one of a kind."""

from __future__ import annotations

from dataclasses import dataclass

from told.core.entry import Claim
from told.flow import Flow
from told.write.messages import InputTurn
from told.write.shape import ExtractedClaim, ExtractionInput, ExtractionResult


@dataclass(frozen=True, slots=True)
class VerbatimExtractor:
    """Leaves every turn as it is."""

    name: str = "verbatim"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """No claims."""
        return ExtractionResult()
        yield  # a flow, though it asks for nothing


@dataclass(frozen=True, slots=True)
class KindExtractor:
    """Takes every turn for one memory of a kind, whose fields stand in the metadata."""

    kind: str
    name: str = "user"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """A claim for each turn in which its speaker says anything."""
        numbered_turns = (
            (number, turn) for number, turn in enumerate(inputs.turns) if turn.evidence.content
        )
        return ExtractionResult(
            tuple(
                ExtractedClaim(_turn_to_claim(turn, self.kind), number)
                for number, turn in numbered_turns
            )
        )
        yield  # a flow, though it asks for nothing


def _turn_to_claim(turn: InputTurn, kind: str) -> Claim:
    evidence = turn.evidence
    return Claim(
        evidence.content,
        kind,
        valid=turn.valid,
        span=(0, len(evidence.content)),
        role=evidence.role,
        actor=evidence.name,
        said_at=evidence.said_at,
        source=evidence.source,
    )
