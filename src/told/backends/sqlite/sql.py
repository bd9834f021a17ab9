"""Named queries: every statement lives in a .sql file under its name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

MARK = "-- name: "


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _named() -> dict[str, str]:
    found: dict[str, str] = {}
    for section in _read("queries.sql").split(MARK)[1:]:
        name, _, body = section.partition("\n")
        found[name.strip()] = "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
    return found


QUERIES: Final = _named()


@cache
def schema() -> str:
    """The statements that make an empty file a store."""
    return _read("schema.sql")


def narrowed(name: str, condition: str, tail: str = "") -> str:
    """A named statement with a compiled filter's condition, and a fixed tail, added to its WHERE."""
    return f"{QUERIES[name]} AND ({condition}) {tail}" if condition else f"{QUERIES[name]} {tail}"
