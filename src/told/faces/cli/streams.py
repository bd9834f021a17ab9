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

MARKS = {
    "✓": "+", "✗": "x", "→": ">", "·": "-", "…": "...", "–": "-", "×": "x", "“": '"', "”": '"', "\u00a0": " ",
    "━": "=", "─": "-", "█": "#", "▓": "%", "▒": "+", "░": ".",
}  # fmt: skip
"""Our own marks in ASCII; most are as wide, so that columns stay columns."""

SPELLING = "told-spelled"


def settle() -> None:
    """Make every stream one that can be used: a character it has no code for is spelled, and a closed one is there.

    What is typed and is no text comes in as surrogates, which whoever stores it refuses.
    """
    codecs.register_error(SPELLING, _spelled)
    if os.environ.get("COLUMNS") == "0":  # as wide as nothing, which would print nothing
        del os.environ["COLUMNS"]
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    # Opened to be read: what is printed there is an error, as on a full disk.
    sys.stdout = sys.stdout or os.fdopen(os.open(nowhere, os.O_RDONLY), "w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, SPELLING), (sys.stderr, SPELLING)):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """Our marks in ASCII, and any other character by its number, as Python writes it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(MARKS.get(one) or one.encode("ascii", "backslashreplace").decode() for one in unknown), error.end


def json_for(stream: TextIO, value: Any, **layout: Any) -> str:
    """A value as JSON that the stream has every character of."""
    whole = (stream.encoding or "").lower().startswith("utf")
    return json.dumps(value, ensure_ascii=not whole, **layout)


def piped() -> str:
    """Everything on standard input."""
    return decoded(sys.stdin.buffer.read()).replace("\r\n", "\n").replace("\r", "\n")


def decoded(data: bytes) -> str:
    """Bytes of standard input as text: UTF-8, or else what the terminal's language is written in."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            return data.decode(sys.stdin.encoding)
        except UnicodeDecodeError:
            raise InvalidInput(f"Standard input is not UTF-8 text: {error}.") from error
