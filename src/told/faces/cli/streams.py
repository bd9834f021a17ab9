"""The standard streams of a command: what is printed comes out whole, whatever they are encoded in."""

from __future__ import annotations

import codecs
import json
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from told.core.errors import InvalidInput

ASCII_MARKS = {
    "✓": "+", "✗": "x", "→": ">", "·": "-", "…": "...", "–": "-", "×": "x", "“": '"', "”": '"', "\u00a0": " ",
    "━": "=", "─": "-", "█": "#", "▓": "%", "▒": "+", "░": ".",
}  # fmt: skip
"""Our own marks in ASCII; most are as wide, so that columns stay columns."""

ENCODE_ERROR_HANDLER = "told-spelled"


def configure_streams() -> None:
    """Make every stream one that can be used: a character it has no code for is spelled, and a closed one is there.

    What is typed and is no text comes in as surrogates, which whoever stores it refuses.
    """
    codecs.register_error(ENCODE_ERROR_HANDLER, _replace_unencodable)
    if os.environ.get("COLUMNS") == "0":  # as wide as nothing, which would print nothing
        del os.environ["COLUMNS"]
    null_device = Path(os.devnull)
    sys.stdin = sys.stdin or null_device.open(encoding="utf-8")
    # Opened to be read: what is printed there is an error, as on a full disk.
    sys.stdout = sys.stdout or os.fdopen(os.open(null_device, os.O_RDONLY), "w", encoding="utf-8")
    sys.stderr = sys.stderr or null_device.open("w", encoding="utf-8")
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, ENCODE_ERROR_HANDLER),
        (sys.stderr, ENCODE_ERROR_HANDLER),
    ):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Our marks in ASCII, and any other character by its number, as Python writes it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(
        ASCII_MARKS.get(character) or character.encode("ascii", "backslashreplace").decode()
        for character in unknown
    ), error.end


def dump_json_for(stream: TextIO, value: Any, **layout: Any) -> str:
    """A value as JSON that the stream has every character of."""
    is_unicode = (stream.encoding or "").lower().startswith("utf")
    return json.dumps(value, ensure_ascii=not is_unicode, **layout)


def read_stdin() -> str:
    """Everything on standard input."""
    return decode_input(sys.stdin.buffer.read()).replace("\r\n", "\n").replace("\r", "\n")


def decode_input(data: bytes) -> str:
    """Bytes of standard input as text: UTF-8, or else what the terminal's language is written in."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            return data.decode(sys.stdin.encoding)
        except UnicodeDecodeError:
            raise InvalidInput(f"Standard input is not UTF-8 text: {error}.") from error
