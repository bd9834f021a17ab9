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

from told.core.lazy import regex
from told.write.documents.document import Pages, headed
from told.write.documents.plain import decoded

SKIPPED: Final = frozenset(
    "script style nav template noscript iframe object svg math canvas audio video button select textarea dialog".split()
)
EMPTY: Final = frozenset("area base br col embed hr img input link meta source track wbr".split())
RAW: Final = frozenset("script style textarea title iframe noscript".split())
UNENDED: Final = frozenset("p li dd dt td th tr".split())
HEADINGS: Final = frozenset("h1 h2 h3 h4 h5 h6".split())
ITEMS: Final = frozenset("li tr dd dt".split())
BLOCKS: Final = HEADINGS | ITEMS | frozenset(
    "address article aside blockquote body caption details div dl fieldset figcaption figure footer form header "
    "hr html main ol p pre section summary table tbody tfoot thead ul".split()
)  # fmt: skip
FOLLOWED: Final = ("http://", "https://", "mailto:")
_HIDDEN: Final = regex(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?![.\d])", re.IGNORECASE
)
_CHARSET: Final = regex(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{2,20})", re.IGNORECASE)
_BEGUN: Final = regex(r"</?[a-zA-Z]")
_TAG: Final = regex(r"<(/?)([a-zA-Z][^\s/>]*+)((?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*)>")
_GIVEN: Final = regex(r"([^\s\"'>/=]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++)))?")


def html(data: bytes, limit: int) -> Pages:  # noqa: ARG001 - the text of a page is no larger than the page
    """What a reader of the page would see."""
    source, warnings = _source(data)
    reader = _Reader()
    for token in tokens(source):
        reader.take(token)
    said = reader.said()
    return Pages(said, reader.title.strip(), headed(said), warnings)


def _source(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The source of a page, in the encoding it names if there is such a one."""
    named = _CHARSET.search(data[:4096])
    if named is not None and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode(named[1].decode("ascii")), ()
        except (LookupError, UnicodeDecodeError, ValueError):
            pass
    return decoded(data)


# Tags and text --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag, opening or closing, with what it was given."""

    name: str
    closing: bool
    given: Mapping[str, str]


def tokens(source: str) -> Iterator[Tag | str]:
    """The tags of a page and the text between them; what is begun and never ended reaches to the end of the page."""
    at = 0
    while (begin := source.find("<", at)) >= 0:
        if begin > at:
            yield unescape(source[at:begin])
        if source.startswith("<!--", begin):
            at = _after(source, "-->", begin + 4)
        elif source.startswith(("<!", "<?"), begin):
            at = _after(source, ">", begin)
        elif (tag := _TAG.match(source, begin)) is not None:
            yield (found := Tag(tag[2].lower(), bool(tag[1]), _given(tag[3])))
            at = tag.end()
            if found.name in RAW and not found.closing:
                end = re.compile(rf"</{re.escape(found.name)}(?=[\s/>])", re.IGNORECASE).search(source, at)
                stop = len(source) if end is None else end.start()
                yield unescape(source[at:stop])
                at = stop
        elif _BEGUN.match(source, begin):
            return
        else:
            yield "<"
            at = begin + 1
    yield unescape(source[at:])


def _after(source: str, mark: str, start: int) -> int:
    found = source.find(mark, start)
    return len(source) if found < 0 else found + len(mark)


def _given(text: str) -> dict[str, str]:
    found = ((name, double or single or bare) for name, double, single, bare in _GIVEN.findall(text))
    return {name.lower(): unescape(value) for name, value in found}


# Lines ----------------------------------------------------------------------------------------------------------------


class _Reader:
    """Gathers the lines of a page."""

    def __init__(self) -> None:
        self.title = ""
        self._lines: list[str] = []
        self._line: list[str] = []
        self._mark = ""
        self._hiding, self._depth = "", 0
        self._link, self._since = "", 0
        self._verbatim = False
        self._in_title = False

    def said(self) -> str:
        """The lines so far, with one empty line between blocks at most."""
        self._end()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def take(self, token: Tag | str) -> None:
        """The next tag or text of the page."""
        if isinstance(token, str):
            self._words(token)
        elif self._hiding:
            self._unseen(token)
        elif token.closing:
            self._closed(token.name)
        else:
            self._opened(token)

    def _words(self, text: str) -> None:
        """Words: of the title, of the page, or of nothing that is shown."""
        if self._in_title:
            self.title = self.title or text
        elif not self._hiding:
            self._line.append(text if self._verbatim else re.sub(r"\s+", " ", text))

    def _unseen(self, tag: Tag) -> None:
        """A tag inside what is hidden, which ends with its own tag, or where a paragraph or a cell ends by itself."""
        same = tag.name == self._hiding
        if self._hiding in UNENDED and not (same and tag.closing) and (same or tag.name in BLOCKS):
            self._hiding = ""
            self.take(tag)
        elif same:
            self._depth += -1 if tag.closing else 1
            self._hiding = self._hiding if self._depth else ""

    def _opened(self, tag: Tag) -> None:
        """A tag opens: it may hide what is in it, begin a block, or mark the line."""
        name, given = tag.name, tag.given
        self._in_title = name == "title"
        if name not in EMPTY and (name in SKIPPED or _is_hidden(given)):
            self._hiding, self._depth = name, 1
            return
        if name in BLOCKS or name == "br":
            self._end(gap=name in BLOCKS and name not in ITEMS)
        if name in HEADINGS:
            self._mark = "#" * int(name[1]) + " "
        elif name == "li":
            self._mark = "- "
        elif name in ("td", "th") and self._line:
            self._line.append(" | ")
        elif name == "a":
            self._link, self._since = given.get("href", ""), len(self._line)
        elif name == "img" and (said := given.get("alt", "").strip()):
            self._line.append(f"[image: {said}]")
        self._verbatim = self._verbatim or name == "pre"

    def _closed(self, name: str) -> None:
        """A tag closes: a link says where it leads, a block ends."""
        self._in_title = False
        if name == "a" and self._link:
            words = "".join(self._line[self._since :]).strip()
            if words and self._link != words and self._link.lower().startswith(FOLLOWED):
                self._line.append(f" ({self._link})")
            self._link = ""
        if name in BLOCKS:
            self._end(gap=name not in ITEMS)
        self._verbatim = self._verbatim and name != "pre"

    def _end(self, *, gap: bool = False) -> None:
        """The line is over; a block leaves an empty one behind it."""
        words = "".join(self._line)
        words = words.strip("\n") if self._verbatim else re.sub(r" {2,}", " ", words).strip()
        if words:
            self._lines.append(self._mark + words)
            self._mark = ""
        if gap and self._lines and self._lines[-1]:
            self._lines.append("")
        self._line.clear()
        self._link = ""


def _is_hidden(given: Mapping[str, str]) -> bool:
    """Whether whoever looks at the page would not see it."""
    return "hidden" in given or given.get("aria-hidden") == "true" or bool(_HIDDEN.search(given.get("style", "")))
