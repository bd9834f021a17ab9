"""From whatever a caller hands to `upload` to a document that is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from told.core.entry import NO_META
from told.core.errors import InvalidInput, MediaError, Unsupported
from told.core.ids import tagged
from told.core.query import Receipt
from told.core.scope import Scope
from told.core.text import label, shown
from told.core.when import ALWAYS, Interval
from told.flow import Flow, call
from told.write.desk import Desk
from told.write.documents.document import Document, Pages
from told.write.documents.ingest import ingest
from told.write.documents.read import ACCEPTED, document, file_bytes, read_document
from told.write.documents.screen import screened
from told.write.media.header import header
from told.write.media.parts import Image
from told.write.media.see import Look, sight_of
from told.write.messages import NAME_LIMIT, SOURCE_LIMIT

OFF = "Set fetch_urls to let told fetch it, or fetch it yourself and give the bytes."


@dataclass(frozen=True, slots=True)
class Handed:
    """What was handed in: the bytes, what they are called, where they come from, and what they are said to be."""

    data: bytes
    name: str = ""
    source: str = ""
    media_type: str = ""


def upload(
    desk: Desk, scope: Scope, content: Any, look: Look, *, name: Any = None, source: Any = None,
    media_type: Any = None, metadata: Mapping[str, Any] = NO_META, valid: Interval = ALWAYS,
    expires: int | None = None,
) -> Flow[tuple[Receipt, Document]]:  # fmt: skip
    """Remember a file, bytes, or what a URL names."""
    taken = yield from _taken(content, look)
    called = taken.name if name is None else label(name, "name", limit=NAME_LIMIT)
    found_at = taken.source or called or tagged(taken.data)
    origin = label(found_at if source is None else source, "source", limit=SOURCE_LIMIT)
    kind = taken.media_type if media_type is None else label(media_type, "media_type", limit=NAME_LIMIT)
    handed = replace(taken, name=called, source=origin, media_type=kind)
    found, data = screened((yield from _read(handed, look)), handed.data, desk.settings.secrets)
    receipt = yield from ingest(
        desk, scope, found, source=origin, data=data, name=called, metadata=metadata, valid=valid,
        expires=expires,
    )  # fmt: skip
    return receipt, found


def _taken(content: Any, look: Look) -> Flow[Handed]:
    """The bytes that were handed in, wherever they are."""
    if isinstance(content, bytes | bytearray | memoryview):
        return Handed(bytes(content))
    if isinstance(content, Path):
        data = yield from call(file_bytes, content, look.settings.document_limit)
        return Handed(data, content.name, content.as_posix())
    if not isinstance(content, str) or not content.lower().startswith(("http://", "https://")):
        raise InvalidInput(f"A document is a path, bytes or a URL, not {shown(content)}.")
    if look.fetch is None:
        raise Unsupported("URLs are not fetched.", hint=OFF)
    got = yield from call(look.fetch, content, ACCEPTED)
    return Handed(got.data, urlsplit(got.url).path.rpartition("/")[2], content, got.media_type)


def _read(handed: Handed, look: Look) -> Flow[Document]:
    """The document in the bytes; an image is a document of what it says."""
    seen = header(handed.data)
    if seen is None:
        settings = look.settings
        return (yield from call(read_document, handed.data, handed.name, handed.media_type, settings=settings))
    if len(handed.data) > look.settings.image_limit:
        most = look.settings.image_limit
        raise MediaError(f"The image has {len(handed.data):,} bytes; at most {most:,} are accepted.")
    sight = yield from sight_of(Image(1, handed.data), look)
    if sight.blob is None:
        raise MediaError(sight.problems[0])
    return document(Pages(sight.lines, warnings=sight.problems), handed.data, seen.media_type, handed.name)
