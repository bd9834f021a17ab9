"""A sentence that speaks of times: as it is written, as the almanac spells it, and what it says about tense."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from functools import lru_cache
from typing import Final

from told.core import beside
from told.core.lazy import regex
from told.core.when import Interval, from_us, local, relative, to_us


@dataclass(frozen=True, slots=True)
class Time:
    """A time said from `start` to `end` of a sentence; a loose one names no year and leans on what is around it."""

    start: int
    end: int
    form: str
    span: Interval
    unit: str = ""

    @property
    def is_loose(self) -> bool:
        """Whether it comes back every week or year and so needs another time to be placed by."""
        return bool(self.unit)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text as it is written and, letter by letter, as the almanac spells it; when it is said, and of which tense."""

    written: str
    plain: str
    now: datetime
    language: str
    is_past: bool
    is_future: bool

    @classmethod
    def of(cls, text: str, now: datetime, zone: str | tzinfo | None, language: str) -> Sentence:
        """The sentence in a text of composed letters (NFC)."""
        plain = _masked(_spelt(text))
        is_past = beside.PAST.search(plain) is not None
        is_future = not is_past and beside.FUTURE.search(plain) is not None
        return cls(text, plain, local(now, zone), language, is_past, is_future)

    def read(self, words: str, now: datetime | None = None) -> Interval | None:
        """What the words say, at another time if one is given."""
        here = now or self.now
        return relative(words, now=here, zone=here.tzinfo)

    def left(self, index: int) -> str:
        """The few words before an index."""
        return self.plain[max(0, index - 64) : index]

    def at(self, us: int) -> datetime:
        """An instant by the clock of the sentence."""
        return from_us(us).astimezone(self.now.tzinfo)

    def days(self, first: date, end: date) -> Interval | None:
        """From one day up to another by the clock of the sentence."""
        start, stop = (to_us(datetime.combine(day, time(), self.now.tzinfo)) for day in (first, end))
        return Interval(start, stop, "day") if start < stop else None


# ------------------------------------------------------------------------------------------------------------- spelling


def is_han(letter: str) -> bool:
    """Whether a letter is Chinese; a pattern of so many letters would take milliseconds to compile."""
    return "\u3400" <= letter[:1] <= "\u9fff"


def _spelt(text: str) -> str:
    """The text in the letters of the almanac, each in its place."""
    return text.lower() if text.isascii() else "".join(map(_letter, text))


@lru_cache(maxsize=4096)
def _letter(char: str) -> str:
    if char in "\u2018\u2019\u02bc":
        return "'"
    return unicodedata.normalize("NFKD", char)[0].lower()[:1] if not char.isspace() else " "


_QUOTED: Final = regex(
    '"[^"]{1,200}"|“[^”]{1,200}”|«[^»]{1,200}»|「[^」]{1,200}」|『[^』]{1,200}』|《[^》]{1,200}》'
)
_TITLE: Final = regex(r"(?<!\w)'[^'\n]{2,80}'(?!\w)")


def _masked(plain: str) -> str:
    """The text without what it quotes: the "Summer of 69" is no time."""
    if not any(mark in plain for mark in "\"“«「『《'"):
        return plain
    return _TITLE.sub(_blank, _QUOTED.sub(_blank, plain))


def _blank(match: re.Match[str]) -> str:
    return "\x00" * len(match[0])
