"""The contract of a store, as tests for backend authors.

    import pytest
    from told.testing import StoreContract
    from told.ledger.views import build_fold

    class TestMyStore(StoreContract):
        folding = staticmethod(build_fold)

        @pytest.fixture
        def store(self, tmp_path):
            numbers = itertools.count()
            return lambda mint: open_store(f"mine:///{tmp_path}/{next(numbers)}.db", mint=mint)

The `store` fixture is a factory: each call opens a new, empty store that takes ids and the time
from `mint`. The tests close what they open. To see the values of a failed assertion, put
`pytest.register_assert_rewrite("told.testing.contract")` into the conftest.py beside the tests.
Wrap a store whose methods are `async def` first.

There is one class for each port, so that a backend can be tested port by port: `LedgerContract`,
`FactsContract`, `IndexContract`, `VectorsContract`, `AccessLogContract`, `QueueContract`,
`BlobsContract` and `MaintenanceContract`. All of them write through `Ledger.commit`.
"""

from __future__ import annotations

from told.testing.contract.access_log import AccessLogContract
from told.testing.contract.blobs import BlobsContract
from told.testing.contract.erasure import ErasureContract
from told.testing.contract.facts import CurrentFactsContract, ReadContract
from told.testing.contract.harness import AccountHarness
from told.testing.contract.index import IndexContract, VectorsContract
from told.testing.contract.ledger import AppendContract, CommitContract
from told.testing.contract.maintenance import MaintenanceContract
from told.testing.contract.queue import QueueContract
from told.testing.contract.transfer import ImportContract
from told.testing.contract.turns import TickContract, TurnContract

__all__ = [
    "AccessLogContract",
    "AccountHarness",
    "BlobsContract",
    "FactsContract",
    "IndexContract",
    "LedgerContract",
    "MaintenanceContract",
    "QueueContract",
    "StoreContract",
    "VectorsContract",
]


class LedgerContract(AppendContract, CommitContract, ErasureContract, ImportContract):
    """Laws of `told.ports.Ledger`."""


class FactsContract(ReadContract, CurrentFactsContract, TurnContract, TickContract):
    """Laws of `told.ports.Facts`."""


class StoreContract(
    LedgerContract,
    FactsContract,
    IndexContract,
    VectorsContract,
    AccessLogContract,
    QueueContract,
    BlobsContract,
    MaintenanceContract,
):
    """Laws of `told.ports.Store`; subclass it, set `folding` and provide the `store` fixture."""
