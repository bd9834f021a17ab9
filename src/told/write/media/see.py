"""Looking at the images of what was said: their words join the turn, their bytes become blobs, and nothing is lost.

What stands in an image was not said by whoever sent it: a turn's own words come first, and `own` in the metadata of its
evidence says where they end. Whatever is wrong with an image, the turn is kept, with a mark where the image was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from told.core.blob import NAMED, Blob
from told.core.errors import InvalidInput, MediaError, ToldError
from told.core.hearsay import OWN
from told.core.text import snippet, storable
from told.core.value import quick
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import ImageReader
from told.settings import Settings
from told.write.media.header import header
from told.write.media.parts import Image, too_large
from told.write.messages import Said, Turn, own_words

if TYPE_CHECKING:
    from told.write.media.fetch import Fetched

Fetch: TypeAlias = "Callable[[str, Sequence[str]], Fetched]"
ACCEPTED: Final = ("image/",)
NOT_FETCHED: Final = "URLs are not fetched; set fetch_urls, or send the image itself"
UNREAD: Final = "nothing here reads images, so only the image itself is kept; install tesseract, or name a reader"
UNKNOWN: Final = "it is not a PNG, JPEG, GIF, WebP or BMP image"


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of an image once it was looked at: the lines that stand for it, its bytes, and what went wrong."""

    lines: str
    blob: Blob | None = None
    problems: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class Look:
    """How images are looked at."""

    readers: Sequence[ImageReader]
    settings: Settings
    fetch: Fetch | None = None


def seen(said: Said, look: Look) -> Flow[Said]:
    """What was said, with what its images say; a turn without images is as it was."""
    if not any(turn.images for turn in said.turns):
        return said
    turns: list[Turn] = []
    blobs: dict[str, Blob] = {}
    warnings: dict[str, None] = {}
    for turn in said.turns:
        sights = yield from _sights(turn, look)
        turns.append(_told(turn, sights, look.settings.text_limit))
        blobs |= {sight.blob.hash: sight.blob for sight in sights if sight.blob is not None}
        warnings |= dict.fromkeys(problem for sight in sights for problem in sight.problems)
    return replace(said, turns=tuple(turns), blobs=tuple(blobs.values()), warnings=(*said.warnings, *warnings))


def _sights(turn: Turn, look: Look) -> Flow[list[Sight]]:
    sights: list[Sight] = []
    for image in turn.images:
        sights += [(yield from sight_of(image, look))]
    return sights


def _told(turn: Turn, sights: Sequence[Sight], limit: int) -> Turn:
    """A turn with the lines of its images after its own words, as many of them as fit."""
    if not sights:
        return turn
    said = turn.evidence
    words = own_words(said)
    lines = "\n".join(sight.lines for sight in sights)
    content = f"{words}\n{lines}" if words else lines
    named = [sight.blob.hash for sight in sights if sight.blob is not None]
    meta = {**said.meta, OWN: len(words), **({NAMED: named} if named else {})}
    return replace(turn, evidence=replace(said, content=content[:limit], meta=meta), images=())


def sight_of(image: Image, look: Look) -> Flow[Sight]:
    """What an image says; what is wrong with it is a mark and a problem; only a file that is not there is an error."""
    data, problem = yield from _bytes(image, look)
    if data is None:
        return _unseen(image, problem)
    what = header(data)
    if what is None:
        return _unseen(image, UNKNOWN)
    if what.pixels > (most := look.settings.pixel_limit):
        return _unseen(image, f"it claims {what.pixels:,} pixels, and at most {most:,} are decoded")
    blob = Blob.of(data, what.media_type)
    if not look.readers:
        return Sight(f"[image #{image.number}: {what}]", blob, (f"Image #{image.number}: {UNREAD}.",))
    lines, problems = yield from _read(image, blob, look)
    return Sight("\n".join(lines) or f"[image #{image.number}: {what}]", blob, tuple(problems))


def _read(image: Image, blob: Blob, look: Look) -> Flow[tuple[list[str], list[str]]]:
    """What each reader makes of an image, under a heading, and what those could not do that failed."""
    lines: list[str] = []
    problems: list[str] = []
    for reader in look.readers:
        done = yield from attempt(call(reader.read, blob.data, blob.media_type))
        if isinstance(done, str):
            heading = "Description of" if getattr(reader, "sees", False) else "OCR text from"
            words = storable(done)[: look.settings.text_limit].strip()
            lines += [f"[{heading} image #{image.number}]\n{words}"] if words else []
        else:
            why = done if isinstance(done, Failure) else f"it answered {type(done).__name__}"
            problems.append(f"Image #{image.number} was not read by {reader.model}: {why}")
    return lines, problems


def _unseen(image: Image, problem: str) -> Sight:
    """An image nobody looked at: where it is, or that it was there."""
    place = f": {snippet(storable(image.url), 200)}" if image.url else ""
    return Sight(f"[image #{image.number}{place}]", None, (f"Image #{image.number} is not kept: {problem}.",))


def _bytes(image: Image, look: Look) -> Flow[tuple[bytes | None, str]]:
    """The bytes of an image wherever they are, or why there are none."""
    if image.problem or image.data is not None:
        return image.data, image.problem
    done: Any
    if image.path is not None:
        done = yield from attempt(call(_file, image.path, image.number, look.settings.image_limit))
    elif look.fetch is None or image.url is None:
        return None, NOT_FETCHED
    else:
        done = yield from attempt(call(look.fetch, image.url, ACCEPTED))
    if isinstance(done, Failure) and isinstance(done.error, InvalidInput) and image.path is not None:
        raise done.error
    if isinstance(done, Failure):
        return None, done.error.message.rstrip(".") if isinstance(done.error, ToldError) else str(done)
    return done if isinstance(done, bytes) else done.data, ""


def _file(path: Path, number: int, limit: int) -> bytes:
    """The bytes of a file that is not too large."""
    try:
        if not path.is_file():
            raise InvalidInput(f"There is no file {snippet(str(path), 200)}.", hint="Check the path.")
        size = path.stat().st_size
        if size > limit:
            raise MediaError(too_large(number, size, limit).problem)
        with path.open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise MediaError(f"its file cannot be read: {error.strerror}") from error
