"""Benchmark disks: the slow disk intercepts every sync of both SQLite libraries."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITING = """
import apsw, json, sqlite3, sys
sys.path.insert(0, {root!r})
from bench._sync import syncs
counts = [syncs()]
for connect in (apsw.Connection, sqlite3.connect):
    db = connect({folder!r} + "/" + connect.__module__)
    db.execute("CREATE TABLE one (value)").close()
    db.close()
    counts.append(syncs())
print(json.dumps(counts))
"""


@pytest.fixture
def sync(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_sync", ROOT / "bench" / "_sync.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_sync", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LIBRARY", tmp_path / "slow_sync.so")
    return module


def counts(disk, folder):
    code = WRITING.format(root=str(ROOT), folder=str(folder))
    env = {**os.environ, **disk.environment}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_slow_disk_intercepts_every_sync_of_both_sqlite_libraries(sync, tmp_path):
    disk = sync.slow(0.01)
    if disk is None:
        pytest.skip("no compiler, or not Linux")
    before, bundled, standard = counts(disk, tmp_path)
    assert before == 0 < bundled < standard


def test_the_machines_own_disk_is_not_slowed(sync, tmp_path):
    assert sync.OWN.environment == {}
    assert counts(sync.OWN, tmp_path) == [None, None, None]


def test_the_slow_disk_is_skipped_with_a_message_when_no_compiler_is_found(
    sync, monkeypatch, capsys
):
    monkeypatch.setattr(sync.shutil, "which", lambda name: None)
    assert sync.slow(2) is None
    why = (
        "it needs a C compiler (cc), and there is none"
        if sys.platform == "linux"
        else "that works on Linux alone"
    )
    assert capsys.readouterr().err == f"a disk whose sync takes 2 ms is left out: {why}\n"
