"""Who a clause is about: the one who speaks, somebody of theirs, or somebody named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from told.write.local.tables import get_pattern, load_relatives, load_words
from told.write.local.value import is_name
from told.write.local.verb import load_verb_forms

DEFAULT_SPEAKER: Final = "User"
_DISTINGUISHING_ADJECTIVES: Final = frozenset(
    "older younger little big best twin step ex ex- oldest youngest".split()
)
"""The adjectives that tell one relative from another."""


_KIN_TITLES: Final = frozenset("uncle aunt auntie cousin grandma grandpa granny nana".split())
"""What may stand before the name of a relative: Uncle Ray."""


@dataclass(frozen=True, slots=True)
class Referent:
    """A subject as claims name it.

    `first` is the speaker. `relation` is what a third person is to the speaker, `known` whether it surely is a person.
    """

    name: str
    is_speaker: bool = False
    relation: str = ""
    is_person: bool = True


@dataclass(frozen=True, slots=True)
class ClauseSubject:
    """Who a clause is about and where its verb begins; `called` is the name given beside a relation."""

    referent: Referent
    verb_start: int
    name: str = ""
    name_start: int = 0


def parse_subject(
    text: str, start: int, end: int, speaker: str, last_referent: Referent | None
) -> ClauseSubject | None:
    """Who the clause that begins here is about, if it says so at its beginning."""
    if match := get_pattern("speaker.first").match(text, start, end):
        return ClauseSubject(Referent(speaker, is_speaker=True), match.end())
    for name in ("twice", "mine", "apposed", "of_the_house", "kin"):
        if match := get_pattern(f"speaker.{name}").match(text, start, end):
            return (
                _parse_nested_relative(match, speaker)
                if name == "twice"
                else parse_relative(match, speaker)
            )
    if match := get_pattern("speaker.theirs").match(text, start, end):
        relation = match["relation"].lower()
        return ClauseSubject(
            Referent(f"{match['owner']}'s {relation}", relation=relation), match.end()
        )
    if match := get_pattern("speaker.pronoun").match(text, start, end):
        return ClauseSubject(last_referent, match.end()) if last_referent is not None else None
    if match := get_pattern("speaker.third").match(text, start, end):
        return _parse_named_subject(match)
    return None


def _parse_nested_relative(match: re.Match[str], speaker: str) -> ClauseSubject:
    """Somebody of somebody's of the speaker's: my girlfriend's parents."""
    relation = match["relation"].lower()
    return ClauseSubject(
        Referent(f"{speaker}'s {match['owner'].lower()}'s {relation}", relation=relation),
        match.end(),
    )


def find_mentioned_relative(text: str, start: int, end: int, speaker: str) -> Referent | None:
    """The one person of the speaker's a stretch mentions, whom a later "she" can mean; none if there are several."""
    mentions = get_pattern("speaker.anywhere").finditer(text, start, end)
    people = [match for match in mentions if match["relation"].lower() not in load_words("PETS")]
    return parse_relative(people[0], speaker).referent if len(people) == 1 else None


def parse_relative(match: re.Match[str], speaker: str) -> ClauseSubject:
    """Somebody of the speaker's, by name where one stands beside the relation."""
    groups = match.groupdict()
    relation = (match["relation"] or groups["kin"]).lower()
    adjective = (match["adjective"] or groups.get("adjective_") or "").lower()
    name = match["name"] or ""
    is_plural = relation.endswith("s") and relation.removesuffix("s") in load_relatives()
    if name and is_name(name, require_known=True) and not is_plural:
        return ClauseSubject(
            Referent(capitalise_name(name), relation=relation),
            match.end(),
            name,
            match.start("name"),
        )
    label = f"{adjective if adjective.strip() in _DISTINGUISHING_ADJECTIVES else ''}{relation}"
    return ClauseSubject(Referent(f"{speaker}'s {label}", relation=relation), match.end("relation"))


def _parse_named_subject(match: re.Match[str]) -> ClauseSubject | None:
    if match["user"]:
        return ClauseSubject(Referent(DEFAULT_SPEAKER, is_speaker=True), match.end())
    name = match["name"] or match["low"]
    first_word = name.split()[0].lower()
    if first_word in _KIN_TITLES and " " in name:
        return ClauseSubject(Referent(name, relation=first_word), match.end())
    is_first_name = first_word in load_words("FIRST_NAMES")
    if (
        first_word in load_words("NO_PERSON")
        or not is_name(name, require_known=True)
        or (first_word in load_verb_forms() and not is_first_name)
    ):
        return None
    return ClauseSubject(Referent(capitalise_name(name), is_person=is_first_name), match.end())


def capitalise_name(name: str) -> str:
    """A name with a capital where it was written without."""
    return (
        name
        if name != name.lower()
        else " ".join(part[:1].upper() + part[1:] for part in name.split())
    )
