"""How memories look in a prompt: four formats, and in none of them can a memory leave its line.

A recalled text is data. White space is folded, so that nobody but this module begins a line; controls become spaces,
and what cannot be seen (bidirectional marks, zero-width characters, tags) is left out, so that what a model reads is
what a person would see. Plain prose stays verbatim in every format.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Final, Literal, TypeAlias

from told.core.echo import NOTE
from told.core.fact import Fact
from told.core.ids import sha256
from told.core.lazy import regex
from told.core.scope import Caller
from told.core.trust import FOREIGN, source_of

Format = Literal["text", "markdown", "xml", "messages"]
FORMATS: Final[tuple[Format, ...]] = ("text", "markdown", "xml", "messages")
SECTIONS: Final = ("pinned", "recalled", "recent")
"""The parts of a context as they are printed: what stays the same comes first, so that prompt caches hit."""

MESSAGE_TOKENS: Final = 4
"""What a chat message costs besides its content."""

Row: TypeAlias = tuple[str, str]
"""A line and the year to be written above the first line of that year; empty where lines carry their own."""


@dataclass(frozen=True, slots=True)
class Style:
    """One format: its lines, its titles, and the frame around each block."""

    line: Callable[[Fact, datetime, str], str]
    opening: str
    closing: str
    titles: Mapping[str, str]
    ends: Mapping[str, str] = field(default_factory=dict)
    years: bool = False
    bare: bool = False
    """Whether recalled lines go without a title where nothing stands above them."""
    blocks: tuple[tuple[str, ...], ...] = (SECTIONS,)
    overhead: int = 0

    def title(self, section: str, *, first: bool) -> str:
        """The line above a section, if it has one."""
        return "" if self.bare and first and section == "recalled" else self.titles.get(section, "")

    def block(self, sections: Mapping[str, Sequence[Row]]) -> str:
        """The sections one below the other in a frame whose mark occurs in none of them."""
        lines: list[str] = []
        for section, rows in sections.items():
            title = self.title(section, first=not lines)
            lines += (line for line in (title, *_dated(rows), self.ends.get(section, "")) if line)
        body = "\n".join(lines)
        first, last = self.frame(body)
        return "\n".join((first, body, last) if last else (first, body))

    def frame(self, body: str = "") -> tuple[str, str]:
        """What stands above and below a body."""
        mark = _unsaid_mark(body)
        return self.opening.format(mark=mark), self.closing.format(mark=mark)


def _dated(rows: Sequence[Row]) -> Iterator[str]:
    """The lines, with the year on a line of its own wherever it changes."""
    before = ""
    for year, line in rows:
        if year != before:
            yield year
        yield line
        before = year


# ------------------------------------------------------------------------------------------------------------ the fence

_SHORT_MARKS: Final = 256


def _unsaid_mark(body: str) -> str:
    """The first mark that the body does not say: four digits, and eight for one that says many of them.

    The marks come in one fixed order, so that two contexts begin alike; saying a mark is what changes it.
    """
    said = unicodedata.normalize("NFKC", body).lower()
    return next(mark for mark in _marks() if mark not in said)


def _marks() -> Iterator[str]:
    for turn in count():
        yield sha256(b"told fence", str(turn).encode()).hex()[: 4 if turn < _SHORT_MARKS else 8]


# ------------------------------------------------------------------------------------------------------- harmless texts

_UNSEEN: Final = (
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# Joiners shape emoji and several scripts; behind a Latin letter or a digit they only hide something.
_HIDDEN: Final = regex(rf"(?<=[!-~])[\u200c\u200d{_UNSEEN}]+|[{_UNSEEN}]+")
_CONTROL: Final = regex(r"[\x00-\x1f\x7f-\x9f]")
_BROKEN: Final = regex(r"[\ud800-\udfff]")


def flat(text: str) -> str:
    """The text on one line: white space and controls folded to single spaces, nothing invisible."""
    folded = " ".join(text.split())
    if folded.isprintable():
        return folded
    seen = _BROKEN.sub("\ufffd", _HIDDEN.sub("", folded))
    return " ".join(_CONTROL.sub(" ", seen).split())


def speaker(fact: Fact) -> str:
    """Who said it; what is no user is called what it is, whatever name it goes by."""
    named = (fact.actor, fact.role) if fact.role in (None, "user") else (fact.role, fact.actor)
    for name in (*named, fact.author):
        if name and (shown := flat(name)):
            return shown
    return "unknown"


PEOPLE: Final = ("user", Caller().name)
"""Whoever writes by another name is a model."""


def trust(fact: Fact) -> str:
    """How a text got here: a model made it, something reported it, or the user stated it."""
    if fact.role == "assistant" or fact.author not in PEOPLE:
        return "model"
    return "reported" if fact.source or source_of(fact) in FOREIGN else "stated"


_ROUND: Final = str.maketrans("[]", "()")


def _origin(fact: Fact) -> str:
    source = flat(fact.source) if fact.source else ""
    return f" [from {source.translate(_ROUND)}]" if source else ""


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _day(day: datetime) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


# ---------------------------------------------------------------------------------------------------------- the formats


def _plain(fact: Fact, day: datetime, text: str) -> str:
    return f"{_day(day)} {speaker(fact)}: {text}{_origin(fact)}"


# A backslash, code, a tag, an entity, a link or bold letters; an asterisk or a bracket alone is left as it is.
_MARKUP: Final = regex(r"[\\`<]|&(?=#?\w+;)|(?<=\])\(|_{2,}|\*{2,}")
_MARKUP_IN_BOLD: Final = regex(_MARKUP.pattern + r"|\*")


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\{character}" for character in match[0])


def _bullet(fact: Fact, day: datetime, text: str) -> str:
    who = _MARKUP_IN_BOLD.sub(_escaped, speaker(fact))
    return f"- **{_day(day)} {day.year}, {who}:** {_MARKUP.sub(_escaped, text + _origin(fact))}"


_IN_XML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\ufffe": "\ufffd", "\uffff": "\ufffd"})
_IN_ATTRIBUTE: Final = _IN_XML | str.maketrans({'"': "&quot;"})


def _element(fact: Fact, day: datetime, text: str) -> str:
    named = {
        "id": flat(fact.id), "date": day.date().isoformat(), "speaker": speaker(fact),
        "source": flat(fact.source or ""), "trust": trust(fact),
    }  # fmt: skip
    attributes = " ".join(f'{name}="{value.translate(_IN_ATTRIBUTE)}"' for name, value in named.items() if value)
    return f"<memory {attributes}>{text.translate(_IN_XML)}</memory>"


_TITLES: Final = {"pinned": "Always:", "recalled": "Recalled:", "recent": "Just said:"}
_OPENING: Final = f"<memory {{mark}}>\n{NOTE}"
_CLOSING: Final = "</memory {mark}>"

STYLES: Final[Mapping[str, Style]] = {
    "text": Style(_plain, _OPENING, _CLOSING, _TITLES, years=True, bare=True),
    "markdown": Style(
        _bullet, f"## What is remembered\n*{NOTE}*", "",
        {"pinned": "### Profile", "recalled": "### Retrieved memories", "recent": "### Recent"},
    ),
    "xml": Style(
        _element, f'<memories note="{NOTE[:-1]}">', "</memories>",
        {"pinned": "<pinned>", "recent": "<recent>"}, {"pinned": "</pinned>", "recent": "</recent>"},
    ),
    # Two blocks, so that the part that stays the same can stand above the conversation and the rest below it.
    "messages": Style(
        _plain, _OPENING, _CLOSING, _TITLES, years=True, bare=True,
        blocks=(("pinned",), ("recalled", "recent")), overhead=MESSAGE_TOKENS,
    ),
}  # fmt: skip
