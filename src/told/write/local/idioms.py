"""Turns of phrase read as plain words, with the way back: "it says Ada on my passport" is "my name is Ada"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.core.lazy import cached_property, regex
from told.write.local.spelling import Reading, rewritten
from told.write.local.tables import pattern, sections, spelled

_SLOT: Final = regex(r"\{([xyn])\}")
_SLOTS: Final = {"x": "idioms.thing", "y": "idioms.thing", "n": "idioms.name"}


@dataclass(frozen=True)
class _Idiom:
    """A turn of phrase and the plain words it stands for; its pattern is compiled when it is first tried."""

    form: str
    plain: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What it looks like."""
        slots = _SLOT.sub(lambda slot: f"(?P<{slot[1]}><{_SLOTS[slot[1]]}>)", self.form)
        return re.compile(spelled(rf"(?<!\w){slots}(?!\w)"), re.IGNORECASE)

    def changes(self, text: str) -> list[tuple[int, int, str]]:
        """Where it stands in a text, and what it says there."""
        return [(*found.span(), self._said(found)) for found in self.pattern.finditer(text)]

    def _said(self, found: re.Match[str]) -> str:
        return _SLOT.sub(lambda slot: found[slot[1]], self.plain)


@cache
def _idioms() -> Mapping[str, tuple[_Idiom, ...]]:
    """The turns of phrase by the words one of which they need."""
    table: dict[str, list[_Idiom]] = defaultdict(list)
    for section, lead in (("before", ""), ("behind", "(?:<idioms.lead>)")):
        for row in sections("idioms.txt")[section]:
            keys, _, rest = row.partition(" | ")
            form, _, plain = rest.partition(" => ")
            for key in keys.split() if rest else ():
                table[key].append(_Idiom(f"{lead}{form}", plain))
    return {key: tuple(idioms) for key, idioms in table.items()}


def plainly(text: str) -> Reading:
    """The text with its turns of phrase in plain words."""
    table = _idioms()
    said = set(pattern("idioms.word").findall(text.lower()))
    tried = dict.fromkeys(idiom for key in said & table.keys() for idiom in table[key])
    changes: list[tuple[int, int, str]] = []
    for change in sorted(one for idiom in tried for one in idiom.changes(text)):
        if not changes or change[0] >= changes[-1][1]:
            changes.append(change)
    return rewritten(text, changes) if changes else Reading(text, text)
