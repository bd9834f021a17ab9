"""The OpenAI API: OpenAI, Azure, OpenRouter and compatible servers such as vLLM and LM Studio."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from told.errors import ConfigError, EmbeddingError
from told.ports import ChatLine, Purpose, Reply, Tool, ToolCall, ToolReply
from told.providers.http.client import read_environment
from told.providers.http.provider import (
    HttpEmbedder,
    HttpLLM,
    HttpProvider,
    ModelOptions,
    SendRequest,
    add_schema_to_prompt,
    build_bearer_header,
    call_method,
    create_method_sender,
    get_objects,
    get_path,
    is_open_schema,
    parse_arguments,
    response_to_json,
)

CHAT_PATH, EMBED_PATH = "/chat/completions", "/embeddings"
AZURE_VERSION = "2024-10-21"


class OpenAILLM(HttpLLM):
    """A chat-completions model; schemas are enforced where supported, else put in the prompt."""

    optional_fields = ("max_tokens", "temperature", "json_schema", "response_format")

    async def ask(
        self, system: str, user: str, *, schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Return the model's reply."""

        def build() -> dict[str, Any]:
            response_format = self._build_response_format(schema)
            prompt = (
                add_schema_to_prompt(system, schema)
                if schema is not None and "json_schema" not in response_format
                else system
            )
            messages = [{"role": "system", "content": prompt}, {"role": "user", "content": user}]
            return {
                **self._build_body(messages),
                **({"response_format": response_format} if response_format else {}),
            }

        body = await self._request(CHAT_PATH, build)
        text = get_path(body, "choices", 0, "message", "content")
        self._check_refusal(body)
        return self._build_reply(
            text, self._parse_usage(body), get_path(body, "choices", 0, "finish_reason"), body
        )

    async def tools(
        self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]
    ) -> ToolReply:
        """Return the model's next message."""
        messages = [{"role": "system", "content": system}, *map(_build_message, lines)]
        tool_field = {"tools": self._describe_tools(tools)} if tools else {}
        body = await self._request(CHAT_PATH, lambda: {**self._build_body(messages), **tool_field})
        self._check_refusal(body)
        message = get_path(body, "choices", 0, "message")
        calls = [
            _parse_call(tool_call, number)
            for number, tool_call in enumerate(get_objects(message, "tool_calls"))
        ]
        finish_reason = get_path(body, "choices", 0, "finish_reason")
        return self._build_tool_reply(
            get_path(message, "content"), calls, self._parse_usage(body), finish_reason, body
        )

    def _build_body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {"model": options.model, "messages": list(messages)}
        if options.temperature is not None and "temperature" not in self._unsupported:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body["max_completion_tokens" if "max_tokens" in self._unsupported else "max_tokens"] = (
                options.max_tokens
            )
        return body

    def _build_response_format(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """Build the response format that this server supports."""
        if schema is None or "response_format" in self._unsupported:
            return {}
        if is_open_schema(schema) or "json_schema" in self._unsupported:
            return {"type": "json_object"}
        schema_format = {"name": "answer", "schema": schema, "strict": is_strict_schema(schema)}
        return {"type": "json_schema", "json_schema": schema_format}

    def _check_refusal(self, body: Any) -> None:
        if refusal := get_path(body, "choices", 0, "message", "refusal"):
            raise self._refusal_error(refusal)

    def _parse_usage(self, body: Any) -> Any:
        return self._build_usage(
            get_path(body, "usage", "prompt_tokens"), get_path(body, "usage", "completion_tokens")
        )


def is_strict_schema(schema: Any) -> bool:
    """Return whether OpenAI can enforce a schema strictly."""
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(
            schema.get("required", ())
        ) != set(properties):
            return False
        return all(map(is_strict_schema, properties.values()))
    return is_strict_schema(schema.get("items")) and all(
        map(is_strict_schema, schema.get("anyOf", ()))
    )


def _build_message(line: ChatLine) -> dict[str, Any]:
    if line.role == "tool":
        return {"role": "tool", "tool_call_id": line.call_id or "", "content": line.text}
    if not line.calls:
        return {"role": line.role, "content": line.text}
    functions = [
        (call.id, {"name": call.name, "arguments": json.dumps(dict(call.arguments))})
        for call in line.calls
    ]
    calls = [{"id": id_, "type": "function", "function": function} for id_, function in functions]
    return {"role": line.role, "content": line.text or None, "tool_calls": calls}


def _parse_call(tool_call: dict[str, Any], number: int) -> ToolCall:
    raw_arguments = get_path(tool_call, "function", "arguments")
    return ToolCall(
        str(tool_call.get("id") or f"call-{number}"),
        str(get_path(tool_call, "function", "name") or ""),
        parse_arguments(raw_arguments),
    )


class OpenAIEmbedder(HttpEmbedder):
    """An embedder behind the embeddings API."""

    async def _embed_batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:  # noqa: ARG002
        payload = {"model": self._options.model, "input": list(texts), "encoding_format": "float"}
        size = {"dimensions": self._options.dimensions} if self._options.dimensions else {}
        body = await self._send(EMBED_PATH, {**payload, **size, **self._options.extra})
        self._record_usage(get_path(body, "usage", "prompt_tokens"))
        return [
            embedding.get("embedding")
            for embedding in sorted(get_objects(body, "data"), key=_get_index)
        ]


def _get_index(embedding: dict[str, Any]) -> int:
    index = embedding.get("index")
    return index if isinstance(index, int) else 0


# Opening


def _create_llm(provider: HttpProvider, options: ModelOptions) -> OpenAILLM:
    if options.client is not None:
        return OpenAILLM(
            provider, options, create_method_sender(options.client.chat.completions.create)
        )
    return OpenAILLM(provider, options, provider.create_client(options, build_bearer_header).post)


def _create_embedder(provider: HttpProvider, options: ModelOptions) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        provider, options, provider.create_client(options, build_bearer_header).post
    )


def _create_azure_sender(provider: HttpProvider, options: ModelOptions) -> SendRequest:
    """Create a sender for Azure's per-deployment URLs and header."""
    url = (options.base_url or read_environment(provider.host_variables) or "").rstrip("/")
    api_version = options.api_version or read_environment(
        ("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION")
    )
    is_v1_url = urlsplit(url).path.endswith("/v1")
    root = url if is_v1_url or not url else f"{url}/openai/deployments/{options.model}"
    client = provider.create_client(options, lambda key: {"api-key": key} if key else {}, root)

    async def send(path: str, body: Mapping[str, Any]) -> Any:
        return await client.post(
            path if is_v1_url else f"{path}?api-version={api_version or AZURE_VERSION}", body
        )

    return send


OPENAI_KEY_VARIABLES = ("OPENAI_API_KEY",)
OPENAI_HOST_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
OPENAI_URL = "https://api.openai.com/v1"
AZURE_KEY_VARIABLES = ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY")
AZURE_HOST_VARIABLES = ("AZURE_OPENAI_ENDPOINT",)

openai = HttpProvider(
    "openai",
    "OpenAI",
    _create_llm,
    OPENAI_URL,
    "gpt-4o-mini",
    OPENAI_KEY_VARIABLES,
    OPENAI_HOST_VARIABLES,
    order=1,
)
openrouter = HttpProvider(
    "openrouter",
    "OpenRouter",
    _create_llm,
    "https://openrouter.ai/api/v1",
    "openai/gpt-4o-mini",
    ("OPENROUTER_API_KEY",),
    order=4,
)
azure = HttpProvider(
    "azure",
    "Azure OpenAI",
    lambda provider, options: OpenAILLM(provider, options, _create_azure_sender(provider, options)),
    key_variables=AZURE_KEY_VARIABLES,
    host_variables=AZURE_HOST_VARIABLES,
    model_variables=("AZURE_OPENAI_DEPLOYMENT",),
    order=5,
)
vllm = HttpProvider(
    "vllm",
    "vLLM",
    _create_llm,
    "http://127.0.0.1:8000/v1",
    key_variables=("VLLM_API_KEY",),
    host_variables=("VLLM_HOST",),
    needs_key=False,
)
lmstudio = HttpProvider(
    "lmstudio",
    "LM Studio",
    _create_llm,
    "http://127.0.0.1:1234/v1",
    host_variables=("LMSTUDIO_HOST",),
    needs_key=False,
)
openai_embedder = HttpProvider(
    "openai",
    "OpenAI",
    _create_embedder,
    OPENAI_URL,
    "text-embedding-3-small",
    OPENAI_KEY_VARIABLES,
    OPENAI_HOST_VARIABLES,
    error_type=EmbeddingError,
)
azure_embedder = HttpProvider(
    "azure",
    "Azure OpenAI",
    lambda provider, options: OpenAIEmbedder(
        provider, options, _create_azure_sender(provider, options)
    ),
    key_variables=AZURE_KEY_VARIABLES,
    host_variables=AZURE_HOST_VARIABLES,
    model_variables=("AZURE_OPENAI_EMBEDDING_DEPLOYMENT",),
    error_type=EmbeddingError,
)


def _create_litellm(provider: HttpProvider, options: ModelOptions) -> OpenAILLM:
    """Create a model that sends its requests through litellm."""
    if find_spec("litellm") is None:
        raise ConfigError("litellm is not installed.", hint="Run `pip install 'told[litellm]'`.")
    connection = {
        "api_key": options.api_key,
        "base_url": options.base_url,
        "api_version": options.api_version,
    }
    connection_options = {name: value for name, value in connection.items() if value is not None}
    limits = {"timeout": options.timeout, "num_retries": options.retries}

    async def send(_: str, body: Mapping[str, Any]) -> Any:
        from importlib import import_module

        return response_to_json(
            await call_method(
                import_module("litellm").acompletion, **body, **connection_options, **limits
            )
        )

    return OpenAILLM(provider, options, send)


litellm = HttpProvider("litellm", "litellm", _create_litellm, needs_key=False, order=99)
