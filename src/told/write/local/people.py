"""The people and animals of a life: "my sister Emma", "two cats named Luna and Milo", "Anna is my wife"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from told.core.lazy import regex
from told.write.local.render import article, sentence
from told.write.local.said import ASSERTED, NEGATED, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who, titled
from told.write.local.tables import pattern, relatives, words
from told.write.local.value import is_name

_NAMES: Final = regex(r"\b(?!and\b)[^\W\d_][\w'-]*(?:\s+[A-Z][\w'-]*)?")
_BRACKETS: Final = regex(r"\([^)]*\)")
_ONE: Final = frozenset("a an one no any some".split())
_YOUNG: Final = frozenset(("girl", "boy"))
_THE_ONE: Final = frozenset(("has_partner", "has_parent", "manager", "has"))
"""What one has one of: the sentence says who it is, not that there is one."""
_CHILDREN: Final = frozenset("eldest youngest oldest firstborn lad little_one kiddo".split())
_NO_NEWS: Final = frozenset(("has", "manager", "has_colleague", "has_friend"))
"""What everybody has: without a name it says nothing."""


def _single(noun: str) -> str:
    """One of them: kid for kids."""
    low = noun.lower()
    return {"children": "child", "puppies": "puppy", "mice": "mouse"}.get(low, low.removesuffix("s"))


def predicate_of(noun: str) -> str:
    """What having one of these is called: has_pet for a dog, has_sibling for a sister."""
    low = noun.lower()
    if low.removesuffix("s") in _YOUNG or low.endswith("old"):
        return "has_child"
    return relatives().get(low) or relatives().get(low.removesuffix("s")) or "has_pet"


def household(talk: Talk, clause: Clause, who: Who, at: int, denial: str = "") -> Iterator[Said]:
    """The people and pets somebody has, by name where they are named; a denial is "no" or "no longer"."""
    if not pattern("people.counted").match(talk.text, at, clause.end):
        return
    for found in pattern("people.owned").finditer(talk.text, at, clause.end):
        other = pattern("people.no_owner").match(talk.text, found.end("noun"), clause.end)
        if other or not words("NO_OWNING").isdisjoint(found["adjective"].lower().split()):
            continue
        denial = denial or ("no" if found["count"].lower() in ("no", "any") else "")
        named = [] if denial else list(_named(found, who, clause))
        yield from named or _unnamed(talk, found, who, clause, denial)


def _named(found: re.Match[str], who: Who, clause: Clause) -> Iterator[Said]:
    group = "names" if found["names"] else "beside"
    names = list(_NAMES.finditer(_BRACKETS.sub(lambda aside: " " * len(aside[0]), found[group] or "")))
    single = _single(found["noun"])
    if all(is_name(name[0]) for name in names):
        for name in names:
            text = f"{who.name} has {article(single)} named {titled(name[0])}"
            end = found.start(group) + name.end()
            meta = {"relation": single}
            yield Said(who.name, predicate_of(single), titled(name[0]), text, clause.start, end, meta=meta)


def _unnamed(talk: Talk, found: re.Match[str], who: Who, clause: Clause, denial: str) -> Iterator[Said]:
    noun, count = found["noun"], found["count"].lower()
    predicate = predicate_of(noun)
    one = bool(denial) or count in _ONE
    value = f"{found['adjective']}{noun}" if one else talk.text[found.start("count") : found.end("noun")]
    none = f"does not have {article(value)}" if count in ("a", "an") else f"has no {value}"
    has = {"no": none, "no longer": f"no longer has {article(value)}"}.get(denial, f"has {article(value)}")
    if denial or predicate not in _NO_NEWS:
        polarity = NEGATED if denial else ASSERTED
        meta = {"relation": _single(noun)}
        end = found.end("noun")
        text = sentence(who.name, f"={has}") if denial else sentence(who.name, f"have {article(value)}")
        yield Said(who.name, predicate, value, text, clause.start, end, polarity, meta=meta)


# --------------------------------------------------------------------------------------------------------- named beside


def beside(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """Everybody of the speaker's who is named beside what they are: "my daughter Mia", even in passing."""
    for found in pattern("people.beside").finditer(talk.text, start, end):
        first, _, second = found["name"].partition(" ")
        name = first if second.lower() in ("is", "and", "has") else found["name"]
        relation = found["relation"].lower()
        gone = found["adjective"].strip().lower() in ("ex", "ex-", "late", "former")
        several = relation.endswith("s") and relation in relatives()
        if is_name(name, known=True) and not gone and not several:
            yield related(talk.speaker, relation, titled(name), found.start(), found.start("name") + len(name))


def introduced(text: str) -> dict[str, Who]:
    """Everybody whose relation a text tells beside their name, so that the name alone says who is meant."""
    found = (one for name in ("people.beside", "people.theirs") for one in pattern(name).finditer(text))
    names = ((one["name"].partition(" ")[0], one["relation"].lower()) for one in found)
    return {name: Who(name, relation=relation) for name, relation in names if is_name(name, known=True)}


def all_named(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """Several people or pets at once: "my kids are named Ava and Ben"."""
    for found in pattern("people.listed").finditer(talk.text, start, end):
        relation = _single(found["relation"] or "child")
        group = "names" if found["names"] else "their"
        for name in _NAMES.finditer(found[group]):
            stop = found.start(group) + name.end()
            if is_name(name[0], known=True):
                yield related(talk.speaker, relation, titled(name[0]), found.start(), stop)
    for found in pattern("people.several").finditer(talk.text, start, end):
        names = list(_NAMES.finditer(_BRACKETS.sub(lambda aside: " " * len(aside[0]), found["names"])))
        if len(names) > 1 and all(is_name(name[0], known=True) for name in names):
            for name in names:
                stop = found.start("names") + name.end()
                yield related(talk.speaker, _single(found["relation"]), titled(name[0]), found.start(), stop)


def theirs(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """Whom somebody of the speaker's has, by name: "my brother lives in Melbourne with his husband Tom"."""
    if pattern("people.of_theirs").search(talk.text, start, end) is None:
        return
    for found in pattern("people.their_own").finditer(talk.text, start, end):
        relation, name = found["kin"].lower(), titled(found["name"])
        if is_name(name, known=True):
            who = titled(found["called"]) if found["called"] else f"{talk.speaker}'s {found['relation'].lower()}"
            yield related(who, relation, name, found.start(), found.end("name"))


def pet_called(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """A pet whose name is told behind it: "a puppy, she's called Momo"."""
    for found in pattern("people.pet_called").finditer(talk.text, start, end):
        if is_name(found["name"]):
            yield related(talk.speaker, found["noun"].lower(), titled(found["name"]), found.start(), found.end())


def parted(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """Whom the speaker is no longer with: "Tom and I split up"."""
    if found := pattern("people.parted").search(talk.text, start, end):
        group = next(name for name in ("kin", "name", "kin_", "name_") if found[name])
        value = found[group]
        text = f"{talk.speaker} is no longer with {value if group.startswith('name') else f'their {value}'}"
        yield Said(talk.speaker, "has_partner", value, text, found.start(), found.end(group), NEGATED)


def related(speaker: str, relation: str, name: str, start: int, end: int, polarity: str = ASSERTED) -> Said:
    """A named person or pet of somebody's."""
    predicate = predicate_of(relation)
    shown = "child" if relation in _CHILDREN or relation.endswith("old") else relation
    text = f"{speaker} has {article(shown)} named {name}"
    if polarity == NEGATED:
        text = f"{speaker} no longer has {article(shown)} named {name}"
    elif predicate in _THE_ONE:
        text = f"{speaker}'s {relation} is {name}"
    return Said(speaker, predicate, name, text, start, end, polarity, meta={"relation": relation})


def lost(speaker: str, pet: str, start: int, end: int) -> Said:
    """A pet that died without having been named."""
    return Said(speaker, "has_pet", pet, f"{speaker} no longer has {article(pet)}", start, end, NEGATED)


def is_mine(talk: Talk, clause: Clause, who: Who, at: int) -> Said | None:
    """What "Anna is my wife" says."""
    found = pattern("people.is_mine").match(talk.text, at, clause.end)
    return related(talk.speaker, found["relation"].lower(), who.name, clause.start, found.end()) if found else None


def is_gone(text: str, at: int, end: int) -> bool:
    """Whether a clause says that its subject died."""
    return pattern("people.gone").match(text, at, end) is not None
