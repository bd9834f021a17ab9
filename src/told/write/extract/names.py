"""The names of the extractors, known before any of them is loaded."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from told.core.errors import ConfigError
from told.core.text import shown

NAMES: Final = ("verbatim", "local", "facts", "closed", "apertures", "exhaustive", "deep", "react", "graph")


def unknown(name: object) -> ConfigError:
    """What to say to a name that no extractor has."""
    near = get_close_matches(name, NAMES, 1) if isinstance(name, str) else []
    hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(NAMES)}."
    return ConfigError(f"There is no extractor {shown(name)}.", hint=hint)
