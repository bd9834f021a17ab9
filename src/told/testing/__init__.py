"""Tools for testing with told: fakes that replay, and the contract a store of your own must keep.

`StoreContract` needs pytest; everything else here needs nothing, and is loaded without it.
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
    """Load the contract only when it is asked for: pytest is no dependency of told."""
    if name == "StoreContract":
        from told.testing.contract import StoreContract

        return StoreContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
