"""The sqlite store keeps the contract."""

import itertools

import pytest

from told.backends.sqlite import open_store
from told.ledger.views import build_fold
from told.testing import StoreContract


class TestSqlite(StoreContract):
    folding = staticmethod(build_fold)

    @pytest.fixture
    def store(self, tmp_path):
        numbers = itertools.count()
        return lambda mint: open_store(f"sqlite:///{tmp_path}/{next(numbers)}.db", mint=mint)
