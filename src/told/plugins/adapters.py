"""Wrappers of language models (metering, caching) and adapters for callables and clients."""

from __future__ import annotations

import inspect
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from told.errors import ConfigError, EmbeddingError, InvalidInput, LLMError
from told.flow import call, map_reply, run
from told.ingest.embedding import unwrap_embedding
from told.ledger.consumer import catch_failure
from told.ports import (
    LLM,
    ChatLine,
    Purpose,
    Reply,
    Tool,
    ToolLLM,
    ToolReply,
    Usage,
    Vector,
    get_usage,
)
from told.runtime import reset_on_fork
from told.text.tokens import parse_lenient_json


class UsageMeter:
    """A thread-safe counter of model calls and cost by operation."""

    def __init__(self) -> None:
        self._lock = reset_on_fork(threading.Lock())
        self._usage: dict[str, Usage] = {}

    def add(self, operation: str, usage: Usage) -> None:
        """Add usage to an operation."""
        with self._lock:
            self._usage[operation] = self._usage.get(operation, Usage()) + usage

    @property
    def by_operation(self) -> Mapping[str, Usage]:
        """Return the usage of each operation."""
        with self._lock:
            return dict(self._usage)

    @property
    def total(self) -> Usage:
        """Return the total usage."""
        return sum(self.by_operation.values(), Usage())


class LLMWrapper:
    """A wrapper around a language model; sync or async as the wrapped one."""

    def __init__(self, inner: LLM) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def model(self) -> str:
        """Return the model name."""
        return self.inner.model

    @property
    def local(self) -> bool:
        """Return whether the model runs on this machine; default True."""
        return bool(getattr(self.inner, "local", True))


class MeteredLLM(LLMWrapper):
    """A language model whose usage is metered."""

    def __init__(self, inner: LLM, meter: UsageMeter, operation: str) -> None:
        super().__init__(inner)
        self.meter, self.operation = meter, operation

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """Return the model's reply."""
        return map_reply(self.inner.ask(system, user, schema=schema), self._record_usage)

    def _record_usage(self, reply: Any) -> Any:
        self.meter.add(self.operation, get_usage(reply))
        return reply


class MeteredToolLLM(MeteredLLM):
    """A metered language model with tool calls."""

    inner: ToolLLM

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> Any:
        """Return the model's next message."""
        return map_reply(self.inner.tools(system, lines, tools), self._record_usage)


def wrap_with_meter(llm: LLM, meter: UsageMeter, operation: str) -> MeteredLLM:
    """Meter a model under an operation name."""
    return (MeteredToolLLM if isinstance(llm, ToolLLM) else MeteredLLM)(llm, meter, operation)


class CachedLLM(LLMWrapper):
    """A language model with a reply cache; cached replies cost nothing.

    Invalid JSON replies to a schema request are not cached, so that a retry can help.
    """

    def __init__(self, inner: LLM, size: int) -> None:
        super().__init__(inner)
        self._max_entries, self._lock = size, reset_on_fork(threading.Lock())
        self._replies: OrderedDict[str, Any] = OrderedDict()

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """Return the cached or new reply."""
        key = json.dumps([system, user, schema], sort_keys=True, default=repr)
        ask = self.inner.ask
        return self._get_or_ask(
            key,
            lambda: ask(system, user, schema=schema),
            lambda reply: _is_cacheable(reply, schema),
        )

    def _get_or_ask(
        self, key: str, ask: Callable[[], Any], is_cacheable: Callable[[Any], bool]
    ) -> Any:
        with self._lock:
            if key in self._replies:
                self._replies.move_to_end(key)
                return self._replies[key]
        return map_reply(
            ask(), lambda reply: self._store_reply(key, reply) if is_cacheable(reply) else reply
        )

    def _store_reply(self, key: str, reply: Any) -> Any:
        with self._lock:
            self._replies[key] = _strip_usage(reply)
            while len(self._replies) > self._max_entries:
                self._replies.popitem(last=False)
        return reply


class CachedToolLLM(CachedLLM):
    """A cached language model with tool calls."""

    inner: ToolLLM

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> Any:
        """Return the cached or new message."""
        key, ask_tools = repr([system, list(lines), list(tools)]), self.inner.tools
        return self._get_or_ask(key, lambda: ask_tools(system, lines, tools), lambda _: True)


def wrap_with_cache(llm: LLM, size: int) -> LLM:
    """Add a cache of `size` replies to a model; 0 disables it."""
    if not size:
        return llm
    return (CachedToolLLM if isinstance(llm, ToolLLM) else CachedLLM)(llm, size)


def _strip_usage(reply: Any) -> Any:
    """Return a reply with zero usage."""
    if isinstance(reply, ToolReply):
        return ToolReply(reply.text, reply.calls, Usage())
    return Reply(str(reply), Usage())


def _is_cacheable(reply: Any, schema: Mapping[str, Any] | None) -> bool:
    if schema is None:
        return True
    try:
        parse_lenient_json(str(reply))
    except InvalidInput:
        return False
    return True


@dataclass(frozen=True, slots=True)
class CallableReranker:
    """A reranker from a function of a query and texts."""

    function: Callable[[str, Sequence[str]], Sequence[float]]
    model: str

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score per text."""
        return self.function(query, texts)


@dataclass(frozen=True, slots=True)
class CallableEmbedder:
    """An embedder from a function; treated as remote, so its failures lose nothing."""

    function: Callable[[Sequence[str]], Sequence[Vector]]
    model: str
    dim: int
    local: bool = False

    @classmethod
    def from_function(
        cls, function: Callable[[Sequence[str]], Sequence[Vector]]
    ) -> CallableEmbedder:
        """Create an embedder; call the function once to learn the dimension."""
        name = f"custom:{get_display_name(function)}"
        vectors = unwrap_embedding(name, run(catch_failure(call(function, ["told"]))))
        try:
            (vector,) = vectors
            dim = len(vector)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"The embedder {name} returned no vector: {error}.") from error
        if not dim:
            raise EmbeddingError(f"The embedder {name} returned a vector without numbers.")
        return cls(function, name, dim)

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:  # noqa: ARG002
        """Return one vector per text; the function does not receive the purpose."""
        return self.function(texts)


@dataclass(frozen=True, slots=True)
class CallableLLM:
    """A language model from a function; asked synchronously unless it has `local = False`."""

    function: Callable[..., Any]
    model: str
    local: bool
    single_prompt: bool
    """True if the function takes one prompt in place of system and user."""
    accepts_schema: bool
    """True if the function takes a schema."""

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], model: str = "", local: bool | None = None
    ) -> CallableLLM:
        """Inspect the signature: (system, user) or (prompt), with an optional `schema` keyword."""
        name = model or f"custom:{get_display_name(function)}"
        hint = (
            "Such as def ask(system, user): ..., or def ask(prompt): ...; `schema` may be a "
            "keyword."
        )
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"The signature of {name} cannot be inspected.", hint=f"Wrap it. {hint}"
            ) from error
        positional_count = sum(
            parameter.kind in POSITIONAL_KINDS and parameter.name != "schema"
            for parameter in parameters
        )
        is_variadic = any(
            parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters
        )
        if not positional_count and not is_variadic:
            raise ConfigError(f"{name} accepts no prompt.", hint=hint)
        accepts_schema = any(
            parameter.name == "schema" or parameter.kind is inspect.Parameter.VAR_KEYWORD
            for parameter in parameters
        )
        is_local = bool(getattr(function, "local", True)) if local is None else local
        return cls(
            function, name, is_local, positional_count == 1 and not is_variadic, accepts_schema
        )

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """Call the function."""
        prompts = (f"{system}\n\n{user}",) if self.single_prompt else (system, user)
        return map_reply(
            self.function(*prompts, **({"schema": schema} if self.accepts_schema else {})),
            self._require_text,
        )

    def _require_text(self, reply: Any) -> str:
        if not isinstance(reply, str):
            raise LLMError(f"{self.model} returned {type(reply).__name__} instead of text.")
        return reply


POSITIONAL_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def get_display_name(target: Any) -> str:
    """Return the display name of a function or object."""
    return str(getattr(target, "__qualname__", type(target).__name__))


CLIENT_METHODS = {
    "openai": "chat.completions.create",
    "anthropic": "messages.create",
    "google": "models.generate_content",
    "ollama": "chat",
}
"""The method of each provider's client that answers a prompt."""


def detect_provider(client: Any) -> str | None:
    """Return the provider whose library a client comes from."""
    return next(
        (provider for provider, method in CLIENT_METHODS.items() if _has_method(client, method)),
        None,
    )


def _has_method(client: Any, method: str) -> bool:
    try:
        return callable(attrgetter(method)(client))
    except AttributeError:
        return False


@dataclass(frozen=True, slots=True)
class LangChainLLM:
    """A LangChain chat model with `invoke`."""

    inner: Any
    local: bool = False

    @property
    def model(self) -> str:
        """Return the model name if known."""
        name = getattr(self.inner, "model_name", None) or getattr(self.inner, "model", None)
        return name if isinstance(name, str) else f"custom:{get_display_name(self.inner)}"

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:  # noqa: ARG002
        """Send a system and a user message."""
        return map_reply(
            self.inner.invoke([("system", system), ("human", user)]), self._parse_reply
        )

    def _parse_reply(self, reply: Any) -> Reply:
        usage = getattr(reply, "usage_metadata", None) or {}
        counts = [
            usage.get(name, 0) if isinstance(usage, Mapping) else 0
            for name in ("input_tokens", "output_tokens")
        ]
        return Reply(_join_text(getattr(reply, "content", reply), self.model), Usage(1, *counts))


@dataclass(frozen=True, slots=True)
class Mem0LLM:
    """A mem0 model with `generate_response`."""

    inner: Any
    local: bool = False

    @property
    def model(self) -> str:
        """Return the model name if known."""
        name = getattr(getattr(self.inner, "config", None), "model", None)
        return name if isinstance(name, str) else f"custom:{get_display_name(self.inner)}"

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """Send a system and a user message."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        format_field = {} if schema is None else {"response_format": {"type": "json_object"}}
        return map_reply(
            self.inner.generate_response(messages=messages, **format_field), self._parse_reply
        )

    def _parse_reply(self, reply: Any) -> str:
        return _join_text(reply.get("content") if isinstance(reply, Mapping) else reply, self.model)


def _join_text(content: Any, model: str) -> str:
    """Join the text of a reply that may consist of blocks."""
    if isinstance(content, list):
        blocks = [
            block.get("text", "") if isinstance(block, Mapping) else block for block in content
        ]
        content = "".join(block for block in blocks if isinstance(block, str))
    if not isinstance(content, str):
        raise LLMError(f"{model} returned {type(content).__name__} instead of text.")
    return content
