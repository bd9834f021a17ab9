"""Plain text and Markdown."""

from __future__ import annotations

import codecs
from typing import Final

from told.write.documents.document import ParsedDocument, split_sections

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
GUESSED_ENCODING_WARNING: Final = (
    "It is not UTF-8; it was read as Western European text, so some characters may be wrong."
)


def decode_text(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Bytes as text: by their byte order mark, else UTF-8, else as Western European with a warning."""
    codec = next(
        (encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8"
    )
    try:
        return data.decode(codec), ()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), (GUESSED_ENCODING_WARNING,)


def read_plain(data: bytes, limit: int) -> ParsedDocument:
    """Plain text, as it is."""
    text, warnings = decode_text(data)
    return ParsedDocument(text, warnings=warnings)


def read_markdown(data: bytes, limit: int) -> ParsedDocument:
    """Markdown, as it is, with its sections."""
    text, warnings = decode_text(data)
    return ParsedDocument(text, sections=split_sections(text), warnings=warnings)
