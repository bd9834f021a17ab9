"""What of a document may be kept: where secrets are in it, neither they nor the bytes that hold them."""

from __future__ import annotations

from dataclasses import replace

from told.core import secrets
from told.core.errors import InvalidInput
from told.write.documents.document import Document, Section

PLAIN = "text/plain"
KEEP, REJECT = "keep", "reject"


def screened(document: Document, data: bytes, policy: str) -> tuple[Document, bytes]:
    """A document and its bytes as they may be kept; one that is to be rejected is an error.

    What is redacted in the text is in the bytes too, so the text takes their place.
    """
    found = secrets.kinds(secrets.find(f"{document.text}\n{document.title}"))
    if not found:
        return document, data
    named = ", ".join(found)
    if policy == REJECT:
        raise InvalidInput(f"The document holds a secret: {named}.", hint="Take it out, or keep it in a vault.")
    if policy == KEEP:
        warning = f"Secrets were kept as they are, unencrypted: {named}."
        return replace(document, warnings=(*document.warnings, warning)), data
    warning = f"Secrets were redacted, and the text is kept instead of the file: {named}."
    clean = _redacted(document)
    return replace(clean, media_type=PLAIN, warnings=(*document.warnings, warning)), clean.text.encode()


def _redacted(document: Document) -> Document:
    """The same with a note in the place of each secret, its sections where they are now."""
    grown = [(one.end, len(secrets.noted(one, "")) - one.end + one.start) for one in secrets.find(document.text)]

    def moved(place: int) -> int:
        return place + sum(more for end, more in grown if end <= place)

    sections = (Section(secrets.redact(one.title), moved(one.start), moved(one.end)) for one in document.sections)
    return replace(
        document, title=secrets.redact(document.title), text=secrets.redact(document.text), sections=tuple(sections)
    )
