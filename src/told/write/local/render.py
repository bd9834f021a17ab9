"""What was said, in the third person: concise sentences without a final full stop."""

from __future__ import annotations

import re
from typing import Final

from told.core.when import Interval
from told.write.local.tables import get_pattern

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
