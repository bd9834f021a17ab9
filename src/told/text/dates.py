"""Instants, intervals and parsing of dates in ISO 8601 and in words.

An instant is a count of microseconds since 1970 in UTC; datetimes at the API are always aware. An
interval is half-open and keeps its precision, so "1979-10" is never treated as a day. The words are
data in `date_lexicon`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache, partial
from typing import Final

from told.errors import TimeError
from told.runtime import lazy_regex
from told.text import date_lexicon

SECOND_US: Final = 1_000_000
_UNIT_US: Final = {"instant": 1, "minute": 60 * SECOND_US, "hour": 3600 * SECOND_US}
PRECISIONS: Final = ("instant", "minute", "hour", "day", "month", "year", "open")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MIN_US: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MAX_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MILLISECONDS_FROM: Final = 10**11
_MAX_EPOCH: Final = 10**18
_NAIVE_HINT: Final = (
    "Add an offset, such as 2026-03-01T09:00:00+01:00 or a final Z, or set zone='Europe/Berlin'."
)
_MAX_PHRASE_LENGTH: Final = 80
_EXAMPLES_HINT: Final = "Try '2026-03-01', 'last tuesday' or '3 days ago'."
# Added to a local midnight in UTC, this gives the intended date for zones -10:30 to +13:30.
_MIDDAY_OFFSET_US: Final = 13 * 3600 * SECOND_US + 1800 * SECOND_US
_DAY_US: Final = 24 * 3600 * SECOND_US


# Instants


def to_us(moment: datetime) -> int:
    """Return an aware datetime as microseconds since 1970."""
    if moment.tzinfo is None:
        raise TimeError(f"{moment.isoformat()} has no time zone.", hint=_NAIVE_HINT)
    return (moment - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """Return the UTC datetime of an instant."""
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        raise TimeError(f"{us} microseconds lie outside the years 1 to 9999.") from None


@lru_cache(maxsize=1024)
def format_iso(us: int) -> str:
    """Format an instant as `2026-03-01T09:00:00.000000+00:00`, which sorts by time."""
    return from_us(us).isoformat(timespec="microseconds")


def to_zone(us: int, zone: str | tzinfo | None = None) -> datetime:
    """Return an instant in a zone; UTC without one or at the ends of the calendar."""
    moment = from_us(us)
    try:
        return moment.astimezone(_resolve_zone(zone)) if zone else moment
    except OverflowError:
        return moment


def parse_instant(
    value: str | float | date | Interval,
    *,
    zone: str | tzinfo | None = None,
    now: datetime | None = None,
) -> int:
    """Parse an instant: ISO 8601, a datetime, or epoch seconds or milliseconds.

    A date is the instant it begins.
    """
    start = parse_interval(value, zone=zone, now=now).start
    if start is None:
        raise TimeError(f"{value!r} has no start.", hint="Name one instant.")
    return start


# Intervals


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open interval in microseconds, None where unbounded, with its precision."""

    start: int | None
    end: int | None
    precision: str

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise TimeError(
                f"{self.precision!r} is not a precision.",
                hint=f"Use one of {', '.join(PRECISIONS)}.",
            )
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise TimeError(
                "The interval ends before it starts.", hint="Write the earlier time first."
            )

    def contains(self, us: int) -> bool:
        """Return True if the instant is inside."""
        return (self.start is None or self.start <= us) and (self.end is None or us < self.end)

    def overlaps(self, other: Interval) -> bool:
        """Return True if both intervals share an instant."""
        return (self.start is None or other.end is None or self.start < other.end) and (
            other.start is None or self.end is None or other.start < self.end
        )

    def as_json(self) -> dict[str, str | None]:
        """Return the interval as a JSON object."""
        start = None if self.start is None else format_iso(self.start)
        end = None if self.end is None else format_iso(self.end)
        return {"start": start, "end": end, "precision": self.precision}

    @classmethod
    def from_json(cls, body: Mapping[str, str | None]) -> Interval:
        """Parse the output of `as_json`."""
        start, end = body.get("start"), body.get("end")
        precision = body.get("precision") or "instant"
        return cls(
            None if start is None else parse_instant(start),
            None if end is None else parse_instant(end),
            precision,
        )

    def __str__(self) -> str:
        """Format the interval at its precision; `parse_interval` parses it."""
        if self.precision in _UNIT_US or self.precision == "open":
            return self._format_times()
        width = _DATE_WIDTH[self.precision]
        first = ".." if self.start is None else _format_date(self.start)[:width]
        last = ".." if self.end is None else _format_date(self.end - _DAY_US)[:width]
        is_unit = first == last != ".." or (self.end is None and first == "9999-12-31"[:width])
        return first if is_unit else f"{first}/{last}"

    def _format_times(self) -> str:
        first = ".." if self.start is None else _format_time(self.start, self.precision)
        if self.start is not None and self.end == self.start + _UNIT_US.get(self.precision, 0):
            return first
        return f"{first}/{'..' if self.end is None else _format_time(self.end, self.precision)}"


ALWAYS: Final = Interval(None, None, "open")


def _format_date(us: int) -> str:
    return format_iso(min(max(us + _MIDDAY_OFFSET_US, _MIN_US), _MAX_US))[:10]


def _format_time(us: int, precision: str) -> str:
    written = format_iso(min(max(us, _MIN_US), _MAX_US))
    return written[: _TIME_WIDTH[precision]] + "Z" if precision in _TIME_WIDTH else written


def parse_interval(
    value: str | float | date | Interval,
    *,
    zone: str | tzinfo | None = None,
    now: datetime | None = None,
) -> Interval:
    """Parse an interval; a partial date keeps its precision.

    `A/B` includes all of B if B is a day, month or year, and ends at B if it is a time; `..` is an
    open side.
    """
    match value:
        case Interval():
            return value
        case bool():
            raise TimeError("A boolean is not a time.")
        case int() | float():
            return _instant_interval(_epoch_to_us(value))
        case datetime():
            return _instant_interval(_to_us_in_zone(value, _resolve_zone(zone)))
        case date():
            return _calendar_interval(value, "day", _resolve_zone(zone) or UTC)
        case str():
            return _parse_interval_text(value, zone, now)
    raise TimeError(f"{type(value).__name__} is not a time.")


def _parse_interval_text(text: str, zone: str | tzinfo | None, now: datetime | None) -> Interval:
    if parsed := _parse_iso_interval(text.strip(), _resolve_zone(zone)):
        return parsed
    if now is not None and (parsed := parse_relative(text, now=now, zone=zone)):
        return parsed
    raise TimeError(f"{_quote(text)} cannot be parsed as a time.")


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "\u2026")


def _instant_interval(us: int) -> Interval:
    from_us(us)
    return Interval(us, us + 1, "instant")


def _epoch_to_us(value: float) -> int:
    if not abs(value) < _MAX_EPOCH:  # also rejects NaN
        raise TimeError(
            "The number is too large to be a time.", hint="Pass seconds or milliseconds since 1970."
        )
    unit = 1000 if abs(value) > _MILLISECONDS_FROM else SECOND_US
    return value * unit if isinstance(value, int) else round(value * unit)


def _to_us_in_zone(moment: datetime, tz: tzinfo | None) -> int:
    """Return the instant of a datetime, naive ones read in the zone."""
    return to_us(moment if moment.tzinfo or tz is None else moment.replace(tzinfo=tz))


@lru_cache(maxsize=64)
def _load_zone(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z"):
        return UTC
    from zoneinfo import (
        ZoneInfo,
        ZoneInfoNotFoundError,
    )  # imported late: it reads the build configuration

    try:
        return (
            datetime.strptime(name, "%z").tzinfo or UTC
            if name[:1] in ("+", "-")
            else ZoneInfo(name)
        )
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise TimeError(
            f"{_quote(name)} is not a time zone.", hint="Use one such as Europe/Berlin or +01:00."
        ) from None


def _resolve_zone(zone: str | tzinfo | None) -> tzinfo | None:
    return _load_zone(zone) if isinstance(zone, str) else zone


# ISO 8601

_DATE_WIDTH: Final = {"year": 4, "month": 7, "day": 10}
_TIME_WIDTH: Final = {"hour": 13, "minute": 16}
_ISO_DATE: Final = lazy_regex(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?|(\d{4})(\d\d)(\d\d)", re.ASCII)
_ISO_TIME: Final = lazy_regex(
    r"(\d{4}-?\d\d-?\d\d)[T ](\d\d)(?::?(\d\d)(?::?(\d\d(?:[.,]\d{1,9})?))?)? ?(Z|"
    r"[+-]\d\d(?::?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH_TEXT: Final = lazy_regex(r"-?\d{9,16}(\.\d{1,9})?", re.ASCII)


def _parse_iso_interval(text: str, tz: tzinfo | None) -> Interval | None:
    """Parse ISO 8601, return None for anything else, raise TimeError for impossible dates."""
    try:
        if "/" not in text:
            return _parse_iso_point(text, tz)
        sides = [side.strip() for side in text.split("/", 1)]
        first, last = (
            ALWAYS if side in ("..", "") else _parse_iso_point(side, tz) for side in sides
        )
    except TimeError:
        raise
    except (ValueError, OverflowError) as problem:
        raise TimeError(f"{_quote(text)} is not a time: {problem}.") from None
    if first is None or last is None:
        return None
    precision = min(first.precision, last.precision, key=PRECISIONS.index)
    return Interval(first.start, last.start if last.precision in _UNIT_US else last.end, precision)


def _parse_iso_point(text: str, tz: tzinfo | None) -> Interval | None:
    if not text[:1].isdecimal() and text[:1] != "-":
        return None
    if match := _ISO_DATE.fullmatch(text):
        year, month, day = (match[1] or match[4], match[2] or match[5], match[3] or match[6])
        precision = "day" if day else "month" if month else "year"
        return _calendar_interval(
            date(int(year), int(month or 1), int(day or 1)), precision, tz or UTC
        )
    if match := _ISO_TIME.fullmatch(text):
        day, hour, minute, second, offset = match.groups(default="")
        written = f"{day}T{hour}{minute or '00'}{second or '00'}{offset.upper()}"
        return _time_interval(
            _to_us_in_zone(datetime.fromisoformat(written.replace("-", "", day.count("-"))), tz),
            minute,
            second,
        )
    if _EPOCH_TEXT.fullmatch(text):
        return _instant_interval(_epoch_to_us(float(text) if "." in text else int(text)))
    return None


def _time_interval(start: int, minute: str, second: str) -> Interval:
    precision = "instant" if second else "minute" if minute else "hour"
    from_us(start)
    return Interval(start, start + _UNIT_US[precision], precision)


# Calendar intervals

_PRECISION_BY_UNIT: Final = {
    "second": "instant",
    "week": "day",
    "weekend": "day",
    "quarter": "month",
    "season": "month",
    "decade": "year",
}


def _calendar_interval(first: date, unit: str, tz: tzinfo) -> Interval:
    """Return the calendar unit that begins on a day, in a zone."""
    start = _midnight_us(first, tz)
    from_us(start)
    try:
        end: int | None = _midnight_us(date_lexicon.shift_date(first, unit, 1), tz)
    except (ValueError, OverflowError):  # the unit reaches the end of the calendar
        end = None
    if start == end:
        raise TimeError(
            f"{first} does not exist in {tz}: the clocks skipped it.",
            hint="Name the day before or after.",
        )
    return Interval(start, end, _PRECISION_BY_UNIT.get(unit, unit))


def _midnight_us(day: date, tz: tzinfo) -> int:
    return to_us(datetime.combine(day, time(), tz))


def _shift_time(now: datetime, unit: str, count: int) -> datetime:
    """Shift a time: elapsed time for units up to hours, wall clock time from days on."""
    if unit in date_lexicon.UNIT_SECONDS:
        return (
            now.astimezone(UTC) + timedelta(seconds=count * date_lexicon.UNIT_SECONDS[unit])
        ).astimezone(now.tzinfo)
    return datetime.combine(date_lexicon.shift_date(now.date(), unit, count), now.timetz())


def _enclosing_interval(moment: datetime, unit: str) -> Interval:
    """Return the calendar unit that contains the moment."""
    if unit in date_lexicon.UNIT_SECONDS:
        precision = _PRECISION_BY_UNIT.get(unit, unit)
        size = _UNIT_US[precision]
        start = to_us(moment) // size * size
        return Interval(start, start + size, precision)
    return _calendar_interval(
        date_lexicon.start_of_unit(moment.date(), unit), unit, _zone_of(moment)
    )


# Times in words


def parse_moment(text: str, *, now: datetime, zone: str | tzinfo | None = None) -> int:
    """Parse the instant to read a state at.

    That is the end of a named day, month or year, or the exact time if one is given.
    """
    try:
        parsed = _read_phrase(
            date_lexicon.fold_text(text), localise(now, zone), _resolve_zone(zone)
        )
    except TimeError:
        raise
    except (ValueError, OverflowError):
        raise _unparsable_error(text) from None
    if parsed is None:
        raise _unparsable_error(text)
    return parsed.at


def parse_relative(
    text: str, *, now: datetime, zone: str | tzinfo | None = None
) -> Interval | None:
    """Parse an expression such as "last tuesday" or "vor drei Tagen", or return None."""
    local_now, tz = localise(now, zone), _resolve_zone(zone)
    try:
        parsed = _read_phrase(date_lexicon.fold_text(text), local_now, tz)
    except (ValueError, OverflowError):
        return None
    return parsed.interval if parsed else None


def _unparsable_error(text: str) -> TimeError:
    return TimeError(f"{_quote(text)} cannot be parsed as a time.", hint=_EXAMPLES_HINT)


def localise(now: datetime, zone: str | tzinfo | None) -> datetime:
    """Return the same moment in a zone, if one is given and its calendar reaches that far."""
    if now.tzinfo is None:
        raise TimeError("`now` has no time zone.", hint=_NAIVE_HINT)
    return to_zone(to_us(now), _resolve_zone(zone) or now.tzinfo)


@dataclass(frozen=True, slots=True)
class _ParsedTime:
    """A parsed expression: its interval, and the instant for reading a state as of then."""

    interval: Interval
    at: int


def _parsed_period(span: Interval) -> _ParsedTime:
    """Return an interval read as of its end, or as of the end of the calendar."""
    return _ParsedTime(span, _MAX_US if span.end is None else span.end - 1)


def _parsed_unit(day: date, unit: str, now: datetime) -> _ParsedTime:
    return _parsed_period(_calendar_interval(day, unit, _zone_of(now)))


def _zone_of(now: datetime) -> tzinfo:
    return now.tzinfo or UTC


def _read_phrase(text: str, now: datetime, zone: tzinfo | None) -> _ParsedTime | None:
    """Parse a folded text by the first form that matches it entirely."""
    if len(text) > _MAX_PHRASE_LENGTH:
        return None
    if span := _parse_iso_interval(text, zone):
        if span.precision in _UNIT_US and "/" not in text and span.start is not None:
            return _ParsedTime(span, span.start)
        return (
            _ParsedTime(span, to_us(now)) if text.endswith(("/", "/..")) else _parsed_period(span)
        )
    candidates = (_READERS[form](slots, now) for form, slots in date_lexicon.match_date_forms(text))
    return next((parsed for parsed in candidates if parsed), None)


_Slots = Mapping[str, str]


def _read_now(_: _Slots, now: datetime) -> _ParsedTime:
    return _ParsedTime(_instant_interval(to_us(now)), to_us(now))


def _read_word(slots: _Slots, now: datetime) -> _ParsedTime:
    unit, count = date_lexicon.RELATIVE_DATE_WORDS[slots["word"]]
    return _parsed_period(_enclosing_interval(_shift_time(now, unit, count), unit))


def _read_ago(slots: _Slots, now: datetime, sign: int = -1) -> _ParsedTime:
    unit = date_lexicon.UNIT_WORDS[slots["unit"]]
    at = _shift_time(now, unit, sign * date_lexicon.parse_number_word(slots["n"]))
    return _ParsedTime(_enclosing_interval(at, unit), to_us(at))


def _read_window(slots: _Slots, now: datetime) -> _ParsedTime:
    start = _shift_time(
        now,
        date_lexicon.UNIT_WORDS[slots["unit"]],
        -date_lexicon.parse_number_word(slots.get("n", "1")),
    )
    return _ParsedTime(Interval(to_us(start), to_us(now), "instant"), to_us(now))


def _read_turn(slots: _Slots, now: datetime) -> _ParsedTime:
    thing, turn = slots["thing"], date_lexicon.RELATIVE_MODIFIERS[slots["turn"]]
    if name := date_lexicon.CALENDAR_NAMES.get(thing):
        return _parsed_unit(name.resolve_start(now.date(), turn), name.unit, now)
    return _parsed_period(
        _enclosing_interval(
            _shift_time(now, date_lexicon.UNIT_WORDS[thing], turn), date_lexicon.UNIT_WORDS[thing]
        )
    )


def _read_name(slots: _Slots, now: datetime) -> _ParsedTime:
    name = date_lexicon.CALENDAR_NAMES[slots["name"]]
    return _parsed_unit(name.resolve_start(now.date(), None), name.unit, now)


def _read_weekday_of_week(slots: _Slots, now: datetime) -> _ParsedTime:
    name = date_lexicon.CALENDAR_NAMES[slots["weekday"]]
    return _parsed_unit(
        name.start_in_cycle(now.date(), date_lexicon.RELATIVE_MODIFIERS[slots["turn"]]),
        name.unit,
        now,
    )


def _read_name_of_year(slots: _Slots, now: datetime) -> _ParsedTime:
    name = date_lexicon.CALENDAR_NAMES[slots["yearly"]]
    return _parsed_unit(date(int(slots["year"]), name.position, 1), name.unit, now)


def _read_month_of_year(slots: _Slots, now: datetime) -> _ParsedTime:
    return _parsed_unit(date(int(slots["year"]), int(slots["digits"]), 1), "month", now)


def _read_date(slots: _Slots, now: datetime) -> _ParsedTime:
    return _resolve_day_of_year(
        slots["year"],
        date_lexicon.CALENDAR_NAMES[slots["month"]].position,
        int(re.sub(r"\D", "", slots["day"])),
        now,
    )


def _read_numbered_date(slots: _Slots, now: datetime) -> _ParsedTime:
    return _resolve_day_of_year(slots["year"], int(slots["digits"]), int(slots["numbered"]), now)


def _resolve_day_of_year(year: str, month: int, day: int, now: datetime) -> _ParsedTime:
    """Return that day of the year, or its last occurrence without a year."""
    if year:
        return _parsed_unit(date(int(year), month, day), "day", now)
    has_come = (month, day) <= (now.month, now.day)
    return _parsed_unit(date(now.year if has_come else now.year - 1, month, day), "day", now)


def _read_years(slots: _Slots, now: datetime, unit: str) -> _ParsedTime:
    return _parsed_unit(date(int(slots[unit]), 1, 1), unit, now)


def _read_edge(slots: _Slots, now: datetime) -> _ParsedTime | None:
    """Return the first, middle or last day of a period; a beginning reads as of its start."""
    period = _read_phrase(slots["rest"], now, now.tzinfo) or _read_phrase(
        f"this {slots['rest']}", now, now.tzinfo
    )
    if period is None or period.interval.start is None or period.interval.end is None:
        return None
    start, end = period.interval.start, period.interval.end
    fraction = date_lexicon.EDGE_WORDS[slots["edge"]]
    day = _enclosing_interval(
        from_us(start + int((end - 1 - start) * fraction)).astimezone(now.tzinfo), "day"
    )
    return _ParsedTime(day, start) if fraction == 0 else _parsed_period(day)


def _read_clock(slots: _Slots, now: datetime) -> _ParsedTime | None:
    """Parse a time of day on a named day."""
    if (day := _read_day(slots["rest"], now)) is None:
        return None
    at = to_us(datetime.combine(day, date_lexicon.parse_time_of_day(slots["clock"]), now.tzinfo))
    return _ParsedTime(Interval(at, at + _UNIT_US["minute"], "minute"), at)


def _read_part(slots: _Slots, now: datetime) -> _ParsedTime | None:
    """Parse a part of a named day; "last night" began yesterday."""
    if (
        day := _read_day(
            {"last": "yesterday", "this": "today"}.get(slots["rest"], slots["rest"]), now
        )
    ) is None:
        return None
    first, last = date_lexicon.DAY_PART_WORDS[slots["part"]]
    start = to_us(datetime.combine(day, time(first), now.tzinfo))
    return _parsed_period(Interval(start, start + (last - first) * _UNIT_US["hour"], "hour"))


def _read_day(text: str, now: datetime) -> date | None:
    day = _read_phrase(text, now, now.tzinfo)
    if day is None or day.interval.precision != "day" or day.interval.start is None:
        return None
    return from_us(day.interval.start).astimezone(now.tzinfo).date()


def _read_inner(slots: _Slots, now: datetime) -> _ParsedTime | None:
    return _read_phrase(slots["rest"], now, now.tzinfo)


_READERS: Final[Mapping[str, Callable[[_Slots, datetime], _ParsedTime | None]]] = {
    "now": _read_now,
    "word": _read_word,
    "ago": _read_ago,
    "ahead": partial(_read_ago, sign=1),
    "window": _read_window,
    "weekday_of_week": _read_weekday_of_week,
    "turn": _read_turn,
    "name": _read_name,
    "name_of_year": _read_name_of_year,
    "month_of_year": _read_month_of_year,
    "date": _read_date,
    "numbered_date": _read_numbered_date,
    "year": partial(_read_years, unit="year"),
    "decade": partial(_read_years, unit="decade"),
    "edge": _read_edge,
    "clock": _read_clock,
    "part": _read_part,
    "inner": _read_inner,
}
