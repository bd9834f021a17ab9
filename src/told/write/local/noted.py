"""Notes about oneself, line by line or one behind the other: "- Name: Bob", "Likes: tea, jazz. Kids: 2"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.write.local import dates
from told.write.local.attributes import favourite
from told.write.local.people import predicate_of, related
from told.write.local.render import article, sentence, theirs
from told.write.local.said import BARE, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who, subject_at, titled
from told.write.local.tables import pattern, sections, spelled, words
from told.write.local.value import Value, is_name, is_place, trimmed
from told.write.local.verb import Stance, Verb, verb_at
from told.write.local.verbal import by_rules, notes

_LONGEST: Final = 8
_MOST: Final = 12
_LINE: Final = 16
_READ: Final = frozenset(("number", "email", "phone", "pronouns"))


@dataclass(frozen=True, slots=True)
class _Heading:
    """What stands before the colon, and what it makes of what stands behind it."""

    noun: str
    predicate: str
    sort: str
    phrase: str
    weak: bool = False


@cache
def _headings() -> dict[str, _Heading]:
    return {
        noun: _heading(noun, row)
        for file in ("attributes.txt", "notes.txt")
        for nouns, (row, *_) in sections(file).items() if not nouns.startswith("~")
        for noun in nouns.split("|")
    }  # fmt: skip


def _heading(noun: str, row: str) -> _Heading:
    predicate, sort, phrase, weak = (part.strip() for part in (*row.split(" | "), "", "")[:4])
    return _Heading(noun, predicate, sort, phrase, bool(weak))


@cache
def _worded() -> tuple[tuple[re.Pattern[str], _Heading], ...]:
    """The headings that are said in many ways."""
    heads = ((head, row) for head, (row, *_) in sections("notes.txt").items() if head.startswith("~"))
    return tuple((re.compile(spelled(head[1:]), re.IGNORECASE), _heading("", row)) for head, row in heads)


def _found(said: str) -> _Heading:
    """The heading that was written."""
    plain = re.sub(r"\s+", " ", said.lower())
    known = _headings().get(plain)
    return known or next(heading for form, heading in _worded() if form.fullmatch(plain))


@cache
def _frame() -> re.Pattern[str]:
    """A heading of a note: at the beginning of a line or behind another note."""
    plain = (re.escape(noun).replace(r"\ ", r"\s+") for noun in sorted(_headings(), key=len, reverse=True))
    nouns = "|".join([*(form.pattern for form, _ in _worded()), *plain])
    before, after = (pattern(f"noted.{side}").pattern for side in ("before", "after"))
    topic = pattern("attributes.favourite").pattern
    return re.compile(rf"(?:{before})(?:(?P<key>{nouns})|{topic})(?:{after})", re.IGNORECASE | re.MULTILINE)


def noted(talk: Talk) -> Iterator[Said]:
    """What the notes of a turn say; they are blanked, so that nobody reads them twice."""
    if pattern("noted.likely").search(talk.text) is None or pattern("noted.not_mine").search(talk.text):
        return
    text = talk.text
    found = list(_frame().finditer(text))
    weak = len(found) == 1 and bool(found[0]["key"]) and _found(found[0]["key"]).weak
    for heading, after in zip(found, [*found[1:], None], strict=bool(found)):
        limit = len(text) if after is None else after.start()
        said = [] if weak else list(_read(talk, heading, _end(text, heading.end(), limit)))
        if said:
            start, end = heading.start(), max(each.end for each in said)
            talk.text = talk.text[:start] + re.sub(r"\S", " ", text[start:end]) + talk.text[end:]
            yield from said


def pointed(talk: Talk) -> Iterator[Said]:
    """What a list of points without a subject says of the speaker: "- vegan", "- two kids", "- live in Oslo"."""
    found = pattern("noted.list").search(talk.text) if "\n" in talk.text else None
    if found is None:
        return
    who = Who(talk.speaker, first=True)
    said: list[Said] = []
    for point in pattern("noted.point").finditer(talk.text, *found.span("points")):
        start, end = point.span("point")
        if subject_at(talk.text, start, end, talk.speaker, None) is None:
            said += notes(talk, Clause(start, end, lead=start), who, start)
    if found["head"] and pattern("noted.trip").search(found["head"]):
        yield from _of_trip(talk, found)
    about_me = found["head"] and pattern("noted.about_me").search(found["head"])
    if about_me or (not found["head"] and len({each.predicate for each in said}) > 1):
        yield from (replace(each, confidence=BARE) for each in said)


def _of_trip(talk: Talk, found: re.Match[str]) -> Iterator[Said]:
    """What the points below a trip plan; those with a day of their own are read as sentences."""
    for point in pattern("noted.point").finditer(talk.text, *found.span("points")):
        start, end = point.span("point")
        if pattern("noted.going").fullmatch(point["point"]) and not dates.named(talk.text, start, end, talk.clock):
            value = trimmed(talk.text, start, end, article=False)
            text = f"{talk.speaker} plans {theirs(value.text)}"
            yield Said(talk.speaker, "plans", value.text, text, start, value.end, modality="planned", confidence=BARE)


def _end(text: str, start: int, limit: int) -> int:
    """Where the value of a note ends: with its line, or with the list of points below it."""
    below = pattern("noted.points").match(text, start, limit)
    if below is not None:
        return below.end()
    stop = pattern("noted.stop").search(text, start, limit)
    if stop:
        return stop.start()
    rest = text[start:limit].rstrip(" \t|,/;-")
    return start + len(rest if "(" in rest else rest.rstrip(" )"))


def _read(talk: Talk, found: re.Match[str], end: int) -> Iterator[Said]:
    at, first = found.end(), found.start() + len(found[0]) - len(found[0].lstrip(" \t\n.;|,\u2022-*"))
    if found["topic"]:
        values = list(_items(talk.text, at, end))
        yield from (favourite(talk.speaker, found["topic"].lower(), value, first, value.end) for value in values[:1])
        return
    heading = _found(found["key"])
    if found["said"] and heading.noun and heading.noun not in words("SPOKEN_HEADINGS"):
        return
    for said in _values(talk, heading, at, end):
        yield replace(said, start=first, confidence=BARE)


def _values(talk: Talk, heading: _Heading, at: int, end: int) -> Iterator[Said]:
    if pattern("noted.none").match(talk.text, at, end):
        return
    match heading.sort:
        case "people":
            yield from _people(talk, heading, at, end)
        case "line":
            value = trimmed(talk.text, at, end, article=False)
            if 0 < len(value.text.split()) <= _LINE:
                yield _said(talk, heading, value)
        case "things":
            for item in _items(talk.text, at, end):
                yield _denied(talk, item) if _is_denial(heading, item) else _said(talk, heading, item)
        case "job":
            yield from _job(talk, heading, at, end)
        case _:
            one = _single(talk.text, heading.sort, at, end)
            if one is not None and one.text:
                yield _said(talk, heading, one)


def _said(talk: Talk, heading: _Heading, value: Value) -> Said:
    shown = titled(value.text) if heading.sort == "name" else value.text
    phrase = heading.phrase.replace("{a}", article(shown)).replace("{}", theirs(shown))
    text = sentence(talk.speaker, phrase) if phrase else f"{talk.speaker}'s {heading.noun} is {theirs(shown)}"
    return Said(talk.speaker, heading.predicate, shown, text, value.start, value.end)


def _is_denial(heading: _Heading, item: Value) -> bool:
    return heading.predicate in ("diet", "likes", "avoids") and pattern("noted.no").match(item.text) is not None


def _denied(talk: Talk, item: Value) -> Said:
    """What a note about food says no to."""
    found = pattern("noted.no").match(item.text)
    start = item.start + (found.end() if found else 0)
    value = Value(talk.text[start : item.end], start, item.end)
    return Said(talk.speaker, "avoids", value.text, f"{talk.speaker} avoids {theirs(value.text)}", start, item.end)


def _job(talk: Talk, heading: _Heading, at: int, end: int) -> Iterator[Said]:
    """A job with where it is done, if the rules know it; else the first words, for the heading says what they are."""
    value = trimmed(talk.text, at, end)
    verb = Verb("be", Stance(), value.start, value.start)
    clause = Clause(value.start, value.end, lead=value.start)
    known = [said for said in by_rules(talk, clause, Who(talk.speaker, first=True), verb) if said.predicate != "name"]
    if known:
        yield from known
    elif item := next(_items(talk.text, at, end), None):
        yield _said(talk, heading, item)


# --------------------------------------------------------------------------------------------------------------- people


def _people(talk: Talk, heading: _Heading, at: int, end: int) -> Iterator[Said]:
    """Everybody who is noted; a bare name is one more of those before it: "sons Bram and Teun"."""
    last = _one(heading.noun) or heading.predicate.removeprefix("has_")
    for item in _items(talk.text, at, end, keep=True):
        if found := pattern("noted.person").fullmatch(item.text):
            noun = (found["noun"] or found["sort"] or "").lower()
            last = _one(noun) if noun and heading.predicate == "any" else last
            yield from _person(talk, heading, item, found, noun or last)


def _person(talk: Talk, heading: _Heading, item: Value, found: re.Match[str], relation: str) -> Iterator[Said]:
    """Somebody by name, or so many of them: "Tom (5)", "a cat named Luna", "two brothers", "2"."""
    name, noun = found["named"] or found["name"] or "", (found["noun"] or found["sort"] or "").lower()
    if heading.predicate == "any":
        heading = replace(heading, predicate=predicate_of(relation))
        relation = _one(relation)
    if name and is_name(name, known=not found["named"]):
        end = item.start + max(found.end("named"), found.end("name"))
        predicate = heading.predicate if predicate_of(relation) != heading.predicate else ""
        said = related(talk.speaker, relation, titled(name), item.start, end)
        yield replace(said, predicate=predicate) if predicate else said
        yield from _bracketed(talk, item, Who(titled(name), relation=relation))
    elif noun or found["count"]:
        end = item.start + max(found.end("count"), found.end("noun"))
        value = item.text[: end - item.start]
        shown = value if noun else f"{value} {heading.noun if heading.noun.endswith(('s', 'children')) else relation}"
        text = f"{talk.speaker} has {article(shown)}"
        yield Said(talk.speaker, heading.predicate, value, text, item.start, end, meta={"relation": relation})


def _bracketed(talk: Talk, item: Value, who: Who) -> Iterator[Said]:
    """What stands in brackets behind a name: "Lorna (lives in Oban)", "Struan (joiner)"."""
    found = pattern("noted.bracket").search(talk.text, item.start, item.end)
    if found is None:
        return
    start, end = found.span("note")
    verb = verb_at(talk.text, start, end) or Verb("be", Stance(), start, start)
    clause = Clause(start, end, lead=start)
    yield from (said for said in by_rules(talk, clause, who, verb) if said.predicate != "name")


def _one(noun: str) -> str:
    return {"children": "child", "kids": "child", "siblings": "sibling"}.get(noun, noun.removesuffix("s"))


# --------------------------------------------------------------------------------------------------------------- values


def _items(text: str, at: int, end: int, *, keep: bool = False) -> Iterator[Value]:
    """The items of a note, without what stands in brackets behind them unless that is wanted."""
    number = 0
    cuts = [*pattern("noted.comma").finditer(text, at, end), None]
    for cut in cuts:
        stop = end if cut is None else cut.start()
        if cut is not None and text.count("(", at, stop) > text.count(")", at, stop):
            continue
        bracket = text.find("(", at, stop)
        lead = pattern("noted.lead").match(text, at, stop)
        start = lead.end() if lead and not keep else at
        item = trimmed(text, start, stop if keep or bracket <= at else bracket, article=not keep)
        if cut is not None:
            at = cut.end()
        if item.text.lower() in words("EMPTY") or not item.text or pattern("noted.times").fullmatch(item.text):
            continue
        if len(item.text.split()) > _LONGEST or number >= _MOST or pattern("noted.own_sentence").match(item.text):
            return
        number += 1
        yield item


def _single(text: str, sort: str, at: int, end: int) -> Value | None:
    if sort in _READ:
        found = pattern(f"value.{sort}").match(text, at, end)
        return Value(found["value"], *found.span("value")) if found else None
    if sort == "date":
        return dates.day_at(text, at, end)
    bracket = text.find("(", at, end)
    value = trimmed(text, at, bracket if bracket > at else end)
    comma = value.text.find(",")
    if comma > 0 and sort != "place":
        value = Value(value.text[:comma], value.start, value.start + comma)
    return value if len(value.text.split()) <= _LONGEST and _is(sort, value.text) else None


def _is(sort: str, value: str) -> bool:
    match sort:
        case "name":
            return is_name(value)
        case "place":
            return is_place(value) or (value[:1].isupper() and len(value) < 40)
        case "love":
            return value.lower() in words("LOVE_LIFE")
        case "vp" | "long" | "whole" | "one" | "org" | "model" | "proper" | "thing":
            return bool(value) and not pattern("noted.own_sentence").match(value)
    return bool(value)
