"""Whether the file is whole and everything in it belongs there; mending the index where it does not asks no model.

The check is a full one: every passage is broken into terms again, so it takes time in proportion to the store.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

import apsw

from told.backends.sqlite import blobs, strays, vectors
from told.backends.sqlite.apply import CHUNK_BITS, DOC_BYTES, STRETCH, TF_BITS, docs_of
from told.backends.sqlite.care import STILL_READ
from told.backends.sqlite.connect import run
from told.backends.sqlite.rows import part_span
from told.backends.sqlite.shred import repack
from told.backends.sqlite.strays import REBUILD, advice, owner
from told.core.fact import together
from told.core.ids import text_hash
from told.core.text import terms

SOURCES: Final = {"passages": "facts", "postings": "passages"}
Totals = dict[str, int]


def check(db: apsw.Connection) -> list[str]:
    """What is wrong with the file, its rows or its index; nothing is made of a file or rows that cannot be read."""
    problems = [f"file: {row[0]}" for row in db.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
    if problems or (problems := [*strays.mistyped(db)]):
        return problems
    return [*strays.strays(db), *_index(db), *_blobs(db)]


def _index(db: apsw.Connection) -> Iterator[str]:
    """What of the index is not what the views say."""
    for _, part, number, what in _bad_blocks(db):
        yield f"block {number} of partition {part} {what}; {_way(db, part)}"
    for part, number in _missing_blocks(db):
        yield f"block {number} of partition {part} is missing; {_way(db, part)}"
    if changed := sum(1 for _ in strays.changed(db)):
        yield f"vectors: {changed} are not what their block has of them; {_way(db)}"
    for part, _, *shape in run(db, "part_shapes").fetchall():
        if what := _misfit(db, part, *shape):
            yield f"{what}: those of partition {part} are not what its {SOURCES[what]} say; {_way(db, part)}"
    for (part,) in run(db, "homeless_postings"):
        yield f"postings: those of partition {part} belong to nothing; {_way(db)}"


def _way(db: apsw.Connection, *parts: int) -> str:
    """What to type to put partitions right."""
    return advice(db, REBUILD, [owner(db, part) for part in parts])


def _blobs(db: apsw.Connection) -> Iterator[str]:
    """Which blobs are damaged, and whether anything of what was destroyed may still be in the file."""
    for name in blobs.damaged(db):
        yield f"blobs: {name} is not what was kept; restore it from a backup"
    if run(db, "scrub_owed").get:
        yield f"erasure: {STILL_READ}"


def repair(db: apsw.Connection) -> int:
    """Make anew what of the index does not fit and can be made from the passages; return how much was mended.

    A damaged vector comes back from its block; one without a block is dropped, and its passage waits for a new one.
    Damaged passages are left to a rebuild.
    """
    mended = strays.restore(db)
    for model, part, number, _ in _bad_blocks(db):
        run(db, "drop_block", model, part, number)
        mended += 1
    mended += vectors.drop_misfits(db)
    run(db, "drop_homeless_postings")
    mended += db.changes()
    for part, account, *shape in run(db, "part_shapes").fetchall():
        if _misfit(db, part, *shape) == "postings":
            repack(db, account, part)
            mended += 1
    if (current := vectors.current(db)) is not None:
        for part, number in _missing_blocks(db):
            mended += vectors.fold_blocks(db, current, part, number * vectors.BLOCK, (number + 1) * vectors.BLOCK)
    return mended


# Blocks ---------------------------------------------------------------------------------------------------------------


def _bad_blocks(db: apsw.Connection) -> list[tuple[int, int, int, str]]:
    """The blocks no search uses, each with what is wrong with it."""
    models = {row[0]: vectors.Model(*row[:3]) for row in run(db, "models")}
    found: list[tuple[int, int, int, str]] = []
    for model, part, number, made_in, builder, digest, codes, epoch in run(db, "all_blocks"):
        known = models.get(model)
        if known is None or epoch is None:
            found.append((model, part, number, "belongs to nothing"))
        elif not vectors.sound(known, part, epoch, (number, made_in, builder, digest, codes)):
            found.append((model, part, number, "is not what was written and is not used"))
    return found


def _missing_blocks(db: apsw.Connection) -> list[tuple[int, int]]:
    """The full stretches of passages that all have a vector under the current model, and no block."""
    model = vectors.current(db)
    if model is None:
        return []
    found: list[tuple[int, int]] = []
    for part, rows in run(db, "all_parts").fetchall():
        if rows >= vectors.BLOCK:
            there = {number for (number,) in run(db, "block_numbers", model.id, part)}
            full = run(db, "full_stretches", vectors.BLOCK, model.id, *part_span(part), model.dim)
            found += [(part, number) for (number,) in full if number not in there]
    return found


# Passages and postings ------------------------------------------------------------------------------------------------


def _misfit(db: apsw.Connection, part: int, rows: int, folded: int) -> str:
    """What of a partition is not what it was made from: its passages, else its postings or waiting terms, or nothing.

    Per term, a sum over its postings stands for the postings, so that they may be read in any order.
    """
    wanted, count, waiting_fit = Totals(), 0, folded == rows - rows % STRETCH
    for ordinal, text, earlier, kept, length, digest, alike in run(db, "part_passages", *part_span(part)):
        words = terms(text) if alike and isinstance(text, str) else None
        if words is None or (ordinal, length, digest) != (count, len(words), text_hash(together(earlier, text))):
            return "passages"
        joined = " ".join(words)
        if ordinal < folded:
            _count(wanted, docs_of(ordinal, joined))
        waiting_fit &= kept == (None if ordinal < folded else joined)
        count += 1
    if count != rows:
        return "passages"
    found = Totals()
    for term, chunk, docs in run(db, "part_postings", part):
        _count(found, _read(term, chunk, docs))
    return "" if waiting_fit and found == wanted else "postings"


def _count(totals: Totals, postings: Iterator[tuple[str, int]]) -> None:
    for posting in postings:
        totals[posting[0]] = totals.get(posting[0], 0) + hash(posting)


def _read(term: str, chunk: int, docs: Any) -> Iterator[tuple[str, int]]:
    """The postings in a blob; one that is out of place is read as no posting there can be."""
    if not isinstance(docs, bytes) or len(docs) % DOC_BYTES:
        yield term, -1
        return
    for doc in array("I", docs):
        yield term, doc if doc >> (TF_BITS + CHUNK_BITS) == chunk else -1
