"""What an extractor hears, written down quickly, and models that answer by a script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from told.core.entry import Evidence
from told.core.scope import Scope
from told.core.when import ALWAYS, Interval, instant
from told.flow import run
from told.ports import Line, Tool, ToolCall, ToolReply, Usage
from told.testing.fakes import A_MONDAY, ScriptedLLM
from told.write.messages import Turn
from told.write.shape import Extracted, Extractor, Heard


def turn(content: str, role: str = "user", name: str | None = None, at: str | None = None) -> Turn:
    said_at = None if at is None else instant(at)
    valid = ALWAYS if said_at is None else Interval(said_at, None, "day")
    return Turn(Evidence(content, role, name, said_at), {}, valid)


def heard(*turns: str | Turn, **more: Any) -> Heard:
    """Turns of a user, or as they are given, heard on a Monday."""
    said = tuple(one if isinstance(one, Turn) else turn(one) for one in turns)
    return Heard(said, A_MONDAY, Scope(user_id="ines"), **more)


def assistant(content: str) -> Turn:
    return turn(content, "assistant")


def extract(extractor: Extractor, what: Heard) -> Extracted:
    return run(extractor.extract(what))


def texts(found: Extracted) -> list[str]:
    return [one.claim.text for one in found.claims]


def quotes(found: Extracted, what: Heard) -> list[str]:
    """The words every claim points at."""
    spans = [(what.turns[one.turn].evidence.content, one.claim.span) for one in found.claims]
    return ["" if span is None else content[slice(*span)] for content, span in spans]


class Plain:
    """A model that can answer and nothing else."""

    model = "plain"

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        return self.replies.pop(0)


class ToolScript(ScriptedLLM):
    """A model with tools that makes the scripted calls, line by line, and keeps the conversation."""

    def __init__(self, steps: Iterable[str | Exception | Sequence[ToolCall]]) -> None:
        super().__init__(())
        self.steps = list(steps)
        self.lines: list[tuple[Line, ...]] = []
        self.offered: list[list[Tool]] = []
        self.systems: list[str] = []

    def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> ToolReply:
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
    """One call of a tool."""
    return ToolCall(f"call-{name}", name, arguments)
