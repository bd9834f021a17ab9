"""Whether words that read as a time are one: the words beside them decide, and in doubt they are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from told.core import almanac, beside
from told.core.forms import Fit
from told.read.sentence import Sentence, is_han

YEARS: Final = range(1900, 2101)
_FINE_UNITS: Final = frozenset(("second", "minute", "hour", "day"))


def goes_on(sentence: Sentence, end: int) -> bool:
    """Whether what follows is not a noun that the time belongs to: "in 2023", but not "in 2023 dollars"."""
    is_name = re.match(r" [^\W\d_a-z]", sentence.written[end:]) is not None
    return is_name or beside.GOES_ON.match(sentence.plain, end) is not None


def is_at_home(sentence: Sentence, fit: Fit) -> bool:
    """Whether no word of the fit means something else in the language of the sentence."""
    words = (fit.said.get(slot, "") for slot in ("unit", "word", "name", "thing", "month", "yearly", "turn", "edge"))
    return all(not sentence.language or sentence.language in beside.ONLY_IN.get(w, sentence.language) for w in words)


def _has_capital(sentence: Sentence, word: str, index: int) -> bool:
    return word not in beside.CAPITAL or sentence.written[index].isupper()


def _may_be_ago(sentence: Sentence, fit: Fit) -> bool:
    left = sentence.left(fit.start)
    if fit.words.endswith("earlier") or fit.said["unit"] == "月" or left.endswith(("的", "の")):
        return False
    return not beside.COUNTED.search(left)


def _may_be_ahead(sentence: Sentence, fit: Fit) -> bool:
    if beside.ANCHORS.match(sentence.plain, fit.end):
        return False
    return fit.words.startswith(("dentro", "dans")) or fit.words.endswith((" now", " time")) or sentence.is_future


def _may_be_window(sentence: Sentence, fit: Fit) -> bool:
    is_counted = bool(fit.said.get("n"))
    return (is_counted or almanac.UNITS[fit.said["unit"]] not in _FINE_UNITS) and not _is_anchored(sentence, fit)


def _is_anchored(sentence: Sentence, fit: Fit) -> bool:
    """Whether something follows that the time is counted from or part of: "the last week of school"."""
    return beside.ANCHORS.match(sentence.plain, fit.end) is not None


def _may_be_turn(sentence: Sentence, fit: Fit) -> bool:
    thing, turn = fit.said["thing"], fit.said["turn"]
    left = sentence.left(fit.start)
    if almanac.UNITS.get(thing) in _FINE_UNITS and thing not in almanac.NAMES:
        return False
    if is_han(turn) and beside.NOT_A_TURN.search(left):
        return False
    if turn == "next" and left.endswith("the ") and sentence.is_past:
        return False
    is_clear = _has_capital(sentence, thing, fit.starts["thing"]) or not sentence.plain[fit.end :].strip(" ?.!,")
    is_part = sentence.plain.startswith(" of", fit.end)
    return is_clear and not is_part


def _may_be_name(sentence: Sentence, fit: Fit) -> bool:
    """A weekday, month or season by itself: only where nothing else could stand."""
    word, start, end = fit.said["name"], fit.start, fit.end
    if beside.HABIT.search(sentence.plain) or _is_anchored(sentence, fit):
        return False
    if not word.isascii():
        return len(word) > 1 or not is_han(sentence.plain[end : end + 1])
    unit, left = almanac.NAMES[word].unit, sentence.left(start)
    if word in beside.SHORT and not _has_capital(sentence, word, start):
        return False
    if unit in ("month", "season"):
        return _may_be_month(sentence, unit, fit)
    is_led = beside.NAME_AFTER[unit].search(left) is not None
    if unit == "day" and not is_led and len(word) > 4:
        ends = not sentence.plain[end:].strip(" ?.!,") or sentence.language == "fr"
        return (
            ends
            and (sentence.is_past or sentence.is_future)
            and not left.endswith(("le ", "les ", "of ", "the ", "and "))
        )
    return is_led


def _may_be_month(sentence: Sentence, unit: str, fit: Fit) -> bool:
    left, rest = sentence.left(fit.start), sentence.plain[fit.end :]
    if unit == "season" and not (sentence.is_past or sentence.is_future):
        return False
    is_range = beside.FROM_NAME.search(left) and beside.TO_NAME.match(rest)
    if not is_range and not beside.NAME_AFTER[unit].search(left):
        return False
    if re.match(r" [^\W\d_a-z]|'s", sentence.written[fit.end :]):
        return False
    return sentence.language not in ("", "en") or goes_on(sentence, fit.end)


def _may_be_yearly(sentence: Sentence, fit: Fit) -> bool:
    """A month or season with its year, unless a day stands before it: "31 February 2023" is no time at all."""
    has_day = re.search(r"\d(?:st|nd|rd|th|\.)?(?: of| de)? $", sentence.left(fit.start))
    return not has_day and _may_be_year(sentence, fit)


def _may_be_year(_: Sentence, fit: Fit) -> bool:
    return int(fit.said.get("year") or fit.said.get("decade") or 0) in YEARS


def _may_be_date(sentence: Sentence, fit: Fit) -> bool:
    said = fit.said
    left, rest = sentence.left(fit.start), sentence.plain[fit.end :]
    if said["year"]:
        return _may_be_year(sentence, fit)
    if fit.starts["month"] == fit.start:
        is_bare = said["day"].isdecimal()
        if (is_bare and left.endswith("in ")) or not _has_capital(sentence, said["month"], fit.start):
            return False
    return not re.match(r" (?:issue|edition|people|percent|%)", rest)


def _may_be_word(sentence: Sentence, fit: Fit) -> bool:
    left = sentence.left(fit.start)
    match fit.said["word"]:
        case "manana":
            return not left.endswith((" la ", "esta ", "cada "))
        case "morgen":
            return not left.endswith(("jeden ", "am ", "guten ", "den ", "diesen ", "every "))
    return not re.search(r" ago,? $", left)


def _always(_: Sentence, __: Fit) -> bool:
    return True


# The forms of the almanac that are looked for inside a sentence, and what tells whether one is meant.
MAY_BE: Final[Mapping[str, Callable[[Sentence, Fit], bool]]] = {
    "word": _may_be_word,
    "ago": _may_be_ago,
    "ahead": _may_be_ahead,
    "window": _may_be_window,
    "weekday_of_week": _always,
    "turn": _may_be_turn,
    "name": _may_be_name,
    "name_of_year": _may_be_yearly,
    "month_of_year": _may_be_year,
    "date": _may_be_date,
    "numbered_date": _always,
    "year": _may_be_year,
    "decade": _may_be_year,
}
