"""Code a user writes, which must type-check: every call below is one the documentation promises."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_type

from told import AsyncMemory, Bundle, Memory, NotFoundError, ScopeError, Settings, ToldError
from told.ports import Embedder, Purpose, Reranker, Vector
from told.testing import HashingEmbedder, ManualClock, seeded_mint

Answer = dict[str, Any]


class Lengths:
    """An embedder of one's own needs no base class."""

    model = "lengths"
    dim = 2
    local = True

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """Two numbers for each text."""
        return [[float(len(text)), 1.0 if purpose == "query" else 0.0] for text in texts]


class Shortest:
    """Neither does a reranker."""

    model = "shortest"

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """The shorter, the better, if it says what was asked for."""
        return [float(query in text) / (1 + len(text)) for text in texts]


def allowed(row: dict[str, Any]) -> bool | str:
    """A guard answers True, or why not."""
    return "private" not in row["metadata"] or "private"


def opening(folder: Path) -> None:
    """Every way to open a memory."""
    assert_type(Memory(), Memory)
    assert_type(Memory("ram://"), Memory)
    assert_type(
        Memory(f"sqlite:///{folder}/m.db", embedder="none", durability="normal", account="acme"),
        Memory,
    )
    assert_type(Memory(settings=Settings(store="ram://", limit=5)), Memory)
    assert_type(Memory.from_config({"vector_store": {"provider": "memory", "config": {}}}), Memory)
    assert_type(AsyncMemory.from_config({"history": {"db_path": "x.db"}}), AsyncMemory)
    embedder: Embedder = Lengths()
    mint = seeded_mint(1, ManualClock())
    with Memory("ram://", embedder=embedder, mint=mint) as memory:
        assert_type(memory, Memory)
        assert_type(memory.embedder, Embedder | None)
    with Memory("ram://", embedder=HashingEmbedder(32, "hash-32")) as memory:
        memory.close()
    judge: Reranker = Shortest()
    Memory("ram://", reranker=judge, guard=allowed, subscribes=["profile", "event"]).close()
    AsyncMemory(
        "ram://", reranker=lambda query, texts: [float(query in text) for text in texts]
    ).close()


def writing(memory: Memory) -> None:
    """Every way to write."""
    talk: list[Mapping[str, object]] = [
        {"role": "user", "content": "I moved", "timestamp": datetime.now(UTC)}
    ]
    assert_type(memory.add("I moved", user_id="alice"), Answer)
    assert_type(memory.add({"role": "user", "content": "I moved"}, agent_id="coder"), Answer)
    memory.add(
        talk,
        run_id="r",
        metadata={"tag": "home"},
        timestamp="2026-03-01",
        expiration_date="2027",
        infer=False,
        memory_type="procedural_memory",
        source="chat",
        idempotency_key="k",
    )
    assert_type(memory.update("id", "new text"), Answer)
    memory.update("id", data="new text", metadata={"a": [1, 2]}, expiration_date=None)
    memory.update("id", text="new text", user_id="alice")
    assert_type(memory.delete("id"), Answer)
    assert_type(memory.delete_all(user_id="alice"), Answer)
    assert_type(memory.retract("id", why="not so"), Answer)
    assert_type(memory.link("a", "supersedes", "b", user_id="alice", weight=0.5), Answer)
    assert_type(memory.erase("id"), Answer)
    assert_type(memory.erase(user_id="alice", why="asked to"), Answer)
    assert_type(memory.erase(source="chat"), Answer)
    assert_type(memory.reset(), Answer)


def reading(memory: Memory) -> str:
    """Every way to read."""
    wanted = {"AND": [{"tag": "work"}, {"n": {"gte": 1}}]}
    assert_type(memory.search("where?", user_id="alice", limit=5, filters=wanted), Answer)
    memory.search(
        "where?", filters={"user_id": "alice"}, top_k=5, threshold=0.1, rerank=False, explain=True
    )
    memory.search(
        "last week?", user_id="alice", kinds=["event"], min_score=0.1, reference_date="2026-03-01"
    )
    memory.search(
        "where?", user_id="alice", as_of="2026-03-01", valid_at=datetime(2025, 1, 1, tzinfo=UTC)
    )
    assert_type(memory.get("id"), Answer | None)
    assert_type(memory.get("id", as_of="#12", user_id="alice"), Answer | None)
    assert_type(memory.get_all(user_id="alice", limit=10, offset=10, show_expired=True), Answer)
    assert_type(memory.history("id"), list[Answer])
    assert_type(memory.timeline(user_id="alice", limit=3), Answer)
    assert_type(memory.diff("2026-01-01", "2026-02-01", user_id="alice"), Answer)
    assert_type(memory.explain("where?", user_id="alice", kinds="profile", rerank=True), Answer)
    assert_type(memory.why_not("where?", "id", user_id="alice", limit=3), Answer)
    bundle = memory.context("plan my weekend", user_id="alice", budget=800)
    assert_type(bundle, Bundle)
    assert_type(bundle.text, str)
    assert_type(bundle.tokens, int)
    memory.context(user_id="alice", format="markdown", tail=4)
    talk = memory.context(
        "plan my weekend", user_id="alice", format="messages", reference_date=datetime.now(UTC)
    )
    assert_type(talk.messages, tuple[Mapping[str, str], ...])
    return (
        f"{bundle}: {[hit.fact.text for hit in bundle.hits]} {bundle.trace.as_dict()} "
        f"{bundle.warnings}"
    )


def caring(memory: Memory, folder: Path) -> None:
    """Every way to look after a memory."""
    assert_type(memory.verify(), Answer)
    assert_type(memory.rebuild(), Answer)
    memory.rebuild(["facts", "passages"])
    assert_type(memory.reindex("local"), Answer)
    memory.reindex(Lengths())
    assert_type(memory.stats(), Answer)
    assert_type(memory.users(type="user"), Answer)
    assert_type(memory.export(folder / "ledger.jsonl"), Answer)
    memory.export(io.BytesIO())
    assert_type(memory.import_(folder / "ledger.jsonl"), Answer)
    memory.import_(b"")
    assert_type(memory.backup(folder / "copy.db"), Answer)
    assert_type(memory.about(user_id="alice", as_of="2026-03-01"), Answer)
    assert_type(memory.decay("id", points=10, clock="time"), Answer)
    assert_type(memory.forget("id"), Answer)


async def waiting() -> None:
    """The same, awaited."""
    async with AsyncMemory("ram://") as memory:
        assert_type(memory, AsyncMemory)
        assert_type(await memory.add("tea", user_id="alice"), Answer)
        assert_type(await memory.search("tea", user_id="alice"), Answer)
        assert_type(await memory.get("id"), Answer | None)
        assert_type(await memory.history("id"), list[Answer])
        assert_type(await memory.why_not("tea", "id", user_id="alice"), Answer)
        bundle = await memory.context("tea", user_id="alice", format="xml", tail=1)
        assert_type(bundle, Bundle)
        found = await asyncio.gather(
            memory.get_all(user_id="alice"), memory.stats(), memory.verify()
        )
        assert_type(found, tuple[Answer, Answer, Answer])


def failing(memory: Memory) -> str:
    """Errors are one family, and each is what Python programmers expect."""
    try:
        memory.add("tea")
    except ScopeError as error:
        assert_type(error.code, str)
        assert_type(error.status, int)
        value_error: ValueError = error
        return f"{value_error} {error.hint} {error.as_dict()}"
    except NotFoundError as error:
        missing: LookupError = error
        return str(missing)
    except ToldError as error:
        return error.message
    return ""
