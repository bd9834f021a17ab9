"""Proof that a ledger is what it was when it was written: the chain, every digest, every tombstone."""

from __future__ import annotations

from told.core.entry import GENESIS, Entry, chain, decode, thread_of
from told.core.errors import ToldError
from told.core.ids import HASH, sha256
from told.core.query import Verdict
from told.flow import Flow, call
from told.ports import Store

PAGE = 2000


def verify(store: Store, account: str) -> Flow[Verdict]:
    """Walk an account's chain from the beginning and name the first entry that does not fit."""
    prev, seq, erased = GENESIS, 0, 0
    while page := (yield from call(store.scan, account, seq, PAGE)):
        gone = yield from call(store.tombstoned, account, [e.digest for e in page if e.envelope is None])
        for entry in page:
            problem = flaw(account, entry, prev, seq + 1, gone)
            if problem:
                return Verdict(False, seq, erased, f"{HASH}:{prev.hex()}", seq + 1, problem)
            erased += entry.envelope is None
            prev, seq = entry.hash, entry.seq
    head = yield from call(store.head, account)
    if (head.seq, head.hash) != (seq, prev if seq else head.hash):
        return Verdict(False, seq, erased, f"{HASH}:{prev.hex()}", seq + 1, "the ledger was cut short")
    return Verdict(True, seq, erased, f"{HASH}:{prev.hex()}")


def flaw(account: str, entry: Entry, prev: bytes, seq: int, gone: frozenset[bytes]) -> str:
    """What is wrong with one entry, or nothing."""
    if entry.seq != seq:
        return f"entry {seq} is missing"
    mark = chain(prev, seq=entry.seq, tx=entry.tx, at=entry.at, sort=entry.sort, digest=entry.digest)
    if mark != entry.hash:
        return "the hash does not follow from the entry before it"
    if entry.envelope is None:
        return "" if entry.digest in gone else "the content is missing and was never erased"
    if sha256(entry.salt or b"", entry.envelope) != entry.digest:
        return "the content is not what was written"
    try:
        draft = decode(entry.sort, account, entry.envelope)
    except ToldError as error:
        return str(error)
    return "" if thread_of(draft.verb) == entry.thread else "the thread is not the one that was written"
