"""What was said, in the third person: concise sentences without a final full stop."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from told.core.when import Interval

_THIRD: Final = {"have": "has", "be": "is", "do": "does", "go": "goes"}
_THEIRS: Final = {"my": "their", "our": "their", "mine": "theirs", "me": "them", "us": "them", "myself": "themself", "ourselves": "themselves",
                  "i": "they", "we": "they", "i'm": "they are", "your": "your"}  # fmt: skip


def third(verb: str) -> str:
    """The third person of a verb: lives, goes, studies."""
    if verb in _THIRD:
        return _THIRD[verb]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|sh|ch|x|z|o)$", verb) else "s")


def theirs(value: str) -> str:
    """A value as it reads when somebody else says it: my job becomes their job."""
    return _own().sub(lambda word: word[0] if word[0] == "US" else _THEIRS[word[0].lower()], value)


@cache
def _own() -> re.Pattern[str]:
    return re.compile(r"\b(?:my|our|mine|me|us|myself|ourselves|i|we|i'm)\b(?![/-])", re.IGNORECASE)


def article(value: str) -> str:
    """The value with its indefinite article, unless it is a number of things, a title or a proper name."""
    if re.match(r"(?:an?|the|two|three|four|five|six|several|some|\d+|my|their)\b", value, re.IGNORECASE) or _TITLE.match(value) or _many(value):
        return value
    return f"{'an' if _OPEN_SOUND.match(value) else 'a'} {value}"


_OPEN_SOUND: Final = re.compile(r"[aeioAEIO](?!ne\b|uro)|[uU](?!ni|s|k|x|tili)|[hH](?:our|onest)|[FHLMNRSX](?=[B-DF-HJ-NP-TV-Z][A-Z]*\b)")
_TITLE: Final = re.compile(r"(?:head|chief|vp|ceo|cto|cfo|coo|president|director|lead|captain)\b(?= of|$)|(?:ceo|cto|cfo|coo|cpo|vp)\b", re.IGNORECASE)


def _many(value: str) -> bool:
    last = value.split()[-1].lower() if value else ""
    return last.endswith("s") and not last.endswith(("ss", "us", "is")) and last not in ("lens", "gps")


def sentence(subject: str, phrase: str, polarity: str, *, former: bool = False, ended: bool = False) -> str:
    """A subject and a phrase as one sentence; a phrase that begins with = stands as it is."""
    if phrase.startswith("="):
        said = phrase[1:].replace("has been", "has never been", 1) if polarity == "negated" else phrase[1:]
        return f"{subject} {said}"
    if phrase.startswith("'s "):
        denied = phrase.replace(" is ", " is not ", 1) if polarity == "negated" else phrase
        return subject + denied
    verb, _, rest = phrase.partition(" ")
    rest = f" {rest}" if rest else ""
    if former:
        return f"{subject} used to {verb}{rest}"
    if verb == "not":
        verb, _, rest = rest.strip().partition(" ")
        return f"{subject} does not {verb}{f' {rest}' if rest else ''}"
    if polarity != "negated":
        return f"{subject} {_agreeing(verb, subject)}{rest}"
    if verb == "be":
        return f"{subject} {_agreeing('be', subject)} {'no longer' if ended else 'not'}{rest}"
    return f"{subject} no longer {_agreeing(verb, subject)}{rest}" if ended else f"{subject} {_agreeing('do', subject)} not {verb}{rest}"


_SEVERAL: Final = re.compile(r"'s .*(?:parents|kids|children|sons|daughters|twins|brothers|sisters|siblings|friends|folks|cousins|cats|dogs|grandparents|colleagues)$")


def _agreeing(verb: str, subject: str) -> str:
    """The verb as one person or several need it."""
    if _SEVERAL.search(subject):
        return "are" if verb == "be" else verb
    return third(verb)


def when(valid: Interval) -> str:
    """A time behind an event: on a day, in a month or year, between two days."""
    said = str(valid)
    if valid.precision not in ("day", "month", "year") or valid.start is None or valid.end is None:
        return ""
    first, slash, last = said.partition("/")
    if slash:
        return f" between {first} and {last}"
    return f" {'on' if valid.precision == 'day' else 'in'} {first}"
