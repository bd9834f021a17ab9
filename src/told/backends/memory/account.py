"""One account of the ram store: its ledger and views as plain lists and dicts, and what each operation does to them.

Every value in here is frozen, so a shallow copy is a transaction: change the copy, then put it in the account's place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, TypeVar, assert_never

from told.errors import (
    Conflict,
    Diverged,
    InvalidInput,
    ModelMismatch,
    NotFoundError,
    ScopeError,
    StoreCorrupt,
)
from told.ids import IdGenerator, canonical_json, hash_content, hash_text, sha256
from told.model.entry import (
    GENESIS,
    Blob,
    Draft,
    Entry,
    Erased,
    decode_envelope,
    is_next_in_chain,
    seal_entry,
    verb_thread,
)
from told.model.fact import (
    NEVER,
    NODE,
    UNINDEXED_KINDS,
    UNLISTED_KINDS,
    EvidenceRow,
    Fact,
    Link,
    Passage,
    Tick,
    join_with_previous,
)
from told.model.query import (
    AccessCount,
    AccessRecord,
    AccessState,
    ReviewTask,
    order_pair,
    urgency_key,
)
from told.model.scope import Scope
from told.model.scoring import quantise
from told.ports import (
    VIEWS,
    Batch,
    CloseThread,
    EndVersion,
    EntryIntact,
    Fault,
    Fold,
    Guard,
    Head,
    IdempotencyRecord,
    KindNotGrown,
    NoEvidence,
    NoFact,
    RowOp,
    ThreadAt,
    ThreadUntouched,
    UnchangedSlot,
    View,
    ViewRow,
)

T = TypeVar("T")


@dataclass(slots=True)
class InMemoryOverlayState:
    """Topics that met, recalls and what they made of each thread, open tasks, and the notes of consumers."""

    cooccurrences: dict[tuple[str, str], AccessCount] = field(default_factory=dict)
    accesses: dict[str, tuple[AccessRecord, ...]] = field(default_factory=dict)
    states: dict[str, tuple[AccessState, ...]] = field(default_factory=dict)
    tasks: dict[int, ReviewTask] = field(default_factory=dict)
    notes: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def copy(self) -> InMemoryOverlayState:
        """The same, free to be changed."""
        return InMemoryOverlayState(*(getattr(self, part.name).copy() for part in fields(self)))

    def record_cooccurrence(
        self, pairs: Mapping[tuple[str, str], AccessCount], known_threads: Collection[str]
    ) -> None:
        """Add to the counts of the pairs whose ends are both known."""
        for (first, second), count in pairs.items():
            if first != second and first in known_threads and second in known_threads:
                pair = order_pair(first, second)
                self.cooccurrences[pair] = (
                    count + self.cooccurrences[pair] if pair in self.cooccurrences else count
                )

    def record_accesses(
        self, accesses: Sequence[AccessRecord], keep: int, known_threads: Collection[str]
    ) -> None:
        """Note recalls of known threads, and what each made of its thread."""
        for access in accesses:
            thread = access.thread
            if thread in known_threads:
                history = sorted((*self.accesses.get(thread, ()), access), key=lambda past: past.at)
                self.accesses[thread] = _keep_newest(history, keep)
                self.states[thread] = _keep_newest(
                    _append_state(self.states.get(thread, ()), access), keep
                )

    def enqueue_tasks(
        self,
        tasks: Sequence[ReviewTask],
        window: int,
        known_threads: Collection[str],
        ids: Iterator[int],
    ) -> int:
        """Queue tasks of known threads, each new one under the next id; how many were new."""
        count_before = len(self.tasks)
        for task in tasks:
            if task.thread in known_threads:
                merged = self._find_mergeable_task(task, window) or replace(
                    task, id=next(ids), claimed=0, attempts=0
                )
                priority, due = max(merged.priority, task.priority), min(merged.due, task.due)
                self.tasks[merged.id] = replace(merged, priority=priority, due=due)
        return len(self.tasks) - count_before

    def _find_mergeable_task(self, task: ReviewTask, window: int) -> ReviewTask | None:
        """The first open task that a new one is one with: of one that is being worked on, only within the window."""
        candidates = [
            t for t in self.tasks.values() if (t.thread, t.reason) == (task.thread, task.reason)
        ]
        mergeable = [
            t
            for t in candidates
            if t.due <= task.due + window and (not t.claimed or t.due >= task.due - window)
        ]
        return min(mergeable, key=lambda t: (t.due, t.id), default=None)

    def claim_tasks(self, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Take what is due and free."""
        available = [
            t
            for t in self.tasks.values()
            if t.due <= now and (t.claimed == 0 or t.claimed < now - lease)
        ]
        claimed = [
            replace(t, claimed=now, attempts=t.attempts + 1)
            for t in sorted(available, key=urgency_key)[: max(limit, 0)]
        ]
        self.tasks.update((task.id, task) for task in claimed)
        return claimed

    def write_notes(self, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Note some things and forget others."""
        for key, value in notes.items():
            if value is None:
                self.notes.pop((consumer, key), None)
            else:
                self.notes[consumer, key] = bytes(value)

    def drop_threads(self, threads: Collection[str]) -> None:
        """Leave nothing that belongs to any of these threads."""
        self.cooccurrences = {
            pair: count
            for pair, count in self.cooccurrences.items()
            if not set(pair) & set(threads)
        }
        self.accesses = {
            thread: history for thread, history in self.accesses.items() if thread not in threads
        }
        self.states = {
            thread: history for thread, history in self.states.items() if thread not in threads
        }
        self.tasks = {id_: task for id_, task in self.tasks.items() if task.thread not in threads}
        self.notes = {name: value for name, value in self.notes.items() if name[1] not in threads}


def _append_state(states: Sequence[AccessState], access: AccessRecord) -> Sequence[AccessState]:
    """The states of a thread after one more recall: the open one is closed where the new one begins."""
    if not states:
        return (AccessState.from_first_access(access.thread, access.at),)
    opened = states[-1].next_state(access.at)
    return (*states[:-1], replace(states[-1], until=opened.since), opened)


def _keep_newest(values: Sequence[T], keep: int) -> tuple[T, ...]:
    return tuple(values[-keep:]) if keep > 0 else ()


NO_HEAD = Head(0, 0, GENESIS)
ENTRY_SORTS: Mapping[type[ViewRow], str] = {
    Fact: "asserted", Passage: "asserted", Link: "linked", EvidenceRow: "observed", Tick: "observed",
}  # fmt: skip
"""The sort of entry each sort of row is of."""


@dataclass(slots=True)
class InMemoryAccount:
    """A ledger, what is folded from it, and what its consumers and writers left here."""

    name: str
    entries: list[Entry] = field(default_factory=list)
    facts: dict[int, Fact] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    evidence: dict[int, EvidenceRow] = field(default_factory=dict)
    passages: dict[tuple[int, int], Passage] = field(default_factory=dict)
    ticks: dict[int, Tick] = field(default_factory=dict)
    tickets: dict[str, IdempotencyRecord] = field(default_factory=dict)
    tombstones: set[bytes] = field(default_factory=set)
    cursors: dict[str, int] = field(default_factory=dict)
    faults: dict[tuple[str, int], Fault] = field(default_factory=dict)
    access_counts: dict[str, AccessCount] = field(default_factory=dict)
    blobs: dict[str, Blob] = field(default_factory=dict)
    overlay: InMemoryOverlayState = field(default_factory=InMemoryOverlayState)

    def copy(self) -> InMemoryAccount:
        """The same account, free to be changed."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return InMemoryAccount(
            **{name: value if name == "name" else value.copy() for name, value in values.items()}
        )

    # The ledger

    @property
    def head(self) -> Head:
        """The end of the ledger."""
        if not self.entries:
            return NO_HEAD
        last = self.entries[-1]
        return Head(last.seq, last.at, last.hash)

    def append_drafts(self, drafts: Sequence[Draft], mint: IdGenerator) -> Sequence[Entry]:
        """Seal drafts as one transaction: one instant for all, later than any before, whatever the clock says."""
        at, tx = max(mint.now(), self.head.at + 1), self.head.seq + 1
        for seq, draft in enumerate(drafts, tx):
            if draft.scope is not None and draft.scope.account != self.name:
                raise ScopeError(
                    f"The draft belongs to the account {draft.scope.account!r}, not to {self.name!r}."
                )
            sealed = seal_entry(
                draft, prev=self.head.hash, seq=seq, tx=tx, at=at, salt=mint.new_salt()
            )
            self.entries.append(self.decode_entry(sealed))
        return self.entries[tx - 1 :]

    def decode_entry(self, entry: Entry) -> Entry:
        """The entry with its content as the envelope tells it, which is all that a store on disk would know."""
        if entry.envelope is None:
            return _strip_content(entry)
        draft = decode_envelope(entry.sort, self.name, entry.envelope)
        if verb_thread(draft.verb) != entry.thread:
            raise StoreCorrupt(
                f"Entry {entry.seq} is not of the thread it names.", hint="", seq=entry.seq
            )
        return replace(entry, draft=draft)

    def decode_entries(self, entries: Iterable[Entry]) -> list[Entry]:
        """Entries to hand out, read anew from their envelopes, so that nobody holds what the ledger holds."""
        return [self.decode_entry(entry) for entry in entries]

    def import_entries(self, entries: Sequence[Entry], erased_digests: set[bytes]) -> None:
        """Append what continues the chain and skip what is already here; what is buried comes without its content.

        What comes empty is a hole until a tombstone of the chain names it, on this page or a later one.
        """
        for entry in entries:
            if 0 < entry.seq <= self.head.seq:
                if self.entries[entry.seq - 1].hash != entry.hash:
                    raise Diverged(
                        f"Entry {entry.seq} is not the one in this ledger.", seq=entry.seq
                    )
            elif problem := find_chain_error(entry, self.head):
                raise StoreCorrupt(
                    f"Entry {entry.seq} cannot be adopted: {problem}.", hint="", seq=entry.seq
                )
            else:
                self.entries.append(
                    self.decode_entry(
                        _strip_content(entry) if entry.digest in erased_digests else entry
                    )
                )

    # The views

    def fold_entries(
        self, entries: Iterable[Entry], fold: Fold, views: Sequence[View] = VIEWS
    ) -> None:
        """Fold entries into some of the views."""
        for entry in entries:
            for op in fold([entry]):
                if get_view(op) in views:
                    self.apply_row_op(op)

    def apply_row_op(self, op: RowOp) -> None:
        """Do one row operation."""
        match op:
            case Fact():
                self._end_latest_version(op.id, op.seq)
                self.facts[op.seq] = op
            case EndVersion(thread=thread, seq=seq):
                self._end_latest_version(thread, seq)
            case CloseThread(thread=thread, seq=seq):
                self._retract_thread(thread, seq)
            case Link():
                self.links.append(op)
            case EvidenceRow():
                self.evidence[op.seq] = op
            case Passage():
                fact = self.facts.get(op.seq)
                until = op.until if fact is None else fact.until
                self.passages[op.seq, op.slot] = replace(op, until=until)
            case Tick():
                self.ticks[op.seq] = op
            case _:
                assert_never(op)

    def _end_latest_version(self, thread: str, seq: int) -> None:
        """The latest version is the latest no more."""
        latest = self.find_latest(thread)
        if latest is not None:
            self.facts[latest.seq] = replace(latest, until=seq)
            for key in [key for key in self.passages if key[0] == latest.seq]:
                self.passages[key] = replace(self.passages[key], until=seq)

    def _retract_thread(self, thread: str, seq: int) -> None:
        """No version of the thread is held any more."""
        self._end_latest_version(thread, seq)
        for fact in self.list_versions(thread):
            if fact.gone == NEVER:
                self.facts[fact.seq] = replace(fact, gone=seq)

    def clear_views(self, views: Sequence[View]) -> None:
        """Throw views away."""
        for view in views:
            getattr(self, view).clear()

    def list_threads(self) -> set[str]:
        """Every thread that has a version here."""
        return {fact.id for fact in self.facts.values()}

    def list_versions(self, thread: str) -> Sequence[Fact]:
        """Every version of a thread, oldest first."""
        return [fact for fact in self.facts.values() if fact.id == thread]

    def find_latest(self, thread: str) -> Fact | None:
        """The version that is held now."""
        return next((fact for fact in self.list_versions(thread) if fact.until == NEVER), None)

    def find_current_by_md5(self, scope: Scope, md5: str) -> Fact | None:
        """The newest held fact of exactly this scope with this text."""
        current = [
            fact
            for fact in self.facts.values()
            if fact.scope == scope and fact.md5 == md5 and fact.until == NEVER
        ]
        return current[-1] if current else None

    def find_current_facts(
        self,
        scope: Scope,
        pairs: Collection[tuple[str | None, str | None]],
        kinds: Collection[str] = (),
    ) -> Sequence[Fact]:
        """The held facts of exactly this scope of some pairs of subject and predicate or of some kinds."""
        current = (
            fact for fact in self.facts.values() if fact.scope == scope and fact.until == NEVER
        )
        return [
            fact
            for fact in current
            if (fact.subject, fact.predicate) in pairs or fact.kind in kinds
        ]

    def find_last_turn(self, scope: Scope) -> Fact | None:
        """The last turn of this scope's home, if it is of exactly this scope, held, and has not been changed."""
        turns = (
            fact
            for fact in reversed(self.facts.values())
            if is_turn(fact) and fact.scope.partition_key() == scope.partition_key()
        )
        last = next(turns, None)
        is_unchanged = (
            last is not None
            and last.scope == scope
            and last.until == NEVER
            and last.created_at == last.updated_at
        )
        return last if is_unchanged else None

    def find_evidence(self, scope: Scope, digest: bytes) -> EvidenceRow | None:
        """The evidence of exactly this scope with this digest."""
        return next(
            (
                row
                for row in reversed(self.evidence.values())
                if row.scope == scope and row.digest == digest
            ),
            None,
        )

    def is_satisfied(self, guard: Guard) -> bool:
        """Whether what a writer relied on is still so."""
        match guard:
            case ThreadAt(thread=thread, seq=seq):
                latest = self.find_latest(thread)
                return seq == (None if latest is None else latest.seq)
            case NoFact(scope=scope, md5s=md5s):
                return all(self.find_current_by_md5(scope, md5) is None for md5 in md5s)
            case NoEvidence(scope=scope, digests=digests):
                return all(self.find_evidence(scope, digest) is None for digest in digests)
            case UnchangedSlot(scope=scope, subject=subject, predicates=predicates, seq=seq):
                current = self.find_current_facts(
                    scope, {(subject, predicate) for predicate in predicates}
                )
                return all(fact.seq <= seq for fact in current)
            case KindNotGrown(scope=scope, kind=kind, seq=seq):
                return all(
                    fact.seq <= seq
                    for fact in self.find_current_facts(scope, (), {kind} - {"memory"})
                )
            case ThreadUntouched(thread=thread, seq=seq):
                return all(entry.thread != thread for entry in self.entries[max(seq, 0) :])
            case EntryIntact(seq=seq):
                return 0 < seq <= len(self.entries) and self.entries[seq - 1].envelope is not None
            case _:
                assert_never(guard)

    # Recalls

    def count_accesses(self, accesses: Mapping[str, AccessCount]) -> None:
        """Count recalls of the threads that have a version here."""
        for thread in self.list_threads() & accesses.keys():
            previous, added = self.access_counts.get(thread), accesses[thread]
            self.access_counts[thread] = added if previous is None else previous + added

    # Forgetting

    def erase_entries(self, seqs: Iterable[int]) -> dict[str, int]:
        """Shred the content of entries and everything that was made of it; say how much of each there was."""
        erased = set(seqs)
        if missing := sorted(erased - {entry.seq for entry in self.entries}):
            raise NotFoundError(
                f"There is no entry {missing[0]} in the account {self.name!r}.", seqs=missing
            )
        counts_before, scopes = self._count_rows(), self.collect_scopes()
        self._drop_erased_tickets(erased)
        threads = {self.facts[seq].id for seq in erased & self.facts.keys()}
        self.access_counts = {
            thread: access_count
            for thread, access_count in self.access_counts.items()
            if thread not in threads
        }
        self.overlay.drop_threads(threads)
        self.links = [link for link in self.links if link.seq not in erased]
        blob_names = {
            name for seq in erased & self.evidence.keys() for name in self.evidence[seq].blobs
        }
        for rows in (self.facts, self.evidence, self.ticks):
            for seq in erased & rows.keys():
                del rows[seq]
        for name in blob_names - {name for row in self.evidence.values() for name in row.blobs}:
            self.blobs.pop(name, None)
        self.passages = {
            key: passage for key, passage in self.passages.items() if key[0] not in erased
        }
        self.faults = {key: fault for key, fault in self.faults.items() if fault.seq not in erased}
        self.tombstones |= {entry.digest for entry in self.entries if entry.seq in erased}
        self.entries = [
            _strip_content(entry) if entry.seq in erased else entry for entry in self.entries
        ]
        empty_suffixes = tuple(f":{scope.digest()}" for scope in scopes - self.collect_scopes())
        self.cursors = {
            name: seq for name, seq in self.cursors.items() if not name.endswith(empty_suffixes)
        }
        counts_after = self._count_rows()
        return {sort: row_count - counts_after[sort] for sort, row_count in counts_before.items()}

    def collect_scopes(self) -> set[Scope]:
        """Every exact scope that something is left of."""
        rows: tuple[Fact | EvidenceRow | Link, ...] = (
            *self.facts.values(),
            *self.evidence.values(),
            *self.links,
        )
        return {row.scope for row in rows}

    def apply_tombstones(self, entries: Sequence[Entry]) -> None:
        """Erase here what an adopted tombstone says was erased where it comes from."""
        for entry in entries:
            if isinstance(entry.verb, Erased):
                self.erase_entries(seq for seq in entry.verb.seqs if 0 < seq < entry.seq)

    def _drop_erased_tickets(self, erased: set[int]) -> None:
        """Forget the outcomes that tell of erased transactions or threads, or of none: those may be anybody's."""
        threads = {fact.id for fact in self.facts.values() if fact.seq in erased}
        self.tickets = {
            key: ticket
            for key, ticket in self.tickets.items()
            if ticket.seq
            and ticket.seq not in erased
            and not any(name in ticket.outcome for name in threads)
        }

    def _count_rows(self) -> dict[str, int]:
        intact = sum(entry.envelope is not None for entry in self.entries)
        return {
            "entries": intact,
            "facts": len(self.facts),
            "links": len(self.links),
            "evidence": len(self.evidence),
            "passages": len(self.passages),
            "tickets": len(self.tickets),
            "faults": len(self.faults),
            "recalls": sum(count.count for count in self.access_counts.values()),
            "blobs": len(self.blobs),
        }

    # Care

    def dump_view(self, view: View) -> Sequence[tuple[Any, ...]]:
        """The rows of a view: their fields in order, in the order of the ledger."""
        rows: Any = getattr(self, view)
        values = rows if isinstance(rows, list) else rows.values()
        return [
            tuple(_to_plain_value(getattr(value, part.name)) for part in fields(value))
            for value in sorted(values, key=_get_seq)
        ]

    def list_rows_between(self, after: int, upto: int) -> list[ViewRow]:
        """The rows the views have of some entries, passages as they stand here."""
        rows = (
            row for row in sorted(self._collect_rows(), key=_get_seq) if after < row.seq <= upto
        )
        return [self._to_stored_passage(row) if isinstance(row, Passage) else row for row in rows]

    def _to_stored_passage(self, passage: Passage) -> Passage:
        return replace(
            passage,
            thread=None,
            after=passage.after if self.find_previous_passage(passage) else None,
        )

    def _collect_rows(self) -> list[ViewRow]:
        views = (self.facts, self.evidence, self.passages, self.ticks)
        return [*self.links, *(row for view in views for row in view.values())]

    def repair(self) -> None:
        """Bury what the ledger says was erased, forget tickets that cannot be, and hold no cursor beyond the end."""
        erased = {
            seq
            for entry in self.entries
            if isinstance(entry.verb, Erased)
            for seq in entry.verb.seqs
        }
        self.tombstones |= {
            entry.digest for entry in self.entries if entry.seq in erased and entry.envelope is None
        }
        self.tickets = {
            key: ticket for key, ticket in self.tickets.items() if self._is_valid_ticket(ticket)
        }
        self.cursors = {name: min(seq, self.head.seq) for name, seq in self.cursors.items()}

    def _is_valid_ticket(self, ticket: IdempotencyRecord) -> bool:
        """Whether everything a ticket tells of is in the ledger, and where it says, at the end of a transaction."""
        threads, upto = ticket.thread_ids(), ticket.seq or self.head.seq
        ends = {
            0,
            self.head.seq,
            *(
                previous.seq
                for previous, following in pairwise(self.entries)
                if previous.tx != following.tx
            ),
        }
        threads_so_far = {entry.thread for entry in self.entries if entry.seq <= upto}
        return threads is not None and threads <= threads_so_far and ticket.seq in ends

    def find_previous_passage(self, passage: Passage) -> Passage | None:
        """The passage of the turn another one was said after, if it is still here."""
        candidates = (other for other in self.passages.values() if other.thread == passage.after)
        return (
            None
            if passage.after is None
            else next(
                (candidate for candidate in candidates if candidate.scope == passage.scope), None
            )
        )

    def build_embedded_text(self, passage: Passage) -> str:
        """What is embedded of a passage."""
        previous = self.find_previous_passage(passage)
        return join_with_previous(None if previous is None else previous.text, passage.text)

    def find_problems(self) -> Sequence[str]:
        """What does not fit together."""
        problems, head = [], NO_HEAD
        for entry in self.entries:
            if problem := find_chain_error(entry, head):
                problems.append(f"{self.name}: entry {entry.seq}: {problem}")
            head = Head(entry.seq, entry.at, entry.hash)
        unindexed = {fact.seq for fact in self.facts.values() if fact.kind in UNINDEXED_KINDS}
        mismatched = sorted(({seq for seq, _ in self.passages} ^ self.facts.keys()) - unindexed)
        problems += [
            f"{self.name}: entry {seq} has a fact or a passage, not both" for seq in mismatched
        ]
        sorts = {entry.seq: entry.sort for entry in self.entries if entry.envelope is not None}
        orphaned = {
            get_view(row)
            for row in self._collect_rows()
            if sorts.get(row.seq) != ENTRY_SORTS[type(row)]
        }
        problems += [
            f"{self.name}: {view} has rows that no entry speaks of" for view in sorted(orphaned)
        ]
        if invalid := sum(not self._is_valid_ticket(ticket) for ticket in self.tickets.values()):
            problems.append(f"{self.name}: {invalid} tickets tell of what is not in the ledger")
        if beyond := sum(seq > self.head.seq for seq in self.cursors.values()):
            problems.append(f"{self.name}: {beyond} cursors are beyond the end of the ledger")
        corrupt = [name for name, blob in self.blobs.items() if hash_content(blob.data) != name]
        return problems + [f"{self.name}: blob {name} is not what was kept" for name in corrupt]

    def compute_stats(self) -> dict[str, int]:
        """How much of each there is."""
        rows: list[Fact | EvidenceRow | Link] = [
            *self.facts.values(),
            *self.evidence.values(),
            *self.links,
        ]
        scopes = {row.scope for row in rows}
        return {
            "entries": len(self.entries),
            "erased": sum(entry.envelope is None for entry in self.entries),
            "memories": sum(
                fact.until == NEVER and fact.kind not in UNLISTED_KINDS
                for fact in self.facts.values()
            ),
            "versions": len(self.facts),
            "evidence": len(self.evidence),
            "links": len(self.links),
            "users": len({scope.user_id for scope in scopes} - {None}),
            "agents": len({scope.agent_id for scope in scopes} - {None}),
            "runs": len({scope.run_id for scope in scopes} - {None}),
            "faults": len(self.faults),
            "recalls": sum(count.count for count in self.access_counts.values()),
            "blobs": len(self.blobs),
            "tasks": len(self.overlay.tasks),
            "bytes": sum(len(entry.envelope or b"") for entry in self.entries)
            + sum(blob.size for blob in self.blobs.values()),
        }


def is_turn(fact: Fact) -> bool:
    """Whether a fact may be what somebody said: no claim, no node, nothing that no index holds."""
    return fact.predicate is None and fact.kind not in UNINDEXED_KINDS and fact.kind != NODE


def find_chain_error(entry: Entry, head: Head) -> str:
    """Why an entry does not continue a chain, or nothing."""
    if entry.seq != head.seq + 1:
        return f"entry {head.seq + 1} is missing before it"
    if not is_next_in_chain(head.hash, entry):
        return "its hash does not follow from the entry before it"
    if entry.envelope is not None and sha256(entry.salt or b"", entry.envelope) != entry.digest:
        return "its content is not what was written"
    return ""


def _strip_content(entry: Entry) -> Entry:
    return replace(entry, salt=None, envelope=None, draft=None)


def get_view(op: RowOp) -> View:
    """The view a row operation belongs to."""
    match op:
        case Fact() | EndVersion() | CloseThread():
            return "facts"
        case Link():
            return "links"
        case EvidenceRow():
            return "evidence"
        case Passage():
            return "passages"
        case Tick():
            return "ticks"
        case _:
            assert_never(op)


def _get_seq(row: ViewRow) -> int:
    return row.seq


def _to_plain_value(value: Any) -> Any:
    """A field as a plain value: a scope as its ids, an object or a list as canonical JSON."""
    if isinstance(value, Scope):
        return (value.user_id, value.agent_id, value.run_id)
    return canonical_json(value).decode() if isinstance(value, dict | tuple) else value


Row = TypeVar("Row", Fact, Link)


def check_guards(account: InMemoryAccount, batch: Batch) -> None:
    """Raise if somebody else wrote what this batch relies on being absent or unchanged."""
    if batch.idempotency is not None and batch.idempotency.key in account.tickets:
        raise Conflict(
            "The idempotency key was handed in meanwhile.",
            hint="Read what is known and decide again.",
        )
    if batch.step is not None and account.cursors.get(batch.step.consumer, 0) != batch.step.before:
        raise Conflict(
            "Another worker of this consumer was quicker.",
            hint="Read its cursor and go on from there.",
        )
    if batch.read_seq == account.head.seq:
        return
    for guard in batch.guards:
        if not account.is_satisfied(guard):
            raise Conflict(guard=type(guard).__name__)


def require_encodable(*texts: str) -> None:
    """Raise unless these are texts that a store on disk could keep."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                "A value holds half of a surrogate pair, which is not text."
            ) from error


def copy_row(row: Row) -> Row:
    """A row whose metadata is the caller's own."""
    return replace(row, meta=deepcopy(row.meta))


def hash_embedded_texts(account: InMemoryAccount) -> set[bytes]:
    """The hashes of everything an account has embedded."""
    return {
        hash_text(account.build_embedded_text(passage)) for passage in account.passages.values()
    }


def quantise_vectors(
    vectors: Mapping[bytes, Sequence[float]], model: tuple[str, int] | None
) -> dict[bytes, bytes]:
    """The vectors as they are kept, once they are known to fit the model."""
    if model is not None:
        for vector in vectors.values():
            require_dimension(vector, *model)
    return {key: quantise(vector) for key, vector in vectors.items()}


def require_dimension(vector: Sequence[float], name: str, dim: int) -> None:
    """Raise unless a vector has the length of its model's."""
    if len(vector) != dim:
        raise ModelMismatch(f"The vector has {len(vector)} dimensions; {name} has {dim}.")
