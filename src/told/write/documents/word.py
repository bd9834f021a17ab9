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
from told.core.lazy import lazy_regex
from told.write.documents.document import ParsedDocument, split_sections

MAX_MEMBERS: Final = 10_000
BODY_MEMBER: Final = "word/document.xml"
PROPERTIES_MEMBER: Final = "docProps/core.xml"
_WORD_NAMESPACES: Final = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_TITLE_ELEMENT: Final = "http://purl.org/dc/elements/1.1/ title"
_HEADING_STYLE: Final = lazy_regex(
    r"(?:heading|berschrift|titre|titulo|ttulo|rubrik|kop)\s*([1-6])", re.IGNORECASE
)


def is_docx(data: bytes) -> bool:
    """Whether an archive is a Word document."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return BODY_MEMBER in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def read_docx(data: bytes, limit: int) -> ParsedDocument:
    """The text of a Word document, of which no member unpacks to more than `limit` bytes."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise TooLarge(f"The document is an archive of more than {MAX_MEMBERS:,} files.")
            body = _read_member(archive, BODY_MEMBER, limit)
            properties = (
                _read_member(archive, PROPERTIES_MEMBER, limit)
                if PROPERTIES_MEMBER in archive.namelist()
                else b""
            )
    except TooLarge:
        raise
    except (
        zipfile.BadZipFile,
        OSError,
        RuntimeError,
        ValueError,
        NotImplementedError,
        KeyError,
        zlib.error,
    ) as error:
        hint = "Save it again, without a password."
        raise MediaError(f"The document cannot be unpacked: {error}.", hint=hint) from error
    text = _BodyParser().read_text(body)
    title = _TitleParser().read_title(properties) if properties else ""
    return ParsedDocument(text, title, split_sections(text))


def _read_member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """A member of an archive, unpacked as far as the limit allows: its own word for its size counts for nothing."""
    with archive.open(name) as member:
        data = member.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"{name} unpacks to more than {limit:,} bytes.", hint="Split the document.")
    return data


class _XmlParser:
    """Reads XML that declares no document type, and so has no entities to expand and nothing to fetch."""

    def parse_xml(self, data: bytes) -> None:
        """Walk through the elements."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self.start_element
        parser.EndElementHandler = self.end_element
        parser.CharacterDataHandler = self.add_text
        parser.buffer_text = True
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise MediaError(
                f"The document's XML is broken: {error}.", hint="Save it again."
            ) from error

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end_element(self, name: str) -> None:
        """An element ends."""

    def add_text(self, data: str) -> None:
        """Text inside an element."""


def _refuse_doctype(*_: object) -> None:
    raise MediaError(
        "The document declares a document type, which no true one does.", hint="It was not read."
    )


class _TitleParser(_XmlParser):
    """Finds the title among a document's properties."""

    def __init__(self) -> None:
        self._in_title = False
        self._title = ""

    def read_title(self, data: bytes) -> str:
        """The title, if there is one."""
        self.parse_xml(data)
        return self._title.strip()

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """The title may begin."""
        self._in_title = name == _TITLE_ELEMENT

    def end_element(self, name: str) -> None:
        """The title ends."""
        self._in_title = False

    def add_text(self, data: str) -> None:
        """The title's words."""
        self._title += data if self._in_title else ""


class _BodyParser(_XmlParser):
    """Gathers the paragraphs of a document; the cells of a table row share a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._cells: list[str] | None = None
        self._runs: list[str] = []
        self._prefix = ""
        self._table_depth = 0
        self._in_text = False

    def read_text(self, data: bytes) -> str:
        """The text."""
        self.parse_xml(data)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """A paragraph, a run of text, a style or a row begins."""
        space, _, tag = name.rpartition(" ")
        if space not in _WORD_NAMESPACES:
            return
        value = attributes.get(f"{space} val", "")
        match tag:
            case "t":
                self._in_text = True
            case "tab":
                self._runs.append("\t")
            case "br" | "cr":
                self._runs.append("\n")
            case "pStyle":
                level = _HEADING_STYLE.search(value)
                self._prefix = (
                    "#" * int(level[1]) + " "
                    if level
                    else "# "
                    if value.lower() == "title"
                    else self._prefix
                )
            case "outlineLvl" if not self._prefix and value.isdigit() and int(value) < 6:
                self._prefix = "#" * (int(value) + 1) + " "
            case "numPr" if not self._prefix:
                self._prefix = "- "
            case "tbl":
                self._table_depth += 1
            case "tr" if self._table_depth == 1:
                self._cells = []
            case "tc" if self._cells is not None and self._table_depth == 1:
                self._cells.append("")

    def end_element(self, name: str) -> None:
        """A paragraph, a row or a table ends."""
        space, _, tag = name.rpartition(" ")
        if space not in _WORD_NAMESPACES:
            return
        match tag:
            case "t":
                self._in_text = False
            case "p":
                self._end_paragraph()
            case "tr" if self._table_depth == 1 and self._cells is not None:
                self._lines.append(" | ".join(cell.strip() for cell in self._cells))
                self._cells = None
            case "tbl":
                self._table_depth -= 1
                self._lines.append("")

    def add_text(self, data: str) -> None:
        """Text of a run; anything else between tags is layout."""
        if self._in_text:
            self._runs.append(data)

    def _end_paragraph(self) -> None:
        text, prefix = "".join(self._runs).strip(), self._prefix
        self._runs, self._prefix = [], ""
        if self._cells:
            self._cells[-1] = f"{self._cells[-1]} {text}"
        elif text:
            self._lines += [f"{prefix}{text}"] if prefix == "- " else [f"{prefix}{text}", ""]
