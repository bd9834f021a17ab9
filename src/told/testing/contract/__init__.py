"""The contract of a store, as tests: whoever keeps it can stand behind told.

    import pytest
    from told.testing import StoreContract
    from told.ledger.views import folding

    class TestMyStore(StoreContract):
        folding = staticmethod(folding)

        @pytest.fixture
        def store(self, tmp_path):
            numbers = itertools.count()
            return lambda mint: open_store(f"mine:///{tmp_path}/{next(numbers)}.db", mint=mint)

The `store` fixture is a factory: each call opens a new, empty store that takes time and randomness from the mint. The
tests close what they open. Put `pytest.register_assert_rewrite("told.testing.contract")` into the conftest.py beside
the tests, and a failing law shows the values it failed with. A store whose methods are `async def` is wrapped first.
"""

from __future__ import annotations

from told.testing.contract.erasure import ErasureContract
from told.testing.contract.facts import CurrentFactsContract, ReadContract
from told.testing.contract.harness import AccountHarness
from told.testing.contract.index import SearchContract, VectorContract
from told.testing.contract.ledger import LedgerContract, WriteContract
from told.testing.contract.maintenance import AccessCountContract, MaintenanceContract, TurnContract
from told.testing.contract.queue import OverlayContract
from told.testing.contract.transfer import BlobContract, ImportRebuildContract

__all__ = ["AccountHarness", "StoreContract"]


class StoreContract(
    LedgerContract,
    WriteContract,
    ReadContract,
    CurrentFactsContract,
    SearchContract,
    VectorContract,
    AccessCountContract,
    ErasureContract,
    ImportRebuildContract,
    BlobContract,
    OverlayContract,
    TurnContract,
    MaintenanceContract,
):
    """Every law of `told.ports.Store`; subclass it, name the fold and provide the `store` fixture."""
