"""Whether the views say what the ledger says, no more and no less: every row of every entry, folded again and compared.

What is written or erased meanwhile is no disagreement: the views are compared as of where the ledger was read to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from told.core.entry import Entry, Erased
from told.core.errors import StoreCorrupt, rebuild_of
from told.core.fact import NEVER, Fact, Link, Passage, Tick, Witness
from told.flow import Flow, call
from told.ports import CloseThread, EndVersion, Row, RowOp, Store, View
from told.views import fold_all, folding

PAGE: Final = 2000
VERSIONS: Final = folding(("facts",))
VIEW_OF: Final[Mapping[type[RowOp], View]] = {
    Fact: "facts", Link: "links", Witness: "evidence", Passage: "passages", Tick: "ticks",
}  # fmt: skip


@dataclass(slots=True)
class Fates:
    """Where each version stopped being the latest of its thread, where its thread was given up, and what was erased."""

    end: int = 0
    until: dict[int, int] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    empty: dict[int, bytes] = field(default_factory=dict)
    erased: set[int] = field(default_factory=set)
    _held: dict[str, list[int]] = field(default_factory=dict)

    def read(self, entries: Sequence[Entry]) -> None:
        """Take the next entries of a ledger into account."""
        self.end = entries[-1].seq
        for entry in entries:
            if entry.envelope is None:
                self.empty[entry.seq] = entry.digest
            elif isinstance(entry.verb, Erased):
                self.erased.update(entry.verb.seqs)
        for op in VERSIONS(entries):
            self._take(op)

    def _take(self, op: RowOp) -> None:
        match op:
            case Fact(id=thread, seq=seq):
                self._end(thread, seq)
                self._held.setdefault(thread, []).append(seq)
            case EndVersion(thread=thread, seq=seq):
                self._end(thread, seq)
            case CloseThread(thread=thread, seq=seq):
                self._end(thread, seq)
                self.gone.update(dict.fromkeys(self._held.pop(thread, ()), seq))
            case _:
                pass

    def _end(self, thread: str, seq: int) -> None:
        if held := self._held.get(thread):
            self.until.setdefault(held[-1], seq)

    def of(self, row: Row) -> Row:
        """A row as it stands at the end of what was read."""
        match row:
            case Fact(seq=seq) if seq in self.until or seq in self.gone:
                return replace(row, until=self.until.get(seq, NEVER), gone=self.gone.get(seq, NEVER))
            case Passage(seq=seq):
                return replace(row, until=self.until.get(seq, NEVER), thread=None)
            case _:
                return row


def disagreements(store: Store, account: str, fates: Fates) -> Flow[tuple[str, ...]]:
    """Which views say something else than a ledger that was read, each with the first entry it is wrong about."""
    wrong: dict[View, int] = {}
    way = f"run {rebuild_of([account])}"
    try:
        for start in range(0, fates.end, PAGE):
            told, found = yield from _compared(store, account, start, fates)
            for view, seq in sorted(told.keys() | found.keys()):
                if view not in wrong and not _fits(told.get((view, seq), ()), found.get((view, seq), ())):
                    gone = (view, seq) not in found and (yield from _erased(store, account, seq))
                    wrong |= {} if gone else {view: seq}
    except StoreCorrupt as error:
        return (f"views: {error.message.rstrip('.')}; {way}",)
    problems = [f"{view}: entry {seq} is not there as the ledger has it; {way}" for view, seq in wrong.items()]
    return (*problems, *(yield from _unburied(store, account, fates)))


Rows: TypeAlias = dict[tuple[View, int], list[Row]]
"""The rows of views, by the entry they are of."""


def _compared(store: Store, account: str, start: int, fates: Fates) -> Flow[tuple[Rows, Rows]]:
    """What the ledger tells of a page of entries, and what the views have of them."""
    stop = min(start + PAGE, fates.end)
    entries = [entry for entry in (yield from call(store.scan, account, start, PAGE)) if entry.seq <= stop]
    ops = [op for op in fold_all(entries) if not isinstance(op, EndVersion | CloseThread)]
    rows = yield from call(store.folded, account, start, stop)
    now = (yield from call(store.head, account)).seq
    return _by_entry([fates.of(op) for op in ops]), _by_entry([_as_of(row, fates.end, now) for row in rows])


def _by_entry(rows: Sequence[Row]) -> Rows:
    found: Rows = {}
    for row in rows:
        found.setdefault((VIEW_OF[type(row)], row.seq), []).append(row)
    return found


def _as_of(row: Row, end: int, now: int) -> Row:
    """A row as it stood at a position, whatever became of it since."""
    match row:
        case Fact(until=until, gone=gone) if end < until <= now or end < gone <= now:
            return replace(row, until=NEVER if end < until <= now else until, gone=NEVER if end < gone <= now else gone)
        case Passage(until=until) if end < until <= now:
            return replace(row, until=NEVER)
        case _:
            return row


def _fits(told: Sequence[Row], found: Sequence[Row]) -> bool:
    """Whether rows are what the ledger tells; a passage may have lost the turn before it to an erasure."""
    return len(told) == len(found) and all(
        one == other or (isinstance(one, Passage) and replace(one, after=None) == other)
        for one, other in zip(told, found, strict=True)
    )


def _erased(store: Store, account: str, seq: int) -> Flow[bool]:
    """Whether an entry has been erased by now, so that it is rightly missed."""
    entries = yield from call(store.scan, account, seq - 1, 1)
    return any(entry.seq == seq and entry.envelope is None for entry in entries)


def _unburied(store: Store, account: str, fates: Fates) -> Flow[tuple[str, ...]]:
    """The first entry that was erased and that an older copy of it could bring back, if there is one."""
    erased = sorted(fates.erased & fates.empty.keys())
    for start in range(0, len(erased), PAGE):
        digests = {fates.empty[seq]: seq for seq in erased[start : start + PAGE]}
        buried = yield from call(store.tombstoned, account, list(digests))
        if left := digests.keys() - buried:
            first = min(map(digests.__getitem__, left))
            return (f"tombstones: that of entry {first} is missing; run {rebuild_of([account])}",)
    return ()
