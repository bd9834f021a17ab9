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
from told.core.recall import Left, Reason, Recalled, Task
from told.core.text import normalise

SECOND: Final = 1_000_000
HASHED: Final = 16
"""How many hexadecimal digits of a query's hash are kept."""

_Noted: TypeAlias = tuple[int, int, float, str]
"""When a memory was recalled, at which rank, with which score, and the hash of the query."""


class Recalls:
    """What this process recalled and the store does not know yet.

    The newest `keep` of each memory are noted, none at all when that is 0. Where they are `queued`, each memory is also
    put into the queue of what is to be thought over: once while it waits there, and anew while somebody is at it if
    that is a `window` of seconds later.
    """

    def __init__(self, keep: int = 10, window: int = 300, *, queued: bool = True) -> None:
        self._keep = keep
        self._window = window
        self._queued = queued
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nothing, as a child process does: its parent writes down what was noted before the fork."""
        self._lock = threading.Lock()
        self._pending: dict[str, dict[str, deque[_Noted]]] = {}

    def note(self, account: str, hits: Sequence[Hit], query: str, at: int) -> None:
        """A read selected these, best first; a memory that was selected in several parts counts once, as its best."""
        if not self._keep and not self._queued:
            return
        hashed = hash_of(query)
        best = {hit.fact.id: (at, rank, hit.score, hashed) for rank, hit in reversed(list(enumerate(hits, 1)))}
        self._put(account, best.items())

    def _put(self, account: str, noted: Iterable[tuple[str, _Noted]]) -> None:
        with self._lock:
            threads = self._pending.setdefault(account, {})
            for thread, each in noted:
                if (known := threads.get(thread)) is None:
                    threads[thread] = deque((each,), max(self._keep, 1))
                else:
                    known.append(each)

    def take(self) -> Mapping[str, Sequence[Recalled]]:
        """All that is pending by account, oldest first, for somebody who writes it down or gives it back."""
        with self._lock:
            taken, self._pending = self._pending, {}
        return {
            account: sorted(
                (Recalled(thread, *each) for thread, noted in threads.items() for each in noted),
                key=attrgetter("at"),
            )
            for account, threads in taken.items()
        }

    def drop(self, account: str, threads: Iterable[str]) -> None:
        """Forget erased threads."""
        with self._lock:
            for thread in threads:
                self._pending.get(account, {}).pop(thread, None)

    def forget(self, account: str) -> None:
        """Forget everything about an account."""
        with self._lock:
            self._pending.pop(account, None)

    def give_back(self, account: str, recalls: Sequence[Recalled]) -> None:
        """These could not be written down."""
        self._put(account, ((each.thread, (each.at, each.rank, each.score, each.query)) for each in recalls))

    def left(self, recalls: Sequence[Recalled]) -> Left:
        """What some recalls leave behind: themselves, and what is to be thought over."""
        queued = tasks(recalls) if self._queued else ()
        return Left(recalls=recalls, keep=self._keep, tasks=queued, window=self._window * SECOND)


def hash_of(query: str) -> str:
    """What is kept of a query: enough to know it again, nothing to read it by."""
    return sha256(normalise(query).encode("utf-8", "surrogatepass")).hex()[:HASHED] if query else ""


def tasks(recalls: Sequence[Recalled]) -> list[Task]:
    """What is to be thought over after some recalls: each memory once, as urgent as its best score, from its first."""
    best, first = dict[str, float](), dict[str, int]()
    for recall in recalls:
        thread = recall.thread
        if recall.score > best.setdefault(thread, recall.score):
            best[thread] = recall.score
        if recall.at < first.setdefault(thread, recall.at):
            first[thread] = recall.at
    return [Task(thread, Reason.RECALL, score, first[thread]) for thread, score in best.items()]
