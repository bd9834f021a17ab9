"""Opening things by name: stores by URL scheme, embedders by name, each found through its entry point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from told.core.errors import ConfigError, EmbeddingError, ModelMissing, ReaderMissing
from told.core.ids import Mint
from told.core.text import shown
from told.engine import answer
from told.flow import call, run
from told.ledger.consume import attempt
from told.ports import LLM, Embedder, ImageReader, Purpose, Reranker, Store, Vector
from told.settings import Settings, store_url
from told.write.media.seer import SeeingLLM, Seer

STORES = "told.stores"
EMBEDDERS = "told.embedders"
READERS = "told.readers"


def plugin(group: str, name: str) -> Any:
    """What an entry point of a group loads; an unknown name is answered with the known ones."""
    found = {point.name: point for point in entry_points(group=group)}
    if name not in found:
        near = get_close_matches(name, found, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(found)) or 'none'}."
        raise ConfigError(f"Nothing called {name!r} is installed in {group}.", hint=hint)
    return found[name].load()


def open_store(settings: Settings, mint: Mint | None = None) -> Store:
    """The store a URL names."""
    if not isinstance(mint, Mint | None):
        raise ConfigError(f"mint must be a told.core.ids.Mint, not {shown(mint)}.")
    url = store_url(settings)
    scheme, mark, _ = url.partition("://")
    if not mark:
        raise ConfigError(f"{url!r} is not a store URL.", hint="Such as sqlite:///memory.db or ram://.")
    store: Store = plugin(STORES, scheme)(url, mint=mint or Mint(), settings=_options(settings))
    return store


def _options(settings: Settings) -> dict[str, Any]:
    names = ("durability", "busy_timeout", "group_limit", "cache_bytes", "exact_rows", "erase_vacuum")
    return {name: getattr(settings, name) for name in names}


def open_embedder(choice: Any, store: Store) -> Embedder | None:
    """The embedder a choice names; `auto` prefers the model the store was indexed with, then the best installed."""
    if choice is None or choice == "none":
        return None
    if isinstance(choice, Embedder) and not isinstance(choice, type):
        return _promising(choice)
    if callable(choice):
        return CallableEmbedder.probe(choice)
    if not isinstance(choice, str):
        raise ConfigError(f"An embedder is a name, an object with embed() or a function, not {shown(choice)}.")
    if choice == "auto":
        return _auto(store)
    name, _, model = choice.partition(":")
    embedder: Embedder = plugin(EMBEDDERS, name)(model or None)
    return embedder


def open_reranker(choice: Any) -> Reranker | LLM | None:
    """A reranker: an object with score(), a language model, or a function from a query and texts to numbers."""
    if choice is None or choice == "none":
        return None
    if isinstance(choice, Reranker | LLM) and not isinstance(choice, type):
        return choice
    if not callable(choice):
        raise ConfigError(f"A reranker is an object with score(), a language model or a function, not {shown(choice)}.")
    return CallableReranker(choice, f"custom:{getattr(choice, '__qualname__', type(choice).__name__)}")


def open_reader(choice: Any, *, timeout: float = 60.0) -> ImageReader | None:
    """What reads images: a name, an object with read(), or a function; `auto` is tesseract, if it is installed."""
    if choice is None or choice == "none":
        return None
    if isinstance(choice, ImageReader) and not isinstance(choice, type):
        return choice
    if isinstance(choice, SeeingLLM) and not isinstance(choice, type):
        return Seer(choice)
    if callable(choice):
        return CallableReader(choice, f"custom:{getattr(choice, '__qualname__', type(choice).__name__)}")
    if not isinstance(choice, str):
        raise ConfigError(f"A reader of images is a name, an object with read() or a function, not {shown(choice)}.")
    name, _, model = ("tesseract" if choice == "auto" else choice).partition(":")
    try:
        reader: ImageReader = plugin(READERS, name)(model or None, timeout=timeout)
    except (ReaderMissing, ConfigError):
        if choice == "auto":
            return None
        raise
    return reader


def open_readers(choice: Any, llm: Any = None, *, timeout: float = 60.0) -> tuple[ImageReader, ...]:
    """Everything that looks at an image, in order: what was chosen, and with `auto` a language model that sees too."""
    first = open_reader(choice, timeout=timeout)
    sees = choice == "auto" and isinstance(llm, SeeingLLM) and not isinstance(llm, type)
    return (*(() if first is None else (first,)), *((Seer(llm),) if sees else ()))


@dataclass(frozen=True, slots=True)
class CallableReader:
    """Any function from bytes and a media type to text as a reader of images."""

    function: Callable[[bytes, str], str]
    model: str

    def read(self, image: bytes, media_type: str) -> str:
        """What the function says of an image."""
        return self.function(image, media_type)


@dataclass(frozen=True, slots=True)
class CallableReranker:
    """Any function from a query and texts to numbers as a reranker."""

    function: Callable[[str, Sequence[str]], Sequence[float]]
    model: str

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A number for each text."""
        return self.function(query, texts)


def _promising(embedder: Embedder) -> Embedder:
    """The embedder, if it says who it is and how long its vectors are."""
    if not isinstance(embedder.model, str) or not embedder.model.strip():
        raise ConfigError(f"An embedder's model must be its name, not {shown(embedder.model)}.")
    if type(embedder.dim) is not int or embedder.dim < 1:
        raise ConfigError(f"The dim of {embedder.model} must be a positive whole number, not {shown(embedder.dim)}.")
    return embedder


def _auto(store: Store) -> Embedder | None:
    bound = store.model()
    wanted = bound[0].removeprefix("local:") if bound and bound[0].startswith("local:") else None
    if bound and wanted is None:
        name, _, model = bound[0].partition(":")
        known = {point.name for point in entry_points(group=EMBEDDERS)}
        return plugin(EMBEDDERS, name)(model or None) if name in known else None
    try:
        embedder: Embedder = plugin(EMBEDDERS, "local")(wanted)
    except ModelMissing:
        return None
    return embedder


@dataclass(frozen=True, slots=True)
class CallableEmbedder:
    """Any function from texts to vectors as an embedder; it counts as remote, so its failures lose nothing."""

    function: Callable[[Sequence[str]], Sequence[Vector]]
    model: str
    dim: int
    local: bool = False

    @classmethod
    def probe(cls, function: Callable[[Sequence[str]], Sequence[Vector]]) -> CallableEmbedder:
        """Learn the dimension by asking once."""
        name = f"custom:{getattr(function, '__qualname__', type(function).__name__)}"
        vectors = answer(name, run(attempt(call(function, ["told"]))))
        try:
            (vector,) = vectors
            width = len(vector)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"The embedder {name} gave no vector for one text: {error}.") from error
        if not width:
            raise EmbeddingError(f"The embedder {name} gave a vector without numbers.")
        return cls(function, name, width)

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:  # noqa: ARG002
        """One vector for each text; a plain function does not ask what it is for."""
        return self.function(texts)
