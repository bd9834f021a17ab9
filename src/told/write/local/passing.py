"""What is said in passing, even in a question: "a strap for my Omega", "near my flat in Lyon", "my knee hurts"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from told.write.local.people import household, predicate_of
from told.write.local.render import article
from told.write.local.said import NEGATED, STATED, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.slots import place_at
from told.write.local.speaker import Who
from told.write.local.tables import pattern, words
from told.write.local.value import Value, is_place, trimmed

MENTIONED: Final = 0.75
"""How sure a claim is that nobody meant to make."""


_LIKE_ME: Final = (
    ("learning", "learning", "is learning"),
    ("course", "learning", "is learning"),
    ("has_condition", "has_condition", "has"),
)


def passed(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """Whom and what a stretch shows that the speaker has, where they live and what ails them."""
    if pattern("passing.likely").search(talk.text, start, end) is None:
        return
    for reader in (
        _home,
        _things,
        _pets,
        _family,
        _ailment,
        _papers,
        _like_me,
        _jobs_of_kin,
        _cancelled,
        _languages,
        _with,
    ):
        yield from reader(talk, start, end)


def _home(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for found in pattern("passing.home").finditer(talk.text, start, end):
        place = place_at(talk.text, found.start("place"), end)
        if is_place(place.text):
            yield _mentioned(talk, "lives_in", place, f"lives in {place.text}", found.start())


def _things(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for name in ("passing.brand", "passing.thing"):
        for found in pattern(name).finditer(talk.text, start, end):
            value = trimmed(talk.text, *found.span("thing"))
            yield _mentioned(talk, "owns", value, f"has {article(value.text)}", found.start())


def _pets(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for found in pattern("passing.pet").finditer(talk.text, start, end):
        noun = found["pet"] or found["walked"]
        if noun.lower() not in words("ALSO_FOOD"):
            value = Value(noun, *found.span("pet" if found["pet"] else "walked"))
            yield _mentioned(talk, "has_pet", value, f"has {article(noun)}", found.start())


def _family(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for found in pattern("passing.family").finditer(talk.text, start, end):
        noun = found["kin"] or found["kids"]
        value = Value(noun, *found.span("kin" if found["kin"] else "kids"))
        yield _mentioned(talk, predicate_of(noun), value, f"has {article(noun)}", found.start())


def _ailment(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.ailment").search(talk.text, start, end):
        value = Value(found["ailment"], *found.span("ailment"))
        yield Said(
            talk.speaker, "has_condition", value.text, f"{talk.speaker}'s {value.text}", found.start(), value.end,
            confidence=STATED,
        )  # fmt: skip


def _papers(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.papers").search(talk.text, start, end):
        value = trimmed(talk.text, *found.span("paper"))
        said = trimmed(talk.text, *found.span("said")).text
        yield Said(talk.speaker, "has", value.text, f"{talk.speaker}'s {said}", found.start(), found.end("said"))


def _like_me(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for name, predicate, phrase in _LIKE_ME:
        if found := pattern(f"passing.{name}").search(talk.text, start, end):
            value = trimmed(talk.text, *found.span("value"))
            yield _mentioned(talk, predicate, value, f"{phrase} {value.text}", found.start())


def _jobs_of_kin(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.kin_at").search(talk.text, start, end):
        who = f"{talk.speaker}'s {found['kin'].lower()}"
        yield Said(who, "works_at", found["org"], f"{who} works at {found['org']}", found.start(), found.end("org"))


def _cancelled(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.cancelled").search(talk.text, start, end):
        value = trimmed(talk.text, *found.span("plan"))
        text = f"{talk.speaker} no longer plans {article(value.text)}"
        yield Said(talk.speaker, "plans", value.text, text, found.start(), value.end, NEGATED)


def _languages(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.language").search(talk.text, start, end):
        value = Value(found["language"], *found.span("language"))
        yield _mentioned(talk, "speaks", value, f"speaks {value.text}", found.start())


def _with(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.with").search(talk.text, start, end):
        yield from household(talk, Clause(found.start(), end), Who(talk.speaker, first=True), found.end())


def _weekly(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.weekday").search(talk.text, start, end):
        value = trimmed(talk.text, *found.span("value"))
        text = f"{talk.speaker}'s {found['said'][0].lower()}{found['said'][1:]}"
        yield Said(talk.speaker, "habit", value.text, text, found.start(), value.end, confidence=MENTIONED)


def _mentioned(talk: Talk, predicate: str, value: Value, what: str, start: int) -> Said:
    return Said(talk.speaker, predicate, value.text, f"{talk.speaker} {what}", start, value.end, confidence=MENTIONED)
