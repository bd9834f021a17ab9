"""An export that does not fit says so, however little of it is missing; so does one whose place
cannot be taken.
"""

import errno
import os
from pathlib import Path

import pytest

from told import Memory
from told.errors import InvalidInput, StoreError

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("count", [1, 400])
def test_an_export_to_a_full_disk_is_told_of(count):
    with Memory("ram://", embedder="none") as memory:
        memory.add([f"tea number {n}" for n in range(count)], user_id="u", infer=False)
        with pytest.raises(StoreError, match="No space left"):
            memory.export(FULL)


@pytest.fixture
def told_once():
    with Memory("ram://", embedder="none") as memory:
        memory.add("tea", user_id="u", infer=False)
        yield memory


def test_a_file_that_is_held_in_its_place_is_left_as_it_was(told_once, tmp_path, monkeypatch):
    def busy(self, target):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    place = tmp_path / "mounted.jsonl"
    place.write_text("before")
    monkeypatch.setattr(Path, "replace", busy)
    with pytest.raises(StoreError, match="cannot be replaced") as refused:
        told_once.export(place)
    assert "told export - > FILE" in refused.value.hint
    assert (place.read_text(), list(tmp_path.iterdir())) == ("before", [place])
    with place.open("wb") as file:
        told_once.export(file)
    assert place.read_bytes().startswith(b"{")


def test_a_file_in_a_folder_that_nothing_can_be_made_in_can_be_written_into(
    told_once, tmp_path, monkeypatch
):
    place, opened = tmp_path / "mounted.jsonl", os.open
    place.write_text("before")

    def refused(path, flags, *mode):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(InvalidInput, match="Read-only") as error:
        told_once.export(place)
    assert "told export - > FILE" in error.value.hint
