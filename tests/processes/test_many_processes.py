"""Many processes on one file: no write is lost, no lock error is raised, no foreign memory is
returned.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.ports import VIEWS
from told.testing import hashing_embedder

WORKER = Path(__file__).parent / "worker.py"
SECONDS = 3.0


class Process:
    """A worker process and its pipes."""

    def __init__(self, path: Path | str) -> None:
        command = [sys.executable, str(WORKER), str(path)]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, **order: Any) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(order) + "\n")
        self.child.stdin.flush()

    def answer(self) -> Any:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        assert line, "the worker died"
        return json.loads(line)

    def ask(self, **order: Any) -> Any:
        self.tell(**order)
        return self.answer()

    def end(self) -> None:
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Process]]:
    """Start a worker on the test's file."""
    started: list[Process] = []

    def start() -> Process:
        started.append(Process(tmp_path / "m.db"))
        assert started[-1].answer() == "ready"
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.fixture(scope="module")
def crowd() -> Iterator[Callable[[Path, list[dict[str, Any]]], list[Any]]]:
    """Run each order in a separate process, all at the same time."""
    process = Process("crowd")
    yield lambda path, orders: process.ask(path=str(path), orders=orders)
    process.end()


def open_memory(path: Path) -> Memory:
    return Memory(f"sqlite:///{path}", embedder=hashing_embedder(dim=16, model="hash-16"))


def test_eight_writers_and_eight_readers_share_a_file(crowd: Any, tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(8)]
    answers = crowd(
        tmp_path / "m.db",
        [
            {"do": do, "name": name, "seconds": SECONDS}
            for do in ("write", "read")
            for name in names
        ],
    )
    assert [answer["error"] for answer in answers if "error" in answer] == []
    wrote, saw = answers[:8], answers[8:]
    assert [answer["leaked"] for answer in saw] == [[]] * 8
    assert all(answer["looked"] for answer in saw)
    assert any(answer["most"] for answer in saw)
    with open_memory(tmp_path / "m.db") as memory:
        for number, answer in enumerate(wrote):
            assert list_memories(memory, f"w{number}") == answer["held"]
        most = max(answer["done"] for answer in wrote)
        assert sorted(list_memories(memory, "common").values()) == sorted(
            f"shared thought {n}" for n in range(min(most, 20))
        )
        assert_sound(memory)


def list_memories(memory: Memory, user: str) -> dict[str, str]:
    rows: list[dict[str, Any]] = []
    while page := memory.get_all(user_id=user, limit=1000, offset=len(rows))["results"]:
        rows += page
    return {row["id"]: row["memory"] for row in rows}


def assert_sound(memory: Memory) -> None:
    """Check that the ledger is dense and verifies, and that its views equal a rebuild."""
    store = memory.engine.store
    entries = []
    while page := store.scan_entries("default", len(entries), 1000):
        entries += page
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert all(before.at <= after.at for before, after in pairwise(entries))
    verdict = memory.verify()
    assert verdict["ok"], verdict
    grown = {view: list(store.view_rows("default", view)) for view in VIEWS}
    memory.rebuild()
    assert {view: list(store.view_rows("default", view)) for view in VIEWS} == grown


def test_memory_added_by_one_process_is_found_by_all_at_once(
    start: Callable[[], Process], tmp_path: Path
) -> None:
    old = start()
    with open_memory(tmp_path / "m.db") as memory:
        assert old.ask(do="search", text="anything", user="alice") == []
        for number in range(30):
            id_ = memory.add(f"the word is zebra{number}", user_id="alice")["results"][0]["id"]
            assert id_ in old.ask(do="search", text=f"zebra{number}", user="alice")
            theirs = old.ask(do="add", text=f"the answer is okapi{number}", user="alice")[
                "results"
            ][0]["id"]
            assert theirs in {
                row["id"]
                for row in memory.search(f"okapi{number}", user_id="alice", limit=3)["results"]
            }
            assert memory.get(theirs)["memory"] == f"the answer is okapi{number}"
        fresh = start()
        assert id_ in fresh.ask(do="search", text="zebra29", user="alice")


def test_memory_changed_or_erased_by_one_process_is_found_by_none(
    start: Callable[[], Process], tmp_path: Path
) -> None:
    other = start()
    with open_memory(tmp_path / "m.db") as memory:
        ids = [
            memory.add(f"the word is zebra{n}", user_id="alice")["results"][0]["id"]
            for n in range(4)
        ]
        memory.add("bob has a zebra too", user_id="bob")
        assert set(other.ask(do="search", text="zebra0 zebra1 zebra2", user="alice")) <= set(ids)
        memory.update(ids[0], "the word is okapi")
        assert ids[0] in other.ask(do="search", text="okapi", user="alice")
        memory.delete(ids[1])
        assert ids[1] not in other.ask(do="search", text="zebra1", user="alice")
        memory.erase(ids[2])
        assert ids[2] not in other.ask(do="search", text="zebra2", user="alice")
        memory.erase(user_id="alice")
        assert other.ask(do="search", text="zebra okapi", user="alice") == []
        assert other.ask(do="get_all", user="alice") == []
        assert len(other.ask(do="search", text="zebra", user="bob")) == 1
        other.ask(do="add", text="alice is back with a zebra", user="alice")
        assert [row["memory"] for row in memory.search("zebra", user_id="alice")["results"]] == [
            "alice is back with a zebra"
        ]
        memory.reset()
        assert other.ask(do="search", text="zebra", user="bob") == []
        other.ask(do="add", text="a new zebra", user="bob")
        assert [row["memory"] for row in memory.search("zebra", user_id="bob")["results"]] == [
            "a new zebra"
        ]


def test_many_processes_may_create_a_file_at_once(crowd: Any, tmp_path: Path) -> None:
    orders = [
        {"do": "add", "text": f"I am number {number}", "user": "alice"} for number in range(8)
    ]
    for turn in range(12):
        path = tmp_path / "new folder" / f"{turn}.db"
        answers = crowd(path, orders)
        assert [answer for answer in answers if "error" in answer] == []
        with open_memory(path) as memory:
            assert sorted(list_memories(memory, "alice").values()) == sorted(
                f"I am number {n}" for n in range(8)
            )
            assert_sound(memory)
