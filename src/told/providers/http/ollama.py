"""Ollama's native API; schemas constrain the reply, and old servers embed one text per call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from told.errors import EmbeddingError
from told.ports import ChatLine, Purpose, Reply, Tool, ToolCall, ToolReply, Usage
from told.providers.http import client
from told.providers.http.provider import (
    HttpEmbedder,
    HttpLLM,
    HttpProvider,
    ModelOptions,
    SendRequest,
    build_bearer_header,
    create_method_sender,
    find_tool_name,
    get_objects,
    get_path,
    is_open_schema,
    parse_arguments,
)

CHAT_PATH, EMBED_PATH, EMBED_ONE_PATH = "/api/chat", "/api/embed", "/api/embeddings"
CONTEXT_TOKENS = 8192
"""Context size to request; the server's default is smaller and silently drops the beginning."""
DEFAULT_PORT = 11434


class OllamaLLM(HttpLLM):
    """A language model on an Ollama server."""

    async def ask(
        self, system: str, user: str, *, schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Return the model's reply."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        format_field = (
            {} if schema is None else {"format": "json" if is_open_schema(schema) else schema}
        )
        body = await self._request(
            CHAT_PATH, lambda: {**self._build_body(messages), **format_field}
        )
        return self._build_reply(
            get_path(body, "message", "content"),
            self._parse_usage(body),
            get_path(body, "done_reason"),
            body,
        )

    async def tools(
        self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]
    ) -> ToolReply:
        """Return the model's next message."""
        messages = [
            {"role": "system", "content": system},
            *(_build_message(line, lines) for line in lines),
        ]
        tool_field = {"tools": self._describe_tools(tools)} if tools else {}
        body = await self._request(CHAT_PATH, lambda: {**self._build_body(messages), **tool_field})
        calls = [
            _parse_call(tool_call, number)
            for number, tool_call in enumerate(get_objects(body, "message", "tool_calls"))
        ]
        text = get_path(body, "message", "content")
        return self._build_tool_reply(
            text, calls, self._parse_usage(body), get_path(body, "done_reason"), body
        )

    def _build_body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        options = self._options
        requested = {
            "temperature": options.temperature,
            "num_predict": options.max_tokens,
            "num_ctx": CONTEXT_TOKENS,
        }
        model_options = {name: value for name, value in requested.items() if value is not None}
        return {
            "model": options.model,
            "messages": list(messages),
            "stream": False,
            "options": model_options,
        }

    def _parse_usage(self, body: Any) -> Usage:
        return self._build_usage(get_path(body, "prompt_eval_count"), get_path(body, "eval_count"))


def _build_message(line: ChatLine, lines: Sequence[ChatLine]) -> dict[str, Any]:
    if line.role == "tool":
        return {
            "role": "tool",
            "tool_name": find_tool_name(line.call_id, lines),
            "content": line.text,
        }
    calls = [
        {"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in line.calls
    ]
    return {"role": line.role, "content": line.text, **({"tool_calls": calls} if calls else {})}


def _parse_call(tool_call: dict[str, Any], number: int) -> ToolCall:
    name = get_path(tool_call, "function", "name")
    raw_arguments = get_path(tool_call, "function", "arguments")
    return ToolCall(
        str(tool_call.get("id") or f"call-{number}"),
        str(name or ""),
        parse_arguments(raw_arguments),
    )


class OllamaEmbedder(HttpEmbedder):
    """An embedder on an Ollama server."""

    def __init__(self, provider: HttpProvider, options: ModelOptions, send: SendRequest) -> None:
        super().__init__(provider, options, send)
        self._is_legacy = False

    async def _embed_batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:  # noqa: ARG002
        payload = {"model": self._options.model}
        if not self._is_legacy:
            try:
                body = await self._send(EMBED_PATH, {**payload, "input": list(texts)})
            except EmbeddingError as error:
                if error.detail.get("status") != 404 or "model" in str(error.detail.get("said")):
                    raise
                self._is_legacy = True
            else:
                self._record_usage(get_path(body, "prompt_eval_count"))
                vectors = get_path(body, "embeddings")
                return vectors if isinstance(vectors, list) else []
        return [
            get_path(await self._send(EMBED_ONE_PATH, {**payload, "prompt": text}), "embedding")
            for text in texts
        ]


# Opening


def resolve_base_url(options: ModelOptions) -> ModelOptions:
    """Resolve OLLAMA_HOST, which may be a host, host:port or a URL."""
    if options.base_url or not (host_value := client.read_environment(HOST_VARIABLES)):
        return options
    parts = urlsplit(host_value if "://" in host_value else f"http://{host_value}")
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0") else parts.hostname  # noqa: S104
    netloc = f"[{host}]" if ":" in str(host) else host
    port = parts.port or (443 if parts.scheme == "https" else DEFAULT_PORT)
    key = options.api_key or client.read_environment(KEY_VARIABLES)
    return replace(options, base_url=f"{parts.scheme}://{netloc}:{port}", api_key=key)


def _create_llm(provider: HttpProvider, options: ModelOptions) -> OllamaLLM:
    if options.client is not None:
        return OllamaLLM(provider, options, create_method_sender(options.client.chat))
    return OllamaLLM(
        provider,
        options,
        provider.create_client(resolve_base_url(options), build_bearer_header).post,
    )


def _create_embedder(provider: HttpProvider, options: ModelOptions) -> OllamaEmbedder:
    return OllamaEmbedder(
        provider,
        options,
        provider.create_client(resolve_base_url(options), build_bearer_header).post,
    )


KEY_VARIABLES = ("OLLAMA_API_KEY",)
HOST_VARIABLES = ("OLLAMA_HOST",)
BASE_URL = f"http://127.0.0.1:{DEFAULT_PORT}"

ollama = HttpProvider(
    "ollama",
    "Ollama",
    _create_llm,
    BASE_URL,
    "llama3.2",
    KEY_VARIABLES,
    HOST_VARIABLES,
    needs_key=False,
    order=6,
)
ollama_embedder = HttpProvider(
    "ollama",
    "Ollama",
    _create_embedder,
    BASE_URL,
    "nomic-embed-text",
    KEY_VARIABLES,
    HOST_VARIABLES,
    needs_key=False,
    error_type=EmbeddingError,
)
