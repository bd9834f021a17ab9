"""Blobs: the bytes that were handed in, under the hash of their content, and what a store does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from told.core.ids import HASH, tagged
from told.core.lazy import regex

NAMED: Final = "blobs"
"""The metadata of evidence that lists the hashes of its blobs."""

_HASH: Final = regex(rf"{HASH}:[0-9a-f]{{64}}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes and what they are; a listing leaves the bytes themselves out."""

    hash: str
    media_type: str
    size: int
    data: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, data: bytes, media_type: str) -> Blob:
        """The blob of some bytes."""
        return cls(tagged(data), media_type, len(data), bytes(data))


def is_hash(value: Any) -> bool:
    """Whether a value is the hash of a blob."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def named_in(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The hashes that the metadata of a piece of evidence names, each once, in order."""
    names = meta.get(NAMED)
    return tuple(sorted({name for name in names if is_hash(name)})) if isinstance(names, list | tuple) else ()


class Blobs(Protocol):
    """Where blobs are kept: once in an account, and destroyed with the last evidence that names them."""

    def put_blob(self, account: str, data: bytes, media_type: str) -> str:
        """Keep bytes that no evidence need name, and return their hash; what is there already stays as it is."""

    def blob(self, account: str, hash: str) -> Blob | None:
        """A blob with its bytes."""

    def blobs(self, account: str) -> Sequence[Blob]:
        """Every blob of an account without its bytes, by hash."""

    def drop_blob(self, account: str, hash: str) -> bool:
        """Destroy a blob, whoever names it; whether there was one."""
