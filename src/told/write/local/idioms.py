"""Turns of phrase read as plain words: "it says Dorothea on my passport" is "my name is Dorothea"; with the way back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.write.local.spelling import Reading, rewritten
from told.write.local.tables import pattern, sections, spelled

_SLOT: Final = re.compile(r"\{([xyn])\}")
_SLOTS: Final = {"x": "idioms.thing", "y": "idioms.thing", "n": "idioms.name"}


@dataclass(frozen=True, slots=True)
class _Idioms:
    """Turns of phrase in one pattern, and the plain words of each by the name of its group."""

    pattern: re.Pattern[str]
    plain: dict[str, str]

    def plainly(self, found: re.Match[str]) -> str:
        """What a turn of phrase says."""
        number = found.lastgroup or ""
        return _SLOT.sub(lambda slot: found[f"{slot[1]}{number}"], self.plain[number])


@cache
def _idioms(*, behind: bool) -> _Idioms:
    lead = pattern("idioms.lead").pattern
    rows = [("", row) for row in sections("idioms.txt")["before"] if not row.startswith("#")]
    rows += [(f"(?:{lead})", row) for row in sections("idioms.txt")["behind"] if behind]
    pairs = [(at, *row.partition(" => ")[::2]) for at, row in rows]
    forms = (f"{at}(?P<i{number}>{_numbered(form, number)})" for number, (at, form, _) in enumerate(pairs))
    whole = re.compile(rf"\b(?:{'|'.join(map(spelled, forms))})(?!\w)", re.IGNORECASE)
    return _Idioms(whole, {f"i{number}": plain for number, (_, _, plain) in enumerate(pairs)})


def _numbered(form: str, number: int) -> str:
    """A row with its slots as groups of its own."""
    return _SLOT.sub(lambda slot: f"(?P<{slot[1]}i{number}><{_SLOTS[slot[1]]}>)", form)


def plainly(text: str) -> Reading:
    """The text with its turns of phrase in plain words."""
    idioms = _idioms(behind=pattern("idioms.likely").search(text) is not None)
    found = list(idioms.pattern.finditer(text))
    if not found:
        return Reading(text, text)
    return rewritten(text, [(*one.span(), idioms.plainly(one)) for one in found])
