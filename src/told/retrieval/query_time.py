"""Find times in a query by the date templates, check them against their context, and combine them.

A wrong time hurts a search more than a missed one, so anything ambiguous (a verb, a duration, a
time relative to an undated event) is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from functools import cache, lru_cache
from itertools import chain, islice
from typing import Final

from told.retrieval.date_disambiguation import (
    PLAUSIBLE_YEARS,
    TIME_CHECKS,
    QuerySentence,
    QueryTime,
    is_free_standing,
    is_valid_in_language,
)
from told.runtime import lazy_regex
from told.text import date_lexicon, lexicon
from told.text.date_lexicon import DateMatch
from told.text.dates import PRECISIONS, Interval, to_us
from told.text.tokens import detect_language

_MAX_TIMES: Final = 32  # times read per text
_DAY: Final = timedelta(days=1)
_HOUR_US: Final = 3_600_000_000
_CYCLE_DAYS: Final = {"day": 7, "weekend": 7, "month": 366, "season": 366}
# "Last Friday" is relative to now; next to a full date it is relative to that date.
_RELATIVE_FORMS: Final = frozenset(("turn", "ago", "word", "weekday_of_week"))
_DATED_FORMS: Final = frozenset(("date", "iso", "numbered_date"))


def find_times(
    text: str, *, now: datetime, zone: str | tzinfo | None = None
) -> tuple[QueryTime, ...]:
    """Return the times mentioned in an NFC text, in order, with their positions."""
    if text.isascii() and not _SLASHED.search(text) and not date_lexicon.count_time_words(text, 1):
        return ()  # most queries mention no time; skip compiling the templates
    sentence = QuerySentence.from_text(text, now, zone, detect_language(text))
    try:
        return tuple(
            _apply_prepositions(
                sentence,
                _join_ranges(
                    sentence,
                    _merge_nested(sentence, list(islice(_iter_times(sentence), _MAX_TIMES))),
                ),
            )
        )
    except (
        ValueError,
        OverflowError,
    ):  # `now` is at the edge of the calendar
        return ()


# Matching

_WORD: Final = lazy_regex(r"[a-z]+|[0-9]+|[^\x00-\x7f]")
_TOKEN_START: Final = lazy_regex(r"(?<![a-z0-9])(?:[a-z0-9]|[^\x00-\x7f])")


@cache
def _build_starters() -> frozenset[str]:
    tables = (
        date_lexicon.NUMBER_WORDS,
        date_lexicon.UNIT_WORDS,
        date_lexicon.RELATIVE_MODIFIERS,
        date_lexicon.RELATIVE_DATE_WORDS,
        date_lexicon.CALENDAR_NAMES,
        date_lexicon.EDGE_WORDS,
        date_lexicon.ORDINAL_WORDS,
    )
    words = chain.from_iterable(map(str, table) for table in (*tables, lexicon.DATE_OPENERS))
    return frozenset(match[0] for word in words if (match := _WORD.match(word)))


@lru_cache(maxsize=256)
def _get_rules(letter: str) -> tuple[date_lexicon.DateRule, ...]:
    return tuple(rule for rule in date_lexicon.date_rules_for(letter) if rule.form in TIME_CHECKS)


@cache
def _compile_shape(template: str) -> date_lexicon.DateTemplate:
    return date_lexicon.DateTemplate.from_template(template)


def _iter_times(sentence: QuerySentence) -> Iterator[QueryTime]:
    """Iterate over the times in a sentence from left to right, longest match first."""
    end, starters = 0, _build_starters()
    for word in _WORD.finditer(sentence.plain):
        start = word.start()
        if (
            start < end
            or not (word[0] in starters or "0" <= word[0][0] <= "9")
            or not _is_token_start(sentence.plain, start)
        ):
            continue
        if mention := _match_prefixed(sentence, start) or _match_time(sentence, start):
            end = mention.end
            yield mention


def _is_token_start(plain: str, start: int) -> bool:
    preceding = plain[max(0, start - 2) : start]
    return not re.search(r"[a-z0-9]$|[0-9][.,/:-]$|[a-z]-$", preceding)


def _is_token_end(plain: str, end: int) -> bool:
    return not re.match(r"[a-z0-9]|[.,/:-][0-9]", plain[end : end + 2]) or not re.match(
        "[a-z0-9]", plain[end - 1]
    )


def _match_time(sentence: QuerySentence, start: int, *, has_lead: bool = False) -> QueryTime | None:
    """Return the longest template match at `start`, including a following part of the day."""
    if (
        mention := _match_day_range(sentence, start)
        or _match_numeric_date(sentence, start)
        or _match_relative_part(sentence, start)
    ):
        return mention
    text = sentence.plain
    fits = [
        (rule.form, fit)
        for rule in _get_rules(text[start : start + 1])
        if (fit := rule.template.match(text, start)) and _is_token_end(text, fit.end)
    ]
    if not fits:
        return _match_bare_year(sentence, start, has_lead=has_lead)
    form, fit = max(fits, key=lambda pair: pair[1].end)
    if not is_valid_in_language(sentence, fit) or not (
        TIME_CHECKS[form](sentence, fit) or (has_lead and form == "name")
    ):
        return None
    return _add_day_part(sentence, _resolve_fit(sentence, form, fit))


def _resolve_fit(sentence: QuerySentence, form: str, fit: DateMatch) -> QueryTime | None:
    slots, words = fit.slots, fit.text
    unit = date_lexicon.CALENDAR_NAMES[slots["name"]].unit if form == "name" else ""
    if form in ("date", "numbered_date") and not slots["year"]:
        unit = "month"
    if unit and (span := _resolve_ahead(sentence, form, unit, words)):
        return QueryTime(fit.start, fit.end, form, span, unit)
    span = (
        _resolve_vague(sentence, slots)
        if form == "ago" and slots["n"] in lexicon.VAGUE_COUNTS
        else sentence.parse_time(words)
    )
    if (
        form == "turn"
        and slots["turn"] == "last"
        and lexicon.ROLLING_WINDOW.search(sentence.get_text_before(fit.start))
    ):
        span = sentence.parse_time(f"past {slots['thing']}")
    return QueryTime(fit.start, fit.end, form, span, unit) if span else None


def _resolve_vague(sentence: QuerySentence, slots: Mapping[str, str]) -> Interval | None:
    """Return the span of a vague count such as "a few years ago"."""
    fewest, most = (
        sentence.parse_time(f"{count} {slots['unit']} ago")
        for count in lexicon.VAGUE_COUNTS[slots["n"]]
    )
    return _join_spans(most, fewest)


def _resolve_ahead(sentence: QuerySentence, form: str, unit: str, words: str) -> Interval | None:
    """Resolve a name or date without a year to its next occurrence, if the tense is future."""
    if not (sentence.is_future or (unit == "day" and _is_under_way(sentence))):
        return None
    if form == "name":
        return sentence.parse_time(f"next {words}")
    template = "{words} {year}" if form == "date" else "{year}年{words}"
    years = (sentence.now.year, sentence.now.year + 1)
    spans = (sentence.parse_time(template.format(words=words, year=year)) for year in years)
    return next(
        (span for span in spans if span and span.end and span.end > to_us(sentence.now)), None
    )


def _is_under_way(sentence: QuerySentence) -> bool:
    return not sentence.is_past and lexicon.PROGRESSIVE_TENSE.search(sentence.plain) is not None


def _add_day_part(sentence: QuerySentence, mention: QueryTime | None) -> QueryTime | None:
    """Extend a day by the part of the day or clock time that follows it."""
    if mention is None or mention.span.precision != "day":
        return mention
    for template in lexicon.DAY_PART_TEMPLATES:
        fit = _compile_shape(template).match(sentence.plain, mention.end)
        if fit and _is_token_end(sentence.plain, fit.end):
            day = sentence.to_local(mention.span.start or 0).date().isoformat()
            span = sentence.parse_time(f"{day} {fit.slots.get('part') or fit.slots['clock']}")
            return replace(mention, end=fit.end, span=span, unit="") if span else mention
    return mention


def _match_relative_part(sentence: QuerySentence, start: int) -> QueryTime | None:
    fit = _compile_shape(lexicon.RELATIVE_PART_TEMPLATE).match(sentence.plain, start)
    span = sentence.parse_time(fit.text) if fit and _is_token_end(sentence.plain, fit.end) else None
    return QueryTime(start, fit.end, "part", span) if fit and span else None


# Numeric dates

_ISO: Final = lazy_regex(
    r"(\d{4})([-/.])(\d{1,2})(?:\2(\d{1,2})(?:[t ]\d\d:\d\d(?::\d\d)?(?:z|[+-]\d\d:?\d\d)?)?)?"
)
_SLASHED: Final = lazy_regex(r"(\d{1,2})([/.])(\d{1,2})\2(\d{4})")
_YEAR: Final = lazy_regex(r"\d{4}")


def _match_numeric_date(sentence: QuerySentence, start: int) -> QueryTime | None:
    """Match dates like 2023-05-08 or 23.5.2023; skip them if day and month are ambiguous."""
    if not sentence.plain[start : start + 1].isdecimal():
        return None
    if (match := _ISO.match(sentence.plain, start)) and _is_token_end(sentence.plain, match.end()):
        year, _, month, day = match.groups()
        tail = sentence.plain[match.end(4) : match.end()] if day else ""
        words = f"{year}-{month:0>2}" + (f"-{day:0>2}{tail}" if day else "")
    elif (match := _SLASHED.match(sentence.plain, start)) and _is_token_end(
        sentence.plain, match.end()
    ):
        first, separator, second, year = match.groups()
        day, month = (second, first) if int(second) > 12 else (first, second)
        is_clear = (
            separator == "." or int(day) > 12 or day == month or sentence.language not in ("", "en")
        )
        words = f"{year}-{month:0>2}-{day:0>2}" if is_clear else ""
    else:
        return None
    span = sentence.parse_time(words) if int(year) in PLAUSIBLE_YEARS else None
    return QueryTime(start, match.end(), "iso", span) if span else None


def _match_day_range(sentence: QuerySentence, start: int) -> QueryTime | None:
    """Match several days of one month: "May 8-10, 2023" or "from 8 to 10 May"."""
    for template in lexicon.DAY_RANGE_TEMPLATES:
        fit = _compile_shape(template).match(sentence.plain, start)
        if fit and _is_token_end(sentence.plain, fit.end):
            slots = fit.slots
            first, last = (
                sentence.parse_time(f"{slots[d]} {slots['month']} {slots['year']}")
                for d in ("first", "last")
            )
            span = _join_spans(first, last)
            return QueryTime(start, fit.end, "days", span) if span else None
    return None


def _match_bare_year(sentence: QuerySentence, start: int, *, has_lead: bool) -> QueryTime | None:
    """Match a year that stands alone or follows a word such as "in"."""
    match = _YEAR.match(sentence.plain, start)
    if (
        not match
        or not _is_token_end(sentence.plain, match.end())
        or int(match[0]) not in PLAUSIBLE_YEARS
    ):
        return None
    is_alone = sentence.plain.strip(" ?.!") == match[0]
    has_lead = has_lead or lexicon.YEAR_CONTEXT.search(sentence.get_text_before(start)) is not None
    if not is_alone and not (has_lead and is_free_standing(sentence, match.end())):
        return None
    span = sentence.parse_time(match[0])
    return QueryTime(start, match.end(), "year", span) if span else None


# Parts of periods


def _match_prefixed(sentence: QuerySentence, start: int) -> QueryTime | None:
    """Match a part of a period: its edge, its third week, or the week that holds a day."""
    for template, resolve_part in _PART_RESOLVERS.items():
        if fit := _compile_shape(template).match(sentence.plain, start):
            period = _match_time(sentence, fit.end, has_lead=True) or _match_present_unit(
                sentence, fit.end
            )
            span = (
                resolve_part(sentence, fit, period)
                if period and is_valid_in_language(sentence, fit)
                else None
            )
            if period and span:
                return QueryTime(start, period.end, "part", span)
    return None


_GENITIVE: Final = {"jahres": "jahr", "monats": "monat"}
_UNIT: Final = lazy_regex("(?:week|month|quarter|year|jahres|monats|mes|ano|mois)(?![a-z])")


def _match_present_unit(sentence: QuerySentence, start: int) -> QueryTime | None:
    """Match the current unit, as in "the end of the year"."""
    match = _UNIT.match(sentence.plain, start)
    span = sentence.parse_time(f"this {_GENITIVE.get(match[0], match[0])}") if match else None
    return QueryTime(start, match.end(), "turn", span) if match and span else None


def _resolve_edge(sentence: QuerySentence, fit: DateMatch, period: QueryTime) -> Interval | None:
    """Return the first, middle or last third of a period; the whole of a short one."""
    if (
        fit.slots["edge"] in lexicon.EDGES_WITH_OF
        and not fit.slots["of"]
        and sentence.language not in ("fr", "de")
    ):
        return None
    if period.span.start is None or period.span.end is None:
        return None
    first, end = (sentence.to_local(us).date() for us in (period.span.start, period.span.end))
    third = (end - first) / 3
    if third < _DAY:
        return period.span
    place = date_lexicon.EDGE_WORDS[fit.slots["edge"]] * 2
    return sentence.build_day_span(
        first + third * place, first + third * (place + 1) if place < 2 else end
    )


def _resolve_nth(sentence: QuerySentence, fit: DateMatch, period: QueryTime) -> Interval | None:
    """Return the nth week, weekend, weekday, month or half of a longer period."""
    if (
        period.span.start is None
        or period.span.end is None
        or period.span.precision not in ("month", "year")
    ):
        return None
    first, end = (sentence.to_local(us).date() for us in (period.span.start, period.span.end))
    nth, thing = date_lexicon.ORDINAL_WORDS[fit.slots["nth"]], fit.slots.get("thing")
    if thing is None:
        middle = first + (end - first) / 2
        if nth == 1:
            return sentence.build_day_span(first, middle)
        return sentence.build_day_span(middle, end) if nth in (2, -1) else None
    if name := date_lexicon.CALENDAR_NAMES.get(thing):
        if name.unit not in date_lexicon.UNIT_DAYS:
            return None
        day = (
            name.resolve_start(end, -1)
            if nth < 0
            else name.resolve_start(first - _DAY, 1) + timedelta(weeks=nth - 1)
        )
        return sentence.build_day_span(day, date_lexicon.shift_date(day, name.unit, 1))
    if (unit := date_lexicon.UNIT_WORDS[thing]) in date_lexicon.UNIT_SECONDS:
        return None
    day = (
        date_lexicon.shift_date(end, unit, -1)
        if nth < 0
        else date_lexicon.shift_date(first, unit, nth - 1)
    )
    return (
        sentence.build_day_span(day, date_lexicon.shift_date(day, unit, 1))
        if first <= day < end
        else None
    )


def _resolve_week(sentence: QuerySentence, fit: DateMatch, period: QueryTime) -> Interval | None:
    if period.span.precision != "day" or period.span.start is None:
        return None
    if fit.slots["thing"] == "week":
        return sentence.parse_time("this week", sentence.to_local(period.span.start))
    return sentence.parse_time("this weekend", sentence.to_local(period.span.start))


_PART_RESOLVERS: Final[
    Mapping[str, Callable[[QuerySentence, DateMatch, QueryTime], Interval | None]]
] = {
    lexicon.NTH_HALF_TEMPLATE: _resolve_nth,
    lexicon.NTH_TEMPLATE: _resolve_nth,
    lexicon.WEEK_OF_TEMPLATE: _resolve_week,
    lexicon.EDGE_TEMPLATE: _resolve_edge,
}


# Combining times


def _join_spans(first: Interval | None, last: Interval | None) -> Interval | None:
    """Return the span from the start of `first` to the end of `last`."""
    if (
        first is None
        or last is None
        or first.start is None
        or last.end is None
        or first.start >= last.end
    ):
        return None
    return Interval(
        first.start, last.end, min(first.precision, last.precision, key=PRECISIONS.index)
    )


def _merge_nested(sentence: QuerySentence, mentions: list[QueryTime]) -> list[QueryTime]:
    """Merge neighbours that qualify each other: "in May last year", "Sunday, 8 May 2023"."""
    kept: list[QueryTime] = []
    for mention in mentions:
        previous = kept[-1] if kept else None
        if previous and lexicon.NESTED_JOIN.fullmatch(sentence.plain, previous.end, mention.start):
            kept[-1:] = _merge_adjacent(sentence, previous, mention)
        else:
            kept.append(mention)
    return kept


def _merge_adjacent(
    sentence: QuerySentence, first: QueryTime, second: QueryTime
) -> list[QueryTime]:
    if (
        first.form in _RELATIVE_FORMS
        and second.span.precision == "day"
        and second.form in _DATED_FORMS
    ):
        words = sentence.plain[first.start : first.end]
        span = sentence.parse_time(words, sentence.to_local(second.span.start or 0))
        return [replace(first, end=second.end, span=span)] if span else [second]
    return (
        [_place_within(sentence, first, second)]
        if first.is_loose or second.is_loose
        else [first, second]
    )


def _place_within(sentence: QuerySentence, first: QueryTime, second: QueryTime) -> QueryTime:
    fine, coarse = (
        (first, second)
        if _get_length(first) <= _get_length(second) and first.is_loose
        else (second, first)
    )
    merged = replace(coarse, start=first.start, end=second.end)
    if (
        not fine.is_loose
        or coarse.span.end is None
        or _get_length(coarse) > _CYCLE_DAYS[fine.unit] * 24 * _HOUR_US
    ):
        return merged
    words = sentence.plain[fine.start : fine.end]
    span = sentence.parse_time(words, sentence.to_local(coarse.span.end - 1))
    is_inside = span is not None and span.overlaps(coarse.span)
    return replace(merged, span=span, unit=coarse.unit) if span and is_inside else merged


def _get_length(mention: QueryTime) -> int:
    span = mention.span
    return 10**18 if span.start is None or span.end is None else span.end - span.start


def _join_ranges(sentence: QuerySentence, mentions: list[QueryTime]) -> list[QueryTime]:
    """Join the two ends of a range: "between March and May 2023".

    A loose first end is its last occurrence before the second.
    """
    kept: list[QueryTime] = []
    for mention in mentions:
        previous = kept[-1] if kept else None
        kept[-1:] = (
            [range_]
            if previous and (range_ := _match_range(sentence, previous, mention))
            else [*kept[-1:], mention]
        )
    return kept


def _match_range(sentence: QuerySentence, first: QueryTime, last: QueryTime) -> QueryTime | None:
    match = lexicon.RANGE_JOIN.fullmatch(sentence.plain, first.end, last.start)
    left = sentence.get_text_before(first.start)
    if match is None or last.span.start is None:
        return None
    opener = (
        lexicon.BETWEEN_PREFIX if match["join"] in lexicon.BETWEEN_JOINS else lexicon.FROM_PREFIX
    )
    opener_match = opener.search(left)
    if not opener_match and (match["join"] in lexicon.BETWEEN_JOINS or first.unit == "day"):
        return None
    words = sentence.plain[first.start : first.end]
    first_span = (
        sentence.parse_time(words, sentence.to_local(last.span.start))
        if first.is_loose
        else first.span
    )
    span = _join_spans(first_span, last.span)
    return QueryTime(first.start, last.end, "range", span) if span else None


def _apply_prepositions(sentence: QuerySentence, mentions: list[QueryTime]) -> Iterator[QueryTime]:
    """Apply words around a time, such as "since", "until" or "the week before"."""
    for mention in mentions:
        if mention.form == "range":
            yield mention
        elif match := lexicon.PREPOSITION_PATTERN.search(sentence.get_text_before(mention.start)):
            direction = lexicon.PREPOSITIONS[match["lead"]]
            yield (
                direction in ("before", "after") and _resolve_offset(sentence, mention, direction)
            ) or _open_span(mention, direction)
        elif trail := _match_trailing_word(sentence.plain, mention.end):
            yield _open_span(mention, lexicon.POSTPOSITIONS[trail])
        else:
            yield mention


def _match_trailing_word(plain: str, end: int) -> str:
    """Return a postposition that follows the time; all known ones are non-Latin."""
    match = (
        None if plain[end : end + 1].isascii() else lexicon.POSTPOSITION_PATTERN.match(plain, end)
    )
    return match[0] if match else ""


def _open_span(mention: QueryTime, direction: str) -> QueryTime:
    """Return all time before, after, since or until a mention."""
    start, end, precision = mention.span.start, mention.span.end, mention.span.precision
    match direction:
        case "before" if start is not None:
            return replace(mention, span=Interval(None, start, precision))
        case "until" if end is not None:
            return replace(mention, span=Interval(None, end, precision))
        case "after" if end is not None:
            return replace(mention, span=Interval(end, None, precision))
        case "since" if start is not None:
            return replace(mention, span=Interval(start, None, precision))
    return mention


def _resolve_offset(
    sentence: QuerySentence, mention: QueryTime, direction: str
) -> QueryTime | None:
    """Resolve an offset such as "two weeks before 9 June" or "the Sunday after 25 May 2023"."""
    fit = _match_count(sentence.plain[: mention.start])
    if fit is None or mention.span.start is None or mention.span.end is None:
        return None
    is_before = direction == "before"
    anchor = sentence.to_local(mention.span.start if is_before else mention.span.end - 1)
    n, thing = fit.slots.get("n"), fit.slots["thing"]
    if n and thing in date_lexicon.UNIT_WORDS:
        span = sentence.parse_time(f"{n} {thing} {'ago' if is_before else 'from now'}", anchor)
    elif thing in date_lexicon.CALENDAR_NAMES:
        span = sentence.parse_time(f"{'last' if is_before else 'next'} {thing}", anchor)
    elif date_lexicon.UNIT_WORDS[thing] == "week":
        day = sentence.to_local(mention.span.start if is_before else mention.span.end).date()
        span = sentence.build_day_span(
            *((day - 7 * _DAY, day) if is_before else (day, day + 7 * _DAY))
        )
    else:
        span = sentence.parse_time(f"1 {thing} {'ago' if is_before else 'from now'}", anchor)
    return replace(mention, start=fit.start, span=span) if span else None


def _match_count(left: str) -> DateMatch | None:
    """Match the counted unit at the end of a text, as in "two weeks before "."""
    starts = (word.start() for word in _TOKEN_START.finditer(left, max(0, len(left) - 48)))
    fits = (
        _compile_shape(template).match(left, start, full=True)
        for start in starts
        for template in lexicon.OFFSET_TEMPLATES
    )
    return next(filter(None, fits), None)
