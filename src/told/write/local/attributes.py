"""What is said by naming the thing itself: "my name is Bob", "my wife's birthday is 3 March", "Favourite: sushi"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.write.local import dates, people
from told.write.local.render import article, sentence, theirs, when
from told.write.local.said import ASSERTED, NEGATED, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import USER, Who, titled
from told.write.local.tables import pattern, sections
from told.write.local.value import CHECKS, Value, is_name, is_thing, items, trimmed, until

_VAGUE: Final = frozenset("thing things part one way of person is".split())


@dataclass(frozen=True, slots=True)
class _Attribute:
    predicate: str
    sort: str
    phrase: str


@cache
def _attributes() -> dict[str, _Attribute]:
    return {
        noun: _Attribute(*(*row.split(" | "), "")[:3])
        for nouns, (row, *_) in sections("attributes.txt").items()
        for noun in nouns.split("|")
    }


def attribute(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What a clause says of an attribute it names."""
    text, start, end = talk.text, clause.start, clause.end
    if found := pattern("attributes.frame").match(text, start, end):
        owner = _owner(talk, found)
        if owner is not None:
            yield from _valued(talk, clause, found, owner)
    elif found := pattern("attributes.listed").match(text, start, end):
        if pattern("noted.not_mine").search(text) is None:
            yield from _valued(talk, clause, found, talk.speaker)
    elif found := pattern("attributes.bare").match(text, start, end):
        yield from _valued(talk, clause, found, talk.speaker)
    elif found := pattern("attributes.turned").match(text, start, end):
        value = trimmed(text, *found.span("value"))
        if is_thing(value.text) and found["topic"].lower().split()[0] not in _VAGUE:
            yield favourite(talk.speaker, found["topic"].lower(), value, start, found.end())


def _owner(talk: Talk, found: re.Match[str]) -> str | None:
    """Whose attribute it is, if that can be told."""
    if found["my"]:
        return talk.speaker
    if found["user"]:
        return USER
    if found["kin"]:
        return f"{talk.speaker}'s {found['kin'].split(None, 1)[1].lower()}"
    if found["named"]:
        return titled(found["named"]) if is_name(found["named"], known=True) else None
    if found["the"]:
        return talk.speaker if (found["noun"] or "").lower().endswith(("deadline", "due date")) else None
    return talk.last.name if talk.last is not None else None


def favourite(owner: str, topic: str, value: Value, start: int, end: int) -> Said:
    """The one thing of its sort that somebody likes best; a topic in the plural is the same topic."""
    single = topic.removesuffix("s") if not topic.endswith("ss") else topic
    slug = re.sub(r"[^a-z0-9]+", "_", single)
    text = f"{owner}'s favourite {topic} {'is' if single == topic else 'are'} {theirs(value.text)}"
    return Said(owner, f"favourite_{slug}", value.text, text, start, end)


def _valued(talk: Talk, clause: Clause, found: re.Match[str], owner: str) -> Iterator[Said]:
    """The attribute with each value that stands behind it."""
    denied = bool(found.groupdict().get("no"))
    if found["topic"]:
        several = found["topic"].lower().endswith("s") and not found["topic"].lower().endswith("ss")
        value = value_at(talk.text, found.end(), clause.end, "whole" if several else "thing")
        if value and found["topic"].lower().split()[0] not in _VAGUE and not denied:
            yield favourite(owner, found["topic"].lower(), value, clause.start, value.end)
        return
    noun = found["noun"].lower()
    row = _attributes()[noun]
    several = row.sort == "things"
    at, end = found.end(), clause.end
    for value in values_at(talk.text, at, end) if several else [value_at(talk.text, at, end, row.sort)]:
        if value is None or (denied and row.predicate == "goal"):
            continue
        if noun == "name" and found.groupdict().get("kin"):
            relation = owner.rpartition(" ")[2]
            talk.last = Who(titled(value.text), relation=relation)
            yield people.related(talk.speaker, relation, titled(value.text), clause.start, value.end)
        else:
            yield _dated(talk, _said(owner, noun, row, value, clause.start, denied))


def _said(owner: str, noun: str, row: _Attribute, value: Value, start: int, denied: bool) -> Said:
    shown = titled(value.text) if row.sort == "name" else value.text
    polarity = NEGATED if denied else ASSERTED
    phrase = row.phrase.replace("{a}", article(shown)).replace("{}", theirs(shown))
    if not phrase:
        is_ = ("are" if noun.endswith("s") else "is") + (" not" if denied else "")
        to = " to" if row.sort == "vp" and not shown.split()[0].endswith("ing") else ""
        text = f"{owner}'s {noun} {is_}{to} {theirs(shown)}"
    else:
        text = sentence(owner, phrase, polarity)
    return Said(owner, row.predicate, shown, text, start, value.end, polarity)


def _dated(talk: Talk, said: Said) -> Said:
    """A deadline with its day: the word for it will mean another day tomorrow."""
    if said.predicate != "deadline":
        return said
    time = dates.named(said.object, 0, len(said.object), talk.clock, ahead=True)
    return replace(said, text=f"{said.subject}'s deadline is {time.interval}", valid=time.interval) if time else said


# --------------------------------------------------------------------------------------------------------------- values


def values_at(text: str, at: int, end: int) -> list[Value]:
    """The things that are listed at a place."""
    return [item for item in items(text, at, until(text, at, end)) if is_thing(item.text)]


def value_at(text: str, at: int, end: int, sort: str) -> Value | None:
    """The one value that stands at a place, if it is of the right sort."""
    if sort in ("number", "email", "phone", "pronouns"):
        found = pattern(f"value.{sort}").match(text, at, end)
        return Value(found["value"], *found.span("value")) if found else None
    if sort == "date":
        return dates.day_at(text, at, end)
    stop = until(text, at, end)
    value = trimmed(text, at, stop if sort == "whole" else _first_comma(text, at, stop, keep=sort == "place"))
    if sort == "name":
        value = _name(value)
    return value if value.text and _is(sort, value, text[at:stop]) else None


def _is(sort: str, value: Value, said: str) -> bool:
    match sort:
        case "proper":
            return value.text[:1].isupper() and len(value.text.split()) <= 4
        case "model":
            return value.text[:1].isupper() or (said.lower().startswith(("a ", "an ")) and is_thing(value.text, 4))
        case "vp":
            return len(value.text.split()) >= 2 and CHECKS["vp"](value.text)
    return CHECKS[sort](value.text)


def _name(value: Value) -> Value:
    """A name ends before what is no part of one."""
    cut = pattern("attributes.name_end").search(value.text)
    return value if cut is None else Value(value.text[: cut.start()], value.start, value.start + cut.start())


def _first_comma(text: str, at: int, end: int, *, keep: bool) -> int:
    found = re.compile(r",(?!\d)").search(text, at, end)
    comma = found.start() if found else -1
    if comma < 0 or (keep and re.match(r",\s*[A-Z][\w.]+(?:\s[A-Z]\w+)?\s*$", text[comma:end])):
        return end
    return comma


# --------------------------------------------------------------------------------------------------------- appointments


def appointment(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What "my flight is on 3 March" says: something with its day."""
    found = pattern("attributes.appointment").match(talk.text, clause.start, clause.end)
    if found is None or not _dated_at(talk, found.end(), clause.end):
        return
    time = dates.named(talk.text, max(clause.start, found.end() - len(" on ")), clause.end, talk.clock, ahead=True)
    if time is not None:
        noun = found["noun"].strip()
        text = f"{talk.speaker} has {article(theirs(noun))}{when(time.interval)}"
        yield Said(talk.speaker, "plans", noun, text, clause.start, time.end, modality="planned", valid=time.interval)


def _dated_at(talk: Talk, at: int, end: int) -> bool:
    """Whether a time stands right here, rather than somewhere behind."""
    day = dates.day_at(talk.text, at, end)
    return day is not None or dates.named(talk.text, at, min(end, at + 12), talk.clock) is not None
