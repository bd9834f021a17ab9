"""A turn with everything blanked that is not the speaker's own plain speech: code, quotations, texts to work on.

Every step keeps the length, so that a span of the cleaned text is a span of the turn.
"""

from __future__ import annotations

import re
from functools import cache

_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "`": "'", "\u00a0": " ", "\u2009": " ", "\t": " "})
LONGEST = 6000
"""How many characters of a turn are read; what is longer is a document, not somebody speaking of themselves."""


def plain_speech(text: str) -> str:
    """The text in the same length, blank where it is not the speaker's own statement."""
    text = text[:LONGEST]
    for pattern in _foreign():
        if pattern.search(text):
            text = pattern.sub(_blank, text)
    if '"' in text or "\u201c" in text or "\u00ab" in text:
        text = _quotation().sub(_blank_if_speech, text)
    if "\n" in text:
        text = _code_line().sub(_blank, text)
    return text.translate(_STRAIGHT)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"\S", " ", match[0])


def _blank_if_speech(match: re.Match[str]) -> str:
    """A quotation is blanked if somebody speaks in it; a quoted name loses only its marks."""
    inner = match[0][1:-1]
    if len(inner.split()) > 4 or _first_person().search(inner):
        return _blank(match)
    return f" {inner} "


@cache
def _foreign() -> tuple[re.Pattern[str], ...]:
    """Code, quoted lines, mark-up, addresses, and whatever follows an order to work on a text."""
    return (
        re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL),
        re.compile(r"`[^`\n]{0,80}[=(){};<>$/\\][^`\n]{0,80}`"),
        re.compile(r"^[ \t]*(?:>|\$ |#!|>>> ).*$", re.MULTILINE),
        re.compile(r"https?://\S+|<[a-zA-Z/!][^<>\n]{0,200}>"),
        re.compile(_TASK, re.IGNORECASE | re.DOTALL),
        re.compile(_ROLE_PLAY, re.IGNORECASE),
        re.compile(_MADE_UP, re.IGNORECASE | re.DOTALL),
    )


_WORK = (
    r"(?:translat\w+|rewrit\w+|re-write|proof-?read\w*|paraphras\w+|rephras\w+|correct|fix|check|improv\w+|edit|polish|"
    r"summari[sz]\w+|shorten|classify|analy[sz]e|parse|convert|complete|continue|transcribe|explain|review|grammar|"
    r"sentiment|what does|how do (?:you|i) say|say|write|extract|label|tag)"
)
_TASK = (
    rf"\b{_WORK}\b[^.!?:\n]{{0,80}}:\s*\S.*"
    rf"|\b(?:how do (?:you|i|we) (?:say|write)|(?:please |can you |could you )?translate)\b[^\n]*"
)
_ROLE_PLAY = (
    r"\b(?<!i )(?:(?:you are|you're|act as|pretend|imagine|suppose|let's (?:say|pretend|imagine)|assume|assuming|"
    r"role-?play|say that|hypothetically|in (?:the|my) (?:dream|story|novel|game|movie))\b)[^.!?\n]*"
)
_MADE_UP = (
    r"\b(?:write|draft|generate|compose|create|give me|tell me)\s+(?:me\s+)?(?:a|an|some|the|another)\s+(?:\w+\s+){0,4}"
    r"(?:story|poem|song|essay|email|e-mail|letter|speech|bio|tweet|post|script|dialogue|joke|haiku|limerick|scene|"
    r"message|blog|paragraph|lyrics|rap|monologue|toast|sentence|caption)\b[^.!?\n]*"
)


@cache
def _quotation() -> re.Pattern[str]:
    return re.compile(r"\"[^\"\n]{1,400}\"|\u201c[^\u201d\n]{1,400}\u201d|\u00ab[^\u00bb\n]{1,400}\u00bb")


@cache
def _first_person() -> re.Pattern[str]:
    return re.compile(r"\b(?:i|i'm|my|we|me|you|he|she|they|it's|is|are|was)\b", re.IGNORECASE)


@cache
def _code_line() -> re.Pattern[str]:
    """A line that is code, a log, a stack trace or a table, seen by its punctuation."""
    return re.compile(
        r"^(?:\s*(?:def|class|import|from \S+ import|return|const|let|var|function|public|private|SELECT|INSERT|UPDATE|CREATE|"
        r"FROM|WHERE|at \S+\(|File \"|Traceback|#include|package|func|fn|if \(|for \(|while \(|@\w+|\}|\{|//|/\*|\*/|<\w)"
        r".*|.*[;{}]\s*|\s*\w+\s*=[^=].*|.*(?:=>|->|==|!=|\(\)|\[\d).*|\s*[|+].*[|+]\s*|.*\d\d:\d\d:\d\d.*|\s*\w+Error\b.*)$",
        re.MULTILINE,
    )
