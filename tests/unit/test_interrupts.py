"""Ctrl-C at any moment leaves a store that works: no lock taken, no old snapshot, no half-made partition."""

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from told import Memory
from told.testing import hashing_embedder

HOLDERS = ("writer.py", "connect.py", "index.py", "partition.py", "arrays.py")
"""Where locks and snapshots are taken and partitions are kept."""
STRIDE = 2


class Interrupt(BaseException):
    """What a signal handler raises."""


@cache
def moments(code: CodeType) -> frozenset[int]:
    """Where Python looks for signals: behind every call, and where a function begins."""
    steps = list(dis.get_instructions(code))
    return frozenset(after.offset for before, after in pairwise(steps) if before.opname in ("CALL", "RESUME"))


class Interrupted:
    """Raises at one of the moments of a block at which a signal could strike the store's code."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def __enter__(self) -> None:
        sys.settrace(self.trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(HOLDERS):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti in moments(frame.f_code):
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise Interrupt
        return self.trace


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder(), busy_timeout=5.0)
    yield memory
    within_reason(memory.close)


def within_reason(work: Callable[[], Any]) -> Any:
    """What some work gives, which must not wait for anybody who is gone."""
    given: list[Any] = []
    thread = threading.Thread(target=lambda: given.append(work()), daemon=True)
    thread.start()
    thread.join(10)
    assert given, "it waits, or has failed"
    return given[0]


def search(memory: Memory) -> list[tuple[str, float]]:
    found = memory.search("which tea is it", user_id="alice", limit=5)["results"]
    return [(row["memory"], row["score"]) for row in found]


ACTS: dict[str, Callable[[Memory, int], Any]] = {
    "a search": lambda memory, _: search(memory),
    "a listing": lambda memory, _: memory.get_all(user_id="alice", limit=2),
    "an add": lambda memory, number: memory.add(f"coffee {number}", user_id="bob", infer=False),
}


@pytest.mark.parametrize("act", ACTS)
def test_whatever_is_interrupted_leaves_a_store_that_works_and_sees_what_is_new(memory: Memory, act: str) -> None:
    kept: list[BaseException] = []  # as an interactive Python keeps the last one, with all its frames
    for number in range(0, 10_000, STRIDE):
        memory.add(f"tea number {number}", user_id="alice", infer=False)
        try:
            with Interrupted(number):
                ACTS[act](memory, number)
            break
        except Interrupt as error:
            kept[:] = [error]
        within_reason(lambda n=number: memory.add(f"word{n} for a tea", user_id="alice", infer=False))
        told = within_reason(lambda n=number: memory.search(f"word{n}", user_id="alice", limit=1)["results"])
        assert [row["memory"] for row in told] == [f"word{number} for a tea"]
        assert len(memory.get_all(user_id="alice", limit=1000)["results"]) == 2 * (number // STRIDE + 1)
    assert number > 10, "it was interrupted at many moments"
    assert memory.verify()["ok"]
    with Memory(f"sqlite:///{memory.engine.store.path}", embedder=hashing_embedder()) as fresh:
        assert search(memory) == search(fresh)
