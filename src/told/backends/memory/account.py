"""One account of the in-memory store: its ledger, views and access data as lists and dicts.

All values are frozen, so a shallow copy is a transaction: change the copy, then store it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, assert_never

from told.errors import Conflict, Diverged, NotFoundError, ScopeError, StoreCorrupt
from told.ids import IdGenerator, hash_content, hash_text, sha256
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
    QUARANTINE,
    UNINDEXED_KINDS,
    UNLISTED_KINDS,
    EvidenceRow,
    Fact,
    Link,
    Passage,
    Tick,
    join_with_previous,
)
from told.model.query import AccessCount, AccessRecord, AccessState, ReviewTask, order_pair
from told.model.scope import Scope
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
    StoredTurn,
    ThreadAt,
    ThreadUntouched,
    UnchangedSlot,
    View,
    ViewRow,
)

VIEW_NAMES: Mapping[type[RowOp], View] = {
    Fact: "facts",
    EndVersion: "facts",
    CloseThread: "facts",
    Link: "links",
    EvidenceRow: "evidence",
    Passage: "passages",
    Tick: "ticks",
}
ENTRY_SORTS: Mapping[View, str] = {
    "facts": "asserted",
    "passages": "asserted",
    "links": "linked",
    "evidence": "observed",
    "ticks": "observed",
}


@dataclass(slots=True)
class InMemoryAccount:
    """A ledger, its views, and the data of its readers and consumers."""

    name: str
    entries: list[Entry] = field(default_factory=list)
    facts: dict[int, Fact] = field(default_factory=dict)
    links: dict[int, Link] = field(default_factory=dict)
    evidence: dict[int, EvidenceRow] = field(default_factory=dict)
    passages: dict[tuple[int, int], Passage] = field(default_factory=dict)
    ticks: dict[int, Tick] = field(default_factory=dict)
    tickets: dict[str, IdempotencyRecord] = field(default_factory=dict)
    tombstones: set[bytes] = field(default_factory=set)
    cursors: dict[str, int] = field(default_factory=dict)
    notes: dict[tuple[str, str], bytes] = field(default_factory=dict)
    faults: dict[tuple[str, int], Fault] = field(default_factory=dict)
    blobs: dict[str, Blob] = field(default_factory=dict)
    access_counts: dict[str, AccessCount] = field(default_factory=dict)
    cooccurrences: dict[tuple[str, str], AccessCount] = field(default_factory=dict)
    accesses: dict[str, tuple[AccessRecord, ...]] = field(default_factory=dict)
    states: dict[str, tuple[AccessState, ...]] = field(default_factory=dict)
    tasks: dict[int, ReviewTask] = field(default_factory=dict)

    def copy(self) -> InMemoryAccount:
        """Return a copy that can be changed."""
        return InMemoryAccount(*(copy(getattr(self, part.name)) for part in fields(self)))

    # Ledger

    @property
    def head(self) -> Head:
        """The last entry."""
        return self.head_at(NEVER)

    def head_at(self, at: int) -> Head:
        """Return the last entry written at or before an instant."""
        last = next((entry for entry in reversed(self.entries) if entry.at <= at), None)
        return Head(0, 0, GENESIS) if last is None else Head(last.seq, last.at, last.hash)

    def append_drafts(self, drafts: Sequence[Draft], mint: IdGenerator) -> list[Entry]:
        """Seal drafts as one transaction, at one instant later than any before."""
        at, tx = max(mint.now(), self.head.at + 1), self.head.seq + 1
        for seq, draft in enumerate(drafts, tx):
            if draft.scope is not None and draft.scope.account != self.name:
                raise ScopeError(
                    f"The draft belongs to the account {draft.scope.account!r}, not {self.name!r}."
                )
            salt = mint.new_salt()
            sealed = seal_entry(draft, prev=self.head.hash, seq=seq, tx=tx, at=at, salt=salt)
            self.entries.append(self.decode_entry(sealed))
        return self.entries[tx - 1 :]

    def decode_entry(self, entry: Entry) -> Entry:
        """Return an entry with its content read from the envelope, as from a disk."""
        if entry.envelope is None:
            return _strip_content(entry)
        draft = decode_envelope(entry.sort, self.name, entry.envelope)
        if verb_thread(draft.verb) != entry.thread:
            raise StoreCorrupt(
                f"Entry {entry.seq} does not belong to the thread it names.", hint="", seq=entry.seq
            )
        return replace(entry, draft=draft)

    def import_entries(self, entries: Sequence[Entry], erased_digests: Collection[bytes]) -> None:
        """Append entries that continue the chain, skip known ones, and strip erased ones."""
        for entry in entries:
            if 0 < entry.seq <= self.head.seq:
                if self.entries[entry.seq - 1].hash != entry.hash:
                    raise Diverged(
                        f"Entry {entry.seq} of the import differs from that of this ledger.",
                        seq=entry.seq,
                    )
                continue
            if problem := find_chain_error(entry, self.head):
                raise StoreCorrupt(
                    f"Entry {entry.seq} cannot be imported: {problem}.", hint="", seq=entry.seq
                )
            is_erased = entry.digest in erased_digests
            self.entries.append(self.decode_entry(_strip_content(entry) if is_erased else entry))

    def check_batch(self, batch: Batch) -> None:
        """Raise `Conflict` unless the batch can be committed."""
        if batch.idempotency is not None and batch.idempotency.key in self.tickets:
            raise Conflict("The idempotency key was used meanwhile.", hint="Read and decide again.")
        step = batch.step
        if step is not None and self.cursors.get(step.consumer, 0) != step.before:
            raise Conflict("Another worker advanced the cursor.", hint="Read it and go on there.")
        if batch.read_seq != self.head.seq:
            for guard in batch.guards:
                if not self.is_satisfied(guard):
                    raise Conflict(guard=type(guard).__name__)

    def is_satisfied(self, guard: Guard) -> bool:
        """Return whether a guard still holds."""
        match guard:
            case ThreadAt(thread, seq):
                latest = self.find_latest(thread)
                return seq == (None if latest is None else latest.seq)
            case NoFact(scope, md5s):
                return all(fact.md5 not in md5s for fact in self.list_current(scope))
            case NoEvidence(scope, digests):
                rows = self.evidence.values()
                return all(row.scope != scope or row.digest not in digests for row in rows)
            case UnchangedSlot(scope, subject, predicates, seq):
                return all(
                    fact.subject != subject or fact.predicate not in predicates
                    for fact in self.list_current(scope)
                    if fact.seq > seq
                )
            case KindNotGrown(scope, kind, seq):
                current = self.list_current(scope)
                newer = [fact for fact in current if fact.kind == kind and fact.seq > seq]
                return kind == "memory" or not newer
            case ThreadUntouched(thread, seq):
                return all(entry.thread != thread for entry in self.entries[max(seq, 0) :])
            case EntryIntact(seq):
                return 0 < seq <= len(self.entries) and self.entries[seq - 1].envelope is not None
            case _:
                assert_never(guard)

    # Views

    def fold_entries(
        self, entries: Iterable[Entry], fold: Fold, views: Sequence[View] = VIEWS
    ) -> None:
        """Fold entries into some of the views."""
        for entry in entries:
            for op in fold([entry]):
                if VIEW_NAMES[type(op)] in views:
                    self.apply_row_op(op)

    def apply_row_op(self, op: RowOp) -> None:
        """Apply one row operation."""
        match op:
            case Fact():
                self.end_version(op.id, op.seq)
                self.facts[op.seq] = op
            case EndVersion(thread, seq):
                self.end_version(thread, seq)
            case CloseThread(thread, seq):
                self.end_version(thread, seq)
                for fact in self.list_versions(thread):
                    self.facts[fact.seq] = replace(fact, gone=min(fact.gone, seq))
            case Link():
                self.links[op.seq] = op
            case EvidenceRow():
                self.evidence[op.seq] = op
            case Passage():
                self.passages[op.seq, op.slot] = op
            case Tick():
                self.ticks[op.seq] = op
            case _:
                assert_never(op)

    def end_version(self, thread: str, seq: int) -> None:
        """End the latest version of a thread."""
        if (latest := self.find_latest(thread)) is not None:
            self.facts[latest.seq] = replace(latest, until=seq)

    def list_rows(self) -> list[ViewRow]:
        """Return the rows of all views in ledger order, passages as a store on disk has them."""
        rows: list[ViewRow] = [*self.facts.values(), *self.links.values(), *self.evidence.values()]
        rows += [self.to_stored_passage(passage) for passage in self.passages.values()]
        return sorted([*rows, *self.ticks.values()], key=lambda row: row.seq)

    def to_stored_passage(self, passage: Passage) -> Passage:
        """Return a passage without its thread, ending with its fact."""
        fact, previous = self.facts.get(passage.seq), self.find_previous_passage(passage)
        return replace(
            passage,
            thread=None,
            after=None if previous is None else passage.after,
            until=passage.until if fact is None else fact.until,
        )

    def list_threads(self) -> set[str]:
        """Return every thread that has a version."""
        return {fact.id for fact in self.facts.values()}

    def list_versions(self, thread: str) -> list[Fact]:
        """Return every version of a thread, oldest first."""
        return [fact for fact in self.facts.values() if fact.id == thread]

    def find_latest(self, thread: str) -> Fact | None:
        """Return the current version of a thread."""
        return next((fact for fact in self.list_versions(thread) if fact.until == NEVER), None)

    def list_current(self, scope: Scope) -> list[Fact]:
        """Return the current facts of exactly this scope, oldest first."""
        facts = self.facts.values()
        return [fact for fact in facts if fact.scope == scope and fact.until == NEVER]

    def list_scoped_rows(self) -> list[Fact | EvidenceRow | Link]:
        """Return the rows that make a scope exist."""
        return [*self.facts.values(), *self.evidence.values(), *self.links.values()]

    def collect_scopes(self) -> list[Scope]:
        """Return every exact scope that has rows."""
        rows = self.list_scoped_rows()
        return sorted({row.scope for row in rows}, key=lambda scope: sorted(scope.ids().items()))

    def find_last_turn(self, scope: Scope) -> Fact | None:
        """Return the last turn of the scope's partition if it is the scope's own and unchanged."""
        turns = [
            fact
            for fact in self.facts.values()
            if fact.predicate is None
            and fact.kind not in {*UNINDEXED_KINDS, NODE}
            and fact.scope.partition_key() == scope.partition_key()
        ]
        if not turns or turns[-1].scope != scope or turns[-1].until != NEVER:
            return None
        return turns[-1] if turns[-1].created_at == turns[-1].updated_at else None

    def list_turns(self, scope: Scope) -> list[StoredTurn]:
        """Return the turns of exactly this scope in the order they were said."""
        facts = [fact for fact in self.facts.values() if fact.scope == scope]
        first_threads: dict[str | None, str] = {}
        for fact in facts:
            first_threads.setdefault(fact.evidence, fact.id)
        turns = []
        for fact in facts:
            is_spoken = fact.until == NEVER and fact.role in ("user", "assistant")
            if is_spoken and fact.kind not in (NODE, QUARANTINE):
                evidence, said_seq = _find_origin(f for f in facts if f.id == fact.id)
                if said_seq is not None and first_threads[evidence] == fact.id:
                    turns.append(StoredTurn(said_seq, fact))
        return sorted(turns, key=lambda turn: turn.said_seq)

    def find_previous_passage(self, passage: Passage) -> Passage | None:
        """Return the passage of the turn that another one was said after."""
        if passage.after is None:
            return None
        same_scope = (other for other in self.passages.values() if other.scope == passage.scope)
        return next((other for other in same_scope if other.thread == passage.after), None)

    def build_embedded_text(self, passage: Passage) -> str:
        """Return the text of a passage as it is embedded."""
        previous = self.find_previous_passage(passage)
        return join_with_previous(None if previous is None else previous.text, passage.text)

    def embedded_texts(self, seqs: Collection[int] | None = None) -> dict[bytes, str]:
        """Return the embedded texts of some entries, or of all, by hash."""
        passages = [p for p in self.passages.values() if seqs is None or p.seq in seqs]
        return {hash_text(text): text for text in map(self.build_embedded_text, passages)}

    # Access data

    def record_accesses(self, records: Sequence[AccessRecord], keep: int) -> None:
        """Log accesses and open a new access state for each."""
        for record in records:
            past = self.accesses.get(record.thread, ())
            states = self.states.get(record.thread, ())
            ordered = sorted((*past, record), key=lambda other: other.at)
            self.accesses[record.thread] = tuple(ordered[-keep:])
            if states:
                opened = states[-1].next_state(record.at)
                states = (*states[:-1], replace(states[-1], until=opened.since), opened)
            else:
                states = (AccessState.from_first_access(record.thread, record.at),)
            self.states[record.thread] = states[-keep:]

    def record_cooccurrences(self, pairs: Mapping[tuple[str, str], AccessCount]) -> None:
        """Add to the counts of pairs of known topics."""
        known = self.list_threads()
        for (first, second), count in pairs.items():
            if first != second and {first, second} <= known:
                pair = order_pair(first, second)
                previous = self.cooccurrences.get(pair)
                self.cooccurrences[pair] = count if previous is None else previous + count

    def enqueue_task(self, task: ReviewTask, window: int, ids: Iterator[int]) -> None:
        """Queue a task or merge it with an open one."""
        mergeable = [
            t
            for t in self.tasks.values()
            if (t.thread, t.reason) == (task.thread, task.reason)
            and t.due <= task.due + window
            and (not t.claimed or t.due >= task.due - window)
        ]
        merged = (
            min(mergeable, key=lambda t: (t.due, t.id))
            if mergeable
            else replace(task, id=next(ids), claimed=0, attempts=0)
        )
        priority, due = max(merged.priority, task.priority), min(merged.due, task.due)
        self.tasks[merged.id] = replace(merged, priority=priority, due=due)

    def write_notes(self, consumer: str, notes: Mapping[str, bytes | None]) -> None:
        """Write notes of a consumer, and delete those that are None."""
        for key, value in notes.items():
            if value is None:
                self.notes.pop((consumer, key), None)
            else:
                self.notes[consumer, key] = bytes(value)

    # Erasure

    def erase_entries(self, seqs: Iterable[int]) -> dict[str, int]:
        """Destroy the content of entries and all that was derived from it; return row counts."""
        erased = set(seqs)
        if missing := sorted(erased - {entry.seq for entry in self.entries}):
            raise NotFoundError(
                f"There is no entry {missing[0]} in the account {self.name!r}.", seqs=missing
            )
        counts_before, scopes = self._count_rows(), self.collect_scopes()
        threads = {self.facts[seq].id for seq in erased & self.facts.keys()}
        self.tickets = {
            key: ticket
            for key, ticket in self.tickets.items()
            if ticket.seq
            and ticket.seq not in erased
            and not any(thread in ticket.outcome for thread in threads)
        }
        self.access_counts = _without(self.access_counts, threads)
        self.accesses = _without(self.accesses, threads)
        self.states = _without(self.states, threads)
        self.cooccurrences = {
            pair: n for pair, n in self.cooccurrences.items() if threads.isdisjoint(pair)
        }
        self.tasks = {id_: task for id_, task in self.tasks.items() if task.thread not in threads}
        self.notes = {name: note for name, note in self.notes.items() if name[1] not in threads}
        blobs = {name for seq in erased & self.evidence.keys() for name in self.evidence[seq].blobs}
        self.facts = _without(self.facts, erased)
        self.links = _without(self.links, erased)
        self.evidence = _without(self.evidence, erased)
        self.ticks = _without(self.ticks, erased)
        self.passages = {key: p for key, p in self.passages.items() if p.seq not in erased}
        self.faults = {key: fault for key, fault in self.faults.items() if fault.seq not in erased}
        named = {name for row in self.evidence.values() for name in row.blobs}
        self.blobs = _without(self.blobs, blobs - named)
        self.tombstones |= {entry.digest for entry in self.entries if entry.seq in erased}
        self.entries = [_strip_content(e) if e.seq in erased else e for e in self.entries]
        left = self.collect_scopes()
        emptied = tuple(f":{scope.digest()}" for scope in scopes if scope not in left)
        self.cursors = {n: seq for n, seq in self.cursors.items() if not n.endswith(emptied)}
        counts_after = self._count_rows()
        return {sort: number - counts_after[sort] for sort, number in counts_before.items()}

    def apply_tombstones(self, entries: Sequence[Entry]) -> None:
        """Erase the targets of the tombstones among some entries."""
        for entry in entries:
            if isinstance(entry.verb, Erased):
                self.erase_entries(seq for seq in entry.verb.seqs if 0 < seq < entry.seq)

    def _count_rows(self) -> dict[str, int]:
        return {
            "entries": sum(entry.envelope is not None for entry in self.entries),
            "facts": len(self.facts),
            "links": len(self.links),
            "evidence": len(self.evidence),
            "passages": len(self.passages),
            "tickets": len(self.tickets),
            "faults": len(self.faults),
            "recalls": sum(count.count for count in self.access_counts.values()),
            "blobs": len(self.blobs),
        }

    # Maintenance

    def repair(self) -> None:
        """Restore tombstones, drop invalid idempotency records, limit cursors to the head."""
        erased = {
            seq
            for entry in self.entries
            if isinstance(entry.verb, Erased)
            for seq in entry.verb.seqs
        }
        self.tombstones |= {e.digest for e in self.entries if e.seq in erased and not e.envelope}
        invalid = [key for key, ticket in self.tickets.items() if not self._is_valid_ticket(ticket)]
        self.tickets = _without(self.tickets, invalid)
        self.cursors = {name: min(seq, self.head.seq) for name, seq in self.cursors.items()}

    def _is_valid_ticket(self, ticket: IdempotencyRecord) -> bool:
        """Return whether a record ends at a transaction and names only threads written by then."""
        threads, upto = ticket.thread_ids(), ticket.seq or self.head.seq
        ends = {0, self.head.seq, *(a.seq for a, b in pairwise(self.entries) if a.tx != b.tx)}
        written = {entry.thread for entry in self.entries if entry.seq <= upto}
        return threads is not None and threads <= written and ticket.seq in ends

    def find_problems(self) -> Iterator[str]:
        """Yield the inconsistencies between the ledger, the views and the data beside them."""
        head = Head(0, 0, GENESIS)
        for entry in self.entries:
            if problem := find_chain_error(entry, head):
                yield f"entry {entry.seq}: {problem}"
            head = Head(entry.seq, entry.at, entry.hash)
        unindexed = {fact.seq for fact in self.facts.values() if fact.kind in UNINDEXED_KINDS}
        for seq in sorted(({seq for seq, _ in self.passages} ^ self.facts.keys()) - unindexed):
            yield f"entry {seq} has a fact or a passage, not both"
        sorts = {entry.seq: entry.sort for entry in self.entries if entry.envelope is not None}
        views = [(VIEW_NAMES[type(row)], row) for row in self.list_rows()]
        for view in sorted({v for v, row in views if sorts.get(row.seq) != ENTRY_SORTS[v]}):
            yield f"{view} has rows without an entry"
        if invalid := sum(not self._is_valid_ticket(ticket) for ticket in self.tickets.values()):
            yield f"{invalid} tickets name what is not in the ledger"
        if beyond := sum(seq > self.head.seq for seq in self.cursors.values()):
            yield f"{beyond} cursors are beyond the end of the ledger"
        for name, blob in self.blobs.items():
            if hash_content(blob.data) != name:
                yield f"blob {name} does not match its hash"

    def compute_stats(self) -> dict[str, Any]:
        """Return the number of each kind of row."""
        scopes, counts = self.collect_scopes(), self._count_rows()
        facts = self.facts.values()
        return {
            "entries": len(self.entries),
            "erased": len(self.entries) - counts["entries"],
            "memories": sum(f.until == NEVER and f.kind not in UNLISTED_KINDS for f in facts),
            "versions": len(facts),
            **{name: counts[name] for name in ("evidence", "links", "faults", "recalls", "blobs")},
            "users": len({scope.user_id for scope in scopes} - {None}),
            "agents": len({scope.agent_id for scope in scopes} - {None}),
            "runs": len({scope.run_id for scope in scopes} - {None}),
            "tasks": len(self.tasks),
            "bytes": sum(len(entry.envelope or b"") for entry in self.entries)
            + sum(blob.size for blob in self.blobs.values()),
        }

    def count_memories(self) -> Counter[Scope]:
        """Return the number of current memories of each exact scope."""
        return Counter(
            fact.scope
            for fact in self.facts.values()
            if fact.until == NEVER and fact.kind not in UNLISTED_KINDS
        )


def find_chain_error(entry: Entry, head: Head) -> str:
    """Return why an entry does not continue a chain, or an empty string."""
    if entry.seq != head.seq + 1:
        return f"entry {head.seq + 1} is missing before it"
    if not is_next_in_chain(head.hash, entry):
        return "its hash does not follow from the entry before it"
    if entry.envelope is not None and sha256(entry.salt or b"", entry.envelope) != entry.digest:
        return "its content is not what was written"
    return ""


def _strip_content(entry: Entry) -> Entry:
    return replace(entry, salt=None, envelope=None, draft=None)


def _without(rows: Mapping[Any, Any], keys: Collection[Any]) -> dict[Any, Any]:
    return {key: row for key, row in rows.items() if key not in keys}


def _find_origin(versions: Iterable[Fact]) -> tuple[str | None, int | None]:
    """Return the last evidence of a thread and where it was first said since a retraction."""
    evidence, said_seq = None, None
    for fact in versions:
        if fact.evidence is not None:
            said_seq = said_seq if fact.evidence == evidence else None
            evidence = fact.evidence
            if said_seq is None and fact.gone == NEVER:
                said_seq = fact.seq
    return evidence, said_seq
