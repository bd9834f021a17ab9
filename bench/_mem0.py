"""The peer: mem0 with its local Qdrant, in a separate environment; nothing here imports told."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench._corpus import DIM, Floats, Memories

ROWS = 10


class Mem0:
    """mem0 without extraction (`infer=False`) and with precomputed vectors."""

    def __init__(self, folder: Path, *parts: Memories) -> None:
        os.environ.update(MEM0_TELEMETRY="false", MEM0_DIR=str(folder), OPENAI_API_KEY="unused")
        socket.socket.connect = _refuse  # type: ignore[method-assign]
        self.memory: Any = importlib.import_module("mem0").Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(folder / "qdrant"),
                        "embedding_model_dims": DIM,
                        "on_disk": True,
                    },
                },
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.memory.embedding_model = Vectors(*parts)

    def add(self, text: str, user: str) -> None:
        self.memory.add(text, user_id=user, infer=False)

    def bulk(self, texts: Sequence[str], user: str) -> None:
        self.memory.add(
            [{"role": "user", "content": text} for text in texts], user_id=user, infer=False
        )

    def search(self, query: str, user: str) -> int:
        return len(
            self.memory.search(query, filters={"user_id": user}, top_k=ROWS, threshold=0.0)[
                "results"
            ]
        )

    def close(self) -> None:
        self.memory.vector_store.client.close()


class Vectors:
    """The embedder interface of mem0."""

    def __init__(self, *parts: Memories) -> None:
        self.rows: dict[str, Floats] = {}
        for part in parts:
            self.rows.update(zip(part.texts, part.vectors, strict=True))

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
        """Return the vector of a text."""
        row: list[float] = self.rows[text].tolist()
        return row

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        """Return the vectors of some texts."""
        return [self.embed(text, memory_action) for text in texts]


def _refuse(*_: object) -> None:
    raise OSError("the benchmark lets the peer open no connection")
