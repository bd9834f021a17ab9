"""Named queries: every statement lives in a .sql file under its name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

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
