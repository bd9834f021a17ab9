"""Open stores, embedders, language models and readers by name through entry points."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from told.errors import ConfigError, ModelMissing, ReaderMissing
from told.ids import IdGenerator
from told.ingest.images import VisionLLM, VisionReader
from told.ledger.views import build_fold
from told.plugins.adapters import (
    CachedLLM,
    CallableEmbedder,
    CallableLLM,
    CallableReranker,
    LangChainLLM,
    Mem0LLM,
    UsageMeter,
    detect_provider,
    get_display_name,
    wrap_with_cache,
    wrap_with_meter,
)
from told.ports import LLM, Embedder, ImageReader, Reranker, Store
from told.runtime import lazy_regex
from told.settings import Settings, resolve_store_url
from told.text.tokens import format_value

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
"""Alternative provider names."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A parsed model choice; its options may hold a key, so they are never shown."""

    provider: str
    model: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def load_plugin(group: str, name: str) -> Any:
    """Load an entry point, told's own first; an unknown name lists the known ones."""
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
        raise ConfigError(f"No plug-in {name!r} is installed in {group}.", hint=hint)
    return all_points[name].load()


@cache
def _get_own_entry_points() -> tuple[EntryPoint, ...]:
    """Return told's own entry points, which is faster than scanning all."""
    try:
        return tuple(distribution("told").entry_points)
    except PackageNotFoundError:
        return ()


def create_model(group: str, spec: ModelSpec, **defaults: Any) -> Any:
    """Open a model with its plug-in; pass `usual` options to plug-ins that accept them."""
    factory = load_plugin(group, spec.provider)
    signature = inspect.signature(factory)
    options = {
        **{name: value for name, value in defaults.items() if _accepts_option(signature, name)},
        **spec.options,
    }
    try:
        signature.bind(spec.model, **options)
    except TypeError as error:
        raise ConfigError(
            f"{spec.provider} cannot be opened with these options: {error}."
        ) from error
    return factory(spec.model, **options)


def _accepts_option(signature: inspect.Signature, name: str) -> bool:
    parameters = signature.parameters.values()
    return name in signature.parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters
    )


def parse_model_spec(choice: str | Mapping[str, Any], label: str) -> ModelSpec:
    """Parse a model choice given as a string or a config section."""
    return (
        _parse_spec_string(choice, label)
        if isinstance(choice, str)
        else _parse_spec_mapping(choice, label)
    )


def _parse_spec_string(choice: str, label: str) -> ModelSpec:
    match = SPEC_PATTERN.fullmatch(choice.strip())
    if match is None:
        raise ConfigError(
            f"{format_value(choice)} is not a {label}.",
            hint="Write provider:model, such as openai:MODEL.",
        )
    provider, model, url = match["provider"], match["model"], match["url"]
    return ModelSpec(
        PROVIDER_ALIASES.get(provider, provider), model or None, {"base_url": url} if url else {}
    )


def _parse_spec_mapping(choice: Mapping[str, Any], label: str) -> ModelSpec:
    """Parse a section such as `{"provider": "openai", "config": {…}}`."""
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


LLM_HINT = (
    "Such as openai:gpt-4o-mini, a function (system, user) -> str, an object with ask(), "
    "or a provider's client."
)


def open_llm(choice: Any, settings: Settings) -> LLM | None:
    """Open the chosen language model; `auto` picks a provider configured in the environment.

    Models opened by name cache replies to identical prompts; objects are used as given.
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
    """Return the providers configured in the environment, best first, with the variable."""
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
    """Wrap a third-party client as a language model."""
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
    raise ConfigError(f"{format_value(client)} is not a language model.", hint=LLM_HINT)


def _get_client_options(choice: Mapping[str, Any]) -> dict[str, Any]:
    top_level = {
        name: value
        for name, value in choice.items()
        if name not in ("client", "config", "provider")
    }
    return {**top_level, **(choice.get("config") or {})}


READER_GROUP = "told.readers"


def open_reader(choice: Any, *, timeout: float = 60.0) -> ImageReader | None:
    """Open an image reader: a name, an object or a function; `auto` is tesseract."""
    if choice is None or choice == "none":
        return None
    if isinstance(choice, ImageReader) and not isinstance(choice, type):
        return choice
    if isinstance(choice, VisionLLM) and not isinstance(choice, type):
        return VisionReader(choice)
    if callable(choice):
        return CallableReader(choice, f"custom:{get_display_name(choice)}")
    if not isinstance(choice, str):
        raise ConfigError(
            "A reader of images is a name, an object with read() or a function, not "
            f"{format_value(choice)}."
        )
    name, _, model = ("tesseract" if choice == "auto" else choice).partition(":")
    try:
        reader: ImageReader = load_plugin(READER_GROUP, name)(model or None, timeout=timeout)
    except (ReaderMissing, ConfigError):
        if choice == "auto":
            return None
        raise
    return reader


def open_readers(choice: Any, llm: Any = None, *, timeout: float = 60.0) -> tuple[ImageReader, ...]:
    """Return the image readers in order; `auto` adds a language model with vision."""
    chosen = open_reader(choice, timeout=timeout)
    add_llm = choice == "auto" and isinstance(llm, VisionLLM) and not isinstance(llm, type)
    return (*(() if chosen is None else (chosen,)), *((VisionReader(llm),) if add_llm else ()))


@dataclass(frozen=True, slots=True)
class CallableReader:
    """An image reader from a function of bytes and a media type."""

    function: Callable[[bytes, str], str]
    model: str

    def read(self, image: bytes, media_type: str) -> str:
        """Call the function on an image."""
        return self.function(image, media_type)


__all__ = [
    "EMBEDDER_GROUP",
    "LLM_GROUP",
    "READER_GROUP",
    "STORE_GROUP",
    "CachedLLM",
    "CallableEmbedder",
    "CallableLLM",
    "CallableReranker",
    "UsageMeter",
    "wrap_with_cache",
    "list_configured_providers",
    "wrap_with_meter",
    "open_embedder",
    "open_llm",
    "open_reader",
    "open_readers",
    "open_reranker",
    "open_store",
    "load_plugin",
]


def open_store(settings: Settings, mint: IdGenerator | None = None) -> Store:
    """Open the store that the settings name."""
    if not isinstance(mint, IdGenerator | None):
        raise ConfigError(f"mint must be a told.ids.IdGenerator, not {format_value(mint)}.")
    url = resolve_store_url(settings)
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise ConfigError(
            f"{url!r} is not a store URL.", hint="Such as sqlite:///memory.db or ram://."
        )
    store: Store = load_plugin(STORE_GROUP, scheme)(
        url, mint=mint or IdGenerator(), settings=_get_store_options(settings)
    )
    try:
        _rebuild_stale_views(store)
    except BaseException:
        store.close()
        raise
    return store


def _rebuild_stale_views(store: Store) -> None:
    """Rebuild views that are newer than a ledger."""
    for account, views in store.list_accounts().items():
        if views:
            store.rebuild(account, views, build_fold(views))


def _get_store_options(settings: Settings) -> dict[str, Any]:
    names = (
        "durability",
        "busy_timeout",
        "group_limit",
        "cache_bytes",
        "exact_rows",
        "erase_vacuum",
    )
    return {name: getattr(settings, name) for name in names}


def open_embedder(choice: Any, store: Store) -> Embedder | None:
    """Open the chosen embedder; `auto` prefers the store's model, then the best installed."""
    if choice is None or (isinstance(choice, str) and choice == "none"):
        return None
    if isinstance(choice, Embedder) and not isinstance(choice, type):
        return _validate_embedder(choice)
    if callable(choice):
        return CallableEmbedder.from_function(choice)
    if not isinstance(choice, str | Mapping):
        raise ConfigError(
            "An embedder is a name, an object with embed() or a function, not "
            f"{format_value(choice)}."
        )
    if choice == "auto":
        return _open_auto_embedder(store)
    return _set_known_dimension(
        create_model(EMBEDDER_GROUP, parse_model_spec(choice, "embedder")), store
    )


def open_reranker(choice: Any) -> Reranker | LLM | None:
    """Open a reranker: an object with score(), a language model, or a function."""
    if choice is None or (isinstance(choice, str) and choice == "none"):
        return None
    if isinstance(choice, Reranker | LLM) and not isinstance(choice, type):
        return choice
    if not callable(choice):
        raise ConfigError(
            "A reranker is an object with score(), a language model or a function, not "
            f"{format_value(choice)}."
        )
    return CallableReranker(choice, f"custom:{get_display_name(choice)}")


def _validate_embedder(embedder: Embedder) -> Embedder:
    """Check that an embedder has a model name and a dimension."""
    if not isinstance(embedder.model, str) or not embedder.model.strip():
        raise ConfigError(
            f"An embedder's model must be its name, not {format_value(embedder.model)}."
        )
    if type(embedder.dim) is not int or embedder.dim < 1:
        raise ConfigError(
            f"The dim of {embedder.model} must be a positive whole number, not "
            f"{format_value(embedder.dim)}."
        )
    return embedder


def _set_known_dimension(embedder: Embedder, store: Store) -> Embedder:
    """Give a remote embedder the dimension the store knows, to save a request."""
    bound = store.current_model()
    if (
        bound
        and bound[0] == embedder.model
        and callable(expect := getattr(embedder, "expect", None))
    ):
        expect(bound[1])
    return embedder


def _open_auto_embedder(store: Store) -> Embedder | None:
    bound = store.current_model()
    name, _, model = (bound[0] if bound else "local").partition(":")
    if name not in {point.name for point in entry_points(group=EMBEDDER_GROUP)}:
        return None
    try:
        return _set_known_dimension(load_plugin(EMBEDDER_GROUP, name)(model or None), store)
    except ModelMissing:
        return None
