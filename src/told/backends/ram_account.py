"""One account of the ram store: its ledger and views as plain lists and dicts, and what each operation does to them.

Every value in here is frozen, so a shallow copy is a transaction: change the copy, then put it in the account's place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, assert_never

from told.backends.ram_beside import Beside
from told.core.blob import Blob
from told.core.entry import GENESIS, Draft, Entry, Erased, decode, follows, seal, thread_of
from told.core.errors import Diverged, NotFoundError, ScopeError, StoreCorrupt
from told.core.fact import NEVER, NODE, SILENT, UNLISTED, Fact, Link, Passage, Tick, Witness, together
from told.core.ids import Mint, canonical, sha256, tagged
from told.core.query import Touch
from told.core.scope import Scope
from told.ports import (
    VIEWS,
    CloseThread,
    EndVersion,
    Fault,
    Fold,
    Guard,
    Head,
    Intact,
    NoEvidence,
    NoFact,
    NoMore,
    NoNews,
    Row,
    RowOp,
    Still,
    ThreadAt,
    Ticket,
    View,
)

NO_HEAD = Head(0, 0, GENESIS)
SORTS: Mapping[type[Row], str] = {
    Fact: "asserted", Passage: "asserted", Link: "linked", Witness: "observed", Tick: "observed",
}  # fmt: skip
"""The sort of entry each sort of row is of."""


@dataclass(slots=True)
class Account:
    """A ledger, what is folded from it, and what its consumers and writers left here."""

    name: str
    entries: list[Entry] = field(default_factory=list)
    facts: dict[int, Fact] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    evidence: dict[int, Witness] = field(default_factory=dict)
    passages: dict[tuple[int, int], Passage] = field(default_factory=dict)
    ticks: dict[int, Tick] = field(default_factory=dict)
    tickets: dict[str, Ticket] = field(default_factory=dict)
    tombstones: set[bytes] = field(default_factory=set)
    cursors: dict[str, int] = field(default_factory=dict)
    faults: dict[tuple[str, int], Fault] = field(default_factory=dict)
    recalls: dict[str, Touch] = field(default_factory=dict)
    blobs: dict[str, Blob] = field(default_factory=dict)
    beside: Beside = field(default_factory=Beside)

    def copy(self) -> Account:
        """The same account, free to be changed."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return Account(**{name: value if name == "name" else value.copy() for name, value in values.items()})

    # The ledger

    @property
    def head(self) -> Head:
        """The end of the ledger."""
        if not self.entries:
            return NO_HEAD
        last = self.entries[-1]
        return Head(last.seq, last.at, last.hash)

    def append(self, drafts: Sequence[Draft], mint: Mint) -> Sequence[Entry]:
        """Seal drafts as one transaction: one instant for all, later than any before, whatever the clock says."""
        at, tx = max(mint.now(), self.head.at + 1), self.head.seq + 1
        for seq, draft in enumerate(drafts, tx):
            if draft.scope is not None and draft.scope.account != self.name:
                raise ScopeError(f"The draft belongs to the account {draft.scope.account!r}, not to {self.name!r}.")
            sealed = seal(draft, prev=self.head.hash, seq=seq, tx=tx, at=at, salt=mint.salt())
            self.entries.append(self.read(sealed))
        return self.entries[tx - 1 :]

    def read(self, entry: Entry) -> Entry:
        """The entry with its content as the envelope tells it, which is all that a store on disk would know."""
        if entry.envelope is None:
            return _shredded(entry)
        draft = decode(entry.sort, self.name, entry.envelope)
        if thread_of(draft.verb) != entry.thread:
            raise StoreCorrupt(f"Entry {entry.seq} is not of the thread it names.", hint="", seq=entry.seq)
        return replace(entry, draft=draft)

    def told(self, entries: Iterable[Entry]) -> list[Entry]:
        """Entries to hand out, read anew from their envelopes, so that nobody holds what the ledger holds."""
        return [self.read(entry) for entry in entries]

    def adopt(self, entries: Sequence[Entry], buried: set[bytes]) -> None:
        """Append what continues the chain and skip what is already here; what is buried comes without its content.

        What comes empty is a hole until a tombstone of the chain names it, on this page or a later one.
        """
        for entry in entries:
            if 0 < entry.seq <= self.head.seq:
                if self.entries[entry.seq - 1].hash != entry.hash:
                    raise Diverged(f"Entry {entry.seq} is not the one in this ledger.", seq=entry.seq)
            elif problem := flaw(entry, self.head):
                raise StoreCorrupt(f"Entry {entry.seq} cannot be adopted: {problem}.", hint="", seq=entry.seq)
            else:
                self.entries.append(self.read(_shredded(entry) if entry.digest in buried else entry))

    # The views

    def grow(self, entries: Iterable[Entry], fold: Fold, views: Sequence[View] = VIEWS) -> None:
        """Fold entries into some of the views."""
        for entry in entries:
            for op in fold([entry]):
                if view_of(op) in views:
                    self.apply(op)

    def apply(self, op: RowOp) -> None:
        """Do one row operation."""
        match op:
            case Fact():
                self._end(op.id, op.seq)
                self.facts[op.seq] = op
            case EndVersion(thread=thread, seq=seq):
                self._end(thread, seq)
            case CloseThread(thread=thread, seq=seq):
                self._retract(thread, seq)
            case Link():
                self.links.append(op)
            case Witness():
                self.evidence[op.seq] = op
            case Passage():
                said = self.facts.get(op.seq)
                until = op.until if said is None else said.until
                self.passages[op.seq, op.slot] = replace(op, until=until)
            case Tick():
                self.ticks[op.seq] = op
            case _:
                assert_never(op)

    def _end(self, thread: str, seq: int) -> None:
        """The latest version is the latest no more."""
        latest = self.latest(thread)
        if latest is not None:
            self.facts[latest.seq] = replace(latest, until=seq)
            for key in [key for key in self.passages if key[0] == latest.seq]:
                self.passages[key] = replace(self.passages[key], until=seq)

    def _retract(self, thread: str, seq: int) -> None:
        """No version of the thread is held any more."""
        self._end(thread, seq)
        for fact in self.versions(thread):
            if fact.gone == NEVER:
                self.facts[fact.seq] = replace(fact, gone=seq)

    def clear(self, views: Sequence[View]) -> None:
        """Throw views away."""
        for view in views:
            getattr(self, view).clear()

    def threads(self) -> set[str]:
        """Every thread that has a version here."""
        return {fact.id for fact in self.facts.values()}

    def versions(self, thread: str) -> Sequence[Fact]:
        """Every version of a thread, oldest first."""
        return [fact for fact in self.facts.values() if fact.id == thread]

    def latest(self, thread: str) -> Fact | None:
        """The version that is held now."""
        return next((fact for fact in self.versions(thread) if fact.until == NEVER), None)

    def held(self, scope: Scope, md5: str) -> Fact | None:
        """The newest held fact of exactly this scope with this text."""
        found = [f for f in self.facts.values() if f.scope == scope and f.md5 == md5 and f.until == NEVER]
        return found[-1] if found else None

    def about(
        self, scope: Scope, pairs: Collection[tuple[str | None, str | None]], kinds: Collection[str] = ()
    ) -> Sequence[Fact]:
        """The held facts of exactly this scope of some pairs of subject and predicate or of some kinds."""
        here = (fact for fact in self.facts.values() if fact.scope == scope and fact.until == NEVER)
        return [fact for fact in here if (fact.subject, fact.predicate) in pairs or fact.kind in kinds]

    def newest(self, scope: Scope) -> Fact | None:
        """The last turn of this scope's home, if it is of exactly this scope, held, and has not been changed."""
        turns = (fact for fact in reversed(self.facts.values()) if is_turn(fact) and fact.scope.home() == scope.home())
        last = next(turns, None)
        fits = last is not None and last.scope == scope and last.until == NEVER and last.created_at == last.updated_at
        return last if fits else None

    def witness(self, scope: Scope, digest: bytes) -> Witness | None:
        """The evidence of exactly this scope with this digest."""
        return next((w for w in reversed(self.evidence.values()) if w.scope == scope and w.digest == digest), None)

    def holds(self, guard: Guard) -> bool:
        """Whether what a writer relied on is still so."""
        match guard:
            case ThreadAt(thread=thread, seq=seq):
                latest = self.latest(thread)
                return seq == (None if latest is None else latest.seq)
            case NoFact(scope=scope, md5s=md5s):
                return all(self.held(scope, md5) is None for md5 in md5s)
            case NoEvidence(scope=scope, digests=digests):
                return all(self.witness(scope, digest) is None for digest in digests)
            case NoNews(scope=scope, subject=subject, predicates=predicates, seq=seq):
                said = self.about(scope, {(subject, predicate) for predicate in predicates})
                return all(fact.seq <= seq for fact in said)
            case NoMore(scope=scope, kind=kind, seq=seq):
                return all(fact.seq <= seq for fact in self.about(scope, (), {kind} - {"memory"}))
            case Still(thread=thread, seq=seq):
                return all(entry.thread != thread for entry in self.entries[max(seq, 0) :])
            case Intact(seq=seq):
                return 0 < seq <= len(self.entries) and self.entries[seq - 1].envelope is not None
            case _:
                assert_never(guard)

    # Recalls

    def touch(self, recalls: Mapping[str, Touch]) -> None:
        """Count recalls of the threads that have a version here."""
        for thread in self.threads() & recalls.keys():
            known, new = self.recalls.get(thread), recalls[thread]
            self.recalls[thread] = new if known is None else known + new

    # Forgetting

    def destroy(self, seqs: Iterable[int]) -> dict[str, int]:
        """Shred the content of entries and everything that was made of it; say how much of each there was."""
        doomed = set(seqs)
        if missing := sorted(doomed - {entry.seq for entry in self.entries}):
            raise NotFoundError(f"There is no entry {missing[0]} in the account {self.name!r}.", seqs=missing)
        before, scopes = self._sizes(), self.scopes()
        self._void_tickets(doomed)
        threads = {self.facts[seq].id for seq in doomed & self.facts.keys()}
        self.recalls = {thread: touch for thread, touch in self.recalls.items() if thread not in threads}
        self.beside.forget(threads)
        self.links = [link for link in self.links if link.seq not in doomed]
        named = {name for seq in doomed & self.evidence.keys() for name in self.evidence[seq].blobs}
        for rows in (self.facts, self.evidence, self.ticks):
            for seq in doomed & rows.keys():
                del rows[seq]
        for name in named - {name for witness in self.evidence.values() for name in witness.blobs}:
            self.blobs.pop(name, None)
        self.passages = {key: passage for key, passage in self.passages.items() if key[0] not in doomed}
        self.faults = {key: fault for key, fault in self.faults.items() if fault.seq not in doomed}
        self.tombstones |= {entry.digest for entry in self.entries if entry.seq in doomed}
        self.entries = [_shredded(entry) if entry.seq in doomed else entry for entry in self.entries]
        emptied = tuple(f":{scope.mark()}" for scope in scopes - self.scopes())
        self.cursors = {name: seq for name, seq in self.cursors.items() if not name.endswith(emptied)}
        after = self._sizes()
        return {sort: count - after[sort] for sort, count in before.items()}

    def scopes(self) -> set[Scope]:
        """Every exact scope that something is left of."""
        rows: tuple[Fact | Witness | Link, ...] = (*self.facts.values(), *self.evidence.values(), *self.links)
        return {row.scope for row in rows}

    def obey(self, entries: Sequence[Entry]) -> None:
        """Erase here what an adopted tombstone says was erased where it comes from."""
        for entry in entries:
            if isinstance(entry.verb, Erased):
                self.destroy(seq for seq in entry.verb.seqs if 0 < seq < entry.seq)

    def _void_tickets(self, doomed: set[int]) -> None:
        """Forget the outcomes that tell of erased transactions or threads, or of none: those may be anybody's."""
        threads = {fact.id for fact in self.facts.values() if fact.seq in doomed}
        self.tickets = {
            key: ticket
            for key, ticket in self.tickets.items()
            if ticket.seq and ticket.seq not in doomed and not any(name in ticket.outcome for name in threads)
        }

    def _sizes(self) -> dict[str, int]:
        content = sum(entry.envelope is not None for entry in self.entries)
        return {
            "entries": content, "facts": len(self.facts), "links": len(self.links), "evidence": len(self.evidence),
            "passages": len(self.passages), "tickets": len(self.tickets), "faults": len(self.faults),
            "recalls": sum(touch.count for touch in self.recalls.values()), "blobs": len(self.blobs),
        }  # fmt: skip

    # Care

    def rows(self, view: View) -> Sequence[tuple[Any, ...]]:
        """The rows of a view: their fields in order, in the order of the ledger."""
        rows: Any = getattr(self, view)
        values = rows if isinstance(rows, list) else rows.values()
        return [tuple(_cell(getattr(value, part.name)) for part in fields(value)) for value in sorted(values, key=_seq)]

    def folded(self, after: int, upto: int) -> list[Row]:
        """The rows the views have of some entries, passages as they stand here."""
        rows = (row for row in sorted(self._rows(), key=_seq) if after < row.seq <= upto)
        return [self._stands(row) if isinstance(row, Passage) else row for row in rows]

    def _stands(self, passage: Passage) -> Passage:
        return replace(passage, thread=None, after=passage.after if self.before(passage) else None)

    def _rows(self) -> list[Row]:
        views = (self.facts, self.evidence, self.passages, self.ticks)
        return [*self.links, *(row for view in views for row in view.values())]

    def mend(self) -> None:
        """Bury what the ledger says was erased, forget tickets that cannot be, and hold no cursor beyond the end."""
        erased = {seq for entry in self.entries if isinstance(entry.verb, Erased) for seq in entry.verb.seqs}
        self.tombstones |= {entry.digest for entry in self.entries if entry.seq in erased and entry.envelope is None}
        self.tickets = {key: ticket for key, ticket in self.tickets.items() if self._known(ticket)}
        self.cursors = {name: min(seq, self.head.seq) for name, seq in self.cursors.items()}

    def _known(self, ticket: Ticket) -> bool:
        """Whether everything a ticket tells of is in the ledger, and where it says, at the end of a transaction."""
        threads, upto = ticket.threads(), ticket.seq or self.head.seq
        ends = {0, self.head.seq, *(one.seq for one, after in pairwise(self.entries) if one.tx != after.tx)}
        there = {entry.thread for entry in self.entries if entry.seq <= upto}
        return threads is not None and threads <= there and ticket.seq in ends

    def before(self, passage: Passage) -> Passage | None:
        """The passage of the turn another one was said after, if it is still here."""
        said = (other for other in self.passages.values() if other.thread == passage.after)
        return None if passage.after is None else next((o for o in said if o.scope == passage.scope), None)

    def embedded(self, passage: Passage) -> str:
        """What is embedded of a passage."""
        before = self.before(passage)
        return together(None if before is None else before.text, passage.text)

    def problems(self) -> Sequence[str]:
        """What does not fit together."""
        found, head = [], NO_HEAD
        for entry in self.entries:
            if problem := flaw(entry, head):
                found.append(f"{self.name}: entry {entry.seq}: {problem}")
            head = Head(entry.seq, entry.at, entry.hash)
        silent = {fact.seq for fact in self.facts.values() if fact.kind in SILENT}
        strays = sorted(({seq for seq, _ in self.passages} ^ self.facts.keys()) - silent)
        found += [f"{self.name}: entry {seq} has a fact or a passage, not both" for seq in strays]
        sorts = {entry.seq: entry.sort for entry in self.entries if entry.envelope is not None}
        astray = {view_of(row) for row in self._rows() if sorts.get(row.seq) != SORTS[type(row)]}
        found += [f"{self.name}: {view} has rows that no entry speaks of" for view in sorted(astray)]
        if strange := sum(not self._known(ticket) for ticket in self.tickets.values()):
            found.append(f"{self.name}: {strange} tickets tell of what is not in the ledger")
        if beyond := sum(seq > self.head.seq for seq in self.cursors.values()):
            found.append(f"{self.name}: {beyond} cursors are beyond the end of the ledger")
        rotten = [name for name, blob in self.blobs.items() if tagged(blob.data) != name]
        return found + [f"{self.name}: blob {name} is not what was kept" for name in rotten]

    def stats(self) -> dict[str, int]:
        """How much of each there is."""
        rows: list[Fact | Witness | Link] = [*self.facts.values(), *self.evidence.values(), *self.links]
        scopes = {row.scope for row in rows}
        return {
            "entries": len(self.entries), "erased": sum(entry.envelope is None for entry in self.entries),
            "memories": sum(f.until == NEVER and f.kind not in UNLISTED for f in self.facts.values()),
            "versions": len(self.facts),
            "evidence": len(self.evidence), "links": len(self.links),
            "users": len({scope.user_id for scope in scopes} - {None}),
            "agents": len({scope.agent_id for scope in scopes} - {None}),
            "runs": len({scope.run_id for scope in scopes} - {None}), "faults": len(self.faults),
            "recalls": sum(touch.count for touch in self.recalls.values()), "blobs": len(self.blobs),
            "tasks": len(self.beside.tasks),
            "bytes": sum(len(entry.envelope or b"") for entry in self.entries)
            + sum(blob.size for blob in self.blobs.values()),
        }  # fmt: skip


def is_turn(fact: Fact) -> bool:
    """Whether a fact may be what somebody said: no claim, no node, nothing that no index holds."""
    return fact.predicate is None and fact.kind not in SILENT and fact.kind != NODE


def flaw(entry: Entry, head: Head) -> str:
    """Why an entry does not continue a chain, or nothing."""
    if entry.seq != head.seq + 1:
        return f"entry {head.seq + 1} is missing before it"
    if not follows(head.hash, entry):
        return "its hash does not follow from the entry before it"
    if entry.envelope is not None and sha256(entry.salt or b"", entry.envelope) != entry.digest:
        return "its content is not what was written"
    return ""


def _shredded(entry: Entry) -> Entry:
    return replace(entry, salt=None, envelope=None, draft=None)


def view_of(op: RowOp) -> View:
    """The view a row operation belongs to."""
    match op:
        case Fact() | EndVersion() | CloseThread():
            return "facts"
        case Link():
            return "links"
        case Witness():
            return "evidence"
        case Passage():
            return "passages"
        case Tick():
            return "ticks"
        case _:
            assert_never(op)


def _seq(row: Row) -> int:
    return row.seq


def _cell(value: Any) -> Any:
    """A field as a plain value: a scope as its ids, an object or a list as canonical JSON."""
    if isinstance(value, Scope):
        return (value.user_id, value.agent_id, value.run_id)
    return canonical(value).decode() if isinstance(value, dict | tuple) else value
