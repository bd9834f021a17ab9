"""Everything deferred is a consumer with a cursor: it takes entries in order, and what it cannot do becomes a fault.

This is the one place where any failure at all is caught: a model or a plug-in that breaks must never lose input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from told.errors import ToldError
from told.flow import Flow, call
from told.model.entry import Entry
from told.ports import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something outside told did not work."""

    error: Exception

    def __str__(self) -> str:
        if isinstance(self.error, ToldError):
            return str(self.error)
        return f"{type(self.error).__name__}: {self.error}"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A named effect over entries that says how much there was to do; doing it twice is the same as doing it once."""

    name: str
    effect: Callable[[Sequence[Entry]], Flow[int]]


def catch_failure(flow: Flow[T]) -> Flow[T | Failure]:
    """Run a flow that leans on something outside told; a failure is a value."""
    try:
        return (yield from flow)
    except Exception as error:  # the one place, see the module's docstring
        return Failure(error)


def drain_consumer(
    store: Store, account: str, consumer: Consumer, *, batch: int, attempts: int
) -> Flow[Failure | None]:
    """Bring a consumer up to the head of the ledger, or stop at the first batch it cannot do."""
    while entries := (yield from _next_batch(store, account, consumer, batch)):
        outcome = yield from catch_failure(consumer.effect(entries))
        if isinstance(outcome, Failure):
            failure = yield from _process_one_by_one(store, account, consumer, entries, attempts)
            if failure is not None:
                return failure
        if (yield from _is_in_ledger(store, account, entries[-1])):
            yield from call(store.update_consumer, account, consumer.name, cursor=entries[-1].seq)
    return None


def _is_in_ledger(store: Store, account: str, last: Entry) -> Flow[bool]:
    """Whether an entry is still in the ledger; after a reset the account has another one."""
    entries = yield from call(store.scan_entries, account, last.seq - 1, 1)
    return any(entry.hash == last.hash for entry in entries)


def _next_batch(
    store: Store, account: str, consumer: Consumer, batch: int
) -> Flow[Sequence[Entry]]:
    after = yield from call(store.get_cursor, account, consumer.name)
    return (yield from call(store.scan_entries, account, after, batch))


def _process_one_by_one(
    store: Store, account: str, consumer: Consumer, entries: Sequence[Entry], attempts: int
) -> Flow[Failure | None]:
    """Find the entry that poisons a batch; when nothing at all works the outside is down, and nothing is skipped."""
    processed = 0
    failed: list[tuple[Entry, Failure]] = []
    for entry in entries:
        outcome = yield from _retry_entry(consumer, entry, attempts)
        if isinstance(outcome, Failure):
            failed.append((entry, outcome))
            if not processed and len(failed) >= attempts:
                break
        else:
            processed += outcome
    if failed and not processed:
        return failed[0][1]
    for entry, failure in failed:
        yield from call(store.record_fault, account, consumer.name, entry.seq, str(failure))
    return None


def _retry_entry(consumer: Consumer, entry: Entry, attempts: int) -> Flow[int | Failure]:
    outcome: int | Failure = 0
    for _ in range(attempts):
        outcome = yield from catch_failure(consumer.effect([entry]))
        if not isinstance(outcome, Failure):
            return outcome
    return outcome
