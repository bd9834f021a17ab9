"""What of a document may be kept: where secrets are in it, neither they nor the bytes that hold them."""

from __future__ import annotations

from dataclasses import replace

from told.core import secrets
from told.core.errors import InvalidInput
from told.write.documents.document import Document, Section

PLAIN_TEXT = "text/plain"
KEEP, REJECT = "keep", "reject"


def screen_document(document: Document, data: bytes, policy: str) -> tuple[Document, bytes]:
    """A document and its bytes as they may be kept; one that is to be rejected is an error.

    What is redacted in the text is in the bytes too, so the text takes their place.
    """
    secret_kinds = secrets.list_secret_kinds(
        secrets.find_secrets(f"{document.text}\n{document.title}")
    )
    if not secret_kinds:
        return document, data
    kinds_text = ", ".join(secret_kinds)
    if policy == REJECT:
        raise InvalidInput(
            f"The document holds a secret: {kinds_text}.",
            hint="Take it out, or keep it in a vault.",
        )
    if policy == KEEP:
        warning = f"Secrets were kept as they are, unencrypted: {kinds_text}."
        return replace(document, warnings=(*document.warnings, warning)), data
    warning = f"Secrets were redacted, and the text is kept instead of the file: {kinds_text}."
    redacted = _redact_document(document)
    return replace(
        redacted, media_type=PLAIN_TEXT, warnings=(*document.warnings, warning)
    ), redacted.text.encode()


def _redact_document(document: Document) -> Document:
    """The same with a note in the place of each secret, its sections where they are now."""
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
