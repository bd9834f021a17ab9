"""Provider definitions (name, URL, key variables) and the base classes of HTTP models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from math import isfinite, sqrt
from typing import Any, TypeAlias

from told.errors import ConfigError, EmbeddingError, InvalidInput, LLMError, ModelMissing, ToldError
from told.model.validation import suggest_option
from told.ports import ChatLine, Purpose, Reply, Tool, ToolCall, ToolReply, Usage, Vector
from told.providers.http import client
from told.providers.http.client import ClientLimits, ClientTiming, HttpClient, get_loop_thread
from told.text.tokens import format_value, make_snippet, parse_lenient_json


@cache
def load_price_table() -> Mapping[str, tuple[float, float]]:
    """Load dollars per million input and output tokens by model-name prefix."""
    text = resources.files("told.providers.http").joinpath("prices.json").read_text("utf-8")
    return {
        name: (input_price, output_price)
        for name, (input_price, output_price) in json.loads(text)["prices"].items()
    }


def price_usage(
    model: str, input_tokens: object, output_tokens: object, *, calls: int = 1
) -> Usage:
    """Price one call by the longest matching model name."""
    prompt, completion = (
        count if isinstance(count, int) and count > 0 else 0
        for count in (input_tokens, output_tokens)
    )
    name = model.rpartition("/")[2]
    best_prefix = max(
        (prefix for prefix in load_price_table() if _is_version_of(name, prefix)),
        key=len,
        default="",
    )
    input_price, output_price = load_price_table().get(best_prefix, (0.0, 0.0))
    return Usage(
        calls, prompt, completion, (prompt * input_price + completion * output_price) / 1_000_000
    )


def _is_version_of(name: str, base: str) -> bool:
    """Return whether a name is a dated version: `gpt-5-2025-08-07` of `gpt-5`, not `gpt-5.4`."""
    return name == base or name.startswith((f"{base}-", f"{base}@", f"{base}:"))


SendRequest: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""A function that sends a path and body and returns the reply as JSON."""

HeaderFactory: TypeAlias = Callable[[str | None], Mapping[str, str]]
"""A function from a key to request headers."""

CLIENT_DEFAULTS = {"temperature": None, "max_tokens": None}
"""Options left to a client that the user configured."""

OPTION_ALIASES = {
    "openai_base_url": "base_url",
    "ollama_base_url": "base_url",
    "anthropic_base_url": "base_url",
    "azure_endpoint": "base_url",
    "api_base": "base_url",
    "embedding_dims": "dimensions",
    "dim": "dimensions",
    "azure_deployment": "model",
}
"""Option names of other libraries."""

DEFAULT_LIMITS = ClientLimits()
NUMERIC_OPTIONS = ("temperature", "max_tokens", "dimensions", "timeout", "retries", "concurrency")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of a model; unset ones use the provider's defaults."""

    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = 2000
    dimensions: int | None = None
    local: bool = False
    timeout: float = DEFAULT_LIMITS.timeout
    retries: int = DEFAULT_LIMITS.retries
    concurrency: int = DEFAULT_LIMITS.concurrency
    api_version: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields merged into every request."""
    client: Any = None
    """A client of the provider's own library, used in place of ours."""
    timing: ClientTiming | None = None

    @property
    def limits(self) -> ClientLimits:
        """Return the client limits of these options."""
        return ClientLimits(
            timeout=self.timeout, retries=self.retries, concurrency=self.concurrency
        )


@dataclass(frozen=True, slots=True)
class HttpProvider:
    """A provider; call it with a model name and options. Target of an entry point."""

    name: str
    title: str
    factory: Callable[[HttpProvider, ModelOptions], Any]
    base_url: str = ""
    model: str = ""
    key_variables: tuple[str, ...] = ()
    """Environment variables for the key."""
    host_variables: tuple[str, ...] = ()
    """Environment variables for the URL."""
    model_variables: tuple[str, ...] = ()
    """Environment variables for the model name."""
    needs_key: bool = True
    order: int = 100
    """Priority among configured providers."""
    error_type: type[ToldError] = LLMError

    def __call__(
        self,
        model: str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> Any:
        """Open the named or default model."""
        defaults = CLIENT_DEFAULTS if overrides.get("client") is not None else settings or {}
        return self.factory(self, self.parse_options(model, {**defaults, **overrides}))

    def configured(self, environment: Mapping[str, str]) -> str | None:
        """Return the variable that configures this provider, or None."""
        required = () if self.base_url else (*self.host_variables, *self.model_variables)
        if not all(client.find_set_variable([name], environment) for name in required):
            return None
        return client.find_set_variable(
            self.key_variables if self.needs_key else self.host_variables, environment
        )

    def parse_options(self, model: str | None, raw_options: Mapping[str, Any]) -> ModelOptions:
        """Parse user options or raise `ConfigError`."""
        options = {OPTION_ALIASES.get(name, name): value for name, value in raw_options.items()}
        options = {
            name: value
            for name, value in options.items()
            if value is not None or name in CLIENT_DEFAULTS
        }
        chosen = (
            model
            or options.pop("model", None)
            or client.read_environment(self.model_variables)
            or self.model
        )
        options.pop("model", None)
        if not isinstance(chosen, str) or not chosen:
            raise ConfigError(
                f"No model of {self.title} is named.", hint=f"Write it as {self.name}:MODEL."
            )
        allowed = [name for name in ModelOptions.__dataclass_fields__ if name != "model"]
        if unknown := [name for name in options if name not in allowed]:
            hint = (
                suggest_option(unknown[0], allowed)
                or f"Options: {', '.join(allowed)}; others go into extra."
            )
            raise ConfigError(f"{self.title} has no option {unknown[0]!r}.", hint=hint)
        for name in NUMERIC_OPTIONS:
            if isinstance(value := options.get(name), bool) or not isinstance(
                value, int | float | None
            ):
                raise ConfigError(
                    f"{name} of {self.title} must be a number, not {format_value(value)}."
                )
        return ModelOptions(chosen, **options)

    def create_client(
        self, options: ModelOptions, headers: HeaderFactory, root: str | None = None
    ) -> HttpClient:
        """Create a client for the configured URL with its key.

        A key from the environment is only sent to the provider's or the environment's URL,
        never to a URL in code.
        """
        url = options.base_url or client.read_environment(self.host_variables) or self.base_url
        if not url:
            raise ConfigError(
                f"The URL of {self.title} is not set.",
                hint=f"Set {self.host_variables[0]}, or give base_url.",
            )
        raw_key = options.api_key or (
            None if options.base_url else client.read_environment(self.key_variables)
        )
        key = client.validate_key(
            raw_key, provider=self.title, variables=self.key_variables, url=url
        )
        hint = f"Set {self.key_variables[0]}, or give api_key." if self.key_variables else ""
        if key is None and self.needs_key and not options.base_url:
            error_class = (
                ModelMissing if issubclass(self.error_type, EmbeddingError) else ConfigError
            )
            raise error_class(f"No key is set for {self.title}.", hint=hint)
        return HttpClient(
            self.title,
            root or url,
            headers(key),
            secret=key,
            hint=hint,
            error_type=self.error_type,
            limits=options.limits,
            timing=options.timing,
        )


def build_bearer_header(key: str | None) -> Mapping[str, str]:
    """Build an Authorization header."""
    return {"authorization": f"Bearer {key}"} if key else {}


MAX_RAW_CHARS = 2000
"""Characters of an unusable reply kept in an error."""


class HttpLLM:
    """Base class of language models over HTTP."""

    optional_fields: tuple[str, ...] = ()
    """Request fields that may be dropped, by the error text that names them."""

    def __init__(self, provider: HttpProvider, options: ModelOptions, send: SendRequest) -> None:
        self.model = f"{provider.name}:{options.model}"
        self.local = options.local
        self._title, self._options, self._send = provider.title, options, send
        self._unsupported: set[str] = set()

    def __repr__(self) -> str:
        return f"<{self.model}>"

    async def _request(self, path: str, build: Callable[[], dict[str, Any]]) -> Any:
        """Send a request; drop optional fields the server does not support."""
        while True:
            try:
                return await self._send(path, merge_extra(build(), self._options.extra))
            except ToldError as error:
                if (field_name := self._find_unsupported_field(error)) is None:
                    raise
                self._unsupported.add(field_name)

    def _find_unsupported_field(self, error: ToldError) -> str | None:
        if error.detail.get("status") not in (400, 422):
            return None
        error_text = str(error.detail.get("said", ""))
        return next(
            (
                field_name
                for field_name in self.optional_fields
                if field_name in error_text and field_name not in self._unsupported
            ),
            None,
        )

    def _build_usage(self, input_tokens: object, output_tokens: object) -> Usage:
        return price_usage(self._options.model, input_tokens, output_tokens)

    def _build_reply(self, text: object, usage: Usage, finish_reason: object, body: Any) -> Reply:
        """Build a reply, or raise if it is empty, refused or truncated."""
        if isinstance(text, str) and text.strip():
            return Reply(text, usage)
        raise self._empty_reply_error(finish_reason, body)

    def _empty_reply_error(self, finish_reason: object, body: Any) -> LLMError:
        raw = make_snippet(json.dumps(body), MAX_RAW_CHARS)
        if finish_reason in TRUNCATION_REASONS:
            message = f"{self._title} returned no text within {self._options.max_tokens} tokens."
            return LLMError(
                message,
                hint="Raise llm_max_tokens: the model used all of them for reasoning.",
                raw=raw,
            )
        reason = f" ({finish_reason})" if isinstance(finish_reason, str) and finish_reason else ""
        return LLMError(f"{self._title} returned no text{reason}.", raw=raw)

    def _refusal_error(self, reason: object) -> LLMError:
        return LLMError(
            f"{self._title} refused to answer: {make_snippet(str(reason), 300)}",
            refused=True,
            raw=str(reason),
        )

    def _describe_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Describe tools in the common function format."""
        described = [(tool, {"name": tool.name, "description": tool.description}) for tool in tools]
        return [
            {"type": "function", "function": {**description, "parameters": tool.parameters}}
            for tool, description in described
        ]

    def _build_tool_reply(
        self,
        text: object,
        calls: Sequence[ToolCall],
        usage: Usage,
        finish_reason: object,
        body: Any,
    ) -> ToolReply:
        reply_text = text if isinstance(text, str) else ""
        if not reply_text.strip() and not calls:
            raise self._empty_reply_error(finish_reason, body)
        return ToolReply(reply_text, tuple(calls), usage)


def merge_extra(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Merge extra fields into a request, nested mappings included."""
    nested = {
        name: {**body[name], **value}
        for name, value in extra.items()
        if isinstance(value, Mapping) and isinstance(body.get(name), Mapping)
    }
    return {**body, **extra, **nested}


TRUNCATION_REASONS = ("length", "max_tokens", "MAX_TOKENS")
"""Finish reasons that mean the reply ran out of tokens."""


def get_path(value: Any, *path: str | int) -> Any:
    """Return the value at a path in a reply, or None."""
    for step in path:
        if isinstance(step, int) and isinstance(value, list) and len(value) > step:
            value = value[step]
        elif isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


def get_objects(value: Any, *path: str | int) -> list[dict[str, Any]]:
    """Return the objects of a list in a reply."""
    values = get_path(value, *path)
    return (
        [entry for entry in values if isinstance(entry, dict)] if isinstance(values, list) else []
    )


def parse_arguments(raw: Any) -> Mapping[str, Any]:
    """Parse tool-call arguments; return none if unreadable, so that the tool reports it."""
    if isinstance(raw, str):
        try:
            raw = parse_lenient_json(raw)
        except InvalidInput:
            return {}
    return raw if isinstance(raw, dict) else {}


def find_tool_name(call_id: str | None, lines: Sequence[ChatLine]) -> str:
    """Return the tool name of an earlier call."""
    return next((call.name for line in lines for call in line.calls if call.id == call_id), "")


def is_open_schema(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema accepts any JSON object."""
    return not (schema.keys() - {"type"})


def add_schema_to_prompt(system: str, schema: Mapping[str, Any]) -> str:
    """Append a JSON request to the system prompt, for servers without schemas."""
    schema_text = (
        "" if is_open_schema(schema) else f" that fits this JSON schema:\n{json.dumps(schema)}"
    )
    return f"{system}\n\nAnswer with one JSON value and nothing else{schema_text}"


def create_method_sender(method: Callable[..., Any]) -> SendRequest:
    """Create a sender that calls a client method with the body as arguments."""

    async def send(_: str, body: Mapping[str, Any]) -> Any:
        return response_to_json(await call_method(method, **body))

    return send


async def call_method(method: Callable[..., Any], **arguments: Any) -> Any:
    """Call a sync or async method; run sync ones in a thread."""
    reply = await asyncio.to_thread(method, **arguments)
    return await reply if hasattr(reply, "__await__") else reply


def response_to_json(reply: Any) -> Any:
    """Convert a client's response object to JSON."""
    if isinstance(reply, Mapping):
        return dict(reply)
    if callable(dump := getattr(reply, "model_dump", None)):
        return dump(mode="json", by_alias=True, exclude_none=True)
    raise LLMError(f"The client returned a {type(reply).__name__}, which told cannot read.")


MODEL_DIMENSIONS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "all-minilm": 384,
}
"""Known dimensions by model."""

BATCH_SIZE = 96
MAX_TEXT_CHARS = 16_000
"""Characters embedded per text, about 8,000 tokens."""


class HttpEmbedder:
    """Base class of embedders over HTTP."""

    def __init__(self, provider: HttpProvider, options: ModelOptions, send: SendRequest) -> None:
        self.model = f"{provider.name}:{options.model}"
        self.local = options.local
        self.usage = Usage()
        self._title, self._options, self._send = provider.title, options, send
        self._dim = options.dimensions or MODEL_DIMENSIONS.get(options.model.partition(":")[0])

    def __repr__(self) -> str:
        return f"<{self.model}>"

    @property
    def dim(self) -> int:
        """Return the dimension; embed one word if it is unknown."""
        if self._dim is None:
            get_loop_thread().run_blocking(self.embed(["told"]))
        assert self._dim is not None
        return self._dim

    def expect(self, dim: int) -> None:
        """Set the dimension, so that a store opens while the server is down."""
        self._dim = self._dim or dim

    async def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """Return one unit vector per text, in order."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = [
                text[:MAX_TEXT_CHARS] if text.strip() else "."
                for text in texts[start : start + BATCH_SIZE]
            ]
            vectors += [
                self._normalise(vector)
                for vector in self._check_count(await self._embed_batch(batch, purpose), len(batch))
            ]
        return vectors

    async def _embed_batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:
        raise NotImplementedError

    def _check_count(self, vectors: list[Any], count: int) -> list[Any]:
        if len(vectors) != count:
            raise EmbeddingError(
                f"{self._title} returned {len(vectors)} vectors for {count} texts."
            )
        return vectors

    def _normalise(self, vector: Any) -> Vector:
        if (
            not isinstance(vector, list)
            or not vector
            or not all(isinstance(value, int | float) for value in vector)
        ):
            raise EmbeddingError(f"{self._title} returned a value that is not a vector.")
        length = sqrt(sum(value * value for value in vector))
        if not isfinite(length) or not length:
            raise EmbeddingError(f"{self._title} returned a zero vector.")
        self._dim = self._dim or len(vector)
        if len(vector) != self._dim:
            message = f"{self.model} returned {len(vector)} dimensions; {self._dim} were expected."
            raise EmbeddingError(message, hint="Set `dimensions` to the model's dimension.")
        return [value / length for value in vector]

    def _record_usage(self, input_tokens: object) -> None:
        self.usage += price_usage(self._options.model, input_tokens, 0)
