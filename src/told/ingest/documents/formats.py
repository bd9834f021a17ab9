"""Read documents (text, Markdown, HTML, PDF, DOCX) into text with sections.

HTML is tokenized here, and every character is looked at once. On hostile pages `html.parser` can
take hours for a megabyte, and lexbor (selectolax) is quadratic in the depth of nested elements: 200
kB of `<div>` take it 9 seconds, and this reader 0.2.
"""

from __future__ import annotations

import codecs
import json
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from importlib.resources import as_file, files
from importlib.util import find_spec
from io import BytesIO
from typing import Any, Final
from xml.parsers import expat

from told.errors import MediaError, ReaderMissing, TooLarge
from told.runtime import lazy_regex
from told.text.tokens import make_snippet

_MARKDOWN_HEADING: Final = lazy_regex(r"#{1,6}[ \t]")
_UNDERLINE: Final = lazy_regex(r"(=+|-+)[ \t]*")
_FENCE: Final = lazy_regex(r" {0,3}(```|~~~)")
_BREAKS: Final = ("\n\n", "\n", " ")
JOINED_TITLES_LIMIT: Final = 200
"""Maximum length of the joined section titles of one part."""


@dataclass(frozen=True, slots=True)
class Section:
    """A span of a document's text under one heading; the text before the first has no title."""

    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """A document as text; `sha256` is the tagged hash of its bytes."""

    title: str
    text: str
    sections: tuple[Section, ...]
    media_type: str
    sha256: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The text, sections and title found by the reader of a format."""

    text: str
    title: str = ""
    sections: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()


def split_sections(text: str) -> tuple[Section, ...]:
    """Return the sections of a Markdown text by its headings, ignoring fenced code."""
    headings = [(0, ""), *_iter_headings(text)]
    ends = [start for start, _ in headings[1:]] + [len(text)]
    sections = (
        Section(title, start, end) for (start, title), end in zip(headings, ends, strict=True)
    )
    return tuple(section for section in sections if text[section.start : section.end].strip())


def _iter_headings(text: str) -> Iterator[tuple[int, str]]:
    """Iterate over the headings with their offsets."""
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
    """Return the first heading of a document."""
    return next((section.title for section in sections if section.title), "")


def split_parts(document: Document, size: int) -> list[Section]:
    """Split a document into parts of about `size` characters.

    Whole sections are kept together where they fit; longer ones are cut at paragraphs.
    """
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
    """Iterate over spans of at most `size` characters, cut at a paragraph, line or word."""
    while end - start > size:
        floor = start + size // 2
        ends = (text.rfind(mark, floor, start + size) + len(mark) for mark in _BREAKS)
        stop = next((position for position in ends if position > floor), start + size)
        yield start, stop
        start = stop
    yield start, end


INSTALL_HINT: Final = 'Install the extra: pip install "told[documents]".'
NO_TEXT_WARNING: Final = "The PDF contains no text; its pages may be scans."


def read_pdf(data: bytes, limit: int, timeout: float = 60.0) -> ParsedDocument:
    """Read a PDF with one section per page, in a child process for isolation."""
    if find_spec("pypdf") is None:
        raise ReaderMissing(
            "Reading PDFs requires pypdf, which is not installed.", hint=INSTALL_HINT
        )
    result = _run_child(data, limit, timeout)
    if "error" in result:
        raise MediaError(
            f"The PDF cannot be read: {make_snippet(str(result['error']), 200).rstrip('.')}.",
            hint="Save it again, without a password.",
        )
    text, sections = "", []
    for number, page in enumerate(result["pages"], 1):
        if page.strip():
            start = len(text)
            text += f"{page.strip()}\n\n"
            sections.append(Section(f"page {number}", start, len(text)))
    return ParsedDocument(
        text, result["title"], tuple(sections), () if sections else (NO_TEXT_WARNING,)
    )


def _run_child(data: bytes, limit: int, timeout: float) -> dict[str, Any]:
    """Run the PDF reader in a child process and return its result."""
    with as_file(files("told.ingest.documents").joinpath("pdf_child.py")) as program:
        command = [sys.executable, "-P", str(program), str(limit), str(round(timeout))]
        try:
            process = subprocess.run(  # noqa: S603 (this interpreter, our own program)
                command, input=data, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise MediaError(f"Reading the PDF took longer than {timeout:g} seconds.") from error
    try:
        result: dict[str, Any] = json.loads(process.stdout)
    except ValueError as error:
        raise MediaError("The PDF reader crashed; the file may be damaged or malicious.") from error
    return result


_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
GUESSED_ENCODING_WARNING: Final = (
    "The file is not UTF-8; it was decoded as Windows-1252, so some characters may be wrong."
)


def decode_text(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode bytes by their byte order mark, else as UTF-8, else as Western European."""
    codec = next(
        (encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8"
    )
    try:
        return data.decode(codec), ()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), (GUESSED_ENCODING_WARNING,)


def read_plain(data: bytes, _limit: int) -> ParsedDocument:
    """Read plain text."""
    text, warnings = decode_text(data)
    return ParsedDocument(text, warnings=warnings)


def read_markdown(data: bytes, _limit: int) -> ParsedDocument:
    """Read Markdown with its sections."""
    text, warnings = decode_text(data)
    return ParsedDocument(text, sections=split_sections(text), warnings=warnings)


SKIPPED_TAGS: Final = frozenset(
    "script style nav template noscript iframe object svg math canvas audio video button select "
    "textarea dialog".split()
)
VOID_TAGS: Final = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()
)
RAW_TEXT_TAGS: Final = frozenset("script style textarea title iframe noscript".split())
OPTIONAL_END_TAGS: Final = frozenset("p li dd dt td th tr".split())
HEADING_TAGS: Final = frozenset("h1 h2 h3 h4 h5 h6".split())
ITEM_TAGS: Final = frozenset("li tr dd dt".split())
BLOCK_TAGS: Final = (
    HEADING_TAGS
    | ITEM_TAGS
    | frozenset(
        "address article aside blockquote body caption details div dl fieldset figcaption figure "
        "footer form header hr html main ol p pre section summary table tbody tfoot thead "
        "ul".split()
    )
)
LINK_SCHEMES: Final = ("http://", "https://", "mailto:")
_HIDDEN_STYLE: Final = lazy_regex(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?![.\d])",
    re.IGNORECASE,
)
_CHARSET: Final = lazy_regex(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{2,20})", re.IGNORECASE)
_TAG_START: Final = lazy_regex(r"</?[a-zA-Z]")
_TAG: Final = lazy_regex(r"<(/?)([a-zA-Z][^\s/>]*+)((?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*)>")
_ATTRIBUTE: Final = lazy_regex(
    r"([^\s\"'>/=]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++)))?"
)


def read_html(data: bytes, _limit: int) -> ParsedDocument:
    """Read the visible text of a page."""
    source, warnings = _decode_html(data)
    builder = _HtmlTextBuilder()
    for token in tokenize_html(source):
        builder.feed(token)
    text = builder.build_text()
    return ParsedDocument(text, builder.title.strip(), split_sections(text), warnings)


def _decode_html(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode a page by the encoding it declares, if valid."""
    charset = _CHARSET.search(data[:4096])
    if charset is not None and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode(charset[1].decode("ascii")), ()
        except (LookupError, UnicodeDecodeError, ValueError):
            pass
    return decode_text(data)


# Tokens


@dataclass(frozen=True, slots=True)
class HtmlTag:
    """An opening or closing tag with its attributes."""

    name: str
    is_closing: bool
    attributes: Mapping[str, str]


def tokenize_html(source: str) -> Iterator[HtmlTag | str]:
    """Iterate over tags and text; an unterminated construct extends to the end of the page."""
    offset = 0
    while (begin := source.find("<", offset)) >= 0:
        if begin > offset:
            yield unescape(source[offset:begin])
        if source.startswith("<!--", begin):
            offset = _find_end(source, "-->", begin + 4)
        elif source.startswith(("<!", "<?"), begin):
            offset = _find_end(source, ">", begin)
        elif (tag := _TAG.match(source, begin)) is not None:
            yield (html_tag := HtmlTag(tag[2].lower(), bool(tag[1]), _parse_attributes(tag[3])))
            offset = tag.end()
            if html_tag.name in RAW_TEXT_TAGS and not html_tag.is_closing:
                end = re.compile(rf"</{re.escape(html_tag.name)}(?=[\s/>])", re.IGNORECASE).search(
                    source, offset
                )
                stop = len(source) if end is None else end.start()
                yield unescape(source[offset:stop])
                offset = stop
        elif _TAG_START.match(source, begin):
            return
        else:
            yield "<"
            offset = begin + 1
    yield unescape(source[offset:])


def _find_end(source: str, mark: str, start: int) -> int:
    position = source.find(mark, start)
    return len(source) if position < 0 else position + len(mark)


def _parse_attributes(text: str) -> dict[str, str]:
    pairs = (
        (name, double or single or bare) for name, double, single, bare in _ATTRIBUTE.findall(text)
    )
    return {name.lower(): unescape(value) for name, value in pairs}


# Lines


class _HtmlTextBuilder:
    """Collects the lines of a page."""

    def __init__(self) -> None:
        self.title = ""
        self._lines: list[str] = []
        self._line: list[str] = []
        self._prefix = ""
        self._hidden_tag, self._depth = "", 0
        self._link, self._link_start = "", 0
        self._verbatim = False
        self._in_title = False

    def build_text(self) -> str:
        """Return the lines with at most one empty line between blocks."""
        self._end_line()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def feed(self, token: HtmlTag | str) -> None:
        """Handle the next tag or text."""
        if isinstance(token, str):
            self._add_text(token)
        elif self._hidden_tag:
            self._skip_hidden(token)
        elif token.is_closing:
            self._close_tag(token.name)
        else:
            self._open_tag(token)

    def _add_text(self, text: str) -> None:
        """Add text to the title or the line, unless it is hidden."""
        if self._in_title:
            self.title = self.title or text
        elif not self._hidden_tag:
            self._line.append(text if self._verbatim else re.sub(r"\s+", " ", text))

    def _skip_hidden(self, tag: HtmlTag) -> None:
        """Skip a tag in a hidden element until that element ends, explicitly or implicitly."""
        same = tag.name == self._hidden_tag
        if (
            self._hidden_tag in OPTIONAL_END_TAGS
            and not (same and tag.is_closing)
            and (same or tag.name in BLOCK_TAGS)
        ):
            self._hidden_tag = ""
            self.feed(tag)
        elif same:
            self._depth += -1 if tag.is_closing else 1
            self._hidden_tag = self._hidden_tag if self._depth else ""

    def _open_tag(self, tag: HtmlTag) -> None:
        """Handle an opening tag: hide its content, start a block, or add markup."""
        name, attributes = tag.name, tag.attributes
        self._in_title = name == "title"
        if name not in VOID_TAGS and (name in SKIPPED_TAGS or _is_hidden(attributes)):
            self._hidden_tag, self._depth = name, 1
            return
        if name in BLOCK_TAGS or name == "br":
            self._end_line(gap=name in BLOCK_TAGS and name not in ITEM_TAGS)
        if name in HEADING_TAGS:
            self._prefix = "#" * int(name[1]) + " "
        elif name == "li":
            self._prefix = "- "
        elif name in ("td", "th") and self._line:
            self._line.append(" | ")
        elif name == "a":
            self._link, self._link_start = attributes.get("href", ""), len(self._line)
        elif name == "img" and (alt_text := attributes.get("alt", "").strip()):
            self._line.append(f"[image: {alt_text}]")
        self._verbatim = self._verbatim or name == "pre"

    def _close_tag(self, name: str) -> None:
        """Handle a closing tag: append a link's target or end a block."""
        self._in_title = False
        if name == "a" and self._link:
            words = "".join(self._line[self._link_start :]).strip()
            if words and self._link != words and self._link.lower().startswith(LINK_SCHEMES):
                self._line.append(f" ({self._link})")
            self._link = ""
        if name in BLOCK_TAGS:
            self._end_line(gap=name not in ITEM_TAGS)
        self._verbatim = self._verbatim and name != "pre"

    def _end_line(self, *, gap: bool = False) -> None:
        """Finish the line, followed by an empty one if `gap`."""
        words = "".join(self._line)
        words = words.strip("\n") if self._verbatim else re.sub(r" {2,}", " ", words).strip()
        if words:
            self._lines.append(self._prefix + words)
            self._prefix = ""
        if gap and self._lines and self._lines[-1]:
            self._lines.append("")
        self._line.clear()
        self._link = ""


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    """Return True if an element is invisible."""
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "")))
    )


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
    """Return True if an archive is a Word document."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return BODY_MEMBER in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def read_docx(data: bytes, limit: int) -> ParsedDocument:
    """Read a Word document; no archive member may unpack to more than `limit` bytes."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise TooLarge(f"The document archive has more than {MAX_MEMBERS:,} files.")
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
    """Unpack an archive member up to the limit, regardless of its declared size."""
    with archive.open(name) as member:
        data = member.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"{name} unpacks to more than {limit:,} bytes.", hint="Split the document.")
    return data


class _XmlParser:
    """Parses XML without a document type, so no entities are expanded or fetched."""

    def parse_xml(self, data: bytes) -> None:
        """Parse a document."""
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
                f"The document's XML is invalid: {error}.", hint="Save it again."
            ) from error

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""

    def end_element(self, name: str) -> None:
        """Handle the end of an element."""

    def add_text(self, data: str) -> None:
        """Handle text inside an element."""


def _refuse_doctype(*_: object) -> None:
    raise MediaError(
        "The document has a DOCTYPE declaration, which DOCX files never have.",
        hint="Save it again.",
    )


class _TitleParser(_XmlParser):
    """Finds the title in a document's properties."""

    def __init__(self) -> None:
        self._in_title = False
        self._title = ""

    def read_title(self, data: bytes) -> str:
        """Return the title, if any."""
        self.parse_xml(data)
        return self._title.strip()

    def start_element(self, name: str, _attributes: dict[str, str]) -> None:
        """Note whether a title starts."""
        self._in_title = name == _TITLE_ELEMENT

    def end_element(self, _name: str) -> None:
        """Note the end of a title."""
        self._in_title = False

    def add_text(self, data: str) -> None:
        """Collect the text of the title."""
        self._title += data if self._in_title else ""


def _get_heading_prefix(style: str) -> str:
    """Return the Markdown prefix of a heading style, or an empty string."""
    if level := _HEADING_STYLE.search(style):
        return "#" * int(level[1]) + " "
    return "# " if style.lower() == "title" else ""


class _BodyParser(_XmlParser):
    """Collects the paragraphs of a document; cells of a table row share a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._cells: list[str] | None = None
        self._runs: list[str] = []
        self._prefix = ""
        self._table_depth = 0
        self._in_text = False

    def read_text(self, data: bytes) -> str:
        """Return the text."""
        self.parse_xml(data)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of a paragraph, run, style or row."""
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
                self._prefix = _get_heading_prefix(value) or self._prefix
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
        """Handle the end of a paragraph, row or table."""
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
        """Collect the text of a run; other text is layout."""
        if self._in_text:
            self._runs.append(data)

    def _end_paragraph(self) -> None:
        text, prefix = "".join(self._runs).strip(), self._prefix
        self._runs, self._prefix = [], ""
        if self._cells:
            self._cells[-1] = f"{self._cells[-1]} {text}"
        elif text:
            self._lines += [f"{prefix}{text}"] if prefix == "- " else [f"{prefix}{text}", ""]
