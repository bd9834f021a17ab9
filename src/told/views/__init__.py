"""Views: pure folds from ledger entries to row operations; any of them can be thrown away and folded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from told.core.entry import Entry
from told.ports import VIEWS, Fold, RowOp, View
from told.views import evidence, facts, links, passages, ticks

FOLDS: Mapping[View, Callable[[Entry], Sequence[RowOp]]] = {
    "evidence": evidence.fold,
    "facts": facts.fold,
    "links": links.fold,
    "passages": passages.fold,
    "ticks": ticks.fold,
}


def folding(views: Sequence[View] = VIEWS) -> Fold:
    """The fold that grows some of the views, an operation at a time: a store that is done with one can let it go."""
    folds = [FOLDS[view] for view in VIEWS if view in views]

    def fold(entries: Sequence[Entry]) -> Iterator[RowOp]:
        return (op for entry in entries for each in folds for op in each(entry))

    return fold


fold_all: Fold = folding()
