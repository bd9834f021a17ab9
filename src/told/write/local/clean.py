"""A turn with everything blanked that is not the speaker's own plain speech: code, quotations, texts to work on.

Every step keeps the length, so that a span of the cleaned text is a span of the turn.
"""

from __future__ import annotations

import re
from typing import Final

from told.write.local.tables import pattern

_STRAIGHT: Final = str.maketrans("\u2018\u2019\u02bc`\u00a0\u2009\t", "''''   ")
_FOREIGN: Final = ("fenced", "inline", "quoted_line", "address", "task", "role_play", "made_up")
LONGEST: Final = 6000
"""How many characters of a turn are read; what is longer is a document, not somebody speaking of themselves."""


def plain_speech(text: str) -> str:
    """The text in the same length, blank where it is not the speaker's own statement."""
    text = text[:LONGEST]
    for name in _FOREIGN:
        text = pattern(f"clean.{name}").sub(_blank, text)
    text = pattern("clean.quotation").sub(_blank_if_speech, text)
    if "\n" in text:
        text = pattern("clean.code_line").sub(_blank, text)
    text = text.translate(_STRAIGHT)
    return pattern("clean.too").sub("to ", text)


def without_colons(text: str) -> str:
    """The text without the colons that only lead on: "I like: tea" is "I like tea"."""
    return pattern("clean.colon").sub(" ", text) if ":" in text else text


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"\S", " ", match[0])


def _blank_if_speech(match: re.Match[str]) -> str:
    """A quotation is blanked if somebody speaks in it; a quoted name loses only its marks."""
    inner = match[0][1:-1]
    if len(inner.split()) > 4 or pattern("clean.first_person").search(inner):
        return _blank(match)
    return f" {inner} "
