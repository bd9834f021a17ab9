"""Why the answer is what it is: the steps of a read as they happen, and what became of every candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Final, TypeAlias

from told.core.fact import LEVEL_SLOTS, Fact
from told.core.query import Candidate, IndexQuery, TracedCandidate, TraceStep
from told.core.when import format_iso
from told.read.asked import QueryIntent
from told.read.rank import ScoredCandidate

StageNote: TypeAlias = Callable[[], str]
"""What there is to say of a stage, put into words only for who wants to know."""


@dataclass(slots=True)
class StageTimer:
    """The stages of a read as they happen."""

    stages: list[tuple[str, int, int, float, StageNote]] = field(default_factory=list)
    last_ns: int = field(default_factory=perf_counter_ns)

    def record_stage(self, stage: str, kept: int, dropped: int = 0, note: StageNote = str) -> None:
        """A stage ended just now."""
        now = perf_counter_ns()
        self.stages.append((stage, kept, dropped, (now - self.last_ns) / 1000, note))
        self.last_ns = now

    def update_stage(self, stage: str, kept: int, dropped: int, note: StageNote) -> None:
        """More went through a stage later on."""
        self.stages = [
            (s[0], kept, dropped, s[3], note) if s[0] == stage else s for s in self.stages
        ]

    def build_steps(self) -> tuple[TraceStep, ...]:
        """The steps of a trace."""
        return tuple(
            TraceStep(stage, kept, dropped, micros, note())
            for stage, kept, dropped, micros, note in self.stages
        )


def intent_to_json(intent: QueryIntent) -> dict[str, Any]:
    """What was read out of a query, as JSON."""
    spans = [
        {
            "from": None if span.start is None else format_iso(span.start),
            "to": None if span.end is None else format_iso(span.end),
        }
        for span in intent.spans
    ]
    flags = {"when": intent.asks_when, "reply": intent.asks_reply, "past": intent.asks_past}
    return {
        "sort": str(intent.answer_source),
        "intent": str(intent.purpose),
        "language": intent.language,
        "names": list(intent.names),
        "times": spans,
        "asks": [name for name, is_set in flags.items() if is_set],
    }


def list_sources(
    candidate: Candidate,
    index_query: IndexQuery,
    expansion_labels: Mapping[int, str],
    hot_labels: Mapping[int, str],
) -> tuple[str, ...]:
    """The lists a passage came from, with its place in those that have places."""
    labels = [f"vector #{candidate.near}"] if candidate.near else []
    labels += [f"words #{candidate.words}"] if candidate.words else []
    if any(start <= candidate.said_at < end for start, end in index_query.time_spans):
        labels.append("time")
    if candidate.seq in hot_labels:
        labels.append(hot_labels[candidate.seq])
    if candidate.seq in expansion_labels:
        labels.append(expansion_labels[candidate.seq])
    return tuple(labels) or ("beside a hit",)


def build_score_parts(item: ScoredCandidate) -> dict[str, float | None]:
    """What a score is made of, after what the index measured."""
    candidate = item.candidate
    return {
        "cosine": candidate.cosine,
        "cosine_rank": candidate.near,
        "bm25": candidate.bm25 or None,
        "bm25_rank": candidate.words,
        **item.parts,
        "raw": item.score,
    }


def get_level(candidate: Candidate) -> str:
    """Which form of a memory a passage is."""
    return LEVEL_SLOTS.get(candidate.slot, "content")


StageOutcome: TypeAlias = tuple[str, str]
"""The stage at which a candidate ended, and why; without a reason it did not."""

KEPT_OUTCOME: Final[StageOutcome] = ("select", "")


@dataclass(slots=True)
class OutcomeLog:
    """Who went on from each stage; what became of each candidate is told only when somebody asks."""

    stages: list[
        tuple[Sequence[ScoredCandidate], Sequence[ScoredCandidate], str, str | Mapping[int, str]]
    ] = field(default_factory=list)

    def record_stage(
        self,
        before: Sequence[ScoredCandidate],
        after: Sequence[ScoredCandidate],
        stage: str,
        reason: str | Mapping[int, str],
    ) -> None:
        """Of those before only those after went on; the others ended for one reason, or each for its own."""
        self.stages.append((before, after, stage, reason))

    def resolve_outcomes(self) -> dict[tuple[int, int], StageOutcome]:
        """What became of those that ended, by position and slot; the first end counts."""
        outcomes: dict[tuple[int, int], StageOutcome] = {}
        for before, after, stage, reason in self.stages:
            dropped = {_candidate_key(item): item.candidate.seq for item in before}
            for item in after:
                dropped.pop(_candidate_key(item), None)
            for key, seq in dropped.items():
                outcomes.setdefault(
                    key, (stage, reason if isinstance(reason, str) else reason[seq])
                )
        return outcomes


def _candidate_key(item: ScoredCandidate) -> tuple[int, int]:
    return item.candidate.seq, item.candidate.slot


def build_traced_candidate(
    item: ScoredCandidate, fact: Fact, score: float, sources: tuple[str, ...], outcome: StageOutcome
) -> TracedCandidate:
    """A candidate with what became of it."""
    stage, reason = outcome
    return TracedCandidate(
        fact.id,
        fact.seq,
        fact.text,
        score,
        build_score_parts(item),
        stage,
        not reason,
        reason,
        sources,
        get_level(item.candidate),
    )
