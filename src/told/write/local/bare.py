"""Clauses whose subject is left out: "Moved to Berlin last month", "Allergic to nuts", "As a vegan, …", "Sam here"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from told.write.local import dates
from told.write.local.render import article, when
from told.write.local.said import BARE, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who, titled
from told.write.local.tables import pattern, words
from told.write.local.value import is_name, trimmed
from told.write.local.verb import PAST, Stance, Verb, verb_at
from told.write.local.verbal import notes, said_by

_PARTS: Final = (2, 8)


def unsaid(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What a clause says of the speaker without naming them."""
    who = Who(talk.speaker, first=True)
    named = pattern("bare.named").match(talk.text, clause.start, clause.end)
    if named and is_name(named["name"], known=True) and (named["intro"] or _is_known(named["name"])):
        name = titled(named["name"])
        yield Said(talk.speaker, "name", name, f"{talk.speaker}'s name is {name}", clause.start, named.end("name"))
    elif verb := _verb(talk, clause):
        found = said_by(talk, clause, who, verb)
        yield from (replace(said, confidence=min(said.confidence, BARE)) for said in found if said.predicate != "name")
        comma = talk.text.find(",", verb.at, clause.end)
        if comma > 0:
            yield from (replace(said, confidence=BARE) for said in notes(talk, clause, who, comma + 1))
    else:
        yield from _fragments(talk, clause, who)


def booked(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What is on, and when: "Dentist on Thursday at 3pm", "Flight to Oslo 3 March"."""
    found = pattern("bare.booked").match(talk.text, clause.start, clause.end)
    time = dates.named(talk.text, found.end("what"), clause.end, talk.clock, ahead=True) if found else None
    if found is None or time is None or pattern("bare.rest").match(talk.text, time.end, clause.end):
        return
    value = trimmed(talk.text, *found.span("what"))
    what = value.text if value.text[1:2].isupper() else value.text[:1].lower() + value.text[1:]
    text = f"{talk.speaker} has {article(what)}{when(time.interval)}"
    yield Said(
        talk.speaker, "plans", value.text, text, clause.start, value.end,
        modality="planned", confidence=BARE, valid=time.interval,
    )  # fmt: skip


def _is_known(name: str) -> bool:
    """Whether it is a given name: "Same here" says nobody's."""
    return name.partition(" ")[0].lower() in words("FIRST_NAMES")


def _verb(talk: Talk, clause: Clause) -> Verb | None:
    """The verb of the clause: one that needs no "I", or the "am" that is left out too."""
    found = pattern("bare.verb").match(talk.text, clause.start, clause.end)
    verb = verb_at(talk.text, found.start("verb") if found else clause.start, clause.end)
    if found is None:
        alone = verb is not None and verb.lemma in words("ALONE") and verb.stance.tense == PAST
        return verb if verb and alone and not verb.stance.negated else None
    if found["state"] is not None:
        at = found.end("state")
        return Verb("be", Stance(negated=bool(found["no"])), at, at)
    return verb


def _fragments(talk: Talk, clause: Clause, who: Who) -> Iterator[Said]:
    """Notes about oneself; one alone may be about anything."""
    if _PARTS[0] <= talk.text.count(",", clause.start, clause.end) + 1 <= _PARTS[1]:
        found = notes(talk, clause, who, clause.start)
        predicates = {said.predicate for said in found}
        if len(predicates) > 1 or (len(found) > 1 and all(name.startswith("has_") for name in predicates)):
            yield from (replace(said, confidence=BARE) for said in found)
