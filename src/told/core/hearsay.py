"""Words in a turn that are not its speaker's own: what stands in images, and what is quoted in blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from told.core.echo import Span
from told.core.lazy import lazy_regex

OWN_CHARS_KEY: Final = "own"
"""The metadata of evidence that says how many of its characters the speaker said; the rest stood in images."""

OCR_SOURCE, DESCRIPTION_SOURCE = "OCR text from", "Description of"
"""How the words under the heading of an image came about."""

IMAGE_MARK: Final = "image #"
"""What a text holds that has the words of an image in it, or the mark of one."""

_IMAGE_HEADING: Final = lazy_regex(
    rf"^[^\S\n]*\[(?:{OCR_SOURCE}|{DESCRIPTION_SOURCE}) image #\d+\]", re.MULTILINE
)
_QUOTED_BLOCK: Final = lazy_regex(
    r"^[^\S\n]*(?P<fence>```|~~~)(?![^\n]*(?P=fence)).*?(?:^[^\S\n]*(?P=fence)[^\S\n]*$|\Z)|^[^\S\n]*>[^\n]*",
    re.MULTILINE | re.DOTALL,
)


def format_image_heading(source: str, number: int) -> str:
    """The line above the words of an image."""
    return f"[{source} image #{number}]"


def find_image_text_start(text: str, meta: Mapping[str, Any]) -> int:
    """Where the words of images begin, as evidence says or as a heading shows; the end of the text if there are none.

    Whoever reads images before told sees them sends their words under told's own heading, in the same place: last.
    """
    own_chars = meta.get(OWN_CHARS_KEY)
    end = own_chars if isinstance(own_chars, int) and 0 <= own_chars <= len(text) else len(text)
    match = _IMAGE_HEADING.search(text, 0, end) if IMAGE_MARK in text else None
    return match.start() if match else end


def has_image_text(text: str) -> bool:
    """Whether some words of a text stood in an image; a mark for an image that nobody read is none."""
    return IMAGE_MARK in text and _IMAGE_HEADING.search(text) is not None


def find_quoted_spans(text: str) -> tuple[Span, ...]:
    """Where blocks stand that somebody else wrote: between fences, which the end closes too, and behind a `>`."""
    if ">" not in text and "```" not in text and "~~~" not in text:
        return ()
    return tuple(match.span() for match in _QUOTED_BLOCK.finditer(text))


def blank_quoted_spans(text: str) -> str:
    """The text in the same length, blank where it is quoted."""
    return (
        _QUOTED_BLOCK.sub(lambda match: " " * len(match[0]), text)
        if find_quoted_spans(text)
        else text
    )
