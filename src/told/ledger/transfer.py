"""One portable form of a ledger: a header line, then one JSON line for each entry.

The form is canonical: exporting, importing and exporting again gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from told.core.entry import Entry, decode
from told.core.errors import InvalidInput
from told.core.ids import canonical
from told.flow import Flow, call
from told.ports import Store
from told.views import fold_all

FORMAT = "told-ledger/1"
PAGE = 1000


def export(store: Store, account: str, write: Any) -> Flow[int]:
    """Write an account's ledger through a callable that takes bytes; return the number of entries."""
    write(canonical({"format": FORMAT, "account": account}) + b"\n")
    seq = 0
    while page := (yield from call(store.scan, account, seq, PAGE)):
        for entry in page:
            write(line(entry))
        seq = page[-1].seq
    return seq


def line(entry: Entry) -> bytes:
    """One entry as a line; the envelope stays the very bytes that were hashed."""
    row = {
        "seq": entry.seq, "tx": entry.tx, "at": entry.at, "sort": entry.sort, "thread": entry.thread,
        "digest": entry.digest.hex(), "hash": entry.hash.hex(),
        "salt": None if entry.salt is None else entry.salt.hex(),
        "envelope": None if entry.envelope is None else entry.envelope.decode(),
    }  # fmt: skip
    return canonical(row) + b"\n"


def import_(store: Store, account: str, lines: Iterable[bytes]) -> Flow[int]:
    """Append a ledger's entries to the account they continue; return how many were new."""
    rows = iter(lines)
    _header(next(rows, b""))
    new, page = 0, []
    for entry in _entries(account, rows):
        page.append(entry)
        if len(page) == PAGE:
            new += yield from call(store.adopt, account, page, fold_all)
            page = []
    if page:
        new += yield from call(store.adopt, account, page, fold_all)
    return new


def _header(row: bytes) -> None:
    try:
        header = json.loads(row)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InvalidInput(f"This is not a told export: the first line must name the format {FORMAT}.")


def _entries(account: str, rows: Iterator[bytes]) -> Iterator[Entry]:
    for number, row in enumerate(rows, 2):
        if not row.strip():
            continue
        try:
            data = json.loads(row)
            envelope = None if data["envelope"] is None else data["envelope"].encode()
            salt = None if data["salt"] is None else bytes.fromhex(data["salt"])
            draft = None if envelope is None else decode(data["sort"], account, envelope)
            yield Entry(
                data["seq"], data["tx"], data["at"], data["sort"], data["thread"],
                bytes.fromhex(data["digest"]), bytes.fromhex(data["hash"]), salt, envelope, draft,
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"Line {number} of the export cannot be read: {error}.") from error
