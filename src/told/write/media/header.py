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

_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE_MARKERS: Final = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class ImageHeader:
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


def read_image_header(data: bytes) -> ImageHeader | None:
    """The header of a PNG, JPEG, GIF, WebP or BMP image; None for anything else, and for one that ends too soon."""
    for magic, media_type, read_size in _FORMATS:
        if data.startswith(magic):
            try:
                dimensions = read_size(data)
            except (error, IndexError):
                return None
            return (
                ImageHeader(media_type, *dimensions)
                if dimensions is not None and min(dimensions) > 0
                else None
            )
    return None


def _read_png_size(data: bytes) -> tuple[int, int] | None:
    return _PAIR_BIG.unpack_from(data, 16) if data[12:16] == b"IHDR" else None


def _read_gif_size(data: bytes) -> tuple[int, int]:
    return _SHORTS_LITTLE.unpack_from(data, 6)


def _read_bmp_size(data: bytes) -> tuple[int, int]:
    if data[14] == 12:  # the header of the very first version
        return _SHORTS_LITTLE.unpack_from(data, 18)
    width, height = _SIGNED_LITTLE.unpack_from(data, 18)
    return width, abs(height)  # a negative height stands for rows from the top


def _read_jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Walk from marker to marker to the one that begins a frame."""
    offset = 2
    while data[offset] == 0xFF:
        marker = data[offset + 1]
        if marker == 0xFF:
            offset += 1
        elif marker in _STANDALONE_MARKERS:
            offset += 2
        elif marker in _FRAME_MARKERS:
            height, width = _SHORTS_BIG.unpack_from(data, offset + 5)
            return width, height
        else:
            offset += 2 + _SHORT_BIG.unpack_from(data, offset + 2)[0]
    return None


def _read_webp_size(data: bytes) -> tuple[int, int] | None:
    match data[8:16] if len(data) >= 30 else b"":
        case b"WEBPVP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(
                data[27:30], "little"
            ) + 1
        case b"WEBPVP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"WEBPVP8 ":
            width, height = _SHORTS_LITTLE.unpack_from(data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None


_FORMATS: Final[tuple[tuple[bytes, str, Callable[[bytes], tuple[int, int] | None]], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _read_png_size),
    (b"\xff\xd8\xff", "image/jpeg", _read_jpeg_size),
    (b"GIF87a", "image/gif", _read_gif_size),
    (b"GIF89a", "image/gif", _read_gif_size),
    (b"RIFF", "image/webp", _read_webp_size),
    (b"BM", "image/bmp", _read_bmp_size),
)
