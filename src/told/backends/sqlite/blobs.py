"""Blobs in the file: bytes kept once in an account, and let go with the last evidence that names them."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from told.backends.sqlite.connect import run_many, run_query
from told.backends.sqlite.rows import get_id_range, to_json_list
from told.core.blob import Blob
from told.core.ids import hash_content


def insert_blobs(db: apsw.Connection, account: int, blobs: Iterable[Blob]) -> None:
    """Keep blobs that are not there yet."""
    run_many(db, "add_blob", ((account, blob.hash, blob.media_type, blob.data) for blob in blobs))


def load_blob(db: apsw.Connection, account: int, name: str) -> Blob | None:
    """A blob with its bytes."""
    row = run_query(db, "blob", account, name).fetchone()
    return None if row is None else Blob(name, row[0], len(row[1]), row[1])


def list_blobs(db: apsw.Connection, account: int) -> list[Blob]:
    """Every blob without its bytes."""
    return [Blob(*row) for row in run_query(db, "blobs", account)]


def delete_blob(db: apsw.Connection, account: str, name: str) -> bool:
    """Destroy a blob; the file owes a scrub from then on."""
    run_query(db, "drop_blob", name, account)
    deleted = db.changes() > 0
    if deleted:
        run_query(db, "owe_scrub")
    return deleted


def release_evidence(db: apsw.Connection, account: int, evidence: str) -> int:
    """Let go of what these evidence rows (ids as a JSON list) name, and destroy what nobody names any more."""
    names = [name for (name,) in run_query(db, "drop_holdings", evidence).fetchall()]
    run_query(db, "drop_unheld", account, to_json_list(sorted(set(names))), *get_id_range(account))
    return db.changes()


def find_damaged(db: apsw.Connection) -> list[str]:
    """The blobs whose bytes are not those they were kept under, one at a time in memory."""
    return [
        name
        for name, data in run_query(db, "all_blobs")
        if not isinstance(data, bytes) or hash_content(data) != name
    ]
