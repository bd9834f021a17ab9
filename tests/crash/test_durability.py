"""Acknowledged writes survive power loss by default; lower durability settings sync less."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from told import Memory
from told.testing import hashing_embedder

FULL, NORMAL = 2, 1
STRACE = shutil.which("strace")
PROGRAM = """
import os, sys
from told import Memory
memory = Memory("sqlite:///" + sys.argv[1], embedder="none", durability=sys.argv[2])
memory.add("first", user_id="alice")
os.write(2, b"BEFORE")
memory.add("second", user_id="alice")
os.write(2, b"AFTER")
os._exit(0)
"""


def read_pragma(memory: Memory, name: str) -> object:
    return memory.engine.store._database.writer.execute(f"PRAGMA {name}").get


@pytest.mark.parametrize(
    ("chosen", "level"),
    [({}, FULL), ({"durability": "full"}, FULL), ({"durability": "normal"}, NORMAL)],
)
def test_synchronous_pragma_follows_the_setting(
    tmp_path: Path, chosen: dict[str, str], level: int
) -> None:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none", **chosen) as memory:
        memory.add("tea", user_id="alice")
        assert read_pragma(memory, "synchronous") == level
        assert read_pragma(memory, "journal_mode") == "wal"


def test_connection_stays_in_full_sync_after_erase_and_reindex(tmp_path: Path) -> None:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as memory:
        memory.add("tea", user_id="alice")
        memory.erase(user_id="alice")
        memory.reindex(hashing_embedder(dim=8, model="hash-8"))
        assert read_pragma(memory, "synchronous") == FULL
        assert read_pragma(memory, "journal_mode") == "wal"


def trace_add(path: Path, durability: str) -> list[str]:
    """Return the write and sync calls of one add, in order; skip where tracing is not allowed."""
    log = path.with_suffix(".strace")
    command = [STRACE, "-f", "-y", "-e", "trace=write,pwrite64,fsync,fdatasync", "-o", str(log)]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, str(path), durability],
        check=False,
        capture_output=True,
        text=True,
    )
    if not log.exists() or "BEFORE" not in log.read_text():
        pytest.skip(f"strace may not trace here: {done.stderr.strip()[-200:]}")
    inside = log.read_text().split("BEFORE")[1].split("AFTER")[0]
    return [
        f"{call} {name}"
        for call, name in re.findall(
            r"\b(pwrite64|fdatasync|fsync)\(\d+<[^>]*?(-wal|\.db)>", inside
        )
    ]


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_acknowledged_add_is_synced_after_its_last_write(tmp_path: Path) -> None:
    calls = trace_add(tmp_path / "m.db", "full")
    assert "pwrite64 -wal" in calls
    assert calls[-1] in ("fdatasync -wal", "fsync -wal")


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_add_with_normal_durability_does_not_sync(tmp_path: Path) -> None:
    calls = trace_add(tmp_path / "m.db", "normal")
    assert set(calls) == {"pwrite64 -wal"}
