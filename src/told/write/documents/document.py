"""What becomes of a document once it was read: a text, its sections, and the parts it is kept in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from told.core.lazy import lazy_regex
from told.core.text import make_snippet

_MARKDOWN_HEADING: Final = lazy_regex(r"#{1,6}[ \t]")
_UNDERLINE: Final = lazy_regex(r"(=+|-+)[ \t]*")
_FENCE: Final = lazy_regex(r" {0,3}(```|~~~)")
_BREAKS: Final = ("\n\n", "\n", " ")
JOINED_TITLES_LIMIT: Final = 200
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
class ParsedDocument:
    """What a reader of one format found: the text, its sections, and a title if the document names one."""

    text: str
    title: str = ""
    sections: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()


def split_sections(text: str) -> tuple[Section, ...]:
    """The sections of a Markdown text, by its headings; what is fenced off as code has none."""
    headings = [(0, ""), *_iter_headings(text)]
    ends = [start for start, _ in headings[1:]] + [len(text)]
    sections = (
        Section(title, start, end) for (start, title), end in zip(headings, ends, strict=True)
    )
    return tuple(section for section in sections if text[section.start : section.end].strip())


def _iter_headings(text: str) -> Iterator[tuple[int, str]]:
    """Where each heading begins, and what it says."""
    offset, previous_line, fence = 0, "", ""
    for line in text.splitlines(keepends=True):
        stripped = line.rstrip("\r\n")
        if mark := _FENCE.match(stripped):
            fence = "" if fence == mark[1] else fence or mark[1]
        elif not fence and _MARKDOWN_HEADING.match(stripped) and (title := stripped.strip("# \t")):
            yield offset, title
        elif (
            not fence
            and previous_line.strip()
            and len(stripped) > 2
            and _UNDERLINE.fullmatch(stripped)
        ):
            yield offset - len(previous_line), previous_line.strip()
        offset, previous_line = offset + len(line), line


def find_first_title(sections: Sequence[Section]) -> str:
    """The first heading of a document."""
    return next((section.title for section in sections if section.title), "")


def split_parts(document: Document, size: int) -> list[Section]:
    """The document in stretches of about `size` characters: whole sections where they fit, else cut at paragraphs."""
    text = document.text
    if len(text) <= size:
        return [Section(document.title, 0, len(text))]
    sections: list[Section] = []
    for section in document.sections or (Section("", 0, len(text)),):
        last = sections[-1] if sections else None
        if last is not None and section.end - last.start <= size:
            titles = " · ".join(title for title in (last.title, section.title) if title)
            sections[-1] = Section(
                make_snippet(titles, JOINED_TITLES_LIMIT), last.start, section.end
            )
        else:
            sections += [
                Section(section.title, start, end)
                for start, end in _split_text(text, section.start, section.end, size)
            ]
    return [part for part in sections if text[part.start : part.end].strip()]


def _split_text(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Stretches of at most `size` characters, each ending where a paragraph, a line or a word does."""
    while end - start > size:
        floor = start + size // 2
        ends = (text.rfind(mark, floor, start + size) + len(mark) for mark in _BREAKS)
        stop = next((position for position in ends if position > floor), start + size)
        yield start, stop
        start = stop
    yield start, end
