"""Verify the hash chain of a ledger, and that every view row matches a fresh fold of its entry.

Views are compared as of the last entry read, so concurrent writes are not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from told.errors import StoreCorrupt, ToldError, format_rebuild_command
from told.flow import Flow, call
from told.ids import HASH_ALGORITHM, sha256
from told.ledger.views import build_fold, fold_all
from told.model.entry import GENESIS, Entry, Erased, decode_envelope, is_next_in_chain, verb_thread
from told.model.fact import NEVER, EvidenceRow, Fact, Link, Passage, Tick
from told.model.query import VerifyResult
from told.ports import CloseThread, EndVersion, Head, RowOp, Store, View, ViewRow

VIEW_PAGE_SIZE: Final = 2000
FOLD_VERSIONS: Final = build_fold(("facts",))
ROW_VIEWS: Final[Mapping[type[RowOp], View]] = {
    Fact: "facts",
    Link: "links",
    EvidenceRow: "evidence",
    Passage: "passages",
    Tick: "ticks",
}


@dataclass(slots=True)
class LedgerReplay:
    """The ends of versions, retractions and erasures in the entries read so far."""

    last_seq: int = 0
    ended_at: dict[int, int] = field(default_factory=dict)
    retracted_at: dict[int, int] = field(default_factory=dict)
    missing_digests: dict[int, bytes] = field(default_factory=dict)
    erased_seqs: set[int] = field(default_factory=set)
    _open_versions: dict[str, list[int]] = field(default_factory=dict)

    def apply_entries(self, entries: Sequence[Entry]) -> None:
        """Apply the next entries of the ledger."""
        self.last_seq = entries[-1].seq
        for entry in entries:
            if entry.envelope is None:
                self.missing_digests[entry.seq] = entry.digest
            elif isinstance(entry.verb, Erased):
                self.erased_seqs.update(entry.verb.seqs)
        for op in FOLD_VERSIONS(entries):
            self._apply_op(op)

    def _apply_op(self, op: RowOp) -> None:
        match op:
            case Fact(id=thread, seq=seq):
                self._end_version(thread, seq)
                self._open_versions.setdefault(thread, []).append(seq)
            case EndVersion(thread=thread, seq=seq):
                self._end_version(thread, seq)
            case CloseThread(thread=thread, seq=seq):
                self._end_version(thread, seq)
                self.retracted_at.update(dict.fromkeys(self._open_versions.pop(thread, ()), seq))
            case _:
                pass

    def _end_version(self, thread: str, seq: int) -> None:
        if versions := self._open_versions.get(thread):
            self.ended_at.setdefault(versions[-1], seq)

    def expected_row(self, row: ViewRow) -> ViewRow:
        """Return a row as it should be after the last entry read."""
        match row:
            case Fact(seq=seq) if seq in self.ended_at or seq in self.retracted_at:
                return replace(
                    row, until=self.ended_at.get(seq, NEVER), gone=self.retracted_at.get(seq, NEVER)
                )
            case Passage(seq=seq):
                return replace(row, until=self.ended_at.get(seq, NEVER), thread=None)
            case _:
                return row


def find_view_mismatches(store: Store, account: str, replay: LedgerReplay) -> Flow[tuple[str, ...]]:
    """Return each view that differs from the ledger, with its first wrong entry."""
    mismatches: dict[View, int] = {}
    remedy = f"run {format_rebuild_command([account])}"
    try:
        for start in range(0, replay.last_seq, VIEW_PAGE_SIZE):
            expected, stored = yield from _load_page_rows(store, account, start, replay)
            for view, seq in sorted(expected.keys() | stored.keys()):
                if view not in mismatches and not _rows_match(
                    expected.get((view, seq), ()), stored.get((view, seq), ())
                ):
                    is_erased = (view, seq) not in stored and (
                        yield from _is_erased(store, account, seq)
                    )
                    mismatches |= {} if is_erased else {view: seq}
    except StoreCorrupt as error:
        return (f"views: {error.message.rstrip('.')}; {remedy}",)
    problems = [
        f"{view}: entry {seq} is not there as the ledger has it; {remedy}"
        for view, seq in mismatches.items()
    ]
    return (*problems, *(yield from _find_missing_tombstone(store, account, replay)))


RowsByEntry: TypeAlias = dict[tuple[View, int], list[ViewRow]]
"""View rows by view and entry."""


def _load_page_rows(
    store: Store, account: str, start: int, replay: LedgerReplay
) -> Flow[tuple[RowsByEntry, RowsByEntry]]:
    """Return the expected and the stored rows of a page of entries."""
    stop = min(start + VIEW_PAGE_SIZE, replay.last_seq)
    entries = [
        entry
        for entry in (yield from call(store.scan_entries, account, start, VIEW_PAGE_SIZE))
        if entry.seq <= stop
    ]
    ops = [op for op in fold_all(entries) if not isinstance(op, EndVersion | CloseThread)]
    rows = yield from call(store.rows_between, account, start, stop)
    now = (yield from call(store.get_head, account)).seq
    return _group_by_entry([replay.expected_row(op) for op in ops]), _group_by_entry(
        [_row_as_of(row, replay.last_seq, now) for row in rows]
    )


def _group_by_entry(rows: Sequence[ViewRow]) -> RowsByEntry:
    grouped: RowsByEntry = {}
    for row in rows:
        grouped.setdefault((ROW_VIEWS[type(row)], row.seq), []).append(row)
    return grouped


def _row_as_of(row: ViewRow, end: int, now: int) -> ViewRow:
    """Return a row as it was at a position."""
    match row:
        case Fact(until=until, gone=gone) if end < until <= now or end < gone <= now:
            return replace(
                row,
                until=NEVER if end < until <= now else until,
                gone=NEVER if end < gone <= now else gone,
            )
        case Passage(until=until) if end < until <= now:
            return replace(row, until=NEVER)
        case _:
            return row


def _rows_match(expected: Sequence[ViewRow], stored: Sequence[ViewRow]) -> bool:
    """Compare rows; a stored passage may lack its preceding turn if that was erased."""
    return len(expected) == len(stored) and all(
        expected_row == stored_row
        or (isinstance(expected_row, Passage) and replace(expected_row, after=None) == stored_row)
        for expected_row, stored_row in zip(expected, stored, strict=True)
    )


def _is_erased(store: Store, account: str, seq: int) -> Flow[bool]:
    """Return whether an entry has been erased."""
    entries = yield from call(store.scan_entries, account, seq - 1, 1)
    return any(entry.seq == seq and entry.envelope is None for entry in entries)


def _find_missing_tombstone(
    store: Store, account: str, replay: LedgerReplay
) -> Flow[tuple[str, ...]]:
    """Report the first erased entry without a tombstone; an old copy could restore it."""
    erased = sorted(replay.erased_seqs & replay.missing_digests.keys())
    for start in range(0, len(erased), VIEW_PAGE_SIZE):
        digests = {
            replay.missing_digests[seq]: seq for seq in erased[start : start + VIEW_PAGE_SIZE]
        }
        tombstoned = yield from call(store.tombstoned_digests, list(digests))
        if missing := digests.keys() - tombstoned:
            first = min(map(digests.__getitem__, missing))
            remedy = f"run {format_rebuild_command([account])}"
            return (f"tombstones: that of entry {first} is missing; {remedy}",)
    return ()


LEDGER_PAGE_SIZE = 2000


@dataclass(slots=True)
class ChainWalk:
    """The progress of a verification: position, missing content and erased entries."""

    hash: bytes = GENESIS
    seq: int = 0
    at: int = 0
    missing_digests: dict[int, bytes] = field(default_factory=dict)
    erased_seqs: set[int] = field(default_factory=set)

    def to_result(self, problem: str = "", seq: int | None = None) -> VerifyResult:
        """Return the result of the verification so far."""
        bad_seq = seq if seq is not None else self.seq + 1 if problem else None
        return VerifyResult(
            not problem,
            self.seq,
            len(self.missing_digests),
            f"{HASH_ALGORITHM}:{self.hash.hex()}",
            bad_seq,
            problem,
        )


def verify_ledger(
    store: Store, account: str, on_page: Callable[[Sequence[Entry]], object] = len
) -> Flow[VerifyResult]:
    """Verify an account's hash chain from the start and report the first invalid entry."""
    walk, previous_seq, head = ChainWalk(), -1, Head(1, 0, GENESIS)
    while previous_seq < walk.seq != head.seq:  # include concurrent writes
        previous_seq = walk.seq
        while page := (yield from call(store.scan_entries, account, walk.seq, LEDGER_PAGE_SIZE)):
            for entry in page:
                problem = find_entry_flaw(account, entry, walk.hash, walk.seq + 1)
                if problem:
                    return walk.to_result(problem)
                _advance_walk(walk, entry)
            on_page(page)
        head = yield from call(store.get_head, account)
    if (head.seq, head.hash) != (walk.seq, walk.hash if walk.seq else head.hash):
        return walk.to_result("the ledger was cut short")
    if head.at != walk.at:
        return walk.to_result("the ledger does not end when it says it does", walk.seq)
    unexplained = {
        seq: digest for seq, digest in walk.missing_digests.items() if seq not in walk.erased_seqs
    }
    if unexplained:
        foreign_erasures = yield from _load_foreign_erasures(store, account)
        unexplained = {
            seq: digest for seq, digest in unexplained.items() if digest not in foreign_erasures
        }
    if unexplained:
        return walk.to_result("the content is missing and was never erased", min(unexplained))
    return walk.to_result()


def _advance_walk(walk: ChainWalk, entry: Entry) -> None:
    walk.hash, walk.seq, walk.at = entry.hash, entry.seq, entry.at
    if entry.envelope is None:
        walk.missing_digests[entry.seq] = entry.digest
    elif isinstance(entry.verb, Erased):
        walk.erased_seqs.update(seq for seq in entry.verb.seqs if seq < entry.seq)


def _load_foreign_erasures(store: Store, account: str) -> Flow[set[bytes]]:
    """Return digests erased in another account whose ledger was copied here without content.

    A reset account has no entries left, so its digests come from the store's tombstones.
    """
    erased_digests: set[bytes] = set()
    for other_account in (yield from call(store.list_accounts)):
        walk = ChainWalk()
        digests: dict[int, bytes] = {}
        while page := (
            yield from call(store.scan_entries, other_account, walk.seq, LEDGER_PAGE_SIZE)
        ):
            for entry in page:
                digests[entry.seq] = entry.digest
                _advance_walk(walk, entry)
                if isinstance(entry.verb, Erased) and entry.verb.was:
                    erased_digests |= yield from _list_tombstoned(store, account)
        erased_digests |= {
            digests[seq] for seq in walk.erased_seqs if seq in digests and other_account != account
        }
    return erased_digests


def _list_tombstoned(store: Store, account: str) -> Flow[frozenset[bytes]]:
    digests: list[bytes] = []
    seq = 0
    while page := (yield from call(store.scan_entries, account, seq, LEDGER_PAGE_SIZE)):
        digests += [entry.digest for entry in page if entry.envelope is None]
        seq = page[-1].seq
    return (yield from call(store.tombstoned_digests, digests))


def find_entry_flaw(account: str, entry: Entry, prev: bytes, seq: int) -> str:
    """Return what is wrong with an entry, or an empty string."""
    if entry.seq != seq:
        return f"entry {seq} is missing"
    if not is_next_in_chain(prev, entry):
        return "the hash does not follow from the entry before it"
    if entry.envelope is None:
        return ""
    if sha256(entry.salt or b"", entry.envelope) != entry.digest:
        return "the content is not what was written"
    try:
        draft = decode_envelope(entry.sort, account, entry.envelope)
    except ToldError as error:
        return str(error)
    return (
        ""
        if verb_thread(draft.verb) == entry.thread
        else "the thread is not the one that was written"
    )


VerifyOutcome: TypeAlias = tuple[VerifyResult, Sequence[str]]


def verify_account(store: Store, account: str) -> Flow[VerifyOutcome]:
    """Verify the chain, the store's integrity and the views, and return the problems found.

    Repeat it if the account was reset meanwhile: the first entry's hash changes then.
    """
    first_hash = yield from _load_first_hash(store, account)
    result = yield from _verify_once(store, account)
    while not _is_intact(result) and first_hash != (
        first_hash := (yield from _load_first_hash(store, account))
    ):
        result = yield from _verify_once(store, account)
    return result


def _load_first_hash(store: Store, account: str) -> Flow[list[bytes]]:
    return [entry.hash for entry in (yield from call(store.scan_entries, account, 0, 1))]


def _verify_once(store: Store, account: str) -> Flow[VerifyOutcome]:
    replay = LedgerReplay()
    result = yield from verify_ledger(store, account, replay.apply_entries)
    problems: Sequence[str] = yield from call(store.check_integrity)
    if result.ok and not problems:
        problems = yield from find_view_mismatches(store, account, replay)
    return result, problems


def _is_intact(outcome: VerifyOutcome) -> bool:
    result, problems = outcome
    return result.ok and not problems
