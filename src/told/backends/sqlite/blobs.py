"""Blobs in the file: bytes kept once in an account, and let go with the last evidence that names them."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from told.backends.sqlite.connect import run, run_many
from told.backends.sqlite.rows import json_list, span
from told.core.blob import Blob
from told.core.ids import tagged


def put(db: apsw.Connection, account: int, blobs: Iterable[Blob]) -> None:
    """Keep blobs that are not there yet."""
    run_many(db, "add_blob", ((account, blob.hash, blob.media_type, blob.data) for blob in blobs))


def get(db: apsw.Connection, account: int, name: str) -> Blob | None:
    """A blob with its bytes."""
    row = run(db, "blob", account, name).fetchone()
    return None if row is None else Blob(name, row[0], len(row[1]), row[1])


def listed(db: apsw.Connection, account: int) -> list[Blob]:
    """Every blob without its bytes."""
    return [Blob(*row) for row in run(db, "blobs", account)]


def drop(db: apsw.Connection, account: str, name: str) -> bool:
    """Destroy a blob; the file owes a scrub from then on."""
    run(db, "drop_blob", name, account)
    gone = db.changes() > 0
    if gone:
        run(db, "owe_scrub")
    return gone


def release(db: apsw.Connection, account: int, evidence: str) -> int:
    """Let go of what these evidence rows (ids as a JSON list) name, and destroy what nobody names any more."""
    names = [name for (name,) in run(db, "drop_holdings", evidence).fetchall()]
    run(db, "drop_unheld", account, json_list(sorted(set(names))), *span(account))
    return db.changes()


def damaged(db: apsw.Connection) -> list[str]:
    """The blobs whose bytes are not those they were kept under, one at a time in memory."""
    return [name for name, data in run(db, "all_blobs") if not isinstance(data, bytes) or tagged(data) != name]
