"""Rule claims: times, English sentences, and the context of a turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from told.extraction.rules.grammar import Referent, ValueSpan
from told.extraction.rules.lexicon import get_pattern
from told.text.dates import ALWAYS, Interval, parse_relative, to_us

_UNTIL_WORDS = ("until", "till")
_SINCE_WORDS = ("since", "from", "starting")


@dataclass(frozen=True, slots=True)
class SpeechTime:
    """The time and zone that relative times are resolved against."""

    now: datetime
    zone: str = ""

    def resolve(self, expression: str) -> Interval | None:
        """Resolve a time expression to an interval, or return None."""
        return parse_relative(expression, now=self.now, zone=self.zone or None)


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time expression with its span and the marker before it, such as "since" or "until"."""

    interval: Interval
    marker: str
    start: int
    end: int

    @property
    def is_open_ended(self) -> bool:
        """Return True if it marks the start or end of a state."""
        return self.marker in (*_SINCE_WORDS, *_UNTIL_WORDS)


def match_day(text: str, start: int, end: int) -> ValueSpan | None:
    """Return the date at a position as it was written."""
    match = get_pattern("dates.day").match(text, start, end)
    return ValueSpan(match["value"], *match.span("value")) if match else None


def find_time(
    text: str, start: int, end: int, speech_time: SpeechTime, *, is_future: bool = False
) -> TimeMention | None:
    """Find the first time in a span.

    With `is_future`, a bare weekday, month or day means the next one.
    """
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
    """Resolve a time expression; in a plan, a bare day or month is the next one."""
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
    """Resolve a day of the month, in the next or previous month if needed."""
    month = speech_time.now.year * 12 + speech_time.now.month - 1
    month += (day < speech_time.now.day) if is_future else -(day > speech_time.now.day)
    return speech_time.resolve(f"{month // 12:04d}-{month % 12 + 1:02d}-{day:02d}")


def compute_validity(time: TimeMention | None, *, is_state: bool, default: Interval) -> Interval:
    """Return the validity of a claim: states start or end at the time, events happen at it."""
    if time is None:
        return default
    start, end = time.interval.start, time.interval.end
    if time.marker in _UNTIL_WORDS:
        return Interval(None, end, time.interval.precision) if end is not None else default
    if is_state or time.marker in _SINCE_WORDS:
        return Interval(start, None, time.interval.precision)
    return time.interval


_IRREGULAR_VERBS: Final = {"have": "has", "be": "is"}
_THIRD_PERSON_WORDS: Final = {
    "my": "their",
    "our": "their",
    "mine": "theirs",
    "me": "them",
    "us": "them",
    "myself": "themself",
    "ourselves": "themselves",
    "i": "they",
    "we": "they",
    "i'm": "they are",
}


def conjugate_third_person(verb: str) -> str:
    """Conjugate a verb in the third person: lives, goes, studies."""
    if verb in _IRREGULAR_VERBS:
        return _IRREGULAR_VERBS[verb]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|sh|ch|x|z|o)$", verb) else "s")


def to_third_person(value: str) -> str:
    """Rewrite first-person words in the third person: "my job" becomes "their job"."""
    return get_pattern("render.own").sub(
        lambda word: word[0] if word[0] == "US" else _THIRD_PERSON_WORDS[word[0].lower()], value
    )


def add_article(value: str) -> str:
    """Add an indefinite article, unless the value is plural, a title, or has one."""
    if (
        get_pattern("render.determined").match(value)
        or get_pattern("render.title").match(value)
        or _is_plural(value)
    ):
        return value
    return f"{'an' if get_pattern('render.open_sound').match(value) else 'a'} {value}"


def _is_plural(value: str) -> bool:
    last = value.lower().rpartition(" ")[2]
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))


def build_sentence(
    subject: str,
    phrase: str,
    polarity: str = "asserted",
    *,
    is_former: bool = False,
    is_ended: bool = False,
) -> str:
    """Join a subject and a verb phrase; a phrase that begins with = is used unchanged."""
    is_negated = polarity == "negated"
    if phrase.startswith("="):
        rest = phrase[1:]
        return f"{subject} {rest.replace('has been', 'has never been', 1) if is_negated else rest}"
    if phrase.startswith("'s "):
        return subject + (phrase.replace(" is ", " is not ", 1) if is_negated else phrase)
    verb, space, rest = phrase.partition(" ")
    if is_former:
        return f"{subject} used to {phrase}"
    if not is_negated:
        return f"{subject} {_conjugate(verb, subject)}{space}{rest}"
    if verb == "be":
        return f"{subject} {_conjugate('be', subject)} {'no longer' if is_ended else 'not'} {rest}"
    if is_ended:
        return f"{subject} no longer {_conjugate(verb, subject)}{space}{rest}"
    return f"{subject} {_conjugate('do', subject)} not {phrase}"


def _conjugate(verb: str, subject: str) -> str:
    """Conjugate a verb for a singular or plural subject."""
    if get_pattern("render.several").search(subject):
        return "are" if verb == "be" else verb
    return conjugate_third_person(verb)


def format_interval(interval: Interval) -> str:
    """Format the time of an event: on a day, in a month or year, or between two days."""
    if (
        interval.precision not in ("day", "month", "year")
        or interval.start is None
        or interval.end is None
    ):
        return ""
    first, slash, last = str(interval).partition("/")
    if slash:
        return f" between {first} and {last}"
    return f" {'on' if interval.precision == 'day' else 'in'} {first}"


STATED_CONFIDENCE, FRAGMENT_CONFIDENCE, INFERRED_CONFIDENCE, HEDGED_CONFIDENCE = 0.9, 0.8, 0.7, 0.5
"""Confidence of claims that are stated, in a fragment, inferred, or hedged."""

ASSERTED, NEGATED = "asserted", "negated"


@dataclass(frozen=True, slots=True)
class RuleClaim:
    """A claim found by a rule, with its sentence and its span in the turn."""

    subject: str
    predicate: str
    object: str
    text: str
    start: int
    end: int
    polarity: str = ASSERTED
    modality: str = "stated"
    confidence: float = STATED_CONFIDENCE
    valid: Interval = ALWAYS
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class TurnContext:
    """The state of parsing one turn.

    `last_referent` is the referent of "she", `subject` the subject of a clause without one, and
    `people` maps introduced names to referents.
    """

    text: str
    speaker: str
    speech_time: SpeechTime
    default_interval: Interval = ALWAYS
    last_referent: Referent | None = None
    subject: Referent | None = None
    people: Mapping[str, Referent] = field(default_factory=dict)
