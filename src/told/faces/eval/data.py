"""Conversations with questions whose evidence is known: the one format they are read from, and every mistake named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from told.core.errors import InvalidInput, TimeError
from told.core.reading import Reader, Spot, flag, many, mapping, parse_json, text
from told.core.text import terms
from told.core.when import instant

ROLES = ("user", "assistant")
UPDATE = "knowledge-update"
FORMAT = "docs/reference/eval-format.md shows the format."


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said."""

    id: str
    session: str
    date: str
    speaker: str
    text: str
    caption: str = ""

    @property
    def is_role(self) -> bool:
        """Whether the speaker is known by role only."""
        return self.speaker in ROLES

    @property
    def content(self) -> str:
        """What was said, and what the picture that came with it shows."""
        return f"{self.text} [shares {self.caption}]" if self.caption else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the turns that hold its answer, and for an update which of them are superseded and current."""

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
    def counts(self) -> bool:
        """Whether recall can be measured on it."""
        return self.answerable and bool(self.evidence)

    @property
    def superseded(self) -> tuple[str, ...]:
        """The evidence of an update that no longer holds."""
        return tuple(one for one in self.oldest if one not in self.newest)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order and questions about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def folded(said: str) -> str:
    """A text with its white space folded."""
    return " ".join(said.split())


def words(said: str) -> frozenset[str]:
    """The content words of a text."""
    return frozenset(terms(said))


# Reading --------------------------------------------------------------------------------------------------------------


def load(path: Path, *, most: int | None = None, zone: str | None = None) -> list[Conversation]:
    """The conversations of a file, or the first so many; a mistake is named with its file, conversation and key."""
    spot = Spot(str(path))
    rows = _parsed(path)
    if not isinstance(rows, list) or not rows:
        raise spot.wrong(rows, "a list of conversations")
    found = [_conversation(row, spot.at(place), zone) for place, row in enumerate(rows[:most])]
    _distinct([one.id for one in found], spot, "an id no other conversation of the file has")
    return found


def _parsed(path: Path) -> Any:
    try:
        return parse_json(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.", hint="Name a file of conversations.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {error}.", hint=FORMAT) from error


def _conversation(row: Any, spot: Spot, zone: str | None) -> Conversation:
    """One conversation; once its id is known, mistakes are named by it."""
    name = text(row["id"], spot.at("id")) if isinstance(row, Mapping) and "id" in row else None
    here = spot if name is None else Spot(spot.file, f"conversation {name!r}")
    values = _whole(row, {"id": text, "speakers": _anything, "turns": _list, "questions": _list}, here)
    turns = tuple(_turn(one, here.at("turns").at(place), zone) for place, one in enumerate(values["turns"]))
    _distinct([turn.id for turn in turns], here.at("turns"), "an id no other turn of the conversation has")
    known = {turn.id: place for place, turn in enumerate(turns)}
    questions = tuple(
        _dated(_question(one, here.at("questions").at(place), place, known, zone), turns, known, zone)
        for place, one in enumerate(values["questions"])
    )
    _distinct([one.id for one in questions], here.at("questions"), "an id no other question of the conversation has")
    return Conversation(values["id"], turns, questions)


def _turn(row: Any, spot: Spot, zone: str | None) -> Turn:
    readers = {
        "id": text, "session": text, "date": _time(zone), "speaker": text, "text": _said, "image_caption": _anyhow
    }  # fmt: skip
    values = _whole(row, readers, spot, optional=("session", "image_caption"))
    return Turn(
        values["id"], values.get("session", values["date"][:10]), values["date"], values["speaker"], values["text"],
        values.get("image_caption", ""),
    )  # fmt: skip


def _question(row: Any, spot: Spot, place: int, known: Mapping[str, int], zone: str | None) -> Question:
    ids = many(_turn_id(known))
    readers: dict[str, Reader] = {
        "text": _said, "evidence": ids, "answerable": flag, "id": text, "category": text, "answer": _anything,
        "date": _time(zone), "oldest": ids, "newest": ids,
    }  # fmt: skip
    values = _whole(row, readers, spot, optional=tuple(readers)[1:])
    answerable = values.get("answerable", True)
    if answerable and "evidence" not in values:
        raise spot.missing("evidence", "the ids of the turns that hold the answer, or `answerable: false`")
    evidence, oldest, newest = (tuple(dict.fromkeys(values.get(name, ()))) for name in ("evidence", "oldest", "newest"))
    return Question(
        values.get("id", f"q{place + 1}"), values["text"], values.get("category", "questions"),
        str(values.get("answer", "")), evidence, answerable, values.get("date"), oldest, newest,
    )  # fmt: skip


def _dated(question: Question, turns: Sequence[Turn], known: Mapping[str, int], zone: str | None) -> Question:
    """An update whose file does not say which evidence is current: that of the latest session is."""
    is_update = question.category.replace("_", "-") == UPDATE
    if not is_update or question.oldest or question.newest or not question.evidence:
        return question
    evidence = [turns[known[one]] for one in question.evidence]
    last = max(evidence, key=lambda turn: (instant(turn.date, zone=zone), known[turn.id])).session
    return replace(
        question,
        oldest=tuple(turn.id for turn in evidence if turn.session != last),
        newest=tuple(turn.id for turn in evidence if turn.session == last),
    )


# Readers of values ----------------------------------------------------------------------------------------------------


def _whole(row: Any, readers: Mapping[str, Reader], spot: Spot, optional: Sequence[str] = ("speakers",)) -> Any:
    """The values of a mapping that lacks none of its keys; null stands for a key that was left out."""
    given = {key: value for key, value in row.items() if value is not None} if isinstance(row, Mapping) else row
    values = mapping(given, readers, spot)
    for name in readers:
        if name not in values and name not in optional:
            raise spot.missing(name, "a value for it")
    return values


def _distinct(ids: Sequence[str], spot: Spot, allowed: str) -> None:
    seen: set[str] = set()
    for place, one in enumerate(ids):
        if one in seen:
            raise spot.at(place).at("id").wrong(one, allowed)
        seen.add(one)


def _said(value: Any, spot: Spot) -> str:
    """A text that says something, kept as it is."""
    text(value, spot)
    return str(value)


def _anyhow(value: Any, spot: Spot) -> str:
    """A text, even an empty one."""
    if not isinstance(value, str):
        raise spot.wrong(value, "a text")
    return value


def _anything(value: Any, spot: Spot) -> Any:  # noqa: ARG001
    return value


def _list(value: Any, spot: Spot) -> list[Any]:
    if not isinstance(value, list):
        raise spot.wrong(value, "a list")
    return value


def _time(zone: str | None) -> Reader:
    def read(value: Any, spot: Spot) -> str:
        said = text(value, spot)
        try:
            instant(said, zone=zone)
        except TimeError as error:
            allowed = "a date, or a time with an offset such as a final Z"
            raise spot.error(f"found {said!r}", allowed, error.hint) from error
        return said

    return read


def _turn_id(known: Mapping[str, int]) -> Reader:
    def read(value: Any, spot: Spot) -> str:
        if not isinstance(value, str) or value not in known:
            raise spot.wrong(value, "the id of a turn of this conversation", known)
        return value

    return read
