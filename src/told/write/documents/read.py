"""From a file of whatever format to a document: the bytes decide what it is, then its type, then its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from told.core.errors import MediaError, TooLarge, Unsupported
from told.core.ids import hash_content
from told.core.lazy import lazy_regex
from told.core.text import make_snippet, strip_unstorable
from told.settings import Settings
from told.write.documents.document import Document, ParsedDocument, find_first_title
from told.write.documents.html import read_html
from told.write.documents.pdf import read_pdf
from told.write.documents.plain import read_markdown, read_plain
from told.write.documents.word import is_docx, read_docx

PDF, DOCX = (
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
)
MEDIA_TYPES_BY_SUFFIX: Final[Mapping[str, str]] = {
    ".txt": "text/plain", ".text": "text/plain", ".log": "text/plain", ".rst": "text/plain", ".csv": "text/plain",
    ".tsv": "text/plain", ".json": "text/plain", ".jsonl": "text/plain", ".yaml": "text/plain", ".yml": "text/plain",
    ".toml": "text/plain", ".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html",
    ".htm": "text/html", ".xhtml": "text/html", ".pdf": PDF, ".docx": DOCX,
}  # fmt: skip
"""The type of a file by the end of its name; what is not listed is looked at."""

ACCEPTED_TYPES: Final = (
    "text/", "image/", PDF, DOCX, "application/xhtml+xml", "application/json", "application/octet-stream",
)  # fmt: skip
"""How the types begin that a URL may give."""

TITLE_LIMIT: Final = 256
_HTML_START: Final = lazy_regex(
    rb"\s*(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE | re.DOTALL
)
SUPPORTED_HINT: Final = "Text, Markdown, HTML, PDF and DOCX are read; so are images."


def read_document(
    content: Path | bytes, name: str = "", media_type: str = "", *, settings: Settings | None = None
) -> Document:
    """The document in a file or in bytes; a name or a type helps where the bytes do not say what they are."""
    settings = settings or Settings()
    data = (
        read_file_bytes(content, settings.document_limit)
        if isinstance(content, Path)
        else bytes(content)
    )
    name = name or (content.name if isinstance(content, Path) else "")
    if len(data) > settings.document_limit:
        raise _make_too_large_error(len(data), settings.document_limit)
    kind = detect_media_type(data, name, media_type)
    parsed = _list_readers(settings)[kind](data, settings.document_limit)
    if len(parsed.text) > settings.document_text:
        raise TooLarge(
            f"The document has {len(parsed.text):,} characters; at most {settings.document_text:,} are kept.",
            hint="Split it, or raise document_text.",
        )
    return build_document(parsed, data, kind, name)


def build_document(parsed: ParsedDocument, data: bytes, kind: str, name: str) -> Document:
    """A document out of what its reader found; without a title of its own it has that of its file."""
    title = (
        make_snippet(
            strip_unstorable(parsed.title or find_first_title(parsed.sections)), TITLE_LIMIT
        )
        or name
        or "document"
    )
    text = strip_unstorable(parsed.text)
    sections = (
        parsed.sections if text == parsed.text else ()
    )  # what was taken out has moved the rest
    return Document(title, text, sections, kind, hash_content(data), parsed.warnings)


def read_file_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a plain file that is not too large."""
    try:
        if path.is_dir():
            hint = "`told blob sync FOLDER` remembers every document in a folder."
            raise MediaError(f"{make_snippet(str(path), 200)} is a folder.", hint=hint)
        if not path.is_file():
            raise MediaError(
                f"There is no file {make_snippet(str(path), 200)}.", hint="Check the path."
            )
        if path.stat().st_size > limit:
            raise _make_too_large_error(path.stat().st_size, limit)
        with path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise MediaError(
            f"{make_snippet(str(path), 200)} cannot be read: {error.strerror}."
        ) from error


def detect_media_type(data: bytes, name: str, media_type: str) -> str:
    """The type of a document: what its first bytes say, else what it was called."""
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return PDF
    if data.startswith(b"PK\x03\x04"):
        if is_docx(data):
            return DOCX
        raise Unsupported(
            f"{name or 'This'} is an archive, but no DOCX document.", hint=SUPPORTED_HINT
        )
    given_type = media_type.partition(";")[0].strip().lower()
    named_type = MEDIA_TYPES_BY_SUFFIX.get(PurePosixPath(name.lower()).suffix, "")
    kind = (
        given_type
        if given_type in set(MEDIA_TYPES_BY_SUFFIX.values())
        else "text/html"
        if given_type == "application/xhtml+xml"
        else named_type
    )
    if kind in (PDF, DOCX) or (
        b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
    ):
        subject = f"{name} is" if name else "It is"
        raise Unsupported(f"{subject} no document that can be read here.", hint=SUPPORTED_HINT)
    return kind or ("text/html" if _HTML_START.match(data[:4096]) else "text/plain")


def _list_readers(settings: Settings) -> Mapping[str, Callable[[bytes, int], ParsedDocument]]:
    return {
        "text/plain": read_plain,
        "text/markdown": read_markdown,
        "text/html": read_html,
        DOCX: read_docx,
        PDF: partial(read_pdf, timeout=settings.read_timeout),
    }


def _make_too_large_error(size: int, limit: int) -> TooLarge:
    return TooLarge(
        f"The document has {size:,} bytes; at most {limit:,} are accepted.",
        hint="Split it, or raise document_limit.",
    )
