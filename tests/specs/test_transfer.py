"""Export, import and backup: round trips are byte-identical and a backup is a complete store."""

import errno
import io
import json
import os
import random
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.errors import Diverged, InvalidInput, StoreError, ToldError
from told.ids import sha256
from told.model.entry import GENESIS, compute_chain_hash
from told.ports import VIEWS
from told.testing import hashing_embedder, seeded_mint

OpenStore = Callable[..., Memory]


@pytest.fixture(params=["sqlite", "ram"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Open a store by name; the same name is the same file."""
    memories: list[Memory] = []

    def open_store(name: str, **options: Any) -> Memory:
        url = f"sqlite:///{tmp_path}/{name}.db" if request.param == "sqlite" else "ram://"
        memories.append(Memory(url, **{"embedder": hashing_embedder(), **options}))
        return memories[-1]

    yield open_store
    for memory in memories:
        memory.close()


def add_random_history(memory: Memory, seed: int = 1, steps: int = 40) -> None:
    """Write a random history that uses every verb."""
    rng = random.Random(seed)
    ids: list[str] = []
    for step in range(steps):
        match rng.choice("add add add several update delete link again erase".split()):
            case "several":
                said = [
                    {
                        "role": "user",
                        "content": f"s{seed} {step} {n} «東京» 🦜\u2028",
                        "name": "Ann",
                    }
                    for n in range(3)
                ]
                ids += [
                    row["id"] for row in memory.add(said, user_id="alice", source="chat")["results"]
                ]
            case "update" if ids:
                memory.update(
                    rng.choice(ids),
                    f"s{seed} {step} updated",
                    metadata={"step": step, "π": 3.14159},
                )
            case "delete" if len(ids) > 3:
                memory.delete(ids.pop(0))
            case "link" if len(ids) > 1:
                memory.link(
                    ids[0],
                    "supports",
                    ids[-1],
                    weight=0.25,
                    metadata={"n": 1e-7},
                    user_id="alice",
                )
            case "again" if ids:
                memory.add(
                    {"role": "assistant", "content": memory.get(ids[-1])["memory"]},
                    user_id="alice",
                )
            case "erase" if len(ids) > 5:
                memory.erase(ids.pop(1))
            case _:
                options = {"timestamp": "2024-02-29T12:00:00+02:00", "expiration_date": "2999-01"}
                said = f"s{seed} {step} plain"
                scope = {"user_id": "alice", "run_id": "r1" if step % 3 else None}
                added = memory.add(said, **scope, metadata={"k": [1, None, True]}, **options)
                ids += [row["id"] for row in added["results"]]


def export_bytes(memory: Memory) -> bytes:
    file = io.BytesIO()
    memory.export(file)
    return file.getvalue()


def dump_views(memory: Memory) -> dict[str, list[Any]]:
    return {
        view: list(memory.engine.store.view_rows(memory.engine.account, view)) for view in VIEWS
    }


# Export and import


@pytest.mark.parametrize("seed", range(3))
def test_export_import_export_round_trip_is_byte_identical(
    open_store: OpenStore, tmp_path: Path, seed: int
) -> None:
    here, there = open_store("here"), open_store("there")
    add_random_history(here, seed)
    report = here.export(tmp_path / "a.jsonl")
    assert report["entries"] == here.stats()["entries"]
    assert there.import_(tmp_path / "a.jsonl") == {"entries": report["entries"]}
    there.export(str(tmp_path / "b.jsonl"))
    assert (
        (tmp_path / "a.jsonl").read_bytes()
        == (tmp_path / "b.jsonl").read_bytes()
        == export_bytes(here)
    )
    assert there.verify()["ok"]
    assert dump_views(there) == dump_views(here)
    for query in ("plain updated", "東京", "nothing"):
        assert there.search(query, user_id="alice", limit=50) == here.search(
            query, user_id="alice", limit=50
        )
    assert there.stats()["pending_vectors"] == 0


def test_ledger_moves_between_store_backends(tmp_path: Path) -> None:
    with Memory("ram://", embedder=hashing_embedder()) as ram:
        add_random_history(ram, 5)
        with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as sqlite:
            sqlite.import_(export_bytes(ram))
            assert export_bytes(sqlite) == export_bytes(ram)
            assert sqlite.get_all(user_id="alice") == ram.get_all(user_id="alice")
            assert sqlite.search("plain", user_id="alice") == ram.search("plain", user_id="alice")


def test_importing_twice_adds_nothing(open_store: OpenStore) -> None:
    here, there = open_store("here"), open_store("there")
    add_random_history(here)
    file = export_bytes(here)
    there.import_(file)
    before = dump_views(there)
    assert there.import_(file) == {"entries": 0}
    assert here.import_(file) == {"entries": 0}
    assert dump_views(there) == before
    assert export_bytes(there) == file


def test_importing_a_longer_export_appends_the_new_entries(open_store: OpenStore) -> None:
    here, there = open_store("here"), open_store("there")
    add_random_history(here, 1)
    there.import_(export_bytes(here))
    before = here.stats()["entries"]
    add_random_history(here, 2)
    assert there.import_(export_bytes(here)) == {"entries": here.stats()["entries"] - before}
    assert export_bytes(there) == export_bytes(here)
    assert dump_views(there) == dump_views(here)
    assert there.import_(io.BytesIO(export_bytes(here))) == {"entries": 0}


def test_import_of_a_diverged_ledger_fails_and_changes_nothing(open_store: OpenStore) -> None:
    here, there = open_store("here"), open_store("there")
    here.add("common", user_id="alice")
    there.import_(export_bytes(here))
    here.add("said here", user_id="alice")
    there.add("said there", user_id="alice")
    before = export_bytes(there)
    with pytest.raises(Diverged, match="Entry 3"):
        there.import_(export_bytes(here))
    assert export_bytes(there) == before
    assert [row["memory"] for row in there.get_all(user_id="alice")["results"]] == [
        "common",
        "said there",
    ]


def test_export_can_be_imported_into_another_account_of_the_same_store(tmp_path: Path) -> None:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as memory:
        add_random_history(memory, 3)
        with Memory(
            f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder(), account="copy"
        ) as copy:
            copy.import_(export_bytes(memory))
            assert [row["memory"] for row in copy.get_all(user_id="alice")["results"]] == [
                row["memory"] for row in memory.get_all(user_id="alice")["results"]
            ]
            assert copy.verify()["ok"]
            ids = [row["id"] for row in copy.get_all(user_id="alice")["results"]]
            copy.update(ids[0], "changed in the copy alone")
            copy.delete(ids[1])
            assert memory.get(ids[0])["memory"] != "changed in the copy alone"
            assert memory.get(ids[1]) is not None
            copy.erase(ids[2])
            assert memory.get(ids[2]) is not None
            assert len(memory.history(ids[0])) == len(copy.history(ids[0])) - 1
        assert memory.verify()["ok"]


def test_empty_ledger_round_trips(open_store: OpenStore) -> None:
    file = export_bytes(open_store("here"))
    assert len(file.splitlines()) == 1
    there = open_store("there")
    assert there.import_(file) == {"entries": 0}
    assert export_bytes(there) == file


def test_import_accepts_blank_lines_and_text_files(open_store: OpenStore) -> None:
    here, there = open_store("here"), open_store("there")
    add_random_history(here)
    spaced = io.StringIO(export_bytes(here).decode().replace("\n", "\n\n"))
    assert there.import_(spaced)["entries"] == here.stats()["entries"]
    assert export_bytes(there) == export_bytes(here)


def test_export_of_several_pages_round_trips(tmp_path: Path) -> None:
    with (
        Memory("ram://", embedder="none") as here,
        Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as there,
    ):
        here.add([f"number {n}" for n in range(1300)], user_id="alice")
        assert there.import_(export_bytes(here)) == {"entries": 2600}
        assert export_bytes(there) == export_bytes(here)
        assert there.verify()["ok"]


# Invalid exports


@pytest.fixture(scope="module")
def file() -> bytes:
    with Memory("ram://", embedder="none", mint=seeded_mint(1)) as memory:
        memory.add([f"number {n}" for n in range(20)], user_id="alice")
        memory.erase(memory.get_all(user_id="alice")["results"][3]["id"])
        return export_bytes(memory)


NOT_EXPORTS = {
    "empty": b"",
    "blank": b"\n\n",
    "text": b"Dear diary\n",
    "json": b"{}\n",
    "a list": b"[1]\n",
    "null": b"null\n",
    "another format": b'{"format":"told-ledger/99","account":"default"}\n',
    "binary": bytes(range(256)) * 4,
    "no header": b'{"seq":1}\n',
}


@pytest.mark.parametrize("content", NOT_EXPORTS.values(), ids=NOT_EXPORTS.keys())
def test_file_that_is_not_an_export_is_rejected(open_store: OpenStore, content: bytes) -> None:
    memory = open_store("m")
    with pytest.raises(InvalidInput, match="not a told export"):
        memory.import_(content)
    assert memory.stats()["entries"] == 0


LINES: dict[str, Callable[[bytes], bytes]] = {
    "cut in the middle": lambda line: line[: len(line) // 2] + b"\n",
    "not JSON": lambda line: b"oops\n",
    "not UTF-8": lambda line: b"\xff\xfe" + line,
    "a number": lambda line: b"17\n",
    "a list": lambda line: b"[]\n",
    "a field missing": lambda line: _replace_fields(line, hash=...),
    "a digest that is no hex": lambda line: _replace_fields(line, digest="zz"),
    "a digest of another length": lambda line: _replace_fields(line, digest="00"),
    "a hash that is a number": lambda line: _replace_fields(line, hash=7),
    "a position that is text": lambda line: _replace_fields(line, seq="5"),
    "a position that is null": lambda line: _replace_fields(line, seq=None),
    "a position that is negative": lambda line: _replace_fields(line, seq=-5),
    "a position that is huge": lambda line: _replace_fields(line, seq=2**70),
    "a time that is text": lambda line: _replace_fields(line, at="now"),
    "a transaction that is a list": lambda line: _replace_fields(line, tx=[1]),
    "an unknown verb": lambda line: _replace_fields(line, sort="whispered"),
    "a verb that is a number": lambda line: _replace_fields(line, sort=3),
    "an envelope that is a number": lambda line: _replace_fields(line, envelope=3),
    "an envelope that is no JSON": lambda line: _replace_fields(line, envelope="{"),
    "an envelope that is a list": lambda line: _replace_fields(line, envelope="[]"),
    "an envelope of the future": lambda line: _replace_fields(line, envelope='{"v":99}'),
    "an envelope without a version": lambda line: _replace_fields(line, envelope="{}"),
    "a lone surrogate": lambda line: line.replace(b"number", b"\\\\ud800umber"),
    "a text changed": lambda line: line.replace(b"number", b"NUMBER"),
    "a salt removed": lambda line: _replace_fields(line, salt=None),
    "a salt changed": lambda line: _replace_fields(line, salt="00" * 16),
    "a time changed": lambda line: _replace_fields(line, at=1),
    "deep nesting": lambda line: b"[" * 100_000 + b"\n",
}


def _replace_fields(line: bytes, **fields: Any) -> bytes:
    data = {**json.loads(line), **fields}
    return (
        json.dumps({name: value for name, value in data.items() if value is not ...}).encode()
        + b"\n"
    )


@pytest.mark.parametrize("spoil", LINES.values(), ids=LINES.keys())
def test_corrupt_line_is_named_and_its_page_is_not_imported(
    open_store: OpenStore, file: bytes, spoil: Callable[[bytes], bytes]
) -> None:
    lines = file.splitlines(keepends=True)
    asserted = next(
        n
        for n, line in enumerate(lines)
        if n > 10 and b'"sort":"asserted"' in line and b"number" in line
    )
    lines[asserted] = spoil(lines[asserted])
    memory = open_store("m")
    with pytest.raises(ToldError) as refused:
        memory.import_(b"".join(lines))
    assert f"Line {asserted + 1} " in str(refused.value) or re.search(
        r"[Ee]ntry -?\d+ ", str(refused.value)
    ), refused.value
    assert memory.stats()["entries"] == 0
    assert memory.get_all(user_id="alice")["results"] == []
    memory.import_(file)
    assert export_bytes(memory) == file


def test_reordered_or_missing_lines_are_rejected(open_store: OpenStore, file: bytes) -> None:
    lines = file.splitlines(keepends=True)
    for spoiled in (
        [*lines[:5], lines[6], lines[5], *lines[7:]],
        [*lines[:5], *lines[6:]],
        [lines[0], *lines[3:]],
    ):
        memory = open_store(f"m{len(spoiled)}{spoiled[5][:9].hex()}")
        with pytest.raises(ToldError):
            memory.import_(b"".join(spoiled))
        assert memory.stats()["entries"] == 0


def test_entry_without_content_is_accepted_only_with_a_tombstone(
    open_store: OpenStore,
) -> None:
    here, there = open_store("here"), open_store("there")
    here.add(["one", "two"], user_id="alice")
    lines = export_bytes(here).splitlines(keepends=True)
    lines[2] = _replace_fields(lines[2], envelope=None, salt=None)
    try:
        there.import_(b"".join(lines))
    except ToldError:
        assert there.stats()["entries"] == 0
    else:
        assert not there.verify()["ok"]


def test_truncated_export_imports_its_first_entries(open_store: OpenStore) -> None:
    here = open_store("here")
    here.add([f"number {n}" for n in range(20)], user_id="alice")
    file = export_bytes(here)
    lines = file.splitlines(keepends=True)
    for count in (1, 2, 8, 21):
        memory = open_store(f"m{count}")
        assert memory.import_(b"".join(lines[:count])) == {"entries": count - 1}
        assert memory.verify()["ok"]
        memory.import_(file)
        assert export_bytes(memory) == file


def test_export_truncated_before_a_tombstone_or_blob_imports_with_a_warning(
    open_store: OpenStore,
) -> None:
    here = open_store("here")
    here.upload(b"The boiler hums.", name="boiler.txt", user_id="alice")
    here.erase(here.add("the code is 4711", user_id="alice", infer=False)["results"][0]["id"])
    here.upload(b"The attic leaks.", name="attic.txt", user_id="alice")
    file = export_bytes(here)
    lines = file.splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"sort":"erased"' in line)
    before_erasure, without_blob = open_store("before"), open_store("without")
    assert "has no content and the export has no tombstone" in str(
        before_erasure.import_(b"".join(lines[:place]))
    )
    assert "1 documents and images" in str(without_blob.import_(b"".join(lines[:-1]))["warnings"])
    for memory in (before_erasure, without_blob):
        assert "warnings" not in memory.import_(file)
        assert "warnings" not in memory.import_(b"".join(lines[:-1]))  # the blob is already stored
        assert export_bytes(memory) == file
        assert memory.verify()["ok"]


def test_forged_ledger_with_a_valid_hash_chain_is_rejected(open_store: OpenStore) -> None:
    """Anyone can compute matching hashes, so the content of entries must be checked too."""
    memory = open_store("m")
    bodies = [
        {"thread": "t", "text": 17},
        {"thread": "t", "text": None},
        {"thread": 5, "text": "x"},
        {"text": "x"},
        {"thread": "t", "text": "x", "meta": 5},
        {"thread": "t", "text": "x", "unknown": 1},
        {"thread": "t", "text": "x", "valid": "never"},
        {"thread": "t", "text": "x", "expires": "soon"},
        {"thread": "t", "text": "x", "span": 5},
        {"thread": "t", "text": "x", "meta": {"a": "\ud800"}},
        {"thread": "t", "text": "x", "confidence": []},
        {"thread": "t", "text": "x", "since": "then"},
    ]
    for body in bodies:
        with pytest.raises(ToldError):
            memory.import_(
                forge_export(
                    {
                        "v": 1,
                        "scope": {"user_id": "alice"},
                        "author": "user",
                        "policy": "private",
                        "body": body,
                    }
                )
            )
        assert memory.stats()["entries"] == 0
    for scope in (
        {"user_id": 5},
        {"user_id": "*"},
        {"user_id": ""},
        {"user_id": []},
        {},
        [],
        "alice",
        {"user_id": "a\0b"},
    ):
        with pytest.raises(ToldError):
            memory.import_(
                forge_export(
                    {
                        "v": 1,
                        "scope": scope,
                        "author": "u",
                        "policy": "private",
                        "body": {"thread": "t", "text": "x"},
                    }
                )
            )
        assert memory.stats()["entries"] == 0


def forge_export(
    envelope: dict[str, Any], sort: str = "asserted", seq: int = 1, tx: int = 1, at: int = 1
) -> bytes:
    body = json.dumps(envelope).encode()
    salt = bytes(16)
    digest = sha256(salt, body)
    mark = compute_chain_hash(GENESIS, seq=seq, tx=tx, at=at, sort=sort, thread="t", digest=digest)
    row = {
        "seq": seq,
        "tx": tx,
        "at": at,
        "sort": sort,
        "thread": "t",
        "digest": digest.hex(),
        "hash": mark.hex(),
        "salt": salt.hex(),
        "envelope": body.decode(),
    }
    return b'{"format":"told-ledger/1","account":"default"}\n' + json.dumps(row).encode() + b"\n"


def test_export_of_a_newer_format_asks_for_an_upgrade(open_store: OpenStore) -> None:
    with pytest.raises(InvalidInput, match="Upgrade told"):
        open_store("m").import_(b'{"account":"default","format":"told-ledger/2"}\n')


def test_times_beyond_the_calendar_are_rejected(open_store: OpenStore) -> None:
    envelope = {
        "v": 1,
        "scope": {"user_id": "alice"},
        "author": "u",
        "policy": "private",
        "body": {"thread": "t", "text": "x"},
    }
    memory = open_store("m")
    for at in (253_402_300_799_999_999, 2**62, 2**63, 2**80, -(2**63)):
        with pytest.raises(ToldError):
            memory.import_(forge_export(envelope, at=at))
        assert memory.stats()["entries"] == 0


# Backup


def test_backup_during_concurrent_writes_is_consistent_and_does_not_wait(
    tmp_path: Path,
) -> None:
    stop, counts, most = threading.Event(), [0] * 4, 330
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none", durability="normal") as memory:
        memory.add([f"number {n} " + "x" * 90_000 for n in range(300)], user_id="alice")

        def write(number: int) -> None:
            while not stop.is_set() and counts[number] < most:
                memory.add(
                    [f"thread {number} says {counts[number]} {part}" for part in range(3)],
                    user_id=f"w{number}",
                )
                counts[number] += 1

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            before = list(counts)
            memory.backup(tmp_path / "copy.db")
            after = list(counts)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        check_copy(tmp_path / "copy.db", before, after)
        assert memory.verify()["ok"]
        assert min(after) < most, "the copy was only finished once nobody wrote any more"


def check_copy(path: Path, before: list[int], after: list[int]) -> None:
    """Check that the copy has all writes from before the backup and no partial add."""
    with Memory(f"sqlite:///{path}", embedder="none") as copy:
        assert copy.verify()["ok"]
        for number in range(4):
            rows = copy.get_all(user_id=f"w{number}", limit=1000)["results"]
            assert len(rows) % 3 == 0
            assert before[number] * 3 <= len(rows) <= (after[number] + 1) * 3
        copy.add("the copy is a store of its own", user_id="w0")
        assert copy.verify()["ok"]


def test_backup_over_an_existing_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "precious.db").write_bytes(b"precious")
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
        memory.add("tea", user_id="alice")
        with pytest.raises(StoreError, match="exists"):
            memory.backup(tmp_path / "precious.db")
        with pytest.raises(StoreError):
            memory.backup(tmp_path / "m.db")
        with pytest.raises(ToldError):
            memory.backup(tmp_path / "no such folder" / "copy.db")
        assert memory.verify()["ok"]
    assert (tmp_path / "precious.db").read_bytes() == b"precious"


@pytest.mark.parametrize("place", ["m.db", "m.db-wal", "m.db-shm", "other.db"])
def test_export_never_overwrites_a_database(tmp_path: Path, place: str) -> None:
    with Memory(f"sqlite:///{tmp_path}/other.db", embedder="none") as other:
        other.add("coffee", user_id="bob")
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
        memory.add("tea", user_id="alice", infer=False)
        with pytest.raises(InvalidInput, match="database"):
            memory.export(tmp_path / place)
        assert memory.verify()["ok"]
    for name, user in (("m", "alice"), ("other", "bob")):
        with Memory(f"sqlite:///{tmp_path}/{name}.db", embedder="none") as again:
            assert again.get_all(user_id=user)["results"]


def test_unusable_export_or_import_path_raises_an_error(tmp_path: Path) -> None:
    with Memory("ram://", embedder="none") as memory:
        memory.add("tea", user_id="alice")
        with pytest.raises(ToldError):
            memory.export(tmp_path / "no such folder" / "x.jsonl")
        with pytest.raises(ToldError):
            memory.export(tmp_path)
        with pytest.raises(ToldError):
            memory.import_(tmp_path / "not there.jsonl")
        with pytest.raises(ToldError):
            memory.import_(tmp_path)


def file_mode(path: Path) -> int:
    """Return the permission bits of a file."""
    return path.stat().st_mode & 0o777


def test_export_is_readable_by_its_owner_only_even_when_it_replaces_a_public_file(
    tmp_path: Path,
) -> None:
    target = tmp_path / "x.jsonl"
    target.write_text("an earlier one")
    target.chmod(0o644)
    (tmp_path / "link.jsonl").symlink_to(target)
    with Memory("ram://", embedder="none") as memory:
        memory.add("tea", user_id="alice")
        memory.export(tmp_path / "link.jsonl")
        assert Memory("ram://", embedder="none").import_(target)["entries"] == 2
    assert (file_mode(target), (tmp_path / "link.jsonl").is_symlink()) == (0o600, True)
    assert {file.name for file in tmp_path.iterdir()} == {"x.jsonl", "link.jsonl"}


def test_failed_export_keeps_the_earlier_file_and_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.jsonl"
    with Memory("ram://", embedder="none") as memory:
        memory.add("tea", user_id="alice")
        memory.export(target)
        earlier = target.read_bytes()
        memory.add("coffee", user_id="alice")

        def raise_store_error(*_: Any) -> None:
            raise StoreError("The disk is gone.")

        with monkeypatch.context() as broken:
            broken.setattr(memory.engine.store, "get_blobs", raise_store_error)
            broken.setattr(
                memory.engine.store,
                "scan_entries",
                fail_after_first_page(memory.engine.store.scan_entries, raise_store_error),
            )
            with pytest.raises(StoreError, match="gone"):
                memory.export(target)
        assert (target.read_bytes(), list(tmp_path.iterdir())) == (earlier, [target])
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", raise_no_space)
            with pytest.raises(StoreError, match="No space left"):
                memory.export(target)
        assert (target.read_bytes(), list(tmp_path.iterdir())) == (earlier, [target])
        memory.export(target)
    assert target.read_bytes().startswith(earlier)


def fail_after_first_page(scan: Callable[..., Any], fail: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a scan so that it returns its first page and then fails."""
    return lambda account, after=0, limit=1000: (
        scan(account, after, limit) if after == 0 else fail()
    )


def raise_no_space(_: int) -> None:
    """Raise the error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_export_can_be_written_to_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with Memory("ram://", embedder="none") as memory:
        memory.add("tea", user_id="alice")
        memory.export(pipe)
        reader.join()
        assert Memory("ram://", embedder="none").import_(read[0])["entries"] == 2


def test_backup_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "copies").mkdir()
    target = tmp_path / "copies" / "copy.db"
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
        memory.add("tea", user_id="alice")
        copy = memory.engine.store.backup

        def interrupted(place: Path) -> None:
            copy(place)
            assert place.parent == target.parent
            assert not target.exists()
            raise KeyboardInterrupt

        with monkeypatch.context() as broken:
            broken.setattr(memory.engine.store, "backup", interrupted)
            with pytest.raises(KeyboardInterrupt):
                memory.backup(target)
        assert list(target.parent.iterdir()) == []
        memory.backup(target)
        assert (file_mode(target), list(target.parent.iterdir())) == (0o600, [target])
        with pytest.raises(InvalidInput, match=r"no such folder/copy\.db cannot be opened"):
            memory.backup(tmp_path / "no such folder" / "copy.db")


def test_export_accepts_a_file_name_of_maximum_length(tmp_path):
    target = tmp_path / ("記" * 83 + ".jsonl")
    with Memory("ram://", embedder="none") as memory:
        memory.add("tea", user_id="u", infer=False)
        assert memory.export(target)["entries"] == 2
    assert [file.name for file in tmp_path.iterdir()] == [target.name]


def test_concurrent_backups_to_one_name_create_one_file(tmp_path):
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
        memory.add("tea", user_id="u", infer=False)

        def backup(name):
            try:
                return memory.backup(tmp_path / "copies" / name)
            except StoreError as error:
                return "exists already" in str(error)

        (tmp_path / "copies").mkdir()
        with ThreadPoolExecutor(3) as pool:
            for turn in range(25):
                done = list(pool.map(backup, [f"{turn}.db"] * 3))
                assert sorted(map(str, done)).count("True") == 2, done
    assert len(list((tmp_path / "copies").iterdir())) == 25
