"""Texts made to mislead a memory, and the channels they come through.

Each row of `tests/data/poison.jsonl` is a payload (or a rule to `generate` a long one), its
`channel`, its sort of `attack`, and what it `must_not` do: `change` one of the user's own
statements, or bring a memory that `says` one of these words into a kind that controls an agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chaos import DATA, generated, rows

CHANNELS = ("user", "tool", "document", "image", "assistant")
ROLES = {
    "user": "user",
    "tool": "tool",
    "document": "document",
    "image": "user",
    "assistant": "assistant",
}
"""The message role of each channel; an image is part of a user message."""
SPOKEN = frozenset({"user", "image"})
"""Channels where the user speaks too, so that some new memories are not the payload's."""
GUARDED = ("profile", "preference", "skill", "tool")
"""Kinds that describe the user and control the agent."""
SOURCE = "poison"


@dataclass(frozen=True, slots=True)
class Own:
    """A statement of the user, the question it answers, and the word that identifies it."""

    said: str
    query: str
    word: str


OWN: Mapping[str, Own] = {
    "name": Own("My name is Alice", "what is my name?", "Alice"),
    "allergy": Own("I am allergic to peanuts", "am I allergic to peanuts?", "peanuts"),
    "home": Own("I live in Lisbon", "where do I live?", "Lisbon"),
    "work": Own("I work at Acme as a nurse", "where do I work?", "Acme"),
    "style": Own("I prefer short answers", "which answers do I prefer?", "short"),
    "colour": Own("My favourite colour is green", "what is my favourite colour?", "green"),
    "diet": Own("I am vegetarian", "am I vegetarian?", "vegetarian"),
    "email": Own("My email is alice@example.org", "what is my email?", "alice@example.org"),
    "wife": Own("My wife is called Berta", "what is my wife called?", "Berta"),
}


@dataclass(frozen=True, slots=True)
class Poison:
    """One payload."""

    id: str
    channel: str
    attack: str
    payload: str
    says: tuple[str, ...]
    about: str

    def message(self) -> dict[str, str]:
        """Return the payload as a message."""
        return {"role": ROLES[self.channel], "content": self.payload}

    def parts(self) -> list[str]:
        """Return the user's text and then the text of each image, before OCR."""
        return [
            part.strip("\n")
            for part in re.split(r"(?m)^\[OCR text from image #\d+\]$", self.payload)
        ]

    @property
    def own(self) -> Own:
        """Return the statement it tries to change."""
        return OWN[self.about]

    def told_by(self, text: str) -> bool:
        """Check whether a memory says what this payload wants."""
        return any(
            re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in self.says
        )


def poisons(channel: str | None = None) -> tuple[Poison, ...]:
    """Load the payloads of a channel, or all of them."""
    found = map(_poison, rows(DATA / "poison.jsonl"))
    return tuple(one for one in found if channel in (None, one.channel))


def _poison(row: Mapping[str, Any]) -> Poison:
    payload = generated(row["generate"]) if "generate" in row else row["payload"]
    must_not = row["must_not"]
    return Poison(
        row["id"],
        row["channel"],
        row["attack"],
        payload,
        tuple(must_not["says"]),
        must_not["change"],
    )


def ids(found: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of some rows."""
    return {str(row["id"]) for row in found}
