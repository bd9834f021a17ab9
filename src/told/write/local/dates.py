"""Times that a clause names, resolved against the moment it was said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from told.core.when import Interval, parse_relative, to_us
from told.write.local.tables import get_pattern
from told.write.local.value import ValueSpan

_UNTIL_WORDS = ("until", "till")
_SINCE_WORDS = ("since", "from", "starting")


@dataclass(frozen=True, slots=True)
class SpeechTime:
    """When something was said, and where clocks are read."""

    now: datetime
    zone: str = ""

    def resolve(self, expression: str) -> Interval | None:
        """The interval that words name at that moment."""
        return parse_relative(expression, now=self.now, zone=self.zone or None)


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time that was named, and the word that makes it a beginning or an end rather than the time itself."""

    interval: Interval
    marker: str
    start: int
    end: int

    @property
    def is_open_ended(self) -> bool:
        """Whether it says from when or until when, which only a state has."""
        return self.marker in (*_SINCE_WORDS, *_UNTIL_WORDS)


def match_day(text: str, start: int, end: int) -> ValueSpan | None:
    """The date that stands at a place, as it was said."""
    match = get_pattern("dates.day").match(text, start, end)
    return ValueSpan(match["value"], *match.span("value")) if match else None


def find_time(
    text: str, start: int, end: int, speech_time: SpeechTime, *, is_future: bool = False
) -> TimeMention | None:
    """The first time a stretch names; `ahead` reads a bare weekday, month or day as the next one."""
    for match in get_pattern("dates.expression").finditer(text, start, end):
        lead = get_pattern("dates.lead").match(match["date"])
        marker = match["mark"] or (lead[0].strip() if lead else "")
        expression = match["date"][lead.end() :] if lead else match["date"]
        if (interval := _resolve_expression(expression, speech_time, is_future)) is not None:
            return TimeMention(interval, marker.lower(), *match.span())
    lasting_match = get_pattern("dates.lasting").search(text, start, end)
    if lasting_match and (
        interval := speech_time.resolve(f"{lasting_match['n']} {lasting_match['unit']} ago")
    ):
        return TimeMention(interval, "since", *lasting_match.span())
    return None


def _resolve_expression(
    expression: str, speech_time: SpeechTime, is_future: bool
) -> Interval | None:
    bare = re.sub(r"^(?:in|on)\s+", "", expression, flags=re.IGNORECASE)
    if match := get_pattern("dates.ordinal").fullmatch(bare):
        return _resolve_day_of_month(int(match["day"]), speech_time, is_future)
    if " at " in expression and speech_time.resolve(expression) is None:
        return _resolve_expression(expression.partition(" at ")[0], speech_time, is_future)
    if get_pattern("dates.year").fullmatch(bare):
        return speech_time.resolve(bare)
    if not is_future or get_pattern("dates.anchored").search(expression):
        return speech_time.resolve(expression)
    if get_pattern("dates.bare").fullmatch(bare):
        return speech_time.resolve(f"next {bare}")
    interval = speech_time.resolve(expression)
    if (
        interval is None
        or interval.end is None
        or interval.end > to_us(speech_time.now)
        or not get_pattern("dates.month").search(expression)
    ):
        return interval
    years = (speech_time.resolve(f"{bare} {speech_time.now.year + offset}") for offset in (0, 1))
    return next(
        (year for year in years if year and year.end and year.end > to_us(speech_time.now)),
        interval,
    )


def _resolve_day_of_month(day: int, speech_time: SpeechTime, is_future: bool) -> Interval | None:
    """The day of this month, or of the next or the last one where that is what can be meant."""
    month = speech_time.now.year * 12 + speech_time.now.month - 1
    month += (day < speech_time.now.day) if is_future else -(day > speech_time.now.day)
    return speech_time.resolve(f"{month // 12:04d}-{month % 12 + 1:02d}-{day:02d}")


def compute_validity(time: TimeMention | None, *, is_state: bool, default: Interval) -> Interval:
    """When a claim holds: a state from the time that is named on or until it, an event at it."""
    if time is None:
        return default
    start, end = time.interval.start, time.interval.end
    if time.marker in _UNTIL_WORDS:
        return Interval(None, end, time.interval.precision) if end is not None else default
    if is_state or time.marker in _SINCE_WORDS:
        return Interval(start, None, time.interval.precision)
    return time.interval
