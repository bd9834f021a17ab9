"""Clauses whose subject is left out: "Moved to Berlin last month", "Allergic to nuts", "As a vegan, …", "Sam here"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from told.write.local.said import BARE, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who, titled
from told.write.local.tables import pattern, words
from told.write.local.value import Value, is_name, trimmed
from told.write.local.verb import PAST, Stance, Verb, verb_at
from told.write.local.verbal import by_rules, said_by

_PARTS: Final = (2, 8)
_LONGEST: Final = 6


def unsaid(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What a clause says of the speaker without naming them."""
    who = Who(talk.speaker, first=True)
    named = pattern("bare.named").match(talk.text, clause.start, clause.end)
    if named and is_name(named["name"], known=True):
        name = titled(named["name"])
        yield Said(talk.speaker, "name", name, f"{talk.speaker}'s name is {name}", clause.start, named.end("name"))
    elif verb := _verb(talk, clause):
        found = said_by(talk, clause, who, verb)
        yield from (replace(said, confidence=min(said.confidence, BARE)) for said in found if said.predicate != "name")
    else:
        yield from _fragments(talk, clause, who)


def _verb(talk: Talk, clause: Clause) -> Verb | None:
    """The verb of the clause: one that needs no "I", or the "am" that is left out too."""
    found = pattern("bare.verb").match(talk.text, clause.start, clause.end)
    verb = verb_at(talk.text, found.start("verb") if found else clause.start, clause.end)
    if found is None:
        alone = verb is not None and verb.lemma in words("ALONE") and verb.stance.tense == PAST
        return verb if verb and alone and not verb.stance.negated else None
    if found["state"]:
        at = found.end("state")
        return Verb("be", Stance(negated=bool(found["no"])), at, at)
    return verb


def _fragments(talk: Talk, clause: Clause, who: Who) -> Iterator[Said]:
    """Notes about oneself, set apart by commas: "29, product designer, living in Barcelona"."""
    parts: list[Value] = []
    at = clause.start
    for words_ in talk.text[clause.start : clause.end].split(","):
        parts.append(trimmed(talk.text, at, at + len(words_)))
        at += len(words_) + 1
    if not _PARTS[0] <= len(parts) <= _PARTS[1] or any(len(part.text.split()) > _LONGEST for part in parts):
        return
    found: list[Said] = []
    for part in parts:
        verb = Verb("be", Stance(), part.start, part.start)
        found += by_rules(talk, Clause(part.start, part.end, lead=part.start), who, verb)
    notes = [replace(said, confidence=BARE) for said in found if said.predicate != "name"]
    if len({said.predicate for said in notes}) > 1:
        yield from notes
