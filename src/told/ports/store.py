"""The ports to storage: the ledger, its views and the index over them, and the row operations views speak in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from told.errors import InvalidInput
from told.ids import IdGenerator
from told.model.entry import Blob, BlobStore, Draft, Entry
from told.model.fact import NEVER, EvidenceRow, Fact, Link, Passage, Tick
from told.model.query import (
    AccessBatch,
    AccessCount,
    AccessRecord,
    AccessState,
    AsOf,
    FactQuery,
    IndexQuery,
    IndexResult,
    ReviewTask,
)
from told.model.scope import Scope


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


class StoredTurn(NamedTuple):
    """What somebody said, as it is held now, and the ledger position it was said at, wherever its version stands."""

    said_seq: int
    fact: Fact


class ScopeTally(NamedTuple):
    """How many memories exactly one scope holds, and when what is left of it was first and last written."""

    scope: Scope
    memories: int
    first: int
    last: int


class TurnStore(Protocol):
    """What a scope said, found without reading everything."""

    def list_scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something was written to and not destroyed, in a stable order."""

    def scope_tallies(self, account: str) -> Sequence[ScopeTally]:
        """How much is in each of these scopes; what only stands behind memories counts as none, expired ones do."""

    def list_turns(
        self,
        scope: Scope,
        after: int = 0,
        before: int = NEVER,
        limit: int = 1000,
        *,
        newest: bool = False,
    ) -> Sequence[StoredTurn]:
        """What exactly this scope holds of what users and assistants said, between two positions, as it was said.

        The first `limit` of them, or the newest. A turn stands for all that was taken from its words: of everything
        in the scope that has the same evidence only the thread that was there first is a turn. A version that corrects
        one stands in its place; what is said anew, or held again as it was said, stands where that happened.
        """


# Row operations: what views say and stores do ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CloseThread:
    """The thread is retracted: no version of it is held from this entry on."""

    thread: str
    seq: int


@dataclass(frozen=True, slots=True)
class EndVersion:
    """The thread's latest version stops being the latest, though what followed it can no longer be read."""

    thread: str
    seq: int


RowOp: TypeAlias = Fact | EndVersion | CloseThread | Link | EvidenceRow | Passage | Tick
"""A new row, or what ends one: a fact is a new version of its thread, and the version before it ends; a passage is new
text for the index, belonging to the fact of the same entry.
"""

ViewRow: TypeAlias = Fact | Link | EvidenceRow | Passage | Tick
"""A row of a view."""

Fold: TypeAlias = Callable[[Sequence[Entry]], Iterable[RowOp]]
View: TypeAlias = Literal["evidence", "facts", "links", "passages", "ticks"]
VIEWS: tuple[View, ...] = ("evidence", "facts", "links", "passages", "ticks")

# Guards: what must still hold when a batch commits -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThreadAt:
    """The latest version of the thread is still the one the writer saw (None: there is none)."""

    thread: str
    seq: int | None


@dataclass(frozen=True, slots=True)
class NoFact:
    """No held fact in exactly this scope has any of these texts."""

    scope: Scope
    md5s: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoEvidence:
    """None of this evidence is in exactly this scope yet."""

    scope: Scope
    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class UnchangedSlot:
    """Nothing that exactly this scope holds of a subject under any of some predicates is newer than a position."""

    scope: Scope
    subject: str
    predicates: tuple[str, ...]
    seq: int


@dataclass(frozen=True, slots=True)
class KindNotGrown:
    """Nothing that exactly this scope holds of a kind is newer than a position; of `memory` nothing is known."""

    scope: Scope
    kind: str
    seq: int


@dataclass(frozen=True, slots=True)
class ThreadUntouched:
    """Nothing was said of the thread since a position: no version, no retraction, and no link to it."""

    thread: str
    seq: int


@dataclass(frozen=True, slots=True)
class EntryIntact:
    """The entry at this position has not been erased."""

    seq: int


Guard: TypeAlias = (
    ThreadAt | NoFact | NoEvidence | UnchangedSlot | KindNotGrown | ThreadUntouched | EntryIntact
)


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """An idempotency key, the digest of its request, its outcome without content, and the last position it committed.

    One that committed nothing has no position, and goes with whatever is erased next: nobody could tell whose it was.

    The outcome is opaque to a store but for this: it spells out the id of every thread it speaks of, in a list of
    `events` that each begin with what became of a thread, and which.
    """

    key: str
    digest: bytes
    outcome: str
    seq: int = 0

    def thread_ids(self) -> frozenset[str] | None:
        """The threads the outcome speaks of; None if it cannot be read."""
        try:
            return frozenset(str(event[1]) for event in json.loads(self.outcome)["events"])
        except (ValueError, TypeError, LookupError):
            return None


@dataclass(frozen=True, slots=True)
class CursorStep:
    """A consumer's cursor, moved by the commit that holds what the consumer made of the entries in between."""

    consumer: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Drafts that commit together or not at all, and with them the step of the consumer that drafted them.

    `seen` is the ledger position the writer read at: when it is still the head, every guard holds by construction.
    `vectors` maps the hash of a passage's text to its vector under `model`; a store that has moved on to another model
    leaves them aside, and the passages wait for theirs. `blobs` are what the evidence among the drafts names. `notes`
    is what the step's consumer notes for itself with it; None forgets a key.
    """

    account: str
    drafts: Sequence[Draft]
    guards: Sequence[Guard] = ()
    read_seq: int = -1
    idempotency: IdempotencyRecord | None = None
    vectors: Mapping[bytes, Sequence[float]] = field(default_factory=dict)
    model: str | None = None
    step: CursorStep | None = None
    blobs: Sequence[Blob] = ()
    notes: Mapping[str, bytes | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.notes and self.step is None:
            raise InvalidInput(
                "Notes commit with the step of their consumer, and this batch has none."
            )


@dataclass(frozen=True, slots=True)
class Head:
    """The end of an account's ledger."""

    seq: int
    at: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class ExistingState:
    """What a writer needs to know before it decides: the head it read at and what is already there.

    `last` is the turn last written where the scope is at home, if it is of exactly this scope, held and unchanged.
    What is there may be newer than the head: a guard that the writer drew from it is then looked at by the commit.
    The model is the one the store is indexed with; it may be left out for an account that was never written to.
    """

    read_seq: int
    facts: Mapping[str, Fact]
    evidence: Mapping[bytes, str]
    idempotency: IdempotencyRecord | None = None
    last_turn: Fact | None = None
    vectors: frozenset[bytes] = frozenset()
    model: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something a consumer could not do, kept until it is retried or dropped; `raw` is what a model answered to it."""

    id: int
    account: str
    consumer: str
    seq: int
    error: str
    at: int
    attempts: int
    raw: str = ""


# Storage ------------------------------------------------------------------------------------------------------------


class Index(Protocol):
    """Finds facts by terms and vectors inside a scope; `told.model.scoring` defines each score, to the last bit."""

    def search(self, index_query: IndexQuery) -> IndexResult:
        """The best of each retriever, at most `depth`; equal scores go to the newer; the find's limit plays no part.

        The statistics are those of all memories the find can see, whatever its filter; kinds that are `UNLISTED` are
        none.
        Every passage offered by either is among the marks, with the two turns around it that were said after one
        another, and what the probe asks for besides. A vector of another model than the store's is a `ModelMismatch`.
        """


class Store(BlobStore, Overlay, TurnStore, Protocol):
    """The ledger and its views in one transactional place."""

    mint: IdGenerator
    index: Index

    # write
    def commit(self, batch: Batch, fold: Fold) -> Sequence[Entry]:
        """Seal the drafts, fold them into the views and make both durable, or raise `Conflict` and do nothing."""

    def import_entries(self, account: str, entries: Sequence[Entry], fold: Fold) -> int:
        """Append entries sealed elsewhere that continue this account's chain; return how many were new."""

    def erase(
        self, account: str, seqs: Sequence[int], draft: Draft
    ) -> tuple[Entry, Mapping[str, int]]:
        """Destroy the content of these entries and all that was derived from it; return the tombstone and counts."""

    def scrub(self) -> Sequence[str]:
        """Leave no trace of destroyed content in free space or logs; what could not be done yet is a warning."""

    def reset(self, account: str, draft: Draft) -> Entry:
        """Destroy an account's ledger and views and begin a new chain with this draft."""

    def rebuild(self, account: str, views: Sequence[View], fold: Fold) -> Mapping[str, int]:
        """Drop these views and fold them again from the ledger; return the rows of each."""

    def stale_views(self, account: str) -> Sequence[View]:
        """The views an older store knew nothing of, so that this ledger was never folded into them; rebuild them."""

    # read the ledger
    def list_accounts(self) -> Sequence[str]:
        """Every account that has a ledger."""

    def get_head(self, account: str) -> Head:
        """The end of the account's ledger; position 0 when it is empty."""

    def position_at(self, account: str, at: int) -> int:
        """The last ledger position written at or before this instant."""

    def scan_entries(self, account: str, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        """Entries in order, from just after a position."""

    def thread_entries(self, account: str, thread: str) -> Sequence[Entry]:
        """The entries of one thread, in order."""

    def tombstoned_digests(self, account: str, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Which of these digests belong to erased content."""

    # read the views
    def lookup_existing(
        self,
        scope: Scope,
        md5s: Sequence[str],
        digests: Sequence[bytes],
        key: str | None,
        text_hashes: Sequence[bytes] = (),
        *,
        include_last_turn: bool = False,
    ) -> ExistingState:
        """What exactly this scope already holds of these texts and evidence, which hashes have a vector, its last turn.

        The last turn only if it is asked for.
        """

    def current_facts(
        self,
        scope: Scope,
        now: int,
        *,
        slots: Sequence[tuple[str, str]] = (),
        kinds: Sequence[str] = (),
    ) -> Sequence[Fact]:
        """What exactly this scope holds, unexpired, of these pairs of subject and predicate or of these kinds.

        In ledger order, each fact once. The kind `memory` is never listed: it says nothing of what it holds.
        """

    def passage_texts(self, account: str, seqs: Sequence[int]) -> Mapping[bytes, str]:
        """What is embedded of the passages of these entries, by hash."""

    def find_facts(self, query: FactQuery) -> Sequence[Fact]:
        """The facts a scope held at a point in time, oldest first."""

    def get_fact(self, account: str, thread: str, as_of: AsOf | None = None) -> Fact | None:
        """The version of a thread that was held at a point on both axes (the latest, when None), expired or not."""

    def facts_by_seq(self, account: str, seqs: Sequence[int]) -> Mapping[int, Fact]:
        """The fact versions asserted by these entries."""

    def all_versions(self, scope: Scope) -> Sequence[Fact]:
        """Every version of every fact the scope covers, in ledger order."""

    def thread_versions(self, account: str, threads: Sequence[str]) -> Sequence[Fact]:
        """Every version of these threads, in ledger order."""

    def find_links(
        self, account: str, nodes: Sequence[str], seq: int | None = None
    ) -> Sequence[Link]:
        """The links that touch any of these nodes at a position."""

    def threads_from_evidence(self, account: str, evidence: Sequence[str]) -> Sequence[str]:
        """The threads that have a version taken from any of this evidence, in ledger order."""

    def facts_from_evidence(self, account: str, evidence: Sequence[str]) -> Sequence[Fact]:
        """Every version of every thread that has a version taken from any of this evidence, in ledger order."""

    def evidence_rows(
        self,
        account: str,
        *,
        scope: Scope | None = None,
        source: str | None = None,
        ids: Sequence[str] = (),
    ) -> Sequence[EvidenceRow]:
        """Evidence by scope, by source or by id, or by all that are given; by nothing, nothing."""

    def view_rows(self, account: str, view: View) -> Iterator[tuple[Any, ...]]:
        """Every row of a view in a stable order, for comparison."""

    def rows_between(self, account: str, after: int, upto: int) -> Sequence[ViewRow]:
        """The rows every view has of the entries from just after a position up to another, each view's in their order.

        A passage has no `thread`, and is `after` the turn that it stands after here, if there still is one.
        """

    # vectors
    def current_model(self) -> tuple[str, int] | None:
        """The embedder this store is indexed with, and its dimension."""

    def bind_model(self, name: str, dim: int) -> None:
        """Bind the store to an embedder, or raise `ModelMismatch`."""

    def embedded_hashes(self, hashes: Sequence[bytes]) -> frozenset[bytes]:
        """Which of these texts have a vector under the current model."""

    def pending_texts(self, limit: int = 1000, model: str | None = None) -> Mapping[bytes, str]:
        """Texts of passages that have no vector under a model, by hash."""

    def put_vectors(
        self, vectors: Mapping[bytes, Sequence[float]], model: str | None = None
    ) -> None:
        """Remember vectors by text hash, and index the passages that waited for them."""

    def switch_model(self, name: str, dim: int) -> None:
        """Make a model the one that is searched, or raise `Conflict` while passages lack a vector under it."""

    # consumers
    def get_cursor(self, account: str, consumer: str) -> int:
        """How far a consumer has come."""

    def advance_cursor(self, account: str, consumer: str, seq: int) -> None:
        """Move a consumer's cursor."""

    def record_fault(
        self, account: str, consumer: str, seq: int, error: str, raw: str = ""
    ) -> None:
        """Keep what a consumer could not do."""

    def clear_faults(self, account: str, fault_ids: Sequence[int]) -> int:
        """Forget faults that were mended or given up; how many there were."""

    def list_faults(self, account: str) -> Sequence[Fault]:
        """What consumers could not do."""

    # recalls: an overlay that no view, export or proof knows of
    def access_counts(self, account: str, threads: Sequence[str]) -> Mapping[str, AccessCount]:
        """How often each of these threads was recalled; those that never were are left out."""

    # care
    def check_integrity(self) -> Sequence[str]:
        """Problems of the file and of the derived index, none when all is well."""

    def find_type_errors(self) -> Sequence[str]:
        """Which rows hold what cannot be there, so that whoever reads them stumbles; found without a full check."""

    def get_stats(self, account: str) -> Mapping[str, Any]:
        """Counts and sizes."""

    def backup(self, target: Path) -> None:
        """Write a consistent copy while others go on."""

    def close(self) -> None:
        """Release everything; closing twice is fine."""
