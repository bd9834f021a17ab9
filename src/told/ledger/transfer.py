"""One portable form of a ledger: a header line, one JSON line for each entry, then one for each blob they name.

The form is canonical: exporting, importing and exporting again gives the same bytes.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from told.core.blob import Blob, named_in
from told.core.entry import VERBS, Claim, Draft, Entry, Erased, Evidence, Observed, Ruled, decode, thread_of
from told.core.errors import Conflict, InvalidInput, StoreError, StoreVersion, ToldError
from told.core.ids import canonical
from told.core.scope import Scope
from told.core.text import clean, label, shown
from told.core.when import Interval, from_us, to_us
from told.flow import Flow, call
from told.ports import Store
from told.views import fold_all

FORMAT = "told-ledger/1"
PAGE = 1000
MOST = 2**53
LATEST = to_us(datetime(9000, 1, 1, tzinfo=UTC))
HASH_SIZE, SALT_SIZE = 32, 16
THREAD_LIMIT = 256
NO_EXPORT = f"This is not a told export: the first line must name the format {FORMAT}."
CUT_SHORT = "The export seems to be cut short: import the whole of it, or export the ledger again."


def export(store: Store, account: str, write: Any) -> Flow[int]:
    """Write an account's ledger through a callable that takes bytes; return the number of entries."""
    write(canonical({"format": FORMAT, "account": account}) + b"\n")
    last, names = None, set[str]()
    while page := (yield from _after(store, account, last)):
        for entry in page:
            write(line(entry))
        last, names = page[-1], names.union(*map(_named, page))
    for name in sorted(names):
        blob = yield from call(store.blob, account, name)
        if blob is not None:
            write(blob_line(blob))
    yield from _after(store, account, last)
    return 0 if last is None else last.seq


def _after(store: Store, account: str, last: Entry | None) -> Flow[Sequence[Entry]]:
    """The next entries of the ledger that an entry is in; after a reset the account has another one."""
    if last is None:
        return (yield from call(store.scan, account, 0, PAGE))
    entries = yield from call(store.scan, account, last.seq - 1, PAGE + 1)
    if not entries or entries[0].hash != last.hash:
        raise Conflict("The account was reset while its ledger was exported.", hint="Export it again.")
    return entries[1:]


def _named(entry: Entry) -> tuple[str, ...]:
    """The blobs an entry names."""
    return named_in(entry.verb.evidence.meta) if isinstance(entry.verb, Observed) else ()


def blob_line(blob: Blob) -> bytes:
    """One blob as a line."""
    data = b64encode(blob.data).decode("ascii")
    return canonical({"blob": blob.hash, "media_type": blob.media_type, "data": data}) + b"\n"


def line(entry: Entry) -> bytes:
    """One entry as a line; the envelope stays the very bytes that were hashed."""
    row = {
        "seq": entry.seq, "tx": entry.tx, "at": entry.at, "sort": entry.sort, "thread": entry.thread,
        "digest": entry.digest.hex(), "hash": entry.hash.hex(),
        "salt": None if entry.salt is None else entry.salt.hex(),
        "envelope": None if entry.envelope is None else entry.envelope.decode(),
    }  # fmt: skip
    return canonical(row) + b"\n"


def import_(store: Store, account: str, lines: Iterable[bytes | str]) -> Flow[tuple[int, tuple[str, ...]]]:
    """Append a ledger's entries to the account they continue; return how many were new, and what the file lacks."""
    rows = _numbered(lines)
    _header(next(rows, (1, b""))[1])
    new, names = 0, None
    page: list[Entry] = []
    lacking = Lacking()
    for found in _lines(account, rows):
        lacking.read(found)
        if isinstance(found, Entry):
            page.append(found)
        if page and (len(page) == PAGE or isinstance(found, Blob)):
            new += yield from call(store.adopt, account, page, fold_all)
            page = []
        if isinstance(found, Blob):
            names = (yield from _wanted(store, account)) if names is None else names
            if found.hash in names:
                yield from call(store.put_blob, account, found.data, found.media_type)
    if page:
        new += yield from call(store.adopt, account, page, fold_all)
    return new, (yield from _warnings(store, account, lacking))


@dataclass(slots=True)
class Lacking:
    """What a whole export would still have to say: content that is gone without an erasure, blobs only named so far."""

    bare: set[int] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)

    def read(self, found: Entry | Blob) -> None:
        """Take one more line into account; blobs come after the entries that name them, erasures after the erased."""
        if isinstance(found, Blob):
            self.blobs.discard(found.hash)
        elif found.draft is None:
            self.bare.add(found.seq)
        elif isinstance(found.draft.verb, Erased):
            self.bare.difference_update(found.draft.verb.seqs)
        else:
            self.blobs.update(_named(found))


def _warnings(store: Store, account: str, lacking: Lacking) -> Flow[tuple[str, ...]]:
    """What a file that is cut short leaves out: erasures, and blobs that the store does not have either."""
    blobs = (lacking.blobs & (yield from _wanted(store, account))) if lacking.blobs else set()
    for name in sorted(blobs):
        if (yield from call(store.blob, account, name)) is not None:
            blobs.discard(name)
    warnings = []
    if lacking.bare:
        warnings.append(f"Entry {min(lacking.bare)} has no content, and nothing in the export says that it was erased.")
    if blobs:
        warnings.append(f"Of {len(blobs)} documents and images that memories name the export has no bytes.")
    return (*warnings, CUT_SHORT) if warnings else ()


def _wanted(store: Store, account: str) -> Flow[set[str]]:
    """The blobs an account's evidence names; what was erased here names none, so no import brings it back."""
    seq, names = 0, set[str]()
    while page := (yield from call(store.scan, account, seq, PAGE)):
        seq, names = page[-1].seq, names.union(*map(_named, page))
    return names


def _numbered(lines: Iterable[bytes | str]) -> Iterator[tuple[int, bytes | str]]:
    """The lines of a file that may turn out to be unreadable in the middle."""
    number = 0
    try:
        for number, row in enumerate(lines, 1):
            yield number, row
    except (ValueError, OSError) as error:
        raise _unreadable(number + 1, error) from error


def _header(row: bytes | str) -> None:
    try:
        header = json.loads(row)
    except (ValueError, TypeError, RecursionError):
        header = None
    form = header.get("format") if isinstance(header, dict) else None
    if form != FORMAT:
        newer = isinstance(form, str) and form.startswith(FORMAT.rstrip("1"))
        what = f"This is not a told export of this version: {shown(form)}, not {FORMAT}." if newer else NO_EXPORT
        raise InvalidInput(what, hint="Upgrade told, or export it with this version." if newer else "")


def _lines(account: str, rows: Iterator[tuple[int, bytes | str]]) -> Iterator[Entry | Blob]:
    for number, row in rows:
        try:
            if row.strip():
                said = json.loads(row)
                yield _blob(said) if isinstance(said, dict) and "blob" in said else _entry(account, said)
        except (ValueError, TypeError, AttributeError, RecursionError, StoreError) as error:
            raise _unreadable(number, error) from error


def _unreadable(number: int, error: Exception) -> InvalidInput:
    why = error.message if isinstance(error, ToldError) else str(error)
    hint = error.hint if isinstance(error, StoreVersion) else "Export the ledger again."
    return InvalidInput(f"Line {number} of the export cannot be read: {why.rstrip('.')}.", hint=hint, line=number)


# What a line may say: whoever makes a file can make its hashes fit, so every field is checked -------------------------


def _entry(account: str, row: Any) -> Entry:
    """The entry a line holds, if each of its fields is what an export writes."""
    if not isinstance(row, dict) or (missing := [name for name in FIELDS if name not in row]):
        raise InvalidInput(f"{missing[0]} is missing" if isinstance(row, dict) else "it is no object")
    seq, sort, thread = _whole(row, "seq", 1, MOST), row["sort"], row["thread"]
    if not isinstance(sort, str) or sort not in VERBS:
        raise InvalidInput(f"there is no verb {shown(sort)}")
    if thread is not None and label(thread, "thread", limit=THREAD_LIMIT) != thread:
        raise InvalidInput("thread is not trimmed")
    envelope = None if row["envelope"] is None else _envelope(row["envelope"])
    if (row["salt"] is None) != (envelope is None):
        raise InvalidInput("salt and envelope belong together")
    draft = None if envelope is None else _draft(sort, account, thread, envelope)
    return Entry(
        seq, _whole(row, "tx", 1, seq), _instant(row), sort, thread, _hex(row, "digest", HASH_SIZE),
        _hex(row, "hash", HASH_SIZE), None if envelope is None else _hex(row, "salt", SALT_SIZE), envelope, draft,
    )  # fmt: skip


def _blob(row: dict[str, Any]) -> Blob:
    """The blob a line holds, if its bytes are those of its name."""
    data, kind = row.get("data"), row.get("media_type")
    if not isinstance(data, str) or not isinstance(kind, str) or label(kind, "media_type", limit=THREAD_LIMIT) != kind:
        raise InvalidInput("a blob has a media_type and data")
    blob = Blob.of(b64decode(data, validate=True), kind)
    if blob.hash != row["blob"]:
        raise InvalidInput("the data of the blob is not what its hash says")
    return blob


FIELDS = ("seq", "tx", "at", "sort", "thread", "digest", "hash", "salt", "envelope")


def _whole(row: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = row[name]
    if type(value) is not int or not least <= value <= most:
        raise InvalidInput(f"{name} must be a whole number from {least} to {most}, not {shown(value)}")
    return value


def _instant(row: Mapping[str, Any]) -> int:
    """When an entry was written; whatever is written after it must still find a time that is later."""
    return _whole(row, "at", 0, LATEST)


def _hex(row: Mapping[str, Any], name: str, size: int) -> bytes:
    value = row[name]
    if not isinstance(value, str) or len(value) != 2 * size:
        raise InvalidInput(f"{name} must be {2 * size} hexadecimal digits, not {shown(value)}")
    return bytes.fromhex(value)


def _envelope(text: Any) -> bytes:
    """The bytes of an envelope that is JSON every store can keep."""
    if not isinstance(text, str):
        raise InvalidInput(f"envelope must be text, not {shown(text)}")
    canonical(json.loads(text))
    return text.encode()


def _draft(sort: str, account: str, thread: str | None, envelope: bytes) -> Draft:
    """What an envelope says, if every part of it is what told writes."""
    draft = decode(sort, account, envelope)
    _check(draft.verb)
    if thread_of(draft.verb) != thread:
        raise InvalidInput("thread is not the one the envelope names")
    if draft.scope is not None and Scope.of(**draft.scope.ids(), account=account) != draft.scope:
        raise InvalidInput("the ids of the scope are not trimmed and normalised")
    if draft.scope is None and not isinstance(draft.verb, Ruled | Erased):
        raise InvalidInput("the scope is missing")
    return draft


def _check(part: Any) -> None:
    """Refuse a part of a verb in which a field is not of the type it is declared with."""
    for each in fields(part):
        value = getattr(part, each.name)
        if isinstance(value, Evidence | Claim):
            _check(value)
        elif not HOLDS[str(each.type)](value):
            raise InvalidInput(f"{each.name} cannot be {shown(value)}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and clean(value, limit=MOST) == value


def _is_moment(value: Any) -> bool:
    return type(value) is int and bool(from_us(value))


def _are_positions(value: Any, least: int = 1) -> bool:
    return isinstance(value, tuple) and all(type(member) is int and least <= member <= MOST for member in value)


HOLDS: Mapping[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "str | None": lambda value: value is None or _is_text(value),
    "int | None": lambda value: value is None or _is_moment(value),
    "float": lambda value: type(value) in (int, float) and 0 <= value <= 1,
    "Interval": lambda value: isinstance(value, Interval),
    "Mapping[str, Any]": lambda value: isinstance(value, dict | Mapping),
    "tuple[int, int] | None": lambda value: value is None or (len(value) == 2 and _are_positions(value, 0)),
    "tuple[int, ...]": _are_positions,
}
"""What a field may hold, by the type it is declared with."""
