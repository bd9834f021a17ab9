"""A full disk is a clear error: no partial writes, reads work, and writes resume when there is
space.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from told import Memory
from told.errors import StoreError, StoreFull
from told.ports import VIEWS
from told.testing import hashing_embedder

SIZE = 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of one megabyte, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip(f"a small tmpfs cannot be mounted: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(memory: Memory, size: int = 2000) -> tuple[list[str], StoreError]:
    """Add batches of three until one is rejected; return the acknowledged texts and the error."""
    kept: list[str] = []
    for number in range(5000):
        texts = [f"number{number} {part} " + "x" * size for part in ("ash", "birch", "cedar")]
        try:
            memory.add(texts, user_id="alice", idempotency_key=f"key {number}")
        except StoreError as error:
            return kept, error
        kept += texts
    pytest.fail("the disk never became full")


def list_texts(memory: Memory) -> list[str]:
    return [row["memory"] for row in memory.get_all(user_id="alice", limit=1000)["results"]]


def assert_whole(memory: Memory, kept: list[str]) -> None:
    """Check that the ledger and every view hold exactly what was acknowledged."""
    assert list_texts(memory) == kept
    assert kept[0] in {
        row["memory"]
        for row in memory.search("number0 ash", user_id="alice", limit=1000)["results"]
    }
    verdict = memory.verify()
    assert verdict["ok"], verdict


def test_full_disk_is_a_clear_error_and_loses_nothing(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(200 * 1024))
    with Memory(f"sqlite:///{small_disk}/m.db", embedder=hashing_embedder()) as memory:
        kept, error = fill(memory)
        assert isinstance(error, StoreFull)
        assert "full" in str(error)
        assert "Free some space" in str(error)
        assert len(kept) >= 6
        assert_whole(memory, kept)
        with pytest.raises(StoreFull):
            memory.add("y" * 20_000, user_id="bob")
        ballast.unlink()
        memory.add(["after", "the", "flood"], user_id="alice")
        assert_whole(memory, [*kept, "after", "the", "flood"])
    with Memory(f"sqlite:///{small_disk}/m.db", embedder=hashing_embedder()) as memory:
        assert_whole(memory, [*kept, "after", "the", "flood"])


def test_store_on_a_full_disk_opens_or_reports_the_full_disk(small_disk: Path) -> None:
    with Memory(f"sqlite:///{small_disk}/m.db", embedder=hashing_embedder()) as memory:
        memory.add("tea", user_id="alice")
    ballast = small_disk / "ballast"
    with ballast.open("wb") as file:
        while room := shutil.disk_usage(small_disk).free:
            file.write(bytes(min(room, 4096)))
            file.flush()
    try:
        memory = Memory(f"sqlite:///{small_disk}/m.db", embedder=hashing_embedder())
    except StoreFull as error:
        assert "Free some space" in str(error)  # noqa: PT017
    else:
        with memory:
            assert list_texts(memory) == ["tea"]
            with pytest.raises(StoreFull):
                memory.add("y" * 50_000, user_id="alice")
    ballast.unlink()
    with Memory(f"sqlite:///{small_disk}/m.db", embedder=hashing_embedder()) as memory:
        assert list_texts(memory) == ["tea"]
        memory.add("milk", user_id="alice")
        assert memory.verify()["ok"]


def test_erase_on_a_full_disk_is_a_clear_error(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(200 * 1024))
    with Memory(f"sqlite:///{small_disk}/m.db", embedder=hashing_embedder()) as memory:
        fill(memory)
        try:
            warnings = memory.erase(user_id="alice")["warnings"]
        except StoreFull:
            warnings = ["refused"]
        assert memory.verify()["ok"]
        ballast.unlink()
        assert warnings or b"x" * 500 not in (small_disk / "m.db").read_bytes()


def test_sqlite_page_limit_is_reported_as_a_full_store(tmp_path: Path) -> None:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as memory:
        memory.add("tea", user_id="alice")
        writer = memory.engine.store._database.writer
        writer.execute("PRAGMA max_page_count = 80")
        kept, error = fill(memory)
        assert isinstance(error, StoreFull)
        assert list_texts(memory) == ["tea", *kept]
        before = {view: list(memory.engine.store.view_rows("default", view)) for view in VIEWS}
        writer.execute("PRAGMA max_page_count = 1000000")
        memory.rebuild()
        assert {
            view: list(memory.engine.store.view_rows("default", view)) for view in VIEWS
        } == before
        memory.add("after", user_id="alice")
        assert memory.verify()["ok"]


def test_write_too_big_for_the_disk_does_not_fail_later_writes(tmp_path: Path) -> None:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as memory:
        memory.add("tea", user_id="alice")
        pages = memory.engine.store._database.writer.execute("PRAGMA page_count").get
        memory.engine.store._database.writer.execute(f"PRAGMA max_page_count = {pages + 10}")
        with pytest.raises(StoreFull):
            memory.add("y" * 90_000, user_id="alice")
        memory.add("milk", user_id="alice")
        assert list_texts(memory) == ["tea", "milk"]


PROGRAM = """
import resource, signal, sys
from told import Memory
from told.errors import ToldError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
memory = Memory("sqlite:///" + sys.argv[1], embedder="none")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
kept = 0
try:
    for number in range(1000):
        memory.add([f"{number} {part} " + "x" * 2000 for part in "ab"], user_id="alice")
        kept += 2
except ToldError as error:
    print(type(error).__name__, kept, len(memory.get_all(user_id="alice", limit=1000)["results"]))
"""


def test_file_size_limit_is_reported_as_a_store_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "m.db")],
        check=False,
        capture_output=True,
        text=True,
    )
    name, kept, found = (done.stdout.split() or [done.stderr, "0", "1"])[:3]
    assert name in ("StoreFull", "StoreError"), done.stderr
    assert kept == found
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
        assert len(list_texts(memory)) == int(kept)
        assert memory.verify()["ok"]
