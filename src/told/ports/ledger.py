"""The ledger port: append entries, fold them into views, destroy content, read entries back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from told.errors import InvalidInput
from told.model.entry import Blob, Draft, Entry
from told.model.fact import EvidenceRow, Fact, Link, Passage, Tick
from told.model.scope import Scope

# Row operations


@dataclass(frozen=True, slots=True)
class CloseThread:
    """Retract a thread: none of its versions is current from this entry on."""

    thread: str
    seq: int


@dataclass(frozen=True, slots=True)
class EndVersion:
    """End a thread's latest version although its successor can no longer be read."""

    thread: str
    seq: int


RowOp: TypeAlias = Fact | EndVersion | CloseThread | Link | EvidenceRow | Passage | Tick
"""A change to a view: a new row or the end of one.

A `Fact` is a new version of its thread and ends the version before it. A `Passage` is indexed
text of the fact with the same `seq`.
"""

ViewRow: TypeAlias = Fact | Link | EvidenceRow | Passage | Tick
"""A row of a view."""

Fold: TypeAlias = Callable[[Sequence[Entry]], Iterable[RowOp]]
View: TypeAlias = Literal["evidence", "facts", "links", "passages", "ticks"]
VIEWS: tuple[View, ...] = ("evidence", "facts", "links", "passages", "ticks")

# Guards


@dataclass(frozen=True, slots=True)
class ThreadAt:
    """Require that the thread's latest version is still at this position (None: no version)."""

    thread: str
    seq: int | None


@dataclass(frozen=True, slots=True)
class NoFact:
    """Require that no current fact of exactly this scope has one of these texts."""

    scope: Scope
    md5s: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoEvidence:
    """Require that exactly this scope has none of this evidence yet."""

    scope: Scope
    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class UnchangedSlot:
    """Require that no current fact of a subject under these predicates is newer than a position."""

    scope: Scope
    subject: str
    predicates: tuple[str, ...]
    seq: int


@dataclass(frozen=True, slots=True)
class KindNotGrown:
    """Require that no current fact of a kind is newer than a position.

    The kind `memory` is not indexed: a guard on it always holds.
    """

    scope: Scope
    kind: str
    seq: int


@dataclass(frozen=True, slots=True)
class ThreadUntouched:
    """Require that no entry after a position names the thread: no version, retraction or link."""

    thread: str
    seq: int


@dataclass(frozen=True, slots=True)
class EntryIntact:
    """Require that the entry at this position has not been erased."""

    seq: int


Guard: TypeAlias = (
    ThreadAt | NoFact | NoEvidence | UnchangedSlot | KindNotGrown | ThreadUntouched | EntryIntact
)

# Batches


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """An idempotency key, its request digest, its outcome without content and its last position.

    A request that committed nothing has position 0; its record is deleted by the next erasure,
    because nothing tells whose it was. The outcome is opaque JSON except for a list `events`
    whose items hold a thread id in second place.
    """

    key: str
    digest: bytes
    outcome: str
    seq: int = 0

    def thread_ids(self) -> frozenset[str] | None:
        """Return the threads the outcome names, or None if it cannot be parsed."""
        try:
            return frozenset(str(event[1]) for event in json.loads(self.outcome)["events"])
        except (ValueError, TypeError, LookupError):
            return None


@dataclass(frozen=True, slots=True)
class CursorStep:
    """A move of a consumer's cursor; the commit fails if the cursor is not at `before`."""

    consumer: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything one commit writes, all or nothing.

    `read_seq` is the position the writer read at: if it is still the head, every guard holds.
    `vectors` maps the hash of a passage's text to its vector under `model`; a store bound to
    another model ignores them. `blobs` are the blobs that the drafted evidence names. `notes`
    are notes of the step's consumer; None deletes a key.
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
            raise InvalidInput("A batch with notes needs the cursor step of their consumer.")


@dataclass(frozen=True, slots=True)
class Head:
    """The position, instant and hash of a ledger entry; position 0 is an empty ledger."""

    seq: int
    at: int
    hash: bytes


class Ledger(Protocol):
    """An append-only, hash-chained ledger per account, with views folded from it."""

    def commit(self, batch: Batch, fold: Fold) -> Sequence[Entry]:
        """Seal the drafts, fold them into the views and make both durable.

        Raise `Conflict` and write nothing if a guard, the cursor step or the idempotency key of
        the batch no longer holds.
        """

    def import_entries(self, account: str, entries: Sequence[Entry], fold: Fold) -> int:
        """Append sealed entries that continue the account's chain; return how many were new.

        Entries that are already there are skipped. A tombstone among them erases its targets,
        and an entry erased anywhere in this store is appended without its content.
        """

    def erase(
        self, account: str, seqs: Sequence[int], draft: Draft
    ) -> tuple[Entry, Mapping[str, int]]:
        """Destroy the content of these entries and everything derived from it.

        Return the tombstone sealed from `draft` and the number of rows destroyed of each sort.
        """

    def reset(self, account: str, draft: Draft) -> Entry:
        """Destroy an account's ledger and views and begin a new chain with this draft."""

    def rebuild(self, account: str, views: Sequence[View], fold: Fold) -> Mapping[str, int]:
        """Drop these views and fold them again from the ledger; return their row counts."""

    def list_accounts(self) -> Mapping[str, Sequence[View]]:
        """Return every account that has a ledger, with the views it needs to have rebuilt.

        A view is stale if the account was written by a version that did not have it.
        """

    def get_head(self, account: str, at: int | None = None) -> Head:
        """Return the last entry of the ledger, or the last one written at or before an instant."""

    def scan_entries(
        self, account: str, after: int = 0, limit: int | None = None, *, thread: str | None = None
    ) -> Sequence[Entry]:
        """Return the entries after a position in order, of one thread or of all."""

    def tombstoned_digests(self, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Return those of these digests that belong to content erased in any account.

        Digests are salted, so each belongs to one entry.
        """

    def rows_between(self, account: str, after: int, upto: int) -> Sequence[ViewRow]:
        """Return all view rows of the entries after one position and up to another.

        Each view's rows are in ledger order. A passage comes without its `thread`, and with
        `after` only if the turn before it still exists.
        """
