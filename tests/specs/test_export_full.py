"""An export that does not fit says so, however little of it is missing."""

from pathlib import Path

import pytest

from told import Memory
from told.core.errors import StoreError

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("count", [1, 400])
def test_an_export_to_a_full_disk_is_told_of(count):
    with Memory("ram://", embedder="none") as memory:
        memory.add([f"tea number {n}" for n in range(count)], user_id="u", infer=False)
        with pytest.raises(StoreError, match="No space left"):
            memory.export(FULL)
