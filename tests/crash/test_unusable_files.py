"""A file told cannot use is refused in one clear sentence, and left as it was found."""

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


def opened(path: Path) -> Memory:
    return Memory(f"sqlite:///{path}", embedder=hashing_embedder())


def made(path: Path, count: int = 3) -> Path:
    """A store with a few memories, closed."""
    with opened(path) as memory:
        memory.add(
            [f"memory number {number} about tea" for number in range(count)], user_id="alice"
        )
    return path


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Not ours, or not whole


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
def test_a_file_that_is_no_database_is_refused_and_untouched(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(content)
    with pytest.raises(StoreError) as refused:
        opened(path)
    assert isinstance(refused.value, StoreCorrupt)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["m.db"]


def test_the_database_of_another_program_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    with apsw.Connection(str(path)) as other:
        other.execute(
            "CREATE TABLE bookmark (url TEXT); INSERT INTO bookmark VALUES ('https://example.org')"
        )
    other.close()
    before = fingerprint(path)
    with pytest.raises(StoreError):
        opened(path).close()
    assert fingerprint(path) == before


def test_another_program_that_also_has_a_meta_table_is_refused_and_untouched(
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
        opened(path).close()
    assert fingerprint(path) == before


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        *((v, "Export it with the version that wrote it") for v in (OLDEST_SCHEMA - 1, 6)),
        *((v, "Upgrade told") for v in (SCHEMA_VERSION + 1, 99, "1", None)),
    ],
    ids=str,
)
def test_a_store_of_another_schema_is_refused_and_untouched(
    tmp_path: Path, version: object, advice: str
) -> None:
    path = made(tmp_path / "m.db")
    with apsw.Connection(str(path)) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (version,))
    db.close()
    before = fingerprint(path)
    with pytest.raises(StoreVersion, match="schema") as refused:
        opened(path)
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
"""What takes a file from each schema back to the one before it."""
EARLIER = [number for number in SCHEMA_FILES if number < SCHEMA_VERSION]


def aged(path: Path, version: int) -> Path:
    """A store as it was when its schema was an earlier one."""
    with apsw.Connection(str(path)) as db:
        for number in sorted((later for later in SCHEMA_FILES if later > version), reverse=True):
            db.execute(UNDONE[number])
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (version,))
    db.close()
    return path


@pytest.mark.parametrize("version", EARLIER)
def test_a_store_of_an_earlier_schema_is_brought_up_to_date_with_all_it_holds(
    tmp_path: Path, version: int
) -> None:
    path = aged(made(tmp_path / "m.db"), version)
    with opened(path) as memory:
        assert len(memory.get_all(user_id="alice")["results"]) == 3
        assert memory.verify()["ok"]
        assert memory.stats()["schema"] == SCHEMA_VERSION
        assert memory.stats()["blobs"] == memory.stats()["tasks"] == 0
    with opened(path) as memory:
        assert memory.search("tea", user_id="alice")["results"]


@pytest.mark.parametrize("version", EARLIER)
def test_a_store_of_an_earlier_schema_goes_on_as_if_it_had_been_made_today(
    tmp_path: Path, version: int
) -> None:
    both = []
    for name in ("then.db", "today.db"):
        path = made(tmp_path / name, 70)
        with opened(aged(path, version) if name == "then.db" else path) as memory:
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
def test_a_store_of_an_earlier_schema_gets_the_views_it_had_not(
    tmp_path: Path, version: int
) -> None:
    path, accounts = made(tmp_path / "m.db"), ("default", "umbrella")
    with Memory(f"sqlite:///{path}", embedder=hashing_embedder(), account="umbrella") as memory:
        memory.add("their tea", user_id="alice")
    with opened(path) as memory:
        grown = [list(memory.engine.store.view_rows(account, "ticks")) for account in accounts]
    assert list(map(len, grown)) == [3, 1]
    store = open_store(f"sqlite:///{aged(path, version)}")
    assert [list(store.list_accounts().get(account, ())) for account in accounts] == [
        ["ticks"] if version < 4 else []
    ] * 2
    store.close()
    for _ in range(2):
        with opened(path) as memory:
            assert [
                list(memory.engine.store.view_rows(account, "ticks")) for account in accounts
            ] == grown
            assert not any(memory.engine.store.list_accounts().values())


def answered(
    path: Path, as_written_then: Callable[[Path], object]
) -> list[list[tuple[str, float]]]:
    """What a store with a memory that waits for its vector answers before and after it has it, with
    the scores.
    """
    with opened(made(path)) as memory:
        memory.add("a kettle", user_id="alice")
    with Memory(f"sqlite:///{path}", embedder="none") as memory:
        memory.add("the kettle is for tea", user_id="alice")
    as_written_then(path)
    answers = []
    with opened(path) as memory:
        for waiting in (1, 0):
            assert memory.stats()["pending_vectors"] == waiting
            found = memory.search("a kettle for tea", user_id="alice")["results"]
            answers.append([(row["memory"], row["score"]) for row in found])
            memory.reindex()
        assert memory.verify()["ok"]
    assert answers[0] != answers[1]
    return answers


@pytest.mark.parametrize("version", EARLIER)
def test_a_vector_finds_the_passage_that_waited_for_it_in_an_earlier_schema(
    tmp_path: Path, version: int
) -> None:
    then = answered(tmp_path / "then.db", lambda path: aged(path, version))
    assert then == answered(tmp_path / "today.db", lambda path: path)


def test_a_vector_finds_the_passage_that_a_process_of_an_older_told_goes_on_to_write(
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

    then = answered(tmp_path / "then.db", written_by_an_older_told)
    assert then == answered(tmp_path / "today.db", lambda path: path)


KILLED = """
import os, signal, sys
from pathlib import Path
from told.backends.sqlite import connect

def killed(version, steps=connect.steps):
    yield from steps(version)
    os.kill(os.getpid(), signal.SIGKILL)

connect.steps = killed
connect.Database(Path(sys.argv[1]), durability="full", busy_timeout=5.0)
"""


@pytest.mark.parametrize("version", EARLIER)
def test_a_process_killed_while_it_brings_a_store_up_to_date_leaves_it_as_it_was(
    tmp_path: Path, version: int
) -> None:
    path = aged(made(tmp_path / "m.db"), version)
    died = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert died.returncode == -signal.SIGKILL
    with apsw.Connection(str(path)) as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'schema'").get == version
    db.close()
    with opened(path) as memory:
        assert memory.stats()["schema"] == SCHEMA_VERSION
        assert len(memory.search("tea", user_id="alice")["results"]) == 3
        assert memory.verify()["ok"]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_store_never_answers_as_if_it_were_whole(tmp_path: Path, share: float) -> None:
    path = made(tmp_path / "m.db", 200)
    whole = path.read_bytes()
    cut = whole[: int(len(whole) * share)]
    path.write_bytes(cut)
    try:
        with opened(path) as memory:
            rows = memory.get_all(user_id="alice", limit=1000)["results"]
            verdict = memory.verify()
    except StoreError as error:
        assert isinstance(error, StoreCorrupt), error  # noqa: PT017
        assert "restore the last backup" in str(error)  # noqa: PT017
    else:
        assert not verdict["ok"]
        assert len(rows) <= 200
    assert path.read_bytes() == cut


def test_a_page_of_rubbish_is_reported_by_verify(tmp_path: Path) -> None:
    path = made(tmp_path / "m.db", 200)
    whole = bytearray(path.read_bytes())
    found = 0
    for page in range(2, len(whole) // 4096, 7):
        damaged = whole.copy()
        damaged[page * 4096 : (page + 1) * 4096] = bytes([page % 251 + 1]) * 4096
        path.write_bytes(damaged)
        try:
            with opened(path) as memory:
                found += not memory.verify()["ok"]
        except StoreCorrupt:
            found += 1
    assert found == len(range(2, len(whole) // 4096, 7))


def test_a_tampered_byte_of_the_ledger_is_found(tmp_path: Path) -> None:
    path = made(tmp_path / "m.db", 5)
    whole = path.read_bytes()
    offsets = [i for i in range(len(whole)) if whole.startswith(b"memory number 3", i)]
    assert len(offsets) >= 2
    caught = []
    for offset in offsets:
        path.write_bytes(whole[:offset] + b"M" + whole[offset + 1 :])
        with opened(path) as memory:
            caught.append(not memory.verify()["ok"])
    assert any(caught)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.db").mkdir()
    with pytest.raises(StoreError):
        opened(tmp_path / "m.db")


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(StoreError):
        opened(tmp_path / "file" / "m.db")


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///a\0b", "nosuch:///x", "/just/a/path", "sqlite:x"]
)
def test_an_address_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(ToldError) as refused:
        Memory(url, embedder="none")
    assert isinstance(refused.value, ConfigError | StoreError)


# Read-only


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with a store on it that is remounted read-only, where this user may do so."""
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
        made(folder / "m.db")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_store_on_a_read_only_disk_is_named_and_intact(read_only_disk: Path) -> None:
    before = fingerprint(read_only_disk / "m.db")
    try:
        memory = opened(read_only_disk / "m.db")
    except StoreReadOnly as error:
        assert "permissions" in str(error)  # noqa: PT017
    else:
        with memory:
            assert len(memory.get_all(user_id="alice")["results"]) == 3
            with pytest.raises(StoreReadOnly):
                memory.add("milk", user_id="alice")
    assert fingerprint(read_only_disk / "m.db") == before


def test_a_new_store_on_a_read_only_disk_is_refused(read_only_disk: Path) -> None:
    with pytest.raises(StoreReadOnly):
        opened(read_only_disk / "new.db")
    with pytest.raises(StoreReadOnly):
        opened(read_only_disk / "folder" / "new.db")


@pytest.fixture
def immutable(tmp_path: Path) -> Iterator[Path]:
    """A store whose file may not be changed, where the file system knows such a thing."""
    path = made(tmp_path / "m.db")
    frozen = subprocess.run(["chattr", "+i", str(path)], check=False, capture_output=True)
    if frozen.returncode:
        pytest.skip(f"a file cannot be made immutable: {frozen.stderr.decode().strip()}")
    yield path
    subprocess.run(["chattr", "-i", str(path)], check=True)


def test_a_read_only_file_is_named_and_intact(immutable: Path) -> None:
    before = fingerprint(immutable)
    try:
        memory = opened(immutable)
    except StoreReadOnly:
        pass
    else:
        with memory:
            assert len(memory.get_all(user_id="alice")["results"]) == 3
            with pytest.raises(StoreReadOnly):
                memory.add("milk", user_id="alice")
    assert fingerprint(immutable) == before


def test_a_writer_that_may_not_write_says_so_and_keeps_reading(tmp_path: Path) -> None:
    with opened(made(tmp_path / "m.db")) as memory:
        writer = memory.engine.store._database.writer
        writer.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreReadOnly):
            memory.add("milk", user_id="alice")
        assert len(memory.search("tea", user_id="alice")["results"]) == 3
        writer.execute("PRAGMA query_only = OFF")
        memory.add("milk", user_id="alice")
        assert memory.verify()["ok"]
