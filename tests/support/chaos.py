"""A failing language model: it gives one answer to every question, or always fails in one way.

The answers are in `tests/data/chaos.jsonl`. Each has an `id`, a description (`about`), and an
`answer`, or a rule to `generate` one too large to write down. `calls` are the tools it calls if it
is given any. `facts` are what a lenient parser of an array of sentences finds, where that is clear;
without it, a parser must not raise, must lose nothing, and must report what it could not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from told.errors import LLMError
from told.ports import ChatLine, Reply, Tool, ToolCall, ToolReply, Usage

DATA = Path(__file__).parent.parent / "data"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


@dataclass(frozen=True, slots=True)
class Chaos:
    """One failure mode of a model."""

    id: str
    about: str
    answer: str = ""
    calls: tuple[ToolCall, ...] = ()
    facts: tuple[str, ...] | None = None
    fails: Callable[[], Exception] | None = None

    @property
    def raises(self) -> bool:
        """Check whether it raises instead of answering."""
        return self.fails is not None


def _chaos(row: Mapping[str, Any]) -> Chaos:
    calls = [ToolCall(one["id"], one["name"], one["arguments"]) for one in row.get("calls", ())]
    if many := row.get("generate_calls"):
        calls = [ToolCall(f"c{n}", many["name"], {"entities": []}) for n in range(many["times"])]
    facts = row.get("facts")
    text = generated(row["generate"]) if "generate" in row else row["answer"]
    return Chaos(
        row["id"], row["about"], text, tuple(calls), None if facts is None else tuple(facts)
    )


def generated(how: Mapping[str, Any]) -> str:
    """Build a text too large to write down from what it repeats."""
    parts = (how["repeat"].replace("{n}", str(n)) for n in range(how["times"]))
    return f"{how.get('before', '')}{how.get('between', '').join(parts)}{how.get('after', '')}"


def answers() -> tuple[Chaos, ...]:
    """Return every garbage answer."""
    return tuple(map(_chaos, rows(DATA / "chaos.jsonl")))


FAILURES: tuple[Chaos, ...] = tuple(
    Chaos(name, about, fails=fails)
    for name, about, fails in (
        ("fails-timeout", "no answer in time", lambda: TimeoutError("timed out")),
        (
            "fails-reset",
            "the connection breaks off",
            lambda: ConnectionResetError(104, "Connection reset by peer"),
        ),
        (
            "fails-refused",
            "nobody listens",
            lambda: ConnectionRefusedError(111, "Connection refused"),
        ),
        (
            "fails-429",
            "too many requests",
            lambda: LLMError("Too many requests.", status=429, retry_after=0),
        ),
        (
            "fails-500",
            "an error of the provider",
            lambda: LLMError("Internal server error.", status=500),
        ),
        (
            "fails-503",
            "the provider is overloaded",
            lambda: LLMError("Overloaded.", status=503, retry_after=0),
        ),
        ("fails-401", "the key is not accepted", lambda: LLMError("Invalid API key.", status=401)),
        (
            "fails-context",
            "the prompt is too long",
            lambda: LLMError("Context length exceeded.", status=400),
        ),
        ("fails-empty", "an error without a message", lambda: LLMError("")),
    )
)


def everything() -> tuple[Chaos, ...]:
    """Return every garbage answer and every failure."""
    return (*answers(), *FAILURES)


@dataclass(slots=True)
class ChaosLLM:
    """A model that always fails in one way; `asked` counts its calls.

    With `after`, it first gives that many sound answers, like a model that fails half-way.
    """

    chaos: Chaos
    local: bool = True
    model: str = "chaos"
    after: int = 0
    sound: str = "[]"
    asked: int = field(default=0, init=False)

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        """Return its one answer, or raise its failure."""
        return Reply(self._next(), Usage(1, len(system + user) // 4, 1))

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        """Return the same text and its tool calls."""
        text = self._next()
        calls = () if self.asked <= self.after else self.chaos.calls
        return ToolReply(text, calls, Usage(1, len(system) // 4, 1))

    def _next(self) -> str:
        self.asked += 1
        if self.asked <= self.after:
            return self.sound
        if self.chaos.fails is not None:
            raise self.chaos.fails()
        return self.chaos.answer
