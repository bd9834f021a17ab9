"""Tools for tests: repeatable fakes and the contract tests for stores.

Only `StoreContract` needs pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from told.testing.fakes import (
    FlakyEmbedder,
    HashingEmbedder,
    ManualClock,
    Recorder,
    Replayer,
    ScriptedLLM,
    hashing_embedder,
    seeded_mint,
)

if TYPE_CHECKING:
    from told.testing.contract import StoreContract

__all__ = [
    "FlakyEmbedder",
    "HashingEmbedder",
    "ManualClock",
    "Recorder",
    "Replayer",
    "ScriptedLLM",
    "StoreContract",
    "hashing_embedder",
    "seeded_mint",
]


def __getattr__(name: str) -> Any:
    """Import the contract on demand, because told does not depend on pytest."""
    if name == "StoreContract":
        from told.testing.contract import StoreContract

        return StoreContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
