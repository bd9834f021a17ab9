"""The ram store keeps the contract it defines."""

import pytest

from told.backends.memory.store import open_store
from told.ledger.views import build_fold
from told.testing import StoreContract


class TestRam(StoreContract):
    folding = staticmethod(build_fold)

    @pytest.fixture
    def store(self):
        return lambda mint: open_store("ram://", mint=mint)
