"""Opening what reads images: a name, an object, a function, or a language model that sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from told.core.errors import ConfigError, ReaderMissing
from told.core.text import format_value
from told.open.callables import get_display_name
from told.open.plugins import load_plugin
from told.ports import ImageReader
from told.write.media.seer import VisionLLM, VisionReader

READER_GROUP = "told.readers"


def open_reader(choice: Any, *, timeout: float = 60.0) -> ImageReader | None:
    """What reads images: a name, an object with read(), or a function; `auto` is tesseract, if it is installed."""
    if choice is None or choice == "none":
        return None
    if isinstance(choice, ImageReader) and not isinstance(choice, type):
        return choice
    if isinstance(choice, VisionLLM) and not isinstance(choice, type):
        return VisionReader(choice)
    if callable(choice):
        return CallableReader(choice, f"custom:{get_display_name(choice)}")
    if not isinstance(choice, str):
        raise ConfigError(
            f"A reader of images is a name, an object with read() or a function, not {format_value(choice)}."
        )
    name, _, model = ("tesseract" if choice == "auto" else choice).partition(":")
    try:
        reader: ImageReader = load_plugin(READER_GROUP, name)(model or None, timeout=timeout)
    except (ReaderMissing, ConfigError):
        if choice == "auto":
            return None
        raise
    return reader


def open_readers(choice: Any, llm: Any = None, *, timeout: float = 60.0) -> tuple[ImageReader, ...]:
    """Everything that looks at an image, in order: what was chosen, and with `auto` a language model that sees too."""
    chosen = open_reader(choice, timeout=timeout)
    add_llm = choice == "auto" and isinstance(llm, VisionLLM) and not isinstance(llm, type)
    return (*(() if chosen is None else (chosen,)), *((VisionReader(llm),) if add_llm else ()))


@dataclass(frozen=True, slots=True)
class CallableReader:
    """Any function from bytes and a media type to text as a reader of images."""

    function: Callable[[bytes, str], str]
    model: str

    def read(self, image: bytes, media_type: str) -> str:
        """What the function says of an image."""
        return self.function(image, media_type)
