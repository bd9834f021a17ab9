"""From whatever a caller hands to `add` to verbatim evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from told.core.blob import Blob
from told.core.entry import Evidence
from told.core.errors import InvalidInput, TimeError, TooLarge, Unsupported
from told.core.hearsay import MARK, OWN, pictured
from told.core.ids import canonical
from told.core.text import clean, label, plain, shown
from told.core.value import quick
from told.core.when import ALWAYS, Interval, interval
from told.settings import Settings
from told.write.media.parts import Image, image, is_image

ROLES = ("user", "assistant", "tool", "system", "developer", "document")
EXAMPLE = 'Such as {"topic": "travel"}.'
SILENT_ROLES = frozenset({"system", "developer"})
DOCUMENT = "document"
"""The role, and the sort, of what comes from a document: nobody here said it, and nothing vouches for it."""

TEXT_PARTS = ("text", "input_text", "output_text")
NAME_LIMIT = 256
SOURCE_LIMIT = 1024
KEY_LIMIT = 128
MAX_DEPTH = 16
"""How many objects and lists of metadata may stand one inside another."""


@quick
@dataclass(frozen=True, slots=True)
class Turn:
    """One message as evidence, with what the caller wants attached to the memory made of it."""

    evidence: Evidence
    meta: Mapping[str, Any]
    valid: Interval = ALWAYS
    images: tuple[Image, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class Said:
    """What an add was given, read and checked; `blobs` and `warnings` come from looking at so many `images`."""

    turns: tuple[Turn, ...]
    skipped: tuple[Mapping[str, Any], ...]
    images: int = 0
    blobs: tuple[Blob, ...] = ()
    warnings: tuple[str, ...] = ()


def read(
    messages: Any, *, metadata: Any, timestamp: Any, source: Any, settings: Settings
) -> Said:
    """Turn a string, a message or a list of messages into evidence; nothing is half-read.

    Nobody has looked at the images yet: a mark stands for each of them until `told.write.media.see.seen` does.
    """
    rows = _rows(messages, settings)
    origin = None if source is None else check_source(source)
    shared = check_metadata(metadata, settings)
    turns: list[Turn] = []
    skipped: list[Mapping[str, Any]] = []
    count, valid = 0, ALWAYS
    moment: Any = None
    for number, row in enumerate(rows):
        role = _role(row, number)
        content, images = _content(row, number, settings)
        reason = "system message" if role in SILENT_ROLES else "" if content.strip() or images else "empty message"
        if reason:
            skipped.append({"index": number, "role": role, "reason": reason})
            continue
        own = row.get("metadata")
        meta = shared if own is None else {**shared, **check_metadata(own, settings)}
        if (given := row.get("timestamp", timestamp)) is not moment:
            moment, valid = given, since(given, settings)
        name = None if (given := row.get("name")) is None else _name(given, number)
        evidence = Evidence(content, role, name, valid.start, DOCUMENT if role == DOCUMENT else "turn", origin)
        if images or MARK in content:
            evidence = _marked(evidence, images)
            count += len(images)
        turns.append(Turn(evidence, meta, valid, images))
    if count > settings.images_limit:
        raise TooLarge(f"{count} images in one add; the limit is {settings.images_limit}.", hint="Send fewer at once.")
    return Said(tuple(turns), tuple(skipped), count)


def _marked(said: Evidence, images: Sequence[Image]) -> Evidence:
    """Evidence with a mark after its words for each image, and where its words end.

    Whoever reads images before told sees them sends their words under told's own heading: those are an image's too.
    """
    if not images:
        end = pictured(said.content, {})
        return said if end == len(said.content) else replace(said, meta={OWN: end})
    marks = "\n".join(f"[image #{image.number}]" for image in images)
    content = f"{said.content}\n{marks}" if said.content else marks
    return replace(said, content=content, meta={OWN: len(said.content)})


def own_words(evidence: Evidence) -> str:
    """What of a turn its speaker said, without what stands in the images that came with it."""
    own = evidence.meta.get(OWN)
    return evidence.content[:own] if isinstance(own, int) else evidence.content


def _rows(messages: Any, settings: Settings) -> Sequence[Mapping[str, Any]]:
    rows = [_row(row) for row in (messages if isinstance(messages, list | tuple) else (messages,))]
    if not rows:
        raise InvalidInput("messages is empty.", hint="Give at least one message.")
    if len(rows) > settings.batch_limit:
        raise TooLarge(f"{len(rows)} messages in one add; the limit is {settings.batch_limit}.",
                       hint="Split them into several adds.")  # fmt: skip
    return rows


def _row(given: Any) -> Mapping[str, Any]:
    """A message; a text or an image alone is the user's."""
    if isinstance(given, dict) and "content" in given:
        return given
    if isinstance(given, str) or is_image(given):
        return {"role": "user", "content": given}
    if isinstance(given, Mapping):
        return given
    raise InvalidInput("messages must be a string, a message, or a list of messages.",
                       hint='Such as [{"role": "user", "content": "I moved to Berlin"}].')  # fmt: skip


def _role(row: Mapping[str, Any], number: int) -> str:
    role = row.get("role", "user")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidInput(f"Message {number} has the role {shown(role)}.", hint=f"Use one of {', '.join(ROLES)}.")
    return plain(role)


def _content(row: Mapping[str, Any], number: int, settings: Settings) -> tuple[str, tuple[Image, ...]]:
    """The words of a message, and its images by number."""
    if "content" not in row:
        raise InvalidInput(f"Message {number} has no content.", hint='A message is {"role": …, "content": …}.')
    content = row["content"]
    if content is None or isinstance(content, str):
        return clean(content or "", limit=settings.text_limit), ()
    if not isinstance(content, list | Mapping) and not is_image(content):
        raise InvalidInput(f"The content of message {number} is {type(content).__name__}, not text.")
    parts = content if isinstance(content, list) else [content]
    words = "\n".join(_part(part, number) for part in parts if not is_image(part))
    shown_ = [part for part in parts if is_image(part)]
    images = tuple(image(part, place, limit=settings.image_limit) for place, part in enumerate(shown_, 1))
    return clean(words, limit=settings.text_limit), images


def _part(part: Any, number: int) -> str:
    if isinstance(part, str):
        return plain(part)
    if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str):
        return plain(part["text"])
    sort = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    raise Unsupported(f"Message {number} holds {shown(sort)} content; text and images are remembered.",
                      hint="Give documents to upload(); describe the rest in words, or leave it out.")  # fmt: skip


def _name(value: Any, number: int) -> str:
    return label(value, f"The name of message {number}", limit=NAME_LIMIT)


def check_source(value: Any) -> str:
    """Where something comes from, by name."""
    return label(value, "source", limit=SOURCE_LIMIT)


def since(value: Any, settings: Settings) -> Interval:
    """From when something said at a time holds, with the precision it was given in; always, when none was given."""
    if value is None:
        return ALWAYS
    said = interval(value, zone=settings.zone or None)
    if said.start is None:
        raise TimeError(f"{shown(value)} has no beginning.")
    return Interval(said.start, None, said.precision)


def check_metadata(value: Any, settings: Settings) -> Mapping[str, Any]:
    """Metadata as a plain JSON object of bounded size, in a copy that nobody else can change."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"metadata must be an object, not {type(value).__name__}.", hint=EXAMPLE)
    given = dict(value)
    _check_keys(given, MAX_DEPTH)
    written = canonical(given)
    if len(written) > settings.metadata_limit:
        raise TooLarge(f"metadata is {len(written)} bytes of JSON; the limit is {settings.metadata_limit}.")
    copy: dict[str, Any] = json.loads(written)
    return copy


def _check_keys(value: Any, depth: int) -> None:
    """Refuse keys that JSON would turn into text, for they would come back as something else."""
    if not isinstance(value, dict | list | tuple):
        return
    if not depth:
        raise InvalidInput(f"metadata is nested more than {MAX_DEPTH} deep.", hint="Flatten it.")
    for key in value if isinstance(value, dict) else ():
        if not isinstance(key, str):
            raise InvalidInput(f"metadata has the key {shown(key)}, which is not text.", hint=EXAMPLE)
        clean(key, limit=KEY_LIMIT)
    for member in value.values() if isinstance(value, dict) else value:
        _check_keys(member, depth - 1)


def expiry(value: Any, settings: Settings) -> int | None:
    """When a memory stops being recalled: the end of the day, month or instant named."""
    if value is None:
        return None
    span = interval(value, zone=settings.zone or None)
    return span.end if span.precision != "instant" or span.start is None else span.start
