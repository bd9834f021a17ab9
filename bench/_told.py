"""told by its public face, with vectors that are at hand."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench._corpus import DIM, Floats, Memories
from told import Memory
from told.errors import ModelMissing
from told.ports import Purpose, Vector

MODEL = "e5-small"
ROWS = 10
SPEAKER = "user: "
"""What stands before a text when it is embedded as a passage."""


class Contender(Protocol):
    """One way to keep memories."""

    def add(self, text: str, user: str) -> None:
        """Keep one memory."""

    def bulk(self, texts: Sequence[str], user: str) -> None:
        """Keep many memories of one user."""

    def search(self, query: str, user: str) -> int:
        """Find the ten best; return how many there were."""

    def close(self) -> None:
        """Let go of the files."""


class Precomputed:
    """An embedder whose vectors are at hand; with `real` set it also does the work of a real one on
    each query.
    """

    model = "bench:precomputed"
    dim = DIM
    local = True

    def __init__(self, *parts: Memories) -> None:
        self.rows: dict[str, Floats] = {}
        for part in parts:
            self.rows.update(zip(part.texts, np.asarray(part.vectors), strict=True))
        self.real: Any = None

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """One unit vector for each text, in the form the local embedder gives them."""
        if self.real is not None and purpose == "query":
            self.real.embed(texts, purpose)
        return [array("f", self.rows[text.removeprefix(SPEAKER)].tobytes()) for text in texts]

    def load_real(self) -> bool:
        """Take the default local model for the embedding time, if it is installed."""
        from told.providers.local import open_embedder

        try:
            self.real = open_embedder(MODEL)
        except ModelMissing:
            return False
        self.real.embed(["warm up"], "query")
        return True


class Told:
    """told as its users have it."""

    def __init__(self, folder: Path, embedder: Precomputed, durability: str) -> None:
        self.memory = Memory(
            f"sqlite:///{folder / 'told.db'}", embedder=embedder, durability=durability
        )

    def add(self, text: str, user: str) -> None:
        self.memory.add(text, user_id=user, infer=False)

    def bulk(self, texts: Sequence[str], user: str) -> None:
        done = self.memory.add(
            [{"role": "user", "content": text} for text in texts], user_id=user, infer=False
        )
        assert "warnings" not in done, done["warnings"]

    def search(self, query: str, user: str) -> int:
        return len(self.memory.search(query, user_id=user, limit=ROWS)["results"])

    def close(self) -> None:
        self.memory.close()
