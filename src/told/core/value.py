"""Frozen dataclasses that cost no more than plain ones.

What is frozen is frozen for the type checker, which sees the standard decorator and every line of told. Freezing again
at run time would make each value six times as dear to build, and a write builds some twenty of them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False) -> Any:
        """The standard decorator; a frozen class can be hashed, but nothing stands in the way of its `__init__`."""
        return dataclasses.dataclass(slots=slots, unsafe_hash=frozen)
