"""Sentences and clauses of a turn, as stretches of it, and whether each is a statement, a question or a what-if."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from told.write.local.tables import pattern

MOST_SENTENCES: Final = 60
DOUBT: Final = 0.5
_BELIEVED: Final = frozenset(
    "hr recruiter hospital clinic vet midwife lawyer doctor dr doc dentist allergist therapist gp psychiatrist "
    "dermatologist".split()
)
_SHORT_FORM: Final = 8
"""How far back from a full stop "Prof" and its like may begin."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a text in which one thing is said.

    `goes_on` tells that it has no subject of its own and speaks on of the one before. `sure` is how sure the words
    before it leave it; `asked` that it is part of a question; `lead` is where those words begin.
    """

    start: int
    end: int
    goes_on: bool = False
    sure: float = 1.0
    asked: bool = False
    lead: int = 0


@dataclass(frozen=True, slots=True)
class Sentence:
    """A stretch of a text up to a full stop, and whether it asks."""

    start: int
    end: int
    asks: bool


# ------------------------------------------------------------------------------------------------------------ sentences


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text, the first few dozen of a long one."""
    start = count = 0
    for boundary in pattern("sentence.boundary").finditer(text):
        mark = boundary[0]
        back = max(start, boundary.start() - _SHORT_FORM)
        if mark == "." and pattern("sentence.short_form").search(text, back, boundary.start()):
            continue
        if text[start : boundary.start()].strip():
            count += 1
            yield Sentence(start, boundary.start(), "?" in mark or "\uff1f" in mark)
        start = boundary.end()
        if count >= MOST_SENTENCES:
            return
    if text[start:].strip():
        yield Sentence(start, len(text), False)


# --------------------------------------------------------------------------------------------------------- what to skip


def is_sarcastic(text: str, sentence: Sentence) -> bool:
    """Whether a sentence says the opposite of its words, by the signs people give."""
    signs = (pattern("sentence.sarcastic"), pattern("sentence.loud"))
    return any(sign.search(text, sentence.start, sentence.end) for sign in signs)


def reported_from(text: str, start: int, end: int) -> int:
    """Where somebody else's words begin inside a stretch, its end if nowhere; a doctor is believed."""
    found = pattern("sentence.reported").search(text, start, end)
    if found is None or found["who"].lower() in _BELIEVED:
        return end
    return found.start()


def is_unreal(text: str, start: int, end: int) -> bool:
    """Whether a clause begins as a condition, a wish or a supposition."""
    return pattern("sentence.unreal").match(text, start, end) is not None


def asks(text: str, start: int, end: int) -> bool:
    """Whether a clause is put as a question."""
    return pattern("sentence.question").match(text, start, end) is not None


# -------------------------------------------------------------------------------------------------------------- clauses


def clauses(text: str, sentence: Sentence) -> Iterator[Clause]:
    """The clauses of a sentence; in a question only what is stated beside it is not asked: "what fits, I'm tall?"."""
    cuts = list(_cuts(text, sentence))
    already = False
    for number, (start, end, goes_on) in enumerate(cuts):
        begin, sure = opened(text, start, end)
        last = number == len(cuts) - 1
        put = asks(text, start, end) and not goes_on
        asked = put or (sentence.asks and last and not already and not _stated(text, start, end))
        already = already or put
        if begin < end:
            yield Clause(begin, end, goes_on, sure, asked, start)


def _cuts(text: str, sentence: Sentence) -> Iterator[tuple[int, int, bool]]:
    start, goes_on = sentence.start, False
    for joint in pattern("sentence.joints").finditer(text, sentence.start, sentence.end):
        if joint["on"] is not None and not _goes_on(text, start, joint):
            continue
        if "and" in joint[0].lower() and pattern("sentence.together").fullmatch(text, start, joint.start()):
            continue  # my wife and I
        if pattern("sentence.apposed").fullmatch(text, start, joint.start()):
            continue  # Sanne, my sister, …
        if pattern("sentence.time_only").fullmatch(text, start, joint.start()):
            continue  # In 2009, I …
        if joint.start() > start:
            yield start, joint.start(), goes_on
        start, goes_on = joint.end(), joint["on"] is not None
    if start < sentence.end:
        yield start, sentence.end, goes_on


def _goes_on(text: str, start: int, joint: re.Match[str]) -> bool:
    """Whether what follows is said of the same subject, rather than what somebody would, could or wants to do."""
    if pattern("sentence.participle").match(text, joint.end()):
        return pattern("sentence.being").search(text, start, joint.start()) is not None
    if pattern("sentence.of_others").match(text, joint.end()) and pattern("speaker.first").match(text, start):
        return False
    if pattern("sentence.finite").match(text, joint.end()):
        return True
    return pattern("sentence.of_another_mind").search(text, start, joint.start()) is None


def _stated(text: str, start: int, end: int) -> bool:
    """Whether a clause gives a reason, which is stated even inside a question."""
    return pattern("sentence.reason").match(text, start, end) is not None


# -------------------------------------------------------------------------------------------------------- opening words


def opened(text: str, start: int, end: int) -> tuple[int, float]:
    """Where a clause really begins behind greetings and the like, and how sure they leave it."""
    sure = 1.0
    while (found := pattern("sentence.opening").match(text, start, end)) and found.end() > start:
        sure = min(sure, DOUBT if found["doubt"] else 1.0)
        start = found.end()
    while start < end and text[start] in " \n,;:-*_\"'(":
        start += 1
    return start, sure
