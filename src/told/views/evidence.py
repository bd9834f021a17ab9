"""The evidence view: where each verbatim input stands, so that the same input is kept once."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.blob import named_in
from told.core.entry import Entry, Observed
from told.core.fact import Witness
from told.ports import RowOp


def fold(entry: Entry) -> Sequence[RowOp]:
    """An observation becomes a witness."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Observed):
        return ()
    id_, said = draft.verb.id, draft.verb.evidence
    return (Witness(id_, entry.seq, draft.scope, said.digest(), said.source, named_in(said.meta)),)
