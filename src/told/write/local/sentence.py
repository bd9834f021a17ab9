"""Sentences and clauses of a turn, as stretches of it, and whether each is a statement, a question or a what-if."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from told.write.local.tables import get_pattern

MAX_SENTENCES: Final = 60
DOUBT_CONFIDENCE: Final = 0.5
_TRUSTED_REPORTERS: Final = frozenset(
    "hr recruiter hospital clinic vet midwife lawyer doctor dr doc dentist allergist therapist gp psychiatrist "
    "dermatologist".split()
)
_ABBREVIATION_LOOKBACK: Final = 8
"""How far back from a full stop "Prof" and its like may begin."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a text in which one thing is said.

    `goes_on` tells that it has no subject of its own and speaks on of the one before. `sure` is how sure the words
    before it leave it; `asked` that it is part of a question; `lead` is where those words begin.
    """

    start: int
    end: int
    is_continuation: bool = False
    confidence: float = 1.0
    is_question: bool = False
    lead: int = 0


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """A stretch of a text up to a full stop, and whether it asks."""

    start: int
    end: int
    is_question: bool


# ------------------------------------------------------------------------------------------------------------ sentences


def split_sentences(text: str) -> Iterator[SentenceSpan]:
    """The sentences of a text, the first few dozen of a long one."""
    start = count = 0
    for boundary in get_pattern("sentence.boundary").finditer(text):
        mark = boundary[0]
        back = max(start, boundary.start() - _ABBREVIATION_LOOKBACK)
        if mark == "." and get_pattern("sentence.short_form").search(text, back, boundary.start()):
            continue
        if text[start : boundary.start()].strip():
            count += 1
            yield SentenceSpan(start, boundary.start(), "?" in mark or "\uff1f" in mark)
        start = boundary.end()
        if count >= MAX_SENTENCES:
            return
    if text[start:].strip():
        yield SentenceSpan(start, len(text), False)


# --------------------------------------------------------------------------------------------------------- what to skip


def is_sarcastic(text: str, sentence: SentenceSpan) -> bool:
    """Whether a sentence says the opposite of its words, by the signs people give."""
    signs = (get_pattern("sentence.sarcastic"), get_pattern("sentence.loud"))
    return any(sign.search(text, sentence.start, sentence.end) for sign in signs)


def find_reported_start(text: str, start: int, end: int) -> int:
    """Where somebody else's words begin inside a stretch, its end if nowhere; a doctor is believed."""
    match = get_pattern("sentence.reported").search(text, start, end)
    if match is None or match["who"].lower() in _TRUSTED_REPORTERS:
        return end
    return match.start()


def is_hypothetical(text: str, start: int, end: int) -> bool:
    """Whether a clause begins as a condition, a wish or a supposition."""
    return get_pattern("sentence.unreal").match(text, start, end) is not None


def is_question(text: str, start: int, end: int) -> bool:
    """Whether a clause is put as a question."""
    return get_pattern("sentence.question").match(text, start, end) is not None


# -------------------------------------------------------------------------------------------------------------- clauses


def split_clauses(text: str, sentence: SentenceSpan) -> Iterator[Clause]:
    """The clauses of a sentence; in a question only what is stated beside it is not asked: "what fits, I'm tall?"."""
    spans = list(_find_clause_spans(text, sentence))
    question_seen = False
    for number, (start, end, continues) in enumerate(spans):
        begin, confidence = skip_opening(text, start, end)
        is_last = number == len(spans) - 1
        starts_question = is_question(text, start, end) and not continues
        is_asked = starts_question or (
            sentence.is_question
            and is_last
            and not question_seen
            and not _is_reason(text, start, end)
        )
        question_seen = question_seen or starts_question
        if begin < end:
            yield Clause(begin, end, continues, confidence, is_asked, start)


def _find_clause_spans(text: str, sentence: SentenceSpan) -> Iterator[tuple[int, int, bool]]:
    start, continues = sentence.start, False
    for joint in get_pattern("sentence.joints").finditer(text, sentence.start, sentence.end):
        if joint["on"] is not None and not _is_continuation(text, start, joint):
            continue
        if "and" in joint[0].lower() and get_pattern("sentence.together").fullmatch(
            text, start, joint.start()
        ):
            continue  # my wife and I
        if get_pattern("sentence.apposed").fullmatch(text, start, joint.start()):
            continue  # Sanne, my sister, …
        if get_pattern("sentence.time_only").fullmatch(text, start, joint.start()):
            continue  # In 2009, I …
        if joint.start() > start:
            yield start, joint.start(), continues
        start, continues = joint.end(), joint["on"] is not None
    if start < sentence.end:
        yield start, sentence.end, continues


def _is_continuation(text: str, start: int, joint: re.Match[str]) -> bool:
    """Whether what follows is said of the same subject, rather than what somebody would, could or wants to do."""
    if get_pattern("sentence.participle").match(text, joint.end()):
        return get_pattern("sentence.being").search(text, start, joint.start()) is not None
    if get_pattern("sentence.of_others").match(text, joint.end()) and get_pattern(
        "speaker.first"
    ).match(text, start):
        return False
    if get_pattern("sentence.finite").match(text, joint.end()):
        return True
    return get_pattern("sentence.of_another_mind").search(text, start, joint.start()) is None


def _is_reason(text: str, start: int, end: int) -> bool:
    """Whether a clause gives a reason, which is stated even inside a question."""
    return get_pattern("sentence.reason").match(text, start, end) is not None


# -------------------------------------------------------------------------------------------------------- opening words


def skip_opening(text: str, start: int, end: int) -> tuple[int, float]:
    """Where a clause really begins behind greetings and the like, and how sure they leave it."""
    confidence = 1.0
    while (
        match := get_pattern("sentence.opening").match(text, start, end)
    ) and match.end() > start:
        confidence = min(confidence, DOUBT_CONFIDENCE if match["doubt"] else 1.0)
        start = match.end()
    while start < end and text[start] in " \n,;:-*_\"'(":
        start += 1
    return start, confidence
