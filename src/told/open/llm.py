"""Opening a language model by any of the ways people have one: a name, a section, a client, an object, a function."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from told.core.errors import ConfigError
from told.core.text import shown
from told.open.around import cached
from told.open.callables import CallableLLM, named
from told.open.clients import GeneratingLLM, InvokedLLM, speaks
from told.open.plugins import LLMS, Named, made, plugin, read
from told.ports import LLM
from told.settings import Settings

HINT = "Such as openai:gpt-4o-mini, a function (system, user) -> str, an object with ask(), or a provider's client."


def open_llm(choice: Any, settings: Settings) -> LLM | None:
    """The language model a choice names; `auto` takes a provider that the environment has a key or a host for.

    What is opened by name keeps its answers for identical questions; what is given as an object is used as it is.
    """
    if choice is None or choice in ("", "none"):
        return None
    if isinstance(choice, str | Mapping) and not _has_client(choice):
        chosen = _first(settings) if choice == "auto" else _opened(read(choice, "llm"), settings)
        return None if chosen is None else cached(chosen, settings.llm_cache)
    return _given(choice)


def configured(environment: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """The providers that the environment has a key or a host for, and the variable that says so, best first."""
    variables = os.environ if environment is None else environment
    loaded = [(point.name, point.load()) for point in entry_points(group=LLMS)]
    able = [(name, provider) for name, provider in loaded if callable(getattr(provider, "configured", None))]
    ranked = sorted(able, key=lambda pair: (getattr(pair[1], "order", 1000), pair[0]))
    found = [(name, provider.configured(variables)) for name, provider in ranked]
    return [(name, variable) for name, variable in found if variable]


def _first(settings: Settings) -> LLM | None:
    return next((_opened(Named(name), settings) for name, _ in configured()), None)


def _opened(chosen: Named, settings: Settings) -> LLM:
    patience = {name: getattr(settings, f"llm_{name}") for name in ("timeout", "retries", "concurrency", "max_tokens")}
    model: LLM = made(LLMS, chosen, settings=patience)
    return model


def _has_client(choice: str | Mapping[str, Any]) -> bool:
    return isinstance(choice, Mapping) and "client" in choice


def _given(choice: Any) -> LLM:
    """A model that somebody else made."""
    client, options = (choice, {}) if not isinstance(choice, Mapping) else (choice["client"], _options(choice))
    if isinstance(client, type):
        raise ConfigError(f"{client.__name__} is a class, not a language model.", hint="Give an instance of it.")
    if isinstance(client, LLM):
        return client
    if callable(ask := getattr(client, "ask", None)):
        return CallableLLM.of(ask, f"custom:{named(client)}", bool(getattr(client, "local", True)))
    if provider := speaks(client):
        model: LLM = plugin(LLMS, provider)(options.pop("model", None), client=client, **options)
        return model
    if callable(getattr(client, "invoke", None)):
        return InvokedLLM(client)
    if callable(getattr(client, "generate_response", None)):
        return GeneratingLLM(client)
    if callable(client):
        return CallableLLM.of(client)
    raise ConfigError(f"{shown(client)} is no language model.", hint=HINT)


def _options(choice: Mapping[str, Any]) -> dict[str, Any]:
    beside = {name: value for name, value in choice.items() if name not in ("client", "config", "provider")}
    return {**beside, **(choice.get("config") or {})}
