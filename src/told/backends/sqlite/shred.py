"""Destroying content for good: rows, postings, vectors, tickets and free pages, leaving a digest that says nothing."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from told.backends.sqlite import beside, blobs
from told.backends.sqlite.apply import Grower, Turn
from told.backends.sqlite.connect import run
from told.backends.sqlite.rows import SEQ_MASK, json_list, part_span, position, span
from told.backends.sqlite.vectors import current, drop_orphans
from told.core.errors import NotFoundError
from told.core.fact import Passage
from told.core.scope import DEFAULT_ACCOUNT, Scope

NOWHERE = Scope()


def shred(db: apsw.Connection, account: int, seqs: Sequence[int]) -> dict[str, int]:
    """Destroy the content of these entries and every row made from it; return how much went of each sort."""
    ids = [position(account, seq) for seq in seqs]
    listed = json_list(ids)
    if run(db, "entries_named", listed).get != len(set(ids)):
        raise NotFoundError("An entry to be erased is not in this ledger.")
    shredded = 0
    for id_ in ids:
        run(db, "bury", id_)
        run(db, "shred_entry", id_)
        shredded += db.changes()
    spaces = [space for (space,) in run(db, "spaces_of_rows", listed).fetchall()]
    counts = {"entries": shredded, "facts": 0, "links": 0, "evidence": 0, "passages": 0, "vectors": 0, "tickets": 0}
    # Every passage is looked at: what a damaged view has lost sight of must go too.
    passages = run(db, "drop_passages_of_facts", listed).fetchall()
    dropped = [digest for _, digest in passages]
    counts["passages"] = len(dropped)
    threads = {thread for (thread,) in run(db, "threads_of_facts", listed)}
    counts["blobs"] = blobs.release(db, account, listed)
    for part in {part for (part,) in run(db, "drop_ticks", listed).fetchall()}:
        run(db, "recount_ticks", part)
    for name, query in (("facts", "drop_facts"), ("links", "drop_links"), ("evidence", "drop_evidence")):
        run(db, query, listed)
        counts[name] = db.changes()
    for part in {part for part, _ in passages}:
        dropped += repack(db, account, part)
    counts["vectors"] = drop_orphans(db, dropped)
    counts["tickets"] = _tickets(db, account, threads, set(seqs))
    run(db, "drop_faults", account, json_list(seqs))
    counts["faults"] = db.changes()
    counts["recalls"] = sum(count for (count,) in run(db, "drop_access", account, json_list(sorted(threads))))
    beside.forget(db, account, sorted(threads))
    _sweep(db, account, spaces)
    return counts


def repack(db: apsw.Connection, account: int, part: int) -> list[bytes]:
    """Write a partition's passages, postings and blocks anew from the passages that are left.

    Return the hashes of those that were embedded together with a turn that is no longer there.
    """
    lo, hi = part_span(part)
    rows = run(db, "part_texts", lo, hi).fetchall()
    empty_part(db, part)
    grower = Grower(db, account, NOWHERE.account, current(db))
    turns: dict[int, Turn] = {}
    alone: list[bytes] = []
    for ordinal, fact, slot, space, until, expires, before, text, digest in rows:
        passage = Passage(fact & SEQ_MASK, NOWHERE, text, slot, until=until, expires=expires)
        turns[ordinal] = grower.index(part, fact, space, passage, turns.get(before))
        if before is not None and before not in turns:
            alone.append(digest)
    grower.settle()
    return alone


def empty_part(db: apsw.Connection, part: int) -> None:
    """Forget a partition's index; readers load it anew."""
    run(db, "drop_part_passages", *part_span(part))
    run(db, "drop_part_postings", part)
    run(db, "drop_part_blocks", part)
    run(db, "renew_part", part)


def _tickets(db: apsw.Connection, account: int, threads: set[str], seqs: set[int]) -> int:
    """Drop the tickets that speak of an erased memory, or of none: those may be anybody's."""
    gone = 0
    for key, outcome, seq in run(db, "tickets", account).fetchall():
        if not seq or seq in seqs or any(thread in outcome for thread in threads):
            run(db, "drop_ticket", account, key)
            gone += 1
    return gone


def _sweep(db: apsw.Connection, account: int, spaces: Sequence[int]) -> None:
    """Drop the spaces and partitions nothing refers to any more; their names may be somebody's."""
    for space in spaces:
        emptied = run(db, "drop_empty_space", space).fetchone()
        if emptied is None:
            continue
        part, *ids = emptied
        run(db, "drop_cursors_of", account, f"*:{Scope(DEFAULT_ACCOUNT, *ids).mark()}")
        if run(db, "drop_empty_part", part).get is not None:
            run(db, "drop_part_postings", part)
            run(db, "drop_part_blocks", part)


def wipe(db: apsw.Connection, account: int) -> None:
    """Remove everything an account has; what its entries said is buried, so that no older copy brings it back."""
    lo, hi = span(account)
    run(db, "bury_range", lo, hi)
    run(db, "begin_reset")
    for query in ("range_entry", "range_fact", "range_link", "range_evidence", "range_holding", "range_tick"):
        run(db, query, lo, hi)
    run(db, "end_reset")
    for (part,) in run(db, "parts_of_account", account).fetchall():
        empty_part(db, part)
    for query in ("tickets", "cursors", "faults", "access", "blobs", "behind", "spaces", "parts"):
        run(db, f"drop_account_{query}", account)
    beside.wipe(db, account)
    run(db, "orphan_embeddings")
