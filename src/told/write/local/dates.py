"""Times that a clause names, resolved against the moment it was said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from told.core.when import ALWAYS, Interval, relative, to_us
from told.write.local.value import Value

MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
WEEKDAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_NUMBER = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|a few|a couple of|couple of|a couple)"
_UNIT = r"(?:days?|weeks?|months?|years?|hours?|minutes?)"
_EXPRESSIONS = (
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d)?",
    r"the day (?:before yesterday|after tomorrow)",
    rf"(?:yesterday|today|tomorrow)(?:\s+(?:morning|afternoon|evening|night))?(?:\s+at\s+{r'(?:noon|midnight|[0-9]{1,2}(?::[0-9]{2})?(?: ?[ap][.]?m)?)'})?",
    r"tonight",
    rf"(?:last|next|this past|this coming|this|past|coming)\s+(?:week|month|year|weekend|night|summer|winter|spring|fall|autumn|{WEEKDAY}|{MONTH})\b",
    rf"{_NUMBER}\s+{_UNIT}\s+(?:ago|back|from now)",
    rf"in\s+{_NUMBER}\s+{_UNIT}(?:\s+time)?\b",
    rf"(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}\b(?:,?\s+\d{{4}})?",
    rf"{MONTH}\.?\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?\b(?!:)(?:,?\s+\d{{4}})?",
    rf"(?:in|since|until|by|of|early|late|mid|around|from|during|for)\s+{MONTH}\b(?:,?\s+\d{{4}})?",
    rf"{MONTH}\s+\d{{4}}",
    rf"(?:on|since|until|by|this)\s+{WEEKDAY}\b",
    rf"{WEEKDAY}\b(?!s)",
    r"(?:in|since|until|back in|around|from)\s+(?:19|20)\d\d\b",
    r"(?:in|since|until|during|by)\s+(?:the\s+)?(?:spring|summer|autumn|fall|winter)(?:\s+of\s+\d{4})?\b",
    r"(?:at\s+)?the\s+(?:end|beginning|start|middle)\s+of\s+(?:the\s+|this\s+|next\s+|last\s+)?(?:month|year|week|summer)",
)
_LEAD = re.compile(r"^(?:on|since|until|till|by|back in|around|from|of|during|for|early|late|mid)\s+", re.IGNORECASE)


@cache
def _expression() -> re.Pattern[str]:
    return re.compile(rf"\b(?:(?P<mark>since|until|till|by|from|starting)\s+)?(?P<date>{'|'.join(_EXPRESSIONS)})", re.IGNORECASE)


@cache
def _lasting() -> re.Pattern[str]:
    return re.compile(rf"\bfor\s+(?:about |almost |over |around |nearly |the (?:past|last) |more than )?(?P<n>{_NUMBER})\s+(?P<unit>days?|weeks?|months?|years?)\b",
                      re.IGNORECASE)  # fmt: skip


@cache
def _day() -> re.Pattern[str]:
    return re.compile(
        rf"\s*(?:the\s+)?(?P<value>\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}\b(?:,?\s+\d{{4}})?|"
        rf"{MONTH}\.?\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}})?|\d{{4}}-\d\d-\d\d|\d{{1,2}}[/.]\d{{1,2}}(?:[/.]\d{{2,4}})?|"
        rf"(?:in\s+)?{MONTH}\b(?:\s+\d{{4}})?|(?:next\s+|this\s+)?{WEEKDAY}\b|tomorrow|today|next\s+(?:week|month|year)|"
        rf"(?:the\s+)?(?:end|beginning)\s+of\s+(?:the\s+|this\s+|next\s+)?(?:month|week|year|{MONTH})|(?:19|20)\d\d\b)",
        re.IGNORECASE,
    )


def day_at(text: str, start: int, end: int) -> Value | None:
    """The date that stands at a place, as it was said."""
    found = _day().match(text, start, end)
    return Value(found["value"], *found.span("value")) if found else None


@dataclass(frozen=True, slots=True)
class Clock:
    """When something was said, and where clocks are read."""

    now: datetime
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Time:
    """A time that was named, and whether it is a beginning or an end rather than the time itself."""

    interval: Interval
    mark: str
    start: int
    end: int


def named(text: str, start: int, end: int, clock: Clock, *, ahead: bool = False) -> Time | None:
    """The first time a stretch names; `ahead` reads a bare weekday, month or day as the next one."""
    for found in _expression().finditer(text, start, end):
        said = found["date"]
        lead = _LEAD.match(said)
        mark = (found["mark"] or (lead[0].strip() if lead else "")).lower()
        plain = _LEAD.sub("", said)
        if (span := _resolved(plain, clock, ahead)) is not None:
            return Time(span, mark, found.start(), found.end())
    if lasting := _lasting().search(text, start, end):
        if span := relative(f"{lasting['n']} {lasting['unit']} ago", now=clock.now, zone=clock.zone or None):
            return Time(span, "since", lasting.start(), lasting.end())
    return None


def _resolved(said: str, clock: Clock, ahead: bool) -> Interval | None:
    zone = clock.zone or None
    if re.fullmatch(r"in\s+(?:19|20)\d\d|(?:19|20)\d\d", said, re.IGNORECASE):
        said = said.split()[-1]
    if not ahead or re.search(r"\d{4}|\b(?:last|next|this|past|ago|yesterday|today|tomorrow)\b", said, re.IGNORECASE):
        return relative(said, now=clock.now, zone=zone)
    bare = re.sub(r"^(?:in|on)\s+", "", said, flags=re.IGNORECASE)
    if re.fullmatch(rf"{WEEKDAY}|{MONTH}|spring|summer|autumn|fall|winter", bare, re.IGNORECASE):
        return relative(f"next {bare}", now=clock.now, zone=zone)
    span = relative(said, now=clock.now, zone=zone)
    if span and span.end and span.end <= to_us(clock.now) and re.search(MONTH, said, re.IGNORECASE):
        return relative(f"{bare} {clock.now.year}", now=clock.now, zone=zone) if _is_ahead(bare, clock) else relative(
            f"{bare} {clock.now.year + 1}", now=clock.now, zone=zone)  # fmt: skip
    return span


def _is_ahead(said: str, clock: Clock) -> bool:
    span = relative(f"{said} {clock.now.year}", now=clock.now, zone=clock.zone or None)
    return span is not None and span.end is not None and span.end > to_us(clock.now)


def since(time: Time) -> Interval:
    """From a time on, without an end."""
    return Interval(time.interval.start, None, time.interval.precision)


def bearing(time: Time | None, *, state: bool, default: Interval = ALWAYS) -> Interval:
    """When a claim holds: a state from the time that is named on or until it, an event at it."""
    if time is None:
        return default
    if time.mark in ("until", "till"):
        return Interval(default.start if default.start is not None and (time.interval.end or 0) > default.start else None, time.interval.end, time.interval.precision)
    if time.mark in ("since", "from", "starting") or state:
        return since(time)
    return time.interval
