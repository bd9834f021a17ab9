"""What is asked and what comes back: points in time, reads, receipts, hits, bundles and traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, overload

from told.model.fact import NEVER, UNLISTED_KINDS, Fact
from told.model.filter import MATCH_ALL, Comparison, Filter, combine_all, has_field
from told.model.scope import Scope
from told.runtime import cached_property, fast_frozen_init
from told.text.dates import format_iso
from told.text.tokens import extract_query_terms

T = TypeVar("T")

MAX_LIMIT = 1000
LATEST = NEVER - 1


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class AsOf:
    """A point on both axes: the ledger position read, its instant, and the world time asked about, if any.

    The position `LATEST` lies after everything that was and will be written.
    """

    seq: int
    at: int
    valid_at: int | None = None


def select_version(versions: Iterable[Fact], as_of: AsOf) -> Fact | None:
    """The version that counts at a point on both axes, of all there ever were of one thread; expired or not."""
    seq, valid_at = as_of.seq, as_of.valid_at
    if valid_at is None:
        candidates = [fact for fact in versions if fact.seq <= seq < fact.until]
    else:
        candidates = [
            fact
            for fact in versions
            if fact.seq <= seq < fact.gone and fact.valid_from <= valid_at < fact.valid_to
        ]
    return max(candidates, key=lambda fact: fact.seq, default=None)


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class FactQuery:
    """Which facts to read, of those after a position; the scope is part of every question."""

    scope: Scope
    as_of: AsOf
    filter: Filter = MATCH_ALL
    show_expired: bool = False
    limit: int | None = None
    offset: int = 0
    after: int = 0


def exclude_unlisted(query: FactQuery) -> FactQuery:
    """The same read without the kinds that stand behind memories, unless its filter speaks of kinds itself."""
    if has_field(query.filter, "kind"):
        return query
    return replace(
        query,
        filter=combine_all(
            (query.filter, Comparison("kind", "nin", tuple(sorted(UNLISTED_KINDS))))
        ),
    )


class QueryWord(NamedTuple):
    """A word of a query that may name somebody: its case folded, as it is written, whether it was capitalised."""

    text: str
    written: str
    is_capitalised: bool = False

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms it brings to the search, unless it does name somebody."""
        return tuple(extract_query_terms(self.written))


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class IndexQuery:
    """A search of the index: terms, a query vector, or both; `model` names the embedder the vector comes from.

    `centre` is how much of the scope's mean direction is taken off before vectors are compared, for what is near to
    everything tells little; `usual` is the cosine of unrelated texts, which a small scope cannot tell by itself. Words
    that name a speaker of the scope are no terms of the search, unless there are no others. Beside the
    two lists come the turns around the first `beside` of each, what was said inside one of the `spans`, and the
    positions in `also`.
    """

    query: FactQuery
    terms: tuple[str, ...] = ()
    vector: Sequence[float] | None = None
    depth: int = 100
    model: str | None = None
    centre: float = 0.0
    usual: float = 0.0
    words: tuple[QueryWord, ...] = ()
    time_spans: tuple[tuple[int, int], ...] = ()
    neighbour_depth: int = 0
    extra_seqs: tuple[int, ...] = ()


class Candidate(NamedTuple):
    """What the index knows of one passage it offers, whichever way it came.

    `talk` is the position of the first turn of the conversation it belongs to, its own where it belongs to none.
    `dense` is how much nearer it is than the scope's average, over the windows that hold it; `cover` is how much of
    the query its words and those around it hold. `near` and `words` are its places in the two lists.
    """

    seq: int
    slot: int
    said_at: int
    talk: int
    role: str | None = None
    actor: str | None = None
    cosine: float | None = None
    dense: float | None = None
    hub: float = 0.0
    bm25: float = 0.0
    cover: float = 0.0
    near: int | None = None
    words: int | None = None
    code: bytes = b""


class LazySequence(Sequence[T]):
    """Values that are made when somebody first looks at one."""

    def __init__(self, load: Callable[[], Sequence[T]]) -> None:
        self._load = load

    @cached_property
    def values(self) -> Sequence[T]:
        """They themselves."""
        return self._load()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[T]:
        return iter(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(self.values)


class Candidates(LazySequence[Candidate]):
    """Marks that are made when somebody first looks at one."""

    def get_column(self, name: str) -> Sequence[Any]:
        """One thing that is known of each."""
        return [getattr(candidate, name) for candidate in self.values]

    def take(self, indices: Sequence[int]) -> Sequence[Candidate]:
        """Those at some places."""
        return [self.values[index] for index in indices]


def to_candidates(candidates: Sequence[Candidate]) -> Candidates:
    """Marks as what can be asked for one thing that is known of each, or for some of them."""
    values = candidates.values if type(candidates) is LazySequence else candidates
    return values if isinstance(values, Candidates) else Candidates(lambda: values)


class RankedList(LazySequence[tuple[int, float]]):
    """What a retriever offers, made of the positions and scores of passages, best first, once somebody looks at it.

    Each fact stands there once, where its best passage does; whether there is any is known beforehand.
    """

    def __init__(self, nonempty: bool, passages: Callable[[], Iterable[tuple[int, float]]]) -> None:
        self._nonempty, self._passages = nonempty, passages

    @cached_property
    def values(self) -> Sequence[tuple[int, float]]:
        """Facts and scores."""
        best: dict[int, float] = {}
        for seq, score in self._passages():
            best.setdefault(seq, score)
        return list(best.items())

    def __bool__(self) -> bool:
        return self._nonempty


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class IndexResult:
    """What each retriever offers, best first, as pairs of ledger position and score, and all that is known of it.

    The marks of a fact stand in the order of its slots.
    `named` are the speakers of the scope that the query names; `mass` is what all terms of the query tell together;
    `mean` is the length of the scope's mean vector; `visible` is how many passages of memories the read can see;
    `linked` is whether the account has any links to follow.
    """

    by_vector: Sequence[tuple[int, float]] = ()
    by_terms: Sequence[tuple[int, float]] = ()
    candidates: Sequence[Candidate] = ()
    named_speakers: tuple[str, ...] = ()
    total_weight: float = 0.0
    centroid_length: float = 0.0
    passage_count: int = 0
    has_links: bool = False


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Hit:
    """A fact with its score and the parts the score is made of, and the passage of it that matched.

    `also` are the memories it stands for beside itself, `conflicts` those that say otherwise; `superseded` is what
    holds instead, where it no longer does.
    """

    fact: Fact
    score: float
    parts: Mapping[str, float | None] = field(default_factory=dict)
    slot: int = 0
    also: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    superseded: str = ""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One stage of a read: how many went in and out, and how long it took."""

    stage: str
    kept: int
    dropped: int = 0
    micros: float = 0.0
    note: str = ""


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class TracedCandidate:
    """One fact a read looked at, and the stage that kept or dropped it."""

    id: str
    seq: int
    text: str
    score: float
    parts: Mapping[str, float | None]
    stage: str
    kept: bool
    reason: str = ""
    sources: tuple[str, ...] = ()
    level: str = "content"

    def as_dict(self) -> dict[str, Any]:
        """The candidate as JSON."""
        return {
            "id": self.id,
            "memory": self.text,
            "score": self.score,
            "parts": dict(self.parts),
            "sources": list(self.sources),
            "level": self.level,
            "stage": self.stage,
            "kept": self.kept,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Trace:
    """Why the answer is what it is."""

    query: str
    as_of: AsOf
    steps: tuple[TraceStep, ...] = ()
    candidates: tuple[TracedCandidate, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The trace as JSON; the shape is stable."""
        return {
            "query": self.query,
            "asked": dict(self.asked),
            "as_of": {
                "seq": None if self.as_of.seq >= LATEST else self.as_of.seq,
                "at": format_iso(self.as_of.at),
            },
            "valid_at": None if self.as_of.valid_at is None else format_iso(self.as_of.valid_at),
            "steps": [
                {
                    "stage": s.stage,
                    "kept": s.kept,
                    "dropped": s.dropped,
                    "micros": round(s.micros, 1),
                    "note": s.note,
                }
                for s in self.steps
            ],
            "candidates": [candidate.as_dict() for candidate in self.candidates],
        }


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a read returns: a text that fits its budget, the hits in it, and why."""

    text: str
    tokens: int
    budget: int
    hits: tuple[Hit, ...]
    trace: Trace
    warnings: tuple[str, ...] = ()
    messages: tuple[Mapping[str, str], ...] = ()

    def __str__(self) -> str:
        return self.text


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Event:
    """What a write did to one memory."""

    event: str
    id: str
    text: str | None = None
    previous: str | None = None
    role: str | None = None
    actor: str | None = None


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write returns: its events, what was skipped and why, and where in the ledger it stands.

    `extraction` says how far a model has come that was asked about it: pending, failed or done; `usage` what that cost.
    """

    events: tuple[Event, ...] = ()
    skipped: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    tx: int | None = None
    extraction: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof of an erasure: what was destroyed, where, and the tombstone that stands for it."""

    seq: int
    at: int
    hash: str
    entries: int
    memories: tuple[str, ...]
    evidence: int
    destroyed: Mapping[str, int]
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The certificate as JSON."""
        return {
            "tombstone": {"seq": self.seq, "at": format_iso(self.at), "hash": self.hash},
            "entries": self.entries,
            "memories": list(self.memories),
            "evidence": self.evidence,
            "destroyed": dict(self.destroyed),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Whether a ledger is what it was when it was written."""

    ok: bool
    entries: int
    erased: int
    head: str
    seq: int | None = None
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        body: dict[str, Any] = {
            "ok": self.ok,
            "entries": self.entries,
            "erased": self.erased,
            "head": self.head,
        }
        return body if self.ok else {**body, "first_bad_seq": self.seq, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class AccessCount:
    """How often a memory was recalled, and when last."""

    count: int
    last: int

    def __add__(self, other: AccessCount) -> AccessCount:
        return AccessCount(self.count + other.count, max(self.last, other.last))


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
