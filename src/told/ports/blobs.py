"""The blobs port: bytes that evidence refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from told.model.entry import Blob


class Blobs(Protocol):
    """Blobs of an account, stored once each and destroyed with the last evidence naming them.

    `Batch.blobs` adds them.
    """

    def get_blobs(self, account: str, hashes: Sequence[str] | None = None) -> Mapping[str, Blob]:
        """Return the blobs with these hashes, or all blobs without their bytes, by hash."""
