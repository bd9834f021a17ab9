"""Store documents: the text as evidence, its parts as facts under a root fact.

A document is identified by its source and scope. Unchanged content writes nothing; changed content
is a revision: unchanged parts keep their threads, changed ones supersede their predecessors, and
removed ones are retracted as revised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from told.errors import InvalidInput, MediaError, TooLarge, Unsupported
from told.flow import Flow, call
from told.ids import hash_content
from told.ingest import embedding
from told.ingest.context import WriteContext
from told.ingest.documents.formats import (
    Document,
    ParsedDocument,
    Section,
    find_first_title,
    is_docx,
    read_docx,
    read_html,
    read_markdown,
    read_pdf,
    read_plain,
    split_parts,
)
from told.ingest.image_parts import Image, read_image_header
from told.ingest.images import ImageContext, read_image
from told.ingest.messages import DOCUMENT, NAME_LIMIT, SOURCE_LIMIT
from told.ledger.commit import commit_batch, retry_on_conflict
from told.ledger.history import load_threads_from_evidence
from told.model.entry import (
    BLOBS_KEY,
    NO_META,
    Asserted,
    Blob,
    Claim,
    Draft,
    Evidence,
    Linked,
    Observed,
    Retracted,
    Verb,
)
from told.model.fact import Fact
from told.model.query import Event, Receipt
from told.model.scope import Scope
from told.ports import Batch, Guard, NoEvidence, ThreadAt
from told.runtime import lazy_regex
from told.settings import Settings
from told.text import secrets
from told.text.dates import ALWAYS, Interval
from told.text.tokens import format_value, make_snippet, strip_unstorable, validate_label

PART_OF: Final = "part_of"
SUPERSEDES: Final = "supersedes"
REVISED: Final = "revised"
OUTLINE_LIMIT: Final = 4000
"""Maximum length of the root fact of a document with several parts."""

UNCHANGED_WARNING: Final = "The document is unchanged; its metadata was not updated."


@dataclass(frozen=True, slots=True)
class IncomingDocument:
    """A document to ingest, with its source, bytes and caller metadata."""

    document: Document
    source: str
    blob: Blob
    name: str
    meta: Mapping[str, Any]
    valid: Interval = ALWAYS
    expires: int | None = None

    def build_evidence(self) -> Evidence:
        """Return the document text as evidence."""
        meta = {
            "title": self.document.title,
            "media_type": self.document.media_type,
            BLOBS_KEY: [self.blob.hash],
        }
        text = self.document.text or f"[document: {self.name}]"
        return Evidence(text, DOCUMENT, self.name, self.valid.start, DOCUMENT, self.source, meta)

    def build_claim(
        self,
        text: str,
        evidence: str,
        about: Mapping[str, Any],
        span: tuple[int, int] | None = None,
    ) -> Claim:
        """Return a claim made by the document itself."""
        return Claim(
            text,
            DOCUMENT,
            valid=self.valid,
            expires=self.expires,
            evidence=evidence,
            span=span,
            role=DOCUMENT,
            actor=self.name,
            said_at=self.valid.start,
            source=self.source,
            meta={**self.meta, DOCUMENT: dict(about)},
        )


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The stored root fact of a document and its parts."""

    root: Fact | None = None
    parts: tuple[Fact, ...] = ()


@dataclass(slots=True)
class IngestPlan:
    """The drafts and guards of an ingestion."""

    drafts: list[Draft]
    guards: list[Guard]


def ingest_document(
    ctx: WriteContext,
    scope: Scope,
    document: Document,
    *,
    source: str,
    data: bytes,
    name: str = "",
    metadata: Mapping[str, Any] = NO_META,
    valid: Interval = ALWAYS,
    expires: int | None = None,
) -> Flow[Receipt]:
    """Add a document, revise the one with the same source, or do nothing if unchanged."""
    blob = Blob.from_bytes(data, document.media_type)
    display_name = make_snippet(name or source, NAME_LIMIT)
    incoming = IncomingDocument(document, source, blob, display_name, metadata, valid, expires)

    def decide() -> Flow[Receipt]:
        stored = yield from _load_stored(ctx, scope, source)
        if (
            stored.root is not None
            and _get_document_meta(stored.root).get("sha256") == document.sha256
        ):
            warnings = (*document.warnings, *((UNCHANGED_WARNING,) if metadata else ()))
            return Receipt(
                (_build_event("NONE", stored.root.id, stored.root.text, incoming),), (), warnings
            )
        return (yield from _commit_revision(ctx, scope, incoming, stored))

    receipt = yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide)
    return (
        yield from embedding.embed_after_commit(
            ctx.store, ctx.embedder, scope.account, receipt, ctx.settings
        )
    )


def _load_stored(ctx: WriteContext, scope: Scope, source: str) -> Flow[StoredDocument]:
    """Return what exactly this scope has stored for a source."""
    evidence_rows = yield from call(
        ctx.store.evidence_rows, scope.account, scope=scope, source=source
    )
    evidence_ids = [
        evidence_row.id for evidence_row in evidence_rows if evidence_row.scope == scope
    ]
    threads = (
        (yield from load_threads_from_evidence(ctx.store, scope.account, evidence_ids))
        if evidence_ids
        else ()
    )
    facts: list[Fact] = []
    for thread in threads:
        fact = yield from call(ctx.store.get_fact, scope.account, thread)
        if fact is not None and fact.kind == DOCUMENT and fact.source == source:
            facts.append(fact)
    roots = [fact for fact in facts if "sha256" in _get_document_meta(fact)]
    root = roots[-1] if roots else None
    return StoredDocument(root, tuple(fact for fact in facts if fact is not root))


def _get_document_meta(fact: Fact) -> Mapping[str, Any]:
    """Return the metadata told keeps on a document fact."""
    meta = fact.meta.get(DOCUMENT)
    return meta if isinstance(meta, dict) else NO_META


def _commit_revision(
    ctx: WriteContext, scope: Scope, incoming: IncomingDocument, stored: StoredDocument
) -> Flow[Receipt]:
    """Commit a new or changed document."""
    document_evidence = incoming.build_evidence()
    existing = yield from call(
        ctx.store.lookup_existing, scope, (), (document_evidence.digest(),), None
    )
    evidence = existing.evidence.get(document_evidence.digest())
    plan = IngestPlan([], [])
    if evidence is None:
        evidence = ctx.id_generator.new_id()
        plan.drafts.append(Draft(Observed(evidence, document_evidence), scope, ctx.author))
        plan.guards.append(NoEvidence(scope, (document_evidence.digest(),)))
    parts = split_parts(incoming.document, ctx.settings.ingestion.document_part)
    text = _build_outline(incoming, parts) if len(parts) > 1 else document_evidence.content
    root = ctx.id_generator.new_id() if stored.root is None else stored.root.id
    since = None if stored.root is None else stored.root.created_at
    about = {
        "title": incoming.document.title,
        "media_type": incoming.document.media_type,
        "sha256": incoming.document.sha256,
        "size": incoming.blob.size,
        "parts": len(parts),
    }
    span = (0, len(text)) if len(parts) == 1 else None
    plan.drafts.append(
        Draft(
            Asserted(root, incoming.build_claim(text, evidence, about, span), since),
            scope,
            ctx.author,
        )
    )
    plan.guards.append(ThreadAt(root, None if stored.root is None else stored.root.seq))
    _draft_parts(
        ctx, scope, incoming, plan, stored, parts if len(parts) > 1 else (), (root, evidence)
    )
    vectors, warnings = yield from embedding.embed_before_commit(
        ctx.store, ctx.embedder, plan.drafts, {}, embedding.EMPTY_LOOKUP
    )
    model = ctx.embedder.model if ctx.embedder else None
    batch = Batch(
        scope.account, plan.drafts, plan.guards, -1, None, vectors, model, blobs=(incoming.blob,)
    )
    entries = yield from commit_batch(ctx.store, batch)
    previous_text = None if stored.root is None else stored.root.text
    event = _build_event(
        "ADD" if stored.root is None else "UPDATE", root, text, incoming, previous_text
    )
    return Receipt((event,), (), (*incoming.document.warnings, *warnings), entries[0].tx)


def _build_outline(incoming: IncomingDocument, parts: Sequence[Section]) -> str:
    """Return the root fact of a document with several parts: its title and headings."""
    sections = incoming.document.sections or parts
    titles = dict.fromkeys(section.title for section in sections if section.title)
    return "\n".join(
        [incoming.document.title, *(title for title in titles if title != incoming.document.title)]
    )[:OUTLINE_LIMIT]


def _draft_parts(
    ctx: WriteContext,
    scope: Scope,
    incoming: IncomingDocument,
    plan: IngestPlan,
    stored: StoredDocument,
    parts: Sequence[Section],
    root_and_evidence: tuple[str, str],
) -> None:
    """Plan the parts: keep unchanged ones, assert new ones, retract removed ones."""
    root, evidence = root_and_evidence
    removed = {fact.text: fact for fact in stored.parts}
    texts = {incoming.document.text[part.start : part.end].strip(): part for part in parts}
    for text in texts:
        removed.pop(text, None)
    kept_texts = {fact.text for fact in stored.parts if fact.text in texts}
    previous_by_section = {
        _get_document_meta(fact).get("section"): fact for fact in removed.values()
    }
    for text, part in texts.items():
        if text in kept_texts:
            continue
        thread = ctx.id_generator.new_id()
        about = {"title": incoming.document.title, "section": part.title}
        claim = incoming.build_claim(text, evidence, about, (part.start, part.end))
        verbs: list[Verb] = [Asserted(thread, claim), Linked(thread, PART_OF, root)]
        if (previous := previous_by_section.pop(part.title, None)) is not None:
            verbs.append(Linked(thread, SUPERSEDES, previous.id))
        plan.drafts += [Draft(verb, scope, ctx.author) for verb in verbs]
    for fact in stored.parts:
        if fact.text not in texts:
            plan.drafts.append(Draft(Retracted(fact.id, REVISED), scope, ctx.author))
            plan.guards.append(ThreadAt(fact.id, fact.seq))


def _build_event(
    event: str, thread: str, text: str, incoming: IncomingDocument, previous_text: str | None = None
) -> Event:
    return Event(event, thread, text, previous_text, DOCUMENT, incoming.name)


PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES_BY_SUFFIX: Final[Mapping[str, str]] = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".rst": "text/plain",
    ".csv": "text/plain",
    ".tsv": "text/plain",
    ".json": "text/plain",
    ".jsonl": "text/plain",
    ".yaml": "text/plain",
    ".yml": "text/plain",
    ".toml": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".pdf": PDF,
    ".docx": DOCX,
}
"""Media type by file name suffix; other files are detected by content."""

ACCEPTED_TYPES: Final = (
    "text/",
    "image/",
    PDF,
    DOCX,
    "application/xhtml+xml",
    "application/json",
    "application/octet-stream",
)
"""Prefixes of the media types accepted from URLs."""

TITLE_LIMIT: Final = 256
_HTML_START: Final = lazy_regex(
    rb"\s*(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE | re.DOTALL
)
SUPPORTED_HINT: Final = "Supported formats: text, Markdown, HTML, PDF, DOCX and images."


def read_document(
    content: Path | bytes, name: str = "", media_type: str = "", *, settings: Settings | None = None
) -> Document:
    """Read a document from a file or bytes; `name` and `media_type` help to detect its format."""
    settings = settings or Settings()
    data = (
        read_file_bytes(content, settings.document_limit)
        if isinstance(content, Path)
        else bytes(content)
    )
    name = name or (content.name if isinstance(content, Path) else "")
    if len(data) > settings.document_limit:
        raise _make_too_large_error(len(data), settings.document_limit)
    kind = detect_media_type(data, name, media_type)
    parsed = _list_readers(settings)[kind](data, settings.document_limit)
    if len(parsed.text) > settings.ingestion.document_text:
        raise TooLarge(
            f"The document has {len(parsed.text):,} characters; "
            f"the limit is {settings.ingestion.document_text:,}.",
            hint="Split it, or raise document_text.",
        )
    return build_document(parsed, data, kind, name)


def build_document(parsed: ParsedDocument, data: bytes, kind: str, name: str) -> Document:
    """Build a document from a reader's result; the title defaults to the file name."""
    title = (
        make_snippet(
            strip_unstorable(parsed.title or find_first_title(parsed.sections)), TITLE_LIMIT
        )
        or name
        or "document"
    )
    text = strip_unstorable(parsed.text)
    sections = (
        parsed.sections if text == parsed.text else ()
    )  # removed characters shift the offsets
    return Document(title, text, sections, kind, hash_content(data), parsed.warnings)


def read_file_bytes(path: Path, limit: int) -> bytes:
    """Return the bytes of a regular file within the size limit."""
    try:
        if path.is_dir():
            hint = "Use `told blob sync FOLDER` to store every document in a folder."
            raise MediaError(f"{make_snippet(str(path), 200)} is a folder.", hint=hint)
        if not path.is_file():
            raise MediaError(
                f"There is no file {make_snippet(str(path), 200)}.", hint="Check the path."
            )
        if path.stat().st_size > limit:
            raise _make_too_large_error(path.stat().st_size, limit)
        with path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise MediaError(
            f"{make_snippet(str(path), 200)} cannot be read: {error.strerror}."
        ) from error


def detect_media_type(data: bytes, name: str, media_type: str) -> str:
    """Return the media type by the first bytes, else by the given type or name."""
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return PDF
    if data.startswith(b"PK\x03\x04"):
        if is_docx(data):
            return DOCX
        raise Unsupported(
            f"{name or 'This'} is an archive, but not a DOCX document.", hint=SUPPORTED_HINT
        )
    given_type = media_type.partition(";")[0].strip().lower()
    named_type = MEDIA_TYPES_BY_SUFFIX.get(PurePosixPath(name.lower()).suffix, "")
    if given_type in MEDIA_TYPES_BY_SUFFIX.values():
        detected = given_type
    else:
        detected = "text/html" if given_type == "application/xhtml+xml" else named_type
    if detected in (PDF, DOCX) or (
        b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
    ):
        subject = f"{name} is" if name else "It is"
        raise Unsupported(f"{subject} not a supported document.", hint=SUPPORTED_HINT)
    return detected or ("text/html" if _HTML_START.match(data[:4096]) else "text/plain")


def _list_readers(settings: Settings) -> Mapping[str, Callable[[bytes, int], ParsedDocument]]:
    return {
        "text/plain": read_plain,
        "text/markdown": read_markdown,
        "text/html": read_html,
        DOCX: read_docx,
        PDF: partial(read_pdf, timeout=settings.read_timeout),
    }


def _make_too_large_error(size: int, limit: int) -> TooLarge:
    return TooLarge(
        f"The document has {size:,} bytes; the limit is {limit:,}.",
        hint="Split it, or raise document_limit.",
    )


PLAIN_TEXT = "text/plain"
KEEP, REJECT = "keep", "reject"


def screen_document(document: Document, data: bytes, policy: str) -> tuple[Document, bytes]:
    """Return a document and its bytes with secrets handled; raise if they are rejected.

    If text is redacted, the text replaces the original bytes.
    """
    secret_kinds = secrets.list_secret_kinds(
        secrets.find_secrets(f"{document.text}\n{document.title}")
    )
    if not secret_kinds:
        return document, data
    kinds_text = ", ".join(secret_kinds)
    if policy == REJECT:
        raise InvalidInput(
            f"The document contains a secret: {kinds_text}.",
            hint="Remove it, or keep it in a vault.",
        )
    if policy == KEEP:
        warning = f"Secrets were kept unencrypted: {kinds_text}."
        return replace(document, warnings=(*document.warnings, warning)), data
    warning = f"Secrets were redacted and the text was stored instead of the file: {kinds_text}."
    redacted = _redact_document(document)
    return replace(
        redacted, media_type=PLAIN_TEXT, warnings=(*document.warnings, warning)
    ), redacted.text.encode()


def _redact_document(document: Document) -> Document:
    """Return the document with secrets redacted and section offsets adjusted."""
    shifts = [
        (item.end, len(secrets.format_redaction(item, "")) - item.end + item.start)
        for item in secrets.find_secrets(document.text)
    ]

    def shift_position(position: int) -> int:
        return position + sum(offset for end, offset in shifts if end <= position)

    sections = (
        Section(secrets.redact(item.title), shift_position(item.start), shift_position(item.end))
        for item in document.sections
    )
    return replace(
        document,
        title=secrets.redact(document.title),
        text=secrets.redact(document.text),
        sections=tuple(sections),
    )


FETCH_DISABLED_HINT = "Set fetch_urls to let told fetch it, or download it and pass the bytes."


@dataclass(frozen=True, slots=True)
class UploadedContent:
    """Uploaded bytes with their name, source and media type."""

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
    """Store a file, bytes, or the content of a URL."""
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
    """Return the bytes of the upload."""
    if isinstance(content, bytes | bytearray | memoryview):
        return UploadedContent(bytes(content))
    if isinstance(content, Path):
        data = yield from call(read_file_bytes, content, image_ctx.settings.document_limit)
        return UploadedContent(data, content.name, content.as_posix())
    if not isinstance(content, str) or not content.lower().startswith(("http://", "https://")):
        raise InvalidInput(
            f"A document must be a path, bytes or a URL, not {format_value(content)}."
        )
    if image_ctx.fetch is None:
        raise Unsupported("Fetching URLs is disabled.", hint=FETCH_DISABLED_HINT)
    fetched = yield from call(image_ctx.fetch, content, ACCEPTED_TYPES)
    return UploadedContent(
        fetched.data, urlsplit(fetched.url).path.rpartition("/")[2], content, fetched.media_type
    )


def _read_content(uploaded: UploadedContent, image_ctx: ImageContext) -> Flow[Document]:
    """Read the document; an image is read as text."""
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
        raise MediaError(f"The image has {len(uploaded.data):,} bytes; the limit is {max_bytes:,}.")
    reading = yield from read_image(Image(1, uploaded.data), image_ctx)
    if reading.blob is None:
        raise MediaError(reading.problems[0])
    return build_document(
        ParsedDocument(reading.text, warnings=reading.problems),
        uploaded.data,
        image_header.media_type,
        uploaded.name,
    )
