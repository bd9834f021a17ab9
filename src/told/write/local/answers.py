"""Answers that make sense only behind their question: "What kind of work do you do?" — "Mostly NLP"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from told.write.local.attributes import build_favourite, parse_value, parse_values
from told.write.local.people import parse_household
from told.write.local.render import add_article, build_sentence
from told.write.local.said import FRAGMENT_CONFIDENCE, RuleClaim, TurnContext
from told.write.local.sentence import Clause
from told.write.local.speaker import Referent, capitalise_name, parse_subject
from told.write.local.tables import expand_macros, get_pattern, load_sections
from told.write.local.verb import parse_verb

_MAX_WORDS = 12
_TAIL_LENGTH = 400
"""How much of the end of a turn may hold the question it ends with."""


@cache
def _load_questions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (head, re.compile(rf"\b(?:{expand_macros('|'.join(forms))})\b[^?]*\?\s*$", re.IGNORECASE))
        for head, forms in load_sections("answers.txt").items()
    )


def parse_answer(ctx: TurnContext, question: str) -> Iterator[RuleClaim]:
    """What the first words of a turn say as the answer to the question before it."""
    yield from _parse_own_favourite(ctx, question)
    if "?" not in question or get_pattern("answers.no_answer").match(ctx.text):
        return
    tail = question[-_TAIL_LENGTH:].replace("\u2019", "'")
    for head, question_pattern in _load_questions():
        if match := question_pattern.search(tail):
            yield from _parse_answer_values(ctx, head, match.groupdict().get("topic") or "")
            return


def _parse_own_favourite(ctx: TurnContext, question: str) -> Iterator[RuleClaim]:
    """What "mine is Kotlin" says when somebody has just named a favourite of theirs."""
    own_match = get_pattern("answers.mine").match(ctx.text)
    their_match = (
        get_pattern("answers.theirs").search(question[-_TAIL_LENGTH:]) if own_match else None
    )
    if own_match and their_match:
        value = parse_value(ctx.text, own_match.start("value"), own_match.end("value"), "thing")
        if value is not None:
            yield build_favourite(
                ctx.speaker,
                their_match["topic"].lower(),
                value,
                own_match.start("value"),
                value.end,
            )


def _parse_answer_values(ctx: TurnContext, head: str, topic: str) -> Iterator[RuleClaim]:
    predicate, value_type, phrase = head.split(" | ")
    filler = get_pattern("answers.filler").match(ctx.text)
    start = filler.end() if filler else 0
    end_match = get_pattern("answers.sentence_end").search(ctx.text, start)
    end = end_match.start() if end_match else len(ctx.text)
    if (
        (end_match and end_match[0] == "?")
        or len(ctx.text[start:end].split()) > _MAX_WORDS
        or _is_sentence(ctx, start, end)
    ):
        return
    if value_type == "people":
        yield from parse_household(
            ctx, Clause(start, end, lead=start), Referent(ctx.speaker, is_speaker=True), start
        )
        return
    for value in (
        parse_values(ctx.text, start, end)
        if value_type == "things"
        else [parse_value(ctx.text, start, end, value_type)]
    ):
        if value is None:
            continue
        if topic:
            yield build_favourite(ctx.speaker, topic.lower(), value, value.start, value.end)
            continue
        shown = capitalise_name(value.text) if value_type == "name" else value.text
        text = build_sentence(
            ctx.speaker, phrase.replace("{a}", add_article(shown)).replace("{}", shown)
        )
        yield RuleClaim(
            ctx.speaker,
            predicate,
            shown,
            text,
            value.start,
            value.end,
            confidence=FRAGMENT_CONFIDENCE,
        )


def _is_sentence(ctx: TurnContext, start: int, end: int) -> bool:
    """Whether the answer has a subject and a verb of its own, and so needs no question to be understood."""
    subject = parse_subject(ctx.text, start, end, ctx.speaker, None)
    return subject is not None and parse_verb(ctx.text, subject.verb_start, end) is not None
