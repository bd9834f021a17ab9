"""told's own rows written by plain SQLite: the cost of an add once everything is known."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from bench._told import Precomputed, Told
from told.backends.sqlite.connection import QUERIES

Call: TypeAlias = tuple[Sequence[str], str]
Bound: TypeAlias = tuple[Any, ...]
WRITING = ("BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE")


class Rows:
    """Write the same bytes to the same tables in the same transactions with prepared statements.

    A twin, told itself on a copy of the file, runs first and its write statements are recorded;
    they are replayed here. Nothing is looked up, computed, encoded or hashed.
    """

    def __init__(self, folder: Path, embedder: Precomputed, durability: str) -> None:
        twin = folder / "twin"
        if not twin.exists():
            twin.mkdir()
            shutil.copy(folder / "told.db", twin)
        self.twin = Told(twin, embedder, "normal")
        self.db = apsw.Connection(str(folder / "told.db"))
        self.db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self.db.execute(QUERIES[f"pragmas_{durability}"]).fetchall()
        self.noted: deque[tuple[Call, list[tuple[str, list[Bound]]]]] = deque()

    def prepare(self, calls: Sequence[Call]) -> None:
        """Record what told writes for each of the coming calls."""
        self.noted.extend((call, self._written(*call)) for call in calls)

    def add(self, text: str, user: str) -> None:
        self.bulk([text], user)

    def bulk(self, texts: Sequence[str], user: str) -> None:
        call, statements = self.noted.popleft()
        assert call == (texts, user)
        for statement, rows in statements:
            self.db.executemany(statement, rows).fetchall()

    def search(self, query: str, user: str) -> int:
        return self.twin.search(query, user)

    def close(self) -> None:
        self.twin.close()
        self.db.close()

    def _written(self, texts: Sequence[str], user: str) -> list[tuple[str, list[Bound]]]:
        """Return the statements with which the twin stores some texts, each with its rows."""
        statements: list[tuple[str, Bound]] = []

        def note(_: apsw.Cursor, statement: str, bound: Any) -> bool:
            if statement.startswith(WRITING):
                statements.append((statement, () if bound is None else bound))
            return True

        store: Any = self.twin.memory.engine.store
        writer: apsw.Connection = store._database.writer  # noqa: SLF001
        writer.exec_trace = note
        if len(texts) > 1:
            self.twin.bulk(texts, user)
        else:
            self.twin.add(texts[0], user)
        writer.exec_trace = None
        return [
            (name, [bound for _, bound in same])
            for name, same in groupby(statements, key=itemgetter(0))
        ]
