"""Who a clause is about: the one who speaks, somebody of theirs, or somebody named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from told.write.local.tables import pattern, relatives, words
from told.write.local.value import is_name
from told.write.local.verb import forms

USER: Final = "User"
_KEPT: Final = frozenset("older younger little big best twin step ex ex- oldest youngest".split())
"""The adjectives that tell one relative from another."""


_KIN_TITLES: Final = frozenset("uncle aunt auntie cousin grandma grandpa granny nana".split())
"""What may stand before the name of a relative: Uncle Ray."""


@dataclass(frozen=True, slots=True)
class Who:
    """A subject as claims name it.

    `first` is the speaker. `relation` is what a third person is to the speaker, `known` whether it surely is a person.
    """

    name: str
    first: bool = False
    relation: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True)
class Subject:
    """Who a clause is about and where its verb begins; `called` is the name given beside a relation."""

    who: Who
    at: int
    called: str = ""
    called_at: int = 0


def subject_at(text: str, start: int, end: int, speaker: str, last: Who | None) -> Subject | None:
    """Who the clause that begins here is about, if it says so at its beginning."""
    if found := pattern("speaker.first").match(text, start, end):
        return Subject(Who(speaker, first=True), found.end())
    for name in ("twice", "mine", "apposed", "of_the_house", "kin"):
        if found := pattern(f"speaker.{name}").match(text, start, end):
            return _twice(found, speaker) if name == "twice" else relative(found, speaker)
    if found := pattern("speaker.theirs").match(text, start, end):
        relation = found["relation"].lower()
        return Subject(Who(f"{found['owner']}'s {relation}", relation=relation), found.end())
    if found := pattern("speaker.pronoun").match(text, start, end):
        return Subject(last, found.end()) if last is not None else None
    if found := pattern("speaker.third").match(text, start, end):
        return _named(found)
    return None


def _twice(found: re.Match[str], speaker: str) -> Subject:
    """Somebody of somebody's of the speaker's: my girlfriend's parents."""
    relation = found["relation"].lower()
    return Subject(Who(f"{speaker}'s {found['owner'].lower()}'s {relation}", relation=relation), found.end())


def spoken_of(text: str, start: int, end: int, speaker: str) -> Who | None:
    """The one person of the speaker's a stretch mentions, whom a later "she" can mean; none if there are several."""
    mentions = pattern("speaker.anywhere").finditer(text, start, end)
    people = [found for found in mentions if found["relation"].lower() not in words("PETS")]
    return relative(people[0], speaker).who if len(people) == 1 else None


def relative(found: re.Match[str], speaker: str) -> Subject:
    """Somebody of the speaker's, by name where one stands beside the relation."""
    groups = found.groupdict()
    relation = (found["relation"] or groups["kin"]).lower()
    adjective = (found["adjective"] or groups.get("adjective_") or "").lower()
    name = found["name"] or ""
    several = relation.endswith("s") and relation.removesuffix("s") in relatives()
    if name and is_name(name, known=True) and not several:
        return Subject(Who(titled(name), relation=relation), found.end(), name, found.start("name"))
    label = f"{adjective if adjective.strip() in _KEPT else ''}{relation}"
    return Subject(Who(f"{speaker}'s {label}", relation=relation), found.end("relation"))


def _named(found: re.Match[str]) -> Subject | None:
    if found["user"]:
        return Subject(Who(USER, first=True), found.end())
    name = found["name"] or found["low"]
    first = name.split()[0].lower()
    if first in _KIN_TITLES and " " in name:
        return Subject(Who(name, relation=first), found.end())
    known = first in words("FIRST_NAMES")
    if first in words("NO_PERSON") or not is_name(name, known=True) or (first in forms() and not known):
        return None
    return Subject(Who(titled(name), known=known), found.end())


def titled(name: str) -> str:
    """A name with a capital where it was written without."""
    return name if name != name.lower() else " ".join(part[:1].upper() + part[1:] for part in name.split())
