"""The ports to what is beside the ledger: what reads leave behind, and what consumers note for themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from told.core.fact import Tick
from told.core.query import AccessCount
from told.core.recall import AccessBatch, AccessRecord, AccessState, ReviewTask
from told.core.scope import Scope


class Overlay(Protocol):
    """What no view, export or proof knows of. Whatever belongs to a thread goes when the thread is erased."""

    # the clock of a conversation: this one is a view, folded from the ledger
    def list_ticks(
        self, scope: Scope, upto: int | None = None, limit: int = 4096
    ) -> Sequence[Tick]:
        """The last turns at the home of a scope up to a position (now, when None), in ledger order."""

    def tick_totals(self, scope: Scope, seqs: Sequence[int]) -> Mapping[int, tuple[int, int]]:
        """How many turns and tokens all ticks at the home of a scope come to up to each of these positions."""

    # what reads leave behind
    def record_accesses(self, account: str, batch: AccessBatch) -> None:
        """Count recalls and topics that met, note recalls and queue tasks, or none of it.

        Recalls are added to those counted. Each that is noted closes the state of its thread with a new one, and the
        newest `keep` of a thread stay; where none is to be kept none is noted, and none that was noted before is let
        go. Topics that met and tasks are what `meet` and `enqueue` make of them. Whatever is of a thread that has no
        version here, or no more, is dropped.
        """

    # topics that came up together
    def record_cooccurrence(
        self, account: str, pairs: Mapping[tuple[str, str], AccessCount]
    ) -> None:
        """Count that topics came up together; who came first is one, and a pair with an unknown end is dropped."""

    def cooccurrence(
        self, account: str, topics: Sequence[str]
    ) -> Mapping[tuple[str, str], AccessCount]:
        """How often any of these topics came up together with others; of each pair the lesser id is first."""

    # recalls one by one
    def access_records(self, account: str, thread: str) -> Sequence[AccessRecord]:
        """The recalls of a thread that are still noted, oldest first."""

    def access_states(self, account: str, threads: Sequence[str]) -> Sequence[AccessState]:
        """The states of these threads that are still noted, by thread and oldest first."""

    # what is to be thought over
    def enqueue_tasks(self, account: str, tasks: Sequence[ReviewTask], window: int) -> int:
        """Queue tasks; one waits together with the open task of its thread and reason that is due before it.

        Or no later after it than the window. A task that somebody has taken is joined by what is due within the window
        of it only: whatever is due later is not what is being thought over. The earlier due and the more urgent
        priority count. Threads that have no version here are dropped. Returns how many are new.
        """

    def list_tasks(self, account: str, limit: int = 100) -> Sequence[ReviewTask]:
        """The open tasks, most urgent first, then the longest due."""

    def claim_tasks(self, account: str, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Take the most urgent tasks that are due and that nobody took within the lease; each counts one attempt."""

    def complete_tasks(self, account: str, task_ids: Sequence[int]) -> int:
        """Close tasks; how many there were."""

    # what consumers note for themselves
    def read_notes(
        self, account: str, consumer: str, keys: Sequence[str] | None = None
    ) -> Mapping[str, bytes]:
        """What a consumer noted under these keys, or under all; only what is there."""

    def write_notes(self, account: str, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note something outside a commit; None forgets it. Inside one, it is `Batch.notes`.

        A note under the id of a thread belongs to it.
        """
