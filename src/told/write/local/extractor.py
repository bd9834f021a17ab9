"""The local extractor: what people say of themselves and theirs, found by rules, offline and always the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Final

from told.core.entry import Claim
from told.core.predicates import predicate
from told.core.when import ALWAYS, by_clock
from told.flow import Flow
from told.write.local import graph, people, projects, tongues
from told.write.local.answers import answered
from told.write.local.clean import plain_speech, without_colons
from told.write.local.dates import Clock
from told.write.local.idioms import plainly
from told.write.local.interpret import in_passing, understood
from told.write.local.lists import listed
from told.write.local.noted import noted, pointed
from told.write.local.passing import MENTIONED, passed
from told.write.local.requests import asked_for
from told.write.local.said import Said, Talk
from told.write.local.sentence import Clause, Sentence, clauses, is_sarcastic, is_unreal, reported_from, sentences
from told.write.local.speaker import USER, spoken_of
from told.write.local.spelling import Reading, respelled
from told.write.local.tables import pattern
from told.write.messages import Turn
from told.write.shape import Entity, Extracted, Found, Heard, Relation

_AS_GOOD: Final = {"drives": "owns", "bought": "owns", "married_to": "has_partner"}
"""What need not be said in passing once this is said."""
MOST_CLAIMS: Final = 12
"""How many claims one turn may make; a longer list of them is a document, not a conversation."""


@dataclass(frozen=True, slots=True)
class LocalExtractor:
    """Finds claims by rules, without a model: it says less rather than invent."""

    name: str = "local"
    local: bool = True

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """The claims, entities and relations of these turns; a flow that needs nothing of the outside world."""
        yield from ()
        return extracted(heard)


def extracted(heard: Heard) -> Extracted:
    """Everything the rules find in the turns of users."""
    found: list[tuple[int, Said]] = []
    names: dict[str, str] = {}
    entities: list[Entity] = []
    relations: list[Relation] = []
    warnings: list[str] = []
    question = ""
    for number, turn in enumerate(heard.turns):
        if turn.evidence.role == "user":
            speaker = turn.evidence.name or USER
            all_said = read_turn(heard, turn, speaker, question)
            said = all_said[:MOST_CLAIMS]
            if len(all_said) > MOST_CLAIMS:
                warnings.append(f"One message makes {len(all_said)} claims; the first {MOST_CLAIMS} were taken.")
            names.update((speaker, each.object) for each in said if (each.subject, each.predicate) == (speaker, "name"))
            found += [(number, each) for each in said]
            met = graph.met(turn.evidence.content, number)
            entities, relations = [*entities, *met[0]], [*relations, *met[1]]
        question = turn.evidence.content if turn.evidence.role == "assistant" or turn.evidence.name else ""
    drawn = graph.drawn(found, names)
    claims = tuple(Found(_claim(heard.turns[number], said), number) for number, said in found)
    surely = {(each.src.lower(), each.dst.lower()) for each in drawn[1]}
    others = tuple(each for each in relations if (each.src.lower(), each.dst.lower()) not in surely)
    return Extracted(claims, graph.once((*drawn[0], *entities)), (*drawn[1], *others), warnings=tuple(warnings))


def read_turn(heard: Heard, turn: Turn, speaker: str, question: str) -> list[Said]:
    """What one turn says, each thing once, in the order it is said."""
    said_at = turn.evidence.said_at
    clock = Clock(by_clock(heard.now if said_at is None else said_at, heard.zone or UTC), heard.zone)
    readings = _readings(plain_speech(turn.evidence.content))
    talk = Talk(readings[-1].text, speaker, clock, turn.valid)
    found = [*answered(talk, question), *_read(talk)]
    told = _told(found)
    kept: dict[tuple[str, str, str], Said] = {}
    for said in (_as_written(readings, said) for said in found):
        if said.confidence == MENTIONED and not told.isdisjoint((said.predicate, f"{speaker}'s {said.object}".lower())):
            continue
        if said.predicate != "name" or said.object.lower() != speaker.lower():
            kept.setdefault((said.subject.lower(), said.predicate, said.object.lower()), said)
    return sorted(kept.values(), key=lambda said: said.start)


def _told(found: list[Said]) -> set[str]:
    """What need not be said in passing any more: what is claimed outright, and whom something else is said of."""
    sure = [said for said in found if said.confidence != MENTIONED]
    predicates = {_AS_GOOD.get(said.predicate, said.predicate) for said in sure}
    return predicates | {said.subject.lower() for said in sure}


def _readings(text: str) -> tuple[Reading, ...]:
    """The text as it is read, step by step; in another language a hasty word may be one of its own."""
    if tongues.is_foreign(text):
        return (respelled(text, hasty=False),)
    right = respelled(text)
    return right, plainly(right.text)


def _as_written(readings: tuple[Reading, ...], said: Said) -> Said:
    """What was understood with the place and the words it was written in."""
    for reading in reversed(readings):
        if reading.starts:
            start, end = reading.start(said.start), reading.end(said.end)
            said = replace(said, start=start, end=end, object=reading.as_written(said.object, start, end))
    return said


def _read(talk: Talk) -> Iterator[Said]:
    """What the sentences say; what holds from when the turn was said, unless it says otherwise."""
    if talk.text.rstrip().lower().endswith("/s"):
        return
    yield from listed(talk)
    yield from noted(talk)
    talk.text = without_colons(talk.text)
    talk.people = people.introduced(talk.text)
    yield from pointed(talk)
    for sentence in sentences(talk.text):
        if is_sarcastic(talk.text, sentence):
            yield from people.beside(talk, sentence.start, sentence.end)
            yield from _complained_of(talk, sentence)
            continue
        for said in tongues.foreign(talk, sentence) or _english(talk, sentence):
            yield replace(said, valid=talk.default) if said.valid == ALWAYS else said


def _complained_of(talk: Talk, sentence: Sentence) -> Iterator[Said]:
    """What somebody of the speaker's really does: "I just love it when my neighbour practises the drums"."""
    if found := pattern("sentence.complained_of").search(talk.text, sentence.start, sentence.end):
        clause = Clause(found.end(), sentence.end, lead=found.end())
        yield from (said for said in understood(talk, clause) if said.subject != talk.speaker)


def _english(talk: Talk, sentence: Sentence) -> Iterator[Said]:
    """What the clauses state, up to where somebody else's words begin."""
    text = talk.text
    end = reported_from(text, sentence.start, sentence.end)
    unreal, talk.subject = False, None
    for clause in clauses(text, replace(sentence, end=end)) if end > sentence.start else ():
        if is_unreal(text, clause.start, clause.end):
            unreal = True
        elif clause.asked:
            yield from asked_for(talk, clause)
        elif not (unreal and clause.goes_on):
            yield from understood(talk, clause)
        talk.last = spoken_of(text, clause.start, clause.end, talk.speaker) or talk.last
    talk.last = spoken_of(text, sentence.start, end, talk.speaker) or talk.last
    if not unreal:
        yield from in_passing(talk, sentence.start, end)
        yield from people.beside(talk, sentence.start, end)
        yield from people.all_named(talk, sentence.start, end)
        yield from people.parted(talk, sentence.start, end)
        yield from people.pet_called(talk, sentence.start, end)
        yield from people.theirs(talk, sentence.start, end)
        yield from projects.called(talk, sentence.start, end)
        yield from projects.parts(talk, sentence.start, end)
        yield from passed(talk, sentence.start, end)


def _claim(turn: Turn, said: Said) -> Claim:
    evidence = turn.evidence
    return Claim(
        said.text, predicate(said.predicate).kind, said.subject, said.predicate, said.object, said.polarity,
        said.modality, said.confidence, said.valid, span=(said.start, said.end), role=evidence.role,
        actor=evidence.name, said_at=evidence.said_at, source=evidence.source, meta=dict(said.meta),
    )  # fmt: skip
