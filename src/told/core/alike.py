"""How two wordings bear on each other: the same, one saying more than the other, or something else.

Nothing here guesses at meaning: it looks at words, in order, without case, articles and endings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import Final

from told.core.lazy import regex
from told.core.stem import stem

_TOKEN: Final = regex(r"[^\W_]+(?:[-'.@&][^\W_]+)*(?:\+\+|#)?|[,;:(]")
_WORD: Final = regex(r"[^\W_]+(?:['.-][^\W_]+)*")
_DIGIT: Final = regex(r"\d")
_FIGURE: Final = regex(r"\d+")
_ARTICLES: Final = frozenset("a an the my his her their our your its".split())
_BREAK: Final = ","
_BREAKS: Final = frozenset(",;:(")
_JOINTS: Final = frozenset(
    (_BREAK, *"named called with who that which in at from for of as on and since because when near by".split())
)
"""Words after which somebody says more about what they have just said."""
_ANOTHER: Final = frozenset("another second third other new next more also too two three four".split())
"""Words that speak of something beside what was spoken of before."""
SLUG_EDITS: Final = 2
SLUG_LIKENESS: Final = 0.9


class Likeness(Enum):
    """What a new wording is to an old one."""

    SAME = "same"
    MORE = "more"
    LESS = "less"
    OTHER = "other"


@lru_cache(maxsize=1 << 13)
def _tokens(text: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    found = [_BREAK if part in _BREAKS else part for part in _TOKEN.findall(folded)]
    bare = [part.removesuffix("'s") for part in found if part not in _ARTICLES]
    while bare and bare[-1] == _BREAK:
        bare.pop()
    return tuple(bare or found)


@lru_cache(maxsize=1 << 13)
def words(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared: folded, stemmed, without articles."""
    return tuple(stem(part) for part in _tokens(text) if part != _BREAK)


def same_text(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, articles, endings and punctuation."""
    return words(one) == words(other)


def compare(new: str, old: str, *, loose: bool = False) -> Likeness:
    """What a new value is to an old one.

    It says more if it goes on where the old one ends: "a dog" and "a dog named Rex", but not "coffee" and "coffee ice
    cream". Loosely, it is enough that it has all the words of the old one, unless it speaks of another.
    """
    if same_text(new, old):
        return Likeness.SAME
    if goes_on(old, new) or (loose and _holds(old, new)):
        return Likeness.MORE
    if goes_on(new, old) or (loose and _holds(new, old)):
        return Likeness.LESS
    return Likeness.OTHER


def goes_on(short: str, long: str) -> bool:
    """Whether a longer wording begins with a shorter one and says more about it."""
    few = words(short)
    if not few or words(long)[: len(few)] != few:
        return False
    first, whole = _tokens(short), _tokens(long)
    return len(whole) > len(first) and whole[len(first)] in _JOINTS and not _ANOTHER & set(whole[len(first) :])


def _holds(short: str, long: str) -> bool:
    few, many = set(words(short)), set(words(long))
    return bool(few) and few < many and not _ANOTHER & (set(_tokens(long)) - set(_tokens(short)))


def adds_to(new: str, old: str) -> bool:
    """Whether a text has all the words of another and some of its own."""
    return set(words(old)) < set(words(new))


def names(text: str) -> frozenset[str]:
    """The names and figures of a text: its words with a capital letter, but for the first, and those with a digit."""
    found = _WORD.findall(text)
    telling = [word for word in found[1:] if word[0].isupper()] + [word for word in found if _DIGIT.search(word)]
    return frozenset(stem(word.casefold().removesuffix("'s")) for word in telling)


# Names --------------------------------------------------------------------------------------------------------------


def edits(one: Sequence[str], other: Sequence[str], most: int = 1 << 30) -> int:
    """How many characters have to be added, left out or changed to make one of the other; no count beyond `most`."""
    if abs(len(one) - len(other)) >= most:
        return most
    row = list(range(len(other) + 1))
    for number, char in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, there in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (char != there))
    return min(row[-1], most)


def likeness(one: str, other: str) -> float:
    """How alike two names are, from 0 to 1, by the stretches of characters they share."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio() if one and other else 0.0


def similar_slugs(one: str, other: str) -> bool:
    """Whether two slugs are one topic: an edit apart at most, or more than nine tenths alike; figures must agree."""
    if one == other:
        return True
    if min(len(one), len(other)) < 4 or re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return False
    return edits(one, other, SLUG_EDITS) < SLUG_EDITS or likeness(one, other) > SLUG_LIKENESS


# Values ---------------------------------------------------------------------------------------------------------------

_TYPING: Final = 0.95
"""What a likeness of letters counts, beside the same words, which count in full."""
_PART: Final = 0.9
"""What a part counts, where one value says less than the other."""
_ELSEWHERE: Final = 0.9
"""What a likeness counts where the first letters differ: impressionism is not expressionism."""
_STEM: Final = 5
"""How many letters the beginning of a word must have to stand for it."""
_MUCH_LONGER: Final = 1.5
_DENYING: Final = frozenset("not no non never without nor neither".split())


def resemblance(one: str, other: str) -> float:
    """How much two values look like names of the same thing, from 0 to 1; from 0.8 on they probably are.

    Letters count (a slip, an ending), words in any order, and a part that stands for the whole: a surname, the word
    that another begins with. Values with other figures, or of which one denies, are never the same.
    """
    short, long = sorted((_value(one), _value(other)), key=lambda value: (len(value), value))
    if short == long or (short and same_text(one, other)):
        return 1.0 if short or one == other else 0.0
    if not short or _FIGURE.findall(short) != _FIGURE.findall(long) or _denies(short) != _denies(long):
        return 0.0
    return max(_spelled(short, long), _worded(short, long), _begun(short, long))


def _value(text: str) -> str:
    return " ".join(part for part in _tokens(text) if part != _BREAK)


def _denies(value: str) -> bool:
    return not _DENYING.isdisjoint(value.replace("-", " ").split())


def _spelled(short: str, long: str) -> float:
    """By the letters both have in the same order."""
    return _TYPING * _in_common(short, long) * (1.0 if short[0] == long[0] else _ELSEWHERE)


def _worded(short: str, long: str) -> float:
    """By their words: the same in another order, or all of one among those of the other."""
    few, many = set(words(short)), set(words(long))
    if few == many:
        return _TYPING
    return _PART if few and (few < many or many < few) and not _ANOTHER & {*short.split(), *long.split()} else 0.0


def _begun(short: str, long: str) -> float:
    """By the beginning that a single word shares with one of a much longer value."""
    if " " in short or len(long) < _MUCH_LONGER * len(short):
        return 0.0
    shared = max(_prefix(short, word) for word in long.split())
    return _PART * 2 * shared / (len(short) + shared) if shared >= _STEM else 0.0


def _prefix(one: str, other: str) -> int:
    """How many characters two words have in common from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _in_common(one: str, other: str) -> float:
    """The share of both texts that is their longest common subsequence, a column of the table in each integer."""
    places: dict[str, int] = {}
    for place, char in enumerate(one):
        places[char] = places.get(char, 0) | 1 << place
    left = full = (1 << len(one)) - 1
    for char in other:
        hit = left & places.get(char, 0)
        left = (left + hit | left - hit) & full
    return 2 * (len(one) - left.bit_count()) / (len(one) + len(other))
