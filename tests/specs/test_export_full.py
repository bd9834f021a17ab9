"""Export errors: a full disk and a target that cannot be replaced or created."""

import errno
import os
from pathlib import Path

import pytest

from told import Memory
from told.errors import InvalidInput, StoreError

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("count", [1, 400])
def test_export_to_full_disk_raises_store_error(count):
    with Memory("ram://", embedder="none") as memory:
        memory.add([f"tea number {n}" for n in range(count)], user_id="u", infer=False)
        with pytest.raises(StoreError, match="No space left"):
            memory.export(FULL)


@pytest.fixture
def memory_with_tea():
    with Memory("ram://", embedder="none") as memory:
        memory.add("tea", user_id="u", infer=False)
        yield memory


def test_export_leaves_irreplaceable_file_unchanged(memory_with_tea, tmp_path, monkeypatch):
    def raise_busy(self, target):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    place = tmp_path / "mounted.jsonl"
    place.write_text("before")
    monkeypatch.setattr(Path, "replace", raise_busy)
    with pytest.raises(StoreError, match="cannot be replaced") as refused:
        memory_with_tea.export(place)
    assert "told export - > FILE" in refused.value.hint
    assert (place.read_text(), list(tmp_path.iterdir())) == ("before", [place])
    with place.open("wb") as file:
        memory_with_tea.export(file)
    assert place.read_bytes().startswith(b"{")


def test_export_into_read_only_folder_suggests_redirection(memory_with_tea, tmp_path, monkeypatch):
    place, opened = tmp_path / "mounted.jsonl", os.open
    place.write_text("before")

    def open_read_only(path, flags, *mode):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", open_read_only)
    with pytest.raises(InvalidInput, match="Read-only") as error:
        memory_with_tea.export(place)
    assert "told export - > FILE" in error.value.hint
