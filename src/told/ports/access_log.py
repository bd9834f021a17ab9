"""The access-log port: recalls, co-occurrence counts and access states.

Access data is no view: no export, proof or rebuild knows of it. Data of a thread is deleted when
the thread is erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from told.model.query import AccessBatch, AccessCount, AccessRecord, AccessState


class AccessHistory(NamedTuple):
    """The logged accesses of a thread and its access states, both oldest first."""

    records: Sequence[AccessRecord]
    states: Sequence[AccessState]


class AccessLog(Protocol):
    """Records of reads."""

    def record_accesses(self, account: str, batch: AccessBatch) -> int:
        """Apply a batch, all or nothing, and return how many of its tasks are new.

        Counts are added up. Each record ends the thread's open access state and begins a new one;
        the newest `keep_per_thread` records and states are kept. With `keep_per_thread` 0 nothing
        is logged and nothing dropped. Co-occurrences count regardless of the order of a pair. A
        task is merged into the open task of its thread and reason that is due at most `window`
        later, or, if that is claimed, within `window` of it; the earlier due time and the higher
        priority win. Data of a thread without a version is ignored.
        """

    def access_counts(self, account: str, threads: Sequence[str]) -> Mapping[str, AccessCount]:
        """Return how often each of these threads was recalled; omit those that never were."""

    def access_history(self, account: str, thread: str) -> AccessHistory:
        """Return the logged accesses and the access states of a thread."""

    def cooccurrence(
        self, account: str, topics: Sequence[str]
    ) -> Mapping[tuple[str, str], AccessCount]:
        """Return the counts of all pairs with any of these topics; the lesser id comes first."""
