"""Extraction in steps: a model looks at what is held, then writes down what is new, by a tool for each kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any, Final

from told.core.entry import Claim
from told.core.fact import Fact, Link
from told.core.kind import Field, Kind, Write
from told.core.lazy import regex
from told.core.query import Touch
from told.core.scope import Scope
from told.core.text import normalise, sentences, snippet
from told.core.when import iso
from told.flow import Flow
from told.ports import Line, Tool, ToolCall, ToolLLM, ToolReply, Usage
from told.write.extract.brief import conversation, cost, fenced, known, page, spoken, used
from told.write.extract.closed import VALUE, Filled, claim_of, extractable
from told.write.extract.ground import Ground
from told.write.extract.items import ASSERTED, NEGATED, Proposal, Reader, from_sentence, unread
from told.write.extract.parse import REPLY_LIMIT, Answer, display, first, flag, line, read_items, share
from told.write.extract.settle import Rules, extracted, settle, speaker_of
from told.write.extract.shelf import KnownShelf, Shelf
from told.write.shape import Dropped, Extracted, Heard

ROUNDS: Final = 6
CALLS: Final = 50
"""How many tools a model may use in one step."""
CONTENT: Final = 20_000
BRIEFLY: Final = 80
EXTRACT: Final = "extract_"
DONE: Final = "done"
LOOKING: Final = ("read", "list", "relations", "access_stats")
KNOWN: Final = "already known"
NOWHERE: Final = "There is no memory with that id here."
_TEXTS: Final = ("content", "abstract", VALUE, "steps", "overview")
_APART: Final = frozenset(("confidence", "evidence", "evidence_quote", "polarity", "content"))
_OF_ALL: Final = frozenset(("abstract", "overview"))
"""Fields that speak of all sentences of a memory, and so of none of them."""
_NOTHING: Final = regex(r"\b(?:nothing|no new|none|done|no (?:\w+ )?(?:facts|memories))\b", re.IGNORECASE)
_FRESH: Final = " Only what this conversation says of it; what is held already is added by itself."
_UNFIT: Final = regex(r"[^a-zA-Z0-9_-]")

_ID: Final = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
_LOOK: Final = (
    Tool("read", "Show one memory, whole.", _ID),
    Tool("list", "Show the memories of a kind, or of all kinds.",
         {"type": "object", "properties": {"kind": {"type": "string", "description": "A kind; empty for all."}}}),
    Tool("relations", "Show what a memory is linked to.", _ID),
    Tool("access_stats", "Show how often a memory was recalled, and when last.", _ID),
    Tool(DONE, "End the work: everything new is written down, or nothing is new.",
         {"type": "object", "properties": {"why": {"type": "string"}}}),
)  # fmt: skip


# Tools ----------------------------------------------------------------------------------------------------------------


def tool_name(kind: Kind) -> str:
    """The name of the tool that writes a memory of a kind."""
    return EXTRACT + _UNFIT.sub("_", kind.name)[:48]


def tools_for(kinds: Sequence[Kind]) -> list[Tool]:
    """The tools for looking, and one for writing each kind."""
    return [*_LOOK, *(Tool(tool_name(kind), _about(kind), _parameters(kind)) for kind in kinds)]


def _about(kind: Kind) -> str:
    said = "".join(f' Such as: "{example}"' for example in kind.examples[:2])
    return f"Write down a memory of the kind {kind.name}: {' '.join(kind.description.split())}{said}"[:1000]


def _parameters(kind: Kind) -> Mapping[str, Any]:
    properties = {one.name: _property(one) for one in kind.fields}
    properties |= {
        "evidence": {"type": "string", "description": "The words that say so, copied from the conversation."},
        "polarity": {"type": "string", "enum": [ASSERTED, NEGATED], "description": "negated if it no longer holds."},
    }
    required = [one.name for one in kind.fields if one.required]
    return {"type": "object", "properties": properties, "required": [*required, "evidence"]}


def _property(one: Field) -> Mapping[str, Any]:
    described = {"type": str(one.type), "description": f"{one.description}{_FRESH if one.name == 'content' else ''}"}
    return described | ({"enum": list(one.enum)} if one.enum else {})


# The work -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Work:
    """How far the work has come."""

    heard: Heard
    shelf: Shelf
    kinds: Mapping[str, Kind]
    speaker: str
    reader: Reader
    held: set[str]
    proposals: list[Proposal] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    done: bool = False

    def use(self, wish: ToolCall) -> Flow[str]:
        """What a tool answers."""
        given = wish.arguments if isinstance(wish.arguments, Mapping) else {}
        if wish.name == DONE:
            self.done = True
            return "Done."
        if wish.name in LOOKING:
            return (yield from self._look(wish.name, given))
        if wish.name in self.kinds:
            return self._write(self.kinds[wish.name], given)
        self.dropped.append(Dropped("no such tool", display(wish.name)))
        return f"There is no tool {display(wish.name)}."

    def _look(self, name: str, given: Mapping[str, Any]) -> Flow[str]:
        which = line(first(given, "id", "uri", "memory_id"), 300) or ""
        if name == "list":
            kind = line(first(given, "kind", "uri", "type"), 100) or ""
            facts = yield from self.shelf.list(kind)
            self.held |= {normalise(fact.text) for fact in facts}
            return "\n".join(_shown(fact, 300) for fact in facts) or "None."
        if name == "read":
            fact = yield from self.shelf.read(which)
            self.held |= {normalise(fact.text)} if fact is not None else set()
            return NOWHERE if fact is None else _shown(fact, 4_000)
        if name == "relations":
            links = yield from self.shelf.relations(which)
            return "\n".join(map(_linked, links)) or "None."
        touch = yield from self.shelf.access_stats(which)
        return NOWHERE if touch is None else _touched(touch)

    def _write(self, kind: Kind, given: Mapping[str, Any]) -> str:
        """Take a memory the model wants to write down, or say what is wrong with it."""
        values = {one.name: _value(one, first(given, one.name.casefold())) for one in kind.fields}
        missing = [one.name for one in kind.fields if one.required and values[one.name] is None]
        text = next((str(values[name]) for name in _TEXTS if values.get(name) is not None), None)
        if text is None or missing:
            wrong = f"missing or of the wrong type: {', '.join(missing) or 'content'}"
            self.dropped.append(Dropped(wrong, f"{kind.name} {display(dict(given))}"))
            return f"Not written: {wrong}."
        quote = line(first(given, "evidence", "evidence_quote")) or ""
        claims = _claims(kind, text, values, given, self.speaker, self.reader)
        fresh = [claim for claim in claims if claim.polarity == NEGATED or normalise(claim.text) not in self.held]
        self.dropped += [Dropped(KNOWN, claim.text) for claim in claims if claim not in fresh]
        self.held |= {normalise(claim.text) for claim in fresh}
        self.proposals += [Proposal(claim, quote) for claim in fresh]
        return "Written down." if fresh else "Not written: it is already held."


def _claims(
    kind: Kind, text: str, values: Mapping[str, Any], given: Mapping[str, Any], speaker: str, reader: Reader
) -> list[Claim]:
    """What a memory of a kind claims: a document with a key is one, a profile as much as it has sentences."""
    negated = str(first(given, "polarity")).strip().casefold() == NEGATED
    confidence = share(first(given, "confidence"))
    if kind.key == VALUE:
        form = Filled(kind.name, text, NEGATED if negated else ASSERTED, "")
        return [replace(claim_of(form, kind, speaker, reader), confidence=confidence)]
    parts = sentences(text) if kind.write is Write.MERGE else [text if kind.keyed else " ".join(text.split())]
    beside = _APART if len(parts) == 1 else _APART | _OF_ALL
    meta = {name: value for name, value in values.items() if value is not None and name not in beside}
    claims = [from_sentence(part, unread if kind.keyed else reader) for part in parts]
    return [
        replace(
            said, kind=kind.name,
            subject=speaker if said.subject is None and kind.write is Write.MERGE else said.subject,
            polarity=NEGATED if negated else said.polarity, confidence=confidence, meta={**said.meta, **meta},
        )
        for said in claims
    ]  # fmt: skip


def _value(one: Field, given: Any) -> Any:
    """A field's value, if it is one; numerals and words for yes and no are understood."""
    if given is None:
        return None
    match str(one.type):
        case "string":
            value: Any = _lines(given)
        case "boolean":
            value = flag(given)
        case sort:
            value = _numeral(given, whole=sort == "integer")
    return value if not one.enum or value in one.enum else None


def _lines(given: Any) -> str | None:
    """A text with its lines, such as the steps of a skill, or a list as one."""
    parts = given if isinstance(given, list) else given.splitlines() if isinstance(given, str) else [given]
    text = "\n".join(filter(None, (line(part, CONTENT) for part in parts[:CONTENT])))
    return text if text and len(text) <= CONTENT else None


def _numeral(given: Any, *, whole: bool) -> int | float | None:
    try:
        number = float(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else nan
        return None if not isfinite(number) else int(number) if whole else number
    except (ValueError, OverflowError):
        return None


def _shown(fact: Fact, width: int) -> str:
    row = {"id": fact.id, "kind": fact.kind, "memory": snippet(fact.text, width), "since": iso(fact.updated_at)[:10]}
    return json.dumps(row, ensure_ascii=False)


def _linked(link: Link) -> str:
    return json.dumps({"from": link.src, "relation": link.rel, "to": link.dst, "weight": link.weight})


def _touched(touch: Touch) -> str:
    return json.dumps({"recalls": touch.count, "last": iso(touch.last) if touch.count else None})


# The extractor --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReactExtractor:
    """Lets a model look at what is held before it writes, for a bounded number of steps."""

    llm: ToolLLM
    shelf: Callable[[Scope], Shelf] | None = None
    rounds: int = ROUNDS
    reader: Reader = unread
    rules: Rules = field(default_factory=Rules)

    @property
    def name(self) -> str:
        """`react:` and the model."""
        return f"react:{self.llm.model}"

    @property
    def local(self) -> bool:
        """No: a model is asked."""
        return False

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """What is new in what was heard; nothing new is a good outcome."""
        kinds = extractable(heard.ontology)
        if not kinds or not any(map(spoken, heard.turns)):
            return Extracted()
        shelf = self.shelf(heard.scope) if self.shelf is not None else KnownShelf(heard.known)
        held = {normalise(fact.text) for fact in heard.known}
        named = {tool_name(kind): kind for kind in kinds}
        work = _Work(heard, shelf, named, speaker_of(heard), self.reader, held)
        usage, answer = yield from self._steps(work, tools_for(kinds))
        settled = settle(heard, Ground(heard.turns), work.proposals, self.rules)
        return extracted(settled, answer + Answer(dropped=tuple(work.dropped)), usage)

    def _steps(self, work: _Work, tools: list[Tool]) -> Flow[tuple[Usage, Answer]]:
        heard, usage = work.heard, Usage()
        lines = [Line("user", f"{conversation(heard)}\n\nAlready held:\n{fenced('held', known(heard.known))}")]
        for number in range(self.rounds):
            reply = yield from used(self.llm, heard.prompt or page("react"), lines, tools)
            usage += cost(reply)
            calls = reply.calls or _written(reply)
            if not calls:
                return usage, Answer() if number or _nothing(reply.text) else Answer(faults=(reply.text[:REPLY_LIMIT],))
            lines.append(Line("assistant", reply.text[:REPLY_LIMIT], calls))
            for place, wish in enumerate(calls):
                said = (yield from work.use(wish)) if place < CALLS else "Not done: too many tools in one step."
                lines.append(Line("tool", said, call_id=wish.id))
            if work.done:
                return usage, Answer()
        return usage, Answer(warnings=(f"{self.name} was stopped after {self.rounds} steps.",))


def _nothing(text: str) -> bool:
    """Whether a model says in words that nothing is new."""
    said = text.strip()
    return said in ("[]", "{}") or (len(said) <= BRIEFLY and _NOTHING.search(said) is not None)


def _written(reply: ToolReply) -> tuple[ToolCall, ...]:
    """Calls a model wrote down as text instead of making them."""
    if "{" not in reply.text:
        return ()
    found = read_items(reply.text, ("calls", "tool_calls"), marks=("name", "tool"), most=CALLS, who="").items
    items = [item for item in found if isinstance(item, Mapping)]
    named = [(line(first(item, "name", "tool")), first(item, "arguments", "parameters", "input")) for item in items]
    return tuple(
        ToolCall(f"text-{number}", name, arguments if isinstance(arguments, Mapping) else {})
        for number, (name, arguments) in enumerate(named)
        if name is not None and (name in (*LOOKING, DONE) or name.startswith(EXTRACT))
    )
