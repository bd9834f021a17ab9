"""A read on its way: what is wanted, what was found so far, and what became of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from told.core.belief import BeliefConflicts
from told.core.fact import NODE, Fact
from told.core.identity import Lens
from told.core.query import FactQuery, Hit, IndexQuery, IndexResult
from told.core.value import fast_frozen_init
from told.flow import Flow, call
from told.read import trace
from told.read.asked import QueryIntent
from told.read.fold import EvidenceGroup, is_extracted
from told.read.gather import ReadContext
from told.read.guard import find_denials
from told.read.leads import LinkCache
from told.read.rank import ScoredCandidate, list_seqs


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a read is asked for; a deep one looks at as many candidates as there can be results.

    A verbatim one wants the words that claims were taken from. `belief` says which side of a contradiction is shown,
    and `lens` which names are taken for one.
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


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search, what was not as it should be, and how sure it is."""

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()
    confidence: float = 0.0


@dataclass(slots=True)
class SearchState:
    """A read on its way: what was understood, what was found, what is left of it, and what became of the rest.

    `shown` are the positions that may come to be shown; `sides` are the contradictions among them, `kins` the turns
    with what was taken from them, by evidence; `led` are words that only a claim led to; `heat` is what is at hand;
    `web` are the links that were looked up.
    """

    request: SearchRequest
    intent: QueryIntent
    index_query: IndexQuery
    index_result: IndexResult
    scored: Sequence[ScoredCandidate]
    warnings: list[str]
    timer: trace.StageTimer
    facts: dict[int, Fact] = field(default_factory=dict)
    expansion_labels: dict[int, str] = field(default_factory=dict)
    outcome_log: trace.OutcomeLog = field(default_factory=trace.OutcomeLog)
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
        """Forget what became of these candidates: more of them are here now."""
        self.scored, self.outcome_log, self.merged_threads, self.added_utterances = (
            scored,
            trace.OutcomeLog(),
            {},
            [],
        )

    def keep_only(self, kept: Sequence[ScoredCandidate], stage: str, reason: str) -> None:
        """Go on with these; the others end here."""
        if len(kept) < len(self.scored):
            self.outcome_log.record_stage(self.scored, kept, stage, reason)
        self.scored = kept

    def drop_facts(self, reasons: Mapping[int, str], stage: str) -> None:
        """Some facts end here, each for its own reason."""
        if reasons:
            kept = [item for item in self.scored if item.candidate.seq not in reasons]
            self.outcome_log.record_stage(self.scored, kept, stage, reasons)
            self.scored = kept

    def add_merged_thread(self, seq: int, thread: str) -> None:
        """The fact at a position also stands for another memory."""
        if thread not in self.merged_threads.get(seq, ()):
            self.merged_threads[seq] = (*self.merged_threads.get(seq, ()), thread)

    def add_visible(self, facts: Sequence[Fact]) -> None:
        """Facts that every guard lets through came in, and may come to be shown."""
        self.facts |= {fact.seq: fact for fact in facts}
        self.visible_seqs.update(fact.seq for fact in facts)


def take_first_facts(
    scored: Sequence[ScoredCandidate], fact_count: int
) -> Sequence[ScoredCandidate]:
    """The passages up to so many different facts."""
    count = len(take_first_seqs(scored, fact_count))
    return scored if count == len(scored) else scored[:count]


def take_first_seqs(scored: Sequence[ScoredCandidate], fact_count: int) -> Sequence[int]:
    """The positions of the passages up to so many different facts."""
    seqs = list_seqs(scored)
    seen, end = set(seqs[:fact_count]), fact_count
    while end < len(seqs) and (len(seen) < fact_count or seqs[end] in seen):
        seen.add(seqs[end])
        end += 1
    return seqs[:end]


def fetch_distinct(ctx: ReadContext, state: SearchState, wanted: int) -> Flow[None]:
    """Fetch the facts of the best until as many as wanted may be seen that say different things, or no more."""
    reach = wanted
    while True:
        head = take_first_seqs(state.scored, reach)
        yield from fetch_facts(ctx, state, head)
        if count_distinct(state.facts.values()) >= wanted or len(head) == len(state.scored):
            return
        reach *= 2


def count_distinct(facts: Iterable[Fact]) -> int:
    """How many answers there are at least among facts: a turn and what was taken from it are one."""
    memories = [fact for fact in facts if fact.kind != NODE]
    texts = {(fact.actor, fact.md5) for fact in memories}
    sources = {fact.evidence if is_extracted(fact) else fact.id for fact in memories}
    return min(len(texts), len(sources))


def fetch_facts(ctx: ReadContext, state: SearchState, seqs: Iterable[int]) -> Flow[None]:
    """Fetch the facts at these positions that are not here yet; only what every guard lets through comes in."""
    facts, denied = state.facts, state.denied
    if missing := [seq for seq in dict.fromkeys(seqs) if seq not in facts and seq not in denied]:
        fetched = yield from call(
            ctx.store.facts_by_seq, state.request.fact_query.scope.account, missing
        )
        newly_denied = find_denials(fetched.values(), ctx.guards)
        denied |= newly_denied
        facts |= (
            {seq: fact for seq, fact in fetched.items() if seq not in newly_denied}
            if newly_denied
            else fetched
        )
