"""Opening a language model by any of the ways people have one: a name, a section, a client, an object, a function."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from told.core.errors import ConfigError
from told.core.text import format_value
from told.open.around import wrap_with_cache
from told.open.callables import CallableLLM, get_display_name
from told.open.clients import LangChainLLM, Mem0LLM, detect_provider
from told.open.plugins import LLM_GROUP, ModelSpec, create_model, load_plugin, parse_model_spec
from told.ports import LLM
from told.settings import Settings

LLM_HINT = "Such as openai:gpt-4o-mini, a function (system, user) -> str, an object with ask(), or a provider's client."


def open_llm(choice: Any, settings: Settings) -> LLM | None:
    """The language model a choice names; `auto` takes a provider that the environment has a key or a host for.

    What is opened by name keeps its answers for identical questions; what is given as an object is used as it is.
    """
    if choice is None or choice in ("", "none"):
        return None
    if isinstance(choice, str | Mapping) and not _has_client(choice):
        llm = (
            _open_first_configured(settings)
            if choice == "auto"
            else _open_by_spec(parse_model_spec(choice, "llm"), settings)
        )
        return None if llm is None else wrap_with_cache(llm, settings.llm_cache)
    return _wrap_client(choice)


def list_configured_providers(
    environment: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """The providers that the environment has a key or a host for, and the variable that says so, best first."""
    variables = os.environ if environment is None else environment
    providers = [(point.name, point.load()) for point in entry_points(group=LLM_GROUP)]
    configurable = [
        (name, provider)
        for name, provider in providers
        if callable(getattr(provider, "configured", None))
    ]
    ranked = sorted(configurable, key=lambda pair: (getattr(pair[1], "order", 1000), pair[0]))
    configured = [(name, provider.configured(variables)) for name, provider in ranked]
    return [(name, variable) for name, variable in configured if variable]


def _open_first_configured(settings: Settings) -> LLM | None:
    return next(
        (_open_by_spec(ModelSpec(name), settings) for name, _ in list_configured_providers()), None
    )


def _open_by_spec(spec: ModelSpec, settings: Settings) -> LLM:
    options = {
        name: getattr(settings, f"llm_{name}")
        for name in ("timeout", "retries", "concurrency", "max_tokens")
    }
    model: LLM = create_model(LLM_GROUP, spec, settings=options)
    return model


def _has_client(choice: str | Mapping[str, Any]) -> bool:
    return isinstance(choice, Mapping) and "client" in choice


def _wrap_client(choice: Any) -> LLM:
    """A model that somebody else made."""
    client, options = (
        (choice, {})
        if not isinstance(choice, Mapping)
        else (choice["client"], _get_client_options(choice))
    )
    if isinstance(client, type):
        raise ConfigError(
            f"{client.__name__} is a class, not a language model.", hint="Give an instance of it."
        )
    if isinstance(client, LLM):
        return client
    if callable(ask := getattr(client, "ask", None)):
        return CallableLLM.from_function(
            ask, f"custom:{get_display_name(client)}", bool(getattr(client, "local", True))
        )
    if provider := detect_provider(client):
        model: LLM = load_plugin(LLM_GROUP, provider)(
            options.pop("model", None), client=client, **options
        )
        return model
    if callable(getattr(client, "invoke", None)):
        return LangChainLLM(client)
    if callable(getattr(client, "generate_response", None)):
        return Mem0LLM(client)
    if callable(client):
        return CallableLLM.from_function(client)
    raise ConfigError(f"{format_value(client)} is no language model.", hint=LLM_HINT)


def _get_client_options(choice: Mapping[str, Any]) -> dict[str, Any]:
    top_level = {
        name: value
        for name, value in choice.items()
        if name not in ("client", "config", "provider")
    }
    return {**top_level, **(choice.get("config") or {})}
