"""Vectors cached in a file, and vectors as a matrix."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from told.ports import Purpose
from told.tools.evaluate.run import CachingEmbedder

Floats = npt.NDArray[np.float32]


class File(MutableMapping[bytes, bytes]):
    """Vectors by key, stored in a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.file.execute("PRAGMA journal_mode = WAL")
        self.file.execute(
            "CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
        )

    def __getitem__(self, key: bytes) -> bytes:
        row = self.file.execute("SELECT value FROM vector WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise KeyError(key)
        return bytes(row[0])

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self.file.execute("INSERT OR REPLACE INTO vector VALUES (?, ?)", (key, value))

    def __delitem__(self, key: bytes) -> None:
        self.file.execute("DELETE FROM vector WHERE key = ?", (key,))

    def __iter__(self) -> Iterator[bytes]:
        return (row[0] for row in self.file.execute("SELECT key FROM vector"))

    def __len__(self) -> int:
        return int(self.file.execute("SELECT count(*) FROM vector").fetchone()[0])

    def update(self, *args: Any, **more: bytes) -> None:
        """Store many vectors in one transaction."""
        self.file.execute("BEGIN")
        super().update(*args, **more)
        self.file.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def matrix(embedder: CachingEmbedder, texts: Sequence[str], purpose: Purpose = "passage") -> Floats:
    """Return the vectors of some texts as rows."""
    return np.array(embedder.embed(texts, purpose), dtype=np.float32)
