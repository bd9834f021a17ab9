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
from told.core.fork import reset_on_fork
from told.core.text import make_snippet
from told.ports import LLM, ChatLine, Reply, Tool, ToolCall, ToolLLM, ToolReply, Usage, get_usage


class Recorder:
    """A language model whose every answer is also written down; plain or awaitable as the one inside is."""

    def __init__(self, inner: LLM, path: Path | str) -> None:
        self.inner, self.path = inner, Path(path)
        self.model, self.local = inner.model, bool(getattr(inner, "local", True))
        self._lock = reset_on_fork(threading.Lock())

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """What the model inside answers."""
        request = encode_question(system, user, schema)
        return _apply_to_reply(
            self.inner.ask(system, user, schema=schema),
            lambda reply: self._append_record(request, reply),
        )

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> Any:
        """What the model inside says next."""
        if not isinstance(self.inner, ToolLLM):
            raise LLMError(f"{self.model} uses no tools.")
        request = encode_conversation(system, lines, tools)
        return _apply_to_reply(
            self.inner.tools(system, lines, tools),
            lambda reply: self._append_record(request, reply),
        )

    def _append_record(self, request: Mapping[str, Any], reply: Any) -> Any:
        text = reply.text if isinstance(reply, ToolReply) else str(reply)
        calls = [asdict(call) for call in reply.calls] if isinstance(reply, ToolReply) else []
        answer = {"text": text, "calls": calls, "usage": asdict(get_usage(reply))}
        line = json.dumps(
            {"model": self.model, "asked": request, "answer": answer}, ensure_ascii=False
        )
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        return reply


def _apply_to_reply(reply: Any, callback: Callable[[Any], Any]) -> Any:
    return _apply_to_awaited(reply, callback) if hasattr(reply, "__await__") else callback(reply)


async def _apply_to_awaited(reply: Awaitable[Any], callback: Callable[[Any], Any]) -> Any:
    return callback(await reply)


class Replayer:
    """Answers from a recording; a question that came several times gets its answers in order, and then the last."""

    def __init__(self, path: Path | str, *, local: bool = True) -> None:
        self.path, self.local = Path(path), local
        self.model = "replayed"
        self._lock = reset_on_fork(threading.Lock())
        self._answers: dict[str, list[Mapping[str, Any]]] = {}
        for number, line in enumerate(self.path.read_text("utf-8").splitlines(), 1):
            self._parse_line(number, line)

    def _parse_line(self, number: int, line: str) -> None:
        try:
            record = json.loads(line)
            self.model = str(record["model"])
            self._answers.setdefault(hash_request(record["asked"]), []).append(
                dict(record["answer"])
            )
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInput(
                f"{self.path}:{number} is no line of a recording.", hint="Record it anew."
            ) from error

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        """The answer that was recorded."""
        answer = self._next_answer(encode_question(system, user, schema), user)
        return Reply(str(answer.get("text", "")), Usage(**answer.get("usage", {})))

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        """The line that was recorded."""
        answer = self._next_answer(
            encode_conversation(system, lines, tools), lines[-1].text if lines else ""
        )
        calls = tuple(ToolCall(**call) for call in answer.get("calls", ()))
        return ToolReply(str(answer.get("text", "")), calls, Usage(**answer.get("usage", {})))

    def _next_answer(self, request: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
        with self._lock:
            answers = self._answers.get(hash_request(request))
            if not answers:
                message = (
                    f"{self.path} holds no answer to this question: {make_snippet(prompt, 200)}"
                )
                raise LLMError(message, hint="Record it with told.testing.Recorder.")
            return answers.pop(0) if len(answers) > 1 else answers[0]


def encode_question(system: str, user: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was asked, as it is written down."""
    return {"system": system, "user": user, "schema": schema}


def encode_conversation(
    system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]
) -> dict[str, Any]:
    """What was said so far, as it is written down."""
    return {
        "system": system,
        "lines": [asdict(line) for line in lines],
        "tools": [asdict(tool) for tool in tools],
    }


def hash_request(request: Mapping[str, Any]) -> str:
    """What makes two questions the same."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
