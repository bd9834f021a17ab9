"""Export and import a ledger as JSONL: a header, one line per entry, then one line per blob.

The format is canonical: exporting, importing and exporting again gives the same bytes.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from told.errors import Conflict, InvalidInput, StoreError, StoreVersion, ToldError
from told.flow import Flow, call
from told.ids import canonical_json
from told.ledger.views import fold_all
from told.model.entry import (
    VERBS,
    Blob,
    Claim,
    Draft,
    Entry,
    Erased,
    Evidence,
    Observed,
    Ruled,
    decode_envelope,
    list_blob_hashes,
    verb_thread,
)
from told.model.scope import Scope
from told.ports import Batch, Store
from told.text.dates import Interval, from_us, to_us
from told.text.tokens import format_value, validate_label, validate_text

FORMAT = "told-ledger/1"
EXPORT_PAGE_SIZE = 1000
MAX_INTEGER = 2**53
MAX_INSTANT = to_us(datetime(9000, 1, 1, tzinfo=UTC))
HASH_SIZE, SALT_SIZE = 32, 16
THREAD_LIMIT = 256
NOT_AN_EXPORT = f"This is not a told export: the first line must name the format {FORMAT}."
TRUNCATED_EXPORT = (
    "The export seems to be truncated: import the complete file, or export the ledger again."
)


def export_ledger(store: Store, account: str, write: Any) -> Flow[int]:
    """Write an account's ledger through a callable that takes bytes; return the entry count."""
    write(canonical_json({"format": FORMAT, "account": account}) + b"\n")
    last, blob_hashes = None, set[str]()
    while page := (yield from _next_page(store, account, last)):
        for entry in page:
            write(format_entry_line(entry))
        last, blob_hashes = page[-1], blob_hashes.union(*map(_list_entry_blobs, page))
    for blob_hash in sorted(blob_hashes):
        for blob in (yield from call(store.get_blobs, account, [blob_hash])).values():
            write(format_blob_line(blob))
    yield from _next_page(store, account, last)
    return 0 if last is None else last.seq


def _next_page(store: Store, account: str, last: Entry | None) -> Flow[Sequence[Entry]]:
    """Return the entries after one; raise `Conflict` if the account was reset meanwhile."""
    if last is None:
        return (yield from call(store.scan_entries, account, 0, EXPORT_PAGE_SIZE))
    entries = yield from call(store.scan_entries, account, last.seq - 1, EXPORT_PAGE_SIZE + 1)
    if not entries or entries[0].hash != last.hash:
        raise Conflict(
            "The account was reset while its ledger was exported.", hint="Export it again."
        )
    return entries[1:]


def _list_entry_blobs(entry: Entry) -> tuple[str, ...]:
    """Return the hashes of the blobs an entry references."""
    return list_blob_hashes(entry.verb.evidence.meta) if isinstance(entry.verb, Observed) else ()


def format_blob_line(blob: Blob) -> bytes:
    """Format one blob as an export line."""
    data = b64encode(blob.data).decode("ascii")
    return canonical_json({"blob": blob.hash, "media_type": blob.media_type, "data": data}) + b"\n"


def format_entry_line(entry: Entry) -> bytes:
    """Format one entry as an export line; the envelope keeps the bytes that were hashed."""
    row = {
        "seq": entry.seq,
        "tx": entry.tx,
        "at": entry.at,
        "sort": entry.sort,
        "thread": entry.thread,
        "digest": entry.digest.hex(),
        "hash": entry.hash.hex(),
        "salt": None if entry.salt is None else entry.salt.hex(),
        "envelope": None if entry.envelope is None else entry.envelope.decode(),
    }
    return canonical_json(row) + b"\n"


def import_ledger(
    store: Store, account: str, lines: Iterable[bytes | str]
) -> Flow[tuple[int, tuple[str, ...]]]:
    """Append exported entries to the account they continue; return the new count and warnings."""
    rows = _number_lines(lines)
    _check_header(next(rows, (1, b""))[1])
    added, blob_hashes = 0, None
    page: list[Entry] = []
    gaps = ImportGaps()
    for record in _parse_lines(account, rows):
        gaps.record_line(record)
        if isinstance(record, Entry):
            page.append(record)
        if page and (len(page) == EXPORT_PAGE_SIZE or isinstance(record, Blob)):
            added += yield from call(store.import_entries, account, page, fold_all)
            page = []
        if isinstance(record, Blob):
            blob_hashes = (
                (yield from _load_blob_hashes(store, account))
                if blob_hashes is None
                else blob_hashes
            )
            if record.hash in blob_hashes:
                yield from call(store.commit, Batch(account, (), blobs=(record,)), fold_all)
    if page:
        added += yield from call(store.import_entries, account, page, fold_all)
    return added, (yield from _build_gap_warnings(store, account, gaps))


@dataclass(slots=True)
class ImportGaps:
    """Content and blobs that the lines read so far lack."""

    missing_content: set[int] = field(default_factory=set)
    missing_blobs: set[str] = field(default_factory=set)

    def record_line(self, record: Entry | Blob) -> None:
        """Update the gaps; blobs follow the entries that name them, tombstones what they erase."""
        if isinstance(record, Blob):
            self.missing_blobs.discard(record.hash)
        elif record.draft is None:
            self.missing_content.add(record.seq)
        elif isinstance(record.draft.verb, Erased):
            self.missing_content.difference_update(record.draft.verb.seqs)
        else:
            self.missing_blobs.update(_list_entry_blobs(record))


def _build_gap_warnings(store: Store, account: str, gaps: ImportGaps) -> Flow[tuple[str, ...]]:
    """Return warnings about missing erasures and blobs in a truncated export."""
    missing = (
        (gaps.missing_blobs & (yield from _load_blob_hashes(store, account)))
        if gaps.missing_blobs
        else set()
    )
    if missing:
        missing -= (yield from call(store.get_blobs, account)).keys()
    warnings = []
    if gaps.missing_content:
        first = min(gaps.missing_content)
        warnings.append(f"Entry {first} has no content and the export has no tombstone of it.")
    if missing:
        warnings.append(
            f"The export lacks the data of {len(missing)} documents and images it names."
        )
    return (*warnings, TRUNCATED_EXPORT) if warnings else ()


def _load_blob_hashes(store: Store, account: str) -> Flow[set[str]]:
    """Return the blobs that an account's evidence references; erased evidence has none."""
    seq, blob_hashes = 0, set[str]()
    while page := (yield from call(store.scan_entries, account, seq, EXPORT_PAGE_SIZE)):
        seq, blob_hashes = page[-1].seq, blob_hashes.union(*map(_list_entry_blobs, page))
    return blob_hashes


def _number_lines(lines: Iterable[bytes | str]) -> Iterator[tuple[int, bytes | str]]:
    """Number the lines of a file and report the line at which reading fails."""
    number = 0
    try:
        for number, row in enumerate(lines, 1):
            yield number, row
    except (ValueError, OSError) as error:
        raise _line_error(number + 1, error) from error


def _check_header(row: bytes | str) -> None:
    try:
        header = json.loads(row)
    except (ValueError, TypeError, RecursionError):
        header = None
    format_name = header.get("format") if isinstance(header, dict) else None
    if format_name != FORMAT:
        is_newer = isinstance(format_name, str) and format_name.startswith(FORMAT.rstrip("1"))
        message = (
            f"This is not a told export of this version: {format_value(format_name)}, not {FORMAT}."
            if is_newer
            else NOT_AN_EXPORT
        )
        raise InvalidInput(
            message,
            hint="Upgrade told, or export the ledger with this version." if is_newer else "",
        )


def _parse_lines(account: str, rows: Iterator[tuple[int, bytes | str]]) -> Iterator[Entry | Blob]:
    for number, row in rows:
        try:
            if row.strip():
                data = json.loads(row)
                yield (
                    _parse_blob(data)
                    if isinstance(data, dict) and "blob" in data
                    else _parse_entry(account, data)
                )
        except (ValueError, TypeError, AttributeError, RecursionError, StoreError) as error:
            raise _line_error(number, error) from error


def _line_error(number: int, error: Exception) -> InvalidInput:
    why = error.message if isinstance(error, ToldError) else str(error)
    hint = error.hint if isinstance(error, StoreVersion) else "Export the ledger again."
    return InvalidInput(
        f"Line {number} of the export cannot be read: {why.rstrip('.')}.", hint=hint, line=number
    )


# Parsing: a forged file can have valid hashes, so every field is checked


def _parse_entry(account: str, row: Any) -> Entry:
    """Parse an entry line and check every field."""
    if not isinstance(row, dict) or (missing := [name for name in ENTRY_FIELDS if name not in row]):
        raise InvalidInput(
            f"{missing[0]} is missing" if isinstance(row, dict) else "it is not an object"
        )
    seq, sort, thread = _parse_integer(row, "seq", 1, MAX_INTEGER), row["sort"], row["thread"]
    if not isinstance(sort, str) or sort not in VERBS:
        raise InvalidInput(f"unknown verb {format_value(sort)}")
    if thread is not None and validate_label(thread, "thread", limit=THREAD_LIMIT) != thread:
        raise InvalidInput("thread is not trimmed")
    envelope = None if row["envelope"] is None else _parse_envelope(row["envelope"])
    if (row["salt"] is None) != (envelope is None):
        raise InvalidInput("salt and envelope must be given together")
    draft = None if envelope is None else _parse_draft(sort, account, thread, envelope)
    return Entry(
        seq,
        _parse_integer(row, "tx", 1, seq),
        _parse_instant(row),
        sort,
        thread,
        _parse_hex(row, "digest", HASH_SIZE),
        _parse_hex(row, "hash", HASH_SIZE),
        None if envelope is None else _parse_hex(row, "salt", SALT_SIZE),
        envelope,
        draft,
    )


def _parse_blob(row: dict[str, Any]) -> Blob:
    """Parse a blob line and check its hash."""
    data, media_type = row.get("data"), row.get("media_type")
    if (
        not isinstance(data, str)
        or not isinstance(media_type, str)
        or validate_label(media_type, "media_type", limit=THREAD_LIMIT) != media_type
    ):
        raise InvalidInput("a blob needs a media_type and data")
    blob = Blob.from_bytes(b64decode(data, validate=True), media_type)
    if blob.hash != row["blob"]:
        raise InvalidInput("the data of the blob does not match its hash")
    return blob


ENTRY_FIELDS = ("seq", "tx", "at", "sort", "thread", "digest", "hash", "salt", "envelope")


def _parse_integer(row: Mapping[str, Any], name: str, minimum: int, maximum: int) -> int:
    value = row[name]
    if type(value) is not int or not minimum <= value <= maximum:
        raise InvalidInput(
            f"{name} must be a whole number from {minimum} to {maximum}, not {format_value(value)}"
        )
    return value


def _parse_instant(row: Mapping[str, Any]) -> int:
    """Parse the write time; the limit leaves room for later entries."""
    return _parse_integer(row, "at", 0, MAX_INSTANT)


def _parse_hex(row: Mapping[str, Any], name: str, size: int) -> bytes:
    value = row[name]
    if not isinstance(value, str) or len(value) != 2 * size:
        raise InvalidInput(
            f"{name} must be {2 * size} hexadecimal digits, not {format_value(value)}"
        )
    return bytes.fromhex(value)


def _parse_envelope(text: Any) -> bytes:
    """Return the envelope bytes if they are valid JSON for every store."""
    if not isinstance(text, str):
        raise InvalidInput(f"envelope must be text, not {format_value(text)}")
    canonical_json(json.loads(text))
    return text.encode()


def _parse_draft(sort: str, account: str, thread: str | None, envelope: bytes) -> Draft:
    """Decode an envelope and check every part of it."""
    draft = decode_envelope(sort, account, envelope)
    _check_field_types(draft.verb)
    if verb_thread(draft.verb) != thread:
        raise InvalidInput("thread does not match the envelope")
    if (
        draft.scope is not None
        and Scope.create(**draft.scope.ids(), account=account) != draft.scope
    ):
        raise InvalidInput("the ids of the scope are not trimmed and normalised")
    if draft.scope is None and not isinstance(draft.verb, Ruled | Erased):
        raise InvalidInput("the scope is missing")
    return draft


def _check_field_types(part: Any) -> None:
    """Raise `InvalidInput` if a field of a verb does not match its declared type."""
    for member in fields(part):
        value = getattr(part, member.name)
        if isinstance(value, Evidence | Claim):
            _check_field_types(value)
        elif not FIELD_CHECKS[str(member.type)](value):
            raise InvalidInput(f"{member.name} cannot be {format_value(value)}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and validate_text(value, limit=MAX_INTEGER) == value


def _is_moment(value: Any) -> bool:
    return type(value) is int and bool(from_us(value))


def _are_positions(value: Any, minimum: int = 1) -> bool:
    return isinstance(value, tuple) and all(
        type(member) is int and minimum <= member <= MAX_INTEGER for member in value
    )


FIELD_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "str | None": lambda value: value is None or _is_text(value),
    "int | None": lambda value: value is None or _is_moment(value),
    "float": lambda value: type(value) in (int, float) and 0 <= value <= 1,
    "Interval": lambda value: isinstance(value, Interval),
    "Mapping[str, Any]": lambda value: isinstance(value, dict | Mapping),
    "tuple[int, int] | None": lambda value: (
        value is None or (len(value) == 2 and _are_positions(value, 0))
    ),
    "tuple[int, ...]": _are_positions,
}
"""The check of a field by its declared type."""
