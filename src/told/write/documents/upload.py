"""From whatever a caller hands to `upload` to a document that is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from told.core.entry import NO_META
from told.core.errors import InvalidInput, MediaError, Unsupported
from told.core.ids import hash_content
from told.core.query import Receipt
from told.core.scope import Scope
from told.core.text import format_value, validate_label
from told.core.when import ALWAYS, Interval
from told.flow import Flow, call
from told.write.desk import WriteContext
from told.write.documents.document import Document, ParsedDocument
from told.write.documents.ingest import ingest_document
from told.write.documents.read import ACCEPTED_TYPES, build_document, read_document, read_file_bytes
from told.write.documents.screen import screen_document
from told.write.media.header import read_image_header
from told.write.media.parts import Image
from told.write.media.see import ImageContext, read_image
from told.write.messages import NAME_LIMIT, SOURCE_LIMIT

FETCH_DISABLED_HINT = (
    "Set fetch_urls to let told fetch it, or fetch it yourself and give the bytes."
)


@dataclass(frozen=True, slots=True)
class UploadedContent:
    """What was handed in: the bytes, what they are called, where they come from, and what they are said to be."""

    data: bytes
    name: str = ""
    source: str = ""
    media_type: str = ""


def upload_document(
    ctx: WriteContext,
    scope: Scope,
    content: Any,
    image_ctx: ImageContext,
    *,
    name: Any = None,
    source: Any = None,
    media_type: Any = None,
    metadata: Mapping[str, Any] = NO_META,
    valid: Interval = ALWAYS,
    expires: int | None = None,
) -> Flow[tuple[Receipt, Document]]:
    """Remember a file, bytes, or what a URL names."""
    loaded = yield from _load_content(content, image_ctx)
    display_name = loaded.name if name is None else validate_label(name, "name", limit=NAME_LIMIT)
    default_source = loaded.source or display_name or hash_content(loaded.data)
    origin = validate_label(
        default_source if source is None else source, "source", limit=SOURCE_LIMIT
    )
    kind = (
        loaded.media_type
        if media_type is None
        else validate_label(media_type, "media_type", limit=NAME_LIMIT)
    )
    uploaded = replace(loaded, name=display_name, source=origin, media_type=kind)
    parsed, data = screen_document(
        (yield from _read_content(uploaded, image_ctx)), uploaded.data, ctx.settings.secrets
    )
    receipt = yield from ingest_document(
        ctx,
        scope,
        parsed,
        source=origin,
        data=data,
        name=display_name,
        metadata=metadata,
        valid=valid,
        expires=expires,
    )
    return receipt, parsed


def _load_content(content: Any, image_ctx: ImageContext) -> Flow[UploadedContent]:
    """The bytes that were handed in, wherever they are."""
    if isinstance(content, bytes | bytearray | memoryview):
        return UploadedContent(bytes(content))
    if isinstance(content, Path):
        data = yield from call(read_file_bytes, content, image_ctx.settings.document_limit)
        return UploadedContent(data, content.name, content.as_posix())
    if not isinstance(content, str) or not content.lower().startswith(("http://", "https://")):
        raise InvalidInput(f"A document is a path, bytes or a URL, not {format_value(content)}.")
    if image_ctx.fetch is None:
        raise Unsupported("URLs are not fetched.", hint=FETCH_DISABLED_HINT)
    fetched = yield from call(image_ctx.fetch, content, ACCEPTED_TYPES)
    return UploadedContent(
        fetched.data, urlsplit(fetched.url).path.rpartition("/")[2], content, fetched.media_type
    )


def _read_content(uploaded: UploadedContent, image_ctx: ImageContext) -> Flow[Document]:
    """The document in the bytes; an image is a document of what it says."""
    image_header = read_image_header(uploaded.data)
    if image_header is None:
        settings = image_ctx.settings
        return (
            yield from call(
                read_document, uploaded.data, uploaded.name, uploaded.media_type, settings=settings
            )
        )
    if len(uploaded.data) > image_ctx.settings.image_limit:
        max_bytes = image_ctx.settings.image_limit
        raise MediaError(
            f"The image has {len(uploaded.data):,} bytes; at most {max_bytes:,} are accepted."
        )
    reading = yield from read_image(Image(1, uploaded.data), image_ctx)
    if reading.blob is None:
        raise MediaError(reading.problems[0])
    return build_document(
        ParsedDocument(reading.text, warnings=reading.problems),
        uploaded.data,
        image_header.media_type,
        uploaded.name,
    )
