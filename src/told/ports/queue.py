"""The queue port: consumer cursors and notes, faults and review tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from told.model.query import ReviewTask


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure of a consumer at an entry; `raw` is the model's reply, if there was one."""

    id: int
    account: str
    consumer: str
    seq: int
    error: str
    at: int
    attempts: int
    raw: str = ""


class Queue(Protocol):
    """State of the consumers that work through the ledger.

    Tasks are added by `AccessLog.record_accesses`; a step that commits with its effects is
    `Batch.step`.
    """

    def get_cursor(self, account: str, consumer: str) -> int:
        """Return the position a consumer has reached."""

    def read_notes(
        self, account: str, consumer: str, keys: Sequence[str] | None = None
    ) -> Mapping[str, bytes]:
        """Return a consumer's notes under these keys, or all of them; omit missing keys."""

    def update_consumer(
        self,
        account: str,
        consumer: str,
        *,
        cursor: int | None = None,
        notes: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Set a consumer's cursor and write its notes; None deletes a note.

        A note whose key is a thread id is deleted when the thread is erased.
        """

    def record_fault(
        self, account: str, consumer: str, seq: int, error: str, raw: str = ""
    ) -> None:
        """Record a failure; a repeated one counts another attempt."""

    def clear_faults(self, account: str, fault_ids: Sequence[int]) -> int:
        """Delete faults and return how many there were."""

    def list_faults(self, account: str) -> Sequence[Fault]:
        """Return all faults in the order they first occurred."""

    def list_tasks(self, account: str, limit: int = 100) -> Sequence[ReviewTask]:
        """Return open tasks, highest priority first, then the longest due."""

    def claim_tasks(self, account: str, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Claim the most urgent due tasks that nobody claimed within the lease.

        Each claim counts an attempt.
        """

    def complete_tasks(self, account: str, task_ids: Sequence[int]) -> int:
        """Delete tasks and return how many there were."""
