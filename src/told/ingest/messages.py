"""Parse the messages of `add` into evidence, segment turns by speaker, and recognise replies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.errors import InvalidInput, TimeError, TooLarge, Unsupported
from told.ids import canonical_json
from told.ingest.image_parts import Image, is_image, parse_image
from told.model.entry import Blob, Evidence
from told.model.fact import PASSAGE_CHARS, Fact
from told.settings import Settings
from told.text.dates import ALWAYS, Interval, parse_interval
from told.text.echo import IMAGE_MARK, OWN_CHARS_KEY, OwnText, find_image_text_start
from told.text.tokens import format_value, to_plain_str, validate_label, validate_text

ROLES = ("user", "assistant", "tool", "system", "developer", "document")
METADATA_EXAMPLE = 'Such as {"topic": "travel"}.'
SILENT_ROLES = frozenset({"system", "developer"})
DOCUMENT = "document"
"""Role and evidence sort of text from a document, which no participant said or vouches for."""

TEXT_PARTS = ("text", "input_text", "output_text")
NAME_LIMIT = 256
SOURCE_LIMIT = 1024
KEY_LIMIT = 128
MAX_DEPTH = 16
"""Maximum nesting depth of metadata."""


@dataclass(frozen=True, slots=True)
class InputTurn:
    """A message as evidence, with the metadata to attach to the memories made from it."""

    evidence: Evidence
    meta: Mapping[str, Any]
    valid: Interval = ALWAYS
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """The parsed and validated messages of an add.

    `blobs` and `warnings` are filled when the images are read.
    """

    turns: tuple[InputTurn, ...]
    skipped: tuple[Mapping[str, Any], ...]
    image_count: int = 0
    blobs: tuple[Blob, ...] = ()
    warnings: tuple[str, ...] = ()


def parse_messages(
    messages: Any, *, metadata: Any, timestamp: Any, source: Any, settings: Settings
) -> ParsedMessages:
    """Parse a string, a message or a list of messages; reject the input as a whole if invalid.

    Images are replaced by marks until `told.ingest.images.read_images` reads them.
    """
    rows = _parse_rows(messages, settings)
    origin = None if source is None else check_source(source)
    shared_meta = check_metadata(metadata, settings)
    turns: list[InputTurn] = []
    skipped: list[Mapping[str, Any]] = []
    image_count, valid = 0, ALWAYS
    last_timestamp: Any = None
    for number, row in enumerate(rows):
        role = _parse_role(row, number)
        content, images = _parse_content(row, number, settings)
        reason = "" if content.strip() or images else "empty message"
        if role in SILENT_ROLES:
            reason = "system message"
        if reason:
            skipped.append({"index": number, "role": role, "reason": reason})
            continue
        own_meta = row.get("metadata")
        meta = (
            shared_meta
            if own_meta is None
            else {**shared_meta, **check_metadata(own_meta, settings)}
        )
        if (row_timestamp := row.get("timestamp", timestamp)) is not last_timestamp:
            last_timestamp, valid = row_timestamp, parse_valid_since(row_timestamp, settings)
        name = None if (row_name := row.get("name")) is None else _parse_name(row_name, number)
        evidence = Evidence(
            content, role, name, valid.start, DOCUMENT if role == DOCUMENT else "turn", origin
        )
        if images or IMAGE_MARK in content:
            evidence = _add_image_marks(evidence, images)
            image_count += len(images)
        turns.append(InputTurn(evidence, meta, valid, images))
    if image_count > settings.images_limit:
        raise TooLarge(
            f"{image_count} images in one add; the limit is {settings.images_limit}.",
            hint="Send fewer at once.",
        )
    return ParsedMessages(tuple(turns), tuple(skipped), image_count)


def _add_image_marks(evidence: Evidence, images: Sequence[Image]) -> Evidence:
    """Append a mark per image and record where the speaker's own words end.

    Callers that read images themselves send the text under the same heading; it counts as image
    text.
    """
    if not images:
        end = find_image_text_start(evidence.content, {})
        return (
            evidence
            if end == len(evidence.content)
            else replace(evidence, meta={OWN_CHARS_KEY: end})
        )
    marks = "\n".join(f"[image #{image.number}]" for image in images)
    content = f"{evidence.content}\n{marks}" if evidence.content else marks
    return replace(evidence, content=content, meta={OWN_CHARS_KEY: len(evidence.content)})


def get_own_words(evidence: Evidence) -> str:
    """Return the words of the speaker, without text from images."""
    end = evidence.meta.get(OWN_CHARS_KEY)
    return evidence.content[:end] if isinstance(end, int) else evidence.content


def _parse_rows(messages: Any, settings: Settings) -> Sequence[Mapping[str, Any]]:
    rows = [
        _to_message(row)
        for row in (messages if isinstance(messages, list | tuple) else (messages,))
    ]
    if not rows:
        raise InvalidInput("messages is empty.", hint="Pass at least one message.")
    if len(rows) > settings.batch_limit:
        raise TooLarge(
            f"{len(rows)} messages in one add; the limit is {settings.batch_limit}.",
            hint="Split them into several adds.",
        )
    return rows


def _to_message(given: Any) -> Mapping[str, Any]:
    """Return input as a message; a bare text or image is the user's."""
    if isinstance(given, dict) and "content" in given:
        return given
    if isinstance(given, str) or is_image(given):
        return {"role": "user", "content": given}
    if isinstance(given, Mapping):
        return given
    raise InvalidInput(
        "messages must be a string, a message, or a list of messages.",
        hint='Such as [{"role": "user", "content": "I moved to Berlin"}].',
    )


def _parse_role(row: Mapping[str, Any], number: int) -> str:
    role = row.get("role", "user")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidInput(
            f"Message {number} has the role {format_value(role)}.",
            hint=f"Use one of {', '.join(ROLES)}.",
        )
    return to_plain_str(role)


def _parse_content(
    row: Mapping[str, Any], number: int, settings: Settings
) -> tuple[str, tuple[Image, ...]]:
    """Return the text of a message and its numbered images."""
    if "content" not in row:
        raise InvalidInput(
            f"Message {number} has no content.", hint='A message is {"role": …, "content": …}.'
        )
    content = row["content"]
    if content is None or isinstance(content, str):
        return validate_text(content or "", limit=settings.text_limit), ()
    if not isinstance(content, list | Mapping) and not is_image(content):
        raise InvalidInput(
            f"The content of message {number} is {type(content).__name__}, not text."
        )
    parts = content if isinstance(content, list) else [content]
    text = "\n".join(_parse_text_part(part, number) for part in parts if not is_image(part))
    image_parts = [part for part in parts if is_image(part)]
    images = tuple(
        parse_image(part, position, limit=settings.image_limit)
        for position, part in enumerate(image_parts, 1)
    )
    return validate_text(text, limit=settings.text_limit), images


def _parse_text_part(part: Any, number: int) -> str:
    if isinstance(part, str):
        return to_plain_str(part)
    if (
        isinstance(part, Mapping)
        and part.get("type") in TEXT_PARTS
        and isinstance(part.get("text"), str)
    ):
        return to_plain_str(part["text"])
    part_type = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    raise Unsupported(
        f"Message {number} has {format_value(part_type)} content; "
        "only text and images are supported.",
        hint="Pass documents to upload(); describe other content in words, or leave it out.",
    )


def _parse_name(value: Any, number: int) -> str:
    return validate_label(value, f"The name of message {number}", limit=NAME_LIMIT)


def check_source(value: Any) -> str:
    """Validate a source label."""
    return validate_label(value, "source", limit=SOURCE_LIMIT)


def parse_valid_since(value: Any, settings: Settings) -> Interval:
    """Return the open interval that begins at a time, with its precision; ALWAYS for None."""
    if value is None:
        return ALWAYS
    span = parse_interval(value, zone=settings.zone or None)
    if span.start is None:
        raise TimeError(f"{format_value(value)} has no start.")
    return Interval(span.start, None, span.precision)


def check_metadata(value: Any, settings: Settings) -> Mapping[str, Any]:
    """Return metadata as a validated deep copy of bounded size."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"metadata must be an object, not {type(value).__name__}.", hint=METADATA_EXAMPLE
        )
    metadata = dict(value)
    _check_keys(metadata, MAX_DEPTH)
    encoded = canonical_json(metadata)
    if len(encoded) > settings.metadata_limit:
        raise TooLarge(
            f"metadata is {len(encoded)} bytes of JSON; the limit is {settings.metadata_limit}."
        )
    copy: dict[str, Any] = json.loads(encoded)
    return copy


def _check_keys(value: Any, depth: int) -> None:
    """Reject non-string keys: JSON would return them as strings."""
    if not isinstance(value, dict | list | tuple):
        return
    if not depth:
        raise InvalidInput(f"metadata is nested more than {MAX_DEPTH} deep.", hint="Flatten it.")
    for key in value if isinstance(value, dict) else ():
        if not isinstance(key, str):
            raise InvalidInput(
                f"metadata has the key {format_value(key)}, which is not a string.",
                hint=METADATA_EXAMPLE,
            )
        validate_text(key, limit=KEY_LIMIT)
    for member in value.values() if isinstance(value, dict) else value:
        _check_keys(member, depth - 1)


def parse_expiry(value: Any, settings: Settings) -> int | None:
    """Return when a memory expires: the instant, or the end of the day or month given."""
    if value is None:
        return None
    span = parse_interval(value, zone=settings.zone or None)
    return span.end if span.precision != "instant" or span.start is None else span.start


OWN_SPANS_KEY: Final = "heard"
"""Evidence metadata with the spans of the speaker's own words, if not the whole text."""


@dataclass(frozen=True, slots=True)
class TurnSegment:
    """A part of a turn as extractors see it, with its position in the turn."""

    turn_index: int
    turn: InputTurn
    own_text: OwnText


def segment_turns(turns: Iterable[tuple[int, InputTurn, OwnText]]) -> list[TurnSegment]:
    """Split turns into the speaker's own words and the text of images."""
    segments: list[TurnSegment] = []
    for turn_index, turn, own_text in turns:
        if own_text.text.strip():
            segments.append(TurnSegment(turn_index, _keep_own_text(turn, own_text.text), own_text))
        if (image_text := _find_image_text(turn.evidence)) is not None:
            segments.append(
                TurnSegment(turn_index, _to_document_turn(turn, image_text.text), image_text)
            )
    return segments


def _keep_own_text(turn: InputTurn, text: str) -> InputTurn:
    """Return a turn reduced to the speaker's own words."""
    evidence = turn.evidence
    return (
        turn
        if evidence.content == text
        else replace(turn, evidence=replace(evidence, content=text))
    )


def _find_image_text(evidence: Evidence) -> OwnText | None:
    """Return the image text of a turn, if any."""
    start = evidence.meta.get(OWN_CHARS_KEY)
    if not isinstance(start, int) or not evidence.content[start:].strip():
        return None
    return OwnText(evidence.content[start:], ((start, len(evidence.content)),))


def _to_document_turn(turn: InputTurn, text: str) -> InputTurn:
    """Return image text as an untrusted document turn."""
    return replace(
        turn, evidence=replace(turn.evidence, content=text, role=DOCUMENT, sort=DOCUMENT, name=None)
    )


def build_span_meta(own_text: OwnText, content: str) -> Mapping[str, Any]:
    """Return metadata that allows restoring the own text; empty if it is the whole text."""
    return (
        {} if own_text.text == content else {OWN_SPANS_KEY: [list(part) for part in own_text.spans]}
    )


def restore_own_text(evidence: Evidence) -> OwnText:
    """Return the speaker's own words of stored evidence."""
    parts: Sequence[Sequence[int]] | None = evidence.meta.get(OWN_SPANS_KEY)
    if parts is None:
        return OwnText.from_text(evidence.content)
    spans = tuple((start, end) for start, end in parts)
    return OwnText("\n".join(evidence.content[start:end] for start, end in spans), spans)


MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class PrecedingTurn:
    """A turn that the next one may reply to, with its indexed text."""

    thread: str
    said_at: int | None
    passage: str


def is_repliable(evidence: Evidence) -> bool:
    """Return True if a turn is a short message by a named person."""
    return (
        evidence.role == "user"
        and evidence.name is not None
        and len(evidence.content) <= PASSAGE_CHARS
    )


def evidence_to_preceding(thread: str, evidence: Evidence) -> PrecedingTurn | None:
    """Return a turn as the predecessor of the next one, if it is repliable."""
    return (
        PrecedingTurn(thread, evidence.said_at, f"{evidence.name}: {evidence.content}")
        if is_repliable(evidence)
        else None
    )


def fact_to_preceding(fact: Fact) -> PrecedingTurn | None:
    """Return the last stored turn as a predecessor, if repliable and with a known time."""
    if (
        fact.said_at is None
        or fact.role != "user"
        or fact.actor is None
        or len(fact.text) > PASSAGE_CHARS
    ):
        return None
    return PrecedingTurn(fact.id, fact.said_at, f"{fact.actor}: {fact.text}")


def is_reply(evidence: Evidence, preceding: PrecedingTurn, max_minutes: float) -> bool:
    """Return True if a turn may reply to another: by a person and within `max_minutes`."""
    if not is_repliable(evidence):
        return False
    now, then = evidence.said_at, preceding.said_at
    if now is None or then is None:
        return now is then
    return 0 <= now - then <= max_minutes * MINUTE_US
