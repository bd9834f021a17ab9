"""Who answers whom: turns of people who talk to each other are understood together, each with the one before it."""

from __future__ import annotations

from dataclasses import dataclass

from told.core.entry import Evidence
from told.core.fact import PIECE, Fact

MINUTE = 60_000_000


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn somebody may answer: its thread, who said it, when, and its wording in the index."""

    thread: str
    said_at: int | None
    wording: str


def answerable(said: Evidence) -> bool:
    """Whether a turn is one of a conversation between people: short, and by somebody who has a name."""
    return said.role == "user" and said.name is not None and len(said.content) <= PIECE


def spoken(thread: str, said: Evidence) -> Spoken | None:
    """A turn as the next one sees it."""
    return Spoken(thread, said.said_at, f"{said.name}: {said.content}") if answerable(said) else None


def remembered(fact: Fact) -> Spoken | None:
    """The last turn of an earlier call as the next one sees it; without a time, nobody knows how long ago it was."""
    if fact.said_at is None or fact.role != "user" or fact.actor is None or len(fact.text) > PIECE:
        return None
    return Spoken(fact.id, fact.said_at, f"{fact.actor}: {fact.text}")


def answers(said: Evidence, before: Spoken, pause: float) -> bool:
    """Whether a turn was said in answer to another: by a person too, and at most so many minutes later."""
    if not answerable(said):
        return False
    now, then = said.said_at, before.said_at
    if now is None or then is None:
        return now is then
    return 0 <= now - then <= pause * MINUTE
