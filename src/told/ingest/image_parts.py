"""Parse image parts of messages, in all the shapes LLM clients use.

Only a `pathlib.Path` names a local file: a string in a message is untrusted.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct, error
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from told.errors import InvalidInput
from told.ids import hash_content
from told.runtime import lazy_regex
from told.text.tokens import format_value

_PAIR_BIG: Final = Struct(">II")
_SIGNED_LITTLE: Final = Struct("<ii")
_SHORTS_BIG: Final = Struct(">HH")
_SHORTS_LITTLE: Final = Struct("<HH")
_SHORT_BIG: Final = Struct(">H")

_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE_MARKERS: Final = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """The media type and size an image declares."""

    media_type: str
    width: int
    height: int

    @property
    def pixels(self) -> int:
        """Return the number of pixels a decoder must hold."""
        return self.width * self.height

    def __str__(self) -> str:
        return f"{self.media_type.removeprefix('image/')} {self.width}x{self.height}"


def read_image_header(data: bytes) -> ImageHeader | None:
    """Return the header of a PNG, JPEG, GIF, WebP or BMP image, or None if unreadable."""
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
    if data[14] == 12:  # BITMAPCOREHEADER
        return _SHORTS_LITTLE.unpack_from(data, 18)
    width, height = _SIGNED_LITTLE.unpack_from(data, 18)
    return width, abs(height)  # negative: rows from the top


def _read_jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Walk the markers to the first frame header."""
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


IMAGE_PART_TYPES: Final = frozenset({"image_url", "input_image", "image"})
"""Types of message parts that hold images."""

IMAGE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})
"""File name suffixes of images."""

HEADER_BYTES: Final = 2**20
"""Number of bytes that hold the header of any image."""

URL_LIMIT: Final = 2048
_DATA_URL: Final = lazy_regex(
    r"data:([\w.+/-]*)((?:;[\w.+-]+=[\w.+-]*)*)(;base64)?,", re.ASCII | re.IGNORECASE
)
_IMAGE_HINT: Final = (
    "Give a data URL, bytes, a pathlib.Path or an http(s) URL, such as "
    '{"type": "image_url", "image_url": {"url": "data:image/png;base64,…"}}.'
)


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a message: its bytes, its location, or the problem with it."""

    number: int
    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None
    url: str | None = None
    problem: str = ""

    def compute_identity(self) -> str:
        """Return a string that identifies the image before it is fetched."""
        return (
            hash_content(self.data)
            if self.data is not None
            else str(self.path or self.url or self.problem)
        )


def is_image(part: Any) -> bool:
    """Return True if a message part is an image."""
    if isinstance(part, Mapping):
        part_type = part.get("type")
        return (
            isinstance(part_type, str) and part_type in IMAGE_PART_TYPES and "content" not in part
        )
    return isinstance(part, bytes | bytearray | memoryview | Path)


def parse_image(part: Any, number: int, *, limit: int) -> Image:
    """Parse a message part as an image; do not decode more than `limit` bytes."""
    value = _locate_image(part) if isinstance(part, Mapping) else part
    if isinstance(value, bytes | bytearray | memoryview):
        if read_image_header(bytes(value[:HEADER_BYTES])) is None:
            raise InvalidInput(
                f"Image #{number} is not an image in a known format.",
                hint="Decode text first: data.decode().",
            )
        return _limit_size(number, bytes(value), limit)
    if isinstance(value, Path):
        return Image(number, path=value)
    if not isinstance(value, str) or not value:
        raise InvalidInput(
            f"Image #{number} is {format_value(value)}, which is not an image.", hint=_IMAGE_HINT
        )
    if value[:5].lower() == "data:":
        return _decode_data_url(value, number, limit)
    if value[:7].lower() == "http://" or value[:8].lower() == "https://":
        return (
            Image(number, url=value)
            if len(value) <= URL_LIMIT
            else Image(number, problem="its URL is too long")
        )
    raise InvalidInput(
        f"Image #{number} is {format_value(value)}, which is neither a URL nor a data URL.",
        hint=_IMAGE_HINT,
    )


def _locate_image(part: Mapping[str, Any]) -> Any:
    """Return the bytes, path, URL or data URL of an image part."""
    source = part.get("source", part.get("image_url", part.get("image", part)))
    if not isinstance(source, Mapping):
        return source
    for name in ("url", "path"):
        if name in source:
            return source[name]
    data = source.get("data", source.get("file_data"))
    if isinstance(data, str) and data[:5].lower() != "data:":
        media_type = source.get("media_type", source.get("mimeType", source.get("mime_type", "")))
        is_known = isinstance(media_type, str) and "/" in media_type
        return f"data:{media_type if is_known else ''};base64,{data}"
    return data


def _decode_data_url(url: str, number: int, limit: int) -> Image:
    """Decode a data URL, or return an image with the problem."""
    prefix = _DATA_URL.match(url)
    if prefix is None:
        return Image(number, problem="its data URL cannot be read")
    body = url[prefix.end() :]
    if len(body) > limit * 4 // 3 + 4 and (prefix[3] or len(body) > limit * 3):
        return make_too_large(number, len(body) * 3 // 4, limit)
    try:
        data = (
            base64.b64decode(_normalise_base64(body), validate=True)
            if prefix[3]
            else unquote_to_bytes(body)
        )
    except (binascii.Error, ValueError):
        return Image(number, problem="its base64 cannot be read")
    return _limit_size(number, data, limit)


def _normalise_base64(text: str) -> str:
    """Return base64 without whitespace, in the standard alphabet and with padding."""
    text = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    return text + "=" * (-len(text) % 4)


def _limit_size(number: int, data: bytes, limit: int) -> Image:
    return Image(number, data) if len(data) <= limit else make_too_large(number, len(data), limit)


def make_too_large(number: int, size: int, limit: int) -> Image:
    """Return an image without its bytes because they exceed the limit."""
    return Image(number, problem=f"it has {size:,} bytes; the limit is {limit:,}")
