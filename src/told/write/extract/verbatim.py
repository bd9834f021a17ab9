"""The extractors that find nothing in what was said but itself: word for word, as it is or as one of a kind."""

from __future__ import annotations

from dataclasses import dataclass

from told.core.entry import Claim
from told.flow import Flow
from told.write.messages import Turn
from told.write.shape import Extracted, Found, Heard


@dataclass(frozen=True, slots=True)
class VerbatimExtractor:
    """Leaves every turn as it is."""

    name: str = "verbatim"
    local: bool = True

    def extract(self, heard: Heard) -> Flow[Extracted]:  # noqa: ARG002 - nothing is taken from it
        """No claims."""
        return Extracted()
        yield  # a flow, though it asks for nothing


@dataclass(frozen=True, slots=True)
class KindExtractor:
    """Takes every turn for one memory of a kind, whose fields stand in the metadata."""

    kind: str
    name: str = "user"
    local: bool = True

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """A claim for each turn in which its speaker says anything."""
        said = ((place, turn) for place, turn in enumerate(heard.turns) if turn.evidence.content)
        return Extracted(tuple(Found(_whole(turn, self.kind), place) for place, turn in said))
        yield  # a flow, though it asks for nothing


def _whole(turn: Turn, kind: str) -> Claim:
    said = turn.evidence
    return Claim(
        said.content, kind, valid=turn.valid, span=(0, len(said.content)), role=said.role, actor=said.name,
        said_at=said.said_at, source=said.source,
    )  # fmt: skip
