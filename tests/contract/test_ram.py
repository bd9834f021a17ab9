"""The ram store keeps the contract it defines."""

import pytest

from told.backends.memory.store import open_store
from told.testing import StoreContract


class TestRam(StoreContract):
    folding = staticmethod(folding)

    @pytest.fixture
    def store(self):
        return lambda mint: open_store("ram://", mint=mint)
