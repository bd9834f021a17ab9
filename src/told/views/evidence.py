"""The evidence view: where each verbatim input stands, so that the same input is kept once."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.blob import list_blob_hashes
from told.core.entry import Entry, Observed
from told.core.fact import EvidenceRow
from told.ports import RowOp


def fold_evidence(entry: Entry) -> Sequence[RowOp]:
    """An observation becomes a witness."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Observed):
        return ()
    id_, evidence = draft.verb.id, draft.verb.evidence
    return (
        EvidenceRow(
            id_,
            entry.seq,
            draft.scope,
            evidence.digest(),
            evidence.source,
            list_blob_hashes(evidence.meta),
        ),
    )
