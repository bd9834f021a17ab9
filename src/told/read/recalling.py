"""What a read leaves behind: which memories it selected, at which rank and score, and that they are to be thought over.

Recalls gather in the process and are written down together with the counts of `told.read.cache`, never by a transaction
of a read's own. Of the query only a hash is kept, and nothing of this is ever in the ledger.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from told.core.fork import at_fork
from told.core.ids import sha256
from told.core.query import Hit
from told.core.recall import AccessBatch, AccessRecord, ReviewReason, ReviewTask
from told.core.text import normalise_text

SECOND_US: Final = 1_000_000
HASH_DIGITS: Final = 16
"""How many hexadecimal digits of a query's hash are kept."""

_PendingAccess: TypeAlias = tuple[int, int, float, str]
"""When a memory was recalled, at which rank, with which score, and the hash of the query."""


class AccessBuffer:
    """What this process recalled and the store does not know yet.

    The newest `keep` of each memory are noted, none at all when that is 0. Where they are `queued`, each memory is also
    put into the queue of what is to be thought over: once while it waits there, and anew while somebody is at it if
    that is a `window` of seconds later.
    """

    def __init__(self, keep: int = 10, window: int = 300, *, enqueue: bool = True) -> None:
        self._keep = keep
        self._window = window
        self._enqueue = enqueue
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nothing, as a child process does: its parent writes down what was noted before the fork."""
        self._lock = threading.Lock()
        self._pending: dict[str, dict[str, deque[_PendingAccess]]] = {}

    def record_hits(self, account: str, hits: Sequence[Hit], query: str, at: int) -> None:
        """A read selected these, best first; a memory that was selected in several parts counts once, as its best."""
        if not self._keep and not self._enqueue:
            return
        query_hash = hash_query(query)
        best = {
            hit.fact.id: (at, rank, hit.score, query_hash)
            for rank, hit in reversed(list(enumerate(hits, 1)))
        }
        self._append_records(account, best.items())

    def _append_records(self, account: str, entries: Iterable[tuple[str, _PendingAccess]]) -> None:
        with self._lock:
            threads = self._pending.setdefault(account, {})
            for thread, entry in entries:
                if (existing := threads.get(thread)) is None:
                    threads[thread] = deque((entry,), max(self._keep, 1))
                else:
                    existing.append(entry)

    def take_records(self) -> Mapping[str, Sequence[AccessRecord]]:
        """All that is pending by account, oldest first, for somebody who writes it down or gives it back."""
        with self._lock:
            pending, self._pending = self._pending, {}
        return {
            account: sorted(
                (
                    AccessRecord(thread, *entry)
                    for thread, entries in threads.items()
                    for entry in entries
                ),
                key=attrgetter("at"),
            )
            for account, threads in pending.items()
        }

    def drop_threads(self, account: str, threads: Iterable[str]) -> None:
        """Forget erased threads."""
        with self._lock:
            for thread in threads:
                self._pending.get(account, {}).pop(thread, None)

    def forget_account(self, account: str) -> None:
        """Forget everything about an account."""
        with self._lock:
            self._pending.pop(account, None)

    def restore_records(self, account: str, records: Sequence[AccessRecord]) -> None:
        """These could not be written down."""
        self._append_records(
            account,
            ((entry.thread, (entry.at, entry.rank, entry.score, entry.query)) for entry in records),
        )

    def build_batch(self, records: Sequence[AccessRecord]) -> AccessBatch:
        """What some recalls leave behind: themselves, and what is to be thought over."""
        review_tasks = build_review_tasks(records) if self._enqueue else ()
        return AccessBatch(
            records=records,
            keep_per_thread=self._keep,
            tasks=review_tasks,
            window=self._window * SECOND_US,
        )


def hash_query(query: str) -> str:
    """What is kept of a query: enough to know it again, nothing to read it by."""
    return (
        sha256(normalise_text(query).encode("utf-8", "surrogatepass")).hex()[:HASH_DIGITS]
        if query
        else ""
    )


def build_review_tasks(records: Sequence[AccessRecord]) -> list[ReviewTask]:
    """What is to be thought over after some recalls: each memory once, as urgent as its best score, from its first."""
    best_score, first_at = dict[str, float](), dict[str, int]()
    for record in records:
        thread = record.thread
        if record.score > best_score.setdefault(thread, record.score):
            best_score[thread] = record.score
        if record.at < first_at.setdefault(thread, record.at):
            first_at[thread] = record.at
    return [
        ReviewTask(thread, ReviewReason.RECALL, score, first_at[thread])
        for thread, score in best_score.items()
    ]
