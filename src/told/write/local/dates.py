"""Times that a clause names, resolved against the moment it was said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from told.core.when import Interval, relative, to_us
from told.write.local.tables import pattern
from told.write.local.value import Value

_UNTIL = ("until", "till")
_SINCE = ("since", "from", "starting")


@dataclass(frozen=True, slots=True)
class Clock:
    """When something was said, and where clocks are read."""

    now: datetime
    zone: str = ""

    def read(self, words: str) -> Interval | None:
        """The interval that words name at that moment."""
        return relative(words, now=self.now, zone=self.zone or None)


@dataclass(frozen=True, slots=True)
class Time:
    """A time that was named, and the word that makes it a beginning or an end rather than the time itself."""

    interval: Interval
    mark: str
    start: int
    end: int

    @property
    def lasts(self) -> bool:
        """Whether it says from when or until when, which only a state has."""
        return self.mark in (*_SINCE, *_UNTIL)


def day_at(text: str, start: int, end: int) -> Value | None:
    """The date that stands at a place, as it was said."""
    found = pattern("dates.day").match(text, start, end)
    return Value(found["value"], *found.span("value")) if found else None


def named(text: str, start: int, end: int, clock: Clock, *, ahead: bool = False) -> Time | None:
    """The first time a stretch names; `ahead` reads a bare weekday, month or day as the next one."""
    for found in pattern("dates.expression").finditer(text, start, end):
        lead = pattern("dates.lead").match(found["date"])
        mark = found["mark"] or (lead[0].strip() if lead else "")
        said = found["date"][lead.end() :] if lead else found["date"]
        if (span := _resolved(said, clock, ahead)) is not None:
            return Time(span, mark.lower(), *found.span())
    lasting = pattern("dates.lasting").search(text, start, end)
    if lasting and (span := clock.read(f"{lasting['n']} {lasting['unit']} ago")):
        return Time(span, "since", *lasting.span())
    return None


def _resolved(said: str, clock: Clock, ahead: bool) -> Interval | None:
    bare = re.sub(r"^(?:in|on)\s+", "", said, flags=re.IGNORECASE)
    if found := pattern("dates.ordinal").fullmatch(bare):
        return _day_of_month(int(found["day"]), clock, ahead)
    if " at " in said and clock.read(said) is None:
        return _resolved(said.partition(" at ")[0], clock, ahead)
    if pattern("dates.year").fullmatch(bare):
        return clock.read(bare)
    if not ahead or pattern("dates.anchored").search(said):
        return clock.read(said)
    if pattern("dates.bare").fullmatch(bare):
        return clock.read(f"next {bare}")
    span = clock.read(said)
    if span is None or span.end is None or span.end > to_us(clock.now) or not pattern("dates.month").search(said):
        return span
    years = (clock.read(f"{bare} {clock.now.year + more}") for more in (0, 1))
    return next((year for year in years if year and year.end and year.end > to_us(clock.now)), span)


def _day_of_month(day: int, clock: Clock, ahead: bool) -> Interval | None:
    """The day of this month, or of the next or the last one where that is what can be meant."""
    month = clock.now.year * 12 + clock.now.month - 1
    month += (day < clock.now.day) if ahead else -(day > clock.now.day)
    return clock.read(f"{month // 12:04d}-{month % 12 + 1:02d}-{day:02d}")


def bearing(time: Time | None, *, state: bool, default: Interval) -> Interval:
    """When a claim holds: a state from the time that is named on or until it, an event at it."""
    if time is None:
        return default
    start, end = time.interval.start, time.interval.end
    if time.mark in _UNTIL:
        return Interval(None, end, time.interval.precision) if end is not None else default
    if state or time.mark in _SINCE:
        return Interval(start, None, time.interval.precision)
    return time.interval
