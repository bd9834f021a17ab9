"""Documents: read into text with sections, kept as evidence nobody vouches for, revised when their content changes."""

from __future__ import annotations

from told.ingest.documents.formats import Document, Section
from told.ingest.documents.pipeline import ingest_document, read_document, upload_document

__all__ = ["Document", "Section", "ingest_document", "read_document", "upload_document"]
