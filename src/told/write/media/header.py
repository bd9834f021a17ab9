"""What an image is by its first bytes: its real type and its size, found without decoding a single pixel.

A file of a few kilobytes can claim billions of pixels, and whoever decodes it pays: so the claim is read first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct, error
from typing import Final

_PAIR_BIG: Final = Struct(">II")
_SIGNED_LITTLE: Final = Struct("<ii")
_SHORTS_BIG: Final = Struct(">HH")
_SHORTS_LITTLE: Final = Struct("<HH")
_SHORT_BIG: Final = Struct(">H")

_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Header:
    """What an image says it is."""

    media_type: str
    width: int
    height: int

    @property
    def pixels(self) -> int:
        """How many pixels whoever decodes it must hold."""
        return self.width * self.height

    def __str__(self) -> str:
        return f"{self.media_type.removeprefix('image/')} {self.width}x{self.height}"


def header(data: bytes) -> Header | None:
    """The header of a PNG, JPEG, GIF, WebP or BMP image; None for anything else, and for one that ends too soon."""
    for magic, kind, size in _KINDS:
        if data.startswith(magic):
            try:
                found = size(data)
            except (error, IndexError):
                return None
            return Header(kind, *found) if found is not None and min(found) > 0 else None
    return None


def _png(data: bytes) -> tuple[int, int] | None:
    return _PAIR_BIG.unpack_from(data, 16) if data[12:16] == b"IHDR" else None


def _gif(data: bytes) -> tuple[int, int]:
    return _SHORTS_LITTLE.unpack_from(data, 6)


def _bmp(data: bytes) -> tuple[int, int]:
    if data[14] == 12:  # the header of the very first version
        return _SHORTS_LITTLE.unpack_from(data, 18)
    width, height = _SIGNED_LITTLE.unpack_from(data, 18)
    return width, abs(height)  # a negative height stands for rows from the top


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk from marker to marker to the one that begins a frame."""
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _FRAMES:
            height, width = _SHORTS_BIG.unpack_from(data, at + 5)
            return width, height
        else:
            at += 2 + _SHORT_BIG.unpack_from(data, at + 2)[0]
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[8:16] if len(data) >= 30 else b"":
        case b"WEBPVP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"WEBPVP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"WEBPVP8 ":
            width, height = _SHORTS_LITTLE.unpack_from(data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None


_KINDS: Final[tuple[tuple[bytes, str, Callable[[bytes], tuple[int, int] | None]], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _png),
    (b"\xff\xd8\xff", "image/jpeg", _jpeg),
    (b"GIF87a", "image/gif", _gif),
    (b"GIF89a", "image/gif", _gif),
    (b"RIFF", "image/webp", _webp),
    (b"BM", "image/bmp", _bmp),
)
