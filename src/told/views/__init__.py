"""Views: pure folds from ledger entries to row operations; any of them can be thrown away and folded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from told.core.entry import VERBS, Entry
from told.ports import VIEWS, Fold, RowOp, View
from told.views import evidence, facts, links, passages, ticks

VIEW_FOLDS: Mapping[View, tuple[Callable[[Entry], Sequence[RowOp]], tuple[str, ...]]] = {
    "evidence": (evidence.fold_evidence, ("observed",)),
    "facts": (facts.fold_facts, ("asserted", "retracted")),
    "links": (links.fold_links, ("linked",)),
    "passages": (passages.fold_passages, ("asserted",)),
    "ticks": (ticks.fold_ticks, ("observed",)),
}
"""How each view is folded, and from which sorts of entries."""


def build_fold(views: Sequence[View] = VIEWS) -> Fold:
    """The fold that grows some of the views, an operation at a time: a store that is done with one can let it go."""
    selected = [VIEW_FOLDS[view] for view in VIEWS if view in views]
    folds = {sort: [fold for fold, sorts in selected if sort in sorts] for sort in VERBS}

    def fold_entries(entries: Sequence[Entry]) -> Iterator[RowOp]:
        return (
            op
            for entry in entries
            for view_fold in folds.get(entry.sort, ())
            for op in view_fold(entry)
        )

    return fold_entries


fold_all: Fold = build_fold()
