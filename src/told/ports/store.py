"""The store: all storage ports in one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from told.ids import IdGenerator
from told.ports.access_log import AccessLog
from told.ports.blobs import Blobs
from told.ports.facts import Facts
from told.ports.index import Index, Vectors
from told.ports.ledger import Ledger
from told.ports.queue import Queue


class Maintenance(Protocol):
    """Scrub, check, measure, back up and close a store."""

    def scrub(self) -> Sequence[str]:
        """Remove traces of destroyed content from free space and logs; return warnings."""

    def check_integrity(self, *, types_only: bool = False) -> Sequence[str]:
        """Return the problems of the stored data.

        With `types_only`, only look for values of the wrong type, which is fast.
        """

    def get_stats(self, account: str) -> Mapping[str, Any]:
        """Return counts and sizes."""

    def backup(self, target: Path) -> None:
        """Write a consistent copy without blocking others, or raise `Unsupported`."""

    def close(self) -> None:
        """Release all resources; closing twice is allowed."""


class Store(Ledger, Facts, Vectors, AccessLog, Queue, Blobs, Maintenance, Protocol):
    """The storage ports over one transactional place.

    `mint` gives ids, salts and the time; `index` searches the store's passages.
    """

    mint: IdGenerator
    index: Index
