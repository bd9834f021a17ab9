"""Every value in a store file follows from the ledger, or is known not to.

`verify` detects whatever is changed, deleted or planted by hand, and `rebuild` repairs it. Where
only a backup helps, the problem says so.
"""

from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from histories import lived
from papers import blank
from told import Memory, ToldError
from told.model.query import AccessBatch, AccessCount
from told.ports import VIEWS, IdempotencyRecord
from told.testing import HashingEmbedder, ManualClock, seeded_mint

SAID = [
    {"role": "user", "content": "I play the violin", "name": "Ann"},
    {"role": "assistant", "content": "I see", "name": "Bot"},
]
BESIDE = {"access", "met", "recall", "recall_state", "task", "note", "fault"}
"""Tables beside the ledger; only impossible values are detected in them."""

FREE = {
    "account.name": "no entry says what its account is called",
    "tombstone.digest": "an account that was reset has no entries left, only their digests",
    "ticket.key": "a key is the caller's",
    "ticket.digest": "a request is in no entry",
    "part.version": "it only tells readers to look again",
    "part.epoch": "blocks are made in it",
    "passage.ready": "a vector that is there is found without it",
    "model.name": "only the embedder knows it",
    "model.current": "anything but 0 is true",
    "embedding.id": "a place to stand, no more",
    "embedding.code": "only the embedder knows it, as long as no block has it",
    "cursor.consumer": "a consumer may be of another told",
    "cursor.seq": "a consumer may have come so far",
    "blob.media_type": "whoever sent it said so",
}
"""Columns where another value could be true, and why."""

DROPPED = {"ticket", "cursor", "blob", "behind", "meta"} | BESIDE
"""Tables whose rows may be missing."""

LOST = {"account", "blob"}
"""Tables that only a backup restores."""


def write(memory):
    tea, soup = lived(memory)
    memory.add(SAID, user_id="w", run_id="r", idempotency_key="once")
    memory.add({"content": ["Look", blank()]}, agent_id="a")
    memory.add([f"note {n}" for n in range(64)], user_id="x", infer=False)
    memory.search("violin", user_id="w")
    memory.engine.store.record_fault("default", "extract", 3, "oops")
    memory.engine.store.update_consumer("default", "extract", cursor=5)
    pair = {tuple(sorted((tea, soup))): AccessCount(1, 1)}
    memory.engine.store.record_accesses("default", AccessBatch(cooccurrences=pair))
    memory.engine.store.update_consumer("default", "extract", notes={"key": b"value"})


def open_memory(path):
    mint = seeded_mint("again", ManualClock())
    return Memory(
        f"sqlite:///{path}", embedder=HashingEmbedder(dim=16), mint=mint, durability="normal"
    )


@contextmanager
def open_raw(path):
    db = apsw.Connection(str(path))
    try:
        db.execute(
            "DROP TRIGGER IF EXISTS entry_append_only; DROP TRIGGER IF EXISTS entry_no_delete"
        )
        yield db
    finally:
        db.close()


class Books:
    """A small closed store with rows in every table, except blocks and views that were never
    folded.
    """

    def __init__(self, folder):
        self.path = Path(folder) / "book.db"
        with open_memory(self.path) as memory:
            write(memory)
            self.answers = collect_answers(memory)
        self.whole = self.path.read_bytes()
        with open_raw(self.path) as db:
            names = [
                name
                for (name,) in db.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' "
                    "AND name NOT LIKE 'sqlite%' AND name <> 'entry'"
                )
            ]
            self.columns = {
                name: db.execute(f"PRAGMA table_info({name})").fetchall() for name in names
            }
            self.types = {
                name: {each[1]: each[2] for each in columns}
                for name, columns in self.columns.items()
            }
            self.rows = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names}

    def row(self, table, which=0):
        """Return a row as a dictionary, and the names of its key columns."""
        names = [column[1] for column in self.columns[table]]
        keys = [column[1] for column in self.columns[table] if column[5]]
        return dict(zip(names, self.rows[table][which], strict=True)), keys

    def tampered(self, statement, values):
        """Change a copy of the store by hand; return whether that was possible."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self.path.write_bytes(self.whole)
        with open_raw(self.path) as db:
            try:
                db.execute(statement, values)
            except (apsw.ConstraintError, apsw.MismatchError):
                return False
            assert db.changes() == 1
        return True


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    return Books(tmp_path_factory.mktemp("books"))


def collect_answers(memory):
    """Return the contents and answers of a store, as far as they follow from the ledger."""
    rows = [
        sorted(map(repr, memory.engine.store.view_rows("default", view)))
        for view in VIEWS
        if view != "passages"
    ]
    rows += [sorted(repr(row[-3:]) for row in memory.engine.store.view_rows("default", "passages"))]
    asks = [(query, user) for query in ("violin", "tea note 7") for user in "uwx"]
    found = [memory.search(query, user_id=user, limit=5)["results"] for query, user in asks]
    return rows, [[(row["memory"], row["score"]) for row in each] for each in found]


def collect_problems(books, *, search=True):
    """Return what `verify` finds; before that, a search works or fails with a clear error."""
    try:
        with open_memory(books.path) as memory:
            if search:
                with suppress(ToldError):
                    collect_answers(memory)
            verdict = memory.verify()
            return [
                *verdict["index_problems"],
                *([verdict["problem"]] if "problem" in verdict else ()),
            ]
    except ToldError as error:
        return [f"{error.message} {error.hint}"]


def is_repaired(books, problems):
    """Follow the advice and check that the store is what it was."""
    with Memory(f"sqlite:///{books.path}", embedder="none", durability="normal") as memory:
        memory.rebuild()
    with open_memory(books.path) as memory:
        if any("reindex" in problem for problem in problems):
            memory.reindex()
        return memory.verify()["ok"] and collect_answers(memory) == books.answers


TABLES = (
    "account",
    "tombstone",
    "ticket",
    "part",
    "space",
    "evidence",
    "fact",
    "link",
    "passage",
    "posting",
    "model",
    "embedding",
    "access",
    "cursor",
    "fault",
    "blob",
    "holding",
    "met",
    "recall",
    "recall_state",
    "task",
    "note",
    "tick",
)


def test_every_table_is_known(books):
    assert {*TABLES, "meta", "block", "behind"} == books.columns.keys()
    assert [table for table in TABLES if not books.rows[table]] == []


@pytest.mark.parametrize("table", TABLES)
def test_changed_value_is_detected_and_repaired(books, table):
    row, keys = books.row(table)
    for column, value in row.items():
        place = f"{table}.{column}"
        if not books.tampered(
            f"UPDATE {table} SET {column} = ? WHERE ({', '.join(keys)}) IS ({placeholders(keys)})",
            (alter_value(value, books.types[table][column]), *(row[key] for key in keys)),
        ):
            continue
        problems = collect_problems(books)
        if not problems:
            assert table in BESIDE or place in FREE, place
        elif table in LOST:
            assert any("backup" in problem or "ledger" in problem for problem in problems), place
        elif not any("indexed with" in problem for problem in problems):
            assert is_repaired(books, problems), (place, problems)


@pytest.mark.parametrize("table", TABLES)
def test_value_of_another_type_is_detected_and_repaired(books, table):
    row, keys = books.row(table, -1)
    for column, value in row.items():
        place = f"{table}.{column}"
        if not books.tampered(
            f"UPDATE {table} SET {column} = ? WHERE ({', '.join(keys)}) IS ({placeholders(keys)})",
            (b"\xff" if isinstance(value, str) else "?", *(row[key] for key in keys)),
        ):
            continue
        assert collect_problems(books, search=False), place
    if table not in LOST and table != "model":
        with open_memory(books.path) as memory:
            memory.rebuild()
            assert memory.verify()["ok"], place


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("which", [0, -1])
def test_deleted_row_is_detected_and_restored(books, table, which):
    row, keys = books.row(table, which)
    books.tampered(
        f"DELETE FROM {table} WHERE ({', '.join(keys)}) IS ({placeholders(keys)})",
        [row[key] for key in keys],
    )
    problems = collect_problems(books)
    assert bool(problems) == (table not in DROPPED), problems
    if problems and table not in LOST:
        assert is_repaired(books, problems), problems


def list_plantable_rows(books, table):
    """Return rows that fit beside the last one: after it, in no account, and before the first."""
    row, keys = books.row(table, -1)
    numbers = [key for key in keys if isinstance(row[key], int)]
    yield {**row, **{key: alter_value(row[key]) for key in keys}}
    yield {
        **row,
        keys[-1]: row[keys[-1]] + 1 if keys[-1] in numbers else alter_value(row[keys[-1]]),
    }
    for key in numbers:
        yield {**row, key: row[key] + (7 << 40)}
        yield {**row, key: row[key] >> 40 << 40}


FREELY = {"tombstone", "account", "cursor", "fault", "blob", "ticket"} | BESIDE
"""Tables where a planted row is not detectable."""


@pytest.mark.parametrize("table", TABLES)
def test_planted_row_is_detected_and_removed(books, table):
    for row in list_plantable_rows(books, table):
        if not books.tampered(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({placeholders(row)})", [*row.values()]
        ):
            continue
        problems = collect_problems(books)
        assert problems or table in FREELY, row
        if problems and table not in LOST:
            assert is_repaired(books, problems), (problems, row)


# The ram store


def forge_row(row):
    """Return a row as another entry might have produced it."""
    return replace(row, seq=row.seq + 1)


def drop_row(rows):
    rows.pop(next(iter(rows)))


RAM = {
    "a fact changed": lambda a: a.facts.update(
        {s: replace(f, text="x") for s, f in [*a.facts.items()][:1]}
    ),
    "a fact closed": lambda a: a.facts.update(
        {s: replace(f, until=9) for s, f in [*a.facts.items()][-1:]}
    ),
    "a fact lost": lambda a: drop_row(a.facts),
    "a fact planted": lambda a: a.facts.update(
        {999: replace(next(iter(a.facts.values())), seq=999)}
    ),
    "a link changed": lambda a: a.links.update(
        {s: replace(link, weight=0.5) for s, link in [*a.links.items()][:1]}
    ),
    "a link lost": lambda a: drop_row(a.links),
    "a link planted": lambda a: a.links.update(
        {link.seq + 1: forge_row(link) for link in [*a.links.values()][:1]}
    ),
    "a link told twice": lambda a: a.links.update({999: next(iter(a.links.values()))}),
    "evidence changed": lambda a: a.evidence.update(
        {s: replace(w, source="x") for s, w in [*a.evidence.items()][:1]}
    ),
    "evidence lost": lambda a: drop_row(a.evidence),
    "evidence planted": lambda a: a.evidence.update(
        {w.seq + 1: forge_row(w) for w in [*a.evidence.values()][:1]}
    ),
    "a passage changed": lambda a: a.passages.update(
        {k: replace(p, text="x") for k, p in [*a.passages.items()][:1]}
    ),
    "passages planted": lambda a: a.passages.update(
        {(p.seq, 7): replace(p, slot=7) for p in [*a.passages.values()]}
    ),
    "a tick changed": lambda a: a.ticks.update(
        {s: replace(t, turns=5) for s, t in [*a.ticks.items()][:1]}
    ),
    "a tick lost": lambda a: drop_row(a.ticks),
    "a tick planted": lambda a: a.ticks.update(
        {t.seq + 1: forge_row(t) for t in [*a.ticks.values()][:1]}
    ),
    "a ticket of nowhere": lambda a: a.tickets.update(
        {"k": IdempotencyRecord("k", b"", '{"events": []}', 999)}
    ),
    "a ticket of nobody": lambda a: a.tickets.update(
        {"k": IdempotencyRecord("k", b"", '{"events": [["ADD", "nobody"]]}')}
    ),
    "a ticket that cannot be read": lambda a: a.tickets.update(
        {"k": IdempotencyRecord("k", b"", "?")}
    ),
    "a ticket in mid-transaction": lambda a: a.tickets.update(
        {"k": IdempotencyRecord("k", b"", '{"events": []}', 2)}
    ),
    "a cursor beyond the end": lambda a: a.cursors.update({"k": 9999}),
    "a tombstone lost": lambda a: a.tombstones.clear(),
}


@pytest.mark.parametrize("tamper", RAM.values(), ids=RAM.keys())
def test_ram_store_detects_and_repairs_the_same(tamper):
    with Memory(
        "ram://", embedder=HashingEmbedder(dim=16), mint=seeded_mint("again", ManualClock())
    ) as memory:
        write(memory)
        assert memory.verify()["ok"]
        tamper(memory.engine.store._accounts["default"])
        assert memory.verify()["index_problems"]
        memory.rebuild()
        assert memory.verify()["ok"]


def test_foreign_tables_are_left_alone(tmp_path):
    path = tmp_path / "m.db"
    with Memory(f"sqlite:///{path}", embedder="none") as memory:
        write(memory)
    with apsw.Connection(str(path)) as db:
        db.execute("CREATE TABLE notes (id VARCHAR(32) PRIMARY KEY, at DATETIME, done BOOLEAN)")
        db.execute("INSERT INTO notes VALUES ('a', '2026-01-01', 1)")
    with Memory(f"sqlite:///{path}", embedder="none") as memory:
        assert memory.verify()["ok"]
        memory.rebuild()
        assert memory.verify()["ok"]
    assert apsw.Connection(str(path)).execute("SELECT * FROM notes").fetchall() == [
        ("a", "2026-01-01", 1)
    ]


def test_rebuilding_one_account_keeps_the_vectors_of_another(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    with (
        Memory(url, embedder=HashingEmbedder(dim=16), account="a") as one,
        Memory(url, embedder=HashingEmbedder(dim=16), account="b") as other,
    ):
        one.add([f"tea {number}" for number in range(20)], user_id="u", infer=False)
        other.add([f"bread {number}" for number in range(20)], user_id="u", infer=False)
        with apsw.Connection(f"{tmp_path}/m.db") as db:
            db.execute(
                "DELETE FROM passage WHERE fact >> 40 = (SELECT id FROM account WHERE name = 'b')"
            )
        one.rebuild()
        other.rebuild()
        assert other.verify()["ok"]
        assert other.stats()["pending_vectors"] == 0


def placeholders(values):
    return ", ".join("?" for _ in values)


def alter_value(value, declared="TEXT"):
    """Return a value of the same type with one bit or letter changed."""
    match value:
        case int() | float():
            return value + 64
        case bytes():
            return bytes([value[0] ^ 1]) + value[1:]
        case str():
            return value[:-1] + ("x" if value[-1:] != "x" else "y")
        case _:
            return 7 if declared == "INTEGER" else "x"
