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

from told.core.echo import CONTEXT_NOTE
from told.core.fact import Fact
from told.core.ids import sha256
from told.core.lazy import lazy_regex
from told.core.scope import Caller
from told.core.trust import EXTERNAL_SOURCES, trust_of_source

Format = Literal["text", "markdown", "xml", "messages"]
FORMATS: Final[tuple[Format, ...]] = ("text", "markdown", "xml", "messages")
SECTIONS: Final = ("pinned", "recalled", "recent")
"""The parts of a context as they are printed: what stays the same comes first, so that prompt caches hit."""

MESSAGE_TOKENS: Final = 4
"""What a chat message costs besides its content."""

DatedLine: TypeAlias = tuple[str, str]
"""A line and the year to be written above the first line of that year; empty where lines carry their own."""


@dataclass(frozen=True, slots=True)
class RenderStyle:
    """One format: its lines, its titles, and the frame around each block."""

    format_line: Callable[[Fact, datetime, str], str]
    opening: str
    closing: str
    titles: Mapping[str, str]
    section_ends: Mapping[str, str] = field(default_factory=dict)
    shows_years: bool = False
    omits_first_title: bool = False
    """Whether recalled lines go without a title where nothing stands above them."""
    blocks: tuple[tuple[str, ...], ...] = (SECTIONS,)
    overhead: int = 0

    def get_title(self, section: str, *, is_first: bool) -> str:
        """The line above a section, if it has one."""
        return (
            ""
            if self.omits_first_title and is_first and section == "recalled"
            else self.titles.get(section, "")
        )

    def render_block(self, sections: Mapping[str, Sequence[DatedLine]]) -> str:
        """The sections one below the other in a frame whose mark occurs in none of them."""
        lines: list[str] = []
        for section, rows in sections.items():
            title = self.get_title(section, is_first=not lines)
            lines += (
                line
                for line in (title, *_insert_years(rows), self.section_ends.get(section, ""))
                if line
            )
        body = "\n".join(lines)
        first, last = self.render_frame(body)
        return "\n".join((first, body, last) if last else (first, body))

    def render_frame(self, body: str = "") -> tuple[str, str]:
        """What stands above and below a body."""
        mark = _choose_mark(body)
        return self.opening.format(mark=mark), self.closing.format(mark=mark)


def _insert_years(rows: Sequence[DatedLine]) -> Iterator[str]:
    """The lines, with the year on a line of its own wherever it changes."""
    previous_year = ""
    for year, line in rows:
        if year != previous_year:
            yield year
        yield line
        previous_year = year


# ------------------------------------------------------------------------------------------------------------ the fence

_SHORT_MARKS: Final = 256


def _choose_mark(body: str) -> str:
    """The first mark that the body does not say: four digits, and eight for one that says many of them.

    The marks come in one fixed order, so that two contexts begin alike; saying a mark is what changes it.
    """
    normalised = unicodedata.normalize("NFKC", body).lower()
    return next(mark for mark in _iter_marks() if mark not in normalised)


def _iter_marks() -> Iterator[str]:
    for number in count():
        yield sha256(b"told fence", str(number).encode()).hex()[: 4 if number < _SHORT_MARKS else 8]


# ------------------------------------------------------------------------------------------------------- harmless texts

_INVISIBLE: Final = r"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
# Joiners shape emoji and several scripts; behind a Latin letter or a digit they only hide something.
_INVISIBLE_RUN: Final = lazy_regex(rf"(?<=[!-~])[\u200c\u200d{_INVISIBLE}]+|[{_INVISIBLE}]+")
_CONTROL: Final = lazy_regex(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE: Final = lazy_regex(r"[\ud800-\udfff]")


def flatten_text(text: str) -> str:
    """The text on one line: white space and controls folded to single spaces, nothing invisible."""
    folded = " ".join(text.split())
    if folded.isprintable():
        return folded
    visible = _SURROGATE.sub("\ufffd", _INVISIBLE_RUN.sub("", folded))
    return " ".join(_CONTROL.sub(" ", visible).split())


def format_speaker(fact: Fact) -> str:
    """Who said it; what is no user is called what it is, whatever name it goes by."""
    names = (fact.actor, fact.role) if fact.role in (None, "user") else (fact.role, fact.actor)
    for name in (*names, fact.author):
        if name and (label := flatten_text(name)):
            return label
    return "unknown"


HUMAN_AUTHORS: Final = ("user", Caller().name)
"""Whoever writes by another name is a model."""


def get_trust_label(fact: Fact) -> str:
    """How a text got here: a model made it, something reported it, or the user stated it."""
    if fact.role == "assistant" or fact.author not in HUMAN_AUTHORS:
        return "model"
    return "reported" if fact.source or trust_of_source(fact) in EXTERNAL_SOURCES else "stated"


_BRACKETS_TO_PARENS: Final = str.maketrans("[]", "()")


def _format_origin(fact: Fact) -> str:
    source = flatten_text(fact.source) if fact.source else ""
    return f" [from {source.translate(_BRACKETS_TO_PARENS)}]" if source else ""


_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)


def _format_day(day: datetime) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


# ---------------------------------------------------------------------------------------------------------- the formats


def _format_plain_line(fact: Fact, day: datetime, text: str) -> str:
    return f"{_format_day(day)} {format_speaker(fact)}: {text}{_format_origin(fact)}"


# A backslash, code, a tag, an entity, a link or bold letters; an asterisk or a bracket alone is left as it is.
_MARKUP: Final = lazy_regex(r"[\\`<]|&(?=#?\w+;)|(?<=\])\(|_{2,}|\*{2,}")
_MARKUP_IN_BOLD: Final = lazy_regex(_MARKUP.pattern + r"|\*")


def _escape_markup(match: re.Match[str]) -> str:
    return "".join(f"\\{character}" for character in match[0])


def _format_bullet(fact: Fact, day: datetime, text: str) -> str:
    name = _MARKUP_IN_BOLD.sub(_escape_markup, format_speaker(fact))
    return f"- **{_format_day(day)} {day.year}, {name}:** {_MARKUP.sub(_escape_markup, text + _format_origin(fact))}"


_XML_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\ufffe": "\ufffd", "\uffff": "\ufffd"}
)
_ATTRIBUTE_ESCAPES: Final = _XML_ESCAPES | str.maketrans({'"': "&quot;"})


def _format_element(fact: Fact, day: datetime, text: str) -> str:
    values = {
        "id": flatten_text(fact.id),
        "date": day.date().isoformat(),
        "speaker": format_speaker(fact),
        "source": flatten_text(fact.source or ""),
        "trust": get_trust_label(fact),
    }
    attributes = " ".join(
        f'{name}="{value.translate(_ATTRIBUTE_ESCAPES)}"' for name, value in values.items() if value
    )
    return f"<memory {attributes}>{text.translate(_XML_ESCAPES)}</memory>"


_TITLES: Final = {"pinned": "Always:", "recalled": "Recalled:", "recent": "Just said:"}
_OPENING: Final = f"<memory {{mark}}>\n{CONTEXT_NOTE}"
_CLOSING: Final = "</memory {mark}>"

STYLES: Final[Mapping[str, RenderStyle]] = {
    "text": RenderStyle(_format_plain_line, _OPENING, _CLOSING, _TITLES, shows_years=True, omits_first_title=True),
    "markdown": RenderStyle(
        _format_bullet, f"## What is remembered\n*{CONTEXT_NOTE}*", "",
        {"pinned": "### Profile", "recalled": "### Retrieved memories", "recent": "### Recent"},
    ),
    "xml": RenderStyle(
        _format_element, f'<memories note="{CONTEXT_NOTE[:-1]}">', "</memories>",
        {"pinned": "<pinned>", "recent": "<recent>"}, {"pinned": "</pinned>", "recent": "</recent>"},
    ),
    # Two blocks, so that the part that stays the same can stand above the conversation and the rest below it.
    "messages": RenderStyle(
        _format_plain_line, _OPENING, _CLOSING, _TITLES, shows_years=True, omits_first_title=True,
        blocks=(("pinned",), ("recalled", "recent")), overhead=MESSAGE_TOKENS,
    ),
}  # fmt: skip
