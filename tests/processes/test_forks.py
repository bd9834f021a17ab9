"""A memory that is open during a fork works in both processes and loses no write."""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from forking import PATIENCE, child, went_well
from told import Memory
from told.api.worker import BackgroundWorker
from told.errors import StoreClosed
from told.ingest.context import Mutex
from told.testing import hashing_embedder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def open_memory(path: Path, **settings: float) -> Memory:
    return Memory(f"sqlite:///{path}", embedder=hashing_embedder(), **settings)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "m.db") as memory:
        memory.add("from the parent", user_id="alice")
        yield memory


@pytest.mark.parametrize("anew", [False, True], ids=["inherited", "opened anew"])
def test_writes_of_a_child_survive_its_parent_closing_first(memory: Memory, anew: bool) -> None:
    (ready, begun), (left, gone) = os.pipe(), os.pipe()
    path = memory.engine.store.path

    def live() -> None:
        os.close(gone)
        own = open_memory(path) if anew else memory
        own.add("before", user_id="alice")
        os.write(begun, b"!")
        os.read(left, 1)
        own.add("after", user_id="alice")
        assert len(own.get_all(user_id="alice")["results"]) == 3

    number = child(live)
    os.read(ready, 1)
    memory.close()
    os.close(gone)
    assert went_well(number)
    for end in (ready, begun, left):
        os.close(end)
    with open_memory(path) as again:
        told = [row["memory"] for row in again.get_all(user_id="alice")["results"]]
        assert told == ["from the parent", "before", "after"]


def test_process_can_fork_while_its_threads_write_and_read(memory: Memory) -> None:
    stop, told, failed = threading.Event(), list[str](), list[BaseException]()

    def busy(number: int) -> None:
        try:
            for turn in range(10_000):
                if stop.is_set():
                    return
                memory.search("number", user_id="alice")
                memory.get_all(user_id="alice", limit=3)
                told.append(
                    memory.add(f"number {turn} of {number}", user_id="alice")["results"][0]["id"]
                )
        except BaseException as error:
            failed.append(error)

    def live() -> None:
        memory.add(f"from child {os.getpid()}", user_id="bob")
        assert memory.search("child", user_id="bob")["results"]
        assert memory.get_all(user_id="alice")["results"]

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    fates = [went_well(child(live)) for _ in range(6)]
    stop.set()
    for thread in threads:
        thread.join()
    assert fates == [True] * 6
    assert failed == []
    assert len(memory.get_all(user_id="bob")["results"]) == 6
    assert set(told) <= {
        entry.thread for entry in memory.engine.store.scan_entries("default", 0, 100_000)
    }
    assert memory.verify()["ok"]


def test_parent_sees_its_childs_writes_and_continues(memory: Memory) -> None:
    memory.search("parent", user_id="alice")
    assert went_well(child(lambda: memory.add("from the child", user_id="alice")))
    memory.add("from the parent again", user_id="alice")
    found = {row["memory"] for row in memory.search("from", user_id="alice")["results"]}
    assert found == {"from the parent", "from the child", "from the parent again"}
    assert [entry.seq for entry in memory.engine.store.scan_entries("default")] == list(range(1, 7))


def test_store_is_closed_in_a_child_forked_during_a_transaction(tmp_path: Path) -> None:
    def live() -> None:
        with pytest.raises(StoreClosed):
            memory.add("from the child", user_id="alice")
        with pytest.raises(StoreClosed):
            memory.get_all(user_id="alice")

    with open_memory(tmp_path / "m.db", busy_timeout=0.1) as memory:
        memory.add("from the parent", user_id="alice")
        with memory.engine.store._database.read_transaction():
            assert went_well(child(live))
        memory.add("from the parent again", user_id="alice")
        assert len(memory.get_all(user_id="alice")["results"]) == 2


def test_child_can_use_an_async_embedder(tmp_path: Path) -> None:
    plain = hashing_embedder()

    class Awaited:
        model, dim, local = plain.model, plain.dim, True

        async def embed(self, texts: Sequence[str], purpose: str = "passage") -> Any:
            return plain.embed(texts, purpose)

    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=Awaited()) as memory:
        memory.add("from the parent", user_id="alice")
        assert went_well(child(lambda: memory.add("from the child", user_id="alice")))
        assert len(memory.get_all(user_id="alice")["results"]) == 2


def test_mutex_held_by_the_parent_is_free_in_a_child() -> None:
    turnstile = Mutex()
    assert turnstile.try_acquire()

    def live() -> None:
        assert turnstile.try_acquire()
        assert not turnstile.try_acquire()

    assert went_well(child(live))
    assert not turnstile.try_acquire()


def test_child_runs_its_own_background_work() -> None:
    done: list[int] = []

    def work() -> bool:
        done.append(os.getpid())
        return True

    def live() -> None:
        worker.wake()
        assert worker.stop(PATIENCE)
        assert done[-1] == os.getpid()

    worker = BackgroundWorker(work)
    worker.wake()
    assert went_well(child(live))
    assert worker.stop(PATIENCE)


def test_child_can_use_a_ram_store_busy_in_another_thread() -> None:
    over = threading.Event()
    with Memory("ram://", embedder="none") as memory:

        def talk() -> None:
            number = 0
            while not over.is_set():
                number += 1
                memory.add(f"tea {number}", user_id="alice", infer=False)

        talker = threading.Thread(target=talk)
        talker.start()
        try:
            children = [child(lambda: memory.get_all(user_id="alice")) for _ in range(20)]
            assert [went_well(number) for number in children] == [True] * 20
        finally:
            over.set()
            talker.join()
