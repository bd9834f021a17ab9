"""Times that a clause names, resolved against the moment it was said."""

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


_IRREGULAR_VERBS: Final = {"have": "has", "be": "is"}
_THIRD_PERSON_WORDS: Final = {
    "my": "their", "our": "their", "mine": "theirs", "me": "them", "us": "them", "myself": "themself",
    "ourselves": "themselves", "i": "they", "we": "they", "i'm": "they are",
}  # fmt: skip


def conjugate_third_person(verb: str) -> str:
    """The third person of a verb: lives, goes, studies."""
    if verb in _IRREGULAR_VERBS:
        return _IRREGULAR_VERBS[verb]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|sh|ch|x|z|o)$", verb) else "s")


def to_third_person(value: str) -> str:
    """A value as it reads when somebody else says it: my job becomes their job."""
    return get_pattern("render.own").sub(
        lambda word: word[0] if word[0] == "US" else _THIRD_PERSON_WORDS[word[0].lower()], value
    )


def add_article(value: str) -> str:
    """The value with its indefinite article, unless it is several things, a title, or has one already."""
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
    """A subject and a phrase as one sentence; a phrase that begins with = stands as it is."""
    is_negated = polarity == "negated"
    if phrase.startswith("="):
        return f"{subject} {phrase[1:].replace('has been', 'has never been', 1) if is_negated else phrase[1:]}"
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
    """The verb as one person or several need it."""
    if get_pattern("render.several").search(subject):
        return "are" if verb == "be" else verb
    return conjugate_third_person(verb)


def format_interval(interval: Interval) -> str:
    """A time behind an event: on a day, in a month or year, between two days."""
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
"""How sure a claim is: said in so many words, said in a fragment, implied, and doubted by the speaker."""

ASSERTED, NEGATED = "asserted", "negated"


@dataclass(frozen=True, slots=True)
class RuleClaim:
    """A subject, a predicate and an object, the sentence that says so, and the stretch of the turn it stands in."""

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
    """A turn: its words, who speaks and when.

    `last` is whom "she" can mean, `subject` whom a bare verb is about, `people` who was introduced by name.
    """

    text: str
    speaker: str
    speech_time: SpeechTime
    default_interval: Interval = ALWAYS
    last_referent: Referent | None = None
    subject: Referent | None = None
    people: Mapping[str, Referent] = field(default_factory=dict)
