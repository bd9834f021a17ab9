"""A persistent memory engine for LLM agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from told.errors import (
    ConfigError,
    Conflict,
    EmbeddingError,
    FilterError,
    InvalidInput,
    LLMError,
    NotFoundError,
    ScopeError,
    StoreError,
    TimeError,
    ToldError,
)
from told.model.query import Bundle

if TYPE_CHECKING:
    from told.api.async_memory import AsyncMemory
    from told.api.memory import Memory
    from told.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "AsyncMemory",
    "Bundle",
    "ConfigError",
    "Conflict",
    "EmbeddingError",
    "FilterError",
    "InvalidInput",
    "LLMError",
    "Memory",
    "NotFoundError",
    "ScopeError",
    "Settings",
    "StoreError",
    "TimeError",
    "ToldError",
]


_LAZY = {
    "AsyncMemory": "told.api.async_memory",
    "Memory": "told.api.memory",
    "Settings": "told.settings",
}


def __getattr__(name: str) -> Any:
    """Import the heavier names on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module 'told' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
