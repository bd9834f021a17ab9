"""What is said in passing, even in a question: "a strap for my Omega", "near my flat in Lyon", "my knee hurts"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from told.core.when import to_us
from told.write.local import dates
from told.write.local.people import household, predicate_of
from told.write.local.render import article, when
from told.write.local.said import BARE, NEGATED, STATED, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who
from told.write.local.tables import names, pattern, words
from told.write.local.value import Value, is_place, trimmed
from told.write.local.verb import Stance, Verb, verb_at
from told.write.local.verbal import by_rules

MENTIONED: Final = 0.75
"""How sure a claim is that nobody meant to make."""


_LIKE_ME: Final = (
    ("budget", "budget", "has a budget of"),
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
        _no_food,
        _misfortune,
        _trip,
        _confided,
        _as_one,
        _as_one_with,
        _shifts,
        _medicine,
        _coming_up,
        _tool,
    ):
        yield from reader(talk, start, end)


def _home(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for found in pattern("passing.home").finditer(talk.text, start, end):
        place = trimmed(talk.text, *found.span("place" if found["place"] else "here"))
        if is_place(place.text):
            yield _mentioned(talk, "lives_in", place, f"lives in {place.text}", found.start())


def _things(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for name in ("passing.brand", "passing.thing", "passing.kept"):
        for found in pattern(name).finditer(talk.text, start, end):
            value = trimmed(talk.text, *found.span("thing"))
            yield _mentioned(talk, "owns", value, f"has {article(value.text)}", found.start())


def _pets(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for found in pattern("passing.pet").finditer(talk.text, start, end):
        group = next(name for name in ("pet", "walked", "house") if found[name])
        noun = found[group]
        if noun.lower() not in words("ALSO_FOOD") and not pattern("passing.put_down").search(talk.text, start, end):
            value = Value(noun, *found.span(group))
            yield _mentioned(talk, "has_pet", value, f"has {article(noun)}", found.start())


def _family(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for found in pattern("passing.family").finditer(talk.text, start, end):
        group = next(name for name in ("kin", "kids", "me_and", "and_i", "gift") if found[name])
        noun = found[group]
        value = Value(noun, *found.span(group))
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


def _no_food(talk: Talk, start: int, end: int) -> Iterator[Said]:
    for found in pattern("passing.no_food").finditer(talk.text, start, end):
        value = Value(found["value"], *found.span("value"))
        said = _mentioned(talk, "avoids", value, f"avoids {value.text}", found.start("value"))
        yield replace(said, confidence=BARE)


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
    for found in pattern("passing.language").finditer(talk.text, start, end):
        value = Value(found["language"] or found["home"], *found.span("language" if found["language"] else "home"))
        yield _mentioned(talk, "speaks", value, f"speaks {value.text}", found.start())


def _with(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.with").search(talk.text, start, end):
        yield from household(talk, Clause(found.start(), end), Who(talk.speaker, first=True), found.end())


def _misfortune(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What befell a thing of the speaker's: "the car got broken into"."""
    if found := pattern("passing.misfortune").search(talk.text, start, end):
        value = Value(found["value"], *found.span("value"))
        who = f"{talk.speaker}'s {found['thing'].lower()}"
        time = dates.named(talk.text, start, end, talk.clock)
        valid = time.interval if time else talk.default
        text = f"{who} {value.text}{when(valid)}"
        yield Said(who, "happened", value.text, text, found.start(), value.end, confidence=MENTIONED, valid=valid)


def _trip(talk: Talk, start: int, end: int) -> Iterator[Said]:
    if found := pattern("passing.trip").search(talk.text, start, end):
        value = Value(found["value"], *found.span("value"))
        said = _mentioned(talk, "plans", value, f"plans {value.text}", value.start)
        yield replace(said, modality="planned")


def _confided(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What the speaker wants to tell somebody of themselves: "how do I tell my boss that I'm pregnant?"."""
    if found := pattern("passing.confided").search(talk.text, start, end):
        verb = verb_at(talk.text, found.end(), end)
        yield from _of_oneself(talk, verb, found.start("me"), end)


def _as_one(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """As what the speaker asks: "which visa do I need as a Dutch citizen?", "… at 30 weeks pregnant like me"."""
    for found in pattern("passing.as_one").finditer(talk.text, start, end):
        at = found.start("one")
        yield from _of_oneself(talk, Verb("be", Stance(), at, at), found.start(), found.end("one"))


def _as_one_with(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What somebody has or does as whom the speaker asks: "as a vegetarian with a nut allergy", "as a nurse who …"."""
    if pattern("passing.as_somebody").search(talk.text, start, end) is None:
        return
    for found in pattern("passing.as_one_with").finditer(talk.text, start, end):
        at = found.start("one")
        verb = Verb("have", Stance(), at, at) if found["with"] else verb_at(talk.text, at, found.end())
        yield from _of_oneself(talk, verb, found.start(), found.end(), also=("likes", "dislikes", "avoids", "owns"))


def _shifts(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """When somebody works, said before where: "I work night shifts at the warehouse"."""
    if found := pattern("passing.shifts").search(talk.text, start, end):
        value = Value(found["value"], *found.span("value"))
        yield replace(_mentioned(talk, "habit", value, f"works {value.text}", found.start()), confidence=STATED)


def _medicine(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What the speaker takes, as a question shows: "when should I take my vitamin D?"."""
    for found in pattern("passing.medicine").finditer(talk.text, start, end):
        value = Value(found["value"], *found.span("value"))
        yield _mentioned(talk, "takes", value, f"takes {value.text}", found.start())


def _tool(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What else somebody uses: "mostly Rust at work but Python for the data bits"."""
    if found := pattern("passing.tool").search(talk.text, start, end):
        value = Value(found["value"], *found.span("value"))
        yield replace(_mentioned(talk, "uses", value, f"uses {value.text}", found.start("value")), confidence=BARE)


def _coming_up(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What there is on a day before which something has to be done: "… before the beta on July 1st"."""
    found = pattern("passing.coming_up").search(talk.text, start, end)
    if found and pattern("passing.own_need").match(talk.text, start, found.start()) is None:
        return
    time = dates.named(talk.text, found.end("value"), end, talk.clock, ahead=True) if found else None
    if found and time and (time.interval.end is None or time.interval.end > to_us(talk.clock.now)):
        value = Value(found["value"], *found.span("value"))
        text = f"{talk.speaker} has {article(value.text)}{when(time.interval)}"
        yield Said(
            talk.speaker, "plans", value.text, text, found.start(), value.end,
            modality="planned", confidence=BARE, valid=time.interval,
        )  # fmt: skip


def _of_oneself(talk: Talk, verb: Verb | None, start: int, end: int, *, also: tuple[str, ...] = ()) -> Iterator[Said]:
    clause = Clause(start, end, lead=start)
    said = by_rules(talk, clause, Who(talk.speaker, first=True), verb) if verb else ()
    yield from (each for each in said if each.predicate in names("CONFIDED") or each.predicate in also)


def _mentioned(talk: Talk, predicate: str, value: Value, what: str, start: int) -> Said:
    return Said(talk.speaker, predicate, value.text, f"{talk.speaker} {what}", start, value.end, confidence=MENTIONED)
