"""Documents: read into text with sections, kept as evidence nobody vouches for, revised when their content changes."""

from __future__ import annotations

from told.write.documents.document import Document, Section
from told.write.documents.ingest import ingest_document
from told.write.documents.read import read_document
from told.write.documents.upload import upload_document

__all__ = ["Document", "Section", "ingest_document", "read_document", "upload_document"]
