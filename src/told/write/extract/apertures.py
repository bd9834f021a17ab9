"""Apertures: a text is read once, five times side by side, or again and again, each time for other statements."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.core.entry import Claim
from told.core.fact import QUARANTINE
from told.core.text import normalise
from told.flow import Flow, together
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Usage
from told.write.extract.brief import asked, conversation, fenced, page, spoken
from told.write.extract.facts import KEYS, MOST, given
from told.write.extract.graph import entity_type
from told.write.extract.ground import Ground
from told.write.extract.items import HYPOTHESIS, INFERRED, MARKS, STATED, Proposal, Reader, proposal, unread
from told.write.extract.parse import DUPLICATE, Answer, first, line, once, read_items, take
from told.write.extract.settle import Rules, extracted, settle, speaker_of
from told.write.shape import Dropped, Entity, Extracted, Found, Heard, Relation

SINGLE, EXHAUSTIVE, DEEP = "single", "exhaustive", "deep"
PRIOR: Final = 300
PASSES: Final = 3
TYPE: Final = frozenset(("type", "is_a", "instance_of", "a"))
TEXT: Final = {"type": "string"}
LITERAL: Final = {"type": "object", "properties": {"v": TEXT, "dt": TEXT}}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object", "required": ["facts"],
    "properties": {"facts": {"type": "array", "items": {
        "type": "object", "required": ["subject", "predicate"],
        "properties": {
            "subject": TEXT, "predicate": TEXT, "object_iri": TEXT, "object_lit": LITERAL, "modality": TEXT,
            "evidence": TEXT, "notes": TEXT, "confidence": {"type": "number"}, "hypothesis_only": {"type": "boolean"},
        },
    }}},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Aperture:
    """One way to look at a text: how sure what it shows may be, and how it is meant; "" takes the model's word."""

    name: str
    least: float = 0.0
    most: float = 1.0
    modality: str = ""

    def seen(self, claim: Claim) -> Claim:
        """A claim as this aperture shows it: its confidence inside the band, its modality the aperture's."""
        confidence = min(max(claim.confidence, self.least), self.most)
        return replace(claim, confidence=confidence, modality=self.modality or claim.modality)


FIVE: Final = (
    Aperture("surface", 0.95, 1.0, STATED),
    Aperture("linguistic", 0.85, 1.0, STATED),
    Aperture("presupposition", 0.7, 0.95, HYPOTHESIS),
    Aperture("inferential", 0.4, 0.7, INFERRED),
    Aperture("conceivable", 0.8, 0.9, HYPOTHESIS),
)


@dataclass(frozen=True, slots=True)
class _Look:
    """What one question brought: proposals with the aperture they came through, and what is to be said of it."""

    proposals: tuple[Proposal, ...] = ()
    answer: Answer = field(default_factory=Answer)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ApertureExtractor:
    """Asks a model for typed triples, in one of three modes."""

    llm: LLM
    mode: str = SINGLE
    passes: int = PASSES
    prior: int = PRIOR
    reader: Reader = unread
    rules: Rules = field(default_factory=Rules)
    most: int = MOST

    @property
    def name(self) -> str:
        """`apertures:`, `exhaustive:` or `deep:` and the model."""
        return f"{'apertures' if self.mode == SINGLE else self.mode}:{self.llm.model}"

    @property
    def local(self) -> bool:
        """No: a model is asked."""
        return False

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """Claims made of triples, with the things and relations among them; facts that were given are read instead."""
        if heard.facts:
            return given(heard, self.reader)
        if not any(map(spoken, heard.turns)):
            return Extracted()
        if self.mode == EXHAUSTIVE:
            looks, warnings = yield from self._five(heard)
        elif self.mode == DEEP:
            looks, warnings = yield from self._passes(heard)
        else:
            looks, warnings = [(yield from self._look(heard, Aperture(SINGLE)))], []
        return _together(heard, looks, warnings, self.rules)

    def _five(self, heard: Heard) -> Flow[tuple[list[_Look], list[str]]]:
        """The five apertures side by side; one that fails takes nothing from the others."""
        done = yield from together([attempt(self._look(heard, aperture)) for aperture in FIVE])
        looks = [look for look in done if isinstance(look, _Look)]
        failed = [(look, one) for look, one in zip(done, FIVE, strict=True) if isinstance(look, Failure)]
        if not looks:
            raise failed[0][0].error
        return looks, [f"The aperture {one.name} of {self.name} failed: {failure}" for failure, one in failed]

    def _passes(self, heard: Heard) -> Flow[tuple[list[_Look], list[str]]]:
        """Pass after pass, each knowing what those before it found, until one finds nothing new."""
        looks: list[_Look] = []
        found: dict[str, str] = {}
        for number in range(1, min(max(self.passes, 1), 10) + 1):
            aperture = Aperture(f"pass_{number}")
            prior = [*(fact.text for fact in heard.known), *found.values()][-self.prior :]
            look = yield from attempt(self._look(heard, aperture, "deep", prior))
            if isinstance(look, Failure):
                if not looks:
                    raise look.error
                return looks, [f"Pass {number} of {self.name} failed: {look}"]
            looks.append(look)
            fresh = {key(one.claim): one.claim.text for one in look.proposals}
            if fresh.keys() <= found.keys():
                break
            found |= fresh
        return looks, []

    def _look(
        self, heard: Heard, aperture: Aperture, lens: str = "", prior: Sequence[str] = ()
    ) -> Flow[_Look]:
        """What a model states through one aperture."""
        system = f"{heard.prompt or page('triples')}\n\n{page(f'aperture-{lens or aperture.name}')}"
        listed = f"\n\n{fenced('found', (f'- {text}' for text in prior))}" if prior else ""
        raw, usage = yield from asked(self.llm, system, conversation(heard) + listed, SCHEMA)
        answer = read_items(raw, KEYS, marks=MARKS, most=self.most, who=f"{self.name} ({aperture.name})")
        speaker = speaker_of(heard)

        def seen(item: Any) -> Any:
            made = proposal(item, speaker, self.reader)
            return _tagged(made, item, aperture) if isinstance(made, Proposal) else made

        proposals, answer = take(answer, raw, seen)
        return _Look(tuple(proposals), answer, usage)


def key(claim: Claim) -> str:
    """The content key of a claim: what it says of whom, however sure and however meant."""
    parts = (claim.subject, claim.predicate, claim.object) if claim.object is not None else (claim.text,)
    joined = "\x1f".join(normalise(part or "") for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


def _tagged(made: Proposal, item: Any, aperture: Aperture) -> Proposal:
    """A proposal with the aperture it came through, its content key, and what else was said of it."""
    literal = first(item, "object_lit") if isinstance(item, Mapping) else None
    extras = {
        "aperture": aperture.name, "key": key(made.claim),
        "notes": line(first(item, "notes")) if isinstance(item, Mapping) else None,
        "dt": line(first(literal, "dt")) if isinstance(literal, Mapping) else None,
    }  # fmt: skip
    meta = {**made.claim.meta, **{name: value for name, value in extras.items() if value is not None}}
    return replace(made, claim=replace(aperture.seen(made.claim), meta=meta))


# Put together ---------------------------------------------------------------------------------------------------------


def _together(heard: Heard, looks: Sequence[_Look], warnings: Iterable[str], rules: Rules) -> Extracted:
    """What all looks found, each statement once; the types of things become entities, ties between things relations."""
    fresh, again = once((one for look in looks for one in look.proposals), lambda one: key(one.claim))
    ground = Ground(heard.turns)
    types = [one for one in fresh if one.claim.predicate in TYPE]
    settled = settle(heard, ground, [one for one in fresh if one.claim.predicate not in TYPE], rules)
    entities, unknown = _entities(types, ground)
    repeated = (Dropped(DUPLICATE, one.claim.text) for one in again)
    report = sum((look.answer for look in looks), Answer(dropped=(*unknown, *repeated), warnings=tuple(warnings)))
    done = extracted(settled, report, sum((look.usage for look in looks), Usage()))
    return replace(done, entities=entities, relations=_relations(fresh, settled.claims))


def _entities(types: Iterable[Proposal], ground: Ground) -> tuple[tuple[Entity, ...], list[Dropped]]:
    """The things whose type was stated and whose name was said."""
    found: dict[str, Entity] = {}
    dropped: list[Dropped] = []
    for one in types:
        name = str(one.claim.subject)
        if ground.find(name) is None:
            dropped.append(Dropped("its name is not in what was said", one.claim.text))
        else:
            found.setdefault(normalise(name), Entity(name, entity_type(one.claim.object)))
    return tuple(found.values()), dropped


def _relations(proposals: Iterable[Proposal], claims: Sequence[Found]) -> tuple[Relation, ...]:
    """The ties between two things, among the claims that stand."""
    things = {key(one.claim) for one in proposals if one.thing}
    held = [one for one in claims if one.claim.kind != QUARANTINE and key(one.claim) in things]
    return tuple(_relation(one.claim, one.turn) for one in held)


def _relation(claim: Claim, turn: int) -> Relation:
    return Relation(str(claim.subject), str(claim.predicate), str(claim.object), claim.confidence, turn)
