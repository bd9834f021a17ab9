"""The embedder all contenders share; what it was asked once is kept in a file and not computed again."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np
import numpy.typing as npt

from told.backends.local import embedder

Floats = npt.NDArray[np.float32]
Purpose = Literal["query", "passage"]

MODEL = "e5-small"
BATCH = 256


class Remembered:
    """A local embedder with a memory; `seconds` is the time spent in here, by whoever asked."""

    local = True

    def __init__(self, path: Path, name: str = MODEL) -> None:
        self.inner = embedder(name)
        self.model = self.inner.model
        self.dim = self.inner.dim
        self.seconds = 0.0
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.file.execute("PRAGMA journal_mode = WAL")
        self.file.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Sequence[float]]:
        """One unit vector for each text."""
        began = perf_counter()
        keys = [self._key(text, purpose) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if self._value(key) is None}
        rows = list(missing.items())
        for start in range(0, len(rows), BATCH):
            self._compute(rows[start : start + BATCH], purpose)
        vectors = [array("f", self._value(key) or b"") for key in keys]
        self.seconds += perf_counter() - began
        return vectors

    def matrix(self, texts: Sequence[str], purpose: Purpose = "passage") -> Floats:
        """The vectors as rows."""
        return np.array(self.embed(texts, purpose), dtype=np.float32)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()

    def _compute(self, rows: Sequence[tuple[bytes, str]], purpose: Purpose) -> None:
        found = self.inner.embed([text for _, text in rows], purpose)
        values = [(key, array("f", vector).tobytes()) for (key, _), vector in zip(rows, found, strict=True)]
        self.file.execute("BEGIN")
        self.file.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", values)
        self.file.execute("COMMIT")

    def _key(self, text: str, purpose: Purpose) -> bytes:
        return sha256(f"{self.model}\0{purpose}\0{text}".encode()).digest()[:16]

    def _value(self, key: bytes) -> bytes | None:
        row = self.file.execute("SELECT value FROM vector WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])
