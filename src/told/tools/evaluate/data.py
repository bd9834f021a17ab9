"""Load benchmark conversations with labelled evidence and report format errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from told.errors import InvalidInput, TimeError
from told.model.validation import (
    ConfigLocation,
    ValueParser,
    list_parser,
    parse_flag,
    parse_json,
    parse_mapping,
    parse_text,
)
from told.text.dates import parse_instant
from told.text.tokens import extract_terms

SPEAKER_ROLES = ("user", "assistant")
KNOWLEDGE_UPDATE = "knowledge-update"
FORMAT_HINT = "docs/reference/eval-format.md shows the format."


@dataclass(frozen=True, slots=True)
class EvalTurn:
    """One turn of a conversation."""

    id: str
    session: str
    date: str
    speaker: str
    text: str
    caption: str = ""

    @property
    def has_role_only(self) -> bool:
        """Return whether the speaker is known by role only."""
        return self.speaker in SPEAKER_ROLES

    @property
    def content(self) -> str:
        """Return the text and the caption of its image."""
        return f"{self.text} [shares {self.caption}]" if self.caption else self.text


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and its evidence turns; for an update, which are superseded and current."""

    id: str
    text: str
    category: str
    answer: str
    evidence: tuple[str, ...]
    answerable: bool
    date: str | None = None
    oldest: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()

    @property
    def is_measurable(self) -> bool:
        """Return whether recall can be measured on it."""
        return self.answerable and bool(self.evidence)

    @property
    def superseded(self) -> tuple[str, ...]:
        """Return the evidence that an update made obsolete."""
        return tuple(turn_id for turn_id in self.oldest if turn_id not in self.newest)


@dataclass(frozen=True, slots=True)
class EvalConversation:
    """Turns in order and questions about them."""

    id: str
    turns: tuple[EvalTurn, ...]
    questions: tuple[EvalQuestion, ...]


def normalize_whitespace(text: str) -> str:
    """Collapse white space."""
    return " ".join(text.split())


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text."""
    return frozenset(extract_terms(text))


# Parsing


def load_conversations(
    path: Path, *, max_count: int | None = None, zone: str | None = None
) -> list[EvalConversation]:
    """Load conversations from a file; errors name the file, conversation and key."""
    location = ConfigLocation(str(path))
    rows = _read_json(path)
    if not isinstance(rows, list) or not rows:
        raise location.value_error(rows, "a list of conversations")
    conversations = [
        _parse_conversation(row, location.child(index), zone)
        for index, row in enumerate(rows[:max_count])
    ]
    _require_distinct(
        [conversation.id for conversation in conversations],
        location,
        "an id no other conversation of the file has",
    )
    return conversations


def _read_json(path: Path) -> Any:
    try:
        return parse_json(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}.", hint="Name a file of conversations."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {error}.", hint=FORMAT_HINT) from error


def _parse_conversation(row: Any, location: ConfigLocation, zone: str | None) -> EvalConversation:
    """Parse one conversation; errors name its id once it is known."""
    name = (
        parse_text(row["id"], location.child("id"))
        if isinstance(row, Mapping) and "id" in row
        else None
    )
    own_location = (
        location if name is None else ConfigLocation(location.file, f"conversation {name!r}")
    )
    values = _read_mapping(
        row,
        {"id": parse_text, "speakers": _read_any, "turns": _read_list, "questions": _read_list},
        own_location,
    )
    turns = tuple(
        _parse_turn(item, own_location.child("turns").child(index), zone)
        for index, item in enumerate(values["turns"])
    )
    _require_distinct(
        [turn.id for turn in turns],
        own_location.child("turns"),
        "an id no other turn of the conversation has",
    )
    turn_positions = {turn.id: index for index, turn in enumerate(turns)}
    questions = tuple(
        _with_update_evidence(
            _parse_question(
                item, own_location.child("questions").child(index), index, turn_positions, zone
            ),
            turns,
            turn_positions,
            zone,
        )
        for index, item in enumerate(values["questions"])
    )
    _require_distinct(
        [item.id for item in questions],
        own_location.child("questions"),
        "an id no other question of the conversation has",
    )
    return EvalConversation(values["id"], turns, questions)


def _parse_turn(row: Any, location: ConfigLocation, zone: str | None) -> EvalTurn:
    readers = {
        "id": parse_text,
        "session": parse_text,
        "date": _time_reader(zone),
        "speaker": parse_text,
        "text": _read_nonempty_text,
        "image_caption": _read_text,
    }
    values = _read_mapping(row, readers, location, optional=("session", "image_caption"))
    return EvalTurn(
        values["id"],
        values.get("session", values["date"][:10]),
        values["date"],
        values["speaker"],
        values["text"],
        values.get("image_caption", ""),
    )


def _parse_question(
    row: Any,
    location: ConfigLocation,
    index: int,
    turn_positions: Mapping[str, int],
    zone: str | None,
) -> EvalQuestion:
    """Parse one question; its evidence must name turns of the conversation."""
    ids = list_parser(_turn_id_reader(turn_positions))
    readers: dict[str, ValueParser] = {
        "text": _read_nonempty_text,
        "evidence": ids,
        "answerable": parse_flag,
        "id": parse_text,
        "category": parse_text,
        "answer": _read_any,
        "date": _time_reader(zone),
        "oldest": ids,
        "newest": ids,
    }
    values = _read_mapping(row, readers, location, optional=tuple(readers)[1:])
    answerable = values.get("answerable", True)
    if answerable and "evidence" not in values:
        raise location.missing_key_error(
            "evidence", "the ids of the turns that hold the answer, or `answerable: false`"
        )
    evidence, oldest, newest = (
        tuple(dict.fromkeys(values.get(name, ()))) for name in ("evidence", "oldest", "newest")
    )
    return EvalQuestion(
        values.get("id", f"q{index + 1}"),
        values["text"],
        values.get("category", "questions"),
        str(values.get("answer", "")),
        evidence,
        answerable,
        values.get("date"),
        oldest,
        newest,
    )


def _with_update_evidence(
    question: EvalQuestion,
    turns: Sequence[EvalTurn],
    turn_positions: Mapping[str, int],
    zone: str | None,
) -> EvalQuestion:
    """Mark the latest session's evidence as current if the file does not say."""
    is_update = question.category.replace("_", "-") == KNOWLEDGE_UPDATE
    if not is_update or question.oldest or question.newest or not question.evidence:
        return question
    evidence = [turns[turn_positions[turn_id]] for turn_id in question.evidence]
    last_session = max(
        evidence, key=lambda turn: (parse_instant(turn.date, zone=zone), turn_positions[turn.id])
    ).session
    return replace(
        question,
        oldest=tuple(turn.id for turn in evidence if turn.session != last_session),
        newest=tuple(turn.id for turn in evidence if turn.session == last_session),
    )


# Value readers


def _read_mapping(
    row: Any,
    readers: Mapping[str, ValueParser],
    location: ConfigLocation,
    optional: Sequence[str] = ("speakers",),
) -> Any:
    """Read the values of a mapping; null counts as a missing key."""
    present = (
        {key: value for key, value in row.items() if value is not None}
        if isinstance(row, Mapping)
        else row
    )
    values = parse_mapping(present, readers, location)
    for name in readers:
        if name not in values and name not in optional:
            raise location.missing_key_error(name, "a value for it")
    return values


def _require_distinct(ids: Sequence[str], location: ConfigLocation, allowed: str) -> None:
    seen: set[str] = set()
    for index, item_id in enumerate(ids):
        if item_id in seen:
            raise location.child(index).child("id").value_error(item_id, allowed)
        seen.add(item_id)


def _read_nonempty_text(value: Any, location: ConfigLocation) -> str:
    """Read a non-empty text."""
    parse_text(value, location)
    return str(value)


def _read_text(value: Any, location: ConfigLocation) -> str:
    """Read a text, possibly empty."""
    if not isinstance(value, str):
        raise location.value_error(value, "a text")
    return value


def _read_any(value: Any, location: ConfigLocation) -> Any:  # noqa: ARG001
    return value


def _read_list(value: Any, location: ConfigLocation) -> list[Any]:
    if not isinstance(value, list):
        raise location.value_error(value, "a list")
    return value


def _time_reader(zone: str | None) -> ValueParser:
    def read(value: Any, location: ConfigLocation) -> str:
        value_text = parse_text(value, location)
        try:
            parse_instant(value_text, zone=zone)
        except TimeError as error:
            allowed = "a date, or a time with an offset such as a final Z"
            raise location.build_error(f"found {value_text!r}", allowed, error.hint) from error
        return value_text

    return read


def _turn_id_reader(turn_positions: Mapping[str, int]) -> ValueParser:
    def read(value: Any, location: ConfigLocation) -> str:
        if not isinstance(value, str) or value not in turn_positions:
            raise location.value_error(
                value, "the id of a turn of this conversation", turn_positions
            )
        return value

    return read
