"""Files that hold everything: their owner's alone, written beside their place and put there once they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Literal

from told.core.errors import InvalidInput, StoreError
from told.core.text import shown, snippet

DATABASE = b"SQLite format 3\0"
OWNERS_ALONE = 0o600
INTO_IT = "Choose another name, or write into it as it stands, such as `told export - > FILE`."
NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY


def path_of(value: Any, name: str) -> Path:
    """A path that a file can have on this machine."""
    hint = "Give a path such as memory.jsonl."
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str) or not os.fspath(value):
        raise InvalidInput(f"{name} must be a path, not {shown(value)}.", hint=hint)
    try:
        if b"\0" not in os.fsencode(value):
            return Path(value)
    except UnicodeEncodeError:
        pass
    raise InvalidInput(f"No file can be called {shown(value)}.", hint=hint)


def opened(path: Path) -> BinaryIO:
    """A file to read."""
    return _open(path, path, os.O_RDONLY, "rb")


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file to write an export to, which takes the place of an earlier one when all of it is on the disk.

    A database is never written over, nor its log. What is no file, such as a pipe, is written to as it stands.
    """
    place = Path(os.path.realpath(path))
    if _is_database(Path(str(place).removesuffix("-wal").removesuffix("-shm"))):
        raise InvalidInput(f"{_brief(path)} belongs to a database.", hint="Name another file for the export.")
    known = _is_there(path)
    into = _whole(place, path) if path.is_file() or not known else _open(path, path, os.O_WRONLY, "wb")
    try:
        with into as file:
            yield file
    except OSError as error:
        hint = "What was there before is as it was." if path.is_file() else "Check the disk."
        raise StoreError(f"{_brief(path)} cannot be written: {error.strerror or error}.", hint=hint) from error


@contextmanager
def _whole(place: Path, named: Path) -> Iterator[BinaryIO]:
    """A file that goes to its place once all of it is on the disk."""
    part = _beside(place)
    try:
        with _fresh(part, place, named) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _put(part, place, named)
        _remember(place)
    finally:
        part.unlink(missing_ok=True)


def _fresh(part: Path, place: Path, named: Path) -> BinaryIO:
    """A new file beside a place; where nothing can be made, what is there already may yet be written into."""
    try:
        return _open(part, named, NEW, "wb")
    except InvalidInput as error:
        error.hint = f"Nothing can be made beside it. {INTO_IT}" if place.is_file() else error.hint
        raise


def _put(part: Path, place: Path, named: Path) -> None:
    """Give a file its name; one that is mounted there, or that is not ours to take away, can only be written into."""
    try:
        part.replace(place)
    except OSError as error:
        what = f"{_brief(named)} cannot be replaced: {error.strerror or error}."
        raise StoreError(what, hint=f"It is as it was. {INTO_IT}") from error


@contextmanager
def arriving(path: Path) -> Iterator[Path]:
    """Where to make a copy that goes to its place once it is whole; nothing is ever written over."""
    place = Path(os.path.realpath(path))
    if _is_there(place):
        raise _taken(path)
    part = _beside(place)
    _open(part, path, NEW, "wb").close()
    part.unlink()
    try:
        yield part
        os.close(os.open(place, NEW, OWNERS_ALONE))  # from here on the name is nobody else's
        part.replace(place)
        _remember(place)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise InvalidInput(f"{_brief(path)} cannot be written: {error.strerror}.", hint="Check the path.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _taken(path: Path) -> StoreError:
    return StoreError(f"{_brief(path)} exists already.", hint="Choose another name for the copy.")


def _beside(place: Path) -> Path:
    """A name that nobody has, in the same folder, so that a rename is all that is left to do."""
    return place.with_name(f".{token_hex(8)}.part")


def _remember(place: Path) -> None:
    """Make the new name of a file survive a power cut, where a folder can be synced at all."""
    with suppress(OSError):
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _is_there(path: Path) -> bool:
    """Whether there is anything of this name, which must be one that could be."""
    try:
        return bool(path.stat())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unopened(path, error) from error


def _open(path: Path, named: Path, flags: int, mode: Literal["rb", "wb"]) -> BinaryIO:
    try:
        return os.fdopen(os.open(path, flags, OWNERS_ALONE), mode)
    except OSError as error:
        raise _unopened(named, error) from error


def _unopened(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{_brief(path)} cannot be opened: {error.strerror}.", hint="Check the path.")


def _is_database(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(DATABASE)) == DATABASE
    except OSError:
        return False


def _brief(path: Path) -> str:
    return snippet(str(path), 200)
