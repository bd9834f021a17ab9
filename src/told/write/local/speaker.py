"""Who a clause is about: the one who speaks, somebody of theirs, or somebody named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from told.write.local import words
from told.write.local.value import is_name

USER = "User"


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


def relation_words() -> str:
    """The words for people and pets one has, as a pattern."""
    return "|".join(sorted((re.escape(word) for word in (*words.RELATIVES, *words.PETS)), key=lambda word: (-len(word), word)))


_WORD = r"[A-ZÀ-Þ][\w-]*(?:'(?!(?:s|d|re|ll|ve|m|t)\b)\w+)?"
NAME = rf"(?-i:{_WORD}(?:\s+{_WORD})?)"
ADJECTIVE = r"(?:(?:" + words.OLDER.replace(" ", "|") + r"|step|ex-?|\d+[- ](?:year|yr|month|week)s?[- ]old)\s+)*"


@cache
def _mine() -> re.Pattern[str]:
    return re.compile(
        rf"(?:my|our)\s+(?P<adjective>{ADJECTIVE})(?P<relation>{relation_words()})\b(?:(?:\s*,\s*|\s+|\s*\()(?P<name>{NAME}|(?:{_low_names()})\b)\b[,)]?(?!'s))?",
        re.IGNORECASE,
    )


@cache
def _low_names() -> str:
    return "|".join(sorted(words.first_names() - words.ALSO_WORDS))


@cache
def _first() -> re.Pattern[str]:
    return re.compile(
        r"(?:(?:me|my\s+[\w-]+(?:\s+[A-Z]\w+)?|(?-i:[A-Z]\w+))\s+and\s+i\b|i\s+and\s+my\s+\w+|i(?=\s|'(?:m|ve|d|ll|s)\b)|i(?=m\b|ve\b)|we(?=\s|'(?:re|ve|d|ll)\b|re\b))",
        re.IGNORECASE,
    )


@cache
def _third() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<user>(?:the\s+)?user)\b|(?P<name>{NAME})(?=\s+\w|'s\s)|(?P<low>{'|'.join(sorted(words.first_names()))})(?=\s+(?:lives?|works?|likes?|loves?|hates?|is|has|speaks|plays|moved)\b)",
        re.IGNORECASE,
    )


@cache
def _theirs() -> re.Pattern[str]:
    return re.compile(rf"(?P<owner>{NAME})'s\s+(?P<relation>{relation_words()})\b(?!')", re.IGNORECASE)


@cache
def _pronoun() -> re.Pattern[str]:
    return re.compile(r"(?:he|she|they)(?=\s|'(?:s|re|ve|d|ll)\b)", re.IGNORECASE)


_NO_PERSON = frozenset(
    """this that there it these those what which who where when why how everything everyone someone anyone nobody something
    nothing people my our your his her their its the a an some any all most many both each every one two three please thanks
    also and but or so if because since although while as for to in on at by from with about after before then now just
    yes no not ok okay hi hello hey dear well actually honestly maybe perhaps sure let let's does do did is are was were can
    could should would will have has had here today tomorrow yesterday currently recently lately monday tuesday wednesday
    thursday friday saturday sunday python java javascript rust linux docker postgres google microsoft apple amazon windows
    i i'm im ive i've we you he she they me us them user project team company work life love music food god christmas""".split()
)


def subject_at(text: str, start: int, end: int, speaker: str, last: Who | None) -> Subject | None:
    """Who the clause that begins here is about, if it says so at its beginning."""
    if found := _first().match(text, start, end):
        return Subject(Who(speaker, first=True), found.end())
    if found := _mine().match(text, start, end):
        return _relative(found, speaker)
    if found := _theirs().match(text, start, end):
        return Subject(Who(f"{found['owner']}'s {found['relation'].lower()}", relation=found["relation"].lower()), found.end())
    if found := _pronoun().match(text, start, end):
        return Subject(last, found.end()) if last is not None else None
    if found := _third().match(text, start, end):
        return _named(found)
    return None


def spoken_of(text: str, start: int, end: int, speaker: str) -> Who | None:
    """The one person of the speaker's a stretch mentions, whom a later "she" can mean; none if there are several."""
    found = [mine for mine in _anywhere().finditer(text, start, end) if mine["relation"].lower() not in words.PETS]
    return _relative(found[0], speaker).who if len(found) == 1 else None


@cache
def _anywhere() -> re.Pattern[str]:
    return re.compile(rf"\b{_mine().pattern}", re.IGNORECASE)


def _relative(found: re.Match[str], speaker: str) -> Subject:
    relation = found["relation"].lower()
    adjective = found["adjective"].lower()
    label = f"{adjective if adjective.strip() in _KEPT else ''}{relation}"
    name = found["name"] or ""
    called = name if name and is_name(name, known=True) else ""
    at = found.end() if called or not name else found.start("name") - 1
    at = at if called or not name else found.end("relation")
    who = Who(titled(called) or f"{speaker}'s {label}", relation=relation)
    return Subject(who, at, called, found.start("name") if called else 0)


_KEPT = frozenset("older younger little big best twin step ex ex- oldest youngest".split())


def _named(found: re.Match[str]) -> Subject | None:
    if found["user"]:
        return Subject(Who(USER, first=True), found.end())
    name = found["name"] or found["low"]
    if name.split()[0].lower() in _NO_PERSON or not is_name(name, known=True):
        return None
    return Subject(Who(titled(name), known=name.split()[0].lower() in words.first_names()), found.end())


def titled(name: str) -> str:
    """A name with a capital where it was written without."""
    return name if name != name.lower() else " ".join(part[:1].upper() + part[1:] for part in name.split())
