"""The graph of a conversation: entities with a type and a description, and the relations between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.core.lazy import regex
from told.core.text import normalise
from told.flow import Flow
from told.ports import LLM, Line, Tool, ToolLLM, ToolReply, Usage
from told.write.extract.brief import asked, conversation, cost, page, spoken, used
from told.write.extract.ground import SPEAKER, Ground
from told.write.extract.items import named, verb
from told.write.extract.parse import (
    DUPLICATE,
    TOO_MANY,
    Answer,
    Unread,
    display,
    first,
    line,
    once,
    read_items,
    share,
    take,
)
from told.write.extract.settle import speaker_of
from told.write.shape import Dropped, Entity, Extracted, Extractor, Heard, Relation

MOST: Final = 300
TYPES: Final = ("person", "organization", "concept", "location", "event", "technology", "product")
THING: Final = "thing"
UNKNOWN_END: Final = "one of its ends was not spoken of"
NO_NAME: Final = "its name is not in what was said"
"""Why an entity or a relation is left out."""

_ALSO: Final = {
    "location": "place", "place": "place", "city": "place", "country": "place", "company": "organization",
    "organisation": "organization", "organization": "organization", "org": "organization", "team": "organization",
    "human": "person", "people": "person", "person": "person", "project": "project", "festival": "event",
    "software": "technology", "tool": "technology", "language": "technology", "idea": "concept", "thing": THING,
    **{name: name for name in ("concept", "event", "technology", "product")},
}  # fmt: skip
_LAST: Final = regex(r"[^:/#\s]+$")


def _list_of(name: str, about: str, properties: Mapping[str, Any], required: Sequence[str]) -> Mapping[str, Any]:
    item = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "object", "required": [name],
            "properties": {name: {"type": "array", "description": about, "items": item}}}  # fmt: skip


ENTITIES: Final = Tool(
    "extract_entities",
    "Write down whom and what the conversation speaks of: people, organizations, concepts, locations, events.",
    _list_of(
        "entities", "Every entity once.",
        {
            "name": {"type": "string", "description": "Its name as it was said."},
            "type": {"type": "string", "enum": list(TYPES)},
            "description": {"type": "string", "description": "What it is, in a few words."},
        },
        ("name", "type"),
    ),
)  # fmt: skip
RELATIONS: Final = Tool(
    "extract_relations",
    "Write down how the entities belong together.",
    _list_of(
        "relations", "Every relation once.",
        {
            "source": {"type": "string", "description": "The name of the entity it leads from."},
            "relation": {"type": "string", "description": "Such as works_at, located_in, uses, knows."},
            "target": {"type": "string", "description": "The name of the entity it leads to."},
        },
        ("source", "relation", "target"),
    ),
)  # fmt: skip
SCHEMA: Final[dict[str, Any]] = {
    "type": "object", "required": ["entities", "relations"],
    "properties": {**ENTITIES.parameters["properties"], **RELATIONS.parameters["properties"]},
}  # fmt: skip
SHAPE: Final = (
    'Reply with JSON only: {"entities": [{"name": "…", "type": "person", "description": "…"}], '
    '"relations": [{"source": "…", "relation": "works_at", "target": "…"}]}'
)


def entity_type(value: object) -> str:
    """A type of told's for whatever a model calls it: `ex:Person` is a person, a dragon is a thing."""
    text = line(value) or ""
    bare = _LAST.search(text.casefold())
    return _ALSO.get(bare[0] if bare else "", THING)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What was drawn so far."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    answer: Answer = field(default_factory=Answer)


@dataclass(frozen=True, slots=True)
class GraphExtractor:
    """Asks a model for entities and relations: by two tools where it can use them, else as JSON."""

    llm: LLM
    most: int = MOST

    @property
    def name(self) -> str:
        """`graph:` and the model."""
        return f"graph:{self.llm.model}"

    @property
    def local(self) -> bool:
        """No: a model is asked."""
        return False

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """Entities that were named and relations between them."""
        if not any(map(spoken, heard.turns)):
            return Extracted()
        system = heard.prompt or page("graph")
        if isinstance(self.llm, ToolLLM):
            drawn, usage = yield from self._by_tools(self.llm, system, heard)
        else:
            raw, usage = yield from asked(self.llm, system, f"{conversation(heard)}\n\n{SHAPE}", SCHEMA)
            drawn = self._read(raw, heard)
        return _checked(heard, drawn, usage)

    def _by_tools(self, llm: ToolLLM, system: str, heard: Heard) -> Flow[tuple[_Drawn, Usage]]:
        """Both tools are offered; a model that names entities only is asked once more for what lies between them."""
        lines = [Line("user", conversation(heard))]
        reply = yield from used(llm, system, lines, [ENTITIES, RELATIONS])
        usage = cost(reply)
        if not reply.calls:
            return self._read(reply.text, heard), usage
        drawn = self._called(reply, heard)
        if drawn.entities and not any(one.name == RELATIONS.name for one in reply.calls):
            lines.append(Line("assistant", reply.text, reply.calls))
            lines += [Line("tool", "Noted. Now the relations between them.", call_id=one.id) for one in reply.calls]
            more = yield from used(llm, system, lines, [RELATIONS])
            usage += cost(more)
            drawn = _joined(drawn, self._called(more, heard))
        return drawn, usage

    def _called(self, reply: ToolReply, heard: Heard) -> _Drawn:
        """What the calls of a line draw; a call of another tool is left out and reported."""
        over = (Dropped(TOO_MANY, f"{len(reply.calls)} calls"),) if len(reply.calls) > self.most else ()
        drawn = _Drawn(answer=Answer(dropped=over))
        for one in reply.calls[: self.most]:
            if one.name in (ENTITIES.name, RELATIONS.name):
                drawn = _joined(drawn, self._part(one.arguments, one.name.removeprefix("extract_"), heard))
            else:
                drawn = _joined(drawn, _Drawn(answer=Answer(dropped=(Dropped("no such tool", display(one.name)),))))
        return drawn

    def _part(self, given: object, what: str, heard: Heard) -> _Drawn:
        """The entities or the relations in the arguments of a call, or in an object."""
        members = first(given, what) if isinstance(given, Mapping) else given
        items = members if isinstance(members, list) else [] if members is None else [members]
        answer = Answer(tuple(items[: self.most]))
        speaker = speaker_of(heard)
        if what == "entities":
            entities, answer = take(answer, display(given), lambda item: _entity(item, speaker))
            return _Drawn(tuple(entities), (), answer)
        relations, answer = take(answer, display(given), lambda item: _relation(item, speaker))
        return _Drawn((), tuple(relations), answer)

    def _read(self, raw: object, heard: Heard) -> _Drawn:
        """The graph of an answer in JSON."""
        answer = read_items(raw, (), marks=("entities", "relations"), most=self.most, who=self.name)
        parts = [item for item in answer.items if isinstance(item, Mapping)]
        if answer.items and not any(first(part, "entities", "relations") is not None for part in parts):
            return _Drawn(answer=replace(answer, faults=(*answer.faults, str(raw))))
        drawn = _Drawn(answer=replace(answer, items=()))
        for part in parts:
            for what in ("entities", "relations"):
                drawn = _joined(drawn, self._part(part, what, heard))
        return drawn


@dataclass(frozen=True, slots=True)
class LocalGraph:
    """The entities and relations another extractor finds, and nothing else of it."""

    inner: Extractor

    @property
    def name(self) -> str:
        """`graph:` and the extractor it leans on."""
        return f"graph:{self.inner.name}"

    @property
    def local(self) -> bool:
        """Whether the other one is."""
        return self.inner.local

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """Entities and relations only."""
        return replace((yield from self.inner.extract(heard)), claims=())


def _joined(one: _Drawn, other: _Drawn) -> _Drawn:
    return _Drawn((*one.entities, *other.entities), (*one.relations, *other.relations), one.answer + other.answer)


def _entity(item: Any, speaker: str) -> Entity | Unread:
    if isinstance(item, str):
        item = {"name": item}
    name = line(first(item, "name", "entity"), 200)
    if name is None:
        return Unread()
    about = line(first(item, "description"), 500) or ""
    return Entity(named(name, speaker), entity_type(first(item, "type", "entity_type", "entitytype")), about)


def _relation(item: Any, speaker: str) -> Relation | Unread:
    if isinstance(item, list | tuple) and len(item) == 3:
        item = dict(zip(("source", "relation", "target"), item, strict=True))
    source, target = (line(first(item, *names), 200) for names in (("source", "from", "src"), ("target", "to", "dst")))
    rel = verb(line(first(item, "relation", "relationship", "type"), 100) or "")
    if source is None or target is None or not rel:
        return Unread()
    return Relation(named(source, speaker), rel, named(target, speaker), share(first(item, "confidence")))


def _checked(heard: Heard, drawn: _Drawn, usage: Usage) -> Extracted:
    """Of what was drawn, what was spoken of: names that were said, relations between two different ones of them."""
    ground = Ground(heard.turns)
    speakers = {normalise(SPEAKER), *(normalise(turn.evidence.name) for turn in heard.turns if turn.evidence.name)}
    spoken_of, again = once(drawn.entities, lambda one: normalise(one.name))
    kept = [one for one in spoken_of if normalise(one.name) in speakers or _said(ground, one.name)]
    ends = (end for one in drawn.relations for end in (one.src, one.dst))
    also, _ = once((end for end in ends if _said(ground, end)), normalise)
    kept += [Entity(end) for end in also if normalise(end) not in {normalise(one.name) for one in kept}]
    known = {normalise(one.name): one.name for one in kept}
    ties, repeated = once(drawn.relations, lambda one: (normalise(one.src), one.rel, normalise(one.dst)))
    placed = [_tied(one, known, speakers, ground) for one in ties]
    dropped = (
        *drawn.answer.dropped,
        *(Dropped(NO_NAME, one.name) for one in spoken_of if one not in kept),
        *(Dropped(DUPLICATE, one.name) for one in again),
        *(Dropped(DUPLICATE, f"{one.src} {one.rel} {one.dst}") for one in repeated),
        *(one for one in placed if isinstance(one, Dropped)),
    )
    relations = tuple(one for one in placed if isinstance(one, Relation))
    return Extracted((), tuple(kept), relations, dropped, drawn.answer.warnings, drawn.answer.faults, usage)


def _said(ground: Ground, name: str) -> bool:
    place = ground.find(name)
    return place is not None and not place.unconfirmed


def _tied(one: Relation, known: Mapping[str, str], speakers: set[str], ground: Ground) -> Relation | Dropped:
    """The relation with both ends spelt as the entities are, and the turn it was said in."""
    ends = [normalise(one.src), normalise(one.dst)]
    what = f"{one.src} {one.rel} {one.dst}"
    if ends[0] == ends[1]:
        return Dropped("it leads nowhere", what)
    if not all(end in known or end in speakers for end in ends):
        return Dropped(UNKNOWN_END, what)
    names = [name for name in (one.src, one.dst) if normalise(name) not in speakers]
    place = ground.find(" ".join(names) or one.src)
    turn = place.turn if place is not None else ground.last()
    return replace(one, src=known.get(ends[0], one.src), dst=known.get(ends[1], one.dst), turn=turn)

