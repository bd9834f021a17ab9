"""What reads leave behind: who was recalled when, which topics came up together, and what is to be thought over.

None of it is a belief, so none of it is in the ledger: no view, export or proof knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from told.core.fact import NEVER
from told.core.query import AccessCount
from told.core.value import fast_frozen_init

ACCESS_STRENGTH_GAIN = 0.1
"""How much stronger each recall makes what is recalled, up to 1."""


class ReviewReason(StrEnum):
    """Why a memory is to be thought over."""

    RECALL = "recall"
    CONTRADICTION = "contradiction"
    POLICY_CHANGE = "policy_change"
    SCHEDULED_REVIEW = "scheduled_review"
    EXPLICIT = "explicit"


class AccessOutcome(StrEnum):
    """What happened to a memory in a read."""

    RETRIEVED = "retrieved"
    SURFACED = "surfaced"
    CITED = "cited"
    IGNORED = "ignored"
    CORRECTED = "corrected"


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class AccessRecord:
    """One memory in one read: at which rank, with which score, and to which query, of which only a hash is kept."""

    thread: str
    at: int
    rank: int = 0
    score: float = 0.0
    query: str = ""
    access: AccessOutcome = AccessOutcome.RETRIEVED


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class AccessState:
    """How much in use a memory was from one instant until another; the state after it is a new one."""

    thread: str
    since: int
    until: int
    count: int
    strength: float

    @classmethod
    def from_first_access(cls, thread: str, at: int) -> AccessState:
        """The state a first recall begins."""
        return cls(thread, at, NEVER, 1, ACCESS_STRENGTH_GAIN)

    def next_state(self, at: int) -> AccessState:
        """The state one more recall begins; one that is told late begins no earlier than this one."""
        strength = (
            1.0
            if self.strength == 1.0
            else min(1.0, round(self.strength + ACCESS_STRENGTH_GAIN, 9))
        )
        return AccessState(self.thread, max(at, self.since), NEVER, self.count + 1, strength)


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class ReviewTask:
    """A memory that is to be thought over, from when on, how urgently, and who is at it; `id` 0 has no place yet."""

    thread: str
    reason: ReviewReason
    priority: float = 0.0
    due: int = 0
    id: int = 0
    claimed: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class AccessBatch:
    """What the reads of a while leave behind in an account, to be written down together."""

    counts: Mapping[str, AccessCount] = field(default_factory=dict)
    cooccurrences: Mapping[tuple[str, str], AccessCount] = field(default_factory=dict)
    records: Sequence[AccessRecord] = ()
    keep_per_thread: int = 0
    tasks: Sequence[ReviewTask] = ()
    window: int = 0


def urgency_key(task: ReviewTask) -> tuple[float, int, int]:
    """What tasks are sorted by: the most urgent first, then the longest due, then the oldest."""
    return -task.priority, task.due, task.id


def order_pair(first: str, second: str) -> tuple[str, str]:
    """Two topics as the pair they are counted as, whoever came first."""
    return (first, second) if first < second else (second, first)
