"""Reflection with a model: it proposes operations, and what it proposes is checked before anything is done.

Memories are shown as data between two marks, by short numbers, and only a number that was shown counts. A claim is made
of the words of the memories it names, its names and figures exactly. A model closes, weakens, hides and supersedes
nothing that is trusted more than a guess, and lets no erasure reach farther than it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.core.alike import extract_names
from told.core.belief import CONTRADICTS, SUPERSEDES
from told.core.errors import InvalidInput
from told.core.fact import Fact
from told.core.text import format_value, parse_lenient_json
from told.core.trust import Trust, may_replace, trust_of_claim, trust_of_source
from told.core.when import format_iso
from told.flow import Flow
from told.ports import LLM, Usage
from told.tend import delta
from told.tend.apply import DeltaAuthor, find_objection
from told.tend.delta import (
    ID_FIELDS,
    REBUTS,
    AddArgument,
    AddIdentityEdge,
    AssertClaim,
    AssertFrame,
    DeltaClock,
    LinkDerivedArtifact,
    Operation,
    RefusedOperation,
    ScheduleReview,
    UpdateConfidence,
)
from told.tend.reflect import AUTHOR, DAY_US
from told.write.curate.model import is_grounded
from told.write.extract.brief import ask_llm, fence_as_data, load_prompt

MAX_IDENTITY_CONFIDENCE: Final = 0.9
"""The surest a model is about who is who: what is near in meaning is often only related."""

PROPOSAL_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object", "required": ["operations"],
    "properties": {"operations": {"type": "array", "items": {
        "type": "object", "required": ["op"],
        "properties": {"op": {"type": "string", "enum": list(delta.OPERATIONS)}},
    }}},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReflectionProposal:
    """What a model proposes that stands up, what does not, and its whole answer where that cannot be read."""

    operations: tuple[Operation, ...] = ()
    refused: tuple[RefusedOperation, ...] = ()
    unreadable_reply: str = ""
    usage: Usage = field(default_factory=Usage)


def propose_operations(
    llm: LLM, facts: Sequence[Fact], now: int, zone: str | None = None
) -> Flow[ReflectionProposal]:
    """Ask a model what follows from some memories; one that is down is an `LLMError`."""
    reply, usage = yield from ask_llm(
        llm, load_prompt("reflect"), format_memories(facts), PROPOSAL_SCHEMA
    )
    author = DeltaAuthor(f"{AUTHOR}:{llm.model}", Trust.INFERENCE)
    return replace(check_proposal(str(reply), facts, author, DeltaClock(now, zone)), usage=usage)


def format_memories(facts: Sequence[Fact]) -> str:
    """The memories as data, each on a line with its number, its day and who said it."""
    return fence_as_data(
        "memories",
        (
            f"{number}. [{format_iso(fact.updated_at)[:10]}] [{trust_of_source(fact).label}] {' '.join(fact.text.split())}"
            for number, fact in enumerate(facts, 1)
        ),
    )


def check_proposal(
    reply: str, facts: Sequence[Fact], author: DeltaAuthor, clock: DeltaClock
) -> ReflectionProposal:
    """What of an answer may be done; each operation is judged by itself."""
    try:
        data = parse_lenient_json(reply)
        items = delta.split_operations(data)
    except InvalidInput:
        return ReflectionProposal(unreadable_reply=reply)
    parsed = delta.parse_delta([_resolve_numbers(item, facts) for item in items], clock)
    if (
        parsed.refused
        and not parsed.operations
        and not any(isinstance(item, Mapping) and "op" in item for item in items)
    ):
        return ReflectionProposal(refused=parsed.refused, unreadable_reply=reply)
    facts_by_id = {fact.id: fact for fact in facts}
    accepted: list[Operation] = []
    refused = list(parsed.refused)
    for number, operation in parsed.operations.items():
        if reason := _find_proposal_objection(operation, facts_by_id, author):
            refused.append(RefusedOperation(number, delta.get_operation_name(operation), reason))
        else:
            accepted.append(_limit_operation(operation, facts_by_id, author, clock.now))
    return ReflectionProposal(tuple(accepted), tuple(refused))


def _resolve_numbers(item: Any, facts: Sequence[Fact]) -> Any:
    """An operation with the ids of memories in the place of their numbers."""
    if not isinstance(item, Mapping):
        return item
    return {
        name: _resolve_ids(value, facts) if name in ID_FIELDS else value
        for name, value in item.items()
    }


def _resolve_ids(value: Any, facts: Sequence[Fact]) -> Any:
    if isinstance(value, list):
        return [_resolve_ids(item, facts) for item in value]
    digits = str(value).strip().lstrip("#")
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else 0
    return (
        facts[number - 1].id
        if 0 < number <= len(facts)
        else f"the memory {format_value(value)}, which was not shown"
    )


def _find_proposal_objection(
    operation: Operation, facts: Mapping[str, Fact], author: DeltaAuthor
) -> str:
    """Why a proposal is not done, or nothing."""
    unknown = [thread for thread in delta.list_memory_ids(operation) if thread not in facts]
    if unknown:
        return f"it names {unknown[0]}"
    match operation:
        case UpdateConfidence(lane=lane) if lane != "machine":
            return f"a model does not speak for the {lane} lane"
        case AddArgument(rel=rel, dst=dst) if rel == SUPERSEDES and not may_replace(
            author.trust, trust_of_claim(facts[dst])
        ):
            return "a model supersedes nothing that is trusted more than a guess"
        case LinkDerivedArtifact(artifact=artifact) if not facts[artifact].author.startswith(
            AUTHOR
        ):
            return "only what reflection made can be said to be made of another"
        case AssertClaim(text=text, sources=sources, subject=subject, object=value):
            claim_text = " ".join(part for part in (text, subject, value) if part)
            return _find_grounding_error(claim_text, sources, facts) or find_objection(
                operation, facts, author
            )
        case AssertFrame(text=text, sources=sources, roles=roles):
            return _find_grounding_error(
                " ".join((text, *roles.values())), sources, facts
            ) or find_objection(operation, facts, author)
        case _:
            return find_objection(operation, facts, author)


def _find_grounding_error(text: str, sources: Sequence[str], facts: Mapping[str, Fact]) -> str:
    """Why a text is not made of the words of its sources, or nothing."""
    source_texts = [f"{facts[source].text} {facts[source].subject or ''}" for source in sources]
    if not source_texts:
        return "it names no source"
    new_names = extract_names(f". {text}") - frozenset().union(
        *(extract_names(f". {source_text}") for source_text in source_texts)
    )
    return (
        ""
        if is_grounded(text, *source_texts) and not new_names
        else "its words are not those of its sources"
    )


def _limit_operation(
    operation: Operation, facts: Mapping[str, Fact], author: DeltaAuthor, now: int
) -> Operation:
    """A proposal no surer and no more urgent than a model may be.

    What a read takes for a contradiction hides one of its sides, so of what is trusted more a model only rebuts.
    """
    match operation:
        case ScheduleReview(due=due):
            return replace(operation, due=max(due or 0, now + DAY_US))
        case AddIdentityEdge(confidence=confidence):
            return replace(
                operation, confidence=min(confidence, MAX_IDENTITY_CONFIDENCE), method="model"
            )
        case AddArgument(src=src, rel=rel, dst=dst) if rel == CONTRADICTS:
            trust = max(trust_of_claim(facts[src]), trust_of_claim(facts[dst]))
            return operation if may_replace(author.trust, trust) else replace(operation, rel=REBUTS)
        case _:
            return operation
