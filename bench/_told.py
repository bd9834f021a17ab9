"""told through its public API, with precomputed vectors."""

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
"""Prefix of a text embedded as a passage."""


class Contender(Protocol):
    """The interface of a contender."""

    def add(self, text: str, user: str) -> None:
        """Store one memory."""

    def bulk(self, texts: Sequence[str], user: str) -> None:
        """Store many memories of one user."""

    def search(self, query: str, user: str) -> int:
        """Find the ten best and return their number."""

    def close(self) -> None:
        """Close the files."""


class Precomputed:
    """An embedder with precomputed vectors; with `real` set, queries also run a real one."""

    model = "bench:precomputed"
    dim = DIM
    local = True

    def __init__(self, *parts: Memories) -> None:
        self.rows: dict[str, Floats] = {}
        for part in parts:
            self.rows.update(zip(part.texts, np.asarray(part.vectors), strict=True))
        self.real: Any = None

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """Return one unit vector per text, in the format of the local embedder."""
        if self.real is not None and purpose == "query":
            self.real.embed(texts, purpose)
        return [array("f", self.rows[text.removeprefix(SPEAKER)].tobytes()) for text in texts]

    def load_real(self) -> bool:
        """Load the default local model for its embedding time, if it is installed."""
        from told.providers.local import open_embedder

        try:
            self.real = open_embedder(MODEL)
        except ModelMissing:
            return False
        self.real.embed(["warm up"], "query")
        return True


class Told:
    """told as its users call it."""

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
