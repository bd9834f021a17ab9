"""Extract a graph of entities and relations from a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.extraction.grounding import DEFAULT_SPEAKER, GroundingIndex
from told.extraction.prompting import (
    ask_llm,
    ask_llm_with_tools,
    get_reply_usage,
    is_fact_source,
    load_prompt,
    render_conversation,
)
from told.extraction.replies import (
    DUPLICATE,
    TOO_MANY_ITEMS,
    ParsedReply,
    RejectedItem,
    convert_items,
    format_item,
    get_first,
    get_speaker_name,
    normalise_predicate,
    parse_confidence,
    parse_items,
    resolve_name,
    split_duplicates,
    to_line,
)
from told.flow import Flow
from told.ingest.types import (
    Entity,
    ExtractionInput,
    ExtractionResult,
    Extractor,
    RejectedClaim,
    Relation,
)
from told.ports import LLM, ChatLine, Tool, ToolLLM, ToolReply, Usage
from told.runtime import lazy_regex
from told.text.tokens import normalise_text

MAX_ITEMS: Final = 300
ENTITY_TYPES: Final = (
    "person",
    "organization",
    "concept",
    "location",
    "event",
    "technology",
    "product",
)
DEFAULT_TYPE: Final = "thing"
UNKNOWN_ENDPOINT: Final = "one of its ends was not spoken of"
NAME_NOT_FOUND: Final = "its name is not in what was said"
"""The reason for rejecting an entity or relation."""

_TYPE_ALIASES: Final = {
    "location": "place",
    "place": "place",
    "city": "place",
    "country": "place",
    "company": "organization",
    "organisation": "organization",
    "organization": "organization",
    "org": "organization",
    "team": "organization",
    "human": "person",
    "people": "person",
    "person": "person",
    "project": "project",
    "festival": "event",
    "software": "technology",
    "tool": "technology",
    "language": "technology",
    "idea": "concept",
    "thing": DEFAULT_TYPE,
    **{name: name for name in ("concept", "event", "technology", "product")},
}
_LAST_SEGMENT: Final = lazy_regex(r"[^:/#\s]+$")


def _build_list_schema(
    name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]
) -> Mapping[str, Any]:
    item = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "object",
        "required": [name],
        "properties": {name: {"type": "array", "description": description, "items": item}},
    }


ENTITIES_TOOL: Final = Tool(
    "extract_entities",
    "Write down whom and what the conversation speaks of: "
    "people, organizations, concepts, locations, events.",
    _build_list_schema(
        "entities",
        "Every entity once.",
        {
            "name": {"type": "string", "description": "Its name as it was said."},
            "type": {"type": "string", "enum": list(ENTITY_TYPES)},
            "description": {"type": "string", "description": "What it is, in a few words."},
        },
        ("name", "type"),
    ),
)
RELATIONS_TOOL: Final = Tool(
    "extract_relations",
    "Write down how the entities belong together.",
    _build_list_schema(
        "relations",
        "Every relation once.",
        {
            "source": {"type": "string", "description": "The name of the entity it leads from."},
            "relation": {
                "type": "string",
                "description": "Such as works_at, located_in, uses, knows.",
            },
            "target": {"type": "string", "description": "The name of the entity it leads to."},
        },
        ("source", "relation", "target"),
    ),
)
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["entities", "relations"],
    "properties": {
        **ENTITIES_TOOL.parameters["properties"],
        **RELATIONS_TOOL.parameters["properties"],
    },
}
REPLY_FORMAT: Final = (
    'Reply with JSON only: {"entities": [{"name": "…", "type": "person", "description": "…"}], '
    '"relations": [{"source": "…", "relation": "works_at", "target": "…"}]}'
)


def normalise_entity_type(value: object) -> str:
    """Map a type given by a model to a known entity type, e.g. `ex:Person` to `person`."""
    text = to_line(value) or ""
    match = _LAST_SEGMENT.search(text.casefold())
    return _TYPE_ALIASES.get(match[0] if match else "", DEFAULT_TYPE)


@dataclass(frozen=True, slots=True)
class _GraphDraft:
    """The entities and relations parsed so far."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    parsed: ParsedReply = field(default_factory=ParsedReply)


@dataclass(frozen=True, slots=True)
class GraphExtractor:
    """An extractor that asks a model for entities and relations, by tool calls or as JSON."""

    llm: LLM
    max_items: int = MAX_ITEMS

    @property
    def name(self) -> str:
        """Return `graph:` and the model name."""
        return f"graph:{self.llm.model}"

    @property
    def local(self) -> bool:
        """Return False: this extractor calls a model."""
        return False

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return the entities that were mentioned and the relations between them."""
        if not any(map(is_fact_source, inputs.turns)):
            return ExtractionResult()
        system = inputs.prompt or load_prompt("graph")
        if isinstance(self.llm, ToolLLM):
            draft, usage = yield from self._ask_with_tools(self.llm, system, inputs)
        else:
            raw, usage = yield from ask_llm(
                self.llm, system, f"{render_conversation(inputs)}\n\n{REPLY_FORMAT}", SCHEMA
            )
            draft = self._parse_reply(raw, inputs)
        return _check_draft(inputs, draft, usage)

    def _ask_with_tools(
        self, llm: ToolLLM, system: str, inputs: ExtractionInput
    ) -> Flow[tuple[_GraphDraft, Usage]]:
        """Offer both tools; ask once more if the model returns entities but no relations."""
        lines = [ChatLine("user", render_conversation(inputs))]
        reply = yield from ask_llm_with_tools(llm, system, lines, [ENTITIES_TOOL, RELATIONS_TOOL])
        usage = get_reply_usage(reply)
        if not reply.calls:
            return self._parse_reply(reply.text, inputs), usage
        draft = self._parse_tool_calls(reply, inputs)
        if draft.entities and not any(
            tool_call.name == RELATIONS_TOOL.name for tool_call in reply.calls
        ):
            lines.append(ChatLine("assistant", reply.text, reply.calls))
            lines += [
                ChatLine("tool", "Noted. Now the relations between them.", call_id=tool_call.id)
                for tool_call in reply.calls
            ]
            second_reply = yield from ask_llm_with_tools(llm, system, lines, [RELATIONS_TOOL])
            usage += get_reply_usage(second_reply)
            draft = _merge_drafts(draft, self._parse_tool_calls(second_reply, inputs))
        return draft, usage

    def _parse_tool_calls(self, reply: ToolReply, inputs: ExtractionInput) -> _GraphDraft:
        """Parse tool calls into a draft; report calls of unknown tools."""
        excess = (
            (RejectedClaim(TOO_MANY_ITEMS, f"{len(reply.calls)} calls"),)
            if len(reply.calls) > self.max_items
            else ()
        )
        draft = _GraphDraft(parsed=ParsedReply(rejected=excess))
        for tool_call in reply.calls[: self.max_items]:
            if tool_call.name in (ENTITIES_TOOL.name, RELATIONS_TOOL.name):
                draft = _merge_drafts(
                    draft,
                    self._parse_part(
                        tool_call.arguments, tool_call.name.removeprefix("extract_"), inputs
                    ),
                )
            else:
                draft = _merge_drafts(
                    draft,
                    _GraphDraft(
                        parsed=ParsedReply(
                            rejected=(RejectedClaim("no such tool", format_item(tool_call.name)),)
                        )
                    ),
                )
        return draft

    def _parse_part(self, arguments: object, part: str, inputs: ExtractionInput) -> _GraphDraft:
        """Parse the entities or relations in the arguments of a call."""
        members = get_first(arguments, part) if isinstance(arguments, Mapping) else arguments
        items = members if isinstance(members, list) else [] if members is None else [members]
        parsed = ParsedReply(tuple(items[: self.max_items]))
        speaker = get_speaker_name(inputs)
        if part == "entities":
            entities, parsed = convert_items(
                parsed, format_item(arguments), lambda item: _parse_entity(item, speaker)
            )
            return _GraphDraft(tuple(entities), (), parsed)
        relations, parsed = convert_items(
            parsed, format_item(arguments), lambda item: _parse_relation(item, speaker)
        )
        return _GraphDraft((), tuple(relations), parsed)

    def _parse_reply(self, raw: object, inputs: ExtractionInput) -> _GraphDraft:
        """Parse a JSON reply into a draft."""
        parsed = parse_items(
            raw, (), item_keys=("entities", "relations"), max_items=self.max_items, label=self.name
        )
        parts = [item for item in parsed.items if isinstance(item, Mapping)]
        if parsed.items and not any(
            get_first(part, "entities", "relations") is not None for part in parts
        ):
            return _GraphDraft(
                parsed=replace(parsed, unreadable_replies=(*parsed.unreadable_replies, str(raw)))
            )
        draft = _GraphDraft(parsed=replace(parsed, items=()))
        for part in parts:
            for name in ("entities", "relations"):
                draft = _merge_drafts(draft, self._parse_part(part, name, inputs))
        return draft


@dataclass(frozen=True, slots=True)
class LocalGraphExtractor:
    """An extractor that keeps only the entities and relations of another one."""

    inner: Extractor

    @property
    def name(self) -> str:
        """Return `graph:` and the name of the inner extractor."""
        return f"graph:{self.inner.name}"

    @property
    def local(self) -> bool:
        """Return True if the inner extractor calls no model."""
        return self.inner.local

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return the inner extractor's result without its claims."""
        return replace((yield from self.inner.extract(inputs)), claims=())


def _merge_drafts(left: _GraphDraft, right: _GraphDraft) -> _GraphDraft:
    return _GraphDraft(
        (*left.entities, *right.entities),
        (*left.relations, *right.relations),
        left.parsed + right.parsed,
    )


def _parse_entity(item: Any, speaker: str) -> Entity | RejectedItem:
    if isinstance(item, str):
        item = {"name": item}
    name = to_line(get_first(item, "name", "entity"), 200)
    if name is None:
        return RejectedItem()
    description = to_line(get_first(item, "description"), 500) or ""
    return Entity(
        resolve_name(name, speaker),
        normalise_entity_type(get_first(item, "type", "entity_type", "entitytype")),
        description,
    )


def _parse_relation(item: Any, speaker: str) -> Relation | RejectedItem:
    if isinstance(item, list | tuple) and len(item) == 3:
        item = dict(zip(("source", "relation", "target"), item, strict=True))
    source, target = (
        to_line(get_first(item, *names), 200)
        for names in (("source", "from", "src"), ("target", "to", "dst"))
    )
    rel = normalise_predicate(
        to_line(get_first(item, "relation", "relationship", "type"), 100) or ""
    )
    if source is None or target is None or not rel:
        return RejectedItem()
    return Relation(
        resolve_name(source, speaker),
        rel,
        resolve_name(target, speaker),
        parse_confidence(get_first(item, "confidence")),
    )


def _check_draft(inputs: ExtractionInput, draft: _GraphDraft, usage: Usage) -> ExtractionResult:
    """Keep the entities that were mentioned and the relations between two of them."""
    grounding = GroundingIndex(inputs.turns)
    speakers = {
        normalise_text(DEFAULT_SPEAKER),
        *(normalise_text(turn.evidence.name) for turn in inputs.turns if turn.evidence.name),
    }
    unique, duplicates = split_duplicates(draft.entities, lambda item: normalise_text(item.name))
    kept = [
        item
        for item in unique
        if normalise_text(item.name) in speakers or _is_grounded(grounding, item.name)
    ]
    ends = (end for item in draft.relations for end in (item.src, item.dst))
    named_ends, _ = split_duplicates(
        (end for end in ends if _is_grounded(grounding, end)), normalise_text
    )
    kept += [
        Entity(end)
        for end in named_ends
        if normalise_text(end) not in {normalise_text(item.name) for item in kept}
    ]
    names = {normalise_text(item.name): item.name for item in kept}
    unique_relations, duplicate_relations = split_duplicates(
        draft.relations, lambda item: (normalise_text(item.src), item.rel, normalise_text(item.dst))
    )
    grounded = [_ground_relation(item, names, speakers, grounding) for item in unique_relations]
    rejected = (
        *draft.parsed.rejected,
        *(RejectedClaim(NAME_NOT_FOUND, item.name) for item in unique if item not in kept),
        *(RejectedClaim(DUPLICATE, item.name) for item in duplicates),
        *(
            RejectedClaim(DUPLICATE, f"{item.src} {item.rel} {item.dst}")
            for item in duplicate_relations
        ),
        *(item for item in grounded if isinstance(item, RejectedClaim)),
    )
    relations = tuple(item for item in grounded if isinstance(item, Relation))
    return ExtractionResult(
        (),
        tuple(kept),
        relations,
        rejected,
        draft.parsed.warnings,
        draft.parsed.unreadable_replies,
        usage,
    )


def _is_grounded(grounding: GroundingIndex, name: str) -> bool:
    location = grounding.find_value(name)
    return location is not None and not location.unconfirmed


def _ground_relation(
    relation: Relation,
    known_names: Mapping[str, str],
    speakers: set[str],
    grounding: GroundingIndex,
) -> Relation | RejectedClaim:
    """Return the relation with its ends spelled like the entities, and the turn it was said in."""
    ends = [normalise_text(relation.src), normalise_text(relation.dst)]
    text = f"{relation.src} {relation.rel} {relation.dst}"
    if ends[0] == ends[1]:
        return RejectedClaim("it leads nowhere", text)
    if not all(end in known_names or end in speakers for end in ends):
        return RejectedClaim(UNKNOWN_ENDPOINT, text)
    names = [name for name in (relation.src, relation.dst) if normalise_text(name) not in speakers]
    location = grounding.find_value(" ".join(names) or relation.src)
    turn = location.turn if location is not None else grounding.get_fallback_turn()
    return replace(
        relation,
        src=known_names.get(ends[0], relation.src),
        dst=known_names.get(ends[1], relation.dst),
        turn=turn,
    )
