"""The closed world: the ontology is the catalogue, and what fits none of its concepts is not remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from told.core.entry import Claim, Evidence
from told.core.errors import ConfigError
from told.core.kind import Kind, Ontology
from told.core.scope import Scope
from told.core.text import STOP_WORDS
from told.flow import Flow, run
from told.ports import LLM
from told.write.extract.brief import ASSISTANT, asked, conversation, page, spoken
from told.write.extract.examples import BLANK, PERSONS, Blank, confirmed
from told.write.extract.examples import filled as forms
from told.write.extract.facts import MOST
from told.write.extract.ground import Ground, Place
from told.write.extract.items import ASSERTED, NEGATED, Proposal, Reader, from_sentence, unread
from told.write.extract.parse import Answer, Unread, first, line, read_items, take
from told.write.extract.settle import BY_ASSISTANT, USER, Rules, extracted, quarantined, settle, signed, speaker_of
from told.write.extract.words import Needle, Sort, alike, needles, words
from told.write.local import LocalExtractor
from told.write.messages import Turn
from told.write.shape import CONCEPT, Dropped, Extracted, Extractor, Found, Heard

PLAIN: Final = "memory"
"""The kind of what is no kind in particular; no catalogue offers it."""

OUTSIDE: Final = "outside the ontology"
NO_VALUE: Final = "no value"
NO_EVIDENCE: Final = "no evidence"
NOT_QUOTED: Final = "its evidence is not in what was said"
NO_POLARITY: Final = "neither asserted nor negated"
VALUE: Final = "value"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object", "required": ["facts"], "additionalProperties": False,
    "properties": {"facts": {"type": "array", "items": {
        "type": "object", "required": [CONCEPT, "value", "polarity", "evidence"], "additionalProperties": False,
        "properties": {
            CONCEPT: {"type": "string"}, "value": {"type": "string"}, "evidence": {"type": "string"},
            "polarity": {"type": "string", "enum": [ASSERTED, NEGATED]},
        },
    }}},
}  # fmt: skip

PALE: Final = STOP_WORDS | PERSONS.keys()
_ANYTHING: Final = "jazz"
_NOWHERE: Final = Scope("reading", user_id="reading")


# The catalogue --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Concept:
    """What may be remembered: a name, what it is called, and what people say when it applies."""

    name: str
    label: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """One line of the form, checked."""

    concept: str
    value: str
    polarity: str
    evidence: str


def extractable(ontology: Ontology) -> list[Kind]:
    """The kinds that are found in conversations: in use, not made by told itself, and more than a plain memory."""
    return [kind for kind in ontology.kinds if kind.enabled and not kind.system and kind.name != PLAIN]


def concepts_of(ontology: Ontology) -> list[Concept]:
    """The kinds of an ontology as concepts of a catalogue."""
    return [Concept(kind.name, kind.label or kind.name, kind.examples) for kind in extractable(ontology)]


def catalogue(concepts: Iterable[Concept]) -> str:
    """The concepts as a model reads them, one to a line."""
    return "\n".join(_entry(concept) for concept in concepts)


def _entry(concept: Concept) -> str:
    said = "; ".join(f'"{" ".join(example.split())}"' for example in concept.examples)
    return f"- {concept.name}: {concept.label or concept.name}" + (f" ({said})" if said else "")


def template() -> str:
    """The system prompt with a `{catalog}` slot for `str.format`."""
    text = page("closed").replace("{", "{{").replace("}", "}}")
    return text.replace("{{catalog}}", "{catalog}")


def check(item: Any, names: Mapping[str, Concept], ground: Ground, *, replies: bool = False) -> Filled | Unread:
    """A line of the form: a concept of the list, a value, a polarity, and evidence that stands in what was said."""
    if not isinstance(item, Mapping):
        return Unread()
    concept, value, evidence = (line(first(item, name)) for name in (CONCEPT, VALUE, "evidence"))
    if concept is None and value is None:
        return Unread()
    place = None if evidence is None else ground.quote(evidence)
    if concept not in names:
        return Unread(OUTSIDE, _homeless(concept, value, ground, place) if concept and value and place else None)
    polarity = str(first(item, "polarity")).strip().casefold()
    if polarity not in (ASSERTED, NEGATED):
        return Unread(NO_POLARITY)
    if value is None or evidence is None:
        return Unread(NO_VALUE if value is None else NO_EVIDENCE)
    if place is None:
        return Unread(NOT_QUOTED)
    if place.unconfirmed and not replies:
        return Unread(BY_ASSISTANT)
    return Filled(str(concept), value, polarity, evidence)


def _homeless(concept: str, value: str, ground: Ground, place: Place) -> Dropped:
    """What was said and has no concept: it is dropped, and lies where a new kind can be made for it."""
    text = f"{concept}: {value}"
    claim = signed(Claim(text, object=value, meta={CONCEPT: concept}), ground.turns[place.turn], place.span)
    return Dropped(OUTSIDE, text, place.turn, quarantined(claim, OUTSIDE))


def read_form(raw: object, concepts: Sequence[Concept], ground: Ground, who: str, most: int = MOST,
              *, replies: bool = False) -> tuple[list[Filled], Answer]:  # fmt: skip
    """The lines of the form that hold, and what is to be said of the others."""
    names = {concept.name: concept for concept in concepts}
    answer = read_items(raw, ("facts",), marks=(CONCEPT,), most=most, who=who)
    return take(answer, raw, lambda item: check(item, names, ground, replies=replies))


# The extractor --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClosedExtractor:
    """Fills in the ontology with a model, or without one from what another extractor finds.

    With `replies` the assistant's own lines are read too, in a question of their own.
    """

    llm: LLM | None = None
    fallback: Extractor | None = None
    reader: Reader = unread
    rules: Rules = field(default_factory=Rules)
    replies: bool = False
    most: int = MOST

    def __post_init__(self) -> None:
        if self.llm is None and self.fallback is None:
            raise ConfigError("The closed-world extractor needs a language model or another extractor.")

    @property
    def name(self) -> str:
        """`closed:` and the model, or the extractor it leans on."""
        return f"closed:{self.llm.model if self.llm is not None else self.fallback and self.fallback.name}"

    @property
    def local(self) -> bool:
        """Whether no model is asked."""
        return self.llm is None and self.fallback is not None and self.fallback.local

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """What was said as far as the ontology has concepts for it."""
        if self.llm is None:
            assert self.fallback is not None
            return within(heard, (yield from self.fallback.extract(heard)), replies=self.replies)
        ground = Ground(heard.turns)
        done = yield from self._pass(self.llm, heard, ground, replies=False)
        if not self.replies:
            return done
        more = yield from self._pass(self.llm, heard, ground, replies=True)
        return _sum(done, more)

    def _pass(self, llm: LLM, heard: Heard, ground: Ground, *, replies: bool) -> Flow[Extracted]:
        concepts = concepts_of(heard.ontology)
        if not concepts or not any(spoken(turn) is not replies for turn in heard.turns):
            return Extracted()
        system = heard.prompt or template().format(catalog=catalogue(concepts))
        system += f"\n\n{page('replies')}" if replies else ""
        raw, usage = yield from asked(llm, system, conversation(heard, replies=replies), SCHEMA)
        filled, answer = read_form(raw, concepts, ground, self.name, self.most, replies=replies)
        made = proposed(heard, filled, self.reader)
        return extracted(settle(heard, ground, made, replace(self.rules, replies=replies)), answer, usage)


def proposed(heard: Heard, filled: Iterable[Filled], reader: Reader) -> list[Proposal]:
    """The lines of a form as claims, each with its evidence."""
    speaker = speaker_of(heard)
    return [Proposal(claim_of(one, heard.ontology[one.concept], speaker, reader), one.evidence) for one in filled]


def claim_of(filled: Filled, kind: Kind, speaker: str, reader: Reader) -> Claim:
    """A line of the form as a claim: a concept of an ontology is its own predicate, a kind of told's has sentences."""
    negated = filled.polarity == NEGATED
    read = from_sentence(filled.value, reader)
    if kind.key != VALUE and read.predicate is not None:
        return replace(read, kind=kind.name, polarity=filled.polarity)
    text = f"{kind.label or kind.name}: {'not ' if negated else ''}{filled.value}"
    name = kind.name if kind.key == VALUE else None
    meta = {VALUE: filled.value} if kind.key == VALUE else {}
    return Claim(text, kind.name, speaker, name, filled.value, polarity=filled.polarity, meta=meta)


def _sum(one: Extracted, other: Extracted) -> Extracted:
    """Both, but for what the first has already."""
    texts = {found.claim.text for found in one.claims}
    more = tuple(found for found in other.claims if found.claim.text not in texts)
    return Extracted(
        claims=(*one.claims, *more), dropped=(*one.dropped, *other.dropped),
        warnings=(*one.warnings, *other.warnings), faults=(*one.faults, *other.faults), usage=one.usage + other.usage,
    )  # fmt: skip


# Without a model ------------------------------------------------------------------------------------------------------


def within(heard: Heard, found: Extracted, *, replies: bool = False) -> Extracted:
    """What the examples of the ontology find, and of what another extractor found what it has a concept for.

    The rest is dropped.
    """
    kinds = extractable(heard.ontology)
    met = list(by_examples(heard, kinds, replies=replies))
    read = [(one.turn, *(one.claim.span or (0, 0))) for one in met]
    claims = [_better(one, place, found.claims, heard.ontology) for one, place in zip(met, read, strict=True)]
    dropped: list[Dropped] = []
    for one in found.claims:
        if any(_overlaps(one, place) for place in read):
            continue
        kind = _concept(kinds, one.claim, _said(heard, one))
        if kind is None:
            dropped.append(Dropped(OUTSIDE, one.claim.text, one.turn, _aside(one.claim)))
        else:
            claims.append(Found(_under(kind, one.claim), one.turn))
    claims.sort(key=lambda one: (one.turn, one.claim.span or (0, 0)))
    return replace(found, claims=tuple(claims), dropped=(*found.dropped, *dropped), entities=(), relations=())


def by_examples(heard: Heard, kinds: Sequence[Kind], *, replies: bool) -> Iterator[Found]:
    """What people say in the words of a concept's examples, each value under the concept that tells most.

    With `replies` what an assistant says of them counts too; what they say yes to always does.
    """
    concepts = [kind for kind in kinds if kind.key == VALUE and kind.examples]
    for number, turn in enumerate(heard.turns):
        met = [(one, kind) for kind in concepts for one in _blanks(heard, number, kind.examples, replies=replies)]
        met.sort(key=lambda pair: -pair[0].telling)
        taken: list[Blank] = []
        for one, kind in met:
            if not any(one.value_start < other.end and other.value_start < one.end for other in taken):
                taken.append(one)
                line = Filled(kind.name, one.value, NEGATED if one.denied else ASSERTED, "")
                claim = claim_of(line, kind, speaker_of(heard), unread)
                yield Found(signed(claim, turn, (one.start, one.end)), number)


def _blanks(heard: Heard, number: int, examples: Sequence[str], *, replies: bool) -> list[Blank]:
    turn = heard.turns[number].evidence
    if turn.role == USER:
        return forms(examples, turn.content)
    if turn.role != ASSISTANT:
        return []
    after = next((later.evidence.content for later in heard.turns[number + 1 :] if later.evidence.role == USER), "")
    return [*confirmed(examples, turn.content, after), *(forms(examples, turn.content, second=True) if replies else ())]


def _better(one: Found, place: tuple[int, int, int], found: Sequence[Found], ontology: Ontology) -> Found:
    """What an example found, in the words of another extractor if that found the same value there."""
    value = str(one.claim.object).casefold()
    same = (each for each in found if _overlaps(each, place) and str(each.claim.object).casefold() == value)
    other = next((each for each in same if each.claim.polarity == one.claim.polarity), None)
    return one if other is None else Found(_under(ontology[one.claim.kind], other.claim), one.turn)


def _overlaps(one: Found, place: tuple[int, int, int]) -> bool:
    turn, start, end = place
    return one.turn == turn and one.claim.span is not None and one.claim.span[0] < end and start < one.claim.span[1]


def _aside(claim: Claim) -> Claim:
    return quarantined(replace(claim, meta={**claim.meta, CONCEPT: claim.predicate or claim.kind}), OUTSIDE)


def _said(heard: Heard, one: Found) -> str:
    content = heard.turns[one.turn].evidence.content
    return content if one.claim.span is None else content[slice(*one.claim.span)]


def _under(kind: Kind, claim: Claim) -> Claim:
    if kind.key != VALUE:
        return replace(claim, kind=kind.name)
    value = claim.object if claim.object is not None else claim.text
    return replace(claim, kind=kind.name, predicate=kind.name, meta={**claim.meta, VALUE: value})


def _concept(kinds: Sequence[Kind], claim: Claim, said: str) -> Kind | None:
    """The kind a claim belongs to: by name, else by an example that says the same, else by its label."""
    by_name = next((kind for kind in kinds if kind.name in (claim.kind, claim.predicate)), None)
    if by_name is not None:
        return by_name
    closest = max(kinds, key=lambda kind: _closeness(kind, claim, said), default=None)
    return closest if closest is not None and _closeness(closest, claim, said) else None


def _closeness(kind: Kind, claim: Claim, said: str) -> int:
    """How well a kind fits a claim: an example with the same words counts most, then one that says it in others.

    Words of the label count where no example does.
    """
    likeness = max((_like(example, said) for example in kind.examples), default=0)
    if likeness or claim.predicate in _predicates(kind.examples):
        return 10 + likeness
    about = (claim.predicate or "").replace("_", " ")
    named = [Needle(word, Sort.WORD) for word in words(about) if len(word.form) > 3]
    label = [one.word for one in needles(f"{kind.label} {kind.name.replace('.', ' ')}")]
    return sum(any(alike(needle, word) for word in label) for needle in named)


def _like(example: str, said: str) -> int:
    """How many telling words an example shares with a sentence, if the sentence has all of them."""
    bare = BLANK.sub(" ", example)
    sought = [one for one in needles(bare) if one.word.form not in PALE] if words(bare) else []
    heard = words(said)
    return len(sought) if sought and all(any(alike(one, word) for word in heard) for one in sought) else 0


@lru_cache(maxsize=1 << 10)
def _predicates(examples: tuple[str, ...]) -> frozenset[str]:
    """What rules read in the examples of a concept that have a blank, so that "I adore X" is one with "I love X"."""
    said = [Turn(Evidence(BLANK.sub(_ANYTHING, example)), {}) for example in examples if BLANK.search(example)]
    found = run(LocalExtractor().extract(Heard(tuple(said), 0, _NOWHERE))) if said else Extracted()
    return frozenset(one.claim.predicate for one in found.claims if one.claim.predicate is not None)
