"""Check and repair a file; write backups and collect statistics.

A lost or changed vector is restored from its block without a model, where there is one.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import apsw

from told.backends.sqlite import erase, vectors
from told.backends.sqlite.apply import (
    CHUNK_BITS,
    FOLD_SIZE,
    MAX_INT64,
    POSTING_BYTES,
    TF_BITS,
    iter_postings,
)
from told.backends.sqlite.connection import build_path_error, list_own_tables, run_query
from told.backends.sqlite.erase import rebuild_partition
from told.backends.sqlite.rows import (
    SEQ_MASK,
    get_id_base,
    get_id_range,
    get_passage_id_range,
    make_entry_id,
    to_json_list,
)
from told.errors import StoreCorrupt, StoreError, format_rebuild_command
from told.ids import hash_text
from told.model.entry import Entry, Erased
from told.model.fact import join_with_previous
from told.ports import VIEWS, IdempotencyRecord, View
from told.text.tokens import extract_terms

ACTIVE_READERS_WARNING: Final = (
    "A reader still uses the store, so its write-ahead log keeps old pages for now; "
    "`told verify` finishes the erasure once it is done."
)
CHECKPOINT_TIMEOUT_MS: Final = 2000


def collect_stats(db: apsw.Connection, account: int | None, path: Path) -> dict[str, Any]:
    """Return counts and sizes."""
    model = vectors.load_current_model(db)
    figures: dict[str, Any] = {
        "entries": 0,
        "erased": 0,
        "memories": 0,
        "versions": 0,
        "evidence": 0,
        "links": 0,
        "users": 0,
        "agents": 0,
        "runs": 0,
        "faults": 0,
        "recalls": 0,
        "blobs": 0,
        "tasks": 0,
    }
    if account is not None:
        lo, hi = get_id_range(account)
        figures["entries"], erased = run_query(db, "count_entries", lo, hi).fetchone()
        figures["versions"], current = run_query(db, "count_facts", lo, hi).fetchone()
        figures["erased"], figures["memories"] = erased or 0, current or 0
        figures["evidence"] = run_query(db, "count_evidence", lo, hi).get
        figures["links"] = run_query(db, "count_links", lo, hi).get
        _, figures["users"], figures["agents"], figures["runs"] = run_query(
            db, "count_spaces", account
        ).fetchone()
        figures["faults"] = run_query(db, "count_faults", account).get
        figures["recalls"] = run_query(db, "count_recalls", account).get
        figures["blobs"] = run_query(db, "count_blobs", account).get
        figures["tasks"] = run_query(db, "count_tasks", account).get
    figures["model"] = None if model is None else {"name": model.name, "dim": model.dim}
    figures["pending_vectors"] = (
        0 if model is None else run_query(db, "pending_count", model.id).get
    )
    figures["bytes"] = sum(file.stat().st_size for file in list_files(path))
    figures["schema"] = run_query(db, "schema_version").get
    figures["sqlite"] = apsw.sqlite_lib_version()
    return figures


def list_files(path: Path) -> list[Path]:
    """List the store's existing files."""
    return [file for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if file.exists()]


def write_backup(db: apsw.Connection, target: Path) -> None:
    """Copy the file in one step; a stepwise backup restarts on every write."""
    if target.exists():
        raise StoreError(f"{target} exists already.", hint="Choose another name for the copy.")
    create_private_file(target)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", db, "main") as progress:
            while not progress.done:
                progress.step(-1)
        copy.execute("PRAGMA journal_mode = DELETE")
    except apsw.Error:
        target.unlink()
        raise
    finally:
        copy.close()


def create_private_file(path: Path) -> None:
    """Create an empty file readable by its owner only."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise build_path_error(path, error) from error


def scrub_file(db: apsw.Connection, *, vacuum: bool) -> tuple[str, ...]:
    """Rewrite the file without free pages and truncate the log; stay due until both succeed."""
    try:
        if vacuum:
            db.execute("VACUUM")
        busy_timeout = db.execute("PRAGMA busy_timeout").get
        db.set_busy_timeout(min(CHECKPOINT_TIMEOUT_MS, busy_timeout))
        try:
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
        finally:
            db.set_busy_timeout(busy_timeout)
    except apsw.BusyError:
        busy = 1
    if busy:
        return (ACTIVE_READERS_WARNING,)
    run_query(db, "scrub_done")
    return ()


REBUILD_HINT: Final = "run {}"
REINDEX_HINT: Final = "run {}, then `told reindex`"
RESTORE_HINT: Final = "restore the last backup"
IRREPLACEABLE_TABLES: Final = frozenset({"account", "entry", "blob"})
"""Tables whose rows cannot be derived from others."""

CountsByAccount: TypeAlias = dict[int | None, int]
"""Counts by account; None for rows of no account."""

ORPHAN_CHECKS: Final = {
    "homeless_entries": ("ledger: {} entries belong to no account", RESTORE_HINT),
    "homeless_blobs": ("blobs: {} belong to no account", RESTORE_HINT),
    "misplaced_spaces": ("spaces: {} are in the wrong partition", REBUILD_HINT),
    "empty_spaces": ("spaces: {} are empty", REBUILD_HINT),
    "empty_parts": ("partitions: {} belong to no space", REBUILD_HINT),
    "stray_facts": ("facts: {} have no entry", REBUILD_HINT),
    "stray_links": ("links: {} have no entry", REBUILD_HINT),
    "stray_evidence": ("evidence: {} rows have no entry", REBUILD_HINT),
    "stray_holdings": ("evidence: {} blobs are unreferenced", REBUILD_HINT),
    "stray_ticks": ("ticks: {} are not with their evidence", REBUILD_HINT),
    "stray_passages": ("passages: {} belong to no partition", REBUILD_HINT),
    "facts_without_passage": ("passages: {} facts have none", REBUILD_HINT),
    "cursors_astray": ("cursors: {} are beyond their ledger", REBUILD_HINT),
    "models_too_many": ("models: {} too many are current", REBUILD_HINT),
    "misfit_vectors": ("vectors: {} have a wrong size", REINDEX_HINT),
    "stray_vectors": ("vectors: {} belong to no stored text", REBUILD_HINT),
    "lost_vectors": ("vectors: {} are missing", REINDEX_HINT),
}
"""Counting queries of orphaned rows, with the message and fix of each."""

ORPHAN_SORTS: Final = (
    "facts",
    "links",
    "evidence",
    "holdings",
    "passages",
    "postings",
    "blocks",
    "cursors",
    "tickets",
)
"""Row types deleted when they belong to no account, entry or partition."""


def find_type_errors(db: apsw.Connection) -> Iterator[str]:
    """Yield the tables with values of a wrong type, which readers would fail on."""
    for table, counts, _ in _count_type_errors(db):
        if table in IRREPLACEABLE_TABLES:
            hint = RESTORE_HINT
        else:
            hint = REINDEX_HINT if table in ("embedding", "model") else REBUILD_HINT
        yield (
            f"{table}: {sum(counts.values())} rows have values of a wrong type; "
            f"{format_advice(db, hint, counts)}"
        )


def _count_type_errors(db: apsw.Connection) -> list[tuple[str, CountsByAccount, str]]:
    """Count rows of a wrong type by table and account, with the query that drops them."""
    own_tables = to_json_list(sorted(list_own_tables()))
    counts = [
        (table, dict(db.execute(count)), drop)
        for table, count, drop in run_query(db, "shapes", own_tables).fetchall()
    ]
    return [table_counts for table_counts in counts if table_counts[1]]


def format_advice(db: apsw.Connection, hint: str, accounts: Iterable[int | None]) -> str:
    """Format a fix as a command that names the accounts."""
    numbers = to_json_list([account for account in accounts if isinstance(account, int)])
    return hint.format(
        format_rebuild_command([name for (name,) in run_query(db, "account_names", numbers)])
    )


def find_orphans(db: apsw.Connection) -> Iterator[str]:
    """Yield rows that should not exist, or are missing."""
    for query, (problem, hint) in ORPHAN_CHECKS.items():
        if counts := dict(run_query(db, query)):
            yield f"{problem.format(sum(counts.values()))}; {format_advice(db, hint, counts)}"
    if (part := _find_tick_mismatch(db)) is not None:
        yield (
            f"ticks: those of partition {part} do not add up; "
            f"{format_advice(db, REBUILD_HINT, [get_partition_account(db, part)])}"
        )
    if tickets := list(_find_invalid_tickets(db)):
        accounts = dict.fromkeys(account for account, _ in tickets)
        yield (
            f"tickets: {len(tickets)} name entries that are not in the ledger; "
            f"{format_advice(db, REBUILD_HINT, accounts)}"
        )


def get_partition_account(db: apsw.Connection, part: int) -> int | None:
    """Return the account of a partition."""
    account: int | None = run_query(db, "part_account", part).get
    return account


def _find_tick_mismatch(db: apsw.Connection) -> int | None:
    """Return the first partition whose clock disagrees with its ticks."""
    totals_by_part: dict[int, tuple[int, int]] = {}
    for part, more_turns, more_tokens, *stored_totals in run_query(db, "tick_sums"):
        turns, tokens = totals_by_part.get(part, (0, 0))
        totals_by_part[part] = totals = (
            min(turns + more_turns, MAX_INT64),
            min(tokens + more_tokens, MAX_INT64),
        )
        if totals != tuple(stored_totals):
            return int(part)
    return None


def _find_invalid_tickets(
    db: apsw.Connection, only_account: int | None = None
) -> Iterator[tuple[int, str]]:
    """Yield idempotency records that are unreadable or name missing entries."""
    rows = run_query(db, "all_tickets").fetchall()
    for account, is_complete, *row in (
        rows if only_account is None else [row for row in rows if row[0] == only_account]
    ):
        ticket = IdempotencyRecord(*row)
        threads = ticket.thread_ids()
        last_id = make_entry_id(account, ticket.seq or SEQ_MASK)
        threads_json = to_json_list(sorted(threads or ()))
        if (
            threads is None
            or not is_complete
            or run_query(db, "lacking_threads", threads_json, get_id_base(account), last_id).get
        ):
            yield account, ticket.key


# Cleaning up


def drop_orphans(db: apsw.Connection, account: int, views: Sequence[View]) -> None:
    """Delete orphaned rows before an account's views are rebuilt.

    Unreadable rows and misplaced spaces are deleted only if every view is rebuilt.
    """
    if has_all_views(views):
        _drop_type_errors(db, account)
        run_query(db, "drop_misplaced_spaces", account)
        run_query(db, "drop_empty_parts")
    elif "passages" in views and run_query(db, "misplaced_spaces").get:
        raise StoreCorrupt(
            "A scope is in the wrong partition.",
            hint="Rebuild every view: `told rebuild`.",
        )
    if "passages" in views:
        restore_vectors(db)
    if "ticks" in views:
        run_query(db, "drop_homeless_ticks", *get_id_range(account))
    for name in ORPHAN_SORTS:
        run_query(db, f"drop_homeless_{name}")


def has_all_views(views: Sequence[View]) -> bool:
    """Return whether these are all views."""
    return set(views) >= set(VIEWS)


def _drop_type_errors(db: apsw.Connection, account: int) -> None:
    for table, _, drop in _count_type_errors(db):
        if table in IRREPLACEABLE_TABLES:
            raise StoreCorrupt(
                f"The table {table} holds values of a wrong type.", hint="Restore the last backup."
            )
        db.execute(drop, (account,))


def drop_leftovers(db: apsw.Connection, account: int, views: Sequence[View]) -> None:
    """Delete unreferenced rows after an account's views are rebuilt."""
    if has_all_views(views):
        for query in ("drop_empty_spaces", "draw_in_cursors"):
            run_query(db, query, account)
        for query in ("drop_empty_parts", "search_one_model"):
            run_query(db, query)
        for _, key in list(_find_invalid_tickets(db, account)):
            run_query(db, "drop_ticket", account, key)
    if (
        "passages" in views and not run_query(db, "facts_without_passage").get
    ):  # another account may still need its vectors restored
        run_query(db, "orphan_embeddings")


def bury_erased(db: apsw.Connection, account: int, entries: Sequence[Entry]) -> None:
    """Record tombstones so that old copies cannot bring erased content back."""
    for entry in entries:
        for seq in entry.verb.seqs if isinstance(entry.verb, Erased) else ():
            run_query(db, "bury_empty", make_entry_id(account, seq))


# Vectors and their blocks


ChangedVector = tuple[int, int, bytes]
"""A model, a passage and the code its block holds."""


def find_changed_vectors(db: apsw.Connection) -> Iterator[ChangedVector]:
    """Yield vectors that differ from their intact block."""
    models = {row[0]: vectors.StoredModel(*row[:3]) for row in run_query(db, "models")}
    for id_, part, number, made_in, builder, digest, codes, epoch in run_query(db, "all_blocks"):
        model = models.get(id_)
        if model is None or not vectors.is_valid_block(
            model, part, epoch, (number, made_in, builder, digest, codes)
        ):
            continue
        lo, _ = get_passage_id_range(part, number * vectors.BLOCK_SIZE)
        cached = dict(run_query(db, "part_codes", id_, lo, lo + vectors.BLOCK_SIZE).fetchall())
        for offset in range(vectors.BLOCK_SIZE):
            code = codes[offset * model.dim : (offset + 1) * model.dim]
            if cached.get(number * vectors.BLOCK_SIZE + offset) != code:
                yield id_, lo + offset, code


def restore_vectors(db: apsw.Connection) -> int:
    """Restore vectors from their blocks; return how many."""
    restored = 0
    for model, passage, code in list(find_changed_vectors(db)):
        digest, previous_text, text = run_query(db, "said_at", passage).fetchone() or (
            None,
            None,
            "",
        )
        if isinstance(text, str) and digest == hash_text(join_with_previous(previous_text, text)):
            run_query(db, "mend_vector", model, digest, code)
            restored += 1
    return restored


DERIVED_FROM: Final = {"passages": "facts", "postings": "passages"}
PostingTotals = dict[str, int]


def check_store(db: apsw.Connection) -> list[str]:
    """Return problems of the file, its rows or its index; stop at unreadable ones."""
    problems = [f"file: {row[0]}" for row in db.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
    if problems or (problems := [*find_type_errors(db)]):
        return problems
    return [*find_orphans(db), *_check_index(db), *_check_blobs(db)]


def _check_index(db: apsw.Connection) -> Iterator[str]:
    """Yield differences between the index and the views."""
    for _, part, number, problem in _find_bad_blocks(db):
        yield f"block {number} of partition {part} {problem}; {_format_rebuild_advice(db, part)}"
    for part, number in _find_missing_blocks(db):
        yield f"block {number} of partition {part} is missing; {_format_rebuild_advice(db, part)}"
    if changed_count := sum(1 for _ in find_changed_vectors(db)):
        yield (f"vectors: {changed_count} differ from their block; {_format_rebuild_advice(db)}")
    for part, _, *shape in run_query(db, "part_shapes").fetchall():
        if problem := _find_mismatch(db, part, *shape):
            yield (
                f"{problem}: those of partition {part} are not what its "
                f"{DERIVED_FROM[problem]} say; {_format_rebuild_advice(db, part)}"
            )
    for (part,) in run_query(db, "homeless_postings"):
        yield f"postings: those of partition {part} are orphaned; {_format_rebuild_advice(db)}"


def _format_rebuild_advice(db: apsw.Connection, *parts: int) -> str:
    """Return the command that repairs partitions."""
    return format_advice(db, REBUILD_HINT, [get_partition_account(db, part) for part in parts])


def _check_blobs(db: apsw.Connection) -> Iterator[str]:
    """Yield damaged blobs, and a warning if a scrub is still due."""
    for name in erase.find_damaged(db):
        yield f"blobs: {name} does not match its hash; restore it from a backup"
    if run_query(db, "scrub_owed").get:
        yield f"erasure: {ACTIVE_READERS_WARNING}"


def repair_index(db: apsw.Connection) -> int:
    """Rebuild what can be rebuilt from the passages; return the number of repairs.

    A damaged vector is restored from its block, or dropped and embedded again. Damaged passages
    need a rebuild.
    """
    repaired = restore_vectors(db)
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


# Blocks


def _find_bad_blocks(db: apsw.Connection) -> list[tuple[int, int, int, str]]:
    """Return blocks that no search can use, with the problem."""
    models = {row[0]: vectors.StoredModel(*row[:3]) for row in run_query(db, "models")}
    bad_blocks: list[tuple[int, int, int, str]] = []
    for model, part, number, made_in, builder, digest, codes, epoch in run_query(db, "all_blocks"):
        stored_model = models.get(model)
        if stored_model is None or epoch is None:
            bad_blocks.append((model, part, number, "is orphaned"))
        elif not vectors.is_valid_block(
            stored_model, part, epoch, (number, made_in, builder, digest, codes)
        ):
            bad_blocks.append((model, part, number, "does not match its hash and is not used"))
    return bad_blocks


def _find_missing_blocks(db: apsw.Connection) -> list[tuple[int, int]]:
    """Return full ranges of embedded passages without a block."""
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


# Passages and postings


def _find_mismatch(db: apsw.Connection, part: int, rows: int, folded: int) -> str:
    """Return how a partition differs from its source: passages, postings or pending terms.

    Postings are compared by a sum per term, so that their order does not matter.
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
    """Yield the postings of a blob; an out-of-order one becomes an impossible posting."""
    if not isinstance(docs, bytes) or len(docs) % POSTING_BYTES:
        yield term, -1
        return
    for doc in array("I", docs):
        yield term, doc if doc >> (TF_BITS + CHUNK_BITS) == chunk else -1
