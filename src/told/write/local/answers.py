"""Answers that make sense only behind their question: "What kind of work do you do?" — "Mostly NLP"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from told.write.local.interpret import Talk
from told.write.local.render import article, sentence
from told.write.local.said import Said
from told.write.local.speaker import subject_at, titled
from told.write.local.value import CHECKS, items, trimmed, until
from told.write.local.verb import verb_at


@dataclass(frozen=True, slots=True)
class _Asked:
    pattern: str
    predicate: str
    sort: str
    phrase: str


_ROWS = (
    _Asked(r"(?:what(?:'s| is) your name|may i (?:ask|have) your name|who am i (?:talking|speaking) (?:to|with))", "name", "name", "'s name is {}"),
    _Asked(r"what (?:should|can|do|may) (?:i|people|we) call you", "nickname", "name", "go by {}"),
    _Asked(r"where (?:do you (?:live|reside)|are you (?:based|located|living)|(?:is|'s) home)", "lives_in", "place", "live in {}"),
    _Asked(r"where (?:are you (?:originally )?from|do you come from|did you grow up|were you born)", "comes_from", "place", "come from {}"),
    _Asked(r"where do you work|who do you work for|what company do you work", "works_at", "org", "work at {}"),
    _Asked(r"what do you do (?:for (?:a living|work))|what(?:'s| is) your (?:job|occupation|profession|role)", "works_as", "job", "work as {a}"),
    _Asked(r"how old are you|what(?:'s| is) your age", "age", "number", "be {} years old"),
    _Asked(r"(?:any|have any|do you have any|are there any) (?:food )?(?:allergies|dietary)|what are you allergic to|allergic to anything", "allergic_to", "things", "be allergic to {}"),
    _Asked(r"what languages do you speak|which languages do you speak", "speaks", "things", "speak {}"),
    _Asked(r"(?:what|which) (?:programming )?(?:languages?|tools?|editor|ide|framework|stack|database|os)\b.* (?:do you|are you) (?:use|using|work with|code in)", "uses", "things", "use {}"),
    _Asked(r"what (?:are|do you do for) (?:your )?(?:hobbies|fun)|what do you (?:like|enjoy|love)(?: to do| doing)?(?: in your (?:free|spare) time)?|what(?:'s| is) your hobby", "likes", "things", "like {}"),
    _Asked(r"what (?:kind|sort|type|area|areas|field|part)s? of (?:[\w-]+ ){1,4}(?:do you (?:do|work|specialize|focus)|are you|work)|what do you specialize|what(?:'s| is) your (?:specialty|focus|area|specialization)|what are you working on|which area", "skilled_in", "whole", "specialize in {}"),
    _Asked(r"what(?:'s| is) your favou?rite (?P<topic>[\w-]+(?: [\w-]+)?)", "favourite", "thing", "'s favourite {topic} is {}"),
    _Asked(r"what(?:'s| is) your (?:e-?mail|email address)", "email", "email", "'s email is {}"),
    _Asked(r"(?:what(?:'s| is)|when is) your birthday|when were you born", "birthday", "long", "'s birthday is {}"),
    _Asked(r"what (?:did you|are you) study(?:ing)?|what(?:'s| is) your major", "studies", "thing", "study {}"),
)


@cache
def _questions() -> tuple[tuple[_Asked, re.Pattern[str]], ...]:
    return tuple((row, re.compile(rf"\b(?:{row.pattern})\b[^?]*\?\s*$", re.IGNORECASE)) for row in _ROWS)


@cache
def _filler() -> re.Pattern[str]:
    return re.compile(r"\s*(?:(?:mostly|mainly|primarily|usually|just|only|it's|it is|its|oh|well|sure|yes|yeah|yep|um+|uh+|hmm+|i'd say|probably|definitely|in|at|for|from|near|as|a|an|the|to|i guess|currently)\b[,:]?\s*|[,.!]\s+)*",
                      re.IGNORECASE)  # fmt: skip


_NO_ANSWER = re.compile(r"\s*(?:no|nope|none|nah|not|never|nothing|i don't|why|what|i'd rather|prefer not|n/a|idk|dunno|thanks|ok|hello|hi|hey|can|could|how|please|sorry|good|great|fine)\b", re.IGNORECASE)


def answered(talk: Talk, question: str) -> Iterator[Said]:
    """What the first words of a turn say as the answer to the question before it, if they are no sentence of their own."""
    row = next(((row, found) for row, pattern in _questions() if (found := pattern.search(question[-400:].replace("\u2019", "'")))), None) if "?" in question else None
    if row is None or _NO_ANSWER.match(talk.text):
        return
    asked, found = row
    text = talk.text
    start = _filler().match(text).end()  # type: ignore[union-attr]
    end = _sentence_end(text, start)
    subject = subject_at(text, start, end, talk.speaker, None)
    if subject is not None and verb_at(text, subject.at, end) is not None and not subject.who.name == text[start:end].strip():
        return
    if text[start:end].endswith("?") or len(text[start:end].split()) > 12:
        return
    topic = found["topic"].lower() if "topic" in found.groupdict() else ""
    for value in _values(text, start, end, asked.sort):
        shown = titled(value.text) if asked.sort == "name" else value.text
        phrase = asked.phrase.replace("{topic}", topic).replace("{a}", article(shown)).replace("{}", shown)
        name = f"favourite_{re.sub('[^a-z0-9]+', '_', topic)}" if topic else asked.predicate
        yield Said(talk.speaker, name, shown, sentence(talk.speaker, phrase, "asserted"), value.start, value.end, confidence=0.8, valid=talk.default)


def _sentence_end(text: str, start: int) -> int:
    found = re.compile(r"[.!?\n](?=\s|$)").search(text, start)
    return found.start() + (found[0] == "?") if found else len(text)


def _values(text: str, start: int, end: int, sort: str) -> list:  # type: ignore[type-arg]
    stop = until(text, start, end)
    if sort == "things":
        return [item for item in items(text, start, stop) if CHECKS["thing"](item.text)]
    if sort == "number":
        found = re.compile(r"\d{1,3}\b").match(text, start, stop)
        return [trimmed(text, *found.span())] if found else []
    if sort == "email":
        found = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+").match(text, start, end)
        return [trimmed(text, *found.span())] if found else []
    if sort != "whole":
        comma = text.find(",", start, stop)
        stop = comma if comma > 0 and sort != "place" else stop
    value = trimmed(text, start, stop)
    check = CHECKS.get({"whole": "long"}.get(sort, sort), CHECKS["thing"])
    return [value] if value.text and check(value.text) else []
