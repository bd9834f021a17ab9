"""The values that stand in the slots of a rule, and how its phrase shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from told.write.local import dates
from told.write.local.render import article, theirs
from told.write.local.rules import Rule
from told.write.local.speaker import titled
from told.write.local.tables import pattern, words
from told.write.local.value import CHECKS, Value, is_trade, items, trimmed, until
from told.write.local.verb import Verb

_LISTS: Final = {"things": "thing", "places": "place", "jobs": "job"}
_SORTS: Final = {"other": "thing", "old": "thing"}
_CUTS: Final = {"place": "place", "org": "org", "job": "job", "name": "name", "known": "name"}
_LONGEST: Final = 12


def values_in(text: str, slot: str, match: re.Match[str], verb: Verb, rule: Rule) -> list[Value]:
    """The values that stand in a slot, none if they are of the wrong sort."""
    start, end = match.span(slot)
    if slot == "verb":
        return _with_verb(text, verb, match.end(), whole=rule.predicate == "habit" and not rule.pattern.endswith(".*"))
    if slot == "date":
        day = dates.day_at(text, start, end)
        return [day] if day else []
    stop = until(text, start, end)
    if rule.predicate in ("uses", "project_uses"):
        used = _used(text, start, stop)
        if slot == "things":
            return [value for one in used for value in _listed(text, *one, end, "thing")]
        stop = used[0][1]
    if slot in _LISTS:
        return _listed(text, start, stop, end, _LISTS[slot])
    spelled_out = rule.spells_out(slot)
    stop = stop if spelled_out and slot == "known" else _cut(text, start, stop, slot)
    value = trimmed(text, start, stop, article=not spelled_out)
    fits = (spelled_out and slot == "thing") or CHECKS[_SORTS.get(slot, slot)](value.text)
    return [value] if value.text and (fits or (slot == "job" and _is_trade(text, value))) else []


def _used(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """The stretches that say what is used, and with what; each ends before what it is used for."""
    joints = [*pattern("slots.used_with").finditer(text, start, stop)]
    starts = [start, *(joint.end() for joint in joints if not _is_somebody(text, joint.end()))]
    cuts = (pattern("slots.purpose").search(text, at, stop) for at in starts)
    return [(at, cut.start() if cut else stop) for at, cut in zip(starts, cuts, strict=True)]


def _is_somebody(text: str, at: int) -> bool:
    return re.split(r"\W", text[at:], maxsplit=1)[0].lower() in words("FIRST_NAMES")


def _with_verb(text: str, verb: Verb, end: int, *, whole: bool = False) -> list[Value]:
    """The verb itself with what follows it, up to where a value ends unless the whole was matched for good."""
    stop = end if whole else max(until(text, verb.at, end), verb.at)
    if not text[verb.at : stop].strip():
        stop = end
    value = trimmed(text, verb.word, stop, article=False)
    return [value] if len(value.text.split()) <= _LONGEST else []


def _listed(text: str, start: int, stop: int, end: int, sort: str) -> list[Value]:
    """The items of a list up to the first that will not do; "sharing what I know" is no love of sharing."""
    found = list(items(text, start, stop))
    if sort in _CUTS:
        found = [trimmed(text, item.start, _cut(text, item.start, item.end, sort)) for item in found]
    if found and stop < end and re.fullmatch(r"\w+ing", found[-1].text) and pattern("slots.that").match(text, stop):
        found.pop()
    if found and stop < end and pattern("slots.not_at_all").match(text, stop):
        found.pop()
    good = (CHECKS[sort](item.text) or (sort == "job" and _is_trade(text, item)) for item in found)
    bad = next((number for number, fits in enumerate(good) if not fits), len(found))
    return found[:bad]


def _is_trade(text: str, value: Value) -> bool:
    """Whether a value is a trade nobody wrote down: "an upholsterer", "as a tiler"."""
    return (
        is_trade(value.text) and pattern("slots.as_a").search(text, max(0, value.start - 12), value.start) is not None
    )


def _cut(text: str, start: int, end: int, slot: str) -> int:
    """Where a value of this sort ends before the stretch does."""
    if slot == "whole":
        return end
    found = pattern(f"slots.cut_{_CUTS.get(slot, 'thing')}").search(text, start, end)
    return found.start() if found and found.start() > start else end


def place_at(text: str, start: int, end: int) -> Value:
    """The place that is named at a position."""
    return trimmed(text, start, _cut(text, start, until(text, start, end), "place"))


def filled(phrase: str, values: Mapping[str, Value], verb: Verb) -> str:
    """A phrase with its values in it; {a_thing} asks for an article, {the_thing} for whose it is."""
    if "vp" in values and re.match(r"\w+ing\b", values["vp"].text):
        phrase = phrase.replace("plan to {vp}", "plan on {vp}")

    def shown(slot: re.Match[str]) -> str:
        name = slot[1]
        if name in values:
            return _shown(name, values[name].text, verb, phrase)
        kind, _, base = name.partition("_")
        value = theirs(values[base].text)
        return article(value) if kind == "a" else f"their {value}"

    return re.sub(r"\{(\w+)\}", shown, phrase)


def _shown(slot: str, value: str, verb: Verb, phrase: str) -> str:
    if slot in ("name", "known"):
        return titled(value)
    if slot in ("job", "jobs"):
        return article(value)
    if slot == "verb" and not phrase.startswith("=") and not phrase.startswith("be "):
        return theirs(f"{verb.lemma} {value.partition(' ')[2]}".strip())
    return theirs(value)
