"""What the last writes of this process left in the file, so that the next one need not look it up again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from told.backends.sqlite.vectors import Model
from told.core.scope import Scope

UNKNOWN: Final = -1
MANY: Final = 4096


@dataclass(slots=True)
class Account:
    """An account inside a transaction; its head moves with every entry."""

    id: int
    name: str
    seq: int
    at: int
    hash: bytes


@dataclass(slots=True)
class Memo:
    """Heads, spaces, sizes and clocks of partitions and the model, good for one version of the file.

    The version is unknown while a transaction runs. Only a commit makes it known again, so whatever was noted by one
    that failed, or before somebody else wrote, is never looked at.
    """

    version: int = UNKNOWN
    accounts: dict[str, Account] = field(default_factory=dict)
    spaces: dict[Scope, tuple[int, int]] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    clocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    model: tuple[Model | None] | None = None

    def at(self, version: int) -> Memo:
        """The memo to use for a transaction on this version of the file."""
        memo = self if self.version == version and len(self.spaces) < MANY else Memo()
        memo.version = UNKNOWN
        return memo
