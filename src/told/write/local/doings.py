"""What people do, where no rule knows the thing itself: again and again, at a time that is past, at one to come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from told.write.local import dates
from told.write.local.render import sentence, theirs, when
from told.write.local.said import HEDGED, NEGATED, STATED, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who, subject_at
from told.write.local.tables import pattern, words
from told.write.local.value import Value, trimmed, until
from told.write.local.verb import ING, PAST, PRESENT, Verb

_LONGEST: Final = 12


def done(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    """A habit, an event or a plan."""
    stance = verb.stance
    often = pattern("doings.often").search(talk.text, clause.lead, clause.end)
    if stance.ended and often and not stance.negated and verb.lemma not in words("NO_HABITS"):
        for said in _habit(talk, clause, who, verb, often):
            text = said.text.replace(f"{who.name} ", f"{who.name} no longer ", 1)
            yield replace(said, polarity=NEGATED, text=text)
    if stance.perfect and stance.tense == ING and not stance.negated:
        yield from _lasting(talk, clause, who, verb)
    if stance.negated or stance.ended or stance.wished or stance.able or stance.perfect:
        return
    if stance.tense == PRESENT and not stance.future:
        if (often or stance.habit) and verb.lemma not in words("NO_HABITS"):
            yield from _habit(talk, clause, who, verb, often)
    elif not often:
        yield from _event(talk, clause, who, verb)


def livelihood(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What somebody does for a living, whatever it is: "I weave rugs for a living"."""
    found = pattern("doings.livelihood").search(talk.text, clause.start, clause.end)
    subject = subject_at(talk.text, clause.start, clause.end, talk.speaker, talk.last) if found else None
    if found is None or subject is None:
        return
    value = trimmed(talk.text, subject.at, found.start(), article=False)
    if 1 < len(value.text.split()) <= _LONGEST and not pattern("doings.pointing").search(value.text):
        text = sentence(subject.who.name, f"{'' if subject.who.first else '='}{theirs(value.text)} for a living")
        yield Said(subject.who.name, "works_as", value.text, text, clause.start, value.end)


def _habit(talk: Talk, clause: Clause, who: Who, verb: Verb, often: re.Match[str] | None) -> Iterator[Said]:
    behind = often is not None and often.start() >= verb.at
    stop = often.end() if often and behind else until(talk.text, verb.at, clause.end)
    if not talk.text[verb.at : stop].strip() and len(talk.text[verb.at : clause.end].split()) < _LONGEST:
        stop = clause.end
    clock = pattern("doings.clock").match(talk.text, stop, clause.end)
    value = trimmed(talk.text, verb.word, max(clock.end() if clock else stop, verb.at), article=False)
    if _says_something(value):
        text = sentence(who.name, f"{verb.lemma} {theirs(value.text.partition(' ')[2])}")
        yield Said(who.name, "habit", value.text, text, clause.start, value.end)


def _lasting(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    """What has been done for years is a habit: I've been climbing since 2019."""
    time = dates.named(talk.text, clause.lead, clause.end, talk.clock)
    if time is None or time.mark != "since" or verb.lemma in words("NO_HABITS") | words("NO_EVENTS"):
        return
    value = trimmed(talk.text, verb.word, max(until(talk.text, verb.at, clause.end), verb.at), article=False)
    if value.text and len(value.text.split()) <= _LONGEST and not pattern("doings.pointing").search(value.text):
        text = sentence(who.name, f"have been {theirs(value.text)}")
        yield Said(
            who.name,
            "habit",
            value.text,
            text,
            clause.start,
            value.end,
            valid=dates.bearing(time, state=True, default=talk.default),
        )


def _event(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    """Something done at a time, or planned: that needs a time too, unless it is one of the great things of a life."""
    stance = verb.stance
    ahead = stance.future or stance.tense == ING
    time = dates.named(talk.text, clause.lead, clause.end, talk.clock, ahead=ahead)
    great = stance.future and pattern("words.life").match(talk.text, verb.word, clause.end)
    if (verb.lemma in words("NO_EVENTS") and not great) or (time is None and not great):
        return
    if (time is not None and time.lasts) or (not ahead and stance.tense != PAST):
        return
    value = trimmed(talk.text, verb.word, until(talk.text, verb.at, clause.end), article=False)
    if not _says_something(value):
        return
    plan = theirs(f"plan to {verb.lemma} {value.text.partition(' ')[2]}")
    text = sentence(who.name, plan if ahead else f"={theirs(value.text)}") + (when(time.interval) if time else "")
    modality = "hedged" if stance.doubted else "planned" if ahead else "stated"
    yield Said(
        who.name, "plans" if ahead else "did", value.text, text, clause.start, value.end, modality=modality,
        confidence=HEDGED if stance.doubted else STATED, valid=time.interval if time else talk.default,
    )  # fmt: skip


def _says_something(value: Value) -> bool:
    """Whether a doing can be understood without what was pointed at."""
    return 2 <= len(value.text.split()) <= _LONGEST and not pattern("doings.pointing").search(value.text)
