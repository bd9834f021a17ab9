"""What every adapter shares: asking while doing without what a server does not know, and reading answers with care."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from told.backends.http import prices
from told.backends.http.provider import HttpProvider, ModelOptions, SendRequest
from told.core.errors import InvalidInput, LLMError, ToldError
from told.core.text import make_snippet, parse_lenient_json
from told.ports import ChatLine, Reply, Tool, ToolCall, ToolReply, Usage

MAX_RAW_CHARS = 2000
"""Characters of an unusable answer that an error keeps."""


class HttpLLM:
    """A language model behind one of the wires; each adapter says how its provider is spoken to."""

    optional_fields: tuple[str, ...] = ()
    """Words of a request that can be done without, each as a server that does not know it complains of it."""

    def __init__(self, provider: HttpProvider, options: ModelOptions, send: SendRequest) -> None:
        self.model = f"{provider.name}:{options.model}"
        self.local = options.local
        self._title, self._options, self._send = provider.title, options, send
        self._unsupported: set[str] = set()

    def __repr__(self) -> str:
        return f"<{self.model}>"

    async def _request(self, path: str, build: Callable[[], dict[str, Any]]) -> Any:
        """The answer to a request, built again without what the server turns out not to know."""
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
        return prices.price_usage(self._options.model, input_tokens, output_tokens)

    def _build_reply(self, text: object, usage: Usage, finish_reason: object, body: Any) -> Reply:
        """An answer, if there is one; what was asked for and not given is an error that says why."""
        if isinstance(text, str) and text.strip():
            return Reply(text, usage)
        raise self._empty_reply_error(finish_reason, body)

    def _empty_reply_error(self, finish_reason: object, body: Any) -> LLMError:
        raw = make_snippet(json.dumps(body), MAX_RAW_CHARS)
        if finish_reason in TRUNCATION_REASONS:
            message = f"{self._title} gave no answer within {self._options.max_tokens} tokens."
            return LLMError(
                message,
                hint="Raise llm_max_tokens: the model spent all it had on thinking.",
                raw=raw,
            )
        reason = f" ({finish_reason})" if isinstance(finish_reason, str) and finish_reason else ""
        return LLMError(f"{self._title} gave no answer{reason}.", raw=raw)

    def _refusal_error(self, reason: object) -> LLMError:
        return LLMError(
            f"{self._title} refused to answer: {make_snippet(str(reason), 300)}",
            refused=True,
            raw=str(reason),
        )

    def _describe_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """The tools as most providers want them described."""
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
    """A request with what somebody wants in every request, the options inside its options too."""
    nested = {
        name: {**body[name], **value}
        for name, value in extra.items()
        if isinstance(value, Mapping) and isinstance(body.get(name), Mapping)
    }
    return {**body, **extra, **nested}


TRUNCATION_REASONS = ("length", "max_tokens", "MAX_TOKENS")
"""How providers say that an answer ended for want of tokens."""


def get_path(value: Any, *path: str | int) -> Any:
    """What stands at a place in an answer; None where there is no such place."""
    for step in path:
        if isinstance(step, int) and isinstance(value, list) and len(value) > step:
            value = value[step]
        elif isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


def get_objects(value: Any, *path: str | int) -> list[dict[str, Any]]:
    """The objects of a list in an answer."""
    values = get_path(value, *path)
    return (
        [entry for entry in values if isinstance(entry, dict)] if isinstance(values, list) else []
    )


def parse_arguments(raw: Any) -> Mapping[str, Any]:
    """The arguments of a call, as an object or as JSON; none where they cannot be read, so that the tool says so."""
    if isinstance(raw, str):
        try:
            raw = parse_lenient_json(raw)
        except InvalidInput:
            return {}
    return raw if isinstance(raw, dict) else {}


def find_tool_name(call_id: str | None, lines: Sequence[ChatLine]) -> str:
    """The tool that a call of an earlier line named."""
    return next((call.name for line in lines for call in line.calls if call.id == call_id), "")


def is_open_schema(schema: Mapping[str, Any]) -> bool:
    """Whether a schema asks for some JSON object and no more."""
    return not (schema.keys() - {"type"})


def add_schema_to_prompt(system: str, schema: Mapping[str, Any]) -> str:
    """A system prompt that asks for JSON in words, for servers that cannot be bound to a schema."""
    schema_text = (
        "" if is_open_schema(schema) else f" that fits this JSON schema:\n{json.dumps(schema)}"
    )
    return f"{system}\n\nAnswer with one JSON value and nothing else{schema_text}"
