"""Objects of other libraries as language models, known by what they can do: none of those libraries is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from told.core.errors import LLMError
from told.flow import map_reply
from told.open.callables import get_display_name
from told.ports import Reply, Usage

CLIENT_METHODS = {
    "openai": "chat.completions.create",
    "anthropic": "messages.create",
    "google": "models.generate_content",
    "ollama": "chat",
}
"""What the client of each provider's own library answers questions with."""


def detect_provider(client: Any) -> str | None:
    """The provider whose library a client is of."""
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
    """A chat model with `invoke`, as LangChain has them."""

    inner: Any
    local: bool = False

    @property
    def model(self) -> str:
        """The model's name, as far as it says."""
        name = getattr(self.inner, "model_name", None) or getattr(self.inner, "model", None)
        return name if isinstance(name, str) else f"custom:{get_display_name(self.inner)}"

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """What it answers to a system's and a user's message."""
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
    """A model with `generate_response`, as mem0 has them."""

    inner: Any
    local: bool = False

    @property
    def model(self) -> str:
        """The model's name, as far as it says."""
        name = getattr(getattr(self.inner, "config", None), "model", None)
        return name if isinstance(name, str) else f"custom:{get_display_name(self.inner)}"

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """What it answers to a system's and a user's message."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        format_field = {} if schema is None else {"response_format": {"type": "json_object"}}
        return map_reply(
            self.inner.generate_response(messages=messages, **format_field), self._parse_reply
        )

    def _parse_reply(self, reply: Any) -> str:
        return _join_text(reply.get("content") if isinstance(reply, Mapping) else reply, self.model)


def _join_text(content: Any, model: str) -> str:
    """The text of an answer that may be given in blocks."""
    if isinstance(content, list):
        blocks = [
            block.get("text", "") if isinstance(block, Mapping) else block for block in content
        ]
        content = "".join(block for block in blocks if isinstance(block, str))
    if not isinstance(content, str):
        raise LLMError(f"{model} answered with {type(content).__name__}, not with text.")
    return content
