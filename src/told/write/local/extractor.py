"""The local extractor: what people say of themselves and theirs, found by rules, offline and always the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC

from told.core.entry import Claim
from told.core.predicates import predicate
from told.core.when import by_clock
from told.flow import Flow
from told.write.local import answers, graph, people, tongues
from told.write.local.clean import plain_speech
from told.write.local.dates import Clock
from told.write.local.interpret import Talk, understood
from told.write.local.said import Said
from told.write.local.sentence import Sentence, clauses, is_sarcastic, is_unreal, reported_from, sentences
from told.write.local.speaker import USER, spoken_of
from told.write.messages import Turn
from told.write.shape import Entity, Extracted, Found, Heard, Relation

MOST_CLAIMS = 12
"""How many claims one turn may make; a longer list of them is a document, not a conversation."""


@dataclass(frozen=True, slots=True)
class LocalExtractor:
    """Finds claims by rules, without a model: it says less rather than invent."""

    name: str = "local"
    local: bool = True

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """The claims, entities and relations of these turns; it asks nothing of the outside world."""
        return extracted(heard)
        yield  # a flow that needs no effect


def extracted(heard: Heard) -> Extracted:
    """Everything the rules find in the turns of users."""
    found: list[tuple[int, Said]] = []
    names: dict[str, str] = {}
    entities: list[Entity] = []
    relations: list[Relation] = []
    question = ""
    for number, turn in enumerate(heard.turns):
        if turn.evidence.role != "user":
            question = turn.evidence.content if turn.evidence.role == "assistant" else question
            continue
        speaker = turn.evidence.name or USER
        for said in read_turn(heard, turn, speaker, question):
            found.append((number, said))
            if said.predicate == "name" and said.subject == speaker and said.polarity == "asserted":
                names[speaker] = said.object
        met = graph.met(turn.evidence.content, number)
        entities += met[0]
        relations += met[1]
        question = turn.evidence.content if turn.evidence.name else ""
    drawn = graph.drawn(found, names)
    return Extracted(
        tuple(Found(_claim(heard.turns[number], said), number) for number, said in found),
        tuple(_unlike(drawn[0] + entities)),
        tuple({(r.src.lower(), r.rel, r.dst.lower()): r for r in relations + drawn[1]}.values()),
    )


def _unlike(entities: list[Entity]) -> Iterator[Entity]:
    seen: set[str] = set()
    for entity in entities:
        if entity.name.lower() not in seen:
            seen.add(entity.name.lower())
            yield entity


def read_turn(heard: Heard, turn: Turn, speaker: str, question: str) -> list[Said]:
    """What one turn says, each thing once, in the order it is said."""
    said_at = turn.evidence.said_at
    clock = Clock(by_clock(heard.now if said_at is None else said_at, heard.zone or UTC), heard.zone)
    text = plain_speech(turn.evidence.content)
    talk = Talk(text, speaker, clock, turn.valid)
    found = [*answers.answered(talk, question), *_read(talk)]
    kept = {(said.subject.lower(), said.predicate, said.object.lower()): said for said in reversed(found)}
    good = [said for said in reversed(kept.values()) if not (said.predicate == "name" and said.object.lower() == speaker.lower())]
    return sorted(good, key=lambda said: said.start)[:MOST_CLAIMS]


def _read(talk: Talk) -> Iterator[Said]:
    text = talk.text
    if text.rstrip().endswith(("/s", "#sarcasm")):
        return
    for sentence in sentences(text):
        if not is_sarcastic(text, sentence):
            yield from tongues.foreign(talk, sentence) or _english(talk, sentence)


def _english(talk: Talk, sentence: Sentence) -> Iterator[Said]:
    text = talk.text
    end = reported_from(text, sentence.start, sentence.end)
    unreal, talk.subject = False, None
    for clause in clauses(text, replace(sentence, end=end)) if end > sentence.start else ():
        if is_unreal(text, clause.start, clause.end):
            unreal = True
            continue
        if clause.asked or (unreal and clause.goes_on):
            continue
        yield from _kept(talk, understood(talk, clause))
    talk.last = spoken_of(text, sentence.start, end, talk.speaker) or talk.last
    if not unreal:
        yield from people.beside(text, sentence.start, end, talk.speaker)


def _kept(talk: Talk, found: list[Said]) -> Iterator[Said]:
    """What holds from when the turn was said, unless it says otherwise."""
    for said in found:
        yield said if said.valid.start is not None or said.valid.end is not None else replace(said, valid=talk.default)


def _claim(turn: Turn, said: Said) -> Claim:
    evidence = turn.evidence
    return Claim(
        said.text, predicate(said.predicate).kind, said.subject, said.predicate, said.object, said.polarity, said.modality, said.confidence,
        said.valid, span=(said.start, said.end), role=evidence.role, actor=evidence.name, said_at=evidence.said_at, source=evidence.source,
        meta=dict(said.meta),
    )  # fmt: skip
