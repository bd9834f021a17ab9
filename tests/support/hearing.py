"""Short inputs for extractors, and models that answer from a script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from told.flow import run
from told.ingest.messages import InputTurn
from told.ingest.types import ExtractionInput, ExtractionResult, Extractor
from told.model.entry import Evidence
from told.model.scope import Scope
from told.ports import ChatLine, Tool, ToolCall, ToolReply, Usage
from told.testing.fakes import DEFAULT_START, ScriptedLLM
from told.text.dates import ALWAYS, Interval, parse_instant


def turn(
    content: str, role: str = "user", name: str | None = None, at: str | None = None
) -> InputTurn:
    said_at = None if at is None else parse_instant(at)
    valid = ALWAYS if said_at is None else Interval(said_at, None, "day")
    return InputTurn(Evidence(content, role, name, said_at), {}, valid)


def heard(*turns: str | InputTurn, **more: Any) -> ExtractionInput:
    """Build an extraction input on a Monday; plain texts are turns of the user."""
    said = tuple(one if isinstance(one, InputTurn) else turn(one) for one in turns)
    return ExtractionInput(said, DEFAULT_START, Scope(user_id="ines"), **more)


def assistant(content: str) -> InputTurn:
    return turn(content, "assistant")


def extract(extractor: Extractor, what: ExtractionInput) -> ExtractionResult:
    return run(extractor.extract(what))


def texts(found: ExtractionResult) -> list[str]:
    return [one.claim.text for one in found.claims]


def quotes(found: ExtractionResult, what: ExtractionInput) -> list[str]:
    """Return the quoted span of every claim."""
    spans = [(what.turns[one.turn].evidence.content, one.claim.span) for one in found.claims]
    return ["" if span is None else content[slice(*span)] for content, span in spans]


class Plain:
    """A model without tools."""

    model = "plain"

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        return self.replies.pop(0)


class ToolScript(ScriptedLLM):
    """A model that makes the scripted tool calls, step by step, and keeps the conversation."""

    def __init__(self, steps: Iterable[str | Exception | Sequence[ToolCall]]) -> None:
        super().__init__(())
        self.steps = list(steps)
        self.lines: list[tuple[ChatLine, ...]] = []
        self.offered: list[list[Tool]] = []
        self.systems: list[str] = []

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        self.lines.append(tuple(lines))
        self.offered.append(list(tools))
        self.systems.append(system)
        step = self.steps[len(self.lines) - 1]
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            return ToolReply(step, (), Usage(1, 10, 1))
        return ToolReply("", tuple(step), Usage(1, 10, 1))


def wish(name: str, /, **arguments: Any) -> ToolCall:
    """Build one tool call."""
    return ToolCall(f"call-{name}", name, arguments)
