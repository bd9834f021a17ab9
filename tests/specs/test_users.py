"""List users, agents and runs with their memory counts, the same in every store."""

from pathlib import Path

import pytest

from told import AsyncMemory, InvalidInput, Memory
from told.engine import Engine
from told.flow import run
from told.model.scope import Caller
from told.testing import ManualClock, seeded_mint


@pytest.fixture(params=["sqlite", "ram"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db" if request.param == "sqlite" else "ram://"


def open_populated(url: str) -> tuple[Memory, ManualClock]:
    """Open a memory with two users, an agent and a run, written a second apart."""
    clock = ManualClock()
    memory = Memory(url, embedder="none", mint=seeded_mint(1, clock))
    for text, scope in (
        ("I live in Lisbon and work at Acme", {"user_id": "mara"}),
        ("Commas go inside the quotes", {"agent_id": "editor"}),
        (
            "I am writing a novel about the sea",
            {"user_id": "mara", "agent_id": "editor", "run_id": "r1"},
        ),
        ("I live in Hamburg", {"user_id": "jonas"}),
    ):
        memory.add(text, **scope)
        clock.tick()
    return memory, clock


def test_users_agents_and_runs_are_listed_with_counts_and_dates(url: str) -> None:
    memory, _ = open_populated(url)
    rows = {(row["type"], row["name"]): row for row in memory.users()["results"]}
    assert list(rows) == [("user", "jonas"), ("user", "mara"), ("agent", "editor"), ("run", "r1")]
    for (sort, name), row in rows.items():
        assert row["total_memories"] == len(memory.get_all(**{f"{sort}_id": name})["results"])
    mara, jonas = rows["user", "mara"], rows["user", "jonas"]
    assert mara["created_at"][17:19] == "00"
    assert mara["updated_at"][17:19] == "02"
    assert jonas["created_at"][17:19] == jonas["updated_at"][17:19] == "03"
    assert rows["agent", "editor"]["created_at"][17:19] == "01"
    memory.close()


def test_user_counts_add_up_to_the_stats_total(url: str) -> None:
    memory, clock = open_populated(url)
    memory.add("milk", user_id="jonas", expiration_date=1, infer=False)
    memory.delete(memory.get_all(user_id="jonas")["results"][0]["id"])
    clock.tick()
    users = memory.users(type="user")["results"]
    agent_counts = [row["total_memories"] for row in memory.users(type="agent")["results"]]
    assert agent_counts == [2]
    assert sum(row["total_memories"] for row in users) == memory.stats()["memories"] - 1, (
        "one belongs to no user"
    )
    memory.close()


def test_erased_user_is_not_listed_and_user_with_all_deleted_is(url: str) -> None:
    memory, _ = open_populated(url)
    memory.delete_all(user_id="jonas")
    memory.erase(user_id="mara")
    rows = memory.users(type="user")["results"]
    assert [(row["name"], row["total_memories"]) for row in rows] == [("jonas", 0)]
    memory.close()


def test_filter_by_type_and_unknown_type_is_rejected(url: str) -> None:
    memory, _ = open_populated(url)
    assert [row["name"] for row in memory.users(type="run")["results"]] == ["r1"]
    with pytest.raises(InvalidInput, match="agnt") as refused:
        memory.users(type="agnt")
    assert refused.value.hint == "Did you mean 'agent'?"
    memory.close()


def test_other_accounts_are_not_listed(url: str) -> None:
    memory, _ = open_populated(url)
    other_engine = Engine(
        memory.engine.store, memory.engine.settings, caller=Caller("local", "elsewhere")
    )
    assert list(run(other_engine.users())) == []
    memory.close()


async def _list_users_async(url: str) -> object:
    async with AsyncMemory(url, embedder="none", mint=seeded_mint(1, ManualClock())) as memory:
        await memory.add("I live in Lisbon", user_id="mara")
        return await memory.users()


def test_sync_and_async_return_the_same() -> None:
    import asyncio

    with Memory("ram://", embedder="none", mint=seeded_mint(1, ManualClock())) as memory:
        memory.add("I live in Lisbon", user_id="mara")
        assert asyncio.run(_list_users_async("ram://")) == memory.users()
