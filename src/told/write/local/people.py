"""The people and animals of a life: "my sister Emma", "two cats named Luna and Milo", "Anna is my wife"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from told.write.local import words
from told.write.local.render import article
from told.write.local.said import Said
from told.write.local.speaker import ADJECTIVE, NAME, Who, relation_words, titled
from told.write.local.value import is_name

_COUNT = r"(?:an?|one|two|three|four|five|six|seven|eight|\d{1,2}|another|twin|several|some|no|any)"
_NAMES = rf"{NAME}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s*){NAME})*"
CONFIDENCE = 0.9


def predicate_of(noun: str) -> str:
    """What having one of these is called: has_pet for a dog, has_sibling for a sister."""
    low = noun.lower()
    single = low.removesuffix("s") if low not in words.RELATIVES else low
    if low in words.RELATIVES or single in words.RELATIVES:
        return words.RELATIVES.get(low) or words.RELATIVES[single]
    return "has_pet"


@cache
def _owned() -> re.Pattern[str]:
    return re.compile(
        rf"(?:^|(?<=\s)|(?<=,))(?P<count>{_COUNT})\s+(?P<adjective>(?:(?!and\b|or\b)[\w'-]+\s+){{0,3}}?)(?!twin\s+(?:sister|brother))(?P<noun>(?:{relation_words()})s?|puppies|kids|children|families|fish|mice)\b"
        rf"(?!\s+(?:who|that|which)\s)(?:\s*,?\s*\(?(?:(?:is|are)\s+)?(?:named|called|whose\s+names?\s+(?:is|are)|by\s+the\s+name\s+of|:)\s*(?P<names>{_NAMES}|[a-z]+\b)|\s*[,:(]\s*(?P<beside>{_NAMES})(?=\s*(?:$|[,.)]|\band\b)))?",
        re.IGNORECASE,
    )


_NO_OWNING = frozenset("problem question issue hard great good new food bed toy collar show video picture friend person lot kind type".split())


def household(text: str, start: int, end: int, who: Who, begin: int, *, denied: str = "") -> Iterator[Said]:
    """The people and pets a stretch says somebody has, by name where they are named."""
    if not re.match(rf"\s*(?:also\s+)?{_COUNT}\b", text[start:end], re.IGNORECASE):
        return
    for found in _owned().finditer(text, start, end):
        noun, count = found["noun"].lower(), found["count"].lower()
        if text[found.end("noun") : found.end("noun") + 1] == "'" or set(found["adjective"].lower().split()) & _NO_OWNING:
            continue
        if noun in ("head", "partner") or re.match(r"\s+(?:of mine|who|food|show|video|appointment|allergy|person|lover|sitter)", text[found.end("noun") : end]):
            continue
        yield from _had(text, found, who, begin, denied or count)


def _had(text: str, found: re.Match[str], who: Who, begin: int, count: str) -> Iterator[Said]:
    noun = found["noun"]
    predicate = predicate_of(noun)
    single = noun.lower().removesuffix("s") if noun.lower() not in ("kids",) else "kid"
    group = "names" if found["names"] else "beside"
    names = list(re.finditer(r"\b(?!and\b)[^\W\d_][\w'-]*(?:\s+[A-Z][\w'-]*)?", found[group] or ""))
    if count not in ("no", "any", "no longer") and names and all(is_name(part[0]) for part in names):
        for part in names:
            at = found.start(group) + part.end()
            name = titled(part[0])
            said = f"{who.name} has {article(single)} named {name}"
            yield Said(who.name, predicate, name, said, begin, at, confidence=CONFIDENCE, meta={"relation": single})
        return
    denied = count in ("no", "any", "no longer")
    value = f"{found['adjective']}{noun}" if count in ("a", "an", "another", "one", "no", "any", "some", "no longer") else text[found.start("count") : found.end("noun")]
    if not denied and predicate in ("has", "manager", "has_colleague", "has_friend"):
        return
    text_of = f"{who.name} no longer has {article(value)}" if count == "no longer" else f"{who.name} has no {value}" if denied else f"{who.name} has {article(value)}"
    yield Said(who.name, predicate, value, text_of, begin, found.end("noun"), "negated" if denied else "asserted", meta={"relation": single})


# ---------------------------------------------------------------------------------------------------------- named beside


@cache
def _beside() -> re.Pattern[str]:
    return re.compile(
        rf"\b(?P<own>my|our)\s+(?P<adjective>{ADJECTIVE})(?P<relation>{relation_words()})(?:(?:'s\s+name\s+is|\s*,?\s+(?:named|called)|\s+is\s+(?:named|called)|\s+is)\s+|\s*,\s*|\s+)(?P<name>{NAME})\b(?!'s\s+(?!$))",
        re.IGNORECASE,
    )


def beside(text: str, start: int, end: int, speaker: str) -> Iterator[Said]:
    """Everybody of the speaker's who is named beside what they are: "my daughter Mia", even in passing."""
    for found in _beside().finditer(text, start, end):
        name, relation = found["name"], found["relation"].lower()
        parts = name.split()
        if len(parts) > 1 and parts[1].lower() in ("is", "and", "has"):
            name = parts[0]
        if not is_name(name, known=True) or name in ("I", "Is", "And") or relation.endswith("s") and relation in words.RELATIVES:
            continue
        adjective = found["adjective"].strip().lower()
        if adjective in ("ex", "ex-", "late", "former"):
            continue
        stop = found.start("name") + len(name)
        yield related(speaker, relation, titled(name), found.start(), stop)


def related(speaker: str, relation: str, name: str, start: int, end: int, polarity: str = "asserted") -> Said:
    """A named person or pet of somebody's."""
    text = f"{speaker} has {article(relation)} named {name}"
    if relation in words.RELATIVES and words.RELATIVES[relation] in ("has_partner", "has_parent", "manager", "has"):
        text = f"{speaker}'s {relation} is {name}"
    if polarity == "negated":
        text = f"{speaker} no longer has {article(relation)} named {name}"
    return Said(speaker, predicate_of(relation), name, text, start, end, polarity, confidence=CONFIDENCE, meta={"relation": relation})


@cache
def _is_mine() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:my|our)\s+(?P<adjective>{ADJECTIVE})(?P<relation>{relation_words()})\b", re.IGNORECASE)


def is_mine(text: str, start: int, end: int, who: Who, speaker: str, begin: int) -> Said | None:
    """What "Anna is my wife" says."""
    found = _is_mine().match(text, start, end)
    if found is None:
        return None
    return related(speaker, found["relation"].lower(), who.name, begin, found.end())


@cache
def _gone() -> re.Pattern[str]:
    return re.compile(r"\s*(?:(?:has|had|just|sadly|recently)\s+)*(?:died|passed away|passed|was put down)\b", re.IGNORECASE)


def is_gone(text: str, start: int, end: int) -> bool:
    """Whether a clause says that its subject died."""
    return _gone().match(text, start, end) is not None
