"""The sqlite store keeps the contract."""

import itertools

import pytest

from told.testing import StoreContract
from told.views import folding

sqlite = pytest.importorskip("told.backends.sqlite")
if not hasattr(sqlite, "open_store"):
    pytest.skip("the sqlite store is not here yet", allow_module_level=True)


class TestSqlite(StoreContract):
    folding = staticmethod(folding)

    @pytest.fixture
    def store(self, tmp_path):
        numbers = itertools.count()
        return lambda mint: sqlite.open_store(f"sqlite:///{tmp_path}/{next(numbers)}.db", mint=mint)
