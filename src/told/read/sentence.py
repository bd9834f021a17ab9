"""A sentence that speaks of times: as it is written, as the almanac spells it, and what it says about tense."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from functools import lru_cache
from typing import Final

from told.core import beside
from told.core.lazy import lazy_regex
from told.core.when import Interval, from_us, localise, parse_relative, to_us


@dataclass(frozen=True, slots=True)
class QueryTime:
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
class QuerySentence:
    """A text as it is written and, letter by letter, as the almanac spells it; when it is said, and of which tense."""

    text: str
    plain: str
    now: datetime
    language: str
    is_past: bool
    is_future: bool

    @classmethod
    def from_text(
        cls, text: str, now: datetime, zone: str | tzinfo | None, language: str
    ) -> QuerySentence:
        """The sentence in a text of composed letters (NFC)."""
        plain = _mask_quotes(_normalise_text(text))
        is_past = beside.PAST_TENSE.search(plain) is not None
        is_future = not is_past and beside.FUTURE_TENSE.search(plain) is not None
        return cls(text, plain, localise(now, zone), language, is_past, is_future)

    def parse_time(self, words: str, now: datetime | None = None) -> Interval | None:
        """What the words say, at another time if one is given."""
        reference = now or self.now
        return parse_relative(words, now=reference, zone=reference.tzinfo)

    def get_text_before(self, index: int) -> str:
        """The few words before an index."""
        return self.plain[max(0, index - 64) : index]

    def to_local(self, us: int) -> datetime:
        """An instant by the clock of the sentence."""
        return from_us(us).astimezone(self.now.tzinfo)

    def build_day_span(self, first: date, end: date) -> Interval | None:
        """From one day up to another by the clock of the sentence."""
        start, stop = (
            to_us(datetime.combine(day, time(), self.now.tzinfo)) for day in (first, end)
        )
        return Interval(start, stop, "day") if start < stop else None


# ------------------------------------------------------------------------------------------------------------- spelling


def is_han(letter: str) -> bool:
    """Whether a letter is Chinese; a pattern of so many letters would take milliseconds to compile."""
    return "\u3400" <= letter[:1] <= "\u9fff"


def _normalise_text(text: str) -> str:
    """The text in the letters of the almanac, each in its place."""
    return text.lower() if text.isascii() else "".join(map(_normalise_letter, text))


@lru_cache(maxsize=4096)
def _normalise_letter(char: str) -> str:
    if char in "\u2018\u2019\u02bc":
        return "'"
    return unicodedata.normalize("NFKD", char)[0].lower()[:1] if not char.isspace() else " "


_QUOTED: Final = lazy_regex(
    '"[^"]{1,200}"|“[^”]{1,200}”|«[^»]{1,200}»|「[^」]{1,200}」|『[^』]{1,200}』|《[^》]{1,200}》'
)
_TITLE: Final = lazy_regex(r"(?<!\w)'[^'\n]{2,80}'(?!\w)")


def _mask_quotes(plain: str) -> str:
    """The text without what it quotes: the "Summer of 69" is no time."""
    if not any(quote in plain for quote in "\"“«「『《'"):
        return plain
    return _TITLE.sub(_blank_match, _QUOTED.sub(_blank_match, plain))


def _blank_match(match: re.Match[str]) -> str:
    return "\x00" * len(match[0])
