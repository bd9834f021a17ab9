"""What a conversation answers, and how the memory itself answers where no model does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from told.core.when import localise

MIN_ANSWER_SCORE: Final = 0.7
"""From this score on a memory answers; below it what is found is more likely to be about something else."""

MAX_ANSWERS: Final = 5
EVENT_LABELS: Final = {"ADD": "Noted", "UPDATE": "Changed", "DELETE": "Given up"}
SPEAKER_LABELS: Final = {
    "user": "you said",
    "assistant": "I said",
    "document": "read",
    "tool": "a tool said",
}
NO_MEMORY_REPLY: Final = "I remember nothing about that."
REMEMBERED_REPLY: Final = "I will remember that you said so."
NOT_REMEMBERED_REPLY: Final = "There is nothing in that for me to remember."


@dataclass(frozen=True, slots=True)
class ChatReply:
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
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def select_answers(rows: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Of what a search found, what can stand as an answer: sure enough, and not itself a question."""
    confident = [row for row in rows if (row["score"] or 0.0) >= MIN_ANSWER_SCORE]
    return tuple(row for row in confident if not is_question(row["memory"]))[:MAX_ANSWERS]


def find_changed_ids(results: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The memories that a receipt says are no longer what they were."""
    return frozenset(row["id"] for row in results if row["event"] in ("UPDATE", "DELETE"))


def is_question(text: str) -> bool:
    """Whether a text asks rather than tells."""
    return text.rstrip().endswith(("?", "？", "؟"))


def format_memory_reply(
    message: str,
    used: Sequence[Mapping[str, Any]],
    receipt: Mapping[str, Any],
    zone: str | None = None,
) -> str:
    """What memory says by itself: what it took in, and what it holds on it, each with its day and its source."""
    learned_lines = [
        f"{EVENT_LABELS[row['event']]}: {_row_text(row)}"
        for row in select_learned(message, receipt)
    ]
    remembered = (
        [
            "This is what I remember about it:",
            *(f"- {format_memory_line(row, zone)}" for row in used),
        ]
        if used
        else []
    )
    if learned_lines or remembered:
        return "\n".join([*learned_lines, *remembered])
    if is_question(message):
        return NO_MEMORY_REPLY
    return (
        REMEMBERED_REPLY
        if any(row["event"] == "ADD" for row in receipt["results"])
        else NOT_REMEMBERED_REPLY
    )


def select_learned(message: str, receipt: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """What was taken from what was said; words that are only kept as they are tell nothing new."""
    changed = [row for row in receipt["results"] if row["event"] in EVENT_LABELS]
    return tuple(
        row for row in changed if " ".join(_row_text(row).split()) != " ".join(message.split())
    )


def _row_text(row: Mapping[str, Any]) -> str:
    return str(row["memory"] if row["memory"] is not None else row["previous_memory"])


def format_memory_line(row: Mapping[str, Any], zone: str | None = None) -> str:
    """A memory with its day, and who or what it comes from."""
    said_at = datetime.fromisoformat(row.get("said_at") or row["updated_at"])
    day = localise(said_at, zone).date().isoformat()
    speaker = row.get("actor_id") or SPEAKER_LABELS.get(
        row.get("role") or "", row.get("role") or ""
    )
    source = f", from {row['source']}" if row.get("source") else ""
    return f"{' '.join(row['memory'].split())} ({', '.join(filter(None, (day, speaker)))}{source})"
