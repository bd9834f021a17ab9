"""Who answers whom: turns of people who talk to each other are understood together, each with the one before it."""

from __future__ import annotations

from dataclasses import dataclass

from told.core.entry import Evidence
from told.core.fact import PASSAGE_CHARS, Fact

MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class PrecedingTurn:
    """A turn somebody may answer: its thread, who said it, when, and its wording in the index."""

    thread: str
    said_at: int | None
    passage: str


def is_repliable(evidence: Evidence) -> bool:
    """Whether a turn is one of a conversation between people: short, and by somebody who has a name."""
    return (
        evidence.role == "user"
        and evidence.name is not None
        and len(evidence.content) <= PASSAGE_CHARS
    )


def evidence_to_preceding(thread: str, evidence: Evidence) -> PrecedingTurn | None:
    """A turn as the next one sees it."""
    return (
        PrecedingTurn(thread, evidence.said_at, f"{evidence.name}: {evidence.content}")
        if is_repliable(evidence)
        else None
    )


def fact_to_preceding(fact: Fact) -> PrecedingTurn | None:
    """The last turn of an earlier call as the next one sees it; without a time, nobody knows how long ago it was."""
    if (
        fact.said_at is None
        or fact.role != "user"
        or fact.actor is None
        or len(fact.text) > PASSAGE_CHARS
    ):
        return None
    return PrecedingTurn(fact.id, fact.said_at, f"{fact.actor}: {fact.text}")


def is_reply(evidence: Evidence, preceding: PrecedingTurn, max_minutes: float) -> bool:
    """Whether a turn was said in answer to another: by a person too, and at most so many minutes later."""
    if not is_repliable(evidence):
        return False
    now, then = evidence.said_at, preceding.said_at
    if now is None or then is None:
        return now is then
    return 0 <= now - then <= max_minutes * MINUTE_US
