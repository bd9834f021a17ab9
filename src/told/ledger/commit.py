"""The only writer: decide against what is known, commit with guards, and decide again if somebody else wrote first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from told.core.entry import Entry
from told.core.errors import Conflict, Diverged, IdempotencyConflict
from told.flow import Flow, call
from told.ports import Batch, Store
from told.views import fold_all

T = TypeVar("T")


def commit_batch(store: Store, batch: Batch) -> Flow[Sequence[Entry]]:
    """Make a batch durable in the ledger and every view."""
    return call(store.commit, batch, fold_all)


def retry_on_conflict(attempts: int, decide: Callable[[], Flow[T]]) -> Flow[T]:
    """Run a read-decide-commit flow until no other writer came between; two writers never both win."""
    for _ in range(attempts - 1):
        try:
            return (yield from decide())
        except (IdempotencyConflict, Diverged):
            raise
        except Conflict:
            continue
    return (yield from decide())
