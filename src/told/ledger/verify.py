"""Proof that a ledger is what it was when it was written: the chain, every digest, every tombstone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from told.core.entry import GENESIS, Entry, Erased, decode_envelope, is_next_in_chain, verb_thread
from told.core.errors import ToldError
from told.core.ids import HASH_ALGORITHM, sha256
from told.core.query import VerifyResult
from told.flow import Flow, call
from told.ports import Head, Store

LEDGER_PAGE_SIZE = 2000


@dataclass(slots=True)
class ChainWalk:
    """How far a verification has come, what it found empty, and what tombstones speak for."""

    hash: bytes = GENESIS
    seq: int = 0
    at: int = 0
    missing_digests: dict[int, bytes] = field(default_factory=dict)
    erased_seqs: set[int] = field(default_factory=set)

    def to_result(self, problem: str = "", seq: int | None = None) -> VerifyResult:
        """What the walk comes to."""
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
    """Walk an account's chain from the beginning and name the first entry that does not fit; others may watch it."""
    walk, previous_seq, head = ChainWalk(), -1, Head(1, 0, GENESIS)
    while previous_seq < walk.seq != head.seq:  # what is written meanwhile is walked too
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
    """Digests that another account's tombstones speak for: a copy of that ledger came here without its content.

    An account that was reset has no entries left to point at, so there the store's own list of digests has to do.
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
    return (yield from call(store.tombstoned_digests, account, digests))


def find_entry_flaw(account: str, entry: Entry, prev: bytes, seq: int) -> str:
    """What is wrong with one entry, or nothing."""
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
