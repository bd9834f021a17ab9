"""A killed erasure leaves either everything or nothing, to the last byte."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from told import Memory
from told.testing import hashing_embedder

CANARY = b"Xanthippe"
PROGRAM = """
import os, signal, sys
from told import Memory
from told.testing import hashing_embedder
memory = Memory("sqlite:///" + sys.argv[1], embedder=hashing_embedder())
for number in range(2):
    memory.add([f"Xanthippe {number} {part} " + "Xanthippe " * 40 for part in range(20)], user_id="alice")
    memory.add([f"bob is here {number} {part}" for part in range(10)], user_id="bob")
def die(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
memory.engine.store.watch(die)
print("erasing", flush=True)
memory.erase(user_id="alice")
print("erased", flush=True)
sys.stdin.read()
"""  # noqa: E501

pytestmark = [pytest.mark.crash, pytest.mark.xdist_group("crash")]


def erase_until_killed(path: Path, step: str, delay: float | None = None) -> bool:
    """Run an erasure that is killed; return whether it was acknowledged."""
    command = [sys.executable, "-c", PROGRAM, str(path), step]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "erasing\n"
        if delay is not None:
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        said = child.stdout.read()
    assert child.returncode == -signal.SIGKILL
    return said == "erased\n"


def count_survivors(path: Path) -> int:
    """Count Alice's memories; if none is left, check that no byte of them is left."""
    with Memory(f"sqlite:///{path}", embedder=hashing_embedder()) as memory:
        left = len(memory.get_all(user_id="alice", limit=1000)["results"])
        verdict = memory.verify()
        assert verdict["ok"], verdict
        assert len(memory.get_all(user_id="bob", limit=1000)["results"]) == 20
        if not left:
            assert [
                file.name for file in path.parent.iterdir() if CANARY in file.read_bytes()
            ] == []
    return left


@pytest.mark.parametrize(("step", "left"), [("begun", 40), ("written", 40), ("committed", 0)])
def test_erasure_killed_at_a_transaction_step_is_complete_or_absent(
    tmp_path: Path, step: str, left: int
) -> None:
    erase_until_killed(tmp_path / "m.db", step)
    assert count_survivors(tmp_path / "m.db") == left


def test_erasure_killed_at_any_moment_is_complete_or_absent(tmp_path: Path) -> None:
    dice = random.Random(7)
    for number in range(4):
        path = tmp_path / str(number) / "m.db"
        acknowledged = erase_until_killed(path, "never", dice.uniform(0, 0.08))
        assert count_survivors(path) in ((0,) if acknowledged else (0, 40))
