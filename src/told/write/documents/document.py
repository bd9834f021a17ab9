"""What becomes of a document once it was read: a text, its sections, and the parts it is kept in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from told.core.lazy import regex
from told.core.text import snippet

_HEADING: Final = regex(r"#{1,6}[ \t]")
_UNDERLINE: Final = regex(r"(=+|-+)[ \t]*")
_FENCE: Final = regex(r" {0,3}(```|~~~)")
_BREAKS: Final = ("\n\n", "\n", " ")
TITLES: Final = 200
"""The most characters that the titles of the sections of one part may have together."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document's text under one heading; what stands before the first has no title."""

    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """A document as text; `sha256` is the tagged hash of the bytes it was read from."""

    title: str
    text: str
    sections: tuple[Section, ...]
    media_type: str
    sha256: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pages:
    """What a reader of one format found: the text, its sections, and a title if the document names one."""

    text: str
    title: str = ""
    sections: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()


def headed(text: str) -> tuple[Section, ...]:
    """The sections of a Markdown text, by its headings; what is fenced off as code has none."""
    marks = [(0, ""), *_headings(text)]
    ends = [start for start, _ in marks[1:]] + [len(text)]
    found = (Section(title, start, end) for (start, title), end in zip(marks, ends, strict=True))
    return tuple(section for section in found if text[section.start : section.end].strip())


def _headings(text: str) -> Iterator[tuple[int, str]]:
    """Where each heading begins, and what it says."""
    at, before, fence = 0, "", ""
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if mark := _FENCE.match(bare):
            fence = "" if fence == mark[1] else fence or mark[1]
        elif not fence and _HEADING.match(bare) and (title := bare.strip("# \t")):
            yield at, title
        elif not fence and before.strip() and len(bare) > 2 and _UNDERLINE.fullmatch(bare):
            yield at - len(before), before.strip()
        at, before = at + len(line), line


def first_title(sections: Sequence[Section]) -> str:
    """The first heading of a document."""
    return next((section.title for section in sections if section.title), "")


def parts(document: Document, size: int) -> list[Section]:
    """The document in stretches of about `size` characters: whole sections where they fit, else cut at paragraphs."""
    text = document.text
    if len(text) <= size:
        return [Section(document.title, 0, len(text))]
    found: list[Section] = []
    for section in document.sections or (Section("", 0, len(text)),):
        last = found[-1] if found else None
        if last is not None and section.end - last.start <= size:
            titles = " · ".join(title for title in (last.title, section.title) if title)
            found[-1] = Section(snippet(titles, TITLES), last.start, section.end)
        else:
            found += [Section(section.title, start, end) for start, end in _cut(text, section.start, section.end, size)]
    return [part for part in found if text[part.start : part.end].strip()]


def _cut(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Stretches of at most `size` characters, each ending where a paragraph, a line or a word does."""
    while end - start > size:
        floor = start + size // 2
        ends = (text.rfind(mark, floor, start + size) + len(mark) for mark in _BREAKS)
        stop = next((found for found in ends if found > floor), start + size)
        yield start, stop
        start = stop
    yield start, end
