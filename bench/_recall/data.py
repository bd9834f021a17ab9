"""Conversations with questions whose evidence is known, in the one format of the data folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from told.core.text import terms

FILES = {"locomo": "locomo.json", "beam": "beam_100k.json", "longmemeval": "longmemeval_pooled.json"}
ROLES = ("user", "assistant")


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

    @property
    def wording(self) -> str:
        """What is embedded and indexed of a turn: the speaker's name, if there is one, and the content."""
        return self.content if self.is_role else f"{self.speaker}: {self.content}"

    @property
    def line(self) -> str:
        """The turn as a baseline shows it."""
        return f"[{self.date[:10]}] {self.speaker}: {folded(self.content)}"


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


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order and questions about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def folded(text: str) -> str:
    """The text with white space folded."""
    return " ".join(text.split())


def words(text: str) -> frozenset[str]:
    """The content words of a text."""
    return frozenset(terms(text))


def load(folder: Path, name: str, most: int | None = None, *, captions: bool = True) -> list[Conversation] | None:
    """The conversations of a data set, None where its file is not there."""
    path = folder / FILES[name]
    if not path.is_file():
        return None
    return [_conversation(row, captions) for row in json.loads(path.read_text("utf-8"))[:most]]


def _conversation(row: Mapping[str, Any], captions: bool) -> Conversation:
    turns = tuple(
        Turn(
            turn["id"], turn["session"], turn["date"], turn["speaker"], turn["text"],
            turn.get("image_caption", "") if captions else "",
        )
        for turn in row["turns"]
    )  # fmt: skip
    known = {turn.id: place for place, turn in enumerate(turns)}
    questions = tuple(_dated(_question(one, known), turns, known) for one in row["questions"])
    return Conversation(row["id"], turns, questions)


def _question(row: Mapping[str, Any], known: Mapping[str, int]) -> Question:
    def ids(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for one in row.get(name) or () if one in known))

    return Question(
        row["id"], row["text"], row["category"], str(row["answer"]), ids("evidence"), bool(row["answerable"]),
        row.get("date"), ids("oldest"), ids("newest"),
    )  # fmt: skip


def _dated(question: Question, turns: Sequence[Turn], known: Mapping[str, int]) -> Question:
    """An update whose file does not say which evidence is current: that of the latest session is."""
    is_update = question.category.replace("_", "-") == "knowledge-update"
    if not is_update or question.oldest or question.newest or not question.evidence:
        return question
    evidence = [turns[known[one]] for one in question.evidence]
    last = max(evidence, key=lambda turn: (turn.date, known[turn.id])).session
    return replace(
        question,
        oldest=tuple(turn.id for turn in evidence if turn.session != last),
        newest=tuple(turn.id for turn in evidence if turn.session == last),
    )
