"""Plain text and Markdown."""

from __future__ import annotations

import codecs
from typing import Final

from told.write.documents.document import Pages, headed

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
GUESSED: Final = "It is not UTF-8; it was read as Western European text, so some characters may be wrong."


def decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Bytes as text: by their byte order mark, else UTF-8, else as Western European with a warning."""
    name = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(name), ()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), (GUESSED,)


def plain(data: bytes, limit: int) -> Pages:  # noqa: ARG001 - text is no larger than its file
    """Plain text, as it is."""
    text, warnings = decoded(data)
    return Pages(text, warnings=warnings)


def markdown(data: bytes, limit: int) -> Pages:  # noqa: ARG001
    """Markdown, as it is, with its sections."""
    text, warnings = decoded(data)
    return Pages(text, sections=headed(text), warnings=warnings)
