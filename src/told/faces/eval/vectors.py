"""Embedders with a memory: what one was asked once is not computed again, whichever variant asks."""

from __future__ import annotations

from array import array
from collections.abc import MutableMapping, Sequence
from hashlib import sha256
from time import perf_counter

from told.core.topics import Thresholds
from told.faces.sdk import Memory
from told.flow import call, run
from told.ports import SPREAD, Embedder, Purpose, Vector

BATCH = 256

Kept = MutableMapping[bytes, bytes]


class Remembering:
    """An embedder that keeps its vectors; `seconds` is the time spent in here, by whoever asked."""

    def __init__(self, inner: Embedder, kept: Kept) -> None:
        self.inner = inner
        self.kept = kept
        self.model = inner.model
        self.dim = inner.dim
        self.local = inner.local
        self.usual, self.spread = getattr(inner, "usual", 0.0), getattr(inner, "spread", SPREAD)
        self.topics = getattr(inner, "topics", Thresholds())
        self.seconds = 0.0

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """One vector for each text, computed or remembered."""
        began = perf_counter()
        keys = [self._key(text, purpose) for text in texts]
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in self.kept}.items())
        for start in range(0, len(missing), BATCH):
            self._compute(missing[start : start + BATCH], purpose)
        vectors = [array("f", self.kept[key]) for key in keys]
        self.seconds += perf_counter() - began
        return vectors

    def _compute(self, rows: Sequence[tuple[bytes, str]], purpose: Purpose) -> None:
        found = run(call(self.inner.embed, [text for _, text in rows], purpose))
        self.kept.update({key: array("f", vector).tobytes() for (key, _), vector in zip(rows, found, strict=True)})

    def _key(self, text: str, purpose: Purpose) -> bytes:
        return sha256(f"{self.model}\0{purpose}\0{text}".encode()).digest()[:16]


class Embedders:
    """The embedders of a run by the names they are chosen by, each opened once, all sharing what they computed."""

    def __init__(self, default: str, kept: Kept | None = None) -> None:
        self.default = default
        self.kept: Kept = {} if kept is None else kept
        self._opened: dict[str, Remembering | None] = {}

    def get(self, choice: str | None = None) -> Remembering | None:
        """The embedder a choice names, or the default; None where there is to be none, or none is installed."""
        name = choice or self.default
        if name not in self._opened:
            with Memory("ram://", embedder=name) as memory:
                inner = memory.embedder
            self._opened[name] = None if inner is None else Remembering(inner, self.kept)
        return self._opened[name]

    @property
    def seconds(self) -> float:
        """The time spent in all of them."""
        return sum(one.seconds for one in self._opened.values() if one is not None)
