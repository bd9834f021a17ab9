"""DOCX: the paragraphs, headings, lists and tables of a Word document, read from its zip and XML by hand.

The archive may be a bomb and the XML may be one too: every member is read up to a limit, and a document type
declaration, which is where entities come from, ends the reading. A true document has none.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from io import BytesIO
from typing import Final
from xml.parsers import expat

from told.core.errors import MediaError, TooLarge
from told.core.lazy import regex
from told.write.documents.document import Pages, headed

MEMBERS: Final = 10_000
BODY: Final = "word/document.xml"
PROPERTIES: Final = "docProps/core.xml"
_WORD: Final = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_TITLE: Final = "http://purl.org/dc/elements/1.1/ title"
_HEADING: Final = regex(r"(?:heading|berschrift|titre|titulo|ttulo|rubrik|kop)\s*([1-6])", re.IGNORECASE)


def is_word(data: bytes) -> bool:
    """Whether an archive is a Word document."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return BODY in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def word(data: bytes, limit: int) -> Pages:
    """The text of a Word document, of which no member unpacks to more than `limit` bytes."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if len(archive.infolist()) > MEMBERS:
                raise TooLarge(f"The document is an archive of more than {MEMBERS:,} files.")
            body = _member(archive, BODY, limit)
            properties = _member(archive, PROPERTIES, limit) if PROPERTIES in archive.namelist() else b""
    except TooLarge:
        raise
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, NotImplementedError, KeyError, zlib.error) as error:
        hint = "Save it again, without a password."
        raise MediaError(f"The document cannot be unpacked: {error}.", hint=hint) from error
    text = _Body().read(body)
    title = _Properties().read(properties) if properties else ""
    return Pages(text, title, headed(text))


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """A member of an archive, unpacked as far as the limit allows: its own word for its size counts for nothing."""
    with archive.open(name) as member:
        data = member.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"{name} unpacks to more than {limit:,} bytes.", hint="Split the document.")
    return data


class _Parser:
    """Reads XML that declares no document type, and so has no entities to expand and nothing to fetch."""

    def parse(self, data: bytes) -> None:
        """Walk through the elements."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = _refuse
        parser.StartElementHandler = self.opened
        parser.EndElementHandler = self.closed
        parser.CharacterDataHandler = self.words
        parser.buffer_text = True
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise MediaError(f"The document's XML is broken: {error}.", hint="Save it again.") from error

    def opened(self, name: str, given: dict[str, str]) -> None:
        """An element begins."""

    def closed(self, name: str) -> None:
        """An element ends."""

    def words(self, data: str) -> None:
        """Text inside an element."""


def _refuse(*_: object) -> None:
    raise MediaError("The document declares a document type, which no true one does.", hint="It was not read.")


class _Properties(_Parser):
    """Finds the title among a document's properties."""

    def __init__(self) -> None:
        self._inside = False
        self._title = ""

    def read(self, data: bytes) -> str:
        """The title, if there is one."""
        self.parse(data)
        return self._title.strip()

    def opened(self, name: str, given: dict[str, str]) -> None:  # noqa: ARG002
        """The title may begin."""
        self._inside = name == _TITLE

    def closed(self, name: str) -> None:  # noqa: ARG002
        """The title ends."""
        self._inside = False

    def words(self, data: str) -> None:
        """The title's words."""
        self._title += data if self._inside else ""


class _Body(_Parser):
    """Gathers the paragraphs of a document; the cells of a table row share a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._cells: list[str] | None = None
        self._words: list[str] = []
        self._mark = ""
        self._tables = 0
        self._in_text = False

    def read(self, data: bytes) -> str:
        """The text."""
        self.parse(data)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def opened(self, name: str, given: dict[str, str]) -> None:
        """A paragraph, a run of text, a style or a row begins."""
        space, _, tag = name.rpartition(" ")
        if space not in _WORD:
            return
        value = given.get(f"{space} val", "")
        match tag:
            case "t":
                self._in_text = True
            case "tab":
                self._words.append("\t")
            case "br" | "cr":
                self._words.append("\n")
            case "pStyle":
                level = _HEADING.search(value)
                self._mark = "#" * int(level[1]) + " " if level else "# " if value.lower() == "title" else self._mark
            case "outlineLvl" if not self._mark and value.isdigit() and int(value) < 6:
                self._mark = "#" * (int(value) + 1) + " "
            case "numPr" if not self._mark:
                self._mark = "- "
            case "tbl":
                self._tables += 1
            case "tr" if self._tables == 1:
                self._cells = []
            case "tc" if self._cells is not None and self._tables == 1:
                self._cells.append("")

    def closed(self, name: str) -> None:
        """A paragraph, a row or a table ends."""
        space, _, tag = name.rpartition(" ")
        if space not in _WORD:
            return
        match tag:
            case "t":
                self._in_text = False
            case "p":
                self._paragraph()
            case "tr" if self._tables == 1 and self._cells is not None:
                self._lines.append(" | ".join(cell.strip() for cell in self._cells))
                self._cells = None
            case "tbl":
                self._tables -= 1
                self._lines.append("")

    def words(self, data: str) -> None:
        """Text of a run; anything else between tags is layout."""
        if self._in_text:
            self._words.append(data)

    def _paragraph(self) -> None:
        said, mark = "".join(self._words).strip(), self._mark
        self._words, self._mark = [], ""
        if self._cells:
            self._cells[-1] = f"{self._cells[-1]} {said}"
        elif said:
            self._lines += [f"{mark}{said}"] if mark == "- " else [f"{mark}{said}", ""]
