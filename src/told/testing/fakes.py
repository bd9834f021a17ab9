"""Deterministic fakes: a clock, an id generator, embedders and language models."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from told.errors import ConfigError, EmbeddingError, InvalidInput, LLMError
from told.ids import IdGenerator
from told.ports import (
    DEFAULT_SPREAD,
    LLM,
    ChatLine,
    Embedder,
    Purpose,
    Reply,
    Tool,
    ToolCall,
    ToolLLM,
    ToolReply,
    Usage,
    Vector,
    get_usage,
)
from told.runtime import reset_on_fork
from told.text.tokens import extract_terms, make_snippet

DEFAULT_START = 1_767_600_000_000_000
"""The default start of a manual clock: 2026-01-05T08:00:00 in microseconds since 1970."""


class ManualClock:
    """A clock that moves only when told to; `now` may be set to any microsecond."""

    def __init__(self, now: int = DEFAULT_START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def tick(self, microseconds: int = 1_000_000) -> int:
        """Move the clock forward, or back if negative, and return its time."""
        self.now += microseconds
        return self.now


def seeded_mint(seed: int | str, clock: Callable[[], int] | None = None) -> IdGenerator:
    """Return an id generator that repeats its ids and salts on every run; it is thread-safe."""
    numbers = itertools.count()

    def entropy(size: int) -> bytes:
        return hashlib.shake_128(f"{seed}/{next(numbers)}".encode()).digest(size)

    return IdGenerator(clock or ManualClock(), entropy)


MAX_DIMENSIONS = 4096


class HashingEmbedder:
    """An embedder that hashes words and trigrams, so that texts sharing them are similar."""

    def __init__(self, dim: int = 64, model: str | None = None, *, local: bool = True) -> None:
        self.dim = dim
        self.model = model or f"hash:{dim}"
        self.local = local
        self.usual = self.spread = 1.0 / math.sqrt(dim)

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:  # noqa: ARG002
        """Return one unit vector for each text, also for texts without words."""
        return [self._embed_text(text) for text in texts]

    def _embed_text(self, text: str) -> Vector:
        sums = [0.0] * self.dim
        for feature, weight in _extract_features(text):
            number = int.from_bytes(
                hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            )
            sums[(number >> 1) % self.dim] += weight if number & 1 else -weight
        length = math.sqrt(sum(value * value for value in sums))
        return [value / length for value in sums] if length else [1.0, *[0.0] * (self.dim - 1)]


def _extract_features(text: str) -> Iterator[tuple[str, float]]:
    """Yield the words of a text and, with less weight, their trigrams."""
    for word in extract_terms(text):
        yield f"word {word}", 1.0
        framed = f"<{word}>"
        yield from ((f"part {framed[start : start + 3]}", 0.25) for start in range(len(framed) - 2))


def hashing_embedder(dim: str | int | None = None, **options: Any) -> HashingEmbedder:
    """Open `embedder="hash"` or `embedder="hash:128"`; options are those of `HashingEmbedder`."""
    if dim is None:
        return HashingEmbedder(**options)
    if not str(dim).isdecimal() or not 0 < int(dim) <= MAX_DIMENSIONS:
        raise ConfigError(f"hash:{dim} names no number of dimensions.", hint="Such as hash:64.")
    return HashingEmbedder(int(dim), **options)


class FlakyEmbedder:
    """An embedder that fails the first `failures` calls; it counts as remote by default."""

    def __init__(
        self, failures: int, inner: Embedder | None = None, *, local: bool = False
    ) -> None:
        self.inner = inner or HashingEmbedder()
        self.failures = failures
        self.calls = 0
        self.local = local
        self.model = self.inner.model
        self.dim = self.inner.dim
        self.spread: float = getattr(self.inner, "spread", DEFAULT_SPREAD)
        self.usual: float = getattr(self.inner, "usual", 0.0)

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """Return the wrapped embedder's vectors, or raise `EmbeddingError`."""
        self.calls += 1
        if self.calls <= self.failures:
            raise EmbeddingError(
                f"The embedder failed as it was told to, call {self.calls} of {self.failures}."
            )
        return self.inner.embed(texts, purpose)


class ScriptedLLM:
    """A model that returns scripted replies in order, raises errors, and keeps its questions.

    A script for `tools` holds `ToolReply` values; a plain text there is a line without calls.
    """

    def __init__(
        self,
        replies: Iterable[str | ToolReply | Exception],
        model: str = "scripted",
        *,
        local: bool = True,
    ) -> None:
        self.model = model
        self.local = local
        self.asked: list[tuple[str, str]] = []
        self.schemas: list[Mapping[str, Any] | None] = []
        self.conversations: list[tuple[str, tuple[ChatLine, ...], tuple[Tool, ...]]] = []
        self._replies = iter(replies)
        self._lock = reset_on_fork(threading.Lock())

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        """Return the next reply of the script, or raise `LLMError` at its end."""
        with self._lock:
            self.asked.append((system, user))
            self.schemas.append(schema)
            reply = self._next_reply(len(self.asked))
        return reply.text if isinstance(reply, ToolReply) else reply

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        """Return the next reply of the script, or raise `LLMError` at its end."""
        with self._lock:
            self.conversations.append((system, tuple(lines), tuple(tools)))
            reply = self._next_reply(len(self.conversations))
        return reply if isinstance(reply, ToolReply) else ToolReply(reply, usage=get_usage(reply))

    def _next_reply(self, number: int) -> str | ToolReply:
        reply = next(self._replies, None)
        if reply is None:
            raise LLMError(
                f"The script has no reply to question {number}.", hint="Script one more reply."
            )
        if isinstance(reply, Exception):
            raise reply
        return reply


class Recorder:
    """A wrapper that records every reply of a model, sync or async."""

    def __init__(self, inner: LLM, path: Path | str) -> None:
        self.inner, self.path = inner, Path(path)
        self.model, self.local = inner.model, bool(getattr(inner, "local", True))
        self._lock = reset_on_fork(threading.Lock())

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """Ask the wrapped model and record its reply."""
        request = encode_question(system, user, schema)
        return _apply_to_reply(
            self.inner.ask(system, user, schema=schema),
            lambda reply: self._append_record(request, reply),
        )

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> Any:
        """Continue the wrapped model's conversation and record its line."""
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
    """A model that replays a recording; a repeated question gets its replies in order."""

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
        """Return the recorded reply."""
        answer = self._next_answer(encode_question(system, user, schema), user)
        return Reply(str(answer.get("text", "")), Usage(**answer.get("usage", {})))

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        """Return the recorded line."""
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
    """Return the request as it is recorded."""
    return {"system": system, "user": user, "schema": schema}


def encode_conversation(
    system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]
) -> dict[str, Any]:
    """Return the conversation as it is recorded."""
    return {
        "system": system,
        "lines": [asdict(line) for line in lines],
        "tools": [asdict(tool) for tool in tools],
    }


def hash_request(request: Mapping[str, Any]) -> str:
    """Return the key that identifies a question."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
