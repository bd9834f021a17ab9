"""Decide by context whether words that read like a time are one; reject them in doubt."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from functools import lru_cache
from typing import Final

from told.runtime import lazy_regex
from told.text import date_lexicon, lexicon
from told.text.date_lexicon import DateMatch
from told.text.dates import Interval, from_us, localise, parse_relative, to_us


@dataclass(frozen=True, slots=True)
class QueryTime:
    """A time at `start` to `end` of a sentence; a loose one has no year and needs context."""

    start: int
    end: int
    form: str
    span: Interval
    unit: str = ""

    @property
    def is_loose(self) -> bool:
        """Return True if the time recurs every week or year."""
        return bool(self.unit)


@dataclass(frozen=True, slots=True)
class QuerySentence:
    """A text with its normalised form of equal length, reference time, language and tense."""

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
        """Build a sentence from an NFC text."""
        plain = _mask_quotes(_normalise_text(text))
        is_past = lexicon.PAST_TENSE.search(plain) is not None
        is_future = not is_past and lexicon.FUTURE_TENSE.search(plain) is not None
        return cls(text, plain, localise(now, zone), language, is_past, is_future)

    def parse_time(self, words: str, now: datetime | None = None) -> Interval | None:
        """Parse words as a time relative to `now`, by default the sentence's."""
        reference = now or self.now
        return parse_relative(words, now=reference, zone=reference.tzinfo)

    def get_text_before(self, index: int) -> str:
        """Return a few words before an index."""
        return self.plain[max(0, index - 64) : index]

    def to_local(self, us: int) -> datetime:
        """Convert an instant to the sentence's time zone."""
        return from_us(us).astimezone(self.now.tzinfo)

    def build_day_span(self, first: date, end: date) -> Interval | None:
        """Return the span from one day to another in the sentence's time zone."""
        start, stop = (
            to_us(datetime.combine(day, time(), self.now.tzinfo)) for day in (first, end)
        )
        return Interval(start, stop, "day") if start < stop else None


# Normalisation


def is_han(letter: str) -> bool:
    """Return True if a letter is Chinese; a regex for the range is slow to compile."""
    return "\u3400" <= letter[:1] <= "\u9fff"


def _normalise_text(text: str) -> str:
    """Return the text in the spelling of the date lexicon, character by character."""
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
    """Mask quoted text: the "Summer of 69" is no time."""
    if not any(quote in plain for quote in "\"“«「『《'"):
        return plain
    return _TITLE.sub(_blank_match, _QUOTED.sub(_blank_match, plain))


def _blank_match(match: re.Match[str]) -> str:
    return "\x00" * len(match[0])


PLAUSIBLE_YEARS: Final = range(1900, 2101)
_FINE_UNITS: Final = frozenset(("second", "minute", "hour", "day"))


def is_free_standing(sentence: QuerySentence, end: int) -> bool:
    """Return True if no noun follows that the time modifies, as in "in 2023 dollars"."""
    is_name = re.match(r" [^\W\d_a-z]", sentence.text[end:]) is not None
    return is_name or lexicon.CLAUSE_BOUNDARY.match(sentence.plain, end) is not None


def is_valid_in_language(sentence: QuerySentence, fit: DateMatch) -> bool:
    """Return True if no matched word means something else in the sentence's language."""
    words = (
        fit.slots.get(slot, "")
        for slot in ("unit", "word", "name", "thing", "month", "yearly", "turn", "edge")
    )
    return all(
        not sentence.language
        or sentence.language in lexicon.WORD_LANGUAGES.get(w, sentence.language)
        for w in words
    )


def _has_capital(sentence: QuerySentence, word: str, index: int) -> bool:
    return word not in lexicon.CAPITALISED_WORDS or sentence.text[index].isupper()


def _may_be_ago(sentence: QuerySentence, fit: DateMatch) -> bool:
    left = sentence.get_text_before(fit.start)
    if fit.text.endswith("earlier") or fit.slots["unit"] == "月" or left.endswith(("的", "の")):
        return False
    return not lexicon.PARTIAL_NUMBER.search(left)


def _may_be_ahead(sentence: QuerySentence, fit: DateMatch) -> bool:
    if lexicon.ANCHOR_WORDS.match(sentence.plain, fit.end):
        return False
    return (
        fit.text.startswith(("dentro", "dans"))
        or fit.text.endswith((" now", " time"))
        or sentence.is_future
    )


def _may_be_window(sentence: QuerySentence, fit: DateMatch) -> bool:
    is_counted = bool(fit.slots.get("n"))
    return (
        is_counted or date_lexicon.UNIT_WORDS[fit.slots["unit"]] not in _FINE_UNITS
    ) and not _is_anchored(sentence, fit)


def _is_anchored(sentence: QuerySentence, fit: DateMatch) -> bool:
    """Return True if the time is relative to what follows, as in "the last week of school"."""
    return lexicon.ANCHOR_WORDS.match(sentence.plain, fit.end) is not None


def _may_be_turn(sentence: QuerySentence, fit: DateMatch) -> bool:
    thing, turn = fit.slots["thing"], fit.slots["turn"]
    left = sentence.get_text_before(fit.start)
    if (
        date_lexicon.UNIT_WORDS.get(thing) in _FINE_UNITS
        and thing not in date_lexicon.CALENDAR_NAMES
    ):
        return False
    if is_han(turn) and lexicon.NOT_A_MODIFIER.search(left):
        return False
    if turn == "next" and left.endswith("the ") and sentence.is_past:
        return False
    is_clear = _has_capital(sentence, thing, fit.slot_starts["thing"]) or not sentence.plain[
        fit.end :
    ].strip(" ?.!,")
    is_part = sentence.plain.startswith(" of", fit.end)
    return is_clear and not is_part


def _may_be_name(sentence: QuerySentence, fit: DateMatch) -> bool:
    """Return True if a bare weekday, month or season is unambiguous here."""
    word, start, end = fit.slots["name"], fit.start, fit.end
    if lexicon.HABITUAL_PATTERN.search(sentence.plain) or _is_anchored(sentence, fit):
        return False
    if not word.isascii():
        return len(word) > 1 or not is_han(sentence.plain[end : end + 1])
    unit, left = date_lexicon.CALENDAR_NAMES[word].unit, sentence.get_text_before(start)
    if word in lexicon.ABBREVIATIONS and not _has_capital(sentence, word, start):
        return False
    if unit in ("month", "season"):
        return _may_be_month(sentence, unit, fit)
    is_led = lexicon.NAME_CONTEXT[unit].search(left) is not None
    if unit == "day" and not is_led and len(word) > 4:
        ends = not sentence.plain[end:].strip(" ?.!,") or sentence.language == "fr"
        return (
            ends
            and (sentence.is_past or sentence.is_future)
            and not left.endswith(("le ", "les ", "of ", "the ", "and "))
        )
    return is_led


def _may_be_month(sentence: QuerySentence, unit: str, fit: DateMatch) -> bool:
    left, rest = sentence.get_text_before(fit.start), sentence.plain[fit.end :]
    if unit == "season" and not (sentence.is_past or sentence.is_future):
        return False
    is_range = lexicon.RANGE_FROM.search(left) and lexicon.RANGE_TO.match(rest)
    if not is_range and not lexicon.NAME_CONTEXT[unit].search(left):
        return False
    if re.match(r" [^\W\d_a-z]|'s", sentence.text[fit.end :]):
        return False
    return sentence.language not in ("", "en") or is_free_standing(sentence, fit.end)


def _may_be_yearly(sentence: QuerySentence, fit: DateMatch) -> bool:
    """Accept a month with its year unless a day precedes it: "31 February 2023" is no time."""
    has_day = re.search(r"\d(?:st|nd|rd|th|\.)?(?: of| de)? $", sentence.get_text_before(fit.start))
    return not has_day and _may_be_year(sentence, fit)


def _may_be_year(_: QuerySentence, fit: DateMatch) -> bool:
    return int(fit.slots.get("year") or fit.slots.get("decade") or 0) in PLAUSIBLE_YEARS


def _may_be_date(sentence: QuerySentence, fit: DateMatch) -> bool:
    slots = fit.slots
    left, rest = sentence.get_text_before(fit.start), sentence.plain[fit.end :]
    if slots["year"]:
        return _may_be_year(sentence, fit)
    if fit.slot_starts["month"] == fit.start:
        is_bare = slots["day"].isdecimal()
        if (is_bare and left.endswith("in ")) or not _has_capital(
            sentence, slots["month"], fit.start
        ):
            return False
    return not re.match(r" (?:issue|edition|people|percent|%)", rest)


def _may_be_word(sentence: QuerySentence, fit: DateMatch) -> bool:
    left = sentence.get_text_before(fit.start)
    match fit.slots["word"]:
        case "manana":
            return not left.endswith((" la ", "esta ", "cada "))
        case "morgen":
            return not left.endswith(("jeden ", "am ", "guten ", "den ", "diesen ", "every "))
    return not re.search(r" ago,? $", left)


def _accept(_: QuerySentence, __: DateMatch) -> bool:
    return True


# Templates matched inside sentences, with the check of each.
TIME_CHECKS: Final[Mapping[str, Callable[[QuerySentence, DateMatch], bool]]] = {
    "word": _may_be_word,
    "ago": _may_be_ago,
    "ahead": _may_be_ahead,
    "window": _may_be_window,
    "weekday_of_week": _accept,
    "turn": _may_be_turn,
    "name": _may_be_name,
    "name_of_year": _may_be_yearly,
    "month_of_year": _may_be_year,
    "date": _may_be_date,
    "numbered_date": _accept,
    "year": _may_be_year,
    "decade": _may_be_year,
}
