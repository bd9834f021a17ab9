"""The links view: what was said to bear on what. Where a claim comes from is the claim's own field, not a link."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Entry, Linked
from told.core.fact import Link
from told.ports import RowOp


def fold(entry: Entry) -> Sequence[RowOp]:
    """A stated link."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Linked):
        return ()
    said = draft.verb
    return (Link(entry.seq, said.src, said.rel, said.dst, draft.scope, said.weight, meta=said.meta),)
