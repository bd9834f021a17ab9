"""An unusable file is rejected with a clear message and left unchanged."""

import hashlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from told import Memory
from told.backends.sqlite import open_store
from told.backends.sqlite.connection import OLDEST_SCHEMA, SCHEMA_FILES, SCHEMA_VERSION
from told.errors import (
    ConfigError,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    StoreVersion,
    ToldError,
)
from told.ports import VIEWS
from told.testing import hashing_embedder


def open_memory(path: Path) -> Memory:
    return Memory(f"sqlite:///{path}", embedder=hashing_embedder())


def make_store(path: Path, count: int = 3) -> Path:
    """Create a store with a few memories and close it."""
    with open_memory(path) as memory:
        memory.add(
            [f"memory number {number} about tea" for number in range(count)], user_id="alice"
        )
    return path


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Foreign or damaged files


@pytest.mark.parametrize(
    "content",
    [
        b"Dear diary, this is not a database. " * 300,
        b"\x89PNG\r\n" + bytes(5000),
        b"Dear diary",
        b"SQLite format 3\0",
    ],
    ids=["text", "image", "short text", "magic alone"],
)
def test_file_that_is_not_a_database_is_rejected_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(content)
    with pytest.raises(StoreError) as refused:
        open_memory(path)
    assert isinstance(refused.value, StoreCorrupt)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["m.db"]


def test_foreign_database_is_rejected_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    with apsw.Connection(str(path)) as other:
        other.execute(
            "CREATE TABLE bookmark (url TEXT); INSERT INTO bookmark VALUES ('https://example.org')"
        )
    other.close()
    before = fingerprint(path)
    with pytest.raises(StoreError):
        open_memory(path).close()
    assert fingerprint(path) == before


def test_foreign_database_with_a_meta_table_is_rejected_unchanged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "other.db"
    with apsw.Connection(str(path)) as other:
        other.execute(
            "CREATE TABLE meta (name TEXT, version INTEGER); INSERT INTO meta VALUES ('other', 7)"
        )
    other.close()
    before = fingerprint(path)
    with pytest.raises(StoreError):
        open_memory(path).close()
    assert fingerprint(path) == before


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        *((v, "Export it with the version that wrote it") for v in (OLDEST_SCHEMA - 1, 6)),
        *((v, "Upgrade told") for v in (SCHEMA_VERSION + 1, 99, "1", None)),
    ],
    ids=str,
)
def test_store_of_an_unsupported_schema_is_rejected_unchanged(
    tmp_path: Path, version: object, advice: str
) -> None:
    path = make_store(tmp_path / "m.db")
    with apsw.Connection(str(path)) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (version,))
    db.close()
    before = fingerprint(path)
    with pytest.raises(StoreVersion, match="schema") as refused:
        open_memory(path)
    assert advice in str(refused.value)
    assert fingerprint(path) == before


UNDONE = {
    7: "DROP INDEX passage_waiting; ALTER TABLE passage DROP COLUMN ready; CREATE INDEX "
    "passage_hash ON passage (hash)",
    5: "CREATE INDEX fact_thread ON fact (thread); CREATE INDEX passage_fact ON passage (fact);"
    "ALTER TABLE part ADD COLUMN rows INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE part ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;"
    "UPDATE part SET rows = e.rows, folded = e.folded, version = e.version FROM extent e WHERE "
    "e.id = part.id;"
    "DROP VIEW extent; ALTER TABLE fact DROP COLUMN first; ALTER TABLE fact DROP COLUMN last;"
    "ALTER TABLE tick RENAME TO later;"
    "CREATE TABLE tick (id INTEGER PRIMARY KEY, space INTEGER NOT NULL, part INTEGER NOT NULL, "
    "at INTEGER NOT NULL,"
    "turns INTEGER NOT NULL, tokens INTEGER NOT NULL, turns_so_far INTEGER NOT NULL, "
    "tokens_so_far INTEGER NOT NULL);"
    "INSERT INTO tick SELECT id, space, part, at, turns, tokens, turns_so_far, tokens_so_far "
    "FROM later;"
    "DROP TABLE later; CREATE INDEX tick_part ON tick (part);"
    "ALTER TABLE embedding RENAME TO later;"
    "CREATE TABLE embedding (model INTEGER NOT NULL, hash BLOB NOT NULL, code BLOB NOT NULL, "
    "PRIMARY KEY (model, hash))"
    "WITHOUT ROWID; INSERT INTO embedding SELECT model, hash, code FROM later; DROP TABLE later",
    4: "DROP TABLE tick; DROP TABLE behind; DROP TABLE met; DROP TABLE recall; DROP TABLE "
    "recall_state;"
    "DROP TABLE task; DROP TABLE note; DROP INDEX fact_said; DROP INDEX link_space; DROP INDEX "
    "evidence_name",
    3: "DROP TABLE blob; DROP TABLE holding; DROP INDEX fact_claim; DROP INDEX fact_evidence;"
    "ALTER TABLE fault DROP COLUMN raw",
}
"""SQL that downgrades a file from each schema to the previous one."""
EARLIER = [number for number in SCHEMA_FILES if number < SCHEMA_VERSION]


def downgrade_schema(path: Path, version: int) -> Path:
    """Rewrite a store with an earlier schema."""
    with apsw.Connection(str(path)) as db:
        for number in sorted((later for later in SCHEMA_FILES if later > version), reverse=True):
            db.execute(UNDONE[number])
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (version,))
    db.close()
    return path


@pytest.mark.parametrize("version", EARLIER)
def test_earlier_schema_is_migrated_with_all_its_data(tmp_path: Path, version: int) -> None:
    path = downgrade_schema(make_store(tmp_path / "m.db"), version)
    with open_memory(path) as memory:
        assert len(memory.get_all(user_id="alice")["results"]) == 3
        assert memory.verify()["ok"]
        assert memory.stats()["schema"] == SCHEMA_VERSION
        assert memory.stats()["blobs"] == memory.stats()["tasks"] == 0
    with open_memory(path) as memory:
        assert memory.search("tea", user_id="alice")["results"]


@pytest.mark.parametrize("version", EARLIER)
def test_migrated_store_behaves_like_a_new_one(tmp_path: Path, version: int) -> None:
    both = []
    for name in ("then.db", "today.db"):
        path = make_store(tmp_path / name, 70)
        with open_memory(downgrade_schema(path, version) if name == "then.db" else path) as memory:
            first, second, *_ = memory.get_all(user_id="alice", limit=100)["results"]
            memory.update(first["id"], "coffee after all")
            memory.add("tea with milk", user_id="alice")
            memory.erase(memory_id=second["id"])
            assert memory.verify()["ok"]
            told = [hit["memory"] for hit in memory.search("tea", user_id="alice")["results"]]
            both.append(
                (
                    told,
                    [len(list(memory.engine.store.view_rows("default", view))) for view in VIEWS],
                )
            )
    assert both[0] == both[1]


@pytest.mark.parametrize("version", EARLIER)
def test_migration_creates_the_missing_views(tmp_path: Path, version: int) -> None:
    path, accounts = make_store(tmp_path / "m.db"), ("default", "umbrella")
    with Memory(f"sqlite:///{path}", embedder=hashing_embedder(), account="umbrella") as memory:
        memory.add("their tea", user_id="alice")
    with open_memory(path) as memory:
        grown = [list(memory.engine.store.view_rows(account, "ticks")) for account in accounts]
    assert list(map(len, grown)) == [3, 1]
    store = open_store(f"sqlite:///{downgrade_schema(path, version)}")
    assert [list(store.list_accounts().get(account, ())) for account in accounts] == [
        ["ticks"] if version < 4 else []
    ] * 2
    store.close()
    for _ in range(2):
        with open_memory(path) as memory:
            assert [
                list(memory.engine.store.view_rows(account, "ticks")) for account in accounts
            ] == grown
            assert not any(memory.engine.store.list_accounts().values())


def collect_answers(
    path: Path, as_written_then: Callable[[Path], object]
) -> list[list[tuple[str, float]]]:
    """Return results and scores before and after a pending vector is filled in."""
    with open_memory(make_store(path)) as memory:
        memory.add("a kettle", user_id="alice")
    with Memory(f"sqlite:///{path}", embedder="none") as memory:
        memory.add("the kettle is for tea", user_id="alice")
    as_written_then(path)
    answers = []
    with open_memory(path) as memory:
        for waiting in (1, 0):
            assert memory.stats()["pending_vectors"] == waiting
            found = memory.search("a kettle for tea", user_id="alice")["results"]
            answers.append([(row["memory"], row["score"]) for row in found])
            memory.reindex()
        assert memory.verify()["ok"]
    assert answers[0] != answers[1]
    return answers


@pytest.mark.parametrize("version", EARLIER)
def test_pending_vector_is_attached_after_a_migration(tmp_path: Path, version: int) -> None:
    then = collect_answers(tmp_path / "then.db", lambda path: downgrade_schema(path, version))
    assert then == collect_answers(tmp_path / "today.db", lambda path: path)


def test_pending_vector_is_attached_to_a_passage_written_by_an_older_version(
    tmp_path: Path,
) -> None:
    def written_by_an_older_told(path: Path) -> None:
        columns = "id, fact, slot, space, until, expires, before, length, hash, text, terms"
        with apsw.Connection(str(path)) as db:
            *_, last = db.execute(f"SELECT {columns} FROM passage ORDER BY id")
            db.execute("DELETE FROM passage WHERE id = ?", last[:1])
            db.execute(
                f"INSERT INTO passage ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", last
            )
        db.close()

    then = collect_answers(tmp_path / "then.db", written_by_an_older_told)
    assert then == collect_answers(tmp_path / "today.db", lambda path: path)


KILLED = """
import os, signal, sys
from pathlib import Path
from told.backends.sqlite import connection

def killed(version, load=connection.load_migrations):
    yield from load(version)
    os.kill(os.getpid(), signal.SIGKILL)

connection.load_migrations = killed
connection.Database(Path(sys.argv[1]), durability="full", busy_timeout=5.0)
"""


@pytest.mark.parametrize("version", EARLIER)
def test_killed_migration_leaves_the_store_unchanged(tmp_path: Path, version: int) -> None:
    path = downgrade_schema(make_store(tmp_path / "m.db"), version)
    died = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert died.returncode == -signal.SIGKILL
    with apsw.Connection(str(path)) as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'schema'").get == version
    db.close()
    with open_memory(path) as memory:
        assert memory.stats()["schema"] == SCHEMA_VERSION
        assert len(memory.search("tea", user_id="alice")["results"]) == 3
        assert memory.verify()["ok"]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_truncated_store_never_answers_as_if_it_were_complete(tmp_path: Path, share: float) -> None:
    path = make_store(tmp_path / "m.db", 200)
    whole = path.read_bytes()
    cut = whole[: int(len(whole) * share)]
    path.write_bytes(cut)
    try:
        with open_memory(path) as memory:
            rows = memory.get_all(user_id="alice", limit=1000)["results"]
            verdict = memory.verify()
    except StoreError as error:
        assert isinstance(error, StoreCorrupt), error  # noqa: PT017
        assert "restore the last backup" in str(error)  # noqa: PT017
    else:
        assert not verdict["ok"]
        assert len(rows) <= 200
    assert path.read_bytes() == cut


def test_corrupt_page_is_reported_by_verify(tmp_path: Path) -> None:
    path = make_store(tmp_path / "m.db", 200)
    whole = bytearray(path.read_bytes())
    found = 0
    for page in range(2, len(whole) // 4096, 7):
        damaged = whole.copy()
        damaged[page * 4096 : (page + 1) * 4096] = bytes([page % 251 + 1]) * 4096
        path.write_bytes(damaged)
        try:
            with open_memory(path) as memory:
                found += not memory.verify()["ok"]
        except StoreCorrupt:
            found += 1
    assert found == len(range(2, len(whole) // 4096, 7))


def test_tampered_byte_of_the_ledger_is_detected(tmp_path: Path) -> None:
    path = make_store(tmp_path / "m.db", 5)
    whole = path.read_bytes()
    offsets = [i for i in range(len(whole)) if whole.startswith(b"memory number 3", i)]
    assert len(offsets) >= 2
    caught = []
    for offset in offsets:
        path.write_bytes(whole[:offset] + b"M" + whole[offset + 1 :])
        with open_memory(path) as memory:
            caught.append(not memory.verify()["ok"])
    assert any(caught)


def test_folder_in_place_of_the_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "m.db").mkdir()
    with pytest.raises(StoreError):
        open_memory(tmp_path / "m.db")


def test_path_through_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(StoreError):
        open_memory(tmp_path / "file" / "m.db")


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///a\0b", "nosuch:///x", "/just/a/path", "sqlite:x"]
)
def test_invalid_store_url_is_rejected(url: str) -> None:
    with pytest.raises(ToldError) as refused:
        Memory(url, embedder="none")
    assert isinstance(refused.value, ConfigError | StoreError)


# Read-only


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk with a store on it read-only, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted: {mounted.stderr.decode().strip()}")
    try:
        make_store(folder / "m.db")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_store_on_a_read_only_disk_is_a_clear_error_and_intact(read_only_disk: Path) -> None:
    before = fingerprint(read_only_disk / "m.db")
    try:
        memory = open_memory(read_only_disk / "m.db")
    except StoreReadOnly as error:
        assert "permissions" in str(error)  # noqa: PT017
    else:
        with memory:
            assert len(memory.get_all(user_id="alice")["results"]) == 3
            with pytest.raises(StoreReadOnly):
                memory.add("milk", user_id="alice")
    assert fingerprint(read_only_disk / "m.db") == before


def test_new_store_on_a_read_only_disk_is_rejected(read_only_disk: Path) -> None:
    with pytest.raises(StoreReadOnly):
        open_memory(read_only_disk / "new.db")
    with pytest.raises(StoreReadOnly):
        open_memory(read_only_disk / "folder" / "new.db")


@pytest.fixture
def immutable(tmp_path: Path) -> Iterator[Path]:
    """Create a store with an immutable file, where the file system supports it."""
    path = make_store(tmp_path / "m.db")
    frozen = subprocess.run(["chattr", "+i", str(path)], check=False, capture_output=True)
    if frozen.returncode:
        pytest.skip(f"a file cannot be made immutable: {frozen.stderr.decode().strip()}")
    yield path
    subprocess.run(["chattr", "-i", str(path)], check=True)


def test_read_only_file_is_a_clear_error_and_intact(immutable: Path) -> None:
    before = fingerprint(immutable)
    try:
        memory = open_memory(immutable)
    except StoreReadOnly:
        pass
    else:
        with memory:
            assert len(memory.get_all(user_id="alice")["results"]) == 3
            with pytest.raises(StoreReadOnly):
                memory.add("milk", user_id="alice")
    assert fingerprint(immutable) == before


def test_rejected_write_is_reported_and_reads_still_work(tmp_path: Path) -> None:
    with open_memory(make_store(tmp_path / "m.db")) as memory:
        writer = memory.engine.store._database.writer
        writer.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreReadOnly):
            memory.add("milk", user_id="alice")
        assert len(memory.search("tea", user_id="alice")["results"]) == 3
        writer.execute("PRAGMA query_only = OFF")
        memory.add("milk", user_id="alice")
        assert memory.verify()["ok"]
