"""What was said, in the third person: concise sentences without a final full stop."""

from __future__ import annotations

import re
from typing import Final

from told.core.when import Interval
from told.write.local.tables import pattern

_THIRD: Final = {"have": "has", "be": "is"}
_THEIRS: Final = {
    "my": "their", "our": "their", "mine": "theirs", "me": "them", "us": "them", "myself": "themself",
    "ourselves": "themselves", "i": "they", "we": "they", "i'm": "they are",
}  # fmt: skip


def third(verb: str) -> str:
    """The third person of a verb: lives, goes, studies."""
    if verb in _THIRD:
        return _THIRD[verb]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|sh|ch|x|z|o)$", verb) else "s")


def theirs(value: str) -> str:
    """A value as it reads when somebody else says it: my job becomes their job."""
    return pattern("render.own").sub(lambda word: word[0] if word[0] == "US" else _THEIRS[word[0].lower()], value)


def article(value: str) -> str:
    """The value with its indefinite article, unless it is several things, a title, or has one already."""
    if pattern("render.determined").match(value) or pattern("render.title").match(value) or _is_plural(value):
        return value
    return f"{'an' if pattern('render.open_sound').match(value) else 'a'} {value}"


def _is_plural(value: str) -> bool:
    last = value.lower().rpartition(" ")[2]
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))


def sentence(
    subject: str, phrase: str, polarity: str = "asserted", *, former: bool = False, ended: bool = False
) -> str:
    """A subject and a phrase as one sentence; a phrase that begins with = stands as it is."""
    denied = polarity == "negated"
    if phrase.startswith("="):
        return f"{subject} {phrase[1:].replace('has been', 'has never been', 1) if denied else phrase[1:]}"
    if phrase.startswith("'s "):
        return subject + (phrase.replace(" is ", " is not ", 1) if denied else phrase)
    verb, space, rest = phrase.partition(" ")
    if former:
        return f"{subject} used to {phrase}"
    if not denied:
        return f"{subject} {_agreeing(verb, subject)}{space}{rest}"
    if verb == "be":
        return f"{subject} {_agreeing('be', subject)} {'no longer' if ended else 'not'} {rest}"
    if ended:
        return f"{subject} no longer {_agreeing(verb, subject)}{space}{rest}"
    return f"{subject} {_agreeing('do', subject)} not {phrase}"


def _agreeing(verb: str, subject: str) -> str:
    """The verb as one person or several need it."""
    if pattern("render.several").search(subject):
        return "are" if verb == "be" else verb
    return third(verb)


def when(valid: Interval) -> str:
    """A time behind an event: on a day, in a month or year, between two days."""
    if valid.precision not in ("day", "month", "year") or valid.start is None or valid.end is None:
        return ""
    first, slash, last = str(valid).partition("/")
    if slash:
        return f" between {first} and {last}"
    return f" {'on' if valid.precision == 'day' else 'in'} {first}"
