"""From a file of whatever format to a document: the bytes decide what it is, then its type, then its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from told.core.errors import MediaError, TooLarge, Unsupported
from told.core.ids import tagged
from told.core.lazy import regex
from told.core.text import snippet, storable
from told.settings import Settings
from told.write.documents.document import Document, Pages, first_title
from told.write.documents.html import html
from told.write.documents.pdf import pdf
from told.write.documents.plain import markdown, plain
from told.write.documents.word import is_word, word

PDF, DOCX = "application/pdf", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SUFFIXES: Final[Mapping[str, str]] = {
    ".txt": "text/plain", ".text": "text/plain", ".log": "text/plain", ".rst": "text/plain", ".csv": "text/plain",
    ".tsv": "text/plain", ".json": "text/plain", ".jsonl": "text/plain", ".yaml": "text/plain", ".yml": "text/plain",
    ".toml": "text/plain", ".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html",
    ".htm": "text/html", ".xhtml": "text/html", ".pdf": PDF, ".docx": DOCX,
}  # fmt: skip
"""The type of a file by the end of its name; what is not listed is looked at."""

ACCEPTED: Final = (
    "text/", "image/", PDF, DOCX, "application/xhtml+xml", "application/json", "application/octet-stream",
)  # fmt: skip
"""How the types begin that a URL may give."""

TITLE_LIMIT: Final = 256
_PAGE: Final = regex(rb"\s*(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE | re.DOTALL)
HINT: Final = "Text, Markdown, HTML, PDF and DOCX are read; so are images."


def read_document(
    content: Path | bytes, name: str = "", media_type: str = "", *, settings: Settings | None = None
) -> Document:
    """The document in a file or in bytes; a name or a type helps where the bytes do not say what they are."""
    settings = settings or Settings()
    data = file_bytes(content, settings.document_limit) if isinstance(content, Path) else bytes(content)
    name = name or (content.name if isinstance(content, Path) else "")
    if len(data) > settings.document_limit:
        raise _too_large(len(data), settings.document_limit)
    kind = sort_of(data, name, media_type)
    found = _readers(settings)[kind](data, settings.document_limit)
    if len(found.text) > settings.document_text:
        raise TooLarge(f"The document has {len(found.text):,} characters; at most {settings.document_text:,} are kept.",
                       hint="Split it, or raise document_text.")  # fmt: skip
    return document(found, data, kind, name)


def document(found: Pages, data: bytes, kind: str, name: str) -> Document:
    """A document out of what its reader found; without a title of its own it has that of its file."""
    title = snippet(storable(found.title or first_title(found.sections)), TITLE_LIMIT) or name or "document"
    text = storable(found.text)
    sections = found.sections if text == found.text else ()  # what was taken out has moved the rest
    return Document(title, text, sections, kind, tagged(data), found.warnings)


def file_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a plain file that is not too large."""
    try:
        if path.is_dir():
            hint = "`told blob sync FOLDER` remembers every document in a folder."
            raise MediaError(f"{snippet(str(path), 200)} is a folder.", hint=hint)
        if not path.is_file():
            raise MediaError(f"There is no file {snippet(str(path), 200)}.", hint="Check the path.")
        if path.stat().st_size > limit:
            raise _too_large(path.stat().st_size, limit)
        with path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise MediaError(f"{snippet(str(path), 200)} cannot be read: {error.strerror}.") from error


def sort_of(data: bytes, name: str, media_type: str) -> str:
    """The type of a document: what its first bytes say, else what it was called."""
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return PDF
    if data.startswith(b"PK\x03\x04"):
        if is_word(data):
            return DOCX
        raise Unsupported(f"{name or 'This'} is an archive, but no DOCX document.", hint=HINT)
    given = media_type.partition(";")[0].strip().lower()
    named = SUFFIXES.get(PurePosixPath(name.lower()).suffix, "")
    kind = given if given in set(SUFFIXES.values()) else "text/html" if given == "application/xhtml+xml" else named
    if kind in (PDF, DOCX) or (b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))):
        what = f"{name} is" if name else "It is"
        raise Unsupported(f"{what} no document that can be read here.", hint=HINT)
    return kind or ("text/html" if _PAGE.match(data[:4096]) else "text/plain")


def _readers(settings: Settings) -> Mapping[str, Callable[[bytes, int], Pages]]:
    return {
        "text/plain": plain, "text/markdown": markdown, "text/html": html, DOCX: word,
        PDF: partial(pdf, timeout=settings.read_timeout),
    }  # fmt: skip


def _too_large(size: int, limit: int) -> TooLarge:
    return TooLarge(f"The document has {size:,} bytes; at most {limit:,} are accepted.",
                    hint="Split it, or raise document_limit.")  # fmt: skip
