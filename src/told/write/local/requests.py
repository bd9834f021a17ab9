"""How somebody wants to be spoken to: "call me Sam", "please answer in short sentences", "no emojis"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from told.write.local.said import RuleClaim, TurnContext
from told.write.local.sentence import Clause
from told.write.local.speaker import capitalise_name
from told.write.local.tables import get_pattern, load_words
from told.write.local.value import is_name, trim_value

_MAX_REQUEST_WORDS = 14


def parse_nickname(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What "call me Sam" says."""
    start, end = clause.start, clause.end
    call_match = get_pattern("requests.call").match(ctx.text, start, end)
    match = call_match or get_pattern("requests.called").match(ctx.text, start, end)
    if match and match["name"].lower() not in load_words("NO_NICKNAMES") and is_name(match["name"]):
        name = capitalise_name(match["name"])
        yield RuleClaim(
            ctx.speaker, "nickname", name, f"{ctx.speaker} goes by {name}", start, match.end("name")
        )


def parse_reply_style(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """How the assistant is asked to speak, from now on rather than about one thing."""
    if style_match := get_pattern("requests.wanted").match(ctx.text, clause.start, clause.end):
        style = style_match["style"]
        text = f"{ctx.speaker} wants {style}"
        yield RuleClaim(
            ctx.speaker, "reply_style", style, text, clause.start, style_match.end("style")
        )
        return
    for start in dict.fromkeys((clause.start, clause.lead)):
        order_match = get_pattern("requests.order").match(ctx.text, start, clause.end)
        if order_match and get_pattern("requests.styled").match(
            ctx.text, order_match.start("verb"), clause.end
        ):
            yield from _parse_order(ctx, order_match.start("verb"), clause.end)
            return


def parse_style_question(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """How the assistant is asked to speak for good, put as a question: "Can you always answer in German?"."""
    if get_pattern("requests.lasting").search(ctx.text, clause.lead, clause.end):
        yield from parse_reply_style(ctx, clause)


def parse_contact(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Where "you can reach me at …" says one is to be found."""
    match = get_pattern("requests.contact").match(ctx.text, clause.start, clause.end)
    for channel in ("email", "phone") if match else ():
        if match and match[channel]:
            text = f"{ctx.speaker}'s {channel} is {match[channel]}"
            yield RuleClaim(
                ctx.speaker, channel, match[channel], text, clause.start, match.end(channel)
            )


def _parse_order(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    stop = get_pattern("requests.stop").search(ctx.text, start, end)
    value = trim_value(ctx.text, start, stop.start() if stop else end, strip_article=False)
    if (
        value.text
        and len(value.text.split()) <= _MAX_REQUEST_WORDS
        and not get_pattern("requests.this").search(value.text)
    ):
        text = f"{ctx.speaker} asks the assistant to {_reword_order(value.text)}"
        yield RuleClaim(ctx.speaker, "reply_style", value.text, text, value.start, value.end)


def _reword_order(value: str) -> str:
    """An order as somebody else reports it: don't use emojis becomes not use emojis."""
    lowered = re.sub(r"^(?:don't|do not|never)\s+", "not ", value[0].lower() + value[1:])
    lowered = re.sub(r"^(?:no|skip|omit)\s+", "avoid ", lowered)
    return re.sub(r"\bme\b", "them", re.sub(r"\byour\b", "its", lowered))
