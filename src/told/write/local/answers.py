"""Answers that make sense only behind their question: "What kind of work do you do?" — "Mostly NLP"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from told.write.local.attributes import favourite, value_at, values_at
from told.write.local.people import household
from told.write.local.render import article, sentence
from told.write.local.said import BARE, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who, subject_at, titled
from told.write.local.tables import pattern, sections, spelled
from told.write.local.verb import verb_at

_LONGEST = 12
_TAIL = 400
"""How much of the end of a turn may hold the question it ends with."""


@cache
def _questions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (head, re.compile(rf"\b(?:{spelled('|'.join(asked))})\b[^?]*\?\s*$", re.IGNORECASE))
        for head, asked in sections("answers.txt").items()
    )


def answered(talk: Talk, question: str) -> Iterator[Said]:
    """What the first words of a turn say as the answer to the question before it."""
    yield from _mine(talk, question)
    if "?" not in question or pattern("answers.no_answer").match(talk.text):
        return
    asked = question[-_TAIL:].replace("\u2019", "'")
    for head, form in _questions():
        if found := form.search(asked):
            yield from _answers(talk, head, found.groupdict().get("topic") or "")
            return


def _mine(talk: Talk, said: str) -> Iterator[Said]:
    """What "mine is Kotlin" says when somebody has just named a favourite of theirs."""
    mine = pattern("answers.mine").match(talk.text)
    theirs = pattern("answers.theirs").search(said[-_TAIL:]) if mine else None
    if mine and theirs:
        value = value_at(talk.text, mine.start("value"), mine.end("value"), "thing")
        if value is not None:
            yield favourite(talk.speaker, theirs["topic"].lower(), value, mine.start("value"), value.end)


def _answers(talk: Talk, head: str, topic: str) -> Iterator[Said]:
    predicate, sort, phrase = head.split(" | ")
    filler = pattern("answers.filler").match(talk.text)
    start = filler.end() if filler else 0
    stop = pattern("answers.sentence_end").search(talk.text, start)
    end = stop.start() if stop else len(talk.text)
    if (stop and stop[0] == "?") or len(talk.text[start:end].split()) > _LONGEST or _is_sentence(talk, start, end):
        return
    if sort == "people":
        yield from household(talk, Clause(start, end, lead=start), Who(talk.speaker, first=True), start)
        return
    for value in values_at(talk.text, start, end) if sort == "things" else [value_at(talk.text, start, end, sort)]:
        if value is None:
            continue
        if topic:
            yield favourite(talk.speaker, topic.lower(), value, value.start, value.end)
            continue
        shown = titled(value.text) if sort == "name" else value.text
        text = sentence(talk.speaker, phrase.replace("{a}", article(shown)).replace("{}", shown))
        yield Said(talk.speaker, predicate, shown, text, value.start, value.end, confidence=BARE)


def _is_sentence(talk: Talk, start: int, end: int) -> bool:
    """Whether the answer has a subject and a verb of its own, and so needs no question to be understood."""
    subject = subject_at(talk.text, start, end, talk.speaker, None)
    return subject is not None and verb_at(talk.text, subject.at, end) is not None
