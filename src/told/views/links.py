"""The links view: what was said to bear on what. Where a claim comes from is the claim's own field, not a link."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Entry, Linked
from told.core.fact import Link
from told.ports import RowOp


def fold_links(entry: Entry) -> Sequence[RowOp]:
    """A stated link."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Linked):
        return ()
    link = draft.verb
    return (
        Link(entry.seq, link.src, link.rel, link.dst, draft.scope, link.weight, meta=link.meta),
    )
