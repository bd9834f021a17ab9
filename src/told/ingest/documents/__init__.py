"""Read documents into text with sections, and store and revise them as untrusted evidence."""

from __future__ import annotations

from told.ingest.documents.formats import Document, Section
from told.ingest.documents.pipeline import ingest_document, read_document, upload_document

__all__ = ["Document", "Section", "ingest_document", "read_document", "upload_document"]
