"""Opening things by name: stores by URL scheme, embedders by name, each found through its entry point."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from told.core.errors import ConfigError, ModelMissing
from told.core.ids import Mint
from told.core.text import shown
from told.open.around import Cached, Meter, cached, metered
from told.open.callables import CallableEmbedder, CallableLLM, CallableReranker, named
from told.open.llm import configured, open_llm
from told.open.plugins import EMBEDDERS, LLMS, STORES, made, plugin, read
from told.open.readers import READERS, open_reader, open_readers
from told.ports import LLM, Embedder, Reranker, Store
from told.settings import Settings, store_url
from told.views import folding

__all__ = [
    "EMBEDDERS",
    "LLMS",
    "READERS",
    "STORES",
    "Cached",
    "CallableEmbedder",
    "CallableLLM",
    "CallableReranker",
    "Meter",
    "cached",
    "configured",
    "metered",
    "open_embedder",
    "open_llm",
    "open_reader",
    "open_readers",
    "open_reranker",
    "open_store",
    "plugin",
]


def open_store(settings: Settings, mint: Mint | None = None) -> Store:
    """The store a URL names."""
    if not isinstance(mint, Mint | None):
        raise ConfigError(f"mint must be a told.core.ids.Mint, not {shown(mint)}.")
    url = store_url(settings)
    scheme, mark, _ = url.partition("://")
    if not mark:
        raise ConfigError(f"{url!r} is not a store URL.", hint="Such as sqlite:///memory.db or ram://.")
    store: Store = plugin(STORES, scheme)(url, mint=mint or Mint(), settings=_options(settings))
    try:
        _catch_up(store)
    except BaseException:
        store.close()
        raise
    return store


def _catch_up(store: Store) -> None:
    """Fold each ledger into the views that are younger than it."""
    for account in store.accounts():
        if views := store.behind(account):
            store.rebuild(account, views, folding(views))


def _options(settings: Settings) -> dict[str, Any]:
    names = ("durability", "busy_timeout", "group_limit", "cache_bytes", "exact_rows", "erase_vacuum")
    return {name: getattr(settings, name) for name in names}


def open_embedder(choice: Any, store: Store) -> Embedder | None:
    """The embedder a choice names; `auto` prefers the model the store was indexed with, then the best installed."""
    if choice is None or (isinstance(choice, str) and choice == "none"):
        return None
    if isinstance(choice, Embedder) and not isinstance(choice, type):
        return _promising(choice)
    if callable(choice):
        return CallableEmbedder.probe(choice)
    if not isinstance(choice, str | Mapping):
        raise ConfigError(f"An embedder is a name, an object with embed() or a function, not {shown(choice)}.")
    if choice == "auto":
        return _auto(store)
    return _told(made(EMBEDDERS, read(choice, "embedder")), store)


def open_reranker(choice: Any) -> Reranker | LLM | None:
    """A reranker: an object with score(), a language model, or a function from a query and texts to numbers."""
    if choice is None or (isinstance(choice, str) and choice == "none"):
        return None
    if isinstance(choice, Reranker | LLM) and not isinstance(choice, type):
        return choice
    if not callable(choice):
        raise ConfigError(f"A reranker is an object with score(), a language model or a function, not {shown(choice)}.")
    return CallableReranker(choice, f"custom:{named(choice)}")


def _promising(embedder: Embedder) -> Embedder:
    """The embedder, if it says who it is and how long its vectors are."""
    if not isinstance(embedder.model, str) or not embedder.model.strip():
        raise ConfigError(f"An embedder's model must be its name, not {shown(embedder.model)}.")
    if type(embedder.dim) is not int or embedder.dim < 1:
        raise ConfigError(f"The dim of {embedder.model} must be a positive whole number, not {shown(embedder.dim)}.")
    return embedder


def _told(embedder: Embedder, store: Store) -> Embedder:
    """The embedder, told the dimension that a store indexed with it knows, if it would have to ask for it."""
    bound = store.model()
    if bound and bound[0] == embedder.model and callable(expect := getattr(embedder, "expect", None)):
        expect(bound[1])
    return embedder


def _auto(store: Store) -> Embedder | None:
    bound = store.model()
    name, _, model = (bound[0] if bound else "local").partition(":")
    if name not in {point.name for point in entry_points(group=EMBEDDERS)}:
        return None
    try:
        return _told(plugin(EMBEDDERS, name)(model or None), store)
    except ModelMissing:
        return None
