"""Record what a language model answers, and replay it where there is none: the same answers on every run, offline.

A recording is a file of JSON lines, one for each question, with what was asked and what was answered and nothing of
keys or addresses: it can be read, mended by hand and kept beside the tests.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from told.core.errors import InvalidInput, LLMError
from told.core.fork import freed
from told.core.text import snippet
from told.ports import LLM, Line, Reply, Tool, ToolCall, ToolLLM, ToolReply, Usage, usage_of


class Recorder:
    """A language model whose every answer is also written down; plain or awaitable as the one inside is."""

    def __init__(self, inner: LLM, path: Path | str) -> None:
        self.inner, self.path = inner, Path(path)
        self.model, self.local = inner.model, bool(getattr(inner, "local", True))
        self._lock = freed(threading.Lock())

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """What the model inside answers."""
        asked = question(system, user, schema)
        return _after(self.inner.ask(system, user, schema=schema), lambda reply: self._write(asked, reply))

    def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> Any:
        """What the model inside says next."""
        if not isinstance(self.inner, ToolLLM):
            raise LLMError(f"{self.model} uses no tools.")
        asked = conversation(system, lines, tools)
        return _after(self.inner.tools(system, lines, tools), lambda reply: self._write(asked, reply))

    def _write(self, asked: Mapping[str, Any], reply: Any) -> Any:
        said = reply.text if isinstance(reply, ToolReply) else str(reply)
        calls = [asdict(call) for call in reply.calls] if isinstance(reply, ToolReply) else []
        answer = {"text": said, "calls": calls, "usage": asdict(usage_of(reply))}
        line = json.dumps({"model": self.model, "asked": asked, "answer": answer}, ensure_ascii=False)
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        return reply


def _after(reply: Any, use: Callable[[Any], Any]) -> Any:
    return _later(reply, use) if hasattr(reply, "__await__") else use(reply)


async def _later(reply: Awaitable[Any], use: Callable[[Any], Any]) -> Any:
    return use(await reply)


class Replayer:
    """Answers from a recording; a question that came several times gets its answers in order, and then the last."""

    def __init__(self, path: Path | str, *, local: bool = True) -> None:
        self.path, self.local = Path(path), local
        self.model = "replayed"
        self._lock = freed(threading.Lock())
        self._answers: dict[str, list[Mapping[str, Any]]] = {}
        for number, line in enumerate(self.path.read_text("utf-8").splitlines(), 1):
            self._read(number, line)

    def _read(self, number: int, line: str) -> None:
        try:
            taken = json.loads(line)
            self.model = str(taken["model"])
            self._answers.setdefault(key(taken["asked"]), []).append(dict(taken["answer"]))
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInput(f"{self.path}:{number} is no line of a recording.", hint="Record it anew.") from error

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        """The answer that was recorded."""
        answer = self._next(question(system, user, schema), user)
        return Reply(str(answer.get("text", "")), Usage(**answer.get("usage", {})))

    def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> ToolReply:
        """The line that was recorded."""
        answer = self._next(conversation(system, lines, tools), lines[-1].text if lines else "")
        calls = tuple(ToolCall(**call) for call in answer.get("calls", ()))
        return ToolReply(str(answer.get("text", "")), calls, Usage(**answer.get("usage", {})))

    def _next(self, asked: Mapping[str, Any], shown: str) -> Mapping[str, Any]:
        with self._lock:
            answers = self._answers.get(key(asked))
            if not answers:
                what = f"{self.path} holds no answer to this question: {snippet(shown, 200)}"
                raise LLMError(what, hint="Record it with told.testing.Recorder.")
            return answers.pop(0) if len(answers) > 1 else answers[0]


def question(system: str, user: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was asked, as it is written down."""
    return {"system": system, "user": user, "schema": schema}


def conversation(system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> dict[str, Any]:
    """What was said so far, as it is written down."""
    return {"system": system, "lines": [asdict(line) for line in lines], "tools": [asdict(tool) for tool in tools]}


def key(asked: Mapping[str, Any]) -> str:
    """What makes two questions the same."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
