"""Opening things by name: stores by URL scheme, embedders by name, each found through its entry point."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from told.core.errors import ConfigError, ModelMissing
from told.core.ids import IdGenerator
from told.core.text import format_value
from told.open.around import CachedLLM, UsageMeter, wrap_with_cache, wrap_with_meter
from told.open.callables import CallableEmbedder, CallableLLM, CallableReranker, get_display_name
from told.open.llm import list_configured_providers, open_llm
from told.open.plugins import (
    EMBEDDER_GROUP,
    LLM_GROUP,
    STORE_GROUP,
    create_model,
    load_plugin,
    parse_model_spec,
)
from told.open.readers import READER_GROUP, open_reader, open_readers
from told.ports import LLM, Embedder, Reranker, Store
from told.settings import Settings, resolve_store_url
from told.views import build_fold

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
    """The store a URL names."""
    if not isinstance(mint, IdGenerator | None):
        raise ConfigError(f"mint must be a told.core.ids.IdGenerator, not {format_value(mint)}.")
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
    """Fold each ledger into the views that are younger than it."""
    for account in store.list_accounts():
        if views := store.stale_views(account):
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
    """The embedder a choice names; `auto` prefers the model the store was indexed with, then the best installed."""
    if choice is None or (isinstance(choice, str) and choice == "none"):
        return None
    if isinstance(choice, Embedder) and not isinstance(choice, type):
        return _validate_embedder(choice)
    if callable(choice):
        return CallableEmbedder.from_function(choice)
    if not isinstance(choice, str | Mapping):
        raise ConfigError(
            f"An embedder is a name, an object with embed() or a function, not {format_value(choice)}."
        )
    if choice == "auto":
        return _open_auto_embedder(store)
    return _set_known_dimension(
        create_model(EMBEDDER_GROUP, parse_model_spec(choice, "embedder")), store
    )


def open_reranker(choice: Any) -> Reranker | LLM | None:
    """A reranker: an object with score(), a language model, or a function from a query and texts to numbers."""
    if choice is None or (isinstance(choice, str) and choice == "none"):
        return None
    if isinstance(choice, Reranker | LLM) and not isinstance(choice, type):
        return choice
    if not callable(choice):
        raise ConfigError(
            f"A reranker is an object with score(), a language model or a function, not {format_value(choice)}."
        )
    return CallableReranker(choice, f"custom:{get_display_name(choice)}")


def _validate_embedder(embedder: Embedder) -> Embedder:
    """The embedder, if it says who it is and how long its vectors are."""
    if not isinstance(embedder.model, str) or not embedder.model.strip():
        raise ConfigError(
            f"An embedder's model must be its name, not {format_value(embedder.model)}."
        )
    if type(embedder.dim) is not int or embedder.dim < 1:
        raise ConfigError(
            f"The dim of {embedder.model} must be a positive whole number, not {format_value(embedder.dim)}."
        )
    return embedder


def _set_known_dimension(embedder: Embedder, store: Store) -> Embedder:
    """The embedder, told the dimension that a store indexed with it knows, if it would have to ask for it."""
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
