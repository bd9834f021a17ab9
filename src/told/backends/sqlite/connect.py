"""Connections: the version gate, the pragmas, and foreign errors turned into ours at this boundary only."""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, Protocol

import apsw

from told.backends.sqlite.sql import QUERIES, SCHEMAS, steps, widened
from told.core.errors import (
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

# Before 3.51.3 two connections that write and checkpoint at the same moment can corrupt a WAL database.
LEAST_SQLITE: Final = (3, 51, 3)
SCHEMA: Final = max(SCHEMAS)
STATEMENTS: Final = 256
TOGETHER: Final = 8
"""How many rows one statement takes where there are as many: begun for each of them, it takes twice the time."""
PAUSE: Final = 0.01
SPARE: Final = 8
LEAST_BYTES: Final = 512
MAGIC: Final = b"SQLite format 3\0"
OURS: Final = frozenset({"meta", "account", "entry", "tombstone"})
READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
NO_ROOM: Final = frozenset({apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP})
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
STRANDED: Final[list[object]] = []
"""Connections that a child process inherited: to close them would end what its parent is doing with them."""


def path_of(url: str) -> Path:
    """The file a `sqlite:///` URL names."""
    scheme, mark, path = url.partition(":///")
    if scheme != "sqlite" or not mark or not path or "\0" in path:
        raise ConfigError(f"{url!r} is not a SQLite URL.", hint="Such as sqlite:///memory.db or sqlite:////tmp/m.db.")
    if path == ":memory:":
        raise ConfigError("A SQLite store is a file, which :memory: is not.", hint="For one in memory write ram://.")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{url!r} names a home that cannot be found: {error}.") from error


def check_version(given: str | None = None) -> None:
    """Refuse a SQLite that can corrupt a store shared by two connections."""
    version = apsw.sqlite_lib_version() if given is None else given
    if tuple(int(part) for part in version.split(".")[:3]) < LEAST_SQLITE:
        least = ".".join(map(str, LEAST_SQLITE))
        raise StoreVersion(f"SQLite {version} has a known WAL corruption bug.", hint=f"Install apsw >= {least}.")


class Translated:
    """Turns SQLite's errors into told's; a class, for every write passes here and a generator costs thrice as much."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        ours = None if error is None else _ours(error)
        if ours is not None:
            raise ours from error


def _ours(error: BaseException) -> ToldError | None:
    """What an error of SQLite is to us; None for one that is not SQLite's."""
    match error:
        case apsw.BusyError():
            return StoreBusy()
        case apsw.FullError():
            return StoreFull()
        case apsw.IOError() if getattr(error, "extendedresult", 0) in NO_ROOM:
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


_TRANSLATED: Final = Translated()


def translated() -> Translated:
    """What turns SQLite's errors into told's."""
    return _TRANSLATED


def unusable(path: Path, error: OSError) -> StoreError:
    """What the system's refusal of a path means for a store."""
    kind = StoreReadOnly if error.errno in READ_ONLY else StoreFull if error.errno in FULL else StoreError
    return kind(f"{path} cannot be used: {error.strerror}.")


class Database:
    """One file: connections for those who read, lent and given back, and one for whoever writes."""

    def __init__(self, path: Path, *, durability: str, busy_timeout: float) -> None:
        self.path = path
        self.patience = busy_timeout
        self._durability = durability
        self._spare: list[apsw.Connection] = []
        self._open: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._closed = False
        self._inherited: list[apsw.Connection] = []
        self._lock = threading.Lock()
        check_version()
        self.writer: apsw.Connection | None = self._first()

    @contextmanager
    def lent(self, *, whole: bool = False) -> Iterator[apsw.Connection]:
        """A connection for a quick look: the one last given back, whose pages and statements are still at hand."""
        if self._closed:
            raise StoreClosed()
        try:
            db = self._spare.pop()
        except IndexError:
            db = self._reading()
        sound = True
        try:
            with translated():
                if whole:
                    db.execute("BEGIN")
                yield db
                if whole:
                    db.execute("COMMIT")
        except BaseException as error:
            sound = isinstance(error, Exception)
            raise
        finally:
            self._return(db, sound=sound)

    def reading(self) -> AbstractContextManager[apsw.Connection]:
        """One consistent snapshot of the file."""
        return self.lent(whole=True)

    def writing(self) -> apsw.Connection:
        """A new connection for whoever writes, the last one having been closed."""
        if self._closed:
            raise StoreClosed()
        with translated(), self._lock:
            self.writer = self._connect()
        return self.writer

    def forsake(self) -> None:
        """Close the connection of whoever writes."""
        self._quit(self.writer)
        self.writer = None

    def leave(self) -> None:
        """Close every connection before a fork and open none until `rejoin`; one that is not given back is inherited.

        SQLite takes the locks of a file once for the whole process. A child that inherits an open file takes its
        parent's locks for its own, so others think that nobody uses the log it writes to, and remove it.
        """
        self._lock.acquire()
        self.forsake()
        deadline = monotonic() + self.patience
        while True:
            while self._spare:
                self._dismiss()
            with suppress(RuntimeError):  # while it was looked through, somebody closed one
                self._inherited = list(self._open)
                if not self._inherited or monotonic() > deadline:
                    return
            sleep(PAUSE)

    def rejoin(self) -> None:
        """Let connections be opened again after a fork."""
        self._inherited = []
        self._lock.release()

    def renew(self, *, left: bool) -> None:
        """Begin anew in a child process, unless it inherited a connection: that can be neither used nor closed here."""
        if not self._closed and (self._inherited or not left):
            self._closed = True
            STRANDED.append((self.writer, self._spare, self._inherited))
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close every connection that is not in use; one that is goes when it is given back."""
        with self._lock:
            self._closed = True
            self.forsake()
            while self._spare:
                self._dismiss()

    def _return(self, db: apsw.Connection, *, sound: bool) -> None:
        """Keep a connection for the next one, unless an interrupt left a statement or a snapshot of it under way."""
        if sound and db.in_transaction:
            db.execute("ROLLBACK")
        if not sound or self._closed:
            self._quit(db)
            return
        self._spare.append(db)
        if self._closed or len(self._spare) > SPARE:
            self._dismiss()

    def _dismiss(self) -> None:
        """Close a connection nobody needs, if there is one left."""
        with suppress(IndexError):
            self._quit(self._spare.pop())

    def _quit(self, db: apsw.Connection | None) -> None:
        if db is not None:
            self._open.discard(db)
            db.close(True)

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        return self._closed

    def _reading(self) -> apsw.Connection:
        with translated(), self._lock:
            db = self._connect()
            db.execute("PRAGMA query_only = ON")
        return db

    def _connect(self) -> apsw.Connection:
        db = apsw.Connection(str(self.path), statementcachesize=STATEMENTS)
        try:
            self._open.add(db)
            db.set_busy_timeout(round(self.patience * 1000))
            # A plan that looks at the values bound to it is made anew for each, at ten times the cost of its use.
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            db.execute(QUERIES[f"pragmas_{self._durability}"]).fetchall()  # unread, an answer holds up the next one
        except BaseException:
            self._quit(db)
            raise
        return db

    def _first(self) -> apsw.Connection:
        """Open the file, making it and its tables if they are not there; what is not ours is left as it is."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _touch(self.path)
        except OSError as error:
            raise unusable(self.path, error) from error
        with translated():
            try:
                return self._patiently()
            except apsw.CantOpenError as error:
                if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
                    raise
                raise StoreReadOnly() from error

    def _patiently(self) -> apsw.Connection:
        """Open the file, waiting for a process that is just leaving it: SQLite's own patience does not cover that."""
        deadline = monotonic() + self.patience
        while True:
            try:
                return self._ready()
            except apsw.BusyError:
                if monotonic() > deadline:
                    raise
                sleep(PAUSE)

    def _ready(self) -> apsw.Connection:
        db = self._connect()
        try:
            _recognise(db, self.path)
            db.execute("PRAGMA journal_mode = WAL")
            _prepare(db)
        except BaseException:
            db.close(True)
            raise
        return db


def _touch(path: Path) -> None:
    """Make the file, for its owner alone, if it is not there; refuse one that can never have been a database."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with path.open("rb") as file:
        head = file.read(LEAST_BYTES)
    if head and (len(head) < LEAST_BYTES or not head.startswith(MAGIC)):
        raise StoreCorrupt(
            f"{path} is not a SQLite database, or no longer one.",
            hint="Name the right file, or restore the last backup.",
        )


def _recognise(db: apsw.Connection, path: Path) -> None:
    """Refuse the database of another program and a store of another age before anything is changed in it."""
    tables = {name for (name,) in db.execute(QUERIES["tables"])}
    if not tables:
        return
    if not tables >= OURS:
        raise StoreVersion(f"{path} is the database of another program.", hint="Choose another file.")
    version = db.execute(QUERIES["schema_version"]).get
    if version not in SCHEMAS:
        older = isinstance(version, int) and version < SCHEMA
        hint = "Export it with the told that made it and import that into a new file." if older else "Upgrade told."
        raise StoreVersion(f"The file has schema {version}; this told reads schema {SCHEMA}.", hint=hint)


def _prepare(db: apsw.Connection) -> None:
    """Create the tables, or bring them up to this schema, once, however many processes try."""
    if _version(db) < SCHEMA:
        with immediate(db):
            for statements in steps(_version(db)):
                db.execute(statements)
            db.execute(QUERIES["set_schema_version"], (SCHEMA,))


def _version(db: apsw.Connection) -> int:
    """The schema of the file; 0 if it has none yet."""
    return db.execute(QUERIES["schema_version"]).get if db.execute(QUERIES["has_schema"]).get else 0


class Snapshot:
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
def immediate(db: apsw.Connection) -> Iterator[None]:
    """A write transaction that never has to upgrade from reading."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class Result(Protocol):
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


class Nothing:
    """The rows that match what no row can hold."""

    get = None

    def fetchone(self) -> None:
        """No row."""

    def fetchall(self) -> list[Any]:
        """No rows."""
        return []

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def run(db: apsw.Connection, name: str, *params: Any) -> Result:
    """Execute a named query."""
    return run_named(db, name, params)


def run_named(db: Any, name: str, params: Mapping[str, Any] | tuple[Any, ...]) -> Result:
    """Execute a named query with named parameters; a lookup of what is not even text finds nothing."""
    try:
        found: Result = db.execute(QUERIES[name], params)
    except UnicodeEncodeError:
        if QUERIES[name].startswith(("SELECT", "WITH")):
            return Nothing()
        raise
    return found


def run_many(db: apsw.Connection, name: str, rows: Iterable[Sequence[Any]]) -> Result:
    """Execute a named query once for each row."""
    found: Result = db.executemany(QUERIES[name], rows)
    return found


def run_rows(db: apsw.Connection, name: str, rows: Iterable[Sequence[Any]], count: int, *shared: Any) -> list[Any]:
    """Execute a named query that takes a row of values with so many rows, several at a time; what it says of each."""
    if count < TOGETHER:
        return list(db.executemany(QUERIES[name], ((*row, *shared) for row in rows) if shared else rows))
    left = iter(rows)
    sets = ((*chain.from_iterable(islice(left, TOGETHER)), *shared) for _ in range(count // TOGETHER))
    found = list(db.executemany(widened(name, TOGETHER), sets))
    return found + run_rows(db, name, left, count % TOGETHER, *shared)
