"""What the ram store keeps beside the ledger: a conversation's clock, and what reads and consumers leave behind."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import accumulate, count
from typing import Concatenate, ParamSpec, TypeVar

from told.backends.memory.account import InMemoryAccount, copy_row, require_encodable
from told.errors import StoreClosed
from told.model.fact import NEVER, NODE, QUARANTINE, UNLISTED_KINDS, EvidenceRow, Fact, Link, Tick
from told.model.query import (
    AccessBatch,
    AccessCount,
    AccessRecord,
    AccessState,
    ReviewTask,
    urgency_key,
)
from told.model.scope import Scope
from told.ports import ScopeTally, StoredTurn
from told.runtime import acquire_on_fork

P = ParamSpec("P")
T = TypeVar("T")


class InMemoryAccounts:
    """Accounts by name, one caller at a time."""

    def __init__(self) -> None:
        self._lock = acquire_on_fork(threading.RLock())
        self._closed = False
        self._accounts: dict[str, InMemoryAccount] = {}

    def _get_account(self, name: str) -> InMemoryAccount:
        """An account to read from: one that was never written to is empty, and not on the shelf."""
        return self._accounts.get(name) or InMemoryAccount(name)

    def _get_or_create_account(self, name: str) -> InMemoryAccount:
        """An account to leave something in."""
        return self._accounts.setdefault(name, InMemoryAccount(name))


S = TypeVar("S", bound=InMemoryAccounts)


def with_lock(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """One caller at a time, and none once the store is closed."""

    @wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            if self._closed:
                raise StoreClosed()
            return method(self, *args, **kwargs)

    return wrapper


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


SPEAKER_ROLES = ("user", "assistant")


class InMemoryTurns(InMemoryAccounts):
    """`told.ports.Turns` over accounts in memory."""

    @with_lock
    def list_scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something is left of."""
        return sorted(
            self._get_account(account).collect_scopes(),
            key=lambda scope: sorted(scope.ids().items()),
        )

    @with_lock
    def scope_tallies(self, account: str) -> Sequence[ScopeTally]:
        """How much is in every exact scope."""
        state, seqs_by_scope = self._get_account(account), defaultdict[Scope, list[int]](list)
        rows: tuple[Fact | EvidenceRow | Link, ...] = (
            *state.facts.values(),
            *state.evidence.values(),
            *state.links,
        )
        for row in rows:
            seqs_by_scope[row.scope].append(row.seq)
        memories = Counter(fact.scope for fact in state.facts.values() if _is_memory(fact))
        instants = {entry.seq: entry.at for entry in state.entries}
        spans = [(scope, seqs_by_scope[scope]) for scope in self.list_scopes(account)]
        return [
            ScopeTally(scope, memories[scope], instants[min(seqs)], instants[max(seqs)])
            for scope, seqs in spans
        ]

    @with_lock
    def list_turns(
        self,
        scope: Scope,
        after: int = 0,
        before: int = NEVER,
        limit: int = 1000,
        *,
        newest: bool = False,
    ) -> Sequence[StoredTurn]:
        """The turns of exactly this scope between two positions."""
        facts = (
            fact for fact in self._get_account(scope.account).facts.values() if fact.scope == scope
        )
        matching = [
            turn
            for turn in _list_turns(sorted(facts, key=lambda fact: fact.seq))
            if after < turn.said_seq < before
        ]
        chosen = matching[max(len(matching) - limit, 0) :] if newest else matching[:limit]
        return [StoredTurn(turn.said_seq, copy_row(turn.fact)) for turn in chosen]


def _is_memory(fact: Fact) -> bool:
    return fact.until == NEVER and fact.kind not in UNLISTED_KINDS


@dataclass(slots=True)
class _TurnOrigin:
    """What a thread was last told by, and the position where that was first said since it was last given up."""

    evidence: str | None = None
    said_seq: int | None = None

    def update(self, fact: Fact) -> None:
        """Go on to the next version."""
        if fact.evidence is not None:
            current_seq = self.said_seq if fact.evidence == self.evidence else None
            self.evidence, self.said_seq = (
                fact.evidence,
                fact.seq if current_seq is None and fact.gone == NEVER else current_seq,
            )


def _list_turns(facts: Sequence[Fact]) -> list[StoredTurn]:
    """The turns among all versions of a scope, in the order they were said in."""
    first_threads: dict[str, str] = {}
    origins: dict[str, _TurnOrigin] = {}
    for fact in facts:
        origins.setdefault(fact.id, _TurnOrigin()).update(fact)
        if fact.evidence is not None:
            first_threads.setdefault(fact.evidence, fact.id)
    spoken = ((origins[fact.id], fact) for fact in facts if _is_spoken(fact))
    turns = [
        StoredTurn(origin.said_seq, fact)
        for origin, fact in spoken
        if origin.said_seq is not None
        and origin.evidence is not None
        and first_threads[origin.evidence] == fact.id
    ]
    return sorted(turns, key=lambda turn: turn.said_seq)


def _is_spoken(fact: Fact) -> bool:
    return (
        fact.until == NEVER and fact.role in SPEAKER_ROLES and fact.kind not in (NODE, QUARANTINE)
    )
