"""The contract of a store, as tests: whoever keeps it can stand behind told.

    import pytest
    from told.testing import StoreContract
    from told.views import folding

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

from told.testing.contract.blobs import BlobLaws
from told.testing.contract.care import CareLaws
from told.testing.contract.erasing import ErasureLaws
from told.testing.contract.holding import HoldingLaws
from told.testing.contract.ledger import LedgerLaws
from told.testing.contract.moving import MovingLaws
from told.testing.contract.overlaying import OverlayLaws
from told.testing.contract.reading import ReadingLaws
from told.testing.contract.recalling import RecallLaws
from told.testing.contract.scribe import Scribe
from told.testing.contract.searching import SearchLaws
from told.testing.contract.turning import TurnLaws
from told.testing.contract.vectors import VectorLaws
from told.testing.contract.writing import WritingLaws

__all__ = ["Scribe", "StoreContract"]


class StoreContract(
    LedgerLaws, WritingLaws, ReadingLaws, HoldingLaws, SearchLaws, VectorLaws, RecallLaws, ErasureLaws, MovingLaws,
    BlobLaws, OverlayLaws, TurnLaws, CareLaws,
):
    """Every law of `told.ports.Store`; subclass it, name the fold and provide the `store` fixture."""
