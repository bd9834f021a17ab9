"""A turn with everything blanked that is not the speaker's own plain speech: code, quotations, texts to work on.

Every step keeps the length, so that a span of the cleaned text is a span of the turn.
"""

from __future__ import annotations

import re
from typing import Final

from told.write.local.tables import get_pattern

_PUNCTUATION_TABLE: Final = str.maketrans("\u2018\u2019\u02bc`\u00a0\u2009\t", "''''   ")
_MASKED_PATTERNS: Final = (
    "fenced",
    "inline",
    "quoted_line",
    "address",
    "task",
    "role_play",
    "made_up",
)
MAX_TURN_CHARS: Final = 6000
"""How many characters of a turn are read; what is longer is a document, not somebody speaking of themselves."""


def mask_foreign_text(text: str) -> str:
    """The text in the same length, blank where it is not the speaker's own statement."""
    text = text[:MAX_TURN_CHARS]
    for name in _MASKED_PATTERNS:
        text = get_pattern(f"clean.{name}").sub(_blank_match, text)
    text = get_pattern("clean.quotation").sub(_blank_quoted_speech, text)
    if "\n" in text:
        text = get_pattern("clean.code_line").sub(_blank_match, text)
    text = text.translate(_PUNCTUATION_TABLE)
    return get_pattern("clean.too").sub("to ", text)


def strip_colons(text: str) -> str:
    """The text without the colons that only lead on: "I like: tea" is "I like tea"."""
    return get_pattern("clean.colon").sub(" ", text) if ":" in text else text


def _blank_match(match: re.Match[str]) -> str:
    return re.sub(r"\S", " ", match[0])


def _blank_quoted_speech(match: re.Match[str]) -> str:
    """A quotation is blanked if somebody speaks in it; a quoted name loses only its marks."""
    inner = match[0][1:-1]
    if len(inner.split()) > 4 or get_pattern("clean.first_person").search(inner):
        return _blank_match(match)
    return f" {inner} "
