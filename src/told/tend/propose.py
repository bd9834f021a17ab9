"""Reflection with a model: it proposes operations, and what it proposes is checked before anything is done.

Memories are shown as data between two marks, by short numbers, and only a number that was shown counts. A claim is made
of the words of the memories it names, its names and figures exactly. A model closes, weakens, hides and supersedes
nothing that is trusted more than a guess, and lets no erasure reach farther than it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.core.alike import names
from told.core.belief import CONTRADICTS, SUPERSEDES
from told.core.errors import InvalidInput
from told.core.fact import Fact
from told.core.text import loads_forgiving, shown
from told.core.trust import Trust, may_touch, source_of, trust_of
from told.core.when import iso
from told.flow import Flow
from told.ports import LLM, Usage
from told.tend import delta
from told.tend.apply import Hand, objection
from told.tend.delta import (
    IDS,
    REBUTS,
    AddArgument,
    AddIdentityEdge,
    AssertClaim,
    AssertFrame,
    Clock,
    LinkDerivedArtifact,
    Operation,
    Refused,
    ScheduleReview,
    UpdateConfidence,
)
from told.tend.reflect import AUTHOR, DAY
from told.write.curate.model import grounded
from told.write.extract.brief import asked, fenced, page

SUREST: Final = 0.9
"""The surest a model is about who is who: what is near in meaning is often only related."""

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object", "required": ["operations"],
    "properties": {"operations": {"type": "array", "items": {
        "type": "object", "required": ["op"],
        "properties": {"op": {"type": "string", "enum": list(delta.OPERATIONS)}},
    }}},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a model proposes that stands up, what does not, and its whole answer where that cannot be read."""

    operations: tuple[Operation, ...] = ()
    refused: tuple[Refused, ...] = ()
    garbled: str = ""
    usage: Usage = field(default_factory=Usage)


def propose(llm: LLM, facts: Sequence[Fact], now: int, zone: str | None = None) -> Flow[Proposed]:
    """Ask a model what follows from some memories; one that is down is an `LLMError`."""
    reply, usage = yield from asked(llm, page("reflect"), question(facts), SCHEMA)
    hand = Hand(f"{AUTHOR}:{llm.model}", Trust.INFERENCE)
    return replace(checked(str(reply), facts, hand, Clock(now, zone)), usage=usage)


def question(facts: Sequence[Fact]) -> str:
    """The memories as data, each on a line with its number, its day and who said it."""
    return fenced("memories", (
        f"{number}. [{iso(fact.updated_at)[:10]}] [{source_of(fact).label}] {' '.join(fact.text.split())}"
        for number, fact in enumerate(facts, 1)
    ))  # fmt: skip


def checked(reply: str, facts: Sequence[Fact], hand: Hand, clock: Clock) -> Proposed:
    """What of an answer may be done; each operation is judged by itself."""
    try:
        said = loads_forgiving(reply)
        items = delta.items(said)
    except InvalidInput:
        return Proposed(garbled=reply)
    read = delta.read([_named(item, facts) for item in items], clock)
    if read.refused and not read.operations and not any(isinstance(item, Mapping) and "op" in item for item in items):
        return Proposed(refused=read.refused, garbled=reply)
    known = {fact.id: fact for fact in facts}
    kept: list[Operation] = []
    refused = list(read.refused)
    for number, operation in read.operations.items():
        if reason := _objection(operation, known, hand):
            refused.append(Refused(number, delta.name_of(operation), reason))
        else:
            kept.append(_tempered(operation, known, hand, clock.now))
    return Proposed(tuple(kept), tuple(refused))


def _named(item: Any, facts: Sequence[Fact]) -> Any:
    """An operation with the ids of memories in the place of their numbers."""
    if not isinstance(item, Mapping):
        return item
    return {name: _ids(value, facts) if name in IDS else value for name, value in item.items()}


def _ids(value: Any, facts: Sequence[Fact]) -> Any:
    if isinstance(value, list):
        return [_ids(each, facts) for each in value]
    digits = str(value).strip().lstrip("#")
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else 0
    return facts[number - 1].id if 0 < number <= len(facts) else f"the memory {shown(value)}, which was not shown"


def _objection(operation: Operation, facts: Mapping[str, Fact], hand: Hand) -> str:
    """Why a proposal is not done, or nothing."""
    unseen = [thread for thread in delta.touched(operation) if thread not in facts]
    if unseen:
        return f"it names {unseen[0]}"
    match operation:
        case UpdateConfidence(lane=lane) if lane != "machine":
            return f"a model does not speak for the {lane} lane"
        case AddArgument(rel=rel, dst=dst) if rel == SUPERSEDES and not may_touch(hand.trust, trust_of(facts[dst])):
            return "a model supersedes nothing that is trusted more than a guess"
        case LinkDerivedArtifact(artifact=artifact) if not facts[artifact].author.startswith(AUTHOR):
            return "only what reflection made can be said to be made of another"
        case AssertClaim(text=text, sources=sources, subject=subject, object=value):
            told = " ".join(each for each in (text, subject, value) if each)
            return _ungrounded(told, sources, facts) or objection(operation, facts, hand)
        case AssertFrame(text=text, sources=sources, roles=roles):
            return _ungrounded(" ".join((text, *roles.values())), sources, facts) or objection(operation, facts, hand)
        case _:
            return objection(operation, facts, hand)


def _ungrounded(text: str, sources: Sequence[str], facts: Mapping[str, Fact]) -> str:
    """Why a text is not made of the words of its sources, or nothing."""
    said = [f"{facts[source].text} {facts[source].subject or ''}" for source in sources]
    if not said:
        return "it names no source"
    own = names(f". {text}") - frozenset().union(*(names(f". {each}") for each in said))
    return "" if grounded(text, *said) and not own else "its words are not those of its sources"


def _tempered(operation: Operation, facts: Mapping[str, Fact], hand: Hand, now: int) -> Operation:
    """A proposal no surer and no more urgent than a model may be.

    What a read takes for a contradiction hides one of its sides, so of what is trusted more a model only rebuts.
    """
    match operation:
        case ScheduleReview(due=due):
            return replace(operation, due=max(due or 0, now + DAY))
        case AddIdentityEdge(confidence=confidence):
            return replace(operation, confidence=min(confidence, SUREST), method="model")
        case AddArgument(src=src, rel=rel, dst=dst) if rel == CONTRADICTS:
            worth = max(trust_of(facts[src]), trust_of(facts[dst]))
            return operation if may_touch(hand.trust, worth) else replace(operation, rel=REBUTS)
        case _:
            return operation
