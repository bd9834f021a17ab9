"""Entry points, and the ways people name a model: `provider:model@url`, or a provider with its configuration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from told.core.errors import ConfigError
from told.core.lazy import regex
from told.core.text import shown

STORES = "told.stores"
EMBEDDERS = "told.embedders"
LLMS = "told.llms"

SPEC = regex(r"(?P<provider>[\w.-]+)(?::(?P<model>.*?))?(?:@(?P<url>https?://\S+))?", re.DOTALL)
OTHERWISE = {"azure_openai": "azure", "gemini": "google", "lm_studio": "lmstudio", "claude": "anthropic"}
"""Other names that providers go by."""


@dataclass(frozen=True, slots=True)
class Named:
    """A model as somebody named it; options may hold a key, so they are never shown."""

    provider: str
    model: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def plugin(group: str, name: str) -> Any:
    """What an entry point of a group loads, told's own first; an unknown name is answered with the known ones."""
    own = {point.name: point for point in _own() if point.group == group}
    if name in own:
        return own[name].load()
    found = {point.name: point for point in entry_points(group=group)}
    if name not in found:
        near = get_close_matches(name, found, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(found)) or 'none'}."
        raise ConfigError(f"Nothing called {name!r} is installed in {group}.", hint=hint)
    return found[name].load()


@cache
def _own() -> tuple[EntryPoint, ...]:
    """What told brings along; looking through everything that is installed takes longer than opening a store."""
    try:
        return tuple(distribution("told").entry_points)
    except PackageNotFoundError:
        return ()


def made(group: str, named: Named, **usual: Any) -> Any:
    """The model that was named, opened by its plug-in; `usual` options go to plug-ins that take them."""
    factory = plugin(group, named.provider)
    signature = inspect.signature(factory)
    options = {**{name: value for name, value in usual.items() if _takes(signature, name)}, **named.options}
    try:
        signature.bind(named.model, **options)
    except TypeError as error:
        raise ConfigError(f"{named.provider} cannot be opened like that: {error}.") from error
    return factory(named.model, **options)


def _takes(signature: inspect.Signature, name: str) -> bool:
    parts = signature.parameters.values()
    return name in signature.parameters or any(part.kind is inspect.Parameter.VAR_KEYWORD for part in parts)


def read(choice: str | Mapping[str, Any], what: str) -> Named:
    """A model as it was named, in a word or in a section of a configuration."""
    return _spelled(choice, what) if isinstance(choice, str) else _section(choice, what)


def _spelled(choice: str, what: str) -> Named:
    match = SPEC.fullmatch(choice.strip())
    if match is None:
        raise ConfigError(f"{shown(choice)} names no {what}.", hint="Write provider:model, such as openai:MODEL.")
    provider, model, url = match["provider"], match["model"], match["url"]
    return Named(OTHERWISE.get(provider, provider), model or None, {"base_url": url} if url else {})


def _section(choice: Mapping[str, Any], what: str) -> Named:
    """A section such as `{"provider": "openai", "config": {"model": …}}`; what configures may also stand beside."""
    provider, config = choice.get("provider"), choice.get("config") or {}
    hint = f'{what} must look like {{"provider": "openai", "config": {{"model": "…"}}}}.'
    if not isinstance(provider, str) or not isinstance(config, Mapping):
        raise ConfigError(f"This {what} cannot be read.", hint=hint)
    beside = {name: value for name, value in choice.items() if name not in ("provider", "config")}
    options = {**beside, **config}
    for nested in [name for name in options if name.endswith("_kwargs")]:
        if not isinstance(more := options.pop(nested), Mapping):
            raise ConfigError(f"{nested} of the {what} must be a mapping.", hint=hint)
        options.update(more)
    model = options.pop("model", None)
    if not isinstance(model, str | None):
        raise ConfigError(f"The model of the {what} must be its name, not {shown(model)}.")
    return Named(OTHERWISE.get(provider, provider), model or None, options)
