"""What the ram store keeps beside the ledger: a conversation's clock, and what reads and consumers leave behind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, count

from told.backends.ram_rows import require_encodable
from told.backends.ram_shelf import InMemoryAccounts, with_lock
from told.core.fact import Tick
from told.core.query import AccessCount
from told.core.recall import AccessBatch, AccessRecord, AccessState, ReviewTask, urgency_key
from told.core.scope import Scope


class InMemoryOverlay(InMemoryAccounts):
    """`told.ports.Overlay` over accounts in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._task_ids = count(1)

    @with_lock
    def list_ticks(
        self, scope: Scope, upto: int | None = None, limit: int = 4096
    ) -> Sequence[Tick]:
        """The last turns at the home of a scope."""
        ticks = sorted(self._get_account(scope.account).ticks.values(), key=lambda tick: tick.seq)
        matching = [
            t
            for t in ticks
            if t.scope.partition_key() == scope.partition_key() and (upto is None or t.seq <= upto)
        ]
        return matching[max(len(matching) - limit, 0) :]

    @with_lock
    def tick_totals(self, scope: Scope, seqs: Sequence[int]) -> Mapping[int, tuple[int, int]]:
        """What the turns at the home of a scope come to up to some positions."""
        ticks = [
            t
            for t in self._get_account(scope.account).ticks.values()
            if t.scope.partition_key() == scope.partition_key()
        ]
        ticks.sort(key=lambda tick: tick.seq)
        tick_seqs = [tick.seq for tick in ticks]
        turns, tokens = (
            [0, *accumulate(counts)]
            for counts in ((t.turns for t in ticks), (t.tokens for t in ticks))
        )
        return {
            seq: (turns[index], tokens[index])
            for seq in seqs
            for index in [bisect_right(tick_seqs, seq)]
        }

    # What reads leave behind

    @with_lock
    def record_accesses(self, account: str, batch: AccessBatch) -> None:
        """Count recalls and topics that met, note recalls and queue tasks."""
        require_encodable(*(access.query for access in batch.records if batch.keep_per_thread))
        state = self._get_account(account)
        state.count_accesses(batch.counts)
        self.record_cooccurrence(account, batch.cooccurrences)
        self.enqueue_tasks(account, batch.tasks, batch.window)
        if batch.keep_per_thread:
            state.overlay.record_accesses(
                batch.records, batch.keep_per_thread, state.list_threads()
            )

    # Topics that came up together

    @with_lock
    def record_cooccurrence(
        self, account: str, pairs: Mapping[tuple[str, str], AccessCount]
    ) -> None:
        """Count that topics came up together."""
        state = self._get_account(account)
        state.overlay.record_cooccurrence(pairs, state.list_threads())

    @with_lock
    def cooccurrence(
        self, account: str, topics: Sequence[str]
    ) -> Mapping[tuple[str, str], AccessCount]:
        """How often topics came up together with others."""
        wanted = set(topics)
        return {
            pair: count
            for pair, count in sorted(self._get_account(account).overlay.cooccurrences.items())
            if wanted & set(pair)
        }

    # Recalls one by one

    @with_lock
    def access_records(self, account: str, thread: str) -> Sequence[AccessRecord]:
        """The recalls of a thread, oldest first."""
        return self._get_account(account).overlay.accesses.get(thread, ())

    @with_lock
    def access_states(self, account: str, threads: Sequence[str]) -> Sequence[AccessState]:
        """The states of threads, by thread and oldest first."""
        states = self._get_account(account).overlay.states
        return [state for thread in sorted(set(threads)) for state in states.get(thread, ())]

    # What is to be thought over

    @with_lock
    def enqueue_tasks(self, account: str, tasks: Sequence[ReviewTask], window: int) -> int:
        """Queue tasks; how many were new."""
        state = self._get_account(account)
        return state.overlay.enqueue_tasks(tasks, window, state.list_threads(), self._task_ids)

    @with_lock
    def list_tasks(self, account: str, limit: int = 100) -> Sequence[ReviewTask]:
        """The open tasks, most urgent first."""
        return sorted(self._get_account(account).overlay.tasks.values(), key=urgency_key)[
            : max(limit, 0)
        ]

    @with_lock
    def claim_tasks(self, account: str, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Take tasks that are due and free."""
        return self._get_account(account).overlay.claim_tasks(now, limit, lease)

    @with_lock
    def complete_tasks(self, account: str, task_ids: Sequence[int]) -> int:
        """Close tasks; how many there were."""
        queued = self._get_account(account).overlay.tasks
        return sum(queued.pop(task_id, None) is not None for task_id in task_ids)

    # What consumers note for themselves

    @with_lock
    def read_notes(
        self, account: str, consumer: str, keys: Sequence[str] | None = None
    ) -> Mapping[str, bytes]:
        """What a consumer noted."""
        stored = sorted(self._get_account(account).overlay.notes.items())
        return {
            key: value
            for (owner, key), value in stored
            if owner == consumer and (keys is None or key in keys)
        }

    @with_lock
    def write_notes(self, account: str, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note something outside a commit."""
        require_encodable(account, consumer, *notes)
        self._get_or_create_account(account).overlay.write_notes(consumer, notes)
