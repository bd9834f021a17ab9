"""Views: pure folds from ledger entries to row operations; any of them can be thrown away and folded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from told.core.entry import VERBS, Entry
from told.ports import VIEWS, Fold, RowOp, View
from told.views import evidence, facts, links, passages, ticks

FOLDS: Mapping[View, tuple[Callable[[Entry], Sequence[RowOp]], tuple[str, ...]]] = {
    "evidence": (evidence.fold, ("observed",)),
    "facts": (facts.fold, ("asserted", "retracted")),
    "links": (links.fold, ("linked",)),
    "passages": (passages.fold, ("asserted",)),
    "ticks": (ticks.fold, ("observed",)),
}
"""How each view is folded, and from which sorts of entries."""


def folding(views: Sequence[View] = VIEWS) -> Fold:
    """The fold that grows some of the views, an operation at a time: a store that is done with one can let it go."""
    wanted = [FOLDS[view] for view in VIEWS if view in views]
    folds = {sort: [fold for fold, sorts in wanted if sort in sorts] for sort in VERBS}

    def fold(entries: Sequence[Entry]) -> Iterator[RowOp]:
        return (op for entry in entries for each in folds.get(entry.sort, ()) for op in each(entry))

    return fold


fold_all: Fold = folding()
