"""From a clause to what it says: what is asked of the assistant, what is named, what its verb says of its subject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from told.write.local import attributes, people, projects, requests
from told.write.local.bare import booked, unsaid
from told.write.local.doings import livelihood
from told.write.local.due import due
from told.write.local.said import ASSERTED, HEDGED, NEGATED, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Subject, Who, relative, subject_at, titled
from told.write.local.tables import pattern, words
from told.write.local.verb import ING, Stance, Verb, verb_at
from told.write.local.verbal import said_by

_READERS = (
    requests.nickname, requests.contact, requests.reply_style, attributes.appointment, projects.project,
    attributes.attribute, due, livelihood, booked,
)  # fmt: skip


def understood(talk: Talk, clause: Clause) -> list[Said]:
    """Everything a clause says, surer or less sure as its opening words leave it."""
    found: list[Said] = []
    for reader in _READERS:
        found = list(reader(talk, clause))
        if found:
            break
    found = found or list(_told(talk, clause))
    return [_doubted(said) for said in found] if clause.sure < 1 else found


def _doubted(said: Said) -> Said:
    return replace(said, modality="hedged", confidence=min(said.confidence, HEDGED))


def _told(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What the verb of a clause says of its subject."""
    subject = _subject(talk, clause)
    talk.subject = subject.who if subject else None
    if subject is None:
        found = list(unsaid(talk, clause))
        talk.subject = Who(talk.speaker, first=True) if found else None
        yield from found
        return
    if not subject.who.first:
        talk.last = subject.who
    if subject.called:
        gone = people.is_gone(talk.text, subject.at, clause.end)
        end = subject.called_at + len(subject.called)
        name, polarity = titled(subject.called), NEGATED if gone else ASSERTED
        yield people.related(talk.speaker, subject.who.relation, name, clause.start, end, polarity)
        if gone:
            return
    elif (pet := subject.who.relation) in words("PETS") and people.is_gone(talk.text, subject.at, clause.end):
        yield people.lost(talk.speaker, pet, clause.start, subject.at)
        return
    if verb := _verb(talk, clause, subject):
        yield from said_by(talk, clause, subject.who, verb)


def _verb(talk: Talk, clause: Clause, subject: Subject) -> Verb | None:
    """The verb of a clause; one that goes on with what somebody is has left out its own."""
    verb = verb_at(talk.text, subject.at, clause.end)
    bare = verb is None or verb.stance.tense != ING
    if clause.goes_on and bare and pattern("sentence.states").match(talk.text, subject.at, clause.end):
        meanwhile = pattern("sentence.meanwhiles").match(talk.text, subject.at, clause.end)
        at = meanwhile.end() if meanwhile else subject.at
        return Verb("be", Stance(), at, at)
    return verb


def _subject(talk: Talk, clause: Clause) -> Subject | None:
    """Whom a clause is about; one that goes on speaks of the one before."""
    subject = subject_at(talk.text, clause.start, clause.end, talk.speaker, talk.last)
    if subject and (known := talk.people.get(subject.who.name)):
        subject = replace(subject, who=known)
    if subject and not (subject.who.first or subject.who.relation or verb_at(talk.text, subject.at, clause.end)):
        subject = None  # a capital alone makes no person: Allergic to nuts
    if subject is None and clause.goes_on and talk.subject is not None:
        return Subject(talk.subject, clause.start)
    return subject


def in_passing(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What is said beside somebody of the speaker's, even in a question: "a gift for my dad, who loves fishing"."""
    for found in pattern("people.who").finditer(talk.text, start, end):
        who = relative(found, talk.speaker).who
        if verb := verb_at(talk.text, found.end(), end):
            yield from said_by(talk, Clause(found.start(), end, lead=found.start()), who, verb)
