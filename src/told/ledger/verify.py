"""Proof that a ledger is what it was when it was written: the chain, every digest, every tombstone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from told.core.entry import GENESIS, Entry, Erased, decode, follows, thread_of
from told.core.errors import ToldError
from told.core.ids import HASH, sha256
from told.core.query import Verdict
from told.flow import Flow, call
from told.ports import Head, Store

PAGE = 2000


@dataclass(slots=True)
class Walk:
    """How far a verification has come, what it found empty, and what tombstones speak for."""

    hash: bytes = GENESIS
    seq: int = 0
    at: int = 0
    empty: dict[int, bytes] = field(default_factory=dict)
    named: set[int] = field(default_factory=set)

    def verdict(self, problem: str = "", seq: int | None = None) -> Verdict:
        """What the walk comes to."""
        bad = seq if seq is not None else self.seq + 1 if problem else None
        return Verdict(not problem, self.seq, len(self.empty), f"{HASH}:{self.hash.hex()}", bad, problem)


def verify(store: Store, account: str, watch: Callable[[Sequence[Entry]], object] = len) -> Flow[Verdict]:
    """Walk an account's chain from the beginning and name the first entry that does not fit; others may watch it."""
    walk, before, head = Walk(), -1, Head(1, 0, GENESIS)
    while before < walk.seq != head.seq:  # what is written meanwhile is walked too
        before = walk.seq
        while page := (yield from call(store.scan, account, walk.seq, PAGE)):
            for entry in page:
                problem = flaw(account, entry, walk.hash, walk.seq + 1)
                if problem:
                    return walk.verdict(problem)
                _step(walk, entry)
            watch(page)
        head = yield from call(store.head, account)
    if (head.seq, head.hash) != (walk.seq, walk.hash if walk.seq else head.hash):
        return walk.verdict("the ledger was cut short")
    if head.at != walk.at:
        return walk.verdict("the ledger does not end when it says it does", walk.seq)
    unnamed = {seq: digest for seq, digest in walk.empty.items() if seq not in walk.named}
    if unnamed:
        elsewhere = yield from _erased_elsewhere(store, account)
        unnamed = {seq: digest for seq, digest in unnamed.items() if digest not in elsewhere}
    if unnamed:
        return walk.verdict("the content is missing and was never erased", min(unnamed))
    return walk.verdict()


def _step(walk: Walk, entry: Entry) -> None:
    walk.hash, walk.seq, walk.at = entry.hash, entry.seq, entry.at
    if entry.envelope is None:
        walk.empty[entry.seq] = entry.digest
    elif isinstance(entry.verb, Erased):
        walk.named.update(seq for seq in entry.verb.seqs if seq < entry.seq)


def _erased_elsewhere(store: Store, account: str) -> Flow[set[bytes]]:
    """Digests that another account's tombstones speak for: a copy of that ledger came here without its content.

    An account that was reset has no entries left to point at, so there the store's own list of digests has to do.
    """
    found: set[bytes] = set()
    for other in (yield from call(store.accounts)):
        walk = Walk()
        digests: dict[int, bytes] = {}
        while page := (yield from call(store.scan, other, walk.seq, PAGE)):
            for entry in page:
                digests[entry.seq] = entry.digest
                _step(walk, entry)
                if isinstance(entry.verb, Erased) and entry.verb.was:
                    found |= yield from _listed(store, account)
        found |= {digests[seq] for seq in walk.named if seq in digests and other != account}
    return found


def _listed(store: Store, account: str) -> Flow[frozenset[bytes]]:
    digests: list[bytes] = []
    seq = 0
    while page := (yield from call(store.scan, account, seq, PAGE)):
        digests += [entry.digest for entry in page if entry.envelope is None]
        seq = page[-1].seq
    return (yield from call(store.tombstoned, account, digests))


def flaw(account: str, entry: Entry, prev: bytes, seq: int) -> str:
    """What is wrong with one entry, or nothing."""
    if entry.seq != seq:
        return f"entry {seq} is missing"
    if not follows(prev, entry):
        return "the hash does not follow from the entry before it"
    if entry.envelope is None:
        return ""
    if sha256(entry.salt or b"", entry.envelope) != entry.digest:
        return "the content is not what was written"
    try:
        draft = decode(entry.sort, account, entry.envelope)
    except ToldError as error:
        return str(error)
    return "" if thread_of(draft.verb) == entry.thread else "the thread is not the one that was written"
