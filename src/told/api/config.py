"""Parse nested configurations in the style of other memory libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from told.errors import ConfigError
from told.settings import PROFILES, SETTING_FIELDS
from told.text.tokens import format_value

IGNORED_KEYS = frozenset({"version", "history_db_path"})
"""Keys without effect: there is one result format, and the store keeps the history."""

PROMPT_NAMES = {"fact_extraction": "facts", "update_decision": "curate"}
STORE_URLS = {"memory": "ram://", "ram": "ram://"}
KEY_HINTS = {
    "custom_instructions": 'Give a whole prompt: {"custom_prompts": {"fact_extraction": "…"}}.',
    "collection_name": "A file holds one collection; for another give an account, or another path.",
}


def parse_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return constructor arguments for a configuration; raise on keys told does not support."""
    if not isinstance(config, Mapping):
        raise ConfigError("A configuration is a mapping.")
    arguments: dict[str, Any] = {}
    for name, value in config.items():
        if name == "vector_store":
            arguments["store"] = _parse_store(value) or arguments.get("store")
        elif name == "embedder":
            arguments["embedder"] = _parse_model(value, "embedder")
        elif name == "llm":
            arguments["llm"] = _parse_model(value, "llm")
        elif name == "history":
            arguments["store"] = arguments.get("store") or _parse_store_path(
                _require_mapping(value, "history"), "db_path", "history"
            )
        elif name == "custom_prompts":
            arguments["prompts"] = _parse_prompts(value)
        elif name == "graph_store":
            _reject_unsupported(name, value)
        elif name == "reranker":
            arguments["reranker"] = _parse_reranker(value)
        elif name in SETTING_FIELDS or name in PROFILES:
            arguments[name] = value
        elif name not in IGNORED_KEYS and not (name in KEY_HINTS and value is None):
            hint = KEY_HINTS.get(name, "See the reference of Memory.from_config.")
            raise ConfigError(f"There is no configuration {format_value(name)}.", hint=hint)
    return {name: value for name, value in arguments.items() if value is not None}


def _parse_section(value: Any, name: str, *extra_keys: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping) or not isinstance(value.get("provider"), str):
        raise ConfigError(f'{name} must look like {{"provider": "…", "config": {{…}}}}.')
    unknown = [key for key in value if key not in ("provider", "config", *extra_keys)]
    if unknown:
        raise ConfigError(
            f"{name} has no {format_value(unknown[0])}.",
            hint=f'Write it into the "config" of the {name}.',
        )
    return value["provider"], _require_mapping(value.get("config") or {}, f"The config of {name}")


def _require_mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} must be a mapping, not {format_value(value)}.")
    return value


def _parse_store(value: Any) -> str | None:
    provider, config = _parse_section(value, "vector_store", "path")
    if provider in STORE_URLS:
        for key in {**value, **config}.keys() - {"provider", "config"}:
            raise ConfigError(
                f"A {provider} store has no {format_value(key)}.",
                hint=KEY_HINTS.get(key, "It takes no options."),
            )
        return STORE_URLS[provider]
    if provider == "sqlite":
        return _parse_store_path({**value, **config}, "path", "vector_store", "provider", "config")
    raise ConfigError(
        f"The vector store {provider!r} is not supported yet.", hint='Use "sqlite" or "memory".'
    )


def _parse_store_path(
    config: Mapping[str, Any], key: str, section: str, *other_keys: str
) -> str | None:
    """Return the store URL of a section's path; raise on other keys."""
    unknown = [name for name in config if name not in (key, *other_keys)]
    if unknown:
        hint = KEY_HINTS.get(unknown[0], f"It takes a {key}.")
        raise ConfigError(f"{section} has no {format_value(unknown[0])}.", hint=hint)
    path = config.get(key)
    if not isinstance(path, str | os.PathLike | None):
        raise ConfigError(f"{key} must be a path, not {format_value(path)}.")
    return None if path is None else f"sqlite:///{path}"


def _parse_model(value: Any, name: str) -> Any:
    """Return a model as `told.plugins` takes it: a name, a section, or an object."""
    if not isinstance(value, Mapping) or "client" in value:
        return value
    provider, config = _parse_section(value, name)
    model = config.get("model")
    if not isinstance(model, str | None):
        raise ConfigError(f"The model of the {name} must be its name, not {format_value(model)}.")
    if set(config) <= {"model"}:
        return f"{provider}:{model}" if model else provider
    return {"provider": provider, "config": dict(config)}


def _parse_prompts(value: Any) -> dict[str, str]:
    """Return prompts by told's names for them."""
    prompts = _require_mapping(value, "custom_prompts")
    unknown = [name for name in prompts if name not in PROMPT_NAMES]
    if unknown:
        raise ConfigError(
            f"There is no prompt {format_value(unknown[0])}.",
            hint=f"There are: {', '.join(PROMPT_NAMES)}.",
        )
    return {PROMPT_NAMES[name]: text for name, text in prompts.items() if text}


def _parse_reranker(value: Any) -> Any:
    """Return a reranker; told has none built in, so it is an object or a function."""
    if not isinstance(value, Mapping):
        return value
    provider, _ = _parse_section(value, "reranker")
    if provider == "none":
        return None
    raise ConfigError(
        f"told has no built-in reranker {format_value(provider)}.",
        hint="Give an object with score(), or a function.",
    )


def _reject_unsupported(name: str, value: Any) -> None:
    """Raise if a section asks for a part that this version does not have."""
    provider, _ = _parse_section(value, name)
    if provider != "none":
        raise ConfigError(
            f"This version of told has no {name} yet.",
            hint=f"Leave {name} out of the configuration.",
        )
