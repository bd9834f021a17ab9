"""What a conversation answers, and how the memory itself answers where no model does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from told.core.when import local

SURE: Final = 0.7
"""From this score on a memory answers; below it what is found is more likely to be about something else."""

SHOWN: Final = 5
CHANGES: Final = {"ADD": "Noted", "UPDATE": "Changed", "DELETE": "Given up"}
SPEAKERS: Final = {"user": "you said", "assistant": "I said", "document": "read", "tool": "a tool said"}
NOTHING: Final = "I remember nothing about that."
KEPT: Final = "I will remember that you said so."
UNKEPT: Final = "There is nothing in that for me to remember."


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the memories it rests on, what was learned from the question, and what was not as it should be.

    `model` is who answered; nobody did where the memory speaks for itself.
    """

    text: str
    used: tuple[Mapping[str, Any], ...] = ()
    learned: tuple[Mapping[str, Any], ...] = ()
    skipped: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    model: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The reply as JSON."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}


def answering(rows: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Of what a search found, what can stand as an answer: sure enough, and not itself a question."""
    sure = [row for row in rows if (row["score"] or 0.0) >= SURE]
    return tuple(row for row in sure if not is_question(row["memory"]))[:SHOWN]


def changed(results: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The memories that a receipt says are no longer what they were."""
    return frozenset(row["id"] for row in results if row["event"] in ("UPDATE", "DELETE"))


def is_question(text: str) -> bool:
    """Whether a text asks rather than tells."""
    return text.rstrip().endswith(("?", "？", "؟"))


def from_memory(
    asked: str, used: Sequence[Mapping[str, Any]], receipt: Mapping[str, Any], zone: str | None = None
) -> str:
    """What memory says by itself: what it took in, and what it holds on it, each with its day and its source."""
    learned = [f"{CHANGES[row['event']]}: {_text(row)}" for row in facts(asked, receipt)]
    held = ["This is what I remember about it:", *(f"- {line(row, zone)}" for row in used)] if used else []
    if learned or held:
        return "\n".join([*learned, *held])
    if is_question(asked):
        return NOTHING
    return KEPT if any(row["event"] == "ADD" for row in receipt["results"]) else UNKEPT


def facts(asked: str, receipt: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """What was taken from what was said; words that are only kept as they are tell nothing new."""
    changed = [row for row in receipt["results"] if row["event"] in CHANGES]
    return tuple(row for row in changed if " ".join(_text(row).split()) != " ".join(asked.split()))


def _text(row: Mapping[str, Any]) -> str:
    return str(row["memory"] if row["memory"] is not None else row["previous_memory"])


def line(row: Mapping[str, Any], zone: str | None = None) -> str:
    """A memory with its day, and who or what it comes from."""
    said = datetime.fromisoformat(row.get("said_at") or row["updated_at"])
    day = local(said, zone).date().isoformat()
    speaker = row.get("actor_id") or SPEAKERS.get(row.get("role") or "", row.get("role") or "")
    source = f", from {row['source']}" if row.get("source") else ""
    return f"{' '.join(row['memory'].split())} ({', '.join(filter(None, (day, speaker)))}{source})"
