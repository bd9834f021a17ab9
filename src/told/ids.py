"""Time-ordered ids, canonical JSON and algorithm-tagged content hashes.

Two values that are equal as JSON have one canonical form, hence one hash. Ids sort by the time they were made.
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
    """The C encoder made once: `JSONEncoder.encode` makes a new one for every call, at twice the cost of its use."""
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
    """The one byte form of a JSON value: sorted keys, no spaces, UTF-8, no NaN."""
    return encode_utf8(canonical_json_text(value))


def canonical_json_text(value: Any) -> str:
    """The canonical form of a JSON value, as text."""
    try:
        return "".join(_encode_json(value, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise _json_error(error) from error


def encode_utf8(text: str) -> bytes:
    """The bytes of what was written as JSON."""
    try:
        return text.encode("utf-8")
    except ValueError as error:
        raise _json_error(error) from error


def _json_error(error: Exception) -> InvalidInput:
    return InvalidInput(
        f"The value cannot be written as JSON: {error}.", hint="Use plain JSON values."
    )


def hash_content(data: bytes) -> str:
    """A content hash that names its algorithm."""
    return f"{HASH_ALGORITHM}:{hashlib.sha256(data).hexdigest()}"


def sha256(*parts: bytes) -> bytes:
    """The raw digest of some bytes."""
    return hashlib.sha256(b"".join(parts)).digest()


def hash_text(text: str) -> bytes:
    """What a text's vector is cached under."""
    return hashlib.sha256(text.encode()).digest()


_TIMESTAMP_MASK = (1 << 48) - 1


def uuid7(milliseconds: int, random: bytes) -> str:
    """A UUID of version 7: 48 bits of time, then 74 of the ten random bytes."""
    random_hex = random.hex()
    return f"{_uuid7_prefix(milliseconds)}{random_hex[1:4]}-{'89ab'[random[2] >> 4 & 3]}{random_hex[5:8]}-{random_hex[8:20]}"


@lru_cache(maxsize=16)
def _uuid7_prefix(milliseconds: int) -> str:
    """How every id of a millisecond begins."""
    timestamp = f"{milliseconds & _TIMESTAMP_MASK:012x}"
    return f"{timestamp[:8]}-{timestamp[8:]}-7"


def uuid7_created_at(id: str) -> int | None:
    """Microseconds since 1970 at which a UUID of version 7 was made, to the millisecond; None if it is no such id."""
    if len(id) != 36 or id[14] != "7":
        return None
    try:
        return int(id[:8] + id[9:13], 16) * 1000
    except ValueError:
        return None


def wall_clock_us() -> int:
    """Microseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class IdGenerator:
    """Where time and randomness come from, so that a test can replay both."""

    clock: Callable[[], int] = wall_clock_us
    entropy: Callable[[int], bytes] = os.urandom

    def now(self) -> int:
        """Microseconds since 1970."""
        return self.clock()

    def new_id(self) -> str:
        """A fresh time-ordered id."""
        return uuid7(self.clock() // 1000, self.entropy(10))

    def new_salt(self) -> bytes:
        """Sixteen random bytes."""
        return self.entropy(16)
