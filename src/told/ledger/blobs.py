"""The blobs a scope may ask for: those that its own evidence names, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.blob import Blob
from told.core.fact import EvidenceRow
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store


@dataclass(frozen=True, slots=True)
class ScopedBlob:
    """A blob and the evidence of a scope that names it."""

    blob: Blob
    evidence_rows: tuple[EvidenceRow, ...]

    def as_dict(self) -> dict[str, Any]:
        """The blob as JSON, without its bytes."""
        sources = dict.fromkeys(
            evidence_row.source
            for evidence_row in self.evidence_rows
            if evidence_row.source is not None
        )
        row: dict[str, Any] = {
            "hash": self.blob.hash,
            "media_type": self.blob.media_type,
            "size": self.blob.size,
        }
        return {**row, "sources": list(sources)}


def map_blob_evidence(store: Store, scope: Scope) -> Flow[Mapping[str, tuple[EvidenceRow, ...]]]:
    """Which evidence of a scope names which blob, oldest first."""
    evidence_by_hash: dict[str, tuple[EvidenceRow, ...]] = {}
    for evidence_row in (yield from call(store.evidence_rows, scope.account, scope=scope)):
        for blob_hash in evidence_row.blobs:
            evidence_by_hash[blob_hash] = (*evidence_by_hash.get(blob_hash, ()), evidence_row)
    return evidence_by_hash


def list_scope_blobs(store: Store, scope: Scope) -> Flow[Sequence[ScopedBlob]]:
    """Every blob the scope's evidence names, in the order it came."""
    blobs_by_hash = {blob.hash: blob for blob in (yield from call(store.list_blobs, scope.account))}
    evidence_by_hash = yield from map_blob_evidence(store, scope)
    return [
        ScopedBlob(blobs_by_hash[blob_hash], evidence_rows)
        for blob_hash, evidence_rows in evidence_by_hash.items()
        if blob_hash in blobs_by_hash
    ]
