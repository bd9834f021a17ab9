"""Commit batches to the ledger, retry on conflict, and list the blobs of a scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from told.errors import Conflict, Diverged, IdempotencyConflict
from told.flow import Flow, call
from told.ledger.views import fold_all
from told.model.entry import Blob, Entry
from told.model.fact import EvidenceRow
from told.model.scope import Scope
from told.ports import Batch, Store


@dataclass(frozen=True, slots=True)
class ScopedBlob:
    """A blob and the evidence in a scope that references it."""

    blob: Blob
    evidence_rows: tuple[EvidenceRow, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the blob's metadata as a JSON object, without its bytes."""
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
    """Return the evidence of a scope by the hash of each blob it references, oldest first."""
    evidence_by_hash: dict[str, tuple[EvidenceRow, ...]] = {}
    for evidence_row in (yield from call(store.evidence_rows, scope.account, scope=scope)):
        for blob_hash in evidence_row.blobs:
            evidence_by_hash[blob_hash] = (*evidence_by_hash.get(blob_hash, ()), evidence_row)
    return evidence_by_hash


def list_scope_blobs(store: Store, scope: Scope) -> Flow[Sequence[ScopedBlob]]:
    """Return every blob that the evidence of a scope references, in order of arrival."""
    blobs_by_hash = yield from call(store.get_blobs, scope.account)
    evidence_by_hash = yield from map_blob_evidence(store, scope)
    return [
        ScopedBlob(blobs_by_hash[blob_hash], evidence_rows)
        for blob_hash, evidence_rows in evidence_by_hash.items()
        if blob_hash in blobs_by_hash
    ]


T = TypeVar("T")


def commit_batch(store: Store, batch: Batch) -> Flow[Sequence[Entry]]:
    """Commit a batch to the ledger and all views."""
    return call(store.commit, batch, fold_all)


def retry_on_conflict(attempts: int, decide: Callable[[], Flow[T]]) -> Flow[T]:
    """Run a read-decide-commit flow again if another writer's commit conflicts with it."""
    for _ in range(attempts - 1):
        try:
            return (yield from decide())
        except (IdempotencyConflict, Diverged):
            raise
        except Conflict:
            continue
    return (yield from decide())
