"""What the ram store keeps beside the ledger: a conversation's clock, and what reads and consumers leave behind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, count

from told.backends.ram_rows import storable
from told.backends.ram_shelf import Shelf, locked
from told.core.fact import Tick
from told.core.query import Touch
from told.core.recall import Left, Recalled, RecallState, Task, urgency
from told.core.scope import Scope


class RamOverlay(Shelf):
    """`told.ports.Overlay` over accounts in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks = count(1)

    @locked
    def ticks(self, scope: Scope, upto: int | None = None, limit: int = 4096) -> Sequence[Tick]:
        """The last turns at the home of a scope."""
        ticks = sorted(self._account(scope.account).ticks.values(), key=lambda tick: tick.seq)
        here = [t for t in ticks if t.scope.home() == scope.home() and (upto is None or t.seq <= upto)]
        return here[max(len(here) - limit, 0) :]

    @locked
    def ticked(self, scope: Scope, places: Sequence[int]) -> Mapping[int, tuple[int, int]]:
        """What the turns at the home of a scope come to up to some positions."""
        ticks = [t for t in self._account(scope.account).ticks.values() if t.scope.home() == scope.home()]
        ticks.sort(key=lambda tick: tick.seq)
        seqs = [tick.seq for tick in ticks]
        turns, tokens = ([0, *accumulate(each)] for each in ((t.turns for t in ticks), (t.tokens for t in ticks)))
        return {place: (turns[at], tokens[at]) for place in places for at in [bisect_right(seqs, place)]}

    # What reads leave behind

    @locked
    def write_down(self, account: str, left: Left) -> None:
        """Count recalls and topics that met, note recalls and queue tasks."""
        storable(*(recall.query for recall in left.recalls if left.keep))
        here = self._account(account)
        here.touch(left.counts)
        self.meet(account, left.met)
        self.enqueue(account, left.tasks, left.window)
        if left.keep:
            here.beside.recalled(left.recalls, left.keep, here.threads())

    # Topics that came up together

    @locked
    def meet(self, account: str, pairs: Mapping[tuple[str, str], Touch]) -> None:
        """Count that topics came up together."""
        here = self._account(account)
        here.beside.meet(pairs, here.threads())

    @locked
    def met(self, account: str, topics: Sequence[str]) -> Mapping[tuple[str, str], Touch]:
        """How often topics came up together with others."""
        asked = set(topics)
        return {pair: touch for pair, touch in sorted(self._account(account).beside.met.items()) if asked & set(pair)}

    # Recalls one by one

    @locked
    def recalls(self, account: str, thread: str) -> Sequence[Recalled]:
        """The recalls of a thread, oldest first."""
        return self._account(account).beside.recalls.get(thread, ())

    @locked
    def states(self, account: str, threads: Sequence[str]) -> Sequence[RecallState]:
        """The states of threads, by thread and oldest first."""
        known = self._account(account).beside.states
        return [state for thread in sorted(set(threads)) for state in known.get(thread, ())]

    # What is to be thought over

    @locked
    def enqueue(self, account: str, tasks: Sequence[Task], window: int) -> int:
        """Queue tasks; how many were new."""
        here = self._account(account)
        return here.beside.enqueue(tasks, window, here.threads(), self._tasks)

    @locked
    def queue(self, account: str, limit: int = 100) -> Sequence[Task]:
        """The open tasks, most urgent first."""
        return sorted(self._account(account).beside.tasks.values(), key=urgency)[: max(limit, 0)]

    @locked
    def claim(self, account: str, now: int, limit: int, lease: int) -> Sequence[Task]:
        """Take tasks that are due and free."""
        return self._account(account).beside.claim(now, limit, lease)

    @locked
    def done(self, account: str, tasks: Sequence[int]) -> int:
        """Close tasks; how many there were."""
        queued = self._account(account).beside.tasks
        return sum(queued.pop(id_, None) is not None for id_ in tasks)

    # What consumers note for themselves

    @locked
    def notes(self, account: str, consumer: str, keys: Sequence[str] | None = None) -> Mapping[str, bytes]:
        """What a consumer noted."""
        noted = sorted(self._account(account).beside.notes.items())
        return {key: value for (whose, key), value in noted if whose == consumer and (keys is None or key in keys)}

    @locked
    def note(self, account: str, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note something outside a commit."""
        storable(account, consumer, *notes)
        self._own(account).beside.note(consumer, notes)
