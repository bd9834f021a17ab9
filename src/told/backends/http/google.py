"""Google's Gemini: schemas in its own dialect, and thoughts that it wants to see again with each call of a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.backends.http import sdk
from told.backends.http.chat import Chat, arguments, at, items, name_of
from told.backends.http.provider import Options, Provider, Send
from told.backends.http.vectors import Vectors
from told.core.errors import EmbeddingError
from told.ports import Line, Purpose, Reply, Tool, ToolCall, ToolReply, Usage

BLOCKED = ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION")
KNOWN = frozenset(
    "type format title description nullable enum items properties required anyOf propertyOrdering pattern minimum "
    "maximum minItems maxItems minLength maxLength minProperties maxProperties".split()
)
"""What a schema may say to Gemini; anything else is refused by it."""

TASKS: Mapping[Purpose, str] = {"query": "RETRIEVAL_QUERY", "passage": "RETRIEVAL_DOCUMENT"}
MARK = "#"
"""Between the id of a call and the thought that Gemini wants to see again with it."""


class Google(Chat):
    """A Gemini model."""

    optional = ("responseSchema", "response_schema", "temperature")

    async def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Reply:
        """The model's reply."""
        body = await self._ask(self._path, lambda: self._body(system, [Line("user", user)], schema=schema))
        why = self._check(body)
        return self._reply(_text(body), self._spent(body), why, body)

    async def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> ToolReply:
        """The model's next line in a conversation."""
        body = await self._ask(self._path, lambda: self._body(system, lines, tools=tools))
        why = self._check(body)
        parts = [part for part in items(body, "candidates", 0, "content", "parts") if "functionCall" in part]
        calls = [_call(part, number) for number, part in enumerate(parts)]
        return self._tool_reply(_text(body), calls, self._spent(body), why, body)

    @property
    def _path(self) -> str:
        return f"/models/{self._options.model}:generateContent"

    def _body(
        self, system: str, lines: Sequence[Line], *, schema: Mapping[str, Any] | None = None, tools: Sequence[Tool] = ()
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"contents": contents(lines), "generationConfig": self._config(schema)}
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            body["tools"] = [{"functionDeclarations": [_declared(tool) for tool in tools]}]
        return body

    def _config(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        options = self._options
        config: dict[str, Any] = {}
        if options.temperature is not None and "temperature" not in self._without:
            config["temperature"] = options.temperature
        if options.max_tokens is not None:
            config["maxOutputTokens"] = options.max_tokens
        if schema is None:
            return config
        config["responseMimeType"] = "application/json"
        if not self._without & {"responseSchema", "response_schema"}:
            config["responseSchema"] = dialect(schema)
        return config

    def _check(self, body: Any) -> Any:
        """Why the answer ended; one that was kept back is a refusal."""
        blocked = at(body, "promptFeedback", "blockReason")
        why = at(body, "candidates", 0, "finishReason")
        if blocked or (why in BLOCKED and not _text(body)):
            raise self._refused(blocked or why)
        return why

    def _spent(self, body: Any) -> Usage:
        used = at(body, "usageMetadata")
        written = [at(used, "candidatesTokenCount"), at(used, "thoughtsTokenCount")]
        return self._usage(at(used, "promptTokenCount"), sum(count for count in written if isinstance(count, int)))


def dialect(schema: Any) -> Any:
    """A JSON schema in the words that Gemini knows."""
    if isinstance(schema, list):
        return [dialect(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    said = dict(schema)
    if "oneOf" in said:
        said["anyOf"] = said["oneOf"]
    if "const" in said:
        said["enum"] = [str(said["const"])]
    if isinstance(said.get("type"), list):
        said["nullable"] = "null" in said["type"]
        said["type"] = next((each for each in said["type"] if each != "null"), "string")
    known = {name: value for name, value in said.items() if name in KNOWN}
    nested = {name: dialect(known[name]) for name in ("items", "anyOf") if name in known}
    if isinstance(known.get("properties"), Mapping):
        nested["properties"] = {name: dialect(value) for name, value in known["properties"].items()}
    return {**known, **nested}


def _declared(tool: Tool) -> dict[str, Any]:
    shape = dialect(tool.parameters)
    described = {"name": tool.name, "description": tool.description}
    return {**described, "parameters": shape} if shape.get("properties") else described


def contents(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """A conversation as Gemini reads it: what tools answered is the user's."""
    spoken: list[dict[str, Any]] = []
    for line in lines:
        role = "model" if line.role == "assistant" else "user"
        parts = _parts(line, lines)
        if spoken and spoken[-1]["role"] == role:
            spoken[-1]["parts"] += parts
        else:
            spoken.append({"role": role, "parts": parts})
    return spoken


def _parts(line: Line, lines: Sequence[Line]) -> list[dict[str, Any]]:
    if line.role == "tool":
        name = name_of(line.call_id, lines)
        return [{"functionResponse": {"name": name, "response": {"result": line.text}}}]
    words = [{"text": line.text}] if line.text or not line.calls else []
    return words + [_used(call) for call in line.calls]


def _used(call: ToolCall) -> dict[str, Any]:
    thought = call.id.partition(MARK)[2]
    part: dict[str, Any] = {"functionCall": {"name": call.name, "args": dict(call.arguments)}}
    return {**part, "thoughtSignature": thought} if thought else part


def _call(part: dict[str, Any], number: int) -> ToolCall:
    asked = part["functionCall"]
    thought = part.get("thoughtSignature")
    mark = f"{MARK}{thought}" if isinstance(thought, str) else ""
    return ToolCall(f"call-{number}{mark}", str(at(asked, "name") or ""), arguments(at(asked, "args")))


def _text(body: Any) -> str:
    parts = items(body, "candidates", 0, "content", "parts")
    return "".join(str(part.get("text", "")) for part in parts if not part.get("thought"))


class GoogleVectors(Vectors):
    """An embedder of Gemini's."""

    async def _batch(self, texts: Sequence[str], purpose: Purpose) -> list[Any]:
        model = f"models/{self._options.model}"
        size = {"outputDimensionality": self._options.dimensions} if self._options.dimensions else {}
        common = {"model": model, "taskType": TASKS[purpose], **size}
        asked = [{**common, "content": {"parts": [{"text": text}]}} for text in texts]
        body = await self._send(f"/{model}:batchEmbedContents", {"requests": asked})
        return [each.get("values") for each in items(body, "embeddings")]


# Opening


def _headers(key: str | None) -> Mapping[str, str]:
    return {"x-goog-api-key": key} if key else {}


def _chat(provider: Provider, options: Options) -> Google:
    if options.client is not None:
        return Google(provider, options, _through(options))
    return Google(provider, options, provider.wire(options, _headers).post)


def _through(options: Options) -> Send:
    """Requests as calls of the library's client, which has its own place for everything but the conversation."""

    async def send(_: str, body: Mapping[str, Any]) -> Any:
        rest = {name: value for name, value in body.items() if name not in ("contents", "generationConfig")}
        config = {**body["generationConfig"], **rest}
        generate = options.client.models.generate_content
        reply = await sdk.called(generate, model=options.model, contents=body["contents"], config=config)
        return sdk.plain(reply)

    return send


def _vectors(provider: Provider, options: Options) -> GoogleVectors:
    return GoogleVectors(provider, options, provider.wire(options, _headers).post)


KEYS, HOSTS = ("GOOGLE_API_KEY", "GEMINI_API_KEY"), ("GOOGLE_GEMINI_BASE_URL",)
URL = "https://generativelanguage.googleapis.com/v1beta"

google = Provider("google", "Google Gemini", _chat, URL, "gemini-2.5-flash", KEYS, HOSTS, order=3)
google_embedder = Provider(
    "google", "Google Gemini", _vectors, URL, "gemini-embedding-001", KEYS, HOSTS, error=EmbeddingError
)
