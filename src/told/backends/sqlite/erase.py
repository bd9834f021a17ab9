"""Destroy content for good: rows, postings, vectors and idempotency records; store blobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from told.backends.sqlite import access
from told.backends.sqlite.apply import IndexedTurn, ViewWriter
from told.backends.sqlite.connection import run_many, run_query
from told.backends.sqlite.rows import (
    SEQ_MASK,
    get_id_range,
    get_passage_id_range,
    make_entry_id,
    to_json_list,
)
from told.backends.sqlite.vectors import drop_orphan_vectors, load_current_model
from told.errors import NotFoundError
from told.ids import hash_content
from told.model.entry import Blob
from told.model.fact import Passage
from told.model.scope import DEFAULT_ACCOUNT, Scope


def insert_blobs(db: apsw.Connection, account: int, blobs: Iterable[Blob]) -> None:
    """Insert blobs that are not stored yet."""
    run_many(db, "add_blob", ((account, blob.hash, blob.media_type, blob.data) for blob in blobs))


def load_blob(db: apsw.Connection, account: int, name: str) -> Blob | None:
    """Load a blob with its bytes."""
    row = run_query(db, "blob", account, name).fetchone()
    return None if row is None else Blob(name, row[0], len(row[1]), row[1])


def list_blobs(db: apsw.Connection, account: int) -> list[Blob]:
    """List blobs without their bytes."""
    return [Blob(*row) for row in run_query(db, "blobs", account)]


def release_evidence(db: apsw.Connection, account: int, evidence: str) -> int:
    """Drop these evidence rows' blob references and delete unreferenced blobs."""
    names = [name for (name,) in run_query(db, "drop_holdings", evidence).fetchall()]
    run_query(db, "drop_unheld", account, to_json_list(sorted(set(names))), *get_id_range(account))
    return db.changes()


def find_damaged(db: apsw.Connection) -> list[str]:
    """Return blobs whose bytes do not match their hash, reading one at a time."""
    return [
        name
        for name, data in run_query(db, "all_blobs")
        if not isinstance(data, bytes) or hash_content(data) != name
    ]


PLACEHOLDER_SCOPE = Scope()


def shred_entries(db: apsw.Connection, account: int, seqs: Sequence[int]) -> dict[str, int]:
    """Destroy the content of these entries and every row derived from it; return the counts."""
    ids = [make_entry_id(account, seq) for seq in seqs]
    ids_json = to_json_list(ids)
    if run_query(db, "entries_named", ids_json).get != len(set(ids)):
        raise NotFoundError("An entry to erase is not in this ledger.")
    shredded_count = 0
    for id_ in ids:
        run_query(db, "bury", id_)
        run_query(db, "shred_entry", id_)
        shredded_count += db.changes()
    spaces = [space for (space,) in run_query(db, "spaces_of_rows", ids_json).fetchall()]
    counts = {
        "entries": shredded_count,
        "facts": 0,
        "links": 0,
        "evidence": 0,
        "passages": 0,
        "vectors": 0,
        "tickets": 0,
    }
    # Check every passage: a damaged view must not hide content from erasure.
    passages = run_query(db, "drop_passages_of_facts", ids_json).fetchall()
    dropped_hashes = [digest for _, digest in passages]
    counts["passages"] = len(dropped_hashes)
    threads = {thread for (thread,) in run_query(db, "threads_of_facts", ids_json)}
    counts["blobs"] = release_evidence(db, account, ids_json)
    for part in {part for (part,) in run_query(db, "drop_ticks", ids_json).fetchall()}:
        run_query(db, "recount_ticks", part)
    for name, query in (
        ("facts", "drop_facts"),
        ("links", "drop_links"),
        ("evidence", "drop_evidence"),
    ):
        run_query(db, query, ids_json)
        counts[name] = db.changes()
    for part in {part for part, _ in passages}:
        dropped_hashes += rebuild_partition(db, account, part)
    counts["vectors"] = drop_orphan_vectors(db, dropped_hashes)
    counts["tickets"] = _drop_tickets(db, account, threads, set(seqs))
    run_query(db, "drop_faults", account, to_json_list(seqs))
    counts["faults"] = db.changes()
    counts["recalls"] = sum(
        count for (count,) in run_query(db, "drop_access", account, to_json_list(sorted(threads)))
    )
    access.forget_threads(db, account, sorted(threads))
    _drop_empty_spaces(db, account, spaces)
    return counts


def rebuild_partition(db: apsw.Connection, account: int, part: int) -> list[bytes]:
    """Rewrite a partition's passages, postings and blocks from what is left.

    Return the hashes of passages that were embedded with a turn that is gone.
    """
    lo, hi = get_passage_id_range(part)
    rows = run_query(db, "part_texts", lo, hi).fetchall()
    clear_partition(db, part)
    view_writer = ViewWriter(db, account, PLACEHOLDER_SCOPE.account, load_current_model(db))
    turns: dict[int, IndexedTurn] = {}
    orphan_hashes: list[bytes] = []
    for ordinal, fact, slot, space, until, expires, before, text, digest in rows:
        passage = Passage(
            fact & SEQ_MASK, PLACEHOLDER_SCOPE, text, slot, until=until, expires=expires
        )
        turns[ordinal] = view_writer.index_passage(part, fact, space, passage, turns.get(before))
        if before is not None and before not in turns:
            orphan_hashes.append(digest)
    view_writer.flush()
    return orphan_hashes


def clear_partition(db: apsw.Connection, part: int) -> None:
    """Delete a partition's index; readers reload it."""
    run_query(db, "drop_part_passages", *get_passage_id_range(part))
    run_query(db, "drop_part_postings", part)
    run_query(db, "drop_part_blocks", part)
    run_query(db, "renew_part", part)


def _drop_tickets(db: apsw.Connection, account: int, threads: set[str], seqs: set[int]) -> int:
    """Delete idempotency records that name an erased memory or none at all."""
    dropped = 0
    for key, outcome, seq in run_query(db, "tickets", account).fetchall():
        if not seq or seq in seqs or any(thread in outcome for thread in threads):
            run_query(db, "drop_ticket", account, key)
            dropped += 1
    return dropped


def _drop_empty_spaces(db: apsw.Connection, account: int, spaces: Sequence[int]) -> None:
    """Delete unreferenced spaces and partitions, whose names may be personal."""
    for space in spaces:
        dropped_space = run_query(db, "drop_empty_space", space).fetchone()
        if dropped_space is None:
            continue
        part, *ids = dropped_space
        run_query(db, "drop_cursors_of", account, f"*:{Scope(DEFAULT_ACCOUNT, *ids).digest()}")
        if run_query(db, "drop_empty_part", part).get is not None:
            run_query(db, "drop_part_postings", part)
            run_query(db, "drop_part_blocks", part)


def wipe_account(db: apsw.Connection, account: int) -> None:
    """Delete everything of an account; keep digests so that old copies cannot bring it back."""
    lo, hi = get_id_range(account)
    run_query(db, "bury_range", lo, hi)
    run_query(db, "begin_reset")
    for query in (
        "range_entry",
        "range_fact",
        "range_link",
        "range_evidence",
        "range_holding",
        "range_tick",
    ):
        run_query(db, query, lo, hi)
    run_query(db, "end_reset")
    for (part,) in run_query(db, "parts_of_account", account).fetchall():
        clear_partition(db, part)
    for query in ("tickets", "cursors", "faults", "access", "blobs", "behind", "spaces", "parts"):
        run_query(db, f"drop_account_{query}", account)
    access.wipe_overlay(db, account)
    run_query(db, "orphan_embeddings")
