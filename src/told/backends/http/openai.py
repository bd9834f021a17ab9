"""The OpenAI way of speaking: OpenAI, Azure, OpenRouter, and the servers that learnt it, from vLLM to LM Studio."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from told.backends.http import keys, sdk
from told.backends.http.chat import Chat, arguments, at, in_words, is_open, items
from told.backends.http.provider import Options, Provider, Send, bearer
from told.backends.http.vectors import Vectors
from told.core.errors import EmbeddingError
from told.ports import Line, Purpose, Reply, Tool, ToolCall, ToolReply

CHAT, EMBED = "/chat/completions", "/embeddings"
AZURE_VERSION = "2024-10-21"


class OpenAI(Chat):
    """A chat model behind the completions API; schemas are enforced where the server can, else asked for in words."""

    optional = ("max_tokens", "temperature", "json_schema", "response_format")

    async def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Reply:
        """The model's reply."""

        def build() -> dict[str, Any]:
            form = self._form(schema)
            told = in_words(system, schema) if schema is not None and "json_schema" not in form else system
            messages = [{"role": "system", "content": told}, {"role": "user", "content": user}]
            return {**self._common(messages), **({"response_format": form} if form else {})}

        body = await self._ask(CHAT, build)
        said = at(body, "choices", 0, "message", "content")
        self._check(body)
        return self._reply(said, self._spent(body), at(body, "choices", 0, "finish_reason"), body)

    async def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> ToolReply:
        """The model's next line in a conversation."""
        messages = [{"role": "system", "content": system}, *map(_message, lines)]
        offers = {"tools": self._offers(tools)} if tools else {}
        body = await self._ask(CHAT, lambda: {**self._common(messages), **offers})
        self._check(body)
        message = at(body, "choices", 0, "message")
        calls = [_call(each, number) for number, each in enumerate(items(message, "tool_calls"))]
        why = at(body, "choices", 0, "finish_reason")
        return self._tool_reply(at(message, "content"), calls, self._spent(body), why, body)

    def _common(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {"model": options.model, "messages": list(messages)}
        if options.temperature is not None and "temperature" not in self._without:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body["max_completion_tokens" if "max_tokens" in self._without else "max_tokens"] = options.max_tokens
        return body

    def _form(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """How the answer is to be shaped, as far as this server can be bound."""
        if schema is None or "response_format" in self._without:
            return {}
        if is_open(schema) or "json_schema" in self._without:
            return {"type": "json_object"}
        shape = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
        return {"type": "json_schema", "json_schema": shape}

    def _check(self, body: Any) -> None:
        if refusal := at(body, "choices", 0, "message", "refusal"):
            raise self._refused(refusal)

    def _spent(self, body: Any) -> Any:
        return self._usage(at(body, "usage", "prompt_tokens"), at(body, "usage", "completion_tokens"))


def is_strict(schema: Any) -> bool:
    """Whether a schema is one that OpenAI enforces to the letter: every property required, and no others allowed."""
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        named = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(named):
            return False
        return all(map(is_strict, named.values()))
    return is_strict(schema.get("items")) and all(map(is_strict, schema.get("anyOf", ())))


def _message(line: Line) -> dict[str, Any]:
    if line.role == "tool":
        return {"role": "tool", "tool_call_id": line.call_id or "", "content": line.text}
    if not line.calls:
        return {"role": line.role, "content": line.text}
    asked = [(call.id, {"name": call.name, "arguments": json.dumps(dict(call.arguments))}) for call in line.calls]
    calls = [{"id": id_, "type": "function", "function": function} for id_, function in asked]
    return {"role": line.role, "content": line.text or None, "tool_calls": calls}


def _call(each: dict[str, Any], number: int) -> ToolCall:
    given = at(each, "function", "arguments")
    return ToolCall(str(each.get("id") or f"call-{number}"), str(at(each, "function", "name") or ""), arguments(given))


class OpenAIVectors(Vectors):
    """An embedder behind the embeddings API."""

    async def _batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:  # noqa: ARG002 - one space for both
        asked = {"model": self._options.model, "input": list(texts), "encoding_format": "float"}
        size = {"dimensions": self._options.dimensions} if self._options.dimensions else {}
        body = await self._send(EMBED, {**asked, **size, **self._options.extra})
        self._spend(at(body, "usage", "prompt_tokens"))
        return [each.get("embedding") for each in sorted(items(body, "data"), key=_place)]


def _place(each: dict[str, Any]) -> int:
    place = each.get("index")
    return place if isinstance(place, int) else 0


# Opening


def _chat(provider: Provider, options: Options) -> OpenAI:
    if options.client is not None:
        return OpenAI(provider, options, sdk.through(options.client.chat.completions.create))
    return OpenAI(provider, options, provider.wire(options, bearer).post)


def _vectors(provider: Provider, options: Options) -> OpenAIVectors:
    return OpenAIVectors(provider, options, provider.wire(options, bearer).post)


def _azure_send(provider: Provider, options: Options) -> Send:
    """Azure has an address for each deployment, and its own header; its newer address speaks like everybody else."""
    url = (options.base_url or keys.environment(provider.hosts) or "").rstrip("/")
    given = options.api_version or keys.environment(("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION"))
    new = urlsplit(url).path.endswith("/v1")
    root = url if new or not url else f"{url}/openai/deployments/{options.model}"
    wire = provider.wire(options, lambda key: {"api-key": key} if key else {}, root)

    async def send(path: str, body: Mapping[str, Any]) -> Any:
        return await wire.post(path if new else f"{path}?api-version={given or AZURE_VERSION}", body)

    return send


OPENAI_KEYS, OPENAI_HOSTS = ("OPENAI_API_KEY",), ("OPENAI_BASE_URL", "OPENAI_API_BASE")
OPENAI_URL = "https://api.openai.com/v1"
AZURE_KEYS, AZURE_HOSTS = ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"), ("AZURE_OPENAI_ENDPOINT",)

openai = Provider(
    "openai", "OpenAI", _chat, OPENAI_URL, "gpt-4o-mini", OPENAI_KEYS, OPENAI_HOSTS, order=1,
)  # fmt: skip
openrouter = Provider(
    "openrouter", "OpenRouter", _chat, "https://openrouter.ai/api/v1", "openai/gpt-4o-mini",
    ("OPENROUTER_API_KEY",), order=4,
)  # fmt: skip
azure = Provider(
    "azure", "Azure OpenAI", lambda provider, options: OpenAI(provider, options, _azure_send(provider, options)),
    keys=AZURE_KEYS, hosts=AZURE_HOSTS, models=("AZURE_OPENAI_DEPLOYMENT",), order=5,
)  # fmt: skip
vllm = Provider(
    "vllm", "vLLM", _chat, "http://127.0.0.1:8000/v1", keys=("VLLM_API_KEY",), hosts=("VLLM_HOST",), needs_key=False
)
lmstudio = Provider(
    "lmstudio", "LM Studio", _chat, "http://127.0.0.1:1234/v1", hosts=("LMSTUDIO_HOST",), needs_key=False
)
openai_embedder = Provider(
    "openai", "OpenAI", _vectors, OPENAI_URL, "text-embedding-3-small", OPENAI_KEYS, OPENAI_HOSTS, error=EmbeddingError
)
azure_embedder = Provider(
    "azure", "Azure OpenAI", lambda provider, options: OpenAIVectors(provider, options, _azure_send(provider, options)),
    keys=AZURE_KEYS, hosts=AZURE_HOSTS, models=("AZURE_OPENAI_EMBEDDING_DEPLOYMENT",), error=EmbeddingError,
)  # fmt: skip
