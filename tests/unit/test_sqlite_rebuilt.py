"""Rebuilt views equal incrementally maintained ones, including internal columns."""

from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.ledger.views import build_fold
from told.ports import VIEWS, View
from told.testing import hashing_embedder

TABLES = ("evidence", "fact", "passage", "posting", "tick")


def rows(memory: Memory) -> dict[str, list[Any]]:
    with memory.engine.store._database.read_transaction() as db:
        return {
            table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
            for table in TABLES
        }


@pytest.mark.parametrize(
    "views", [("evidence",), ("facts",), ("ticks",), ("facts", "passages"), VIEWS], ids="-".join
)
def test_every_column_of_a_rebuilt_view_is_unchanged(
    tmp_path: Path, views: tuple[View, ...]
) -> None:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as memory:
        said = [f"memory number {number} is about tea" for number in range(70)]
        first = memory.add(said, user_id="alice", infer=False)["results"][0]["id"]
        memory.delete(first)
        memory.add(said, user_id="alice", infer=False)
        memory.erase(memory_id=memory.get_all(user_id="alice")["results"][3]["id"])
        grown = rows(memory)
        memory.engine.store.rebuild("default", views, build_fold(views))
        assert rows(memory) == grown
