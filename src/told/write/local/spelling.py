"""Words written in haste put right before they are read: "im", "dont", "studing", "alergic"; with the way back.

Claims speak of what was read; their spans point into what was written, and their objects keep the words as written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from told.write.local.tables import pattern, relatives, sections, words

_SHORTEST: Final = 5
"""From how many letters on a word is known even with a slip in it; in the shortest only two may change places."""
_SHORTEST_VERB: Final = 8
_LISTS: Final = ("DIETS", "LANGUAGES", "OCCUPATIONS", "CONDITIONS", "STATES")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it is read; where each stretch that was put right stands in it, and where in what was written."""

    text: str
    written: str
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    sources: tuple[tuple[int, int], ...] = ()

    def start(self, position: int) -> int:
        """Where what begins here was begun in writing."""
        return self._back(position, 0)

    def end(self, position: int) -> int:
        """Where what ends here was ended in writing."""
        return self._back(position - 1, 1) if position else 0

    def _back(self, position: int, side: int) -> int:
        number = bisect_right(self.starts, position) - 1
        if number < 0:
            return position + side
        if position < self.ends[number]:
            return self.sources[number][side]
        return position - self.ends[number] + self.sources[number][1] + side

    def as_written(self, value: str, start: int, end: int) -> str:
        """A value with its words as they were written."""
        if not self.starts or value.lower() in self.written[start:end].lower():
            return value
        for first, last, source in zip(self.starts, self.ends, self.sources, strict=True):
            if start <= source[0] < end and not self.text[first].isspace():
                value = re.sub(rf"\b{re.escape(self.text[first:last])}\b", self.written[slice(*source)], value, count=1)
        return value


def respelled(text: str, *, hasty: bool = True) -> Reading:
    """The text with its gaps closed and hasty words put right, unless those are words of another language."""
    words = pattern("spelling.word" if hasty else "spelling.gap").finditer(text)
    pairs = ((word, word[0][0] if word[0].isspace() else _better(word[0])) for word in words)
    return rewritten(text, [(*word.span(), better) for word, better in pairs if better])


def rewritten(text: str, changes: Sequence[tuple[int, int, str]]) -> Reading:
    """The text with other words at some places, from one place to another each."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = length = 0
    for start, end, better in changes:
        parts += [text[at:start], better]
        starts.append(length + start - at)
        ends.append(starts[-1] + len(better))
        at, length = end, ends[-1]
    sources = tuple((start, end) for start, end, _ in changes)
    return Reading("".join([*parts, text[at:]]), text, tuple(starts), tuple(ends), sources)


@lru_cache(maxsize=8192)
def _better(word: str) -> str:
    """What a word was meant to be, nothing if it is well as it is."""
    low = word.lower()
    meant = _short().get(low) or (_meant(low) if len(low) >= _SHORTEST else "")
    if not meant and (possessive := pattern("spelling.possessive").fullmatch(low)):
        meant = f"{possessive['owner']}'s {possessive['noun']}"
    elif not meant and (whose := pattern("spelling.whose").fullmatch(low)):
        meant = f"{whose['owner']}'s"
    return f"{meant[0].upper()}{meant[1:]}" if meant and word[0].isupper() else meant


@cache
def _short() -> Mapping[str, str]:
    rows = (row.split() for row in sections("spelling.txt")["short"])
    return {word: meant.replace("_", " ") for word, meant in rows}


@cache
def _known() -> tuple[frozenset[str], Mapping[str, tuple[str, ...]]]:
    """The words that are right, and those that are looked for behind a slip, by their first letter and length."""
    table = sections("spelling.txt")
    sought = {word for row in table["known"] for word in row.split()}
    verbs = {form for row in sections("verbs.txt")["verbs"] for form in row.split() if len(form) >= _SHORTEST_VERB}
    nouns = {word for name in _LISTS for word in words(name)} | set(relatives())
    sought |= verbs | {word for word in nouns if len(word) > _SHORTEST + 1 and word.isalpha()}
    by_letter: dict[str, list[str]] = defaultdict(list)
    for word in sorted(sought):
        if len(word) >= _SHORTEST:
            by_letter[f"{word[0]}{len(word)}"].append(word)
    right = sought.union(*(row.split() for row in table["real"]))
    return frozenset(right), {key: tuple(each) for key, each in by_letter.items()}


def _meant(word: str) -> str:
    right, sought = _known()
    if word in right or not word.isalpha():
        return ""
    keys = (f"{word[0]}{len(word) + more}" for more in (0, 1, -1))
    return next((known for key in keys for known in sought.get(key, ()) if _is_slip(word, known)), "")


def _is_slip(word: str, known: str) -> bool:
    """Whether one letter inside is missing, too many or wrong, or two have changed places."""
    if word[-1] != known[-1]:
        return False
    least = min(len(word), len(known))
    before = next((i for i in range(least) if word[i] != known[i]), least)
    after = next((i for i in range(least - before) if word[-1 - i] != known[-1 - i]), least - before)
    if not after:
        return False
    if before + after >= max(len(word), len(known)) - 1 and len(known) > _SHORTEST:
        return True
    swapped = word[before : before + 2] == known[before : before + 2][::-1]
    return swapped and len(word) == len(known) == before + after + 2
