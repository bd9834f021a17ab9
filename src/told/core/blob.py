"""Blobs: the bytes that were handed in, under the hash of their content, and what a store does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from told.core.ids import HASH_ALGORITHM, hash_content
from told.core.lazy import lazy_regex

BLOBS_KEY: Final = "blobs"
"""The metadata of evidence that lists the hashes of its blobs."""

_BLOB_HASH_PATTERN: Final = lazy_regex(rf"{HASH_ALGORITHM}:[0-9a-f]{{64}}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes and what they are; a listing leaves the bytes themselves out."""

    hash: str
    media_type: str
    size: int
    data: bytes = field(default=b"", repr=False)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Blob:
        """The blob of some bytes."""
        return cls(hash_content(data), media_type, len(data), bytes(data))


def is_blob_hash(value: Any) -> bool:
    """Whether a value is the hash of a blob."""
    return isinstance(value, str) and _BLOB_HASH_PATTERN.fullmatch(value) is not None


def list_blob_hashes(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The hashes that the metadata of a piece of evidence names, each once, in order."""
    values = meta.get(BLOBS_KEY)
    return (
        tuple(sorted({value for value in values if is_blob_hash(value)}))
        if isinstance(values, list | tuple)
        else ()
    )


class BlobStore(Protocol):
    """Where blobs are kept: once in an account, and destroyed with the last evidence that names them."""

    def put_blob(self, account: str, data: bytes, media_type: str) -> str:
        """Keep bytes that no evidence need name, and return their hash; what is there already stays as it is."""

    def get_blob(self, account: str, hash: str) -> Blob | None:
        """A blob with its bytes."""

    def list_blobs(self, account: str) -> Sequence[Blob]:
        """Every blob of an account without its bytes, by hash."""

    def drop_blob(self, account: str, hash: str) -> bool:
        """Destroy a blob, whoever names it; whether there was one."""
