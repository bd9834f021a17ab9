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
from told.core.lazy import lazy_regex
from told.core.text import format_value

STORE_GROUP = "told.stores"
EMBEDDER_GROUP = "told.embedders"
LLM_GROUP = "told.llms"

SPEC_PATTERN = lazy_regex(
    r"(?P<provider>[\w.-]+)(?::(?P<model>.*?))?(?:@(?P<url>https?://\S+))?", re.DOTALL
)
PROVIDER_ALIASES = {
    "azure_openai": "azure",
    "gemini": "google",
    "lm_studio": "lmstudio",
    "claude": "anthropic",
}
"""Other names that providers go by."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model as somebody named it; options may hold a key, so they are never shown."""

    provider: str
    model: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def load_plugin(group: str, name: str) -> Any:
    """What an entry point of a group loads, told's own first; an unknown name is answered with the known ones."""
    own_points = {point.name: point for point in _get_own_entry_points() if point.group == group}
    if name in own_points:
        return own_points[name].load()
    all_points = {point.name: point for point in entry_points(group=group)}
    if name not in all_points:
        close = get_close_matches(name, all_points, 1)
        hint = (
            f"Did you mean {close[0]!r}?"
            if close
            else f"Known here: {', '.join(sorted(all_points)) or 'none'}."
        )
        raise ConfigError(f"Nothing called {name!r} is installed in {group}.", hint=hint)
    return all_points[name].load()


@cache
def _get_own_entry_points() -> tuple[EntryPoint, ...]:
    """What told brings along; looking through everything that is installed takes longer than opening a store."""
    try:
        return tuple(distribution("told").entry_points)
    except PackageNotFoundError:
        return ()


def create_model(group: str, spec: ModelSpec, **defaults: Any) -> Any:
    """The model that was named, opened by its plug-in; `usual` options go to plug-ins that take them."""
    factory = load_plugin(group, spec.provider)
    signature = inspect.signature(factory)
    options = {
        **{name: value for name, value in defaults.items() if _accepts_option(signature, name)},
        **spec.options,
    }
    try:
        signature.bind(spec.model, **options)
    except TypeError as error:
        raise ConfigError(f"{spec.provider} cannot be opened like that: {error}.") from error
    return factory(spec.model, **options)


def _accepts_option(signature: inspect.Signature, name: str) -> bool:
    parameters = signature.parameters.values()
    return name in signature.parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters
    )


def parse_model_spec(choice: str | Mapping[str, Any], label: str) -> ModelSpec:
    """A model as it was named, in a word or in a section of a configuration."""
    return (
        _parse_spec_string(choice, label)
        if isinstance(choice, str)
        else _parse_spec_mapping(choice, label)
    )


def _parse_spec_string(choice: str, label: str) -> ModelSpec:
    match = SPEC_PATTERN.fullmatch(choice.strip())
    if match is None:
        raise ConfigError(
            f"{format_value(choice)} names no {label}.",
            hint="Write provider:model, such as openai:MODEL.",
        )
    provider, model, url = match["provider"], match["model"], match["url"]
    return ModelSpec(
        PROVIDER_ALIASES.get(provider, provider), model or None, {"base_url": url} if url else {}
    )


def _parse_spec_mapping(choice: Mapping[str, Any], label: str) -> ModelSpec:
    """A section such as `{"provider": "openai", "config": {"model": …}}`; what configures may also stand beside."""
    provider, config = choice.get("provider"), choice.get("config") or {}
    hint = f'{label} must look like {{"provider": "openai", "config": {{"model": "…"}}}}.'
    if not isinstance(provider, str) or not isinstance(config, Mapping):
        raise ConfigError(f"This {label} cannot be read.", hint=hint)
    top_level = {
        name: value for name, value in choice.items() if name not in ("provider", "config")
    }
    options = {**top_level, **config}
    for nested in [name for name in options if name.endswith("_kwargs")]:
        if not isinstance(nested_options := options.pop(nested), Mapping):
            raise ConfigError(f"{nested} of the {label} must be a mapping.", hint=hint)
        options.update(nested_options)
    model = options.pop("model", None)
    if not isinstance(model, str | None):
        raise ConfigError(f"The model of the {label} must be its name, not {format_value(model)}.")
    return ModelSpec(PROVIDER_ALIASES.get(provider, provider), model or None, options)
