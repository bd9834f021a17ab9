"""Words in a turn that are not its speaker's own: what stands in images, and what is quoted in blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from told.core.echo import Span
from told.core.lazy import regex

OWN: Final = "own"
"""The metadata of evidence that says how many of its characters the speaker said; the rest stood in images."""

READ, SEEN = "OCR text from", "Description of"
"""How the words under the heading of an image came about."""

MARK: Final = "image #"
"""What a text holds that has the words of an image in it, or the mark of one."""

_HEADING: Final = regex(rf"^[^\S\n]*\[(?:{READ}|{SEEN}) image #\d+\]", re.MULTILINE)
_QUOTED: Final = regex(
    r"^[^\S\n]*(?P<fence>```|~~~)(?![^\n]*(?P=fence)).*?(?:^[^\S\n]*(?P=fence)[^\S\n]*$|\Z)|^[^\S\n]*>[^\n]*",
    re.MULTILINE | re.DOTALL,
)


def heading(sort: str, number: int) -> str:
    """The line above the words of an image."""
    return f"[{sort} image #{number}]"


def pictured(text: str, meta: Mapping[str, Any]) -> int:
    """Where the words of images begin, as evidence says or as a heading shows; the end of the text if there are none.

    Whoever reads images before told sees them sends their words under told's own heading, in the same place: last.
    """
    own = meta.get(OWN)
    end = own if isinstance(own, int) and 0 <= own <= len(text) else len(text)
    found = _HEADING.search(text, 0, end) if MARK in text else None
    return found.start() if found else end


def is_pictured(text: str) -> bool:
    """Whether some words of a text stood in an image; a mark for an image that nobody read is none."""
    return MARK in text and _HEADING.search(text) is not None


def quoted(text: str) -> tuple[Span, ...]:
    """Where blocks stand that somebody else wrote: between fences, which the end closes too, and behind a `>`."""
    if ">" not in text and "```" not in text and "~~~" not in text:
        return ()
    return tuple(found.span() for found in _QUOTED.finditer(text))


def unquoted(text: str) -> str:
    """The text in the same length, blank where it is quoted."""
    return _QUOTED.sub(lambda found: " " * len(found[0]), text) if quoted(text) else text
