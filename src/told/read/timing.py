"""Times said inside a sentence: found by the almanac's forms, weighed by the words beside them, and put together.

A wrong time hurts a search more than a missed one, so whatever may be something else (a verb, a duration, a time
counted from an event the sentence does not date) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from functools import cache, lru_cache
from itertools import chain, islice
from typing import Final

from told.core import almanac, beside, forms
from told.core.forms import Fit
from told.core.lazy import regex
from told.core.tongue import language
from told.core.when import PRECISIONS, Interval, to_us
from told.read.sentence import Sentence, Time
from told.read.weigh import MAY_BE, YEARS, goes_on, is_at_home

_MOST: Final = 32  # times read in one text; nobody asks for more
_DAY: Final = timedelta(days=1)
_HOUR_US: Final = 3_600_000_000
_CYCLE_DAYS: Final = {"day": 7, "weekend": 7, "month": 366, "season": 366}
# "Last Friday" is counted from now; said beside a date with its year, from that date.
_FROM_NOW: Final = frozenset(("turn", "ago", "word", "weekday_of_week"))
_DATED: Final = frozenset(("date", "iso", "numbered_date"))


def times(text: str, *, now: datetime, zone: str | tzinfo | None = None) -> tuple[Time, ...]:
    """The times a text of composed letters (NFC) speaks of, in its order, with the places where it does."""
    if text.isascii() and not _SLASHED.search(text) and not almanac.time_words(text, 1):
        return ()  # most questions speak of no time, and the forms need not even be compiled for them
    sentence = Sentence.of(text, now, zone, language(text))
    try:
        return tuple(_placed(sentence, _joined(sentence, _nested(sentence, list(islice(_found(sentence), _MOST))))))
    except (ValueError, OverflowError):  # a step over the edge of the calendar: `now` is in the first or the last years
        return ()


# -------------------------------------------------------------------------------------------------------------- finding

_WORD: Final = regex(r"[a-z]+|[0-9]+|[^\x00-\x7f]")
_BEGINNING: Final = regex(r"(?<![a-z0-9])(?:[a-z0-9]|[^\x00-\x7f])")


@cache
def _starters() -> frozenset[str]:
    tables = (
        almanac.NUMBERS,
        almanac.UNITS,
        almanac.TURNS,
        almanac.WORDS,
        almanac.NAMES,
        almanac.EDGES,
        almanac.ORDINALS,
    )
    words = chain.from_iterable(map(str, table) for table in (*tables, beside.OPENERS))
    return frozenset(match[0] for word in words if (match := _WORD.match(word)))


@lru_cache(maxsize=256)
def _core_rules(letter: str) -> tuple[forms.Rule, ...]:
    return tuple(rule for rule in forms.rules_for(letter) if rule.form in MAY_BE)


@cache
def _shape(template: str) -> forms.Shape:
    return forms.Shape.of(template)


def _found(sentence: Sentence) -> Iterator[Time]:
    """The times in a sentence from left to right, each as long as it can be."""
    end, starters = 0, _starters()
    for word in _WORD.finditer(sentence.plain):
        start = word.start()
        if start < end or not (word[0] in starters or "0" <= word[0][0] <= "9") or not _begins(sentence.plain, start):
            continue
        if found := _prefixed(sentence, start) or _plain_time(sentence, start):
            end = found.end
            yield found


def _begins(plain: str, start: int) -> bool:
    before = plain[max(0, start - 2) : start]
    return not re.search(r"[a-z0-9]$|[0-9][.,/:-]$|[a-z]-$", before)


def _ends(plain: str, end: int) -> bool:
    return not re.match(r"[a-z0-9]|[.,/:-][0-9]", plain[end : end + 2]) or not re.match("[a-z0-9]", plain[end - 1])


def _plain_time(sentence: Sentence, start: int, *, is_led: bool = False) -> Time | None:
    """The longest time that begins here by a form of the almanac, with the part of the day that may follow."""
    if plain := _days(sentence, start) or _written_date(sentence, start) or _turned_part(sentence, start):
        return plain
    text = sentence.plain
    fits = [
        (rule.form, fit)
        for rule in _core_rules(text[start : start + 1])
        if (fit := rule.shape.fit(text, start)) and _ends(text, fit.end)
    ]
    if not fits:
        return _bare_year(sentence, start, is_led=is_led)
    form, fit = max(fits, key=lambda one: one[1].end)
    if not is_at_home(sentence, fit) or not (MAY_BE[form](sentence, fit) or (is_led and form == "name")):
        return None
    return _with_part(sentence, _resolved(sentence, form, fit))


def _resolved(sentence: Sentence, form: str, fit: Fit) -> Time | None:
    said, words = fit.said, fit.words
    unit = almanac.NAMES[said["name"]].unit if form == "name" else ""
    if form in ("date", "numbered_date") and not said["year"]:
        unit = "month"
    if unit and (span := _ahead(sentence, form, unit, words)):
        return Time(fit.start, fit.end, form, span, unit)
    span = _vague(sentence, said) if form == "ago" and said["n"] in beside.VAGUE else sentence.read(words)
    if form == "turn" and said["turn"] == "last" and beside.UP_TO_NOW.search(sentence.left(fit.start)):
        span = sentence.read(f"past {said['thing']}")
    return Time(fit.start, fit.end, form, span, unit) if span else None


def _vague(sentence: Sentence, said: Mapping[str, str]) -> Interval | None:
    """A few years ago: from the most to the fewest that may be."""
    fewest, most = (sentence.read(f"{count} {said['unit']} ago") for count in beside.VAGUE[said["n"]])
    return _between(most, fewest)


def _ahead(sentence: Sentence, form: str, unit: str, words: str) -> Interval | None:
    """A name or date without year in a sentence about the future: the next one."""
    if not (sentence.is_future or (unit == "day" and _is_under_way(sentence))):
        return None
    if form == "name":
        return sentence.read(f"next {words}")
    template = "{words} {year}" if form == "date" else "{year}年{words}"
    years = (sentence.now.year, sentence.now.year + 1)
    spans = (sentence.read(template.format(words=words, year=year)) for year in years)
    return next((span for span in spans if span and span.end and span.end > to_us(sentence.now)), None)


def _is_under_way(sentence: Sentence) -> bool:
    return not sentence.is_past and beside.UNDER_WAY.search(sentence.plain) is not None


def _with_part(sentence: Sentence, found: Time | None) -> Time | None:
    """The time with the part of the day or the clock time that follows it."""
    if found is None or found.span.precision != "day":
        return found
    for template in beside.PART_OF_DAY:
        fit = _shape(template).fit(sentence.plain, found.end)
        if fit and _ends(sentence.plain, fit.end):
            day = sentence.at(found.span.start or 0).date().isoformat()
            span = sentence.read(f"{day} {fit.said.get('part') or fit.said['clock']}")
            return replace(found, end=fit.end, span=span, unit="") if span else found
    return found


def _turned_part(sentence: Sentence, start: int) -> Time | None:
    fit = _shape(beside.TURNED_PART).fit(sentence.plain, start)
    span = sentence.read(fit.words) if fit and _ends(sentence.plain, fit.end) else None
    return Time(start, fit.end, "part", span) if fit and span else None


# ------------------------------------------------------------------------------------------------------ dates in digits

_ISO: Final = regex(r"(\d{4})([-/.])(\d{1,2})(?:\2(\d{1,2})(?:[t ]\d\d:\d\d(?::\d\d)?(?:z|[+-]\d\d:?\d\d)?)?)?")
_SLASHED: Final = regex(r"(\d{1,2})([/.])(\d{1,2})\2(\d{4})")
_YEAR: Final = regex(r"\d{4}")


def _written_date(sentence: Sentence, start: int) -> Time | None:
    """A date such as 2023-05-08, 2023/5/8 or 23.5.2023; whether the day or the month comes first must be clear."""
    if not sentence.plain[start : start + 1].isdecimal():
        return None
    if (match := _ISO.match(sentence.plain, start)) and _ends(sentence.plain, match.end()):
        year, _, month, day = match.groups()
        tail = sentence.plain[match.end(4) : match.end()] if day else ""
        words = f"{year}-{month:0>2}" + (f"-{day:0>2}{tail}" if day else "")
    elif (match := _SLASHED.match(sentence.plain, start)) and _ends(sentence.plain, match.end()):
        first, mark, second, year = match.groups()
        day, month = (second, first) if int(second) > 12 else (first, second)
        is_clear = mark == "." or int(day) > 12 or day == month or sentence.language not in ("", "en")
        words = f"{year}-{month:0>2}-{day:0>2}" if is_clear else ""
    else:
        return None
    span = sentence.read(words) if int(year) in YEARS else None
    return Time(start, match.end(), "iso", span) if span else None


def _days(sentence: Sentence, start: int) -> Time | None:
    """Several days of one month: "May 8-10, 2023" or "from 8 to 10 May"."""
    for template in beside.DAYS:
        fit = _shape(template).fit(sentence.plain, start)
        if fit and _ends(sentence.plain, fit.end):
            said = fit.said
            first, last = (sentence.read(f"{said[d]} {said['month']} {said['year']}") for d in ("first", "last"))
            span = _between(first, last)
            return Time(start, fit.end, "days", span) if span else None
    return None


def _bare_year(sentence: Sentence, start: int, *, is_led: bool) -> Time | None:
    """Four digits where a year stands, or nothing else beside them."""
    match = _YEAR.match(sentence.plain, start)
    if not match or not _ends(sentence.plain, match.end()) or int(match[0]) not in YEARS:
        return None
    is_alone = sentence.plain.strip(" ?.!") == match[0]
    is_led = is_led or beside.YEAR_AFTER.search(sentence.left(start)) is not None
    if not is_alone and not (is_led and goes_on(sentence, match.end())):
        return None
    span = sentence.read(match[0])
    return Time(start, match.end(), "year", span) if span else None


# ------------------------------------------------------------------------------------------------- parts of other times


def _prefixed(sentence: Sentence, start: int) -> Time | None:
    """A part of a period: its edge, its third week, or the week that holds a day."""
    for template, part in _PARTS.items():
        if fit := _shape(template).fit(sentence.plain, start):
            whole = _plain_time(sentence, fit.end, is_led=True) or _present_unit(sentence, fit.end)
            span = part(sentence, fit, whole) if whole and is_at_home(sentence, fit) else None
            if whole and span:
                return Time(start, whole.end, "part", span)
    return None


_GENITIVE: Final = {"jahres": "jahr", "monats": "monat"}
_UNIT: Final = regex("(?:week|month|quarter|year|jahres|monats|mes|ano|mois)(?![a-z])")


def _present_unit(sentence: Sentence, start: int) -> Time | None:
    """The unit now going on: "the end of the year"."""
    match = _UNIT.match(sentence.plain, start)
    span = sentence.read(f"this {_GENITIVE.get(match[0], match[0])}") if match else None
    return Time(start, match.end(), "turn", span) if match and span else None


def _edge(sentence: Sentence, fit: Fit, whole: Time) -> Interval | None:
    """The first, middle or last third of a period; of a day or less, all of it."""
    if fit.said["edge"] in beside.EDGES_WITH_OF and not fit.said["of"] and sentence.language not in ("fr", "de"):
        return None
    if whole.span.start is None or whole.span.end is None:
        return None
    first, end = (sentence.at(us).date() for us in (whole.span.start, whole.span.end))
    third = (end - first) / 3
    if third < _DAY:
        return whole.span
    place = almanac.EDGES[fit.said["edge"]] * 2
    return sentence.days(first + third * place, first + third * (place + 1) if place < 2 else end)


def _nth(sentence: Sentence, fit: Fit, whole: Time) -> Interval | None:
    """The so-manieth week, weekend, weekday, month or half of a longer period."""
    if whole.span.start is None or whole.span.end is None or whole.span.precision not in ("month", "year"):
        return None
    first, end = (sentence.at(us).date() for us in (whole.span.start, whole.span.end))
    nth, thing = almanac.ORDINALS[fit.said["nth"]], fit.said.get("thing")
    if thing is None:
        middle = first + (end - first) / 2
        return sentence.days(first, middle) if nth == 1 else sentence.days(middle, end) if nth in (2, -1) else None
    if name := almanac.NAMES.get(thing):
        if name.unit not in almanac.DAYS_IN:
            return None
        day = name.chosen(end, -1) if nth < 0 else name.chosen(first - _DAY, 1) + timedelta(weeks=nth - 1)
        return sentence.days(day, almanac.moved(day, name.unit, 1))
    if (unit := almanac.UNITS[thing]) in almanac.SECONDS_IN:
        return None
    day = almanac.moved(end, unit, -1) if nth < 0 else almanac.moved(first, unit, nth - 1)
    return sentence.days(day, almanac.moved(day, unit, 1)) if first <= day < end else None


def _week_of(sentence: Sentence, fit: Fit, whole: Time) -> Interval | None:
    if whole.span.precision != "day" or whole.span.start is None:
        return None
    if fit.said["thing"] == "week":
        return sentence.read("this week", sentence.at(whole.span.start))
    return sentence.read("this weekend", sentence.at(whole.span.start))


_PARTS: Final[Mapping[str, Callable[[Sentence, Fit, Time], Interval | None]]] = {
    beside.NTH_HALF: _nth,
    beside.NTH: _nth,
    beside.OF_WEEK: _week_of,
    beside.EDGE: _edge,
}


# ----------------------------------------------------------------------------------------------------- putting together


def _between(first: Interval | None, last: Interval | None) -> Interval | None:
    """From the beginning of one to the end of the other."""
    if first is None or last is None or first.start is None or last.end is None or first.start >= last.end:
        return None
    return Interval(first.start, last.end, min(first.precision, last.precision, key=PRECISIONS.index))


def _nested(sentence: Sentence, found: list[Time]) -> list[Time]:
    """A time that leans on the one beside it is placed by it: "in May last year", "Sunday, 8 May 2023"."""
    kept: list[Time] = []
    for this in found:
        last = kept[-1] if kept else None
        if last and beside.NESTED.fullmatch(sentence.plain, last.end, this.start):
            kept[-1:] = _side_by_side(sentence, last, this)
        else:
            kept.append(this)
    return kept


def _side_by_side(sentence: Sentence, one: Time, other: Time) -> list[Time]:
    if one.form in _FROM_NOW and other.span.precision == "day" and other.form in _DATED:
        words = sentence.plain[one.start : one.end]
        span = sentence.read(words, sentence.at(other.span.start or 0))
        return [replace(one, end=other.end, span=span)] if span else [other]
    return [_placed_in(sentence, one, other)] if one.is_loose or other.is_loose else [one, other]


def _placed_in(sentence: Sentence, one: Time, other: Time) -> Time:
    fine, coarse = (one, other) if _length(one) <= _length(other) and one.is_loose else (other, one)
    both = replace(coarse, start=one.start, end=other.end)
    if not fine.is_loose or coarse.span.end is None or _length(coarse) > _CYCLE_DAYS[fine.unit] * 24 * _HOUR_US:
        return both
    words = sentence.plain[fine.start : fine.end]
    span = sentence.read(words, sentence.at(coarse.span.end - 1))
    is_inside = span is not None and span.overlaps(coarse.span)
    return replace(both, span=span, unit=coarse.unit) if span and is_inside else both


def _length(found: Time) -> int:
    span = found.span
    return 10**18 if span.start is None or span.end is None else span.end - span.start


def _joined(sentence: Sentence, found: list[Time]) -> list[Time]:
    """Two times that are the ends of one: "between March and May 2023"; the first is the last before the second."""
    kept: list[Time] = []
    for this in found:
        last = kept[-1] if kept else None
        kept[-1:] = [range_] if last and (range_ := _range(sentence, last, this)) else [*kept[-1:], this]
    return kept


def _range(sentence: Sentence, first: Time, last: Time) -> Time | None:
    match = beside.SPAN_WORDS.fullmatch(sentence.plain, first.end, last.start)
    left = sentence.left(first.start)
    if match is None or last.span.start is None:
        return None
    opener = beside.BETWEEN if match["join"] in beside.JOINS_BETWEEN else beside.SAID_FROM
    led = opener.search(left)
    if not led and (match["join"] in beside.JOINS_BETWEEN or first.unit == "day"):
        return None
    words = sentence.plain[first.start : first.end]
    begins = sentence.read(words, sentence.at(last.span.start)) if first.is_loose else first.span
    span = _between(begins, last.span)
    return Time(first.start, last.end, "range", span) if span else None


def _placed(sentence: Sentence, found: list[Time]) -> Iterator[Time]:
    """Each time as the words before or behind it turn it: the week before, since, until, after."""
    for this in found:
        if this.form == "range":
            yield this
        elif match := beside.LEAD.search(sentence.left(this.start)):
            way = beside.LEADS[match["lead"]]
            yield (way in ("before", "after") and _offset(sentence, this, way)) or _open(this, way)
        elif trail := _trail(sentence.plain, this.end):
            yield _open(this, beside.TRAILS[trail])
        else:
            yield this


def _trail(plain: str, end: int) -> str:
    """The word that turns the time before it; those there are have no Latin letters."""
    match = None if plain[end : end + 1].isascii() else beside.TRAIL.match(plain, end)
    return match[0] if match else ""


def _open(this: Time, way: str) -> Time:
    """All time before, after, since or until this one."""
    start, end, precision = this.span.start, this.span.end, this.span.precision
    match way:
        case "before" if start is not None:
            return replace(this, span=Interval(None, start, precision))
        case "until" if end is not None:
            return replace(this, span=Interval(None, end, precision))
        case "after" if end is not None:
            return replace(this, span=Interval(end, None, precision))
        case "since" if start is not None:
            return replace(this, span=Interval(start, None, precision))
    return this


def _offset(sentence: Sentence, this: Time, way: str) -> Time | None:
    """A time counted from this one: "two weeks before 9 June", "the Sunday after 25 May 2023"."""
    fit = _counted(sentence.plain[: this.start])
    if fit is None or this.span.start is None or this.span.end is None:
        return None
    is_before = way == "before"
    anchor = sentence.at(this.span.start if is_before else this.span.end - 1)
    n, thing = fit.said.get("n"), fit.said["thing"]
    if n and thing in almanac.UNITS:
        span = sentence.read(f"{n} {thing} {'ago' if is_before else 'from now'}", anchor)
    elif thing in almanac.NAMES:
        span = sentence.read(f"{'last' if is_before else 'next'} {thing}", anchor)
    elif almanac.UNITS[thing] == "week":
        day = sentence.at(this.span.start if is_before else this.span.end).date()
        span = sentence.days(*((day - 7 * _DAY, day) if is_before else (day, day + 7 * _DAY)))
    else:
        span = sentence.read(f"1 {thing} {'ago' if is_before else 'from now'}", anchor)
    return replace(this, start=fit.start, span=span) if span else None


def _counted(left: str) -> Fit | None:
    """What is counted at the end of a text, from the first word on that leads there: "two weeks before "."""
    starts = (word.start() for word in _BEGINNING.finditer(left, max(0, len(left) - 48)))
    fits = (_shape(template).fit(left, start, whole=True) for start in starts for template in beside.OFFSETS)
    return next(filter(None, fits), None)
