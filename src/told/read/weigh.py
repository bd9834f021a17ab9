"""Whether words that read as a time are one: the words beside them decide, and in doubt they are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from told.core import almanac, beside
from told.core.forms import DateMatch
from told.read.sentence import QuerySentence, is_han

PLAUSIBLE_YEARS: Final = range(1900, 2101)
_FINE_UNITS: Final = frozenset(("second", "minute", "hour", "day"))


def is_free_standing(sentence: QuerySentence, end: int) -> bool:
    """Whether what follows is not a noun that the time belongs to: "in 2023", but not "in 2023 dollars"."""
    is_name = re.match(r" [^\W\d_a-z]", sentence.text[end:]) is not None
    return is_name or beside.CLAUSE_BOUNDARY.match(sentence.plain, end) is not None


def is_valid_in_language(sentence: QuerySentence, fit: DateMatch) -> bool:
    """Whether no word of the fit means something else in the language of the sentence."""
    words = (
        fit.slots.get(slot, "")
        for slot in ("unit", "word", "name", "thing", "month", "yearly", "turn", "edge")
    )
    return all(
        not sentence.language
        or sentence.language in beside.WORD_LANGUAGES.get(w, sentence.language)
        for w in words
    )


def _has_capital(sentence: QuerySentence, word: str, index: int) -> bool:
    return word not in beside.CAPITALISED_WORDS or sentence.text[index].isupper()


def _may_be_ago(sentence: QuerySentence, fit: DateMatch) -> bool:
    left = sentence.get_text_before(fit.start)
    if fit.text.endswith("earlier") or fit.slots["unit"] == "月" or left.endswith(("的", "の")):
        return False
    return not beside.PARTIAL_NUMBER.search(left)


def _may_be_ahead(sentence: QuerySentence, fit: DateMatch) -> bool:
    if beside.ANCHOR_WORDS.match(sentence.plain, fit.end):
        return False
    return (
        fit.text.startswith(("dentro", "dans"))
        or fit.text.endswith((" now", " time"))
        or sentence.is_future
    )


def _may_be_window(sentence: QuerySentence, fit: DateMatch) -> bool:
    is_counted = bool(fit.slots.get("n"))
    return (
        is_counted or almanac.UNIT_WORDS[fit.slots["unit"]] not in _FINE_UNITS
    ) and not _is_anchored(sentence, fit)


def _is_anchored(sentence: QuerySentence, fit: DateMatch) -> bool:
    """Whether something follows that the time is counted from or part of: "the last week of school"."""
    return beside.ANCHOR_WORDS.match(sentence.plain, fit.end) is not None


def _may_be_turn(sentence: QuerySentence, fit: DateMatch) -> bool:
    thing, turn = fit.slots["thing"], fit.slots["turn"]
    left = sentence.get_text_before(fit.start)
    if almanac.UNIT_WORDS.get(thing) in _FINE_UNITS and thing not in almanac.CALENDAR_NAMES:
        return False
    if is_han(turn) and beside.NOT_A_MODIFIER.search(left):
        return False
    if turn == "next" and left.endswith("the ") and sentence.is_past:
        return False
    is_clear = _has_capital(sentence, thing, fit.slot_starts["thing"]) or not sentence.plain[
        fit.end :
    ].strip(" ?.!,")
    is_part = sentence.plain.startswith(" of", fit.end)
    return is_clear and not is_part


def _may_be_name(sentence: QuerySentence, fit: DateMatch) -> bool:
    """A weekday, month or season by itself: only where nothing else could stand."""
    word, start, end = fit.slots["name"], fit.start, fit.end
    if beside.HABITUAL_PATTERN.search(sentence.plain) or _is_anchored(sentence, fit):
        return False
    if not word.isascii():
        return len(word) > 1 or not is_han(sentence.plain[end : end + 1])
    unit, left = almanac.CALENDAR_NAMES[word].unit, sentence.get_text_before(start)
    if word in beside.ABBREVIATIONS and not _has_capital(sentence, word, start):
        return False
    if unit in ("month", "season"):
        return _may_be_month(sentence, unit, fit)
    is_led = beside.NAME_CONTEXT[unit].search(left) is not None
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
    is_range = beside.RANGE_FROM.search(left) and beside.RANGE_TO.match(rest)
    if not is_range and not beside.NAME_CONTEXT[unit].search(left):
        return False
    if re.match(r" [^\W\d_a-z]|'s", sentence.text[fit.end :]):
        return False
    return sentence.language not in ("", "en") or is_free_standing(sentence, fit.end)


def _may_be_yearly(sentence: QuerySentence, fit: DateMatch) -> bool:
    """A month or season with its year, unless a day stands before it: "31 February 2023" is no time at all."""
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


# The forms of the almanac that are looked for inside a sentence, and what tells whether one is meant.
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
