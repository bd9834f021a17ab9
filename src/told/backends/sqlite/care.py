"""Looking after the file: counts, copies and the traces an erasure must not leave."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.connect import build_path_error, run_query
from told.backends.sqlite.rows import get_id_range
from told.core.errors import StoreError

ACTIVE_READERS_WARNING: Final = (
    "Somebody is still reading the store, so its write-ahead log keeps old pages for now; "
    "`told verify` finishes the erasure once they are done."
)
CHECKPOINT_TIMEOUT_MS: Final = 2000


def collect_stats(db: apsw.Connection, account: int | None, path: Path) -> dict[str, Any]:
    """Counts and sizes."""
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
    """Every file of a store that is there."""
    return [file for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if file.exists()]


def write_backup(db: apsw.Connection, target: Path) -> None:
    """Copy the file in one go: done in steps, it would begin anew whenever somebody writes between two of them."""
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
    """Make an empty file that only its owner may read."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise build_path_error(path, error) from error


def scrub_file(db: apsw.Connection, *, vacuum: bool) -> tuple[str, ...]:
    """Rewrite the file without its free pages and empty the write-ahead log; until both are done it stays owed."""
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
