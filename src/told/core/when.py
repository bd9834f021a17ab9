"""Instants and intervals: when something holds, and how people say it.

An instant is a count of microseconds since 1970 in UTC; a `datetime` at the edges is always aware. An interval is
half-open and remembers its precision, so that "1979-10" never pretends to be a day. The words are data in `almanac`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache, partial
from typing import Final

from told.core import almanac, forms
from told.core.errors import TimeError
from told.core.lazy import regex

SECOND: Final = 1_000_000
_UNIT_US: Final = {"instant": 1, "minute": 60 * SECOND, "hour": 3600 * SECOND}
PRECISIONS: Final = ("instant", "minute", "hour", "day", "month", "year", "open")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MILLISECONDS_FROM: Final = 10**11
_NEVER: Final = 10**18
_NAIVE: Final = "Add an offset, such as 2026-03-01T09:00:00+01:00 or a final Z, or set zone='Europe/Berlin'."
_LONGEST: Final = 80
_EXAMPLES: Final = "Try '2026-03-01', 'last tuesday' or '3 days ago'."
# Added to a local midnight seen in UTC, this lands on the date that was meant, for every zone from -10:30 to +13:30.
_WELL_INTO_THE_DAY: Final = 13 * 3600 * SECOND + 1800 * SECOND
_DAY: Final = 24 * 3600 * SECOND


# ------------------------------------------------------------------------------------------------------------- instants


def to_us(moment: datetime) -> int:
    """The microseconds since 1970 of an aware datetime."""
    if moment.tzinfo is None:
        raise TimeError(f"{moment.isoformat()} has no time zone.", hint=_NAIVE)
    return (moment - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """The UTC datetime of an instant."""
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        raise TimeError(f"{us} microseconds lie outside the years 1 to 9999.") from None


@lru_cache(maxsize=1024)
def iso(us: int) -> str:
    """The instant as `2026-03-01T09:00:00.000000+00:00`; the order of these strings is the order of time."""
    return from_us(us).isoformat(timespec="microseconds")


def by_clock(us: int, zone: str | tzinfo | None = None) -> datetime:
    """The instant by the clocks of a zone; UTC without one, and at the ends of the calendar, where clocks run out."""
    moment = from_us(us)
    try:
        return moment.astimezone(_zone(zone)) if zone else moment
    except OverflowError:
        return moment


def instant(
    value: str | float | date | Interval, *, zone: str | tzinfo | None = None, now: datetime | None = None
) -> int:
    """The instant a value names: ISO 8601, a datetime, epoch seconds or milliseconds; a date stands for its start."""
    start = interval(value, zone=zone, now=now).start
    if start is None:
        raise TimeError(f"{value!r} has no beginning.", hint="Name one instant.")
    return start


# ------------------------------------------------------------------------------------------------------------ intervals


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open stretch of time in microseconds, `None` where it is unbounded, with the precision it was given in."""

    start: int | None
    end: int | None
    precision: str

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise TimeError(f"{self.precision!r} is no precision.", hint=f"Use one of {', '.join(PRECISIONS)}.")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise TimeError("The interval ends before it begins.", hint="Write the earlier time first.")

    def contains(self, us: int) -> bool:
        """Whether the instant lies inside."""
        return (self.start is None or self.start <= us) and (self.end is None or us < self.end)

    def overlaps(self, other: Interval) -> bool:
        """Whether some instant lies inside both."""
        return (self.start is None or other.end is None or self.start < other.end) and (
            other.start is None or self.end is None or other.start < self.end
        )

    def as_json(self) -> dict[str, str | None]:
        """The interval as one JSON object."""
        start = None if self.start is None else iso(self.start)
        end = None if self.end is None else iso(self.end)
        return {"start": start, "end": end, "precision": self.precision}

    @classmethod
    def from_json(cls, body: Mapping[str, str | None]) -> Interval:
        """The interval that `as_json` wrote."""
        start, end = body.get("start"), body.get("end")
        precision = body.get("precision") or "instant"
        return cls(None if start is None else instant(start), None if end is None else instant(end), precision)

    def __str__(self) -> str:
        """The interval at its precision; `interval` reads it back."""
        if self.precision in _UNIT_US or self.precision == "open":
            return self._as_times()
        width = _DATE_WIDTH[self.precision]
        first = ".." if self.start is None else _date_of(self.start)[:width]
        last = ".." if self.end is None else _date_of(self.end - _DAY)[:width]
        is_unit = first == last != ".." or (self.end is None and first == "9999-12-31"[:width])
        return first if is_unit else f"{first}/{last}"

    def _as_times(self) -> str:
        first = ".." if self.start is None else _time_of(self.start, self.precision)
        if self.start is not None and self.end == self.start + _UNIT_US.get(self.precision, 0):
            return first
        return f"{first}/{'..' if self.end is None else _time_of(self.end, self.precision)}"


ALWAYS: Final = Interval(None, None, "open")


def _date_of(us: int) -> str:
    return iso(min(max(us + _WELL_INTO_THE_DAY, _FIRST), _LAST))[:10]


def _time_of(us: int, precision: str) -> str:
    written = iso(min(max(us, _FIRST), _LAST))
    return written[: _TIME_WIDTH[precision]] + "Z" if precision in _TIME_WIDTH else written


def interval(
    value: str | float | date | Interval, *, zone: str | tzinfo | None = None, now: datetime | None = None
) -> Interval:
    """The interval a value names; a partial date keeps its precision.

    `A/B` takes in all of B if that is a day, a month or a year, and ends at B if that is a time; `..` is an open side.
    """
    match value:
        case Interval():
            return value
        case bool():
            raise TimeError("A truth value is no time.")
        case int() | float():
            return _exact(_from_epoch(value))
        case datetime():
            return _exact(_located(value, _zone(zone)))
        case date():
            return _dates(value, "day", _zone(zone) or UTC)
        case str():
            return _from_text(value, zone, now)
    raise TimeError(f"{type(value).__name__} is no time.")


def _from_text(text: str, zone: str | tzinfo | None, now: datetime | None) -> Interval:
    if found := _iso_interval(text.strip(), _zone(zone)):
        return found
    if now is not None and (found := relative(text, now=now, zone=zone)):
        return found
    raise TimeError(f"{_quoted(text)} cannot be read as a time.")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "\u2026")


def _exact(us: int) -> Interval:
    from_us(us)
    return Interval(us, us + 1, "instant")


def _from_epoch(value: float) -> int:
    if not abs(value) < _NEVER:  # written so that NaN is refused too
        raise TimeError("The number is too large to be a time.", hint="Pass seconds or milliseconds since 1970.")
    unit = 1000 if abs(value) > _MILLISECONDS_FROM else SECOND
    return value * unit if isinstance(value, int) else round(value * unit)


def _located(moment: datetime, tz: tzinfo | None) -> int:
    """The instant of a datetime, whose wall clock is that of the zone if it has none of its own."""
    return to_us(moment if moment.tzinfo or tz is None else moment.replace(tzinfo=tz))


@lru_cache(maxsize=64)
def _named_zone(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z"):
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # it reads the build's configuration: not at import

    try:
        return datetime.strptime(name, "%z").tzinfo or UTC if name[:1] in ("+", "-") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise TimeError(f"{_quoted(name)} is no time zone.", hint="Use one such as Europe/Berlin or +01:00.") from None


def _zone(zone: str | tzinfo | None) -> tzinfo | None:
    return _named_zone(zone) if isinstance(zone, str) else zone


# ------------------------------------------------------------------------------------------------------------- ISO 8601

_DATE_WIDTH: Final = {"year": 4, "month": 7, "day": 10}
_TIME_WIDTH: Final = {"hour": 13, "minute": 16}
_ISO_DATE: Final = regex(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?|(\d{4})(\d\d)(\d\d)", re.ASCII)
_ISO_TIME: Final = regex(
    r"(\d{4}-?\d\d-?\d\d)[T ](\d\d)(?::?(\d\d)(?::?(\d\d(?:[.,]\d{1,9})?))?)? ?(Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH_TEXT: Final = regex(r"-?\d{9,16}(\.\d{1,9})?", re.ASCII)


def _iso_interval(text: str, tz: tzinfo | None) -> Interval | None:
    """What an ISO 8601 text says, `None` if it is not one, and an error if it names no real date."""
    try:
        if "/" not in text:
            return _iso_point(text, tz)
        sides = [side.strip() for side in text.split("/", 1)]
        first, last = (ALWAYS if side in ("..", "") else _iso_point(side, tz) for side in sides)
    except TimeError:
        raise
    except (ValueError, OverflowError) as problem:
        raise TimeError(f"{_quoted(text)} is no time: {problem}.") from None
    if first is None or last is None:
        return None
    precision = min(first.precision, last.precision, key=PRECISIONS.index)
    return Interval(first.start, last.start if last.precision in _UNIT_US else last.end, precision)


def _iso_point(text: str, tz: tzinfo | None) -> Interval | None:
    if not text[:1].isdecimal() and text[:1] != "-":
        return None
    if match := _ISO_DATE.fullmatch(text):
        year, month, day = (match[1] or match[4], match[2] or match[5], match[3] or match[6])
        precision = "day" if day else "month" if month else "year"
        return _dates(date(int(year), int(month or 1), int(day or 1)), precision, tz or UTC)
    if match := _ISO_TIME.fullmatch(text):
        day, hour, minute, second, offset = match.groups(default="")
        written = f"{day}T{hour}{minute or '00'}{second or '00'}{offset.upper()}"
        return _timed(_located(datetime.fromisoformat(written.replace("-", "", day.count("-"))), tz), minute, second)
    if _EPOCH_TEXT.fullmatch(text):
        return _exact(_from_epoch(float(text) if "." in text else int(text)))
    return None


def _timed(start: int, minute: str, second: str) -> Interval:
    precision = "instant" if second else "minute" if minute else "hour"
    from_us(start)
    return Interval(start, start + _UNIT_US[precision], precision)


# --------------------------------------------------------------------------------------------------- calendar intervals

_PRECISION: Final = {
    "second": "instant",
    "week": "day",
    "weekend": "day",
    "quarter": "month",
    "season": "month",
    "decade": "year",
}


def _dates(first: date, unit: str, tz: tzinfo) -> Interval:
    """One calendar unit from its first day on, as the clocks of a zone count it."""
    start = _midnight(first, tz)
    from_us(start)
    try:
        end: int | None = _midnight(almanac.moved(first, unit, 1), tz)
    except (ValueError, OverflowError):  # the unit reaches the end of the calendar
        end = None
    if start == end:
        raise TimeError(f"There was no {first} in {tz}: clocks were put past it.", hint="Name the day before or after.")
    return Interval(start, end, _PRECISION.get(unit, unit))


def _midnight(day: date, tz: tzinfo) -> int:
    return to_us(datetime.combine(day, time(), tz))


def _stepped(now: datetime, unit: str, count: int) -> datetime:
    """The instant so many units from now: elapsed time up to hours, the same time by the wall clock from days on."""
    if unit in almanac.SECONDS_IN:
        return (now.astimezone(UTC) + timedelta(seconds=count * almanac.SECONDS_IN[unit])).astimezone(now.tzinfo)
    return datetime.combine(almanac.moved(now.date(), unit, count), now.timetz())


def _around(moment: datetime, unit: str) -> Interval:
    """The calendar unit that holds the moment."""
    if unit in almanac.SECONDS_IN:
        precision = _PRECISION.get(unit, unit)
        size = _UNIT_US[precision]
        start = to_us(moment) // size * size
        return Interval(start, start + size, precision)
    return _dates(almanac.first_of(moment.date(), unit), unit, _tz(moment))


# ------------------------------------------------------------------------------------------------------- times in words


def moment(text: str, *, now: datetime, zone: str | tzinfo | None = None) -> int:
    """The instant to read a state at: the end of the day, month or year that is named, or the exact time if one is."""
    try:
        reading = _read(almanac.plain(text), local(now, zone), _zone(zone))
    except TimeError:
        raise
    except (ValueError, OverflowError):
        raise _unknown(text) from None
    if reading is None:
        raise _unknown(text)
    return reading.at


def relative(text: str, *, now: datetime, zone: str | tzinfo | None = None) -> Interval | None:
    """The interval an expression such as "last tuesday" or "vor drei Tagen" names, `None` if it is not understood."""
    here, tz = local(now, zone), _zone(zone)
    try:
        reading = _read(almanac.plain(text), here, tz)
    except (ValueError, OverflowError):
        return None
    return reading.interval if reading else None


def _unknown(text: str) -> TimeError:
    return TimeError(f"{_quoted(text)} is not understood as a time.", hint=_EXAMPLES)


def local(now: datetime, zone: str | tzinfo | None) -> datetime:
    """The same moment by the clock of a zone, if one is given and its clocks reach that far."""
    if now.tzinfo is None:
        raise TimeError("`now` has no time zone.", hint=_NAIVE)
    return by_clock(to_us(now), _zone(zone) or now.tzinfo)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What an expression says: the interval, and the instant for reading a state as of then."""

    interval: Interval
    at: int


def _whole(span: Interval) -> _Reading:
    """A span to its end; one without an end reaches that of the calendar."""
    return _Reading(span, _LAST if span.end is None else span.end - 1)


def _unit(day: date, unit: str, now: datetime) -> _Reading:
    return _whole(_dates(day, unit, _tz(now)))


def _tz(now: datetime) -> tzinfo:
    return now.tzinfo or UTC


def _read(text: str, now: datetime, zone: tzinfo | None) -> _Reading | None:
    """The reading of a plain text by the first form that fits it entirely and makes sense."""
    if len(text) > _LONGEST:
        return None
    if span := _iso_interval(text, zone):
        if span.precision in _UNIT_US and "/" not in text and span.start is not None:
            return _Reading(span, span.start)
        return _Reading(span, to_us(now)) if text.endswith(("/", "/..")) else _whole(span)
    readings = (_READERS[form](said, now) for form, said in forms.fits(text))
    return next((reading for reading in readings if reading), None)


_Said = Mapping[str, str]


def _read_now(_: _Said, now: datetime) -> _Reading:
    return _Reading(_exact(to_us(now)), to_us(now))


def _read_word(said: _Said, now: datetime) -> _Reading:
    unit, count = almanac.WORDS[said["word"]]
    return _whole(_around(_stepped(now, unit, count), unit))


def _read_ago(said: _Said, now: datetime, sign: int = -1) -> _Reading:
    unit = almanac.UNITS[said["unit"]]
    at = _stepped(now, unit, sign * almanac.number(said["n"]))
    return _Reading(_around(at, unit), to_us(at))


def _read_window(said: _Said, now: datetime) -> _Reading:
    start = _stepped(now, almanac.UNITS[said["unit"]], -almanac.number(said.get("n", "1")))
    return _Reading(Interval(to_us(start), to_us(now), "instant"), to_us(now))


def _read_turn(said: _Said, now: datetime) -> _Reading:
    thing, turn = said["thing"], almanac.TURNS[said["turn"]]
    if name := almanac.NAMES.get(thing):
        return _unit(name.chosen(now.date(), turn), name.unit, now)
    return _whole(_around(_stepped(now, almanac.UNITS[thing], turn), almanac.UNITS[thing]))


def _read_name(said: _Said, now: datetime) -> _Reading:
    name = almanac.NAMES[said["name"]]
    return _unit(name.chosen(now.date(), None), name.unit, now)


def _read_weekday_of_week(said: _Said, now: datetime) -> _Reading:
    name = almanac.NAMES[said["weekday"]]
    return _unit(name.first(now.date(), almanac.TURNS[said["turn"]]), name.unit, now)


def _read_name_of_year(said: _Said, now: datetime) -> _Reading:
    name = almanac.NAMES[said["yearly"]]
    return _unit(date(int(said["year"]), name.place, 1), name.unit, now)


def _read_month_of_year(said: _Said, now: datetime) -> _Reading:
    return _unit(date(int(said["year"]), int(said["digits"]), 1), "month", now)


def _read_date(said: _Said, now: datetime) -> _Reading:
    return _day_of_year(said["year"], almanac.NAMES[said["month"]].place, int(re.sub(r"\D", "", said["day"])), now)


def _read_numbered_date(said: _Said, now: datetime) -> _Reading:
    return _day_of_year(said["year"], int(said["digits"]), int(said["numbered"]), now)


def _day_of_year(year: str, month: int, day: int, now: datetime) -> _Reading:
    """That day of the year, or the last one that has come if no year is said."""
    if year:
        return _unit(date(int(year), month, day), "day", now)
    has_come = (month, day) <= (now.month, now.day)
    return _unit(date(now.year if has_come else now.year - 1, month, day), "day", now)


def _read_years(said: _Said, now: datetime, unit: str) -> _Reading:
    return _unit(date(int(said[unit]), 1, 1), unit, now)


def _read_edge(said: _Said, now: datetime) -> _Reading | None:
    """The first, middle or last day of a period; its beginning, as a moment, is the instant it begins."""
    period = _read(said["rest"], now, now.tzinfo) or _read(f"this {said['rest']}", now, now.tzinfo)
    if period is None or period.interval.start is None or period.interval.end is None:
        return None
    start, end = period.interval.start, period.interval.end
    share = almanac.EDGES[said["edge"]]
    day = _around(from_us(start + int((end - 1 - start) * share)).astimezone(now.tzinfo), "day")
    return _Reading(day, start) if share == 0 else _whole(day)


def _read_clock(said: _Said, now: datetime) -> _Reading | None:
    """A time of day, on the day named beside it."""
    if (day := _day_named(said["rest"], now)) is None:
        return None
    at = to_us(datetime.combine(day, almanac.time_of_day(said["clock"]), now.tzinfo))
    return _Reading(Interval(at, at + _UNIT_US["minute"], "minute"), at)


def _read_part(said: _Said, now: datetime) -> _Reading | None:
    """A part of the day named beside it; "last night" began yesterday."""
    if (day := _day_named({"last": "yesterday", "this": "today"}.get(said["rest"], said["rest"]), now)) is None:
        return None
    first, last = almanac.PARTS[said["part"]]
    start = to_us(datetime.combine(day, time(first), now.tzinfo))
    return _whole(Interval(start, start + (last - first) * _UNIT_US["hour"], "hour"))


def _day_named(text: str, now: datetime) -> date | None:
    day = _read(text, now, now.tzinfo)
    if day is None or day.interval.precision != "day" or day.interval.start is None:
        return None
    return from_us(day.interval.start).astimezone(now.tzinfo).date()


def _read_inner(said: _Said, now: datetime) -> _Reading | None:
    return _read(said["rest"], now, now.tzinfo)


_READERS: Final[Mapping[str, Callable[[_Said, datetime], _Reading | None]]] = {
    "now": _read_now, "word": _read_word, "ago": _read_ago, "ahead": partial(_read_ago, sign=1), "window": _read_window,
    "weekday_of_week": _read_weekday_of_week, "turn": _read_turn, "name": _read_name,
    "name_of_year": _read_name_of_year, "month_of_year": _read_month_of_year, "date": _read_date,
    "numbered_date": _read_numbered_date, "year": partial(_read_years, unit="year"),
    "decade": partial(_read_years, unit="decade"), "edge": _read_edge, "clock": _read_clock, "part": _read_part,
    "inner": _read_inner,
}  # fmt: skip
