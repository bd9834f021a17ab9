"""The shapes that the steps of a write hand to each other: what was heard, what was found in it, what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from told.flow import Flow
from told.ingest.messages import InputTurn
from told.model.entry import Claim, Linked
from told.model.fact import Fact
from told.model.kind import Ontology, load_builtin_ontology
from told.model.scope import Scope
from told.ports import Usage

QUARANTINED = "quarantined"
"""The modality of a claim that waits for somebody to look at it; no read but a review shows it."""


CONCEPT = "concept"
"""The metadata of a claim in quarantine that names the kind it would have been of, were there one."""


@dataclass(frozen=True, slots=True)
class ExtractionInput:
    """What an extractor is given: turns in order, when they are written down, where, and what is known there.

    `known` holds the memories nearest to what was said, for extractors that look before they speak. `prompt` takes the
    place of the extractor's own system prompt. `facts` are claims somebody else extracted already, to be read instead.
    """

    turns: tuple[InputTurn, ...]
    now: int
    scope: Scope
    ontology: Ontology = field(default_factory=load_builtin_ontology)
    nearby_facts: tuple[Fact, ...] = ()
    prompt: str | None = None
    zone: str = ""
    facts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractedClaim:
    """A claim and the turn of the input it was found in; its span points into that turn's content."""

    claim: Claim
    turn: int


@dataclass(frozen=True, slots=True)
class Entity:
    """Whom or what was spoken of: a person, organization, place, product, project, event, concept or thing."""

    name: str
    type: str = "thing"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """How one entity bears on another; `turn` is where that was said."""

    src: str
    rel: str
    dst: str
    confidence: float = 1.0
    turn: int = 0


@dataclass(frozen=True, slots=True)
class RejectedClaim:
    """What an extractor saw and did not let through, and why; a `claim` is in quarantine, ready to be looked at."""

    reason: str
    text: str
    turn: int | None = None
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """What an extractor made of what it heard; a fault is an answer that could not be read, whole."""

    claims: tuple[ExtractedClaim, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    warnings: tuple[str, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Extractor(Protocol):
    """Finds claims in what was said."""

    @property
    def name(self) -> str:
        """What entries give as the author, such as `local` or `facts:gpt-4o-mini`."""

    @property
    def local(self) -> bool:
        """Whether it answers at once and without a model, so that its claims commit together with the evidence."""

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """The claims, entities and relations of these turns; a model that is down raises, garbage becomes a fault."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one claim: ADD, UPDATE or DELETE of a held memory, or NONE.

    `fact` is the held memory an UPDATE, a DELETE or a NONE is about; its id is that of an earlier decision of the same
    write (`made`) where the memory is only being made. `claim` is what an ADD or an UPDATE will say, and what a DELETE
    or a NONE was about. `links` name the thread of the claim by `SELF`, for an ADD has none yet. `turn` is where the
    claim was found. `why` is the reason in words; of a DELETE it is the one word the ledger keeps.
    """

    event: str
    claim: Claim | None = None
    fact: Fact | None = None
    links: tuple[Linked, ...] = ()
    why: str = ""
    turn: int = 0


SELF_ID = "@self"


def make_planned_id(number: int) -> str:
    """The id, until the plan gives a real one, of the memory that the decision of this number adds."""
    return f"@{number}"


@dataclass(frozen=True, slots=True)
class CurationResult:
    """What a curator decided, what it would have others know, and answers it could not read, whole."""

    decisions: tuple[Decision, ...] = ()
    warnings: tuple[str, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Curator(Protocol):
    """Decides what becomes of claims, given what is held."""

    def decide(
        self, inputs: ExtractionInput, claims: Sequence[ExtractedClaim]
    ) -> Flow[CurationResult]:
        """One or more decisions for every claim, in order of the claims."""
