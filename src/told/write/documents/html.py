"""HTML as text: headings, lists, tables and links stay readable; scripts, menus and what is hidden are left out.

The page is cut into tags and text here and not by `html.parser`, which takes hours over some pages of a megabyte that
are made for it. Every character is looked at once, whatever the page does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Final

from told.core.lazy import lazy_regex
from told.write.documents.document import ParsedDocument, split_sections
from told.write.documents.plain import decode_text

SKIPPED_TAGS: Final = frozenset(
    "script style nav template noscript iframe object svg math canvas audio video button select textarea dialog".split()
)
VOID_TAGS: Final = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()
)
RAW_TEXT_TAGS: Final = frozenset("script style textarea title iframe noscript".split())
OPTIONAL_END_TAGS: Final = frozenset("p li dd dt td th tr".split())
HEADING_TAGS: Final = frozenset("h1 h2 h3 h4 h5 h6".split())
ITEM_TAGS: Final = frozenset("li tr dd dt".split())
BLOCK_TAGS: Final = HEADING_TAGS | ITEM_TAGS | frozenset(
    "address article aside blockquote body caption details div dl fieldset figcaption figure footer form header "
    "hr html main ol p pre section summary table tbody tfoot thead ul".split()
)  # fmt: skip
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


def read_html(data: bytes, limit: int) -> ParsedDocument:
    """What a reader of the page would see."""
    source, warnings = _decode_html(data)
    builder = _HtmlTextBuilder()
    for token in tokenize_html(source):
        builder.feed(token)
    text = builder.build_text()
    return ParsedDocument(text, builder.title.strip(), split_sections(text), warnings)


def _decode_html(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The source of a page, in the encoding it names if there is such a one."""
    charset = _CHARSET.search(data[:4096])
    if charset is not None and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode(charset[1].decode("ascii")), ()
        except (LookupError, UnicodeDecodeError, ValueError):
            pass
    return decode_text(data)


# Tags and text --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HtmlTag:
    """A tag, opening or closing, with what it was given."""

    name: str
    is_closing: bool
    attributes: Mapping[str, str]


def tokenize_html(source: str) -> Iterator[HtmlTag | str]:
    """The tags of a page and the text between them; what is begun and never ended reaches to the end of the page."""
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


# Lines ----------------------------------------------------------------------------------------------------------------


class _HtmlTextBuilder:
    """Gathers the lines of a page."""

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
        """The lines so far, with one empty line between blocks at most."""
        self._end_line()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def feed(self, token: HtmlTag | str) -> None:
        """The next tag or text of the page."""
        if isinstance(token, str):
            self._add_text(token)
        elif self._hidden_tag:
            self._skip_hidden(token)
        elif token.is_closing:
            self._close_tag(token.name)
        else:
            self._open_tag(token)

    def _add_text(self, text: str) -> None:
        """Words: of the title, of the page, or of nothing that is shown."""
        if self._in_title:
            self.title = self.title or text
        elif not self._hidden_tag:
            self._line.append(text if self._verbatim else re.sub(r"\s+", " ", text))

    def _skip_hidden(self, tag: HtmlTag) -> None:
        """A tag inside what is hidden, which ends with its own tag, or where a paragraph or a cell ends by itself."""
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
        """A tag opens: it may hide what is in it, begin a block, or mark the line."""
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
        """A tag closes: a link says where it leads, a block ends."""
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
        """The line is over; a block leaves an empty one behind it."""
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
    """Whether whoever looks at the page would not see it."""
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "")))
    )
