"""The request, intermediate state and result of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter_ns
from typing import Any, Final, TypeAlias

from told.flow import Flow, call
from told.model.beliefs import BeliefConflicts, Lens
from told.model.fact import LEVEL_SLOTS, NODE, Fact
from told.model.query import (
    Candidate,
    FactQuery,
    Hit,
    IndexQuery,
    IndexResult,
    TracedCandidate,
    TraceStep,
)
from told.retrieval.candidates import LinkCache, ReadContext, find_denials
from told.retrieval.grouping import EvidenceGroup, is_extracted
from told.retrieval.intent import QueryIntent
from told.retrieval.ranking import ScoredCandidate, list_seqs
from told.text.dates import format_iso

StageNote: TypeAlias = Callable[[], str]
"""A callable that returns a stage's note; called only for traces."""


@dataclass(slots=True)
class StageTimer:
    """Records the stages of a read with their durations."""

    stages: list[tuple[str, int, int, float, StageNote]] = field(default_factory=list)
    last_ns: int = field(default_factory=perf_counter_ns)

    def record_stage(self, stage: str, kept: int, dropped: int = 0, note: StageNote = str) -> None:
        """Record a stage that ends now."""
        now = perf_counter_ns()
        self.stages.append((stage, kept, dropped, (now - self.last_ns) / 1000, note))
        self.last_ns = now

    def update_stage(self, stage: str, kept: int, dropped: int, note: StageNote) -> None:
        """Replace the counts and note of a recorded stage."""
        self.stages = [
            (s[0], kept, dropped, s[3], note) if s[0] == stage else s for s in self.stages
        ]

    def build_steps(self) -> tuple[TraceStep, ...]:
        """Return the stages as trace steps."""
        return tuple(
            TraceStep(stage, kept, dropped, micros, note())
            for stage, kept, dropped, micros, note in self.stages
        )


def intent_to_json(intent: QueryIntent) -> dict[str, Any]:
    """Return a query intent as JSON."""
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
    """Return labels of the sources a passage came from, with its rank where there is one."""
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
    """Return the components of a score, including the index's own measures."""
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
    """Return the level name of a passage."""
    return LEVEL_SLOTS.get(candidate.slot, "content")


StageOutcome: TypeAlias = tuple[str, str]
"""The last stage of a candidate and the reason it was dropped; kept if the reason is empty."""

KEPT_OUTCOME: Final[StageOutcome] = ("select", "")


@dataclass(slots=True)
class OutcomeLog:
    """Records candidates before and after each stage; outcomes are computed on demand."""

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
        """Record a stage with one drop reason for all, or one per fact."""
        self.stages.append((before, after, stage, reason))

    def resolve_outcomes(self) -> dict[tuple[int, int], StageOutcome]:
        """Return the first drop outcome of each dropped passage, by (seq, slot)."""
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
    """Build a candidate's trace entry."""
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


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The parameters of a search.

    `deep` looks at as many candidates as there can be results; `verbatim` prefers source turns to
    claims; `belief` selects a side of contradictions; `lens` merges names of one entity.
    """

    query: str
    fact_query: FactQuery
    limit: int
    min_score: float = 0.0
    rerank: bool = False
    now: datetime | None = None
    deep: bool = False
    verbatim: bool = False
    belief: str = "latest"
    lens: Lens | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search, its warnings and its confidence."""

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()
    confidence: float = 0.0


@dataclass(slots=True)
class SearchState:
    """The mutable state of a search in progress.

    `visible_seqs` may be shown; `conflicts` holds their contradictions; `evidence_groups` maps
    evidence to a turn and its claims; `added_utterances` are turns reached only through a claim.
    """

    request: SearchRequest
    intent: QueryIntent
    index_query: IndexQuery
    index_result: IndexResult
    scored: Sequence[ScoredCandidate]
    warnings: list[str]
    timer: StageTimer
    facts: dict[int, Fact] = field(default_factory=dict)
    expansion_labels: dict[int, str] = field(default_factory=dict)
    outcome_log: OutcomeLog = field(default_factory=OutcomeLog)
    merged_threads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    denied: dict[int, str] = field(default_factory=dict)
    all_scored: Sequence[ScoredCandidate] = ()
    conflicts: BeliefConflicts = field(default_factory=BeliefConflicts)
    evidence_groups: dict[str, EvidenceGroup] = field(default_factory=dict)
    superseded_by: dict[int, str] = field(default_factory=dict)
    added_utterances: list[ScoredCandidate] = field(default_factory=list)
    visible_seqs: set[int] = field(default_factory=set)
    hot_labels: dict[int, str] = field(default_factory=dict)
    link_cache: LinkCache = field(default_factory=LinkCache)

    def restart(self, scored: Sequence[ScoredCandidate]) -> None:
        """Reset the outcomes after more candidates were fetched."""
        self.scored = scored
        self.outcome_log = OutcomeLog()
        self.merged_threads = {}
        self.added_utterances = []

    def keep_only(self, kept: Sequence[ScoredCandidate], stage: str, reason: str) -> None:
        """Keep these candidates and drop the others for one reason."""
        if len(kept) < len(self.scored):
            self.outcome_log.record_stage(self.scored, kept, stage, reason)
        self.scored = kept

    def drop_facts(self, reasons: Mapping[int, str], stage: str) -> None:
        """Drop facts by seq, each for its own reason."""
        if reasons:
            kept = [item for item in self.scored if item.candidate.seq not in reasons]
            self.outcome_log.record_stage(self.scored, kept, stage, reasons)
            self.scored = kept

    def add_merged_thread(self, seq: int, thread: str) -> None:
        """Record that a fact also represents another memory."""
        if thread not in self.merged_threads.get(seq, ()):
            self.merged_threads[seq] = (*self.merged_threads.get(seq, ()), thread)

    def add_visible(self, facts: Sequence[Fact]) -> None:
        """Add facts that passed every guard and may be shown."""
        self.facts |= {fact.seq: fact for fact in facts}
        self.visible_seqs.update(fact.seq for fact in facts)


def take_first_facts(
    scored: Sequence[ScoredCandidate], fact_count: int
) -> Sequence[ScoredCandidate]:
    """Return the leading passages that belong to the first `fact_count` facts."""
    count = len(take_first_seqs(scored, fact_count))
    return scored if count == len(scored) else scored[:count]


def take_first_seqs(scored: Sequence[ScoredCandidate], fact_count: int) -> Sequence[int]:
    """Return the seqs of the leading passages that belong to the first `fact_count` facts."""
    seqs = list_seqs(scored)
    seen, end = set(seqs[:fact_count]), fact_count
    while end < len(seqs) and (len(seen) < fact_count or seqs[end] in seen):
        seen.add(seqs[end])
        end += 1
    return seqs[:end]


def fetch_distinct(ctx: ReadContext, state: SearchState, wanted: int) -> Flow[None]:
    """Fetch facts of the best passages until `wanted` distinct ones are visible or none is left."""
    reach = wanted
    while True:
        head = take_first_seqs(state.scored, reach)
        yield from fetch_facts(ctx, state, head)
        if count_distinct(state.facts.values()) >= wanted or len(head) == len(state.scored):
            return
        reach *= 2


def count_distinct(facts: Iterable[Fact]) -> int:
    """Return a lower bound for the distinct answers; a turn and its claims count as one."""
    memories = [fact for fact in facts if fact.kind != NODE]
    texts = {(fact.actor, fact.md5) for fact in memories}
    sources = {fact.evidence if is_extracted(fact) else fact.id for fact in memories}
    return min(len(texts), len(sources))


def fetch_facts(ctx: ReadContext, state: SearchState, seqs: Iterable[int]) -> Flow[None]:
    """Fetch the missing facts at these seqs and keep those that pass every guard."""
    facts, denied = state.facts, state.denied
    if missing := [seq for seq in dict.fromkeys(seqs) if seq not in facts and seq not in denied]:
        versions = yield from call(
            ctx.store.find_versions, state.request.fact_query.scope.account, seqs=missing
        )
        fetched = {fact.seq: fact for fact in versions}
        newly_denied = find_denials(versions, ctx.guards)
        denied |= newly_denied
        facts |= (
            {seq: fact for seq, fact in fetched.items() if seq not in newly_denied}
            if newly_denied
            else fetched
        )
