"""Connections: the version gate, the pragmas, and foreign errors turned into ours at this boundary only."""

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
"""The schema of the first file, and the oldest that is brought up to date."""

SCHEMA_FILES: Final = {
    OLDEST_SCHEMA: "schema.sql",
    3: "schema-3.sql",
    4: "schema-4.sql",
    5: "schema-5.sql",
    7: "schema-7.sql",
}
"""The file that makes each schema out of the one before it, the first out of nothing; a short-lived 6 is refused."""


@cache
def load_migrations(version: int) -> tuple[str, ...]:
    """The statements that bring a store of a schema, 0 for an empty file, up to this one."""
    return tuple(_read_sql_file(name) for number, name in SCHEMA_FILES.items() if number > version)


@cache
def list_own_tables() -> frozenset[str]:
    """The tables that are told's own; a file may hold others."""
    return frozenset(
        re.findall(r"^CREATE TABLE (\w+)", "\n".join(load_migrations(0)), re.MULTILINE)
    )


@cache
def widen_values(name: str, rows: int) -> str:
    """A named statement that takes so many rows of values where it says one."""
    return re.sub(
        r"VALUES (\([?, ]+\))", lambda row: f"VALUES {', '.join([row[1]] * rows)}", QUERIES[name]
    )


def add_condition(name: str, condition: str, tail: str = "") -> str:
    """A named statement with a compiled filter's condition, and a fixed tail, added to its WHERE."""
    return f"{QUERIES[name]} AND ({condition}) {tail}" if condition else f"{QUERIES[name]} {tail}"


# Before 3.51.3 two connections that write and checkpoint at the same moment can corrupt a WAL database.
MIN_SQLITE_VERSION: Final = (3, 51, 3)
SCHEMA_VERSION: Final = max(SCHEMA_FILES)
STATEMENT_CACHE_SIZE: Final = 256
ROWS_PER_STATEMENT: Final = 8
"""How many rows one statement takes where there are as many: begun for each of them, it takes twice the time."""
RETRY_INTERVAL: Final = 0.01
MAX_IDLE_CONNECTIONS: Final = 8
MIN_FILE_BYTES: Final = 512
SQLITE_MAGIC: Final = b"SQLite format 3\0"
REQUIRED_TABLES: Final = frozenset({"meta", "account", "entry", "tombstone"})
READ_ONLY_ERRNOS: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
NO_SPACE_CODES: Final = frozenset({apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP})
NO_SPACE_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
INHERITED_CONNECTIONS: Final[list[object]] = []
"""Connections that a child process inherited: to close them would end what its parent is doing with them."""


def parse_url(url: str) -> Path:
    """The file a `sqlite:///` URL names."""
    scheme, separator, path = url.partition(":///")
    if scheme != "sqlite" or not separator or not path or "\0" in path:
        raise ConfigError(
            f"{url!r} is not a SQLite URL.",
            hint="Such as sqlite:///memory.db or sqlite:////tmp/m.db.",
        )
    if path == ":memory:":
        raise ConfigError(
            "A SQLite store is a file, which :memory: is not.",
            hint="For one in memory write ram://.",
        )
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{url!r} names a home that cannot be found: {error}.") from error


def check_sqlite_version(library_version: str | None = None) -> None:
    """Refuse a SQLite that can corrupt a store shared by two connections."""
    version = apsw.sqlite_lib_version() if library_version is None else library_version
    if tuple(int(part) for part in version.split(".")[:3]) < MIN_SQLITE_VERSION:
        minimum = ".".join(map(str, MIN_SQLITE_VERSION))
        raise StoreVersion(
            f"SQLite {version} has a known WAL corruption bug.", hint=f"Install apsw >= {minimum}."
        )


class ErrorTranslator:
    """Turns SQLite's errors into told's; a class, for every write passes here and a generator costs thrice as much."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        translation = None if error is None else _translate_error(error)
        if translation is not None:
            raise translation from error


def _translate_error(error: BaseException) -> ToldError | None:
    """What an error of SQLite is to us; None for one that is not SQLite's."""
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
            return InvalidInput("A value holds half of a surrogate pair, which is not text.")
        case OverflowError():
            return InvalidInput("A number is beyond 64 bits.")
        case _:
            return None


_ERROR_TRANSLATOR: Final = ErrorTranslator()


def translate_errors() -> ErrorTranslator:
    """What turns SQLite's errors into told's."""
    return _ERROR_TRANSLATOR


def build_path_error(path: Path, error: OSError) -> StoreError:
    """What the system's refusal of a path means for a store."""
    error_class = (
        StoreReadOnly
        if error.errno in READ_ONLY_ERRNOS
        else StoreFull
        if error.errno in NO_SPACE_ERRNOS
        else StoreError
    )
    return error_class(f"{path} cannot be used: {error.strerror}.")


class Database:
    """One file: connections for those who read, lent and given back, and one for whoever writes."""

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
        """A connection for a quick look: the one last given back, whose pages and statements are still at hand."""
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
        """One consistent snapshot of the file."""
        return self.borrow_connection(in_transaction=True)

    def open_writer(self) -> apsw.Connection:
        """A new connection for whoever writes, the last one having been closed."""
        if self._closed:
            raise StoreClosed()
        with translate_errors(), self._lock:
            self.writer = self._connect()
        return self.writer

    def close_writer(self) -> None:
        """Close the connection of whoever writes."""
        self._close_connection(self.writer)
        self.writer = None

    def close_before_fork(self) -> None:
        """Close every connection before a fork and open none until `rejoin`; one that is not given back is inherited.

        SQLite takes the locks of a file once for the whole process. A child that inherits an open file takes its
        parent's locks for its own, so others think that nobody uses the log it writes to, and remove it.
        """
        self._lock.acquire()
        self.close_writer()
        deadline = monotonic() + self.busy_timeout
        while True:
            while self._idle:
                self._close_idle()
            with suppress(RuntimeError):  # while it was looked through, somebody closed one
                self._inherited = list(self._open)
                if not self._inherited or monotonic() > deadline:
                    return
            sleep(RETRY_INTERVAL)

    def resume_after_fork(self) -> None:
        """Let connections be opened again after a fork."""
        self._inherited = []
        self._lock.release()

    def reset_in_child(self, *, closed_before_fork: bool) -> None:
        """Begin anew in a child process, unless it inherited a connection: that can be neither used nor closed here."""
        if not self._closed and (self._inherited or not closed_before_fork):
            self._closed = True
            INHERITED_CONNECTIONS.append((self.writer, self._idle, self._inherited))
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close every connection that is not in use; one that is goes when it is given back."""
        with self._lock:
            self._closed = True
            self.close_writer()
            while self._idle:
                self._close_idle()

    def _return_connection(self, db: apsw.Connection, *, reusable: bool) -> None:
        """Keep a connection for the next one, unless an interrupt left a statement or a snapshot of it under way."""
        if reusable and db.in_transaction:
            db.execute("ROLLBACK")
        if not reusable or self._closed:
            self._close_connection(db)
            return
        self._idle.append(db)
        if self._closed or len(self._idle) > MAX_IDLE_CONNECTIONS:
            self._close_idle()

    def _close_idle(self) -> None:
        """Close a connection nobody needs, if there is one left."""
        with suppress(IndexError):
            self._close_connection(self._idle.pop())

    def _close_connection(self, db: apsw.Connection | None) -> None:
        if db is not None:
            self._open.discard(db)
            db.close(True)

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
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
            # A plan that looks at the values bound to it is made anew for each, at ten times the cost of its use.
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            db.execute(
                QUERIES[f"pragmas_{self._durability}"]
            ).fetchall()  # unread, an answer holds up the next one
        except BaseException:
            self._close_connection(db)
            raise
        return db

    def _open_or_create(self) -> apsw.Connection:
        """Open the file, making it and its tables if they are not there; what is not ours is left as it is."""
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
        """Open the file, waiting for a process that is just leaving it: SQLite's own patience does not cover that."""
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
    """Make the file, for its owner alone, if it is not there; refuse one that can never have been a database."""
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
    """Refuse the database of another program and a store of another age before anything is changed in it."""
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
            "Export it with the told that made it and import that into a new file."
            if is_older
            else "Upgrade told."
        )
        raise StoreVersion(
            f"The file has schema {version}; this told reads schema {SCHEMA_VERSION}.", hint=hint
        )


def _migrate_schema(db: apsw.Connection) -> None:
    """Create the tables, or bring them up to this schema, once, however many processes try."""
    if _read_schema_version(db) < SCHEMA_VERSION:
        with write_transaction(db):
            for statements in load_migrations(_read_schema_version(db)):
                db.execute(statements)
            db.execute(QUERIES["set_schema_version"], (SCHEMA_VERSION,))


def _read_schema_version(db: apsw.Connection) -> int:
    """The schema of the file; 0 if it has none yet."""
    return db.execute(QUERIES["schema_version"]).get if db.execute(QUERIES["has_schema"]).get else 0


class ReadSnapshot:
    """One consistent view of the file; inside a transaction, that transaction's."""

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
    """A write transaction that never has to upgrade from reading."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class QueryResult(Protocol):
    """The rows of a statement; their types are the schema's business."""

    @property
    def get(self) -> Any:
        """The first value of the first row, or None."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """Every row."""

    def __iter__(self) -> Iterator[Any]:
        """Row by row."""


class EmptyResult:
    """The rows that match what no row can hold."""

    get = None

    def fetchone(self) -> None:
        """No row."""

    def fetchall(self) -> list[Any]:
        """No rows."""
        return []

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def run_query(db: apsw.Connection, name: str, *params: Any) -> QueryResult:
    """Execute a named query."""
    return run_named(db, name, params)


def run_named(db: Any, name: str, params: Mapping[str, Any] | tuple[Any, ...]) -> QueryResult:
    """Execute a named query with named parameters; a lookup of what is not even text finds nothing."""
    try:
        result: QueryResult = db.execute(QUERIES[name], params)
    except UnicodeEncodeError:
        if QUERIES[name].startswith(("SELECT", "WITH")):
            return EmptyResult()
        raise
    return result


def run_many(db: apsw.Connection, name: str, rows: Iterable[Sequence[Any]]) -> QueryResult:
    """Execute a named query once for each row."""
    result: QueryResult = db.executemany(QUERIES[name], rows)
    return result


def run_batched(
    db: apsw.Connection, name: str, rows: Iterable[Sequence[Any]], count: int, *shared_params: Any
) -> list[Any]:
    """Execute a named query that takes a row of values with so many rows, several at a time; what it says of each."""
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
