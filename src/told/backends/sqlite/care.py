"""Looking after the file: counts, copies and the traces an erasure must not leave."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.connect import run, unusable
from told.backends.sqlite.rows import span
from told.core.errors import StoreError

STILL_READ: Final = (
    "Somebody is still reading the store, so its write-ahead log keeps old pages for now; "
    "`told verify` finishes the erasure once they are done."
)
PATIENCE_MS: Final = 2000


def stats(db: apsw.Connection, account: int | None, path: Path) -> dict[str, Any]:
    """Counts and sizes."""
    model = vectors.current(db)
    found: dict[str, Any] = {
        "entries": 0, "erased": 0, "memories": 0, "versions": 0, "evidence": 0, "links": 0, "users": 0, "agents": 0,
        "runs": 0, "faults": 0, "recalls": 0, "blobs": 0, "tasks": 0,
    }  # fmt: skip
    if account is not None:
        lo, hi = span(account)
        found["entries"], erased = run(db, "count_entries", lo, hi).fetchone()
        found["versions"], held = run(db, "count_facts", lo, hi).fetchone()
        found["erased"], found["memories"] = erased or 0, held or 0
        found["evidence"] = run(db, "count_evidence", lo, hi).get
        found["links"] = run(db, "count_links", lo, hi).get
        _, found["users"], found["agents"], found["runs"] = run(db, "count_spaces", account).fetchone()
        found["faults"] = run(db, "count_faults", account).get
        found["recalls"] = run(db, "count_recalls", account).get
        found["blobs"] = run(db, "count_blobs", account).get
        found["tasks"] = run(db, "count_tasks", account).get
    found["model"] = None if model is None else {"name": model.name, "dim": model.dim}
    found["pending_vectors"] = 0 if model is None else run(db, "pending_count", model.id).get
    found["bytes"] = sum(file.stat().st_size for file in files(path))
    found["schema"] = run(db, "schema_version").get
    found["sqlite"] = apsw.sqlite_lib_version()
    return found


def files(path: Path) -> list[Path]:
    """Every file of a store that is there."""
    return [file for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if file.exists()]


def backup(db: apsw.Connection, target: Path) -> None:
    """Copy the file in one go: done in steps, it would begin anew whenever somebody writes between two of them."""
    if target.exists():
        raise StoreError(f"{target} exists already.", hint="Choose another name for the copy.")
    private(target)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", db, "main") as work:
            while not work.done:
                work.step(-1)
        copy.execute("PRAGMA journal_mode = DELETE")
    except apsw.Error:
        target.unlink()
        raise
    finally:
        copy.close()


def private(path: Path) -> None:
    """Make an empty file that only its owner may read."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise unusable(path, error) from error


def scrub(db: apsw.Connection, *, vacuum: bool) -> tuple[str, ...]:
    """Rewrite the file without its free pages and empty the write-ahead log; until both are done it stays owed."""
    try:
        if vacuum:
            db.execute("VACUUM")
        before = db.execute("PRAGMA busy_timeout").get
        db.set_busy_timeout(min(PATIENCE_MS, before))
        try:
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
        finally:
            db.set_busy_timeout(before)
    except apsw.BusyError:
        busy = 1
    if busy:
        return (STILL_READ,)
    run(db, "scrub_done")
    return ()
