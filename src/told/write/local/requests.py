"""How somebody wants to be spoken to: "call me Sam", "please answer in short sentences", "no emojis"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from told.write.local.said import Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import titled
from told.write.local.tables import pattern, words
from told.write.local.value import is_name, trimmed

_LONGEST = 14


def nickname(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What "call me Sam" says."""
    start, end = clause.start, clause.end
    called = pattern("requests.call").match(talk.text, start, end)
    found = called or pattern("requests.called").match(talk.text, start, end)
    if found and found["name"].lower() not in words("NO_NICKNAMES") and is_name(found["name"]):
        name = titled(found["name"])
        yield Said(talk.speaker, "nickname", name, f"{talk.speaker} goes by {name}", start, found.end("name"))


def reply_style(talk: Talk, clause: Clause) -> Iterator[Said]:
    """How the assistant is asked to speak, from now on rather than about one thing."""
    if wanted := pattern("requests.wanted").match(talk.text, clause.start, clause.end):
        style = wanted["style"]
        text = f"{talk.speaker} wants {style}"
        yield Said(talk.speaker, "reply_style", style, text, clause.start, wanted.end("style"))
        return
    for start in dict.fromkeys((clause.start, clause.lead)):
        order = pattern("requests.order").match(talk.text, start, clause.end)
        if order and pattern("requests.styled").match(talk.text, order.start("verb"), clause.end):
            yield from _ordered(talk, order.start("verb"), clause.end)
            return


def asked_for(talk: Talk, clause: Clause) -> Iterator[Said]:
    """How the assistant is asked to speak for good, put as a question: "Can you always answer in German?"."""
    if pattern("requests.lasting").search(talk.text, clause.lead, clause.end):
        yield from reply_style(talk, clause)


def contact(talk: Talk, clause: Clause) -> Iterator[Said]:
    """Where "you can reach me at …" says one is to be found."""
    found = pattern("requests.contact").match(talk.text, clause.start, clause.end)
    for sort in ("email", "phone") if found else ():
        if found and found[sort]:
            text = f"{talk.speaker}'s {sort} is {found[sort]}"
            yield Said(talk.speaker, sort, found[sort], text, clause.start, found.end(sort))


def _ordered(talk: Talk, start: int, end: int) -> Iterator[Said]:
    stop = pattern("requests.stop").search(talk.text, start, end)
    value = trimmed(talk.text, start, stop.start() if stop else end, article=False)
    if value.text and len(value.text.split()) <= _LONGEST and not pattern("requests.this").search(value.text):
        text = f"{talk.speaker} asks the assistant to {_order(value.text)}"
        yield Said(talk.speaker, "reply_style", value.text, text, value.start, value.end)


def _order(value: str) -> str:
    """An order as somebody else reports it: don't use emojis becomes not use emojis."""
    low = re.sub(r"^(?:don't|do not|never)\s+", "not ", value[0].lower() + value[1:])
    low = re.sub(r"^(?:no|skip|omit)\s+", "avoid ", low)
    return re.sub(r"\bme\b", "them", re.sub(r"\byour\b", "its", low))
