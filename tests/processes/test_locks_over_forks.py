"""Locks held by another thread during a fork are free in the child."""

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from subprocess import run
from typing import Any, Self

import pytest

from forking import PATIENCE, child, went_well
from locks import locks
from told import Memory, runtime
from told.ontology import MemoryStore
from told.plugins.adapters import wrap_with_cache
from told.providers.http import client
from told.providers.local import llm as local_llm
from told.providers.local import open_embedder
from told.runtime import acquire_on_fork, at_fork, reset_on_fork
from told.testing import ScriptedLLM, hashing_embedder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
LEAST = 5.0
"""Seconds to wait for a free lock; far more than needed."""
LIKES = {"description": "What they like.", "persistence_class": "long_term", "salience_weight": 0.8}
KINDS = {"concepts": {"likes": LIKES}}


class LocksHeld:
    """Hold locks in another thread; those a fork waits for are released once the fork begins."""

    def __init__(self, found: list[Any]) -> None:
        self._found = found
        self._taken, self._over = threading.Event(), threading.Event()
        waited = {
            id(ref())
            for ref, names in runtime._HOOKS.values()
            if names[runtime.BEFORE] == "acquire"
        }
        self._awaited = [lock for lock in found if id(lock) in waited]
        self._thread = threading.Thread(target=self._hold)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._taken.wait(LEAST)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _hold(self) -> None:
        for lock in self._found:
            assert lock.acquire(timeout=LEAST)
        self._taken.set()
        self._over.wait(0.2)
        for lock in self._awaited:
            lock.release()
        self._over.wait()
        for lock in self._found:
            if lock not in self._awaited:
                lock.release()


@pytest.fixture
def objects_in_use(tmp_path: Path) -> Iterator[list[Any]]:
    """Return told's objects that own locks, in use."""
    with ExitStack() as stack:
        llm = wrap_with_cache(ScriptedLLM([]), 8)
        made = [
            stack.enter_context(
                Memory(store, embedder=hashing_embedder(), llm=llm, busy_timeout=0.1)
            )
            for store in (f"sqlite:///{tmp_path}/m.db", "ram://")
        ]
        for memory in made:
            memory.add("I like tea and long walks", user_id="alice", infer=False)
            memory.search("tea", user_id="alice")
        yield [*made, MemoryStore(KINDS, 0.8, hashing_embedder()), open_embedder("minilm")]


def test_every_lock_is_free_in_a_child_process(objects_in_use: list[Any]) -> None:
    client.get_loop_thread()
    found = list(locks(objects_in_use, vars(local_llm)))
    owners = {owner.rpartition(".")[2] for owner, _ in found}
    assert owners >= {
        "HotBuffers",
        "AccessBuffer",
        "EchoFilter",
        "Mutex",
        "BackgroundWorker",
        "UsageMeter",
        "CachedToolLLM",
        "ScriptedLLM",
        "TopicCache",
        "GroupCommitWriter",
        "Database",
        "PartitionCache",
        "NumpyPartition",
        "InMemoryStore",
        "InProcessFacts",
        "TextVectors",
        "OnnxEmbedder",
        "_BackgroundLoop",
        "client",
        "llm",
    }

    def live() -> None:
        stuck = {owner for owner, lock in locks(objects_in_use) if not lock.acquire(timeout=LEAST)}
        assert not stuck, stuck

    with LocksHeld([lock for _, lock in found]):
        assert went_well(child(live))


def test_released_locks_work_in_a_child() -> None:
    lock, other = reset_on_fork(threading.Lock()), acquire_on_fork(threading.RLock())

    def live() -> None:
        with lock, other:
            pass
        assert not lock.locked()

    with LocksHeld([lock, other]):
        assert went_well(child(live))
        assert lock.locked()
    with other:
        assert went_well(child(live))


def test_fork_waits_for_a_critical_section() -> None:
    asked, answered = threading.Event(), threading.Event()

    def alike(_one: str, _other: str) -> float:
        asked.set()
        answered.wait(PATIENCE)
        return 0.0

    store = MemoryStore(KINDS, 0.8, alike)
    store.upsert("likes", "tea")
    sayer = threading.Thread(target=store.upsert, args=("likes", "long walks"))
    sayer.start()
    assert asked.wait(PATIENCE)
    threading.Timer(0.1, answered.set).start()

    def live() -> None:
        assert [fact.value for fact in store.facts.values()] == ["tea", "long walks"]

    assert went_well(child(live))
    sayer.join()


def test_fork_hooks_of_collected_objects_are_removed() -> None:
    called = list[str]()

    class Part:
        def __init__(self, name: str) -> None:
            self.name = name
            at_fork(self, in_child="renew", before="leave")

        def renew(self) -> None:
            called.append(f"renew {self.name}")

        def leave(self) -> None:
            called.append(f"leave {self.name}")

    gc.collect()
    before = len(runtime._HOOKS)
    one, two, three = Part("one"), Part("two"), Part("three")
    del two
    gc.collect()
    assert len(runtime._HOOKS) == before + 2

    def live() -> None:
        assert called == ["leave three", "leave one", "renew one", "renew three"]

    assert went_well(child(live))
    del one, three
    gc.collect()
    assert len(runtime._HOOKS) == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_failing_fork_hook_does_not_stop_the_others() -> None:
    class Failing:
        def fail(self) -> None:
            raise RuntimeError("as it was told to")

    class Renewed:
        done = False

        def renew(self) -> None:
            self.done = True

    first, failing, last = Renewed(), Failing(), Renewed()
    for one, name in ((first, "renew"), (failing, "fail"), (last, "renew")):
        at_fork(one, in_child=name)

    def live() -> None:
        assert first.done
        assert last.done

    assert went_well(child(live))


ENDED = """
import os, signal, sys
from told.providers.local import open_embedder
inherited = open_embedder("minilm")
inherited.embed(["tea"])
number = os.fork()
if number == 0:
    signal.alarm(20)
    inherited.embed(["coffee"])
    sys.exit(0)
sys.exit(os.waitpid(number, 0)[1] != 0)
"""


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="there is no onnxruntime here")
def test_child_uses_an_inherited_model_exits_and_sends_no_telemetry(
    tmp_path: Path,
) -> None:
    reporting = ("CI", "ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "GITHUB_ACTIONS")
    environment = {name: value for name, value in os.environ.items() if name not in reporting}
    done = run(
        [sys.executable, "-c", ENDED],
        env={**environment, "HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert not [path for path in tmp_path.rglob("*") if "onnxruntime" in path.name]
