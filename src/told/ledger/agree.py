"""Whether the views say what the ledger says: every version, link and piece of evidence, folded again and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.core.entry import Entry
from told.core.errors import StoreCorrupt
from told.core.fact import NEVER, Fact, Link, Witness
from told.core.ids import canonical
from told.flow import Flow, call
from told.ports import CloseThread, EndVersion, RowOp, Store
from told.views import folding

PAGE: Final = 2000
NODES: Final = 500
REBUILD: Final = "run `told rebuild`"
FOLD: Final = folding(("evidence", "facts", "links"))


@dataclass(slots=True)
class Fates:
    """Where each version stopped being the latest of its thread, where its thread was given up, and what is linked."""

    end: int = 0
    until: dict[int, int] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    links: dict[int, int] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)
    _held: dict[str, list[int]] = field(default_factory=dict)

    def read(self, entries: Sequence[Entry]) -> None:
        """Take the next entries of a ledger into account."""
        self.end = entries[-1].seq
        for op in FOLD(entries):
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
            case Link(src=source, seq=seq):
                self.links[seq] = _print(op)
                self.sources[source] = None
            case _:
                pass

    def _end(self, thread: str, seq: int) -> None:
        if held := self._held.get(thread):
            self.until.setdefault(held[-1], seq)

    def of(self, fact: Fact) -> Fact:
        """A version as it stands at the end of what was read."""
        until, gone = self.until.get(fact.seq, NEVER), self.gone.get(fact.seq, NEVER)
        return fact if until == gone == NEVER else replace(fact, until=until, gone=gone)


def _print(link: Link) -> int:
    """What a link says, small enough to be kept of every one."""
    return hash((link.src, link.rel, link.dst, link.scope, link.weight, link.until, canonical(link.meta)))


def disagreements(store: Store, account: str, fates: Fates) -> Flow[tuple[str, ...]]:
    """Which views say something else than a ledger that was read, each with the first entry it is wrong about."""
    wrong: dict[str, int] = {}
    try:
        for start in range(0, fates.end, PAGE):
            for view, told, found in (yield from _compared(store, account, start, fates)):
                seq = None if view in wrong else (yield from _first(store, account, told, found))
                wrong |= {} if seq is None else {view: seq}
        linked = yield from _linked(store, account, fates)
        seq = yield from _first(store, account, fates.links, linked)
        wrong |= {} if seq is None else {"links": seq}
    except StoreCorrupt as error:
        return (f"views: {error.message.rstrip('.')}; {REBUILD}",)
    return tuple(f"{view}: entry {seq} is not there as the ledger has it; {REBUILD}" for view, seq in wrong.items())


Rows = tuple[str, Mapping[int, Any], Mapping[int, Any]]
"""A view, what the ledger tells of some entries, and what the view has of them."""


def _compared(store: Store, account: str, start: int, fates: Fates) -> Flow[tuple[Rows, ...]]:
    page = yield from call(store.scan, account, start, PAGE)
    entries = [entry for entry in page if entry.seq <= fates.end]
    ops = list(FOLD(entries))
    facts = {op.seq: fates.of(op) for op in ops if isinstance(op, Fact)}
    versions = yield from call(store.versions, account, [entry.seq for entry in entries])
    now = (yield from call(store.head, account)).seq
    said = {op.seq: op for op in ops if isinstance(op, Witness)}
    named = yield from call(store.witnesses, account, ids=[witness.id for witness in said.values()])
    return (
        ("facts", facts, {seq: _as_of(fact, fates.end, now) for seq, fact in versions.items()}),
        ("evidence", said, {witness.seq: witness for witness in named if witness.seq <= fates.end}),
    )  # fmt: skip


def _as_of(fact: Fact, end: int, now: int) -> Fact:
    """A version as it stood at a position, whatever became of it since."""
    until, gone = (NEVER if end < at <= now else at for at in (fact.until, fact.gone))
    return fact if (until, gone) == (fact.until, fact.gone) else replace(fact, until=until, gone=gone)


def _linked(store: Store, account: str, fates: Fates) -> Flow[dict[int, int]]:
    found: dict[int, int] = {}
    nodes = list(fates.sources)
    for start in range(0, len(nodes), NODES):
        links = yield from call(store.links, account, nodes[start : start + NODES])
        found.update((link.seq, _print(link)) for link in links if link.seq <= fates.end)
    return found


def _first(store: Store, account: str, told: Mapping[int, Any], found: Mapping[int, Any]) -> Flow[int | None]:
    """The first entry that is told of otherwise than it is found; one that was erased meanwhile is rightly missed."""
    if told == found:
        return None
    for seq in sorted(seq for seq in told.keys() | found.keys() if told.get(seq) != found.get(seq)):
        entries = () if seq in found else (yield from call(store.scan, account, seq - 1, 1))
        if not any(entry.seq == seq and entry.envelope is None for entry in entries):
            return seq
    return None
