"""The lower bound: plain SQLite and NumPy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import apsw
import numpy as np

from bench._corpus import DIM, Floats
from bench._told import ROWS, Precomputed

SCHEMA = """
CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS memory (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, text TEXT NOT NULL, code BLOB NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', tokenize='porter unicode61');
"""  # noqa: E501
INSERT = "INSERT INTO memory (id, at, text, code) VALUES (?, ?, ?, ?)"
INSERT_WORDS = "INSERT INTO words (rowid, text) VALUES (?, ?)"
MATCH = "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?"
RANKED = f"{MATCH} ORDER BY rank LIMIT {ROWS}"
FETCH = f"SELECT id, at, text FROM memory WHERE id IN ({', '.join('?' * ROWS)})"

CHECKPOINTS = {"full": 8000, "normal": 4000}
"""Checkpoint interval in log pages, as in told."""


class Bare:
    """The minimum: a row, its vector and its words in one transaction; a scan, a MATCH and a
    SELECT.

    No ledger, history, deduplication, policy or fusion. A user's rows are one range of ids, and the
    vectors of a searched user stay in memory.
    """

    def __init__(self, folder: Path, embedder: Precomputed, durability: str) -> None:
        self.embedder = embedder
        self.db = apsw.Connection(str(folder / "bare.db"))
        self.db.execute(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = {durability};"
            f"PRAGMA wal_autocheckpoint = {CHECKPOINTS[durability]};"
            "PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY"
        ).fetchall()  # a statement that returns a row blocks the next ones until it is read
        self.db.execute(SCHEMA)
        self.owners: dict[str, int] = dict(cast(Any, self.db.execute("SELECT name, id FROM owner")))
        self.matrices: dict[int, Floats] = {}

    def add(self, text: str, user: str) -> None:
        self.bulk([text], user)

    def bulk(self, texts: Sequence[str], user: str) -> None:
        codes = [_code(self.embedder.rows[text]) for text in texts]
        self.db.execute("BEGIN IMMEDIATE")
        owner = self._owner(user)
        self.matrices.pop(owner, None)
        last = self.db.execute(
            "SELECT max(id) FROM memory WHERE id BETWEEN ? AND ?", _span(owner)
        ).get
        first = (owner << 32 if last is None else cast(int, last)) + 1
        at = time.time_ns()
        rows = [
            (first + n, at, text, code)
            for n, (text, code) in enumerate(zip(texts, codes, strict=True))
        ]
        self.db.executemany(INSERT, rows)
        self.db.executemany(INSERT_WORDS, [(id_, text) for id_, _, text, _ in rows])
        self.db.execute("COMMIT")

    def search(self, query: str, user: str) -> int:
        (vector,) = self.embedder.embed([query], "query")
        owner = self.owners[user]
        near = self.scan(owner, vector)
        worded = self.match(owner, query, RANKED)
        best = list(dict.fromkeys([*worded, *near]))[:ROWS]
        return len(self.fetch(best))

    def scan(self, owner: int, vector: Sequence[float]) -> list[int]:
        """Return the ids of the nearest vectors."""
        matrix = self.matrices.get(owner)
        if matrix is None:
            codes = b"".join(
                row[0]
                for row in cast(
                    Any,
                    self.db.execute(
                        "SELECT code FROM memory WHERE id BETWEEN ? AND ?", _span(owner)
                    ),
                )
            )
            matrix = self.matrices[owner] = (
                np.frombuffer(codes, np.int8).reshape(-1, DIM).astype(np.float32)
            )
        scores = matrix @ np.frombuffer(cast(Any, vector), np.float32)
        if len(scores) > ROWS:
            near = np.argpartition(scores, -ROWS)[-ROWS:]
            near = near[np.argsort(-scores[near])]
        else:
            near = np.argsort(-scores)
        return [(owner << 32) + 1 + int(place) for place in near]

    def match(self, owner: int, query: str, statement: str) -> list[int]:
        """Return the ids of memories with any word of the query."""
        wanted = " OR ".join(f'"{word}"' for word in query.split())
        return [row[0] for row in cast(Any, self.db.execute(statement, (wanted, *_span(owner))))]

    def fetch(self, ids: Sequence[int]) -> list[Any]:
        """Return ten rows by id."""
        return self.db.execute(FETCH, [*ids, *[0] * (ROWS - len(ids))]).fetchall()

    def close(self) -> None:
        self.db.close()

    def _owner(self, user: str) -> int:
        if user not in self.owners:
            self.owners[user] = len(self.owners) + 1
            self.db.execute("INSERT INTO owner (id, name) VALUES (?, ?)", (self.owners[user], user))
        return self.owners[user]

    def parts(self, queries: Sequence[tuple[str, str]]) -> Mapping[str, list[int]]:
        """Time each part of a search in nanoseconds; `unranked` is the FTS5 match alone."""
        spent: dict[str, list[int]] = {"scan": [], "ranked": [], "unranked": [], "fetch": []}
        for query, user in queries:
            owner = self.owners[user]
            (vector,) = self.embedder.embed([query])
            marks = [time.perf_counter_ns()]
            near = self.scan(owner, vector)
            marks.append(time.perf_counter_ns())
            self.match(owner, query, RANKED)
            marks.append(time.perf_counter_ns())
            self.match(owner, query, MATCH)
            marks.append(time.perf_counter_ns())
            self.fetch(near)
            marks.append(time.perf_counter_ns())
            for name, (start, stop) in zip(spent, pairwise(marks), strict=True):
                spent[name].append(stop - start)
        return spent


def _code(vector: Floats) -> bytes:
    code: bytes = np.rint(vector * (127 / np.abs(vector).max())).astype(np.int8).tobytes()
    return code


def _span(owner: int) -> tuple[int, int]:
    return owner << 32, (owner << 32) | 0xFFFFFFFF
