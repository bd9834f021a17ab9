"""Nested configuration dictionaries, as other memory libraries write them, read into told's own arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from told.core.errors import ConfigError
from told.core.text import shown
from told.settings import KNOBS

NEEDLESS = frozenset({"version", "history_db_path"})
"""What says nothing to told: there is one format of results, and the history is in the store."""

PROMPTS = {"fact_extraction": "facts", "update_decision": "curate"}
STORES = {"memory": "ram://", "ram": "ram://"}
HINTS = {
    "custom_instructions": 'Give a whole prompt: {"custom_prompts": {"fact_extraction": "…"}}.',
    "collection_name": "A file holds one collection; for another give an account, or another path.",
}


def arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments for a configuration; what told cannot honour is an error, never dropped."""
    if not isinstance(config, Mapping):
        raise ConfigError("A configuration is a mapping.")
    found: dict[str, Any] = {}
    for name, value in config.items():
        if name == "vector_store":
            found["store"] = _store(value) or found.get("store")
        elif name == "embedder":
            found["embedder"] = _model(value, "embedder")
        elif name == "llm":
            found["llm"] = _model(value, "llm")
        elif name == "history":
            found["store"] = found.get("store") or _path(_mapping(value, "history"), "db_path", "history")
        elif name == "custom_prompts":
            found["prompts"] = _prompts(value)
        elif name == "graph_store":
            _absent(name, value)
        elif name == "reranker":
            found["reranker"] = _reranker(value)
        elif name in KNOBS:
            found[name] = value
        elif name not in NEEDLESS and not (name in HINTS and value is None):
            hint = HINTS.get(name, "See the reference of Memory.from_config.")
            raise ConfigError(f"There is no configuration {shown(name)}.", hint=hint)
    return {name: value for name, value in found.items() if value is not None}


def _section(value: Any, name: str, *also: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping) or not isinstance(value.get("provider"), str):
        raise ConfigError(f'{name} must look like {{"provider": "…", "config": {{…}}}}.')
    unknown = [key for key in value if key not in ("provider", "config", *also)]
    if unknown:
        raise ConfigError(f"{name} has no {shown(unknown[0])}.", hint=f'Write it into the "config" of the {name}.')
    return value["provider"], _mapping(value.get("config") or {}, f"The config of {name}")


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} must be a mapping, not {shown(value)}.")
    return value


def _store(value: Any) -> str | None:
    provider, config = _section(value, "vector_store", "path")
    if provider in STORES:
        for key in {**value, **config}.keys() - {"provider", "config"}:
            raise ConfigError(f"A {provider} store has no {shown(key)}.", hint=HINTS.get(key, "It takes nothing."))
        return STORES[provider]
    if provider == "sqlite":
        return _path({**value, **config}, "path", "vector_store", "provider", "config")
    raise ConfigError(f"The vector store {provider!r} is not there yet.", hint='Use "sqlite" or "memory".')


def _path(config: Mapping[str, Any], key: str, section: str, *known: str) -> str | None:
    """The store at the path a section names, and names nothing else that would be lost."""
    unknown = [name for name in config if name not in (key, *known)]
    if unknown:
        hint = HINTS.get(unknown[0], f"It takes a {key}.")
        raise ConfigError(f"{section} has no {shown(unknown[0])}.", hint=hint)
    path = config.get(key)
    if not isinstance(path, str | os.PathLike | None):
        raise ConfigError(f"{key} must be a path, not {shown(path)}.")
    return None if path is None else f"sqlite:///{path}"


def _model(value: Any, name: str) -> Any:
    """A model as `told.open` reads it: a section keeps its key and its address, anything else is used as it is."""
    if not isinstance(value, Mapping) or "client" in value:
        return value
    provider, config = _section(value, name)
    model = config.get("model")
    if not isinstance(model, str | None):
        raise ConfigError(f"The model of the {name} must be its name, not {shown(model)}.")
    if set(config) <= {"model"}:
        return f"{provider}:{model}" if model else provider
    return {"provider": provider, "config": dict(config)}


def _prompts(value: Any) -> dict[str, str]:
    """Prompts by the names told has for them."""
    given = _mapping(value, "custom_prompts")
    unknown = [name for name in given if name not in PROMPTS]
    if unknown:
        raise ConfigError(f"There is no prompt {shown(unknown[0])}.", hint=f"There are: {', '.join(PROMPTS)}.")
    return {PROMPTS[name]: text for name, text in given.items() if text}


def _reranker(value: Any) -> Any:
    """A reranker is an object or a function of the caller's own; none comes with told."""
    if not isinstance(value, Mapping):
        return value
    provider, _ = _section(value, "reranker")
    if provider == "none":
        return None
    raise ConfigError(f"told brings no reranker {shown(provider)}.", hint="Give an object with score(), or a function.")


def _absent(name: str, value: Any) -> None:
    """Refuse what this version of told does not have, unless it is not wanted."""
    provider, _ = _section(value, name)
    if provider != "none":
        raise ConfigError(f"This version of told has no {name} yet.", hint=f"Leave {name} out of the configuration.")
