"""Types passed between the steps of a write."""

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
"""Modality of a claim waiting for review; only reviews show it."""


CONCEPT = "concept"
"""Metadata key of a quarantined claim for the undeclared kind it would have had."""


@dataclass(frozen=True, slots=True)
class ExtractionInput:
    """The input of an extractor: turns in order, the write time, and the scope.

    `nearby_facts` are the stored facts most similar to the turns. `prompt` overrides the system
    prompt. `facts` are claims extracted by the caller, to be used instead.
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
    """A claim and the index of its turn; its span refers to that turn's content."""

    claim: Claim
    turn: int


@dataclass(frozen=True, slots=True)
class Entity:
    """A named person, organization, place, product, project, event, concept or thing."""

    name: str
    type: str = "thing"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two entities, with the turn that states it."""

    src: str
    rel: str
    dst: str
    confidence: float = 1.0
    turn: int = 0


@dataclass(frozen=True, slots=True)
class RejectedClaim:
    """A rejected extraction with its reason; `claim` is set if it is quarantined."""

    reason: str
    text: str
    turn: int | None = None
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """The result of an extractor; `unreadable_replies` holds raw replies that failed to parse."""

    claims: tuple[ExtractedClaim, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    warnings: tuple[str, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Extractor(Protocol):
    """Extracts claims from turns."""

    @property
    def name(self) -> str:
        """Return the author name for entries, such as `local` or `facts:gpt-4o-mini`."""

    @property
    def local(self) -> bool:
        """Return True if no model is asked, so that claims commit together with the evidence."""

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Extract claims, entities and relations; raise if the model is unavailable."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a claim: ADD, UPDATE, DELETE or NONE.

    `fact` is the stored memory concerned; its id may be a planned id (see `make_planned_id`) if it
    is added in the same write. `claim` is the new text of an ADD or UPDATE, or the subject of a
    DELETE or NONE. `links` refer to the claim's thread as `SELF_ID`. `turn` is the index of the
    claim's turn. `why` is the reason; for a DELETE it is stored in the ledger.
    """

    event: str
    claim: Claim | None = None
    fact: Fact | None = None
    links: tuple[Linked, ...] = ()
    why: str = ""
    turn: int = 0


SELF_ID = "@self"


def make_planned_id(number: int) -> str:
    """Return the temporary id of the memory that a decision adds."""
    return f"@{number}"


@dataclass(frozen=True, slots=True)
class CurationResult:
    """The decisions of a curator, its warnings, and raw replies that failed to parse."""

    decisions: tuple[Decision, ...] = ()
    warnings: tuple[str, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Curator(Protocol):
    """Decides the outcome of claims, given the stored facts."""

    def decide(
        self, inputs: ExtractionInput, claims: Sequence[ExtractedClaim]
    ) -> Flow[CurationResult]:
        """Return one or more decisions per claim, in order."""
