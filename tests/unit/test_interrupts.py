"""Ctrl-C at any point leaves a working store: no held lock, stale snapshot or partial partition."""

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from told import Memory
from told.backends.sqlite import group_commit
from told.backends.sqlite.store import open_store
from told.errors import Conflict
from told.testing import hashing_embedder

TRACED_FILES = (
    "group_commit.py",
    "connection.py",
    "index.py",
    "partition.py",
    "partition_numpy.py",
)
"""Where locks and snapshots are taken and partitions are kept."""
STRIDE = 2


class Interrupt(BaseException):
    """The exception raised by the signal handler."""


@cache
def moments(code: CodeType) -> frozenset[int]:
    """Return the offsets where Python checks for signals: after calls and at function entry."""
    steps = list(dis.get_instructions(code))
    return frozenset(
        after.offset for before, after in pairwise(steps) if before.opname in ("CALL", "RESUME")
    )


class Interrupted:
    """Raise at one point of a block where a signal could reach the store's code."""

    def __init__(self, moment: int, again: int | None = None) -> None:
        self.left, self.again, self.struck = moment, again, 0

    def __enter__(self) -> None:
        sys.settrace(self.trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(TRACED_FILES):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti in moments(frame.f_code):
            self.left -= 1
            if self.left < 0:
                self.struck += 1
                if self.struck > 1 or self.again is None:
                    sys.settrace(None)
                else:
                    self.left = self.again
                raise Interrupt
        return self.trace


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder(), busy_timeout=5.0)
    yield memory
    run_with_timeout(memory.close)


def run_with_timeout(work: Callable[[], Any]) -> Any:
    """Return the result of some work, which must not block on a dead thread."""
    given: list[Any] = []
    thread = threading.Thread(target=lambda: given.append(work()), daemon=True)
    thread.start()
    thread.join(10)
    assert given, "it waits, or has failed"
    return given[0]


def search(memory: Memory) -> list[tuple[str, float]]:
    found = memory.search("which tea is it", user_id="alice", limit=5)["results"]
    return [(row["memory"], row["score"]) for row in found]


OPERATIONS: dict[str, Callable[[Memory, int], Any]] = {
    "a search": lambda memory, _: search(memory),
    "a listing": lambda memory, _: memory.get_all(user_id="alice", limit=2),
    "an add": lambda memory, number: memory.add(f"coffee {number}", user_id="bob", infer=False),
}


@pytest.mark.parametrize("act", OPERATIONS)
def test_an_interrupted_operation_leaves_a_working_up_to_date_store(
    memory: Memory, act: str
) -> None:
    kept: list[BaseException] = []  # as interactive Python keeps the last exception and its frames
    for number in range(0, 10_000, STRIDE):
        memory.add(f"tea number {number}", user_id="alice", infer=False)
        try:
            with Interrupted(number):
                OPERATIONS[act](memory, number)
            break
        except Interrupt as error:
            kept[:] = [error]
        run_with_timeout(
            lambda n=number: memory.add(f"word{n} for a tea", user_id="alice", infer=False)
        )
        told = run_with_timeout(
            lambda n=number: memory.search(f"word{n}", user_id="alice", limit=1)["results"]
        )
        assert [row["memory"] for row in told] == [f"word{number} for a tea"]
        assert len(memory.get_all(user_id="alice", limit=1000)["results"]) == 2 * (
            number // STRIDE + 1
        )
    assert number > 10, "it was interrupted at many moments"
    assert memory.verify()["ok"]
    with Memory(f"sqlite:///{memory.engine.store.path}", embedder=hashing_embedder()) as fresh:
        assert search(memory) == search(fresh)


class Group:
    """A leader that writes for three followers, of which the second fails."""

    def __init__(self, path: Path) -> None:
        self.store = open_store(f"sqlite:///{path}", settings={"busy_timeout": 5.0})
        self.store._write(
            lambda db: db.execute("CREATE TABLE IF NOT EXISTS tried (who TEXT)").fetchall()
        )
        self.begun, self.joined = threading.Event(), threading.Event()
        self.fates: dict[str, str] = {}

    def run(self, moment: int, again: int | None) -> int:
        """Run all writers, interrupt the leader once or twice, and count the interrupts."""
        others = [
            threading.Thread(target=self.write, args=(who,), daemon=True)
            for who in ("good", "bad", "late")
        ]
        for other in others:
            other.start()
        struck = Interrupted(moment, again)
        with struck, suppress(Interrupt):
            self.store._write(self.lead)
            self.fates["lead"] = "done"
        self.begun.set()
        self.joined.set()
        for other in others:
            other.join(10)
        return struck.struck

    def lead(self, db: Any) -> None:
        db.execute("INSERT INTO tried VALUES ('lead')")
        self.begun.set()
        while len(self.store._write._queue) < 3 and not self.joined.wait(0.001):
            pass
        self.joined.set()

    def write(self, who: str) -> None:
        def work(db: Any) -> None:
            db.execute("INSERT INTO tried VALUES (?)", (who,))
            if who == "bad":
                raise Conflict("as it was meant to")

        self.begun.wait(10)
        try:
            self.store._write(work)
            self.fates[who] = "done"
        except Conflict:
            self.fates[who] = "refused"

    def kept(self) -> list[str]:
        return sorted(
            who
            for (who,) in self.store._write(
                lambda db: db.execute("SELECT who FROM tried").fetchall()
            )
        )


@pytest.mark.parametrize("again", [None, 0, 2], ids=["once", "twice at once", "twice"])
def test_interrupting_a_group_leader_still_reports_each_followers_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: int | None
) -> None:
    monkeypatch.setattr(group_commit, "MAX_SLEEP_SECONDS", 0.02)
    for moment in range(0, 10_000, 2):
        group = Group(tmp_path / f"{moment}.db")
        struck = group.run(moment, again)
        led = group.fates.pop("lead", None)
        assert group.fates == {"good": "done", "bad": "refused", "late": "done"}, moment
        kept = run_with_timeout(group.kept)
        assert [who for who in kept if who != "lead"] == ["good", "late"], moment
        assert kept.count("lead") == 1 if led else kept.count("lead") <= 1, moment
        run_with_timeout(lambda group=group: group.store.close() or True)
        if not struck:
            return
    raise AssertionError("it never came to an end")
