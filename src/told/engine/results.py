"""Results of verbs that combine several values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from told.ingest.queue import DrainResult
from told.ledger.erase import ErasureClosure
from told.maintenance.importance import JudgeResult
from told.model.beliefs import BeliefConflicts
from told.model.fact import Fact
from told.model.query import Bundle, Receipt, ReviewTask
from told.retrieval.listing import MemoryDetail
from told.retrieval.state import SearchResult

W = TypeVar("W", SearchResult, Bundle, Receipt)


@dataclass(frozen=True, slots=True)
class FactListing:
    """The facts of a scope, the conflicts between them, and warnings about the request."""

    facts: Sequence[Fact]
    conflicts: BeliefConflicts
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DecayReport:
    """A memory's strength and points of its decay curve."""

    detail: MemoryDetail
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """The entries and current facts that an erasure would destroy."""

    closure: ErasureClosure
    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class WaitResult:
    """The outcome of pending extraction; `judgement` is None unless the setting `judge` is on."""

    drained: DrainResult
    pending: int
    judgement: JudgeResult | None
    failures: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class QueuedReview:
    """A reconsolidation task, its memory, and the reasons for a human review, if any."""

    task: ReviewTask
    fact: Fact
    why: tuple[str, ...] = ()


def add_warnings(result: W, warnings: tuple[str, ...]) -> W:
    """Return a result with more warnings."""
    return replace(result, warnings=(*result.warnings, *warnings)) if warnings else result
