"""Time-ordered ids, canonical JSON and algorithm-tagged content hashes.

Values that are equal as JSON have the same canonical form and therefore the same hash. Ids sort by
creation time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from told.errors import InvalidInput

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

HASH_ALGORITHM = "sha256"
_json_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)


def _make_json_encoder() -> Callable[[Any, int], Iterable[str]]:
    """Create the C encoder once; `JSONEncoder.encode` creates one on every call."""
    make_encoder: Callable[..., Any] | None = getattr(json.encoder, "c_make_encoder", None)
    if make_encoder is None:
        return lambda value, _: _json_encoder.iterencode(value)
    encode: Callable[[Any, int], Iterable[str]] = make_encoder(
        None,
        _json_encoder.default,
        json.encoder.encode_basestring,
        None,
        ":",
        ",",
        True,
        False,
        False,
    )
    return encode


_encode_json = _make_json_encoder()
quote_json: Callable[[str], str] = json.encoder.encode_basestring


def canonical_json(value: Any) -> bytes:
    """Encode a JSON value as canonical bytes: sorted keys, no spaces, UTF-8, no NaN."""
    return encode_utf8(canonical_json_text(value))


def canonical_json_text(value: Any) -> str:
    """Encode a JSON value as canonical text."""
    try:
        return "".join(_encode_json(value, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise _json_error(error) from error


def encode_utf8(text: str) -> bytes:
    """Encode JSON text as UTF-8, or raise InvalidInput."""
    try:
        return text.encode("utf-8")
    except ValueError as error:
        raise _json_error(error) from error


def _json_error(error: Exception) -> InvalidInput:
    return InvalidInput(
        f"The value cannot be written as JSON: {error}.", hint="Use plain JSON values."
    )


def hash_content(data: bytes) -> str:
    """Return a content hash prefixed with its algorithm."""
    return f"{HASH_ALGORITHM}:{hashlib.sha256(data).hexdigest()}"


def sha256(*parts: bytes) -> bytes:
    """Return the raw SHA-256 digest of the concatenated parts."""
    return hashlib.sha256(b"".join(parts)).digest()


def hash_text(text: str) -> bytes:
    """Return the cache key of a text's embedding."""
    return hashlib.sha256(text.encode()).digest()


_TIMESTAMP_MASK = (1 << 48) - 1


def uuid7(milliseconds: int, random: bytes) -> str:
    """Format a version 7 UUID from 48 bits of time and 74 of the ten random bytes."""
    random_hex = random.hex()
    return (
        f"{_uuid7_prefix(milliseconds)}{random_hex[1:4]}-{'89ab'[random[2] >> 4 & 3]}"
        f"{random_hex[5:8]}-{random_hex[8:20]}"
    )


@lru_cache(maxsize=16)
def _uuid7_prefix(milliseconds: int) -> str:
    """Return the prefix shared by all ids of a millisecond."""
    timestamp = f"{milliseconds & _TIMESTAMP_MASK:012x}"
    return f"{timestamp[:8]}-{timestamp[8:]}-7"


def uuid7_created_at(id: str) -> int | None:
    """Return the creation time of a version 7 UUID in microseconds, or None for any other id.

    The resolution is one millisecond.
    """
    if len(id) != 36 or id[14] != "7":
        return None
    try:
        return int(id[:8] + id[9:13], 16) * 1000
    except ValueError:
        return None


def wall_clock_us() -> int:
    """Return the system time in microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class IdGenerator:
    """The source of time and randomness, replaceable in tests."""

    clock: Callable[[], int] = wall_clock_us
    entropy: Callable[[int], bytes] = os.urandom

    def now(self) -> int:
        """Return the time in microseconds since 1970."""
        return self.clock()

    def new_id(self) -> str:
        """Return a new time-ordered id."""
        return uuid7(self.clock() // 1000, self.entropy(10))

    def new_salt(self) -> bytes:
        """Return sixteen random bytes."""
        return self.entropy(16)
