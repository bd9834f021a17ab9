"""What every adapter shares: asking while doing without what a server does not know, and reading answers with care."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from told.backends.http import prices
from told.backends.http.provider import Options, Provider, Send
from told.core.errors import InvalidInput, LLMError, ToldError
from told.core.text import loads_forgiving, snippet
from told.ports import Line, Reply, Tool, ToolCall, ToolReply, Usage

RAW = 2000
"""Characters of an unusable answer that an error keeps."""


class Chat:
    """A language model behind one of the wires; each adapter says how its provider is spoken to."""

    optional: tuple[str, ...] = ()
    """Words of a request that can be done without, each as a server that does not know it complains of it."""

    def __init__(self, provider: Provider, options: Options, send: Send) -> None:
        self.model = f"{provider.name}:{options.model}"
        self.local = options.local
        self._title, self._options, self._send = provider.title, options, send
        self._without: set[str] = set()

    def __repr__(self) -> str:
        return f"<{self.model}>"

    async def _ask(self, path: str, build: Callable[[], dict[str, Any]]) -> Any:
        """The answer to a request, built again without what the server turns out not to know."""
        while True:
            try:
                return await self._send(path, merged(build(), self._options.extra))
            except ToldError as error:
                if (word := self._lacking(error)) is None:
                    raise
                self._without.add(word)

    def _lacking(self, error: ToldError) -> str | None:
        if error.detail.get("status") not in (400, 422):
            return None
        said = str(error.detail.get("said", ""))
        return next((word for word in self.optional if word in said and word not in self._without), None)

    def _usage(self, read: object, written: object) -> Usage:
        return prices.usage(self._options.model, read, written)

    def _reply(self, text: object, usage: Usage, why: object, body: Any) -> Reply:
        """An answer, if there is one; what was asked for and not given is an error that says why."""
        if isinstance(text, str) and text.strip():
            return Reply(text, usage)
        raise self._nothing(why, body)

    def _nothing(self, why: object, body: Any) -> LLMError:
        raw = snippet(json.dumps(body), RAW)
        if why in TORN:
            what = f"{self._title} gave no answer within {self._options.max_tokens} tokens."
            return LLMError(what, hint="Raise llm_max_tokens: the model spent all it had on thinking.", raw=raw)
        reason = f" ({why})" if isinstance(why, str) and why else ""
        return LLMError(f"{self._title} gave no answer{reason}.", raw=raw)

    def _refused(self, words: object) -> LLMError:
        return LLMError(f"{self._title} refused to answer: {snippet(str(words), 300)}", refused=True, raw=str(words))

    def _offers(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """The tools as most providers want them described."""
        named = [(tool, {"name": tool.name, "description": tool.description}) for tool in tools]
        return [{"type": "function", "function": {**about, "parameters": tool.parameters}} for tool, about in named]

    def _tool_reply(self, text: object, calls: Sequence[ToolCall], usage: Usage, why: object, body: Any) -> ToolReply:
        said = text if isinstance(text, str) else ""
        if not said.strip() and not calls:
            raise self._nothing(why, body)
        return ToolReply(said, tuple(calls), usage)


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """A request with what somebody wants in every request, the options inside its options too."""
    both = {name: {**body[name], **value} for name, value in extra.items()
            if isinstance(value, Mapping) and isinstance(body.get(name), Mapping)}  # fmt: skip
    return {**body, **extra, **both}


TORN = ("length", "max_tokens", "MAX_TOKENS")
"""How providers say that an answer ended for want of tokens."""


def at(value: Any, *path: str | int) -> Any:
    """What stands at a place in an answer; None where there is no such place."""
    for step in path:
        if isinstance(step, int) and isinstance(value, list) and len(value) > step:
            value = value[step]
        elif isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


def items(value: Any, *path: str | int) -> list[dict[str, Any]]:
    """The objects of a list in an answer."""
    found = at(value, *path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def arguments(given: Any) -> Mapping[str, Any]:
    """The arguments of a call, as an object or as JSON; none where they cannot be read, so that the tool says so."""
    if isinstance(given, str):
        try:
            given = loads_forgiving(given)
        except InvalidInput:
            return {}
    return given if isinstance(given, dict) else {}


def name_of(call_id: str | None, lines: Sequence[Line]) -> str:
    """The tool that a call of an earlier line named."""
    return next((call.name for line in lines for call in line.calls if call.id == call_id), "")


def is_open(schema: Mapping[str, Any]) -> bool:
    """Whether a schema asks for some JSON object and no more."""
    return not (schema.keys() - {"type"})


def in_words(system: str, schema: Mapping[str, Any]) -> str:
    """A system prompt that asks for JSON in words, for servers that cannot be bound to a schema."""
    shape = "" if is_open(schema) else f" that fits this JSON schema:\n{json.dumps(schema)}"
    return f"{system}\n\nAnswer with one JSON value and nothing else{shape}"
