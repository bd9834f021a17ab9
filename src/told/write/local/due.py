"""What has to be done by a day: "the application closes on Friday", "I have to hand in my thesis by May"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from told.write.local import dates
from told.write.local.render import format_interval, to_third_person
from told.write.local.said import RuleClaim, TurnContext
from told.write.local.sentence import Clause
from told.write.local.tables import get_pattern
from told.write.local.value import trim_value

_MAX_DUE_WORDS: Final = 10


def parse_due(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What a clause says has an end or must be ready by a time."""
    match = get_pattern("due.frame").match(ctx.text, clause.start, clause.end)
    time = (
        dates.find_time(ctx.text, match.end(), clause.end, ctx.speech_time, is_future=True)
        if match
        else None
    )
    if match is None or not (time or match["feast"]):
        return
    group = next(name for name in ("thing", "todo", "asked") if match[name])
    task = trim_value(ctx.text, *match.span(group), strip_article=group != "todo")
    end = time.end if time else match.end("feast")
    if not 0 < len(task.text.split()) <= _MAX_DUE_WORDS or get_pattern("due.pointing").search(
        task.text
    ):
        return
    date_phrase = format_interval(time.interval) if time else f" {match['feast']}"
    verb_phrase = (match["ends"] or "is due").replace("'s ", "is ")
    text = f"{ctx.speaker}'s {to_third_person(task.text)} {verb_phrase}{date_phrase}"
    if group == "todo":
        text = f"{ctx.speaker} has to {to_third_person(task.text)}{date_phrase}"
    valid = time.interval if time else ctx.default_interval
    value = ctx.text[task.start : end]
    yield RuleClaim(
        ctx.speaker, "plans", value, text, clause.start, end, modality="planned", valid=valid
    )
