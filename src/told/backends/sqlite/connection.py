"""Connections, schema versions, pragmas, and the translation of SQLite errors."""

from __future__ import annotations

import errno
import os
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, Protocol

import apsw

from told.errors import (
    ConfigError,
    InvalidInput,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreVersion,
    ToldError,
)

NAME_MARKER = "-- name: "


def _read_sql_file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _parse_queries() -> dict[str, str]:
    queries: dict[str, str] = {}
    for section in _read_sql_file("queries.sql").split(NAME_MARKER)[1:]:
        name, _, body = section.partition("\n")
        queries[name.strip()] = "\n".join(
            line for line in body.splitlines() if not line.startswith("--")
        ).strip()
    return queries


QUERIES: Final = _parse_queries()


OLDEST_SCHEMA: Final = 2
"""The oldest schema version that can be migrated."""

SCHEMA_FILES: Final = {
    OLDEST_SCHEMA: "schema.sql",
    3: "schema-3.sql",
    4: "schema-4.sql",
    5: "schema-5.sql",
    7: "schema-7.sql",
}
"""The migration file of each schema version; the short-lived version 6 is refused."""


@cache
def load_migrations(version: int) -> tuple[str, ...]:
    """Return the statements that migrate a schema version (0: empty file) to the current one."""
    return tuple(_read_sql_file(name) for number, name in SCHEMA_FILES.items() if number > version)


@cache
def list_own_tables() -> frozenset[str]:
    """Return told's own tables; a file may hold others."""
    return frozenset(
        re.findall(r"^CREATE TABLE (\w+)", "\n".join(load_migrations(0)), re.MULTILINE)
    )


@cache
def widen_values(name: str, rows: int) -> str:
    """Return a named statement with `rows` value tuples in place of one."""
    return re.sub(
        r"VALUES (\([?, ]+\))", lambda row: f"VALUES {', '.join([row[1]] * rows)}", QUERIES[name]
    )


def add_condition(name: str, condition: str, tail: str = "") -> str:
    """Return a named statement with a compiled filter and a fixed tail added to its WHERE."""
    return f"{QUERIES[name]} AND ({condition}) {tail}" if condition else f"{QUERIES[name]} {tail}"


# SQLite before 3.51.3: concurrent write and checkpoint can corrupt a WAL database.
MIN_SQLITE_VERSION: Final = (3, 51, 3)
SCHEMA_VERSION: Final = max(SCHEMA_FILES)
STATEMENT_CACHE_SIZE: Final = 256
ROWS_PER_STATEMENT: Final = 8
"""Rows per multi-row statement; single-row statements take twice the time."""
RETRY_INTERVAL: Final = 0.01
MAX_IDLE_CONNECTIONS: Final = 8
MIN_FILE_BYTES: Final = 512
SQLITE_MAGIC: Final = b"SQLite format 3\0"
REQUIRED_TABLES: Final = frozenset({"meta", "account", "entry", "tombstone"})
READ_ONLY_ERRNOS: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
NO_SPACE_CODES: Final = frozenset({apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP})
NO_SPACE_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
INHERITED_CONNECTIONS: Final[list[object]] = []
"""Connections inherited by a child; closing them would break the parent's."""


def parse_url(url: str) -> Path:
    """Return the file path of a `sqlite:///` URL."""
    scheme, separator, path = url.partition(":///")
    if scheme != "sqlite" or not separator or not path or "\0" in path:
        raise ConfigError(
            f"{url!r} is not a SQLite URL.",
            hint="Such as sqlite:///memory.db or sqlite:////tmp/m.db.",
        )
    if path == ":memory:":
        raise ConfigError(
            "A SQLite store needs a file; :memory: is not one.",
            hint="For one in memory write ram://.",
        )
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{url!r} names an unknown home folder: {error}.") from error


def check_sqlite_version(library_version: str | None = None) -> None:
    """Refuse a SQLite version that can corrupt a shared WAL database."""
    version = apsw.sqlite_lib_version() if library_version is None else library_version
    if tuple(int(part) for part in version.split(".")[:3]) < MIN_SQLITE_VERSION:
        minimum = ".".join(map(str, MIN_SQLITE_VERSION))
        raise StoreVersion(
            f"SQLite {version} has a known WAL corruption bug.", hint=f"Install apsw >= {minimum}."
        )


class ErrorTranslator:
    """Translates SQLite errors; a class because a generator costs three times as much per write."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        translation = None if error is None else _translate_error(error)
        if translation is not None:
            raise translation from error


def _translate_error(error: BaseException) -> ToldError | None:
    """Return told's error for a SQLite error, or None."""
    match error:
        case apsw.BusyError():
            return StoreBusy()
        case apsw.FullError():
            return StoreFull()
        case apsw.IOError() if getattr(error, "extendedresult", 0) in NO_SPACE_CODES:
            return StoreFull()
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreReadOnly()
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError() | UnicodeDecodeError():
            return StoreCorrupt(f"The store's file is damaged: {error}.")
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return StoreClosed()
        case apsw.Error():
            return StoreError(f"SQLite could not serve the request: {error}.")
        case UnicodeEncodeError():
            return InvalidInput("A value contains an unpaired surrogate, which is not valid text.")
        case OverflowError():
            return InvalidInput("A number is beyond 64 bits.")
        case _:
            return None


_ERROR_TRANSLATOR: Final = ErrorTranslator()


def translate_errors() -> ErrorTranslator:
    """Return a context manager that translates SQLite errors."""
    return _ERROR_TRANSLATOR


def build_path_error(path: Path, error: OSError) -> StoreError:
    """Return the store error for an operating-system error on a path."""
    message = f"{path} cannot be used: {error.strerror}."
    if error.errno in READ_ONLY_ERRNOS:
        return StoreReadOnly(message)
    return StoreFull(message) if error.errno in NO_SPACE_ERRNOS else StoreError(message)


class Database:
    """One file with a pool of reading connections and one writing connection."""

    def __init__(self, path: Path, *, durability: str, busy_timeout: float) -> None:
        self.path = path
        self.busy_timeout = busy_timeout
        self._durability = durability
        self._idle: list[apsw.Connection] = []
        self._open: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._closed = False
        self._inherited: list[apsw.Connection] = []
        self._lock = threading.Lock()
        check_sqlite_version()
        self.writer: apsw.Connection | None = self._open_or_create()

    @contextmanager
    def borrow_connection(self, *, in_transaction: bool = False) -> Iterator[apsw.Connection]:
        """Borrow the most recently used reading connection."""
        if self._closed:
            raise StoreClosed()
        try:
            db = self._idle.pop()
        except IndexError:
            db = self._open_reader()
        reusable = True
        try:
            with translate_errors():
                if in_transaction:
                    db.execute("BEGIN")
                yield db
                if in_transaction:
                    db.execute("COMMIT")
        except BaseException as error:
            reusable = isinstance(error, Exception)
            raise
        finally:
            self._return_connection(db, reusable=reusable)

    def read_transaction(self) -> AbstractContextManager[apsw.Connection]:
        """Open a consistent read snapshot."""
        return self.borrow_connection(in_transaction=True)

    def open_writer(self) -> apsw.Connection:
        """Open a new writing connection; the previous one must be closed."""
        if self._closed:
            raise StoreClosed()
        with translate_errors(), self._lock:
            self.writer = self._connect()
        return self.writer

    def close_writer(self) -> None:
        """Close the writing connection."""
        self._close_connection(self.writer)
        self.writer = None

    def close_before_fork(self) -> None:
        """Close every idle connection and open none until `resume_after_fork`.

        SQLite's file locks belong to the process: a child that inherits an open file would
        treat its parent's locks as its own, and others could remove the log it writes to.
        """
        self._lock.acquire()
        self.close_writer()
        deadline = monotonic() + self.busy_timeout
        while True:
            while self._idle:
                self._close_idle()
            with suppress(RuntimeError):  # closed by another thread meanwhile
                self._inherited = list(self._open)
                if not self._inherited or monotonic() > deadline:
                    return
            sleep(RETRY_INTERVAL)

    def resume_after_fork(self) -> None:
        """Allow connections again after a fork."""
        self._inherited = []
        self._lock.release()

    def reset_in_child(self, *, closed_before_fork: bool) -> None:
        """Start over in a child, unless it inherited an open connection."""
        if not self._closed and (self._inherited or not closed_before_fork):
            self._closed = True
            INHERITED_CONNECTIONS.append((self.writer, self._idle, self._inherited))
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close idle connections; busy ones close when they are returned."""
        with self._lock:
            self._closed = True
            self.close_writer()
            while self._idle:
                self._close_idle()

    def _return_connection(self, db: apsw.Connection, *, reusable: bool) -> None:
        """Return a connection to the pool unless an interrupt left a statement open."""
        if reusable and db.in_transaction:
            db.execute("ROLLBACK")
        if not reusable or self._closed:
            self._close_connection(db)
            return
        self._idle.append(db)
        if self._closed or len(self._idle) > MAX_IDLE_CONNECTIONS:
            self._close_idle()

    def _close_idle(self) -> None:
        """Close one idle connection, if any."""
        with suppress(IndexError):
            self._close_connection(self._idle.pop())

    def _close_connection(self, db: apsw.Connection | None) -> None:
        if db is not None:
            self._open.discard(db)
            db.close(True)

    @property
    def closed(self) -> bool:
        """Return whether the store is closed."""
        return self._closed

    def _open_reader(self) -> apsw.Connection:
        with translate_errors(), self._lock:
            db = self._connect()
            db.execute("PRAGMA query_only = ON")
        return db

    def _connect(self) -> apsw.Connection:
        db = apsw.Connection(str(self.path), statementcachesize=STATEMENT_CACHE_SIZE)
        try:
            self._open.add(db)
            db.set_busy_timeout(round(self.busy_timeout * 1000))
            # Plans that depend on bound values are recompiled per execution, at ten times the cost.
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            db.execute(
                QUERIES[f"pragmas_{self._durability}"]
            ).fetchall()  # an unread result blocks the next statement
        except BaseException:
            self._close_connection(db)
            raise
        return db

    def _open_or_create(self) -> apsw.Connection:
        """Open the file, creating it and its tables if missing; leave foreign tables alone."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _ensure_file(self.path)
        except OSError as error:
            raise build_path_error(self.path, error) from error
        with translate_errors():
            try:
                return self._open_with_retry()
            except apsw.CantOpenError as error:
                if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
                    raise
                raise StoreReadOnly() from error

    def _open_with_retry(self) -> apsw.Connection:
        """Open the file, retrying while another process closes it."""
        deadline = monotonic() + self.busy_timeout
        while True:
            try:
                return self._open_migrated()
            except apsw.BusyError:
                if monotonic() > deadline:
                    raise
                sleep(RETRY_INTERVAL)

    def _open_migrated(self) -> apsw.Connection:
        db = self._connect()
        try:
            _check_schema(db, self.path)
            db.execute("PRAGMA journal_mode = WAL")
            _migrate_schema(db)
        except BaseException:
            db.close(True)
            raise
        return db


def _ensure_file(path: Path) -> None:
    """Create the file for its owner only; refuse a path that cannot be a database."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with path.open("rb") as file:
        header = file.read(MIN_FILE_BYTES)
    if header and (len(header) < MIN_FILE_BYTES or not header.startswith(SQLITE_MAGIC)):
        raise StoreCorrupt(
            f"{path} is not a SQLite database, or no longer one.",
            hint="Name the right file, or restore the last backup.",
        )


def _check_schema(db: apsw.Connection, path: Path) -> None:
    """Refuse foreign databases and unknown schema versions before changing anything."""
    tables = {name for (name,) in db.execute(QUERIES["tables"])}
    if not tables:
        return
    if not tables >= REQUIRED_TABLES:
        raise StoreVersion(
            f"{path} is the database of another program.", hint="Choose another file."
        )
    version = db.execute(QUERIES["schema_version"]).get
    if version not in SCHEMA_FILES:
        is_older = isinstance(version, int) and version < SCHEMA_VERSION
        hint = (
            "Export it with the version that wrote it and import that into a new file."
            if is_older
            else "Upgrade told."
        )
        raise StoreVersion(
            f"The file has schema {version}; this version of told reads schema {SCHEMA_VERSION}.",
            hint=hint,
        )


def _migrate_schema(db: apsw.Connection) -> None:
    """Create or migrate the tables once, even with concurrent processes."""
    if _read_schema_version(db) < SCHEMA_VERSION:
        with write_transaction(db):
            for statements in load_migrations(_read_schema_version(db)):
                db.execute(statements)
            db.execute(QUERIES["set_schema_version"], (SCHEMA_VERSION,))


def _read_schema_version(db: apsw.Connection) -> int:
    """Return the file's schema version, 0 if it has none."""
    return db.execute(QUERIES["schema_version"]).get if db.execute(QUERIES["has_schema"]).get else 0


class ReadSnapshot:
    """A consistent view of the file; inside a transaction, that transaction's."""

    __slots__ = ("_begins", "_db")

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._begins = not db.in_transaction

    def __enter__(self) -> apsw.Connection:
        if self._begins:
            self._db.execute("BEGIN")
        return self._db

    def __exit__(self, *_: object) -> None:
        if self._begins:
            self._db.execute("COMMIT")


@contextmanager
def write_transaction(db: apsw.Connection) -> Iterator[None]:
    """Run a transaction that takes the write lock at once."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class QueryResult(Protocol):
    """The rows of a statement."""

    @property
    def get(self) -> Any:
        """Return the first value of the first row, or None."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return every row."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows."""


class EmptyResult:
    """The result of a lookup that can match nothing."""

    get = None

    def fetchone(self) -> None:
        """Return None."""

    def fetchall(self) -> list[Any]:
        """Return no rows."""
        return []

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def run_query(db: apsw.Connection, name: str, *params: Any) -> QueryResult:
    """Execute a named query."""
    return run_named(db, name, params)


def run_named(db: Any, name: str, params: Mapping[str, Any] | tuple[Any, ...]) -> QueryResult:
    """Execute a named query with named parameters; unencodable text matches nothing."""
    try:
        result: QueryResult = db.execute(QUERIES[name], params)
    except UnicodeEncodeError:
        if QUERIES[name].startswith(("SELECT", "WITH")):
            return EmptyResult()
        raise
    return result


def run_many(db: apsw.Connection, name: str, rows: Iterable[Sequence[Any]]) -> QueryResult:
    """Execute a named query once per row."""
    result: QueryResult = db.executemany(QUERIES[name], rows)
    return result


def run_batched(
    db: apsw.Connection, name: str, rows: Iterable[Sequence[Any]], count: int, *shared_params: Any
) -> list[Any]:
    """Execute a multi-row named query in batches and return its results."""
    if count < ROWS_PER_STATEMENT:
        return list(
            db.executemany(
                QUERIES[name], ((*row, *shared_params) for row in rows) if shared_params else rows
            )
        )
    remaining = iter(rows)
    batches = (
        (*chain.from_iterable(islice(remaining, ROWS_PER_STATEMENT)), *shared_params)
        for _ in range(count // ROWS_PER_STATEMENT)
    )
    results = list(db.executemany(widen_values(name, ROWS_PER_STATEMENT), batches))
    return results + run_batched(db, name, remaining, count % ROWS_PER_STATEMENT, *shared_params)
