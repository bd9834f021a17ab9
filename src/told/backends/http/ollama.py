"""Ollama's own way of speaking: a schema binds the answer itself, and an old server still embeds one text at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from told.backends.http import keys, sdk
from told.backends.http.chat import Chat, arguments, at, is_open, items, name_of
from told.backends.http.provider import Options, Provider, Send, bearer
from told.backends.http.vectors import Vectors
from told.core.errors import EmbeddingError
from told.ports import Line, Purpose, Reply, Tool, ToolCall, ToolReply, Usage

CHAT, EMBED, EMBED_ONE = "/api/chat", "/api/embed", "/api/embeddings"
CONTEXT = 8192
"""Tokens of context asked for: what a server takes by itself is less, and it cuts off the beginning in silence."""
PORT = 11434


class Ollama(Chat):
    """A model that an Ollama server runs."""

    async def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Reply:
        """The model's reply."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        form = {} if schema is None else {"format": "json" if is_open(schema) else schema}
        body = await self._ask(CHAT, lambda: {**self._common(messages), **form})
        return self._reply(at(body, "message", "content"), self._spent(body), at(body, "done_reason"), body)

    async def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> ToolReply:
        """The model's next line in a conversation."""
        messages = [{"role": "system", "content": system}, *(_message(line, lines) for line in lines)]
        offers = {"tools": self._offers(tools)} if tools else {}
        body = await self._ask(CHAT, lambda: {**self._common(messages), **offers})
        calls = [_call(each, number) for number, each in enumerate(items(body, "message", "tool_calls"))]
        said = at(body, "message", "content")
        return self._tool_reply(said, calls, self._spent(body), at(body, "done_reason"), body)

    def _common(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        options = self._options
        asked = {"temperature": options.temperature, "num_predict": options.max_tokens, "num_ctx": CONTEXT}
        given = {name: value for name, value in asked.items() if value is not None}
        return {"model": options.model, "messages": list(messages), "stream": False, "options": given}

    def _spent(self, body: Any) -> Usage:
        return self._usage(at(body, "prompt_eval_count"), at(body, "eval_count"))


def _message(line: Line, lines: Sequence[Line]) -> dict[str, Any]:
    if line.role == "tool":
        return {"role": "tool", "tool_name": name_of(line.call_id, lines), "content": line.text}
    calls = [{"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in line.calls]
    return {"role": line.role, "content": line.text, **({"tool_calls": calls} if calls else {})}


def _call(each: dict[str, Any], number: int) -> ToolCall:
    name, given = at(each, "function", "name"), at(each, "function", "arguments")
    return ToolCall(str(each.get("id") or f"call-{number}"), str(name or ""), arguments(given))


class OllamaVectors(Vectors):
    """An embedder that an Ollama server runs."""

    def __init__(self, provider: Provider, options: Options, send: Send) -> None:
        super().__init__(provider, options, send)
        self._old = False

    async def _batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:  # noqa: ARG002 - one space for both
        asked = {"model": self._options.model}
        if not self._old:
            try:
                body = await self._send(EMBED, {**asked, "input": list(texts)})
            except EmbeddingError as error:
                if error.detail.get("status") != 404 or "model" in str(error.detail.get("said")):
                    raise
                self._old = True
            else:
                self._spend(at(body, "prompt_eval_count"))
                found = at(body, "embeddings")
                return found if isinstance(found, list) else []
        return [at(await self._send(EMBED_ONE, {**asked, "prompt": text}), "embedding") for text in texts]


# Opening


def located(options: Options) -> Options:
    """The options with the address that OLLAMA_HOST means, which may be a host, a host with a port or a URL."""
    if options.base_url or not (given := keys.environment(HOSTS)):
        return options
    parts = urlsplit(given if "://" in given else f"http://{given}")
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0") else parts.hostname  # noqa: S104 - what a server listens to
    shown = f"[{host}]" if ":" in str(host) else host
    port = parts.port or (443 if parts.scheme == "https" else PORT)
    key = options.api_key or keys.environment(KEYS)
    return replace(options, base_url=f"{parts.scheme}://{shown}:{port}", api_key=key)


def _chat(provider: Provider, options: Options) -> Ollama:
    if options.client is not None:
        return Ollama(provider, options, sdk.through(options.client.chat))
    return Ollama(provider, options, provider.wire(located(options), bearer).post)


def _vectors(provider: Provider, options: Options) -> OllamaVectors:
    return OllamaVectors(provider, options, provider.wire(located(options), bearer).post)


KEYS, HOSTS, URL = ("OLLAMA_API_KEY",), ("OLLAMA_HOST",), f"http://127.0.0.1:{PORT}"

ollama = Provider("ollama", "Ollama", _chat, URL, "llama3.2", KEYS, HOSTS, needs_key=False, order=6)
ollama_embedder = Provider(
    "ollama", "Ollama", _vectors, URL, "nomic-embed-text", KEYS, HOSTS, needs_key=False, error=EmbeddingError
)
