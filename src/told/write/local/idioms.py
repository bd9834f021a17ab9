"""Turns of phrase read as plain words, with the way back: "it says Ada on my passport" is "my name is Ada"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.core.lazy import cached_property, lazy_regex
from told.write.local.spelling import RewrittenText, apply_changes
from told.write.local.tables import expand_macros, get_pattern, load_sections

_SLOT: Final = lazy_regex(r"\{([xyn])\}")
_SLOT_PATTERNS: Final = {"x": "idioms.thing", "y": "idioms.thing", "n": "idioms.name"}


@dataclass(frozen=True)
class _Idiom:
    """A turn of phrase and the plain words it stands for; its pattern is compiled when it is first tried."""

    template: str
    replacement: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What it looks like."""
        slots = _SLOT.sub(lambda slot: f"(?P<{slot[1]}><{_SLOT_PATTERNS[slot[1]]}>)", self.template)
        return re.compile(expand_macros(rf"(?<!\w){slots}(?!\w)"), re.IGNORECASE)

    def find_changes(self, text: str) -> list[tuple[int, int, str]]:
        """Where it stands in a text, and what it says there."""
        return [(*match.span(), self._render(match)) for match in self.pattern.finditer(text)]

    def _render(self, match: re.Match[str]) -> str:
        return _SLOT.sub(lambda slot: match[slot[1]], self.replacement)


@cache
def _load_idioms() -> Mapping[str, tuple[_Idiom, ...]]:
    """The turns of phrase by the words one of which they need."""
    table: dict[str, list[_Idiom]] = defaultdict(list)
    for section, lead in (("before", ""), ("behind", "(?:<idioms.lead>)")):
        for row in load_sections("idioms.txt")[section]:
            keys, _, rest = row.partition(" | ")
            template, _, replacement = rest.partition(" => ")
            for key in keys.split() if rest else ():
                table[key].append(_Idiom(f"{lead}{template}", replacement))
    return {key: tuple(idioms) for key, idioms in table.items()}


def rewrite_idioms(text: str) -> RewrittenText:
    """The text with its turns of phrase in plain words."""
    table = _load_idioms()
    text_words = set(get_pattern("idioms.word").findall(text.lower()))
    candidates = dict.fromkeys(idiom for key in text_words & table.keys() for idiom in table[key])
    changes: list[tuple[int, int, str]] = []
    for change in sorted(
        candidate_change for idiom in candidates for candidate_change in idiom.find_changes(text)
    ):
        if not changes or change[0] >= changes[-1][1]:
            changes.append(change)
    return apply_changes(text, changes) if changes else RewrittenText(text, text)
