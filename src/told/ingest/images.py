"""Read the images of turns: their text joins the turn and their bytes become blobs.

The sender did not say the words in an image, so the turn's own words come first and evidence
metadata records where they end. A turn with an unreadable image is kept, with a mark in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

from told.errors import InvalidInput, MediaError, ToldError
from told.flow import Flow, call
from told.ingest.image_parts import Image, make_too_large, read_image_header
from told.ingest.messages import InputTurn, ParsedMessages, get_own_words
from told.ledger.consumer import Failure, catch_failure
from told.model.entry import BLOBS_KEY, Blob
from told.ports import ImageReader
from told.settings import Settings
from told.text.echo import OWN_CHARS_KEY
from told.text.tokens import make_snippet, strip_unstorable

if TYPE_CHECKING:
    from told.ingest.fetch import FetchedContent
FetchFunction: TypeAlias = "Callable[[str, Sequence[str]], FetchedContent]"
ACCEPTED_IMAGE_TYPES: Final = ("image/",)
NOT_FETCHED: Final = "fetching URLs is disabled; set fetch_urls, or send the image itself"
NO_READER: Final = (
    "no image reader is available, so only the image itself is stored; "
    "install tesseract, or configure a reader"
)
UNKNOWN_FORMAT: Final = "it is not a PNG, JPEG, GIF, WebP or BMP image"


@dataclass(frozen=True, slots=True)
class ImageReading:
    """The text read from an image, its blob, and any problems."""

    text: str
    blob: Blob | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageContext:
    """The dependencies for reading images."""

    readers: Sequence[ImageReader]
    settings: Settings
    fetch: FetchFunction | None = None


def read_images(parsed: ParsedMessages, image_ctx: ImageContext) -> Flow[ParsedMessages]:
    """Return the messages with the text of their images."""
    if not parsed.image_count:
        return parsed
    turns: list[InputTurn] = []
    blobs: dict[str, Blob] = {}
    warnings: dict[str, None] = {}
    for turn in parsed.turns:
        readings = yield from _read_turn_images(turn, image_ctx)
        turns.append(_merge_readings(turn, readings, image_ctx.settings.text_limit))
        blobs |= {
            reading.blob.hash: reading.blob for reading in readings if reading.blob is not None
        }
        warnings |= dict.fromkeys(problem for reading in readings for problem in reading.problems)
    return ParsedMessages(
        tuple(turns), parsed.skipped, 0, tuple(blobs.values()), (*parsed.warnings, *warnings)
    )


def _read_turn_images(turn: InputTurn, image_ctx: ImageContext) -> Flow[list[ImageReading]]:
    readings: list[ImageReading] = []
    for image in turn.images:
        readings += [(yield from read_image(image, image_ctx))]
    return readings


def _merge_readings(turn: InputTurn, readings: Sequence[ImageReading], limit: int) -> InputTurn:
    """Append the image text to a turn, up to the text limit."""
    if not readings:
        return turn
    evidence = turn.evidence
    own_text = get_own_words(evidence)
    image_text = "\n".join(reading.text for reading in readings)
    content = f"{own_text}\n{image_text}" if own_text else image_text
    blob_hashes = [reading.blob.hash for reading in readings if reading.blob is not None]
    meta = {
        **evidence.meta,
        OWN_CHARS_KEY: len(own_text),
        **({BLOBS_KEY: blob_hashes} if blob_hashes else {}),
    }
    return replace(turn, evidence=replace(evidence, content=content[:limit], meta=meta), images=())


def read_image(image: Image, image_ctx: ImageContext) -> Flow[ImageReading]:
    """Read an image; problems are reported in the result, except a missing file, which raises."""
    data, problem = yield from _load_bytes(image, image_ctx)
    if data is None:
        return _make_unread(image, problem)
    image_header = read_image_header(data)
    if image_header is None:
        return _make_unread(image, UNKNOWN_FORMAT)
    if image_header.pixels > (max_pixels := image_ctx.settings.ingestion.pixel_limit):
        return _make_unread(
            image,
            f"it has {image_header.pixels:,} pixels; the limit is {max_pixels:,}",
        )
    blob = Blob.from_bytes(data, image_header.media_type)
    if not image_ctx.readers:
        return ImageReading(
            f"[image #{image.number}: {image_header}]",
            blob,
            (f"Image #{image.number}: {NO_READER}.",),
        )
    lines, problems = yield from _run_readers(image, blob, image_ctx)
    return ImageReading(
        "\n".join(lines) or f"[image #{image.number}: {image_header}]", blob, tuple(problems)
    )


def _run_readers(
    image: Image, blob: Blob, image_ctx: ImageContext
) -> Flow[tuple[list[str], list[str]]]:
    """Return the text of each reader under a heading, and the problems of those that failed."""
    lines: list[str] = []
    problems: list[str] = []
    for reader in image_ctx.readers:
        outcome = yield from catch_failure(call(reader.read, blob.data, blob.media_type))
        if isinstance(outcome, str):
            heading = "Description of" if getattr(reader, "sees", False) else "OCR text from"
            words = strip_unstorable(outcome)[: image_ctx.settings.text_limit].strip()
            lines += [f"[{heading} image #{image.number}]\n{words}"] if words else []
        else:
            reason = (
                outcome if isinstance(outcome, Failure) else f"it returned {type(outcome).__name__}"
            )
            problems.append(f"Image #{image.number} was not read by {reader.model}: {reason}")
    return lines, problems


def _make_unread(image: Image, problem: str) -> ImageReading:
    """Return the mark and problem of an image that was not read."""
    location = f": {make_snippet(strip_unstorable(image.url), 200)}" if image.url else ""
    return ImageReading(
        f"[image #{image.number}{location}]",
        None,
        (f"Image #{image.number} was not stored: {problem}.",),
    )


def _load_bytes(image: Image, image_ctx: ImageContext) -> Flow[tuple[bytes | None, str]]:
    """Return the bytes of an image, or the reason there are none."""
    if image.problem or image.data is not None:
        return image.data, image.problem
    outcome: Any
    if image.path is not None:
        outcome = yield from catch_failure(
            call(_read_file, image.path, image.number, image_ctx.settings.image_limit)
        )
    elif image_ctx.fetch is None or image.url is None:
        return None, NOT_FETCHED
    else:
        outcome = yield from catch_failure(call(image_ctx.fetch, image.url, ACCEPTED_IMAGE_TYPES))
    if (
        isinstance(outcome, Failure)
        and isinstance(outcome.error, InvalidInput)
        and image.path is not None
    ):
        raise outcome.error
    if isinstance(outcome, Failure):
        return None, outcome.error.message.rstrip(".") if isinstance(
            outcome.error, ToldError
        ) else str(outcome)
    return outcome if isinstance(outcome, bytes) else outcome.data, ""


def _read_file(path: Path, number: int, limit: int) -> bytes:
    """Return the bytes of a file within the size limit."""
    try:
        if not path.is_file():
            raise InvalidInput(
                f"There is no file {make_snippet(str(path), 200)}.", hint="Check the path."
            )
        size = path.stat().st_size
        if size > limit:
            raise MediaError(make_too_large(number, size, limit).problem)
        with path.open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise MediaError(f"its file cannot be read: {error.strerror}") from error


@runtime_checkable
class VisionLLM(Protocol):
    """A language model that accepts images."""

    @property
    def model(self) -> str:
        """Return the model name."""

    def see(self, image: bytes, media_type: str, prompt: str) -> str:
        """Return the model's answer to a prompt about an image."""


@dataclass(frozen=True, slots=True)
class VisionReader:
    """Describes images with a vision model."""

    llm: VisionLLM
    sees: ClassVar[bool] = True

    @property
    def model(self) -> str:
        """Return the model name."""
        return self.llm.model

    def read(self, image: bytes, media_type: str) -> Any:
        """Return a description, or an awaitable if the model is asynchronous."""
        return self.llm.see(
            image,
            media_type,
            files("told.extraction").joinpath("prompts", "see.md").read_text("utf-8"),
        )
