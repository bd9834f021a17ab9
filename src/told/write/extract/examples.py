"""The examples of a concept as forms that people's sentences fill in, so that no model is needed to read them.

"I love X" is a form with a blank: in "I really love jazz and chess" it finds two values, and in "I don't love jazz any
more" one that is denied. "I'm deaf" has no blank: whoever says so means the word that tells. What people ask is no
statement, but what an assistant asks them and they say yes to is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from told.core.lazy import regex
from told.core.text import sentences
from told.write.extract.words import needles
from told.write.local.clean import plain_speech
from told.write.local.value import is_thing, items, trimmed, until

BLANK: Final = regex(r"(?<![\w'])(?:[XYZ]|\.{3}|\u2026|<[^>]+>|\{[^}]+\})(?![\w'])")
YES: Final = regex(
    r"\W*(?:yes|yeah|yep|yup|right|correct|exactly|indeed|sure|absolutely|definitely|of course|that's right|i do|i am)"
    r"\b",
    re.IGNORECASE,
)
_FILLERS: Final = (
    "really just only also still actually absolutely truly honestly always so very quite rather totally simply mostly "
    "especially particularly currently now usually today even too definitely certainly mainly pretty".split()
)
_LOOSE: Final = rf"(?:\s+(?:{'|'.join(_FILLERS)}|kind\s+of|sort\s+of|a\s+bit|a\s+lot)){{0,4}}\s+"
_ROUGHLY: Final = regex(r"(?:about|around|roughly|nearly|almost|maybe|perhaps|probably|like)\s+", re.IGNORECASE)
_OWN: Final = regex(r"(?:my|our|your)\s+", re.IGNORECASE)
_MEASURED: Final = regex(
    r"an?\s+(?:half[\s-]|quarter[\s-])?(?:second|minute|hour|day|night|week|month|year)s?\b", re.IGNORECASE
)
_DENIED: Final = r"(?:don't|do\s+not|didn't|did\s+not|doesn't|no\s+longer|never|not)"
PERSONS: Final = {
    "i": ("I", "you"), "i'm": (r"(?:I'm|I\s+am|im)", r"(?:you're|you\s+are)"),
    "i've": (r"(?:I've|I\s+have)", r"(?:you've|you\s+have)"), "i'd": (r"(?:I'd|I\s+would)", r"(?:you'd|you\s+would)"),
    "i'll": (r"(?:I'll|I\s+will)", r"(?:you'll|you\s+will)"), "my": ("my", "your"), "me": ("me", "you"),
    "am": ("am", "are"),
}  # fmt: skip
_SUBJECTS: Final = ("i", "i'm", "i've", "i'd", "i'll")


@dataclass(frozen=True, slots=True)
class Blank:
    """A value that a sentence puts into a form: its stretch of the text, whether it is denied, how telling the form."""

    value: str
    start: int
    value_start: int
    end: int
    denied: bool
    telling: int


@dataclass(frozen=True, slots=True)
class Form:
    """An example as it is looked for; without a blank its own telling words are the value."""

    pattern: re.Pattern[str]
    open: bool
    telling: int


def filled(examples: Sequence[str], text: str, *, second: bool = False) -> list[Blank]:
    """The values that the statements of a text put into some examples; `second` reads what is said to "you"."""
    plain = text.replace("\u2019", "'") if second else plain_speech(text)
    stretches = [(start, end) for start, end in _sentences(plain) if not plain[start:end].rstrip().endswith("?")]
    return list(_fill(examples, plain, stretches, second=second))


def confirmed(examples: Sequence[str], question: str, answer: str) -> list[Blank]:
    """The values in what an assistant asked or said, if the answer to it begins with a yes."""
    plain = question.replace("\u2019", "'")
    return list(_fill(examples, plain, list(_sentences(plain)), second=True)) if YES.match(answer) else []


def _fill(
    examples: Sequence[str], text: str, stretches: Sequence[tuple[int, int]], *, second: bool
) -> Iterator[Blank]:
    for form in filter(None, (_form(example, second) for example in examples)):
        for start, end in stretches:
            for match in form.pattern.finditer(text, start, end):
                yield from _values(form, text, match, end, second=second)


def _values(form: Form, text: str, match: re.Match[str], end: int, *, second: bool) -> Iterator[Blank]:
    denied = match["no"] is not None
    if not form.open:
        plain = " ".join(match["value"].split())
        yield Blank(plain, match.start(), match.start("value"), match.end(), denied, form.telling)
        return
    start = match.start("value")
    for lead in (_ROUGHLY, _OWN):
        if found := lead.match(text, start):
            start = found.end()
    stop = match.end("value") if match["after"] else until(text, start, _comma(text, start, end) if second else end)
    whole = [trimmed(text, start, stop, article=False)] if _MEASURED.match(text, start) else items(text, start, stop)
    for value in whole:
        if is_thing(value.text):
            yield Blank(value.text, match.start(), value.start, value.end, denied, form.telling)


def _comma(text: str, start: int, end: int) -> int:
    """Where an assistant goes on: after a comma it gives advice, where a user would go on with a list."""
    found = text.find(",", start, end)
    return end if found < 0 else found


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for sentence in sentences(text):
        start = text.find(sentence, at)
        at = start + len(sentence)
        yield start, at


# Forms ----------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 10)
def _form(example: str, second: bool) -> Form | None:
    """What an example is looked for by; nothing if it has no words beside its blank."""
    straight = example.replace("\u2019", "'")
    before, *rest = BLANK.split(straight, maxsplit=1)
    if not rest:
        return _closed(straight, second)
    lead, tail = _tokens(before), _tokens(rest[0])
    if not lead and not tail:
        return None
    opening = _spelt(lead, second) + _LOOSE if lead else r"(?P<no>(?!))?(?:(?<=^)|(?<=[.,;!]\s))"
    after = rf"{_LOOSE}{_joined(tail, second)}\b" if tail else ""
    value = r"(?P<value>\S(?:.{0,60}?\S)?)" if after else r"(?P<value>\S.*)"
    pattern = rf"(?<![\w']){opening}{value}(?P<after>{after})"
    return Form(re.compile(pattern, re.IGNORECASE), True, len(lead) + len(tail))


def _closed(example: str, second: bool) -> Form | None:
    """A form without a blank: it is met word by word, and its words that tell are the value."""
    tokens = _tokens(example)
    skipped = 1 if tokens and tokens[0].lower() in PERSONS else 0
    rest = " ".join(tokens[skipped:])
    told = {needle.word.form for needle in needles(rest, sentence=True)} if rest else frozenset[str]()
    first = next((place for place, token in enumerate(tokens) if place >= skipped and token.lower() in told), None)
    if first is None:
        return None
    opening = _spelt(tokens[:first], second) + _LOOSE if first else "(?P<no>(?!))?"
    pattern = rf"(?<![\w']){opening}(?P<value>{_joined(tokens[first:], second)})(?![\w'])"
    return Form(re.compile(pattern, re.IGNORECASE), False, len(tokens) + 1)


def _tokens(text: str) -> list[str]:
    return [token for token in (part.strip('.,;:!?"()') for part in text.split()) if token]


def _spelt(tokens: Sequence[str], second: bool) -> str:
    """The words of a form in order, with what may stand between them, and where a denial would."""
    first, *others = tokens
    no = rf"(?P<no>{_LOOSE}{_DENIED})?" if first.lower() in _SUBJECTS else "(?P<no>(?!))?"
    rest = f"{_LOOSE}{_joined(others, second)}" if others else ""
    return f"{_word(first, second)}{no}{rest}"


def _joined(tokens: Sequence[str], second: bool) -> str:
    return _LOOSE.join(_word(token, second) for token in tokens)


def _word(token: str, second: bool) -> str:
    forms = PERSONS.get(token.lower())
    if forms is not None:
        return forms[second]
    if token.lower() in ("can't", "cannot"):
        return r"(?:can't|can\s*not)"
    return re.escape(token).replace("n't", r"(?:n't|\s+not)")
