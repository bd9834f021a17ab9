"""Read and write export and backup files; written files are private and replaced atomically."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Literal

from told.errors import InvalidInput, StoreError
from told.flow import Flow, call
from told.ports import Store
from told.text.tokens import format_value, make_snippet

SQLITE_HEADER = b"SQLite format 3\0"
OWNER_ONLY = 0o600
OVERWRITE_HINT = "Choose another name, or write to the file in place: `told export - > FILE`."
BINARY_FILE_HINT = 'Open a file with open(path, "rb") or open(path, "wb"), or give its path.'
CREATE_FLAGS = os.O_CREAT | os.O_EXCL | os.O_WRONLY


def to_path(value: Any, name: str) -> Path:
    """Check a path and return it."""
    hint = "Give a path such as memory.jsonl."
    if (
        not isinstance(value, str | os.PathLike)
        or not isinstance(os.fspath(value), str)
        or not os.fspath(value)
    ):
        raise InvalidInput(f"{name} must be a path, not {format_value(value)}.", hint=hint)
    try:
        if b"\0" not in os.fsencode(value):
            return Path(value)
    except UnicodeEncodeError:
        pass
    raise InvalidInput(f"{format_value(value)} is not a valid file name.", hint=hint)


def open_for_reading(path: Path) -> BinaryIO:
    """Open a file for reading."""
    return _open_file(path, path, os.O_RDONLY, "rb")


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces an earlier one once it is complete and synced.

    A database and its log are never overwritten. A pipe or device is written to directly.
    """
    real_path = Path(os.path.realpath(path))
    if _is_database(Path(str(real_path).removesuffix("-wal").removesuffix("-shm"))):
        raise InvalidInput(
            f"{_shorten_path(path)} belongs to a database.",
            hint="Name another file for the export.",
        )
    exists = _exists(path)
    target = (
        _write_atomically(real_path, path)
        if path.is_file() or not exists
        else _open_file(path, path, os.O_WRONLY, "wb")
    )
    try:
        with target as file:
            yield file
    except OSError as error:
        hint = "The existing file is unchanged." if path.is_file() else "Check the disk."
        raise StoreError(
            f"{_shorten_path(path)} cannot be written: {error.strerror or error}.", hint=hint
        ) from error


@contextmanager
def _write_atomically(real_path: Path, shown_path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that is renamed once it is synced."""
    temp_path = _temp_sibling(real_path)
    try:
        with _create_temp_file(temp_path, real_path, shown_path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _move_into_place(temp_path, real_path, shown_path)
        _sync_directory(real_path)
    finally:
        temp_path.unlink(missing_ok=True)


def _create_temp_file(temp_path: Path, real_path: Path, shown_path: Path) -> BinaryIO:
    """Create the temporary file; the error hint suggests writing in place if that is possible."""
    try:
        return _open_file(temp_path, shown_path, CREATE_FLAGS, "wb")
    except InvalidInput as error:
        error.hint = (
            f"No file can be created beside it. {OVERWRITE_HINT}"
            if real_path.is_file()
            else error.hint
        )
        raise


def _move_into_place(temp_path: Path, real_path: Path, shown_path: Path) -> None:
    """Rename a file; a mount point or a file of another owner cannot be replaced."""
    try:
        temp_path.replace(real_path)
    except OSError as error:
        message = f"{_shorten_path(shown_path)} cannot be replaced: {error.strerror or error}."
        raise StoreError(message, hint=f"It is unchanged. {OVERWRITE_HINT}") from error


@contextmanager
def create_copy(path: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed at the end; an existing file is never overwritten."""
    real_path = Path(os.path.realpath(path))
    if _exists(real_path):
        raise _already_exists_error(path)
    temp_path = _temp_sibling(real_path)
    _open_file(temp_path, path, CREATE_FLAGS, "wb").close()
    temp_path.unlink()
    try:
        yield temp_path
        os.close(os.open(real_path, CREATE_FLAGS, OWNER_ONLY))  # reserves the name
        temp_path.replace(real_path)
        _sync_directory(real_path)
    except FileExistsError as error:
        raise _already_exists_error(path) from error
    except OSError as error:
        raise InvalidInput(
            f"{_shorten_path(path)} cannot be written: {error.strerror}.", hint="Check the path."
        ) from error
    finally:
        with suppress(OSError):
            temp_path.unlink(missing_ok=True)


def _already_exists_error(path: Path) -> StoreError:
    return StoreError(
        f"{_shorten_path(path)} exists already.", hint="Choose another name for the copy."
    )


def _temp_sibling(real_path: Path) -> Path:
    """Return an unused path in the same folder, so that a rename suffices."""
    return real_path.with_name(f".{token_hex(8)}.part")


def _sync_directory(real_path: Path) -> None:
    """Sync a file's folder, where the platform can, so that its new name survives a power cut."""
    with suppress(OSError):
        folder = os.open(real_path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _exists(path: Path) -> bool:
    """Return whether a path exists; raise if it cannot be looked up."""
    try:
        return bool(path.stat())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot_open_error(path, error) from error


def _open_file(path: Path, shown_path: Path, flags: int, mode: Literal["rb", "wb"]) -> BinaryIO:
    try:
        return os.fdopen(os.open(path, flags, OWNER_ONLY), mode)
    except OSError as error:
        raise _cannot_open_error(shown_path, error) from error


def _cannot_open_error(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"{_shorten_path(path)} cannot be opened: {error.strerror}.", hint="Check the path."
    )


def _is_database(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    except OSError:
        return False


def _shorten_path(path: Path) -> str:
    return make_snippet(str(path), 200)


@contextmanager
def open_target(target: Any) -> Iterator[tuple[Callable[[bytes], Any], Path | None]]:
    """Open a path or a binary file for an export; yield its writer and its path, if any."""
    if isinstance(target, str | os.PathLike):
        path = to_path(target, "target")
        with replace_file(path) as file:
            yield _make_writer(file), path
    else:
        yield _make_writer(target), None


def _make_writer(target: Any) -> Callable[[bytes], Any]:
    """Return a function that writes to a file the caller opened and maps its errors."""
    write = getattr(target, "write", None)
    if not callable(write) or isinstance(target, type):
        raise InvalidInput(
            f"target must be a path or a binary file, not {format_value(target)}.",
            hint=BINARY_FILE_HINT,
        )

    def write_bytes(data: bytes) -> Any:
        try:
            return write(data)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"The target does not accept bytes: {str(error).rstrip('.')}.",
                hint=BINARY_FILE_HINT,
            ) from error
        except OSError as error:
            raise StoreError(f"The export cannot be written: {error.strerror or error}.") from error

    return write_bytes


@contextmanager
def open_lines(source: Any) -> Iterator[Iterable[bytes | str]]:
    """Open a path, bytes or a binary file as the lines of an import."""
    if isinstance(source, str | os.PathLike):
        with open_for_reading(to_path(source, "source")) as file:
            yield file
        return
    lines = io.BytesIO(source) if isinstance(source, bytes | bytearray | memoryview) else source
    if not isinstance(lines, Iterable):
        raise InvalidInput(
            f"source must be a path, bytes or a binary file, not {format_value(source)}.",
            hint=BINARY_FILE_HINT,
        )
    yield lines


def read_document(value: Any) -> Any:
    """Return a document's path, URL or bytes; read it if it is an open file."""
    if callable(read := getattr(value, "read", None)) and not isinstance(value, type):
        data = read()
        if not isinstance(data, bytes):
            raise InvalidInput("The file is not open in binary mode.", hint=BINARY_FILE_HINT)
        return data
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        return value
    return to_path(value, "content") if isinstance(value, str | os.PathLike) else value


def copy_store(store: Store, path: Path) -> Flow[None]:
    """Back up a store to a new file, as one effect: a cancellation leaves no partial file."""
    with create_copy(path) as partial:
        yield from call(store.backup, partial)
