"""Statements and pages an add and a search cost, with no full table scan."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from told import Memory
from told.backends.sqlite.connection import QUERIES, ROWS_PER_STATEMENT, widen_values
from told.testing import hashing_embedder

ADDS, STATEMENTS, PAGES, SEARCH_STATEMENTS = 300, 12, 18, 6
BULK_SIZE = 400


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(
        f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder(), durability="normal"
    ) as memory:
        yield memory


def add(memory: Memory, first: int, count: int) -> None:
    for number in range(first, first + count):
        memory.add(
            f"memory number {number} is about tea", user_id=f"user{number % 20}", infer=False
        )


def trace_statements(db: apsw.Connection) -> list[str]:
    """Return a list of the statements a connection executes from now on."""
    asked: list[str] = []

    def trace(_: apsw.Cursor, query: str, __: Any) -> bool:
        asked.append(query)
        return True

    db.exec_trace = trace
    return asked


def test_opening_and_querying_a_store_takes_one_connection(memory: Memory, tmp_path: Path) -> None:
    add(memory, 0, 20)
    memory.close()
    with Memory(
        f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder(), durability="normal"
    ) as again:
        assert again.search("tea", user_id="user1")["results"]
        assert list(again.engine.store._database._open) == [again.engine.store._database.writer]


def test_an_add_writes_about_one_page_per_touched_tree(memory: Memory) -> None:
    add(memory, 0, 20)
    db: apsw.Connection = memory.engine.store._database.writer
    before, _ = db.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
    add(memory, 20, ADDS)
    after, _ = db.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
    assert (after - before) / ADDS <= PAGES


def test_an_add_to_a_cached_scope_repeats_no_lookup(memory: Memory) -> None:
    add(memory, 0, 40)
    asked = trace_statements(memory.engine.store._database.writer)
    add(memory, 40, 1)
    assert len(asked) <= STATEMENTS, asked


def test_a_bulk_add_batches_lookups_and_writes(memory: Memory) -> None:
    add(memory, 0, 40)
    asked = trace_statements(memory.engine.store._database.writer)
    memory.add(
        [f"memory number {number} is about tea" for number in range(100, 100 + BULK_SIZE)],
        user_id="b",
        infer=False,
    )
    once = ("known", "held", "add_evidence", "add_fact", "add_passage", "add_embedding")
    rows = {"add_entry": 2} | dict.fromkeys(once, 1)
    for name, each in rows.items():
        assert QUERIES[name] not in asked
        assert (
            asked.count(widen_values(name, ROWS_PER_STATEMENT))
            == each * BULK_SIZE // ROWS_PER_STATEMENT
        )


def test_a_commit_larger_than_the_cache_writes_no_page_early(memory: Memory) -> None:
    db: apsw.Connection = memory.engine.store._database.writer
    db.execute("PRAGMA cache_size = 20").fetchall()
    memory.add(
        [f"memory number {number} is about tea" for number in range(BULK_SIZE)],
        user_id="b",
        infer=False,
    )
    assert db.status(apsw.SQLITE_DBSTATUS_CACHE_SPILL) == (0, 0)


def test_a_search_of_a_cached_scope_reads_only_changes_and_hits(
    memory: Memory,
) -> None:
    add(memory, 0, 40)
    memory.search("tea", user_id="user1")
    database = memory.engine.store._database
    with database.borrow_connection() as lent:
        asked, aside = trace_statements(database.writer), trace_statements(lent)
    assert len(memory.search("tea", user_id="user1")["results"]) == 2
    assert len(asked) <= SEARCH_STATEMENTS, asked
    assert not aside


def test_a_search_after_an_add_rereads_no_page(memory: Memory) -> None:
    add(memory, 0, 40)
    memory.search("tea", user_id="user1")
    db: apsw.Connection = memory.engine.store._database.writer
    before, _ = db.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)
    add(memory, 41, 1)
    assert len(memory.search("tea", user_id="user1")["results"]) == 3
    after, _ = db.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)
    assert after == before


def test_only_passages_without_a_vector_are_pending(memory: Memory, tmp_path: Path) -> None:
    def waiting() -> int:
        return memory.engine.store._database.writer.execute(
            "SELECT count(*) FROM passage WHERE ready IS NULL"
        ).get

    add(memory, 0, 20)
    memory.add("memory number 1 is about tea", user_id="another", infer=False)
    assert waiting() == 0
    memory.rebuild()
    assert waiting() == 0
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as other:
        other.add(
            ["one without a vector", "memory number 2 is about tea"], user_id="user1", infer=False
        )
    assert waiting() == 1
    memory.reindex(hashing_embedder(dim=32, model="new"))
    assert waiting() == 0


BY_THREAD = {"thread": "t", "base": 0, "pos": 9, "seq": 9, "valid": 9}
ASKED: dict[str, Any] = {
    "close_passages": (9, 1),
    "drop_ticks": ("[1]",),
    "evidence_by_source": ("s", 0, 9),
    "evidence_by_space": ("[1]",),
    "evidence_held": (1, b"d"),
    "evidence_named": (0, 9, '["e"]'),
    "fact_latest": BY_THREAD,
    "fact_valid": BY_THREAD,
    "held": ("t", 0, 9),
    "known_threads": ('["t"]', 0, 9),
    "part_passages": (0, 9),
    "part_state": (1,),
    "passages_of_facts": ("[1]",),
    "retire_thread": (9, "t", 0, 9),
    "rows_evidence": (0, 9),
    "stirred": ("t", 0, 9),
    "taken": (0, 9, '["e"]'),
    "tellings": (0, 9, '["t"]'),
    "thread": ("t", 0, 9),
    "turn": ("t", 1),
    "turns": (1, 0, 9, 0, 9),
    "waiting": ('["00"]',),
}

ALLOWED_SCANS = ("SCAN CONSTANT ROW", "SCAN w")
"""A look through what was handed in."""


@pytest.mark.parametrize("query", ASKED)
def test_no_query_scans_a_full_table(memory: Memory, query: str) -> None:
    db: apsw.Connection = memory.engine.store._database.writer
    plan = [
        str(row[-1]) for row in db.execute(f"EXPLAIN QUERY PLAN {QUERIES[query]}", ASKED[query])
    ]
    looks = [step for step in plan if step.startswith("SCAN") and step not in ALLOWED_SCANS]
    assert not [step for step in looks if "VIRTUAL TABLE" not in step]
    assert not [step for step in plan if "AUTOMATIC" in step]
