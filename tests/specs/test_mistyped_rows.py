"""Cells of the wrong type are reported as corruption, with the command that repairs them."""

import asyncio

import apsw
import pytest

from told import AsyncMemory, Memory
from told.backends.sqlite.integrity import ACTIVE_READERS_WARNING
from told.backends.sqlite.store import SqliteStore
from told.errors import StoreCorrupt
from told.tools import doctor

BLOB = b"\xff\x00"
COLUMNS = [
    ("fact", "thread"),
    ("fact", "text"),
    ("fact", "created_at"),
    ("fact", "expires"),
    ("fact", "role"),
    ("fact", "confidence"),
    ("link", "weight"),
]
READS = {
    "get_all": lambda m: m.get_all(user_id="alice"),
    "search": lambda m: m.search("where do I live", user_id="alice"),
    "context": lambda m: m.context("where do I live", user_id="alice"),
    "about": lambda m: m.about(user_id="alice"),
    "timeline": lambda m: m.timeline(user_id="alice"),
    "relations": lambda m: m.relations("Acme", user_id="alice"),
}


def url(path):
    return f"sqlite:///{path}"


def execute_sql(path, sql, *values):
    db = apsw.Connection(str(path))
    db.execute(sql, values)
    db.close()


@pytest.fixture
def file(tmp_path):
    """Path of a store with two accounts that hold the same memories."""
    path = tmp_path / "memory.db"
    for account in ("acme", "two words"):
        with Memory(url(path), embedder="none", account=account) as memory:
            memory.add("I live in Lisbon and work at Acme", user_id="alice", idempotency_key="k")
            first, second = (row["id"] for row in memory.get_all(user_id="alice")["results"])
            memory.link(first, "relates_to", second, user_id="alice")
    return path


def read_errors(path, account="acme"):
    """Return the StoreCorrupt errors raised by the reads; other errors propagate."""
    errors = []
    with Memory(url(path), embedder="none", account=account) as memory:
        for read in READS.values():
            try:
                read(memory)
            except StoreCorrupt as error:
                errors.append(error)
    return errors


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_reading_mistyped_cell_raises_store_corrupt(table, column, file):
    execute_sql(file, f"UPDATE {table} SET {column} = ?", BLOB)
    assert read_errors(file)
    for error in read_errors(file):
        assert "told rebuild --account acme" in str(error)
        assert "told verify" in str(error)


def test_non_object_metadata_raises_store_corrupt(file):
    execute_sql(file, "UPDATE fact SET meta = '7.5'")
    assert read_errors(file)


def test_async_client_raises_store_corrupt(file):
    execute_sql(file, "UPDATE fact SET created_at = ?", BLOB)

    async def list_memories():
        async with AsyncMemory(url(file), embedder="none", account="acme") as memory:
            await memory.get_all(user_id="alice")

    with pytest.raises(StoreCorrupt, match="told rebuild"):
        asyncio.run(list_memories())


def test_type_error_of_a_guard_is_not_reported_as_damage(file):
    def guard(_):
        raise TypeError("mine")

    guarded = Memory(url(file), embedder="none", account="acme", guard=guard)
    with guarded as memory, pytest.raises(TypeError, match="mine"):
        memory.search("where do I live", user_id="alice")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE fact SET created_at = x'00'",
        "UPDATE ticket SET seq = x'00'",
        "UPDATE space SET part = 99",
        "UPDATE fact SET id = id + 1000",
        "UPDATE passage SET length = 0",
        "INSERT INTO cursor (account, consumer, seq) SELECT id, 'x', 99 FROM account",
    ],
)
def test_damage_in_two_accounts_names_both_rebuild_commands(sql, file):
    execute_sql(file, sql)
    with Memory(url(file), embedder="none", account="acme") as memory:
        advised = " ".join(memory.verify()["index_problems"])
    assert "`told rebuild --account acme`" in advised
    assert "`told rebuild --account 'two words'`" in advised
    for account in ("acme", "two words"):
        with Memory(url(file), embedder="none", account=account) as memory:
            memory.rebuild()
    for account in ("acme", "two words"):
        with Memory(url(file), embedder="none", account=account) as memory:
            assert memory.verify()["ok"], memory.verify()
            assert len(memory.get_all(user_id="alice")["results"]) == 2


def test_rebuild_repairs_only_its_account(file):
    execute_sql(file, "UPDATE fact SET created_at = ?", BLOB)
    with Memory(url(file), embedder="none", account="acme") as memory:
        memory.rebuild()
        (problem,) = memory.verify()["index_problems"]
    assert "acme" not in problem
    assert "`told rebuild --account 'two words'`" in problem


def test_problem_names_three_accounts_and_counts_the_rest(tmp_path):
    path = tmp_path / "memory.db"
    for number in range(5):
        with Memory(url(path), embedder="none", account=f"a{number}") as memory:
            memory.add("I live in Lisbon", user_id="alice")
    execute_sql(path, "UPDATE fact SET created_at = ?", BLOB)
    with Memory(url(path), embedder="none", account="a0") as memory:
        (problem,) = memory.verify()["index_problems"]
    assert problem.count("--account") == 3
    assert problem.endswith("and the same for 2 more accounts")


def test_account_with_damaged_name_is_not_named(file):
    execute_sql(file, "UPDATE fact SET created_at = ?", BLOB)
    execute_sql(file, "UPDATE account SET name = ? WHERE name = 'acme'", BLOB)
    execute_sql(file, "UPDATE ticket SET account = ? WHERE account = 1", BLOB)
    with Memory(url(file), embedder="none", account="two words") as memory:
        found = {
            problem.partition(":")[0]: problem for problem in memory.engine.store.check_integrity()
        }
    assert found["account"].endswith("restore the last backup")
    assert found["fact"].endswith("run `told rebuild --account 'two words'`")
    assert found["ticket"].endswith("run `told rebuild`")


def test_doctor_shows_the_rebuild_command(file):
    execute_sql(file, "UPDATE fact SET created_at = ? WHERE id >> 40 = 2", BLOB)
    checks = doctor.run_checks(store=url(file), embedder="none", account="acme")
    (found,) = [check for check in checks if check.name == "index"]
    assert found.fix == "Run `told rebuild --account 'two words'`."
    assert "told rebuild" not in found.detail


@pytest.mark.parametrize(
    ("problem", "what", "fix"),
    [
        (
            "fact: 1 row; run `told rebuild --account 'a; b'`",
            "fact: 1 row",
            "Run `told rebuild --account 'a; b'`.",
        ),
        (
            f"erasure: {ACTIVE_READERS_WARNING}",
            f"erasure: {ACTIVE_READERS_WARNING.split('; ')[0]}",
            ACTIVE_READERS_WARNING.split("; ")[1],
        ),
        ("file: page 3 is twice in use", "file: page 3 is twice in use", "Run `told rebuild`."),
    ],
)
def test_doctor_separates_problem_from_fix(problem, what, fix, file, monkeypatch):
    monkeypatch.setattr(SqliteStore, "check_integrity", lambda _: [problem])
    checks = doctor.run_checks(store=url(file), embedder="none", account="acme")
    assert [(check.detail, check.fix) for check in checks if check.name == "index"] == [(what, fix)]
