"""Words as they are compared when a claim is held against what was said: numbers exactly, the others by likeness."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Final

from told.core import almanac
from told.core.lazy import regex
from told.core.predicates import TABLE
from told.core.stem import stem
from told.core.text import STOP_WORDS

_TOKEN: Final = regex(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*|[^\W_]+")
_POSSESSIVE: Final = regex("['\u2019]s?$")
_DIGITS: Final = regex(r"\d+(?:[.,]\d+)*")
_YEAR: Final = regex(r"(?:1[89]|20)\d\d")
_ROOT: Final = 5
_ENDING: Final = 4
_SAME: Final = {"kid": "child", "mom": "mother", "mum": "mother", "dad": "father", "hubby": "husband"}
_AGE: Final = frozenset(("year", "yr", "old", "age"))
_VERBS: Final = "loves enjoys hates moved called named said feels thinks".split()
_COLOURLESS: Final = frozenset(stem(word) for name in (*TABLE, *_VERBS) for word in name.split("_"))


class Sort(Enum):
    """How a word is compared."""

    WORD = "word"
    NAME = "name"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Word:
    """A word, where it stands, and the forms it is compared in: itself, its root, and the number it says, if any."""

    start: int
    end: int
    form: str
    root: str
    value: str | None = None
    capital: bool = False


@dataclass(frozen=True, slots=True)
class Needle:
    """A word to look for, and how."""

    word: Word
    sort: Sort


def words(text: str) -> list[Word]:
    """The words of a text in order."""
    return [_word(text, match.start(), match.end()) for match in _TOKEN.finditer(text)]


def _word(text: str, start: int, end: int) -> Word:
    said = text[start:end]
    plain = almanac.plain(said) or said
    form = _POSSESSIVE.sub("", plain) or plain
    root = stem(form)
    return Word(start, end, form, _SAME.get(root, root), number(form), said[0].isupper())


@lru_cache(maxsize=1 << 12)
def number(form: str) -> str | None:
    """The number a word says, in digits: "1,200", "1200" and "three" alike; articles are no numbers."""
    if _DIGITS.fullmatch(form):
        plain = re.sub(r",(?=\d{3}\b)", "", form).replace(",", ".")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"
    if form in STOP_WORDS or len(form) < 3:
        return None
    said = almanac.NUMBERS.get(form)
    return None if said is None else str(said)


def needles(text: str, *, but: Collection[str] = (), sentence: bool = False) -> list[Needle]:
    """The words of a text that tell something, without those that are left out and the stop-words.

    In a `sentence` the first word is no name only because it begins with a capital letter, and the verbs that most
    sentences have tell nothing: whoever likes trains did not say so of aeroplanes.
    """
    found = words(text)
    dated = any(_is_date(word) for word in found)
    plain = [word for word in found if word.form not in but and word.form not in STOP_WORDS]
    pale = (_COLOURLESS | _AGE) if sentence else _AGE
    telling = [word for word in plain if word.root not in pale] or plain or found
    return [Needle(word, _sort(word, sentence and word.start == 0, dated)) for word in telling]


def _sort(word: Word, leading: bool, dated: bool) -> Sort:
    value = word.value
    if dated and (_is_date(word) or (value is not None and value.isdecimal() and int(value) <= 31)):
        return Sort.DATE
    if value is not None:
        return Sort.NUMBER
    return Sort.NAME if word.capital and not leading else Sort.WORD


def _is_date(word: Word) -> bool:
    return _YEAR.fullmatch(word.form) is not None or (word.capital and word.form in almanac.NAMES)


def alike(needle: Needle, word: Word) -> bool:
    """Whether a word is what was looked for."""
    sought = needle.word
    if sought.form == word.form:
        return True
    if needle.sort in (Sort.NUMBER, Sort.DATE):
        return sought.value is not None and sought.value == word.value
    if word.value is not None or sought.value is not None:
        return False
    if sought.root == word.root or near(sought.form, word.form, slack(sought.form)):
        return True
    return needle.sort is Sort.WORD and _one_root(sought.root, word.root)


def slack(form: str) -> int:
    """How many letters of a word may be wrong: none of a short one, two of a long one."""
    return 0 if len(form) < 5 else 1 if len(form) < 9 else 2


def _one_root(one: str, other: str) -> bool:
    """Whether two words begin alike and only their endings differ: "allergic" and "allergy"."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= _ROOT and max(len(one), len(other)) - shared <= _ENDING


@lru_cache(maxsize=1 << 14)
def near(one: str, other: str, most: int) -> bool:
    """Whether one word becomes the other by at most so many letters added, left out, changed or swapped."""
    if abs(len(one) - len(other)) > most:
        return False
    if not most:
        return one == other
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            best = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, last[j - 2] + 1)
            row.append(best)
        if min(row) > most:
            return False
    return row[-1] <= most


def initials(sought: list[Needle]) -> list[str]:
    """For every needle how the names in a row it belongs to are written in short: "sf" for both of San Francisco."""
    short: list[str] = []
    for is_name, run in groupby(sought, key=lambda needle: needle.sort is Sort.NAME):
        letters = [needle.word.form[0] for needle in run]
        short += ["".join(letters) if is_name and len(letters) > 1 else ""] * len(letters)
    return short
