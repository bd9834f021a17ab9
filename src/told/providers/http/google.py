"""Google's Gemini API, with its schema dialect and thought signatures in tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.errors import EmbeddingError
from told.ports import ChatLine, Purpose, Reply, Tool, ToolCall, ToolReply, Usage
from told.providers.http import provider
from told.providers.http.provider import (
    HttpEmbedder,
    HttpLLM,
    HttpProvider,
    ModelOptions,
    SendRequest,
    find_tool_name,
    get_objects,
    get_path,
    parse_arguments,
)

BLOCK_REASONS = ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION")
SCHEMA_KEYWORDS = frozenset(
    "type format title description nullable enum items properties required anyOf "
    "propertyOrdering pattern minimum "
    "maximum minItems maxItems minLength maxLength minProperties maxProperties".split()
)
"""Schema keywords that Gemini accepts."""

TASK_TYPES: Mapping[Purpose, str] = {"query": "RETRIEVAL_QUERY", "passage": "RETRIEVAL_DOCUMENT"}
SIGNATURE_SEPARATOR = "#"
"""Separator between a call id and its thought signature."""


class GoogleLLM(HttpLLM):
    """A Gemini model."""

    optional_fields = ("responseSchema", "response_schema", "temperature")

    async def ask(
        self, system: str, user: str, *, schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Return the model's reply."""
        body = await self._request(
            self._path, lambda: self._build_body(system, [ChatLine("user", user)], schema=schema)
        )
        finish_reason = self._check_refusal(body)
        return self._build_reply(_extract_text(body), self._parse_usage(body), finish_reason, body)

    async def tools(
        self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]
    ) -> ToolReply:
        """Return the model's next message."""
        body = await self._request(self._path, lambda: self._build_body(system, lines, tools=tools))
        finish_reason = self._check_refusal(body)
        parts = [
            part
            for part in get_objects(body, "candidates", 0, "content", "parts")
            if "functionCall" in part
        ]
        calls = [_parse_call(part, number) for number, part in enumerate(parts)]
        return self._build_tool_reply(
            _extract_text(body), calls, self._parse_usage(body), finish_reason, body
        )

    @property
    def _path(self) -> str:
        return f"/models/{self._options.model}:generateContent"

    def _build_body(
        self,
        system: str,
        lines: Sequence[ChatLine],
        *,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[Tool] = (),
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "contents": build_contents(lines),
            "generationConfig": self._build_config(schema),
        }
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            body["tools"] = [{"functionDeclarations": [_declare_function(tool) for tool in tools]}]
        return body

    def _build_config(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        options = self._options
        config: dict[str, Any] = {}
        if options.temperature is not None and "temperature" not in self._unsupported:
            config["temperature"] = options.temperature
        if options.max_tokens is not None:
            config["maxOutputTokens"] = options.max_tokens
        if schema is None:
            return config
        config["responseMimeType"] = "application/json"
        if not self._unsupported & {"responseSchema", "response_schema"}:
            config["responseSchema"] = to_gemini_schema(schema)
        return config

    def _check_refusal(self, body: Any) -> Any:
        """Return the finish reason; raise if the reply was blocked."""
        blocked = get_path(body, "promptFeedback", "blockReason")
        finish_reason = get_path(body, "candidates", 0, "finishReason")
        if blocked or (finish_reason in BLOCK_REASONS and not _extract_text(body)):
            raise self._refusal_error(blocked or finish_reason)
        return finish_reason

    def _parse_usage(self, body: Any) -> Usage:
        counts = get_path(body, "usageMetadata")
        output_counts = [
            get_path(counts, "candidatesTokenCount"),
            get_path(counts, "thoughtsTokenCount"),
        ]
        return self._build_usage(
            get_path(counts, "promptTokenCount"),
            sum(count for count in output_counts if isinstance(count, int)),
        )


def to_gemini_schema(schema: Any) -> Any:
    """Convert a JSON schema to Gemini's dialect."""
    if isinstance(schema, list):
        return [to_gemini_schema(entry) for entry in schema]
    if not isinstance(schema, Mapping):
        return schema
    result = dict(schema)
    if "oneOf" in result:
        result["anyOf"] = result["oneOf"]
    if "const" in result:
        result["enum"] = [str(result["const"])]
    if isinstance(result.get("type"), list):
        result["nullable"] = "null" in result["type"]
        result["type"] = next((entry for entry in result["type"] if entry != "null"), "string")
    known = {name: value for name, value in result.items() if name in SCHEMA_KEYWORDS}
    nested = {name: to_gemini_schema(known[name]) for name in ("items", "anyOf") if name in known}
    if isinstance(known.get("properties"), Mapping):
        nested["properties"] = {
            name: to_gemini_schema(value) for name, value in known["properties"].items()
        }
    return {**known, **nested}


def _declare_function(tool: Tool) -> dict[str, Any]:
    parameters = to_gemini_schema(tool.parameters)
    declaration = {"name": tool.name, "description": tool.description}
    return (
        {**declaration, "parameters": parameters} if parameters.get("properties") else declaration
    )


def build_contents(lines: Sequence[ChatLine]) -> list[dict[str, Any]]:
    """Build Gemini's contents; tool results belong to the user."""
    messages: list[dict[str, Any]] = []
    for line in lines:
        role = "model" if line.role == "assistant" else "user"
        parts = _build_parts(line, lines)
        if messages and messages[-1]["role"] == role:
            messages[-1]["parts"] += parts
        else:
            messages.append({"role": role, "parts": parts})
    return messages


def _build_parts(line: ChatLine, lines: Sequence[ChatLine]) -> list[dict[str, Any]]:
    if line.role == "tool":
        name = find_tool_name(line.call_id, lines)
        return [{"functionResponse": {"name": name, "response": {"result": line.text}}}]
    text_parts = [{"text": line.text}] if line.text or not line.calls else []
    return text_parts + [_format_call(call) for call in line.calls]


def _format_call(call: ToolCall) -> dict[str, Any]:
    signature = call.id.partition(SIGNATURE_SEPARATOR)[2]
    part: dict[str, Any] = {"functionCall": {"name": call.name, "args": dict(call.arguments)}}
    return {**part, "thoughtSignature": signature} if signature else part


def _parse_call(part: dict[str, Any], number: int) -> ToolCall:
    function_call = part["functionCall"]
    signature = part.get("thoughtSignature")
    suffix = f"{SIGNATURE_SEPARATOR}{signature}" if isinstance(signature, str) else ""
    return ToolCall(
        f"call-{number}{suffix}",
        str(get_path(function_call, "name") or ""),
        parse_arguments(get_path(function_call, "args")),
    )


def _extract_text(body: Any) -> str:
    parts = get_objects(body, "candidates", 0, "content", "parts")
    return "".join(str(part.get("text", "")) for part in parts if not part.get("thought"))


class GoogleEmbedder(HttpEmbedder):
    """A Gemini embedder."""

    async def _embed_batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:
        model = f"models/{self._options.model}"
        size = (
            {"outputDimensionality": self._options.dimensions} if self._options.dimensions else {}
        )
        common = {"model": model, "taskType": TASK_TYPES[purpose], **size}
        requests = [{**common, "content": {"parts": [{"text": text}]}} for text in texts]
        body = await self._send(f"/{model}:batchEmbedContents", {"requests": requests})
        return [embedding.get("values") for embedding in get_objects(body, "embeddings")]


# Opening


def _build_headers(key: str | None) -> Mapping[str, str]:
    return {"x-goog-api-key": key} if key else {}


def _create_llm(provider: HttpProvider, options: ModelOptions) -> GoogleLLM:
    if options.client is not None:
        return GoogleLLM(provider, options, _create_client_sender(options))
    return GoogleLLM(provider, options, provider.create_client(options, _build_headers).post)


def _create_client_sender(options: ModelOptions) -> SendRequest:
    """Create a sender that calls the provider's own client."""

    async def send(_: str, body: Mapping[str, Any]) -> Any:
        rest = {
            name: value
            for name, value in body.items()
            if name not in ("contents", "generationConfig")
        }
        config = {**body["generationConfig"], **rest}
        generate = options.client.models.generate_content
        reply = await provider.call_method(
            generate, model=options.model, contents=body["contents"], config=config
        )
        return provider.response_to_json(reply)

    return send


def _create_embedder(provider: HttpProvider, options: ModelOptions) -> GoogleEmbedder:
    return GoogleEmbedder(provider, options, provider.create_client(options, _build_headers).post)


KEY_VARIABLES, HOST_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY"), ("GOOGLE_GEMINI_BASE_URL",)
BASE_URL = "https://generativelanguage.googleapis.com/v1beta"

google = HttpProvider(
    "google",
    "Google Gemini",
    _create_llm,
    BASE_URL,
    "gemini-2.5-flash",
    KEY_VARIABLES,
    HOST_VARIABLES,
    order=3,
)
google_embedder = HttpProvider(
    "google",
    "Google Gemini",
    _create_embedder,
    BASE_URL,
    "gemini-embedding-001",
    KEY_VARIABLES,
    HOST_VARIABLES,
    error_type=EmbeddingError,
)
