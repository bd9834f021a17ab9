"""The names of the extractors, known before any of them is loaded."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from told.core.errors import ConfigError
from told.core.text import format_value

EXTRACTOR_NAMES: Final = (
    "verbatim",
    "local",
    "facts",
    "closed",
    "apertures",
    "exhaustive",
    "deep",
    "react",
    "graph",
)


def build_unknown_error(name: object) -> ConfigError:
    """What to say to a name that no extractor has."""
    close_matches = get_close_matches(name, EXTRACTOR_NAMES, 1) if isinstance(name, str) else []
    hint = (
        f"Did you mean {close_matches[0]!r}?"
        if close_matches
        else f"There are: {', '.join(EXTRACTOR_NAMES)}."
    )
    return ConfigError(f"There is no extractor {format_value(name)}.", hint=hint)
