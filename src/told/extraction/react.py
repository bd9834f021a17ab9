"""Extract in rounds: the model reads existing memories, then writes new ones with tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any, Final, Protocol

from told.extraction.closed_world import VALUE, ConceptValue, build_claim, list_extractable_kinds
from told.extraction.grounding import GroundingIndex
from told.extraction.prompting import (
    ask_llm_with_tools,
    fence_as_data,
    format_memories,
    get_reply_usage,
    is_fact_source,
    load_prompt,
    render_conversation,
)
from told.extraction.replies import (
    ASSERTED,
    NEGATED,
    REPLY_LIMIT,
    ClaimProposal,
    GroundingOptions,
    ParsedReply,
    SentenceReader,
    build_result,
    claim_from_sentence,
    format_item,
    get_first,
    get_speaker_name,
    parse_confidence,
    parse_flag,
    parse_items,
    read_nothing,
    to_line,
    validate_proposals,
)
from told.flow import Flow, call
from told.ingest.types import ExtractionInput, ExtractionResult, RejectedClaim
from told.model.entry import Claim
from told.model.fact import QUARANTINE, UNLISTED_KINDS, Fact, Link
from told.model.filter import parse_filter
from told.model.kind import Field, Kind, WriteMode
from told.model.query import LATEST, AccessCount, AsOf, FactQuery
from told.model.scope import Scope
from told.ports import ChatLine, Store, Tool, ToolCall, ToolLLM, ToolReply, Usage
from told.runtime import lazy_regex
from told.text.dates import format_iso
from told.text.tokens import make_snippet, normalise_text, split_sentences


class MemoryReader(Protocol):
    """Read access to the memories of a scope."""

    def read_memory(self, id: str) -> Flow[Fact | None]:
        """Return the current version of a memory, or None."""

    def list_memories(self, kind: str) -> Flow[Sequence[Fact]]:
        """Return the memories of a kind, or of every kind if it is empty, newest last."""

    def list_links(self, id: str) -> Flow[Sequence[Link]]:
        """Return the links from and to a memory."""

    def get_access_stats(self, id: str) -> Flow[AccessCount | None]:
        """Return the access count of a memory, or None if there is no such memory."""


@dataclass(frozen=True, slots=True)
class StoreMemoryReader:
    """A memory reader backed by a store.

    `now` decides what has expired.
    """

    store: Store
    scope: Scope
    now: int
    limit: int = 50

    def read_memory(self, id: str) -> Flow[Fact | None]:
        """Return the memory if the scope covers it and it is not quarantined."""
        fact = yield from call(self.store.get_fact, self.scope.account, id)
        return (
            fact
            if fact is not None and fact.kind != QUARANTINE and self.scope.covers(fact.scope)
            else None
        )

    def list_memories(self, kind: str) -> Flow[Sequence[Fact]]:
        """Return the newest memories of a kind, oldest first."""
        query = FactQuery(
            self.scope, AsOf(LATEST, self.now), parse_filter({"kind": kind} if kind else None)
        )
        facts = yield from call(self.store.find_facts, query)
        return [fact for fact in facts if fact.kind not in UNLISTED_KINDS][-self.limit :]

    def list_links(self, id: str) -> Flow[Sequence[Link]]:
        """Return the links of a memory inside the scope."""
        if (yield from self.read_memory(id)) is None:
            return ()
        links = yield from call(self.store.find_links, self.scope.account, [id])
        return [link for link in links if self.scope.covers(link.scope)][: self.limit]

    def get_access_stats(self, id: str) -> Flow[AccessCount | None]:
        """Return the access count of a memory in the scope, or None."""
        if (yield from self.read_memory(id)) is None:
            return None
        counts = yield from call(self.store.access_counts, self.scope.account, [id])
        return counts.get(id, AccessCount(0, 0))


@dataclass(frozen=True, slots=True)
class StaticMemoryReader:
    """A memory reader over given facts, for use without a store."""

    facts: tuple[Fact, ...] = ()

    def read_memory(self, id: str) -> Flow[Fact | None]:
        """Return the given fact with this id, or None."""
        return next((fact for fact in self.facts if fact.id == id), None)
        yield  # makes this a generator

    def list_memories(self, kind: str) -> Flow[Sequence[Fact]]:
        """Return the given facts of a kind."""
        return [fact for fact in self.facts if kind in ("", fact.kind)]
        yield  # makes this a generator

    def list_links(self, id: str) -> Flow[Sequence[Link]]:  # noqa: ARG002
        """Return no links."""
        return ()
        yield  # makes this a generator

    def get_access_stats(self, id: str) -> Flow[AccessCount | None]:
        """Return a zero count for a given fact, else None."""
        return None if (yield from self.read_memory(id)) is None else AccessCount(0, 0)


MAX_ROUNDS: Final = 6
MAX_CALLS: Final = 50
"""Maximum number of tool calls per round."""
CONTENT_LIMIT: Final = 20_000
SHORT_REPLY_LIMIT: Final = 80
WRITE_TOOL_PREFIX: Final = "extract_"
DONE_TOOL: Final = "done"
READ_TOOLS: Final = ("read", "list", "relations", "access_stats")
ALREADY_KNOWN: Final = "already known"
NO_SUCH_MEMORY: Final = "There is no memory with that id here."
_TEXT_FIELDS: Final = ("content", "abstract", VALUE, "steps", "overview")
_NON_META_FIELDS: Final = frozenset(
    ("confidence", "evidence", "evidence_quote", "polarity", "content")
)
_SUMMARY_FIELDS: Final = frozenset(("abstract", "overview"))
"""Fields that summarise a whole memory, not one sentence of it."""
_NOTHING_NEW: Final = lazy_regex(
    r"\b(?:nothing|no new|none|done|no (?:\w+ )?(?:facts|memories))\b", re.IGNORECASE
)
_CONTENT_HINT: Final = (
    " Only what this conversation says of it; what is held already is added by itself."
)
_INVALID_TOOL_CHARS: Final = lazy_regex(r"[^a-zA-Z0-9_-]")

_ID_SCHEMA: Final = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
_READ_TOOL_SPECS: Final = (
    Tool("read", "Show one memory, whole.", _ID_SCHEMA),
    Tool(
        "list",
        "Show the memories of a kind, or of all kinds.",
        {
            "type": "object",
            "properties": {"kind": {"type": "string", "description": "A kind; empty for all."}},
        },
    ),
    Tool("relations", "Show what a memory is linked to.", _ID_SCHEMA),
    Tool("access_stats", "Show how often a memory was recalled, and when last.", _ID_SCHEMA),
    Tool(
        DONE_TOOL,
        "End the work: everything new is written down, or nothing is new.",
        {"type": "object", "properties": {"why": {"type": "string"}}},
    ),
)


# Tools


def get_tool_name(kind: Kind) -> str:
    """Return the name of the tool that writes a kind."""
    return WRITE_TOOL_PREFIX + _INVALID_TOOL_CHARS.sub("_", kind.name)[:48]


def build_tools(kinds: Sequence[Kind]) -> list[Tool]:
    """Return the read tools and one write tool per kind."""
    return [
        *_READ_TOOL_SPECS,
        *(
            Tool(get_tool_name(kind), _describe_kind(kind), _build_parameters(kind))
            for kind in kinds
        ),
    ]


def _describe_kind(kind: Kind) -> str:
    examples = "".join(f' Such as: "{example}"' for example in kind.examples[:2])
    description = f"{' '.join(kind.description.split())}{examples}"
    return f"Write down a memory of the kind {kind.name}: {description}"[:1000]


def _build_parameters(kind: Kind) -> Mapping[str, Any]:
    properties = {field_spec.name: _build_property(field_spec) for field_spec in kind.fields}
    properties |= {
        "evidence": {
            "type": "string",
            "description": "The words that say so, copied from the conversation.",
        },
        "polarity": {
            "type": "string",
            "enum": [ASSERTED, NEGATED],
            "description": "negated if it no longer holds.",
        },
    }
    required = [field_spec.name for field_spec in kind.fields if field_spec.required]
    return {"type": "object", "properties": properties, "required": [*required, "evidence"]}


def _build_property(field_spec: Field) -> Mapping[str, Any]:
    hint = _CONTENT_HINT if field_spec.name == "content" else ""
    schema = {"type": str(field_spec.type), "description": f"{field_spec.description}{hint}"}
    return schema | ({"enum": list(field_spec.enum)} if field_spec.enum else {})


# Session


@dataclass(slots=True)
class _ToolSession:
    """The state of one extraction loop."""

    inputs: ExtractionInput
    memory_reader: MemoryReader
    kinds_by_tool: Mapping[str, Kind]
    speaker: str
    reader: SentenceReader
    known_texts: set[str]
    proposals: list[ClaimProposal] = field(default_factory=list)
    rejected: list[RejectedClaim] = field(default_factory=list)
    is_done: bool = False

    def call_tool(self, tool_call: ToolCall) -> Flow[str]:
        """Run a tool call and return its output."""
        arguments = tool_call.arguments if isinstance(tool_call.arguments, Mapping) else {}
        if tool_call.name == DONE_TOOL:
            self.is_done = True
            return "Done."
        if tool_call.name in READ_TOOLS:
            return (yield from self._read_memories(tool_call.name, arguments))
        if tool_call.name in self.kinds_by_tool:
            return self._write_memory(self.kinds_by_tool[tool_call.name], arguments)
        self.rejected.append(RejectedClaim("no such tool", format_item(tool_call.name)))
        return f"There is no tool {format_item(tool_call.name)}."

    def _read_memories(self, name: str, arguments: Mapping[str, Any]) -> Flow[str]:
        memory_id = to_line(get_first(arguments, "id", "uri", "memory_id"), 300) or ""
        if name == "list":
            kind = to_line(get_first(arguments, "kind", "uri", "type"), 100) or ""
            facts = yield from self.memory_reader.list_memories(kind)
            self.known_texts |= {normalise_text(fact.text) for fact in facts}
            return "\n".join(_format_fact(fact, 300) for fact in facts) or "None."
        if name == "read":
            fact = yield from self.memory_reader.read_memory(memory_id)
            self.known_texts |= {normalise_text(fact.text)} if fact is not None else set()
            return NO_SUCH_MEMORY if fact is None else _format_fact(fact, 4_000)
        if name == "relations":
            links = yield from self.memory_reader.list_links(memory_id)
            return "\n".join(map(_format_link, links)) or "None."
        access = yield from self.memory_reader.get_access_stats(memory_id)
        return NO_SUCH_MEMORY if access is None else _format_access(access)

    def _write_memory(self, kind: Kind, arguments: Mapping[str, Any]) -> str:
        """Record a memory written by the model, or return what is wrong with it."""
        values = {
            field_spec.name: _coerce_value(
                field_spec, get_first(arguments, field_spec.name.casefold())
            )
            for field_spec in kind.fields
        }
        missing = [
            field_spec.name
            for field_spec in kind.fields
            if field_spec.required and values[field_spec.name] is None
        ]
        text = next(
            (str(values[name]) for name in _TEXT_FIELDS if values.get(name) is not None), None
        )
        if text is None or missing:
            problem = f"missing or of the wrong type: {', '.join(missing) or 'content'}"
            self.rejected.append(
                RejectedClaim(problem, f"{kind.name} {format_item(dict(arguments))}")
            )
            return f"Not written: {problem}."
        quote = to_line(get_first(arguments, "evidence", "evidence_quote")) or ""
        claims = _build_claims(kind, text, values, arguments, self.speaker, self.reader)
        fresh = [
            claim
            for claim in claims
            if claim.polarity == NEGATED or normalise_text(claim.text) not in self.known_texts
        ]
        self.rejected += [
            RejectedClaim(ALREADY_KNOWN, claim.text) for claim in claims if claim not in fresh
        ]
        self.known_texts |= {normalise_text(claim.text) for claim in fresh}
        self.proposals += [ClaimProposal(claim, quote) for claim in fresh]
        return "Written down." if fresh else "Not written: it is already held."


def _build_claims(
    kind: Kind,
    text: str,
    values: Mapping[str, Any],
    arguments: Mapping[str, Any],
    speaker: str,
    reader: SentenceReader,
) -> list[Claim]:
    """Build the claims of a written memory: one per document, or per sentence of a profile."""
    is_negated = str(get_first(arguments, "polarity")).strip().casefold() == NEGATED
    confidence = parse_confidence(get_first(arguments, "confidence"))
    if kind.key == VALUE:
        concept_value = ConceptValue(kind.name, text, NEGATED if is_negated else ASSERTED, "")
        return [replace(build_claim(concept_value, kind, speaker, reader), confidence=confidence)]
    parts = (
        split_sentences(text)
        if kind.write is WriteMode.MERGE
        else [text if kind.is_keyed else " ".join(text.split())]
    )
    excluded = _NON_META_FIELDS if len(parts) == 1 else _NON_META_FIELDS | _SUMMARY_FIELDS
    meta = {
        name: value for name, value in values.items() if value is not None and name not in excluded
    }
    claims = [
        claim_from_sentence(part, read_nothing if kind.is_keyed else reader) for part in parts
    ]
    return [
        replace(
            claim,
            kind=kind.name,
            subject=speaker
            if claim.subject is None and kind.write is WriteMode.MERGE
            else claim.subject,
            polarity=NEGATED if is_negated else claim.polarity,
            confidence=confidence,
            meta={**claim.meta, **meta},
        )
        for claim in claims
    ]


def _coerce_value(field_spec: Field, raw: Any) -> Any:
    """Convert a raw value to the field's type, or return None."""
    if raw is None:
        return None
    match str(field_spec.type):
        case "string":
            value: Any = _coerce_text(raw)
        case "boolean":
            value = parse_flag(raw)
        case field_type:
            value = _coerce_number(raw, is_integer=field_type == "integer")
    return value if not field_spec.enum or value in field_spec.enum else None


def _coerce_text(raw: Any) -> str | None:
    """Return a multi-line text, or the items of a list joined by newlines."""
    parts = raw if isinstance(raw, list) else raw.splitlines() if isinstance(raw, str) else [raw]
    text = "\n".join(filter(None, (to_line(part, CONTENT_LIMIT) for part in parts[:CONTENT_LIMIT])))
    return text if text and len(text) <= CONTENT_LIMIT else None


def _coerce_number(raw: Any, *, is_integer: bool) -> int | float | None:
    try:
        number = (
            float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else nan
        )
        return None if not isfinite(number) else int(number) if is_integer else number
    except (ValueError, OverflowError):
        return None


def _format_fact(fact: Fact, width: int) -> str:
    row = {
        "id": fact.id,
        "kind": fact.kind,
        "memory": make_snippet(fact.text, width),
        "since": format_iso(fact.updated_at)[:10],
    }
    return json.dumps(row, ensure_ascii=False)


def _format_link(link: Link) -> str:
    return json.dumps(
        {"from": link.src, "relation": link.rel, "to": link.dst, "weight": link.weight}
    )


def _format_access(access: AccessCount) -> str:
    return json.dumps(
        {"recalls": access.count, "last": format_iso(access.last) if access.count else None}
    )


# Extractor


@dataclass(frozen=True, slots=True)
class ReactExtractor:
    """An extractor whose model may read memories before it writes, in a few rounds."""

    llm: ToolLLM
    memory_reader: Callable[[Scope], MemoryReader] | None = None
    rounds: int = MAX_ROUNDS
    reader: SentenceReader = read_nothing
    options: GroundingOptions = field(default_factory=GroundingOptions)

    @property
    def name(self) -> str:
        """Return `react:` and the model name."""
        return f"react:{self.llm.model}"

    @property
    def local(self) -> bool:
        """Return False: this extractor calls a model."""
        return False

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return the new claims of the turns, possibly none."""
        kinds = list_extractable_kinds(inputs.ontology)
        if not kinds or not any(map(is_fact_source, inputs.turns)):
            return ExtractionResult()
        memory_reader = (
            self.memory_reader(inputs.scope)
            if self.memory_reader is not None
            else StaticMemoryReader(inputs.nearby_facts)
        )
        known_texts = {normalise_text(fact.text) for fact in inputs.nearby_facts}
        kinds_by_tool = {get_tool_name(kind): kind for kind in kinds}
        session = _ToolSession(
            inputs, memory_reader, kinds_by_tool, get_speaker_name(inputs), self.reader, known_texts
        )
        usage, parsed = yield from self._run_rounds(session, build_tools(kinds))
        validated = validate_proposals(
            inputs, GroundingIndex(inputs.turns), session.proposals, self.options
        )
        return build_result(
            validated, parsed + ParsedReply(rejected=tuple(session.rejected)), usage
        )

    def _run_rounds(
        self, session: _ToolSession, tools: list[Tool]
    ) -> Flow[tuple[Usage, ParsedReply]]:
        """Let the model call tools until it is done or its rounds are used up."""
        inputs, usage = session.inputs, Usage()
        known = fence_as_data("held", format_memories(inputs.nearby_facts))
        question = f"{render_conversation(inputs)}\n\nAlready held:\n{known}"
        lines = [ChatLine("user", question)]
        for number in range(self.rounds):
            reply = yield from ask_llm_with_tools(
                self.llm, inputs.prompt or load_prompt("react"), lines, tools
            )
            usage += get_reply_usage(reply)
            calls = reply.calls or _parse_written_calls(reply)
            if not calls:
                return usage, ParsedReply() if number or _is_nothing_new(
                    reply.text
                ) else ParsedReply(unreadable_replies=(reply.text[:REPLY_LIMIT],))
            lines.append(ChatLine("assistant", reply.text[:REPLY_LIMIT], calls))
            for index, tool_call in enumerate(calls):
                result = (
                    (yield from session.call_tool(tool_call))
                    if index < MAX_CALLS
                    else "Not done: too many tools in one step."
                )
                lines.append(ChatLine("tool", result, call_id=tool_call.id))
            if session.is_done:
                return usage, ParsedReply()
        return usage, ParsedReply(warnings=(f"{self.name} was stopped after {self.rounds} steps.",))


def _is_nothing_new(text: str) -> bool:
    """Return True if a model's text says that nothing is new."""
    stripped = text.strip()
    return stripped in ("[]", "{}") or (
        len(stripped) <= SHORT_REPLY_LIMIT and _NOTHING_NEW.search(stripped) is not None
    )


def _parse_written_calls(reply: ToolReply) -> tuple[ToolCall, ...]:
    """Return the tool calls that a model wrote as text."""
    if "{" not in reply.text:
        return ()
    parsed_items = parse_items(
        reply.text,
        ("calls", "tool_calls"),
        item_keys=("name", "tool"),
        max_items=MAX_CALLS,
        label="",
    ).items
    items = [item for item in parsed_items if isinstance(item, Mapping)]
    calls = [
        (
            to_line(get_first(item, "name", "tool")),
            get_first(item, "arguments", "parameters", "input"),
        )
        for item in items
    ]
    return tuple(
        ToolCall(f"text-{number}", name, arguments if isinstance(arguments, Mapping) else {})
        for number, (name, arguments) in enumerate(calls)
        if name is not None
        and (name in (*READ_TOOLS, DONE_TOOL) or name.startswith(WRITE_TOOL_PREFIX))
    )
