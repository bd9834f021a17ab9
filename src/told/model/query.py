"""Requests and results of reads and writes: points in time, hits, traces, bundles and receipts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, overload

from told.model.fact import NEVER, UNLISTED_KINDS, Fact
from told.model.filter import MATCH_ALL, Comparison, Filter, combine_all, has_field
from told.model.scope import Scope
from told.runtime import cached_property
from told.text.dates import format_iso
from told.text.tokens import extract_query_terms

T = TypeVar("T")

MAX_LIMIT = 1000
LATEST = NEVER - 1


@dataclass(frozen=True, slots=True)
class AsOf:
    """A point on both time axes: ledger position, its instant and the valid time asked for, if any.

    The position `LATEST` is after every entry.
    """

    seq: int
    at: int
    valid_at: int | None = None


def select_version(versions: Iterable[Fact], as_of: AsOf) -> Fact | None:
    """Return the version of a thread that holds at a point on both axes, expired or not."""
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


@dataclass(frozen=True, slots=True)
class FactQuery:
    """A read of the facts of a scope after a ledger position."""

    scope: Scope
    as_of: AsOf
    filter: Filter = MATCH_ALL
    show_expired: bool = False
    limit: int | None = None
    offset: int = 0
    after: int = 0


def exclude_unlisted(query: FactQuery) -> FactQuery:
    """Exclude unlisted kinds from a read, unless its filter tests the kind."""
    if has_field(query.filter, "kind"):
        return query
    return replace(
        query,
        filter=combine_all(
            (query.filter, Comparison("kind", "nin", tuple(sorted(UNLISTED_KINDS))))
        ),
    )


class QueryWord(NamedTuple):
    """A query word that may be a name: folded, as written, and whether it was capitalised."""

    text: str
    written: str
    is_capitalised: bool = False

    @property
    def terms(self) -> tuple[str, ...]:
        """Return its search terms, used unless it names a speaker."""
        return tuple(extract_query_terms(self.written))


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """An index search by terms, by vector or both; `model` is the embedder of the vector.

    `centre` is the share of the scope's mean direction subtracted before vectors are compared;
    `usual` is the cosine of unrelated texts, which a small scope cannot estimate. Words that name a
    speaker of the scope are not search terms unless there are no others. Besides both ranked lists,
    the result contains the neighbours of the first `neighbour_depth` of each, passages said within
    one of the `time_spans`, and the positions in `extra_seqs`.
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
    """A candidate passage and its scores, from any retriever.

    `talk` is the position of the first turn of its conversation, or its own. `dense` is its
    similarity above the scope's average over the windows that contain it; `hub` is its mean cosine
    with the scope; `cover` is the share of the query covered by its words and those of its
    neighbours. `near` and `words` are its ranks by vector and by words; `code` is its quantised
    vector.
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
    """A sequence loaded on first access."""

    def __init__(self, load: Callable[[], Sequence[T]]) -> None:
        self._load = load

    @cached_property
    def values(self) -> Sequence[T]:
        """Return the loaded values."""
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
    """Candidates loaded on first access."""

    def get_column(self, name: str) -> Sequence[Any]:
        """Return one attribute of every candidate."""
        return [getattr(candidate, name) for candidate in self.values]

    def take(self, indices: Sequence[int]) -> Sequence[Candidate]:
        """Return the candidates at these indices."""
        return [self.values[index] for index in indices]


def to_candidates(candidates: Sequence[Candidate]) -> Candidates:
    """Wrap candidates so that columns and subsets can be read from them."""
    values = candidates.values if type(candidates) is LazySequence else candidates
    return values if isinstance(values, Candidates) else Candidates(lambda: values)


class RankedList(LazySequence[tuple[int, float]]):
    """The ranked facts of a retriever, built from passage scores on first access.

    Each fact appears once, at the rank of its best passage; emptiness is known without loading.
    """

    def __init__(self, nonempty: bool, passages: Callable[[], Iterable[tuple[int, float]]]) -> None:
        self._nonempty, self._passages = nonempty, passages

    @cached_property
    def values(self) -> Sequence[tuple[int, float]]:
        """Return pairs of fact position and score."""
        best: dict[int, float] = {}
        for seq, score in self._passages():
            best.setdefault(seq, score)
        return list(best.items())

    def __bool__(self) -> bool:
        return self._nonempty


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The ranked list of each retriever and the candidates of both.

    A list holds pairs of ledger position and score. Candidates of a fact are ordered by slot.
    `named_speakers` are the speakers the query names; `total_weight` is the sum of the query's term
    weights; `centroid_length` is the length of the scope's mean vector; `passage_count` is the
    number of visible passages; `has_links` tells whether the account has any links.
    """

    by_vector: Sequence[tuple[int, float]] = ()
    by_terms: Sequence[tuple[int, float]] = ()
    candidates: Sequence[Candidate] = ()
    named_speakers: tuple[str, ...] = ()
    total_weight: float = 0.0
    centroid_length: float = 0.0
    passage_count: int = 0
    has_links: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A fact with its score, the parts of the score and the matching passage.

    `also` are the memories it represents besides itself, `conflicts` those that contradict it;
    `superseded` is the memory that replaced it, if any.
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
    """One stage of a read: counts in and out, and duration."""

    stage: str
    kept: int
    dropped: int = 0
    micros: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class TracedCandidate:
    """A fact a read considered, and the stage that kept or dropped it."""

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
        """Return the candidate as JSON."""
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
    """The explanation of a read's result."""

    query: str
    as_of: AsOf
    steps: tuple[TraceStep, ...] = ()
    candidates: tuple[TracedCandidate, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the trace as JSON; the shape is stable."""
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
    """The result of a context read: text within its budget, its hits and its trace."""

    text: str
    tokens: int
    budget: int
    hits: tuple[Hit, ...]
    trace: Trace
    warnings: tuple[str, ...] = ()
    messages: tuple[Mapping[str, str], ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Event:
    """The effect of a write on one memory."""

    event: str
    id: str
    text: str | None = None
    previous: str | None = None
    role: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a write: events, skipped inputs with reasons, and its transaction.

    `extraction` is the state of model extraction (pending, failed or done); `usage` is its cost.
    """

    events: tuple[Event, ...] = ()
    skipped: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    tx: int | None = None
    extraction: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof of an erasure: what was destroyed, and the tombstone entry."""

    seq: int
    at: int
    hash: str
    entries: int
    memories: tuple[str, ...]
    evidence: int
    destroyed: Mapping[str, int]
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON."""
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
    """The result of verifying a ledger's hash chain."""

    ok: bool
    entries: int
    erased: int
    head: str
    seq: int | None = None
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON."""
        body: dict[str, Any] = {
            "ok": self.ok,
            "entries": self.entries,
            "erased": self.erased,
            "head": self.head,
        }
        return body if self.ok else {**body, "first_bad_seq": self.seq, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class AccessCount:
    """The number of recalls of a memory and the time of the last one."""

    count: int
    last: int

    def __add__(self, other: AccessCount) -> AccessCount:
        return AccessCount(self.count + other.count, max(self.last, other.last))


ACCESS_STRENGTH_GAIN = 0.1
"""The strength gained by each recall, up to 1."""


class ReviewReason(StrEnum):
    """The reason a memory is queued for reconsolidation."""

    RECALL = "recall"
    CONTRADICTION = "contradiction"
    POLICY_CHANGE = "policy_change"
    SCHEDULED_REVIEW = "scheduled_review"
    EXPLICIT = "explicit"


class AccessOutcome(StrEnum):
    """The outcome of a read for one memory."""

    RETRIEVED = "retrieved"
    SURFACED = "surfaced"
    CITED = "cited"
    IGNORED = "ignored"
    CORRECTED = "corrected"


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """One memory in one read: rank, score and the hash of the query."""

    thread: str
    at: int
    rank: int = 0
    score: float = 0.0
    query: str = ""
    access: AccessOutcome = AccessOutcome.RETRIEVED


@dataclass(frozen=True, slots=True)
class AccessState:
    """The recall strength of a memory between two instants."""

    thread: str
    since: int
    until: int
    count: int
    strength: float

    @classmethod
    def from_first_access(cls, thread: str, at: int) -> AccessState:
        """Return the state after a first recall."""
        return cls(thread, at, NEVER, 1, ACCESS_STRENGTH_GAIN)

    def next_state(self, at: int) -> AccessState:
        """Return the state after one more recall; late reports do not move it back."""
        strength = (
            1.0
            if self.strength == 1.0
            else min(1.0, round(self.strength + ACCESS_STRENGTH_GAIN, 9))
        )
        return AccessState(self.thread, max(at, self.since), NEVER, self.count + 1, strength)


@dataclass(frozen=True, slots=True)
class ReviewTask:
    """A reconsolidation task and its lease; `id` 0 is not queued yet."""

    thread: str
    reason: ReviewReason
    priority: float = 0.0
    due: int = 0
    id: int = 0
    claimed: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class AccessBatch:
    """The access log entries of several reads of an account, written together."""

    counts: Mapping[str, AccessCount] = field(default_factory=dict)
    cooccurrences: Mapping[tuple[str, str], AccessCount] = field(default_factory=dict)
    records: Sequence[AccessRecord] = ()
    keep_per_thread: int = 0
    tasks: Sequence[ReviewTask] = ()
    window: int = 0


def urgency_key(task: ReviewTask) -> tuple[float, int, int]:
    """Return the sort key of tasks: most urgent, then longest due, then oldest."""
    return -task.priority, task.due, task.id


def order_pair(first: str, second: str) -> tuple[str, str]:
    """Return two topics as an ordered pair."""
    return (first, second) if first < second else (second, first)
