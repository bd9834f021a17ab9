"""Whether the file is whole and everything in it belongs there; mending the index where it does not asks no model.

The check is a full one: every passage is broken into terms again, so it takes time in proportion to the store.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

import apsw

from told.backends.sqlite import blobs, strays, vectors
from told.backends.sqlite.apply import CHUNK_BITS, FOLD_SIZE, POSTING_BYTES, TF_BITS, iter_postings
from told.backends.sqlite.care import ACTIVE_READERS_WARNING
from told.backends.sqlite.connect import run_query
from told.backends.sqlite.rows import get_passage_id_range
from told.backends.sqlite.shred import rebuild_partition
from told.backends.sqlite.strays import REBUILD_HINT, format_advice, get_partition_account
from told.core.fact import join_with_previous
from told.core.ids import hash_text
from told.core.text import extract_terms

DERIVED_FROM: Final = {"passages": "facts", "postings": "passages"}
PostingTotals = dict[str, int]


def check_store(db: apsw.Connection) -> list[str]:
    """What is wrong with the file, its rows or its index; nothing is made of a file or rows that cannot be read."""
    problems = [f"file: {row[0]}" for row in db.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
    if problems or (problems := [*strays.find_type_errors(db)]):
        return problems
    return [*strays.find_orphans(db), *_check_index(db), *_check_blobs(db)]


def _check_index(db: apsw.Connection) -> Iterator[str]:
    """What of the index is not what the views say."""
    for _, part, number, problem in _find_bad_blocks(db):
        yield f"block {number} of partition {part} {problem}; {_format_rebuild_advice(db, part)}"
    for part, number in _find_missing_blocks(db):
        yield f"block {number} of partition {part} is missing; {_format_rebuild_advice(db, part)}"
    if changed_count := sum(1 for _ in strays.find_changed_vectors(db)):
        yield f"vectors: {changed_count} are not what their block has of them; {_format_rebuild_advice(db)}"
    for part, _, *shape in run_query(db, "part_shapes").fetchall():
        if problem := _find_mismatch(db, part, *shape):
            yield f"{problem}: those of partition {part} are not what its {DERIVED_FROM[problem]} say; {_format_rebuild_advice(db, part)}"
    for (part,) in run_query(db, "homeless_postings"):
        yield f"postings: those of partition {part} belong to nothing; {_format_rebuild_advice(db)}"


def _format_rebuild_advice(db: apsw.Connection, *parts: int) -> str:
    """What to type to put partitions right."""
    return format_advice(db, REBUILD_HINT, [get_partition_account(db, part) for part in parts])


def _check_blobs(db: apsw.Connection) -> Iterator[str]:
    """Which blobs are damaged, and whether anything of what was destroyed may still be in the file."""
    for name in blobs.find_damaged(db):
        yield f"blobs: {name} is not what was kept; restore it from a backup"
    if run_query(db, "scrub_owed").get:
        yield f"erasure: {ACTIVE_READERS_WARNING}"


def repair_index(db: apsw.Connection) -> int:
    """Make anew what of the index does not fit and can be made from the passages; return how much was mended.

    A damaged vector comes back from its block; one without a block is dropped, and its passage waits for a new one.
    Damaged passages are left to a rebuild.
    """
    repaired = strays.restore_vectors(db)
    for model, part, number, _ in _find_bad_blocks(db):
        run_query(db, "drop_block", model, part, number)
        repaired += 1
    repaired += vectors.drop_invalid_vectors(db)
    run_query(db, "drop_homeless_postings")
    repaired += db.changes()
    for part, account, *shape in run_query(db, "part_shapes").fetchall():
        if _find_mismatch(db, part, *shape) == "postings":
            rebuild_partition(db, account, part)
            repaired += 1
    if (current := vectors.load_current_model(db)) is not None:
        for part, number in _find_missing_blocks(db):
            repaired += vectors.build_blocks(
                db, current, part, number * vectors.BLOCK_SIZE, (number + 1) * vectors.BLOCK_SIZE
            )
    return repaired


# Blocks ---------------------------------------------------------------------------------------------------------------


def _find_bad_blocks(db: apsw.Connection) -> list[tuple[int, int, int, str]]:
    """The blocks no search uses, each with what is wrong with it."""
    models = {row[0]: vectors.StoredModel(*row[:3]) for row in run_query(db, "models")}
    bad_blocks: list[tuple[int, int, int, str]] = []
    for model, part, number, made_in, builder, digest, codes, epoch in run_query(db, "all_blocks"):
        stored_model = models.get(model)
        if stored_model is None or epoch is None:
            bad_blocks.append((model, part, number, "belongs to nothing"))
        elif not vectors.is_valid_block(
            stored_model, part, epoch, (number, made_in, builder, digest, codes)
        ):
            bad_blocks.append((model, part, number, "is not what was written and is not used"))
    return bad_blocks


def _find_missing_blocks(db: apsw.Connection) -> list[tuple[int, int]]:
    """The full stretches of passages that all have a vector under the current model, and no block."""
    model = vectors.load_current_model(db)
    if model is None:
        return []
    missing: list[tuple[int, int]] = []
    for part, rows in run_query(db, "all_parts").fetchall():
        if rows >= vectors.BLOCK_SIZE:
            existing = {number for (number,) in run_query(db, "block_numbers", model.id, part)}
            complete = run_query(
                db,
                "full_stretches",
                vectors.BLOCK_SIZE,
                model.id,
                *get_passage_id_range(part),
                model.dim,
            )
            missing += [(part, number) for (number,) in complete if number not in existing]
    return missing


# Passages and postings ------------------------------------------------------------------------------------------------


def _find_mismatch(db: apsw.Connection, part: int, rows: int, folded: int) -> str:
    """What of a partition is not what it was made from: its passages, else its postings or waiting terms, or nothing.

    Per term, a sum over its postings stands for the postings, so that they may be read in any order.
    """
    expected, count, tail_matches = PostingTotals(), 0, folded == rows - rows % FOLD_SIZE
    for ordinal, text, previous_text, stored_terms, length, digest, row_matches in run_query(
        db, "part_passages", *get_passage_id_range(part)
    ):
        words = extract_terms(text) if row_matches and isinstance(text, str) else None
        if words is None or (ordinal, length, digest) != (
            count,
            len(words),
            hash_text(join_with_previous(previous_text, text)),
        ):
            return "passages"
        joined = " ".join(words)
        if ordinal < folded:
            _add_posting_hashes(expected, iter_postings(ordinal, joined))
        tail_matches &= stored_terms == (None if ordinal < folded else joined)
        count += 1
    if count != rows:
        return "passages"
    actual = PostingTotals()
    for term, chunk, docs in run_query(db, "part_postings", part):
        _add_posting_hashes(actual, _read_postings(term, chunk, docs))
    return "" if tail_matches and actual == expected else "postings"


def _add_posting_hashes(totals: PostingTotals, postings: Iterator[tuple[str, int]]) -> None:
    for posting in postings:
        totals[posting[0]] = totals.get(posting[0], 0) + hash(posting)


def _read_postings(term: str, chunk: int, docs: Any) -> Iterator[tuple[str, int]]:
    """The postings in a blob; one that is out of place is read as no posting there can be."""
    if not isinstance(docs, bytes) or len(docs) % POSTING_BYTES:
        yield term, -1
        return
    for doc in array("I", docs):
        yield term, doc if doc >> (TF_BITS + CHUNK_BITS) == chunk else -1
