"""Index damage is detected, never used in answers, and repaired without a model."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from told import Memory
from told.errors import EmbeddingError, ModelMismatch, ToldError
from told.testing import FlakyEmbedder, HashingEmbedder, hashing_embedder

ROWS = 600
TOPICS = "tea harbour violin lantern meadow compass orchard glacier pottery thunder".split()
QUERIES = ("violin meadow 17", "the harbour lantern", "pottery and thunder", "nothing like it")


def sentences(count: int = ROWS) -> list[str]:
    return [
        f"note {n}: {TOPICS[n % 10]} beside the {TOPICS[n // 10 % 10]} on day {n}"
        for n in range(count)
    ]


def open_memory(path: Path, **options: Any) -> Memory:
    return Memory(f"sqlite:///{path}", **{"embedder": hashing_embedder(), **options})


def run_queries(memory: Memory) -> list[list[tuple[str, float]]]:
    """Run all queries; return texts and scores."""
    return [
        [
            (row["memory"], row["score"])
            for row in memory.search(query, user_id="alice", limit=100)["results"]
        ]
        for query in QUERIES
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[list[tuple[str, float]]]]:
    """Bytes of a store with two full blocks and a tail, and its answers."""
    path = tmp_path_factory.mktemp("whole") / "m.db"
    with open_memory(path, durability="normal") as memory:
        memory.add(sentences(), user_id="alice")
        memory.add(["bob's violin", "bob's meadow"], user_id="bob")
        answers = run_queries(memory)
    return path.read_bytes(), answers


@pytest.fixture
def path(whole: tuple[bytes, Any], tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    path.write_bytes(whole[0])
    return path


def damage(path: Path, statement: str, *values: Any) -> None:
    """Run a statement on the file with plain SQLite."""
    db = apsw.Connection(str(path))
    db.create_scalar_function("flip", flip_byte)
    db.execute(statement, values)
    assert db.changes()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def flip_byte(blob: bytes, offset: int) -> bytes:
    return blob[:offset] + bytes([blob[offset] ^ 0x55]) + blob[offset + 1 :]


BLOCKS = {
    "a byte flipped": "UPDATE block SET codes = flip(codes, 1000) WHERE number = 0",
    "a byte flipped in each": "UPDATE block SET codes = flip(codes, 77)",
    "cut short": "UPDATE block SET codes = substr(codes, 1, 100) WHERE number = 1",
    "cut to a whole row": "UPDATE block SET codes = substr(codes, 1, 64) WHERE number = 0",
    "emptied": "UPDATE block SET codes = x'' WHERE number = 0",
    "too long": "UPDATE block SET codes = CAST(codes || codes AS BLOB) WHERE number = 0",
    "swapped": "UPDATE block SET codes = (SELECT codes FROM block b WHERE b.number = 1 AND "
    "b.part = block.part)",
    "text in its place": "UPDATE block SET codes = 'not a block' WHERE number = 1",
    "another digest": "UPDATE block SET sha256 = flip(sha256, 3) WHERE number = 1",
    "another epoch": "UPDATE block SET epoch = epoch + 1",
    "another builder": "UPDATE block SET builder = builder + 1 WHERE number = 0",
    "of no partition": "UPDATE block SET part = 999 WHERE number = 0",
    "of no model": "UPDATE block SET model = 999 WHERE number = 0",
    "renumbered": "UPDATE block SET number = number + 7",
    "exchanged": "UPDATE block SET number = number + 10; UPDATE block SET number = 11 - number",
    "one deleted": "DELETE FROM block WHERE number = 0",
    "all deleted": "DELETE FROM block",
}


@pytest.mark.parametrize("statement", BLOCKS.values(), ids=BLOCKS.keys())
def test_damaged_block_is_reported_repaired_and_not_used(
    path: Path, whole: tuple[bytes, Any], statement: str
) -> None:
    damage(path, statement)
    with open_memory(path) as memory:
        assert run_queries(memory) == whole[1]
        assert any("block" in problem for problem in memory.engine.store.check_integrity())
        assert any("block" in problem for problem in memory.verify()["index_problems"])
        assert not memory.verify()["ok"]
        assert memory.engine.store.repair() > 0
        assert memory.engine.store.check_integrity() == []
        assert memory.verify()["ok"]
        assert run_queries(memory) == whole[1]
    assert count_blocks(path) == 2


def count_blocks(path: Path) -> int:
    db = apsw.Connection(str(path))
    try:
        return db.execute("SELECT count(*) FROM block").get
    finally:
        db.close()


def test_blocks_deleted_under_an_open_store_do_not_change_answers(
    path: Path, whole: tuple[bytes, Any]
) -> None:
    with open_memory(path) as memory:
        assert run_queries(memory) == whole[1]
        db = apsw.Connection(str(path))
        db.execute("DELETE FROM block")
        db.close()
        assert run_queries(memory) == whole[1]
        memory.add("one more violin", user_id="alice")
        assert "one more violin" in {
            row["memory"] for row in memory.search("violin", user_id="alice")["results"]
        }


POSTINGS = {
    "one term deleted": "DELETE FROM posting WHERE term = 'violin'",
    "all deleted": "DELETE FROM posting",
    "a byte flipped": "UPDATE posting SET docs = flip(docs, 1) WHERE term = 'violin'",
    "beyond the rows": "UPDATE posting SET docs = x'ffffff7f' WHERE term = 'violin'",
    "cut short": "UPDATE posting SET docs = substr(docs, 1, 7) WHERE term = 'violin'",
    "text in its place": "UPDATE posting SET docs = 'oops!' WHERE term = 'violin'",
}


@pytest.mark.parametrize("statement", POSTINGS.values(), ids=POSTINGS.keys())
def test_damaged_postings_are_reported_and_repaired(
    path: Path, whole: tuple[bytes, Any], statement: str
) -> None:
    damage(path, statement)
    with open_memory(path) as memory:
        try:
            run_queries(memory)
        except ToldError as error:
            assert "verify" in str(error) or "rebuild" in str(error)  # noqa: PT017
        assert memory.engine.store.check_integrity() != []
        assert not memory.verify()["ok"]
        memory.engine.store.repair()
        assert memory.engine.store.check_integrity() == []
        assert run_queries(memory) == whole[1]


@pytest.mark.parametrize("statement", POSTINGS.values(), ids=POSTINGS.keys())
def test_rebuild_repairs_damaged_postings(
    path: Path, whole: tuple[bytes, Any], statement: str
) -> None:
    damage(path, statement)
    with open_memory(path) as memory:
        memory.rebuild(["passages"])
        assert run_queries(memory) == whole[1]


@pytest.mark.parametrize(
    "which", ["BETWEEN 5 AND 9", "> (SELECT max(id & 4294967295) - 3 FROM passage)"]
)
def test_deleted_passages_are_reported_and_rebuilt(
    path: Path, whole: tuple[bytes, Any], which: str
) -> None:
    damage(path, f"DELETE FROM passage WHERE id & 4294967295 {which}")
    with open_memory(path) as memory:
        try:
            run_queries(memory)
        except ToldError as error:
            assert "verify" in str(error) or "rebuild" in str(error)  # noqa: PT017
        assert not memory.verify()["ok"]
        memory.rebuild()
        assert run_queries(memory) == whole[1]
        assert memory.verify()["ok"]


# Vectors


FACT_DAMAGE = {
    "its fact deleted": "DELETE FROM fact WHERE text LIKE 'zebulon%'",
    "its place forgotten": "UPDATE fact SET first = NULL, last = NULL WHERE text LIKE 'zebulon%'",
    "another place": "UPDATE fact SET first = first + 7, last = last + 7 WHERE text LIKE "
    "'zebulon%'",
}


@pytest.mark.parametrize("statement", FACT_DAMAGE.values(), ids=FACT_DAMAGE.keys())
def test_erasure_works_when_the_fact_view_is_damaged(tmp_path: Path, statement: str) -> None:
    path, left = tmp_path / "m.db", []
    with open_memory(path) as memory:
        memory.add("tea", user_id="alice")
    left.append(count_traces(path))
    with open_memory(path) as memory:
        (row,) = memory.add("zebulon plays the violin", user_id="alice")["results"]
    damage(path, statement)
    with open_memory(path) as memory:
        memory.erase(memory_id=row["id"])
    left.append(count_traces(path))
    assert left[0] == left[1]


def test_erasure_removes_passage_with_damaged_hash(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with open_memory(path) as memory:
        (row,) = memory.add("zebulon plays the violin", user_id="alice")["results"]
    damage(path, "UPDATE passage SET hash = 'zebulon'")
    with open_memory(path) as memory:
        memory.erase(memory_id=row["id"])
    assert count_traces(path)[:2] == (0, 0)


def count_traces(path: Path) -> tuple[int, ...]:
    """Count occurrences of the name in the file, passages and vectors."""
    with apsw.Connection(str(path)) as db:
        counts = db.execute(
            "SELECT (SELECT count(*) FROM passage), (SELECT count(*) FROM embedding)"
        ).fetchone()
    db.close()
    return path.read_bytes().count(b"zebulon"), *counts


def test_deleted_vectors_are_counted_and_reindexed(path: Path, whole: tuple[bytes, Any]) -> None:
    damage(path, "DELETE FROM embedding")
    damage(path, "DELETE FROM block")
    with open_memory(path) as memory:
        assert {text for text, _ in run_queries(memory)[0]} <= set(sentences())
        assert memory.stats()["pending_vectors"] == ROWS + 2
        assert any("reindex" in problem for problem in memory.verify()["index_problems"])
        memory.reindex()
        assert memory.stats()["pending_vectors"] == 0
        assert run_queries(memory) == whole[1]
        assert memory.verify()["ok"]


VECTORS_IN_BLOCKS = {
    "deleted": "DELETE FROM embedding WHERE hash IN (SELECT hash FROM passage WHERE id & "
    "4294967295 < 512)",
    "a byte flipped": "UPDATE embedding SET code = flip(code, 3) WHERE hash IN (SELECT hash FROM "
    "passage "
    "WHERE id & 4294967295 IN (0, 300, 511))",
    "cut short": "UPDATE embedding SET code = substr(code, 1, 10) WHERE hash = (SELECT min(hash) "
    "FROM passage "
    "WHERE id & 4294967295 < 512)",
}


@pytest.mark.parametrize("mend", ["rebuild", "repair"])
@pytest.mark.parametrize("statement", VECTORS_IN_BLOCKS.values(), ids=VECTORS_IN_BLOCKS.keys())
def test_vectors_are_restored_from_blocks_without_embedder(
    path: Path, whole: tuple[bytes, Any], statement: str, mend: str
) -> None:
    db = apsw.Connection(str(path))
    [part] = db.execute("SELECT part FROM block LIMIT 1").fetchone()
    db.close()
    damage(
        path,
        statement.replace("id & 4294967295", f"id - ({part} << 32) >= 0 AND id - ({part} << 32)"),
    )
    with open_memory(path, embedder="none") as memory:
        assert any("block" in problem for problem in memory.verify()["index_problems"])
        if mend == "rebuild":
            memory.rebuild()
        else:
            memory.engine.store.repair()
        assert memory.verify()["ok"]
    with open_memory(path) as memory:
        assert run_queries(memory) == whole[1]


VECTORS = {
    "cut short": "UPDATE embedding SET code = substr(code, 1, 10)",
    "text in its place": "UPDATE embedding SET code = 'oops!'",
}


@pytest.mark.parametrize("statement", VECTORS.values(), ids=VECTORS.keys())
def test_damaged_vectors_are_reported_and_do_not_crash_search(path: Path, statement: str) -> None:
    damage(
        path, f"{statement} WHERE hash IN (SELECT hash FROM passage WHERE id & 4294967295 > 550)"
    )
    with open_memory(path) as memory:
        try:
            run_queries(memory)
        except ToldError as error:
            assert "verify" in str(error) or "reindex" in str(error)  # noqa: PT017
        assert not memory.verify()["ok"]


def test_reembedded_vector_replaces_damaged_one_everywhere(
    path: Path, whole: tuple[bytes, Any]
) -> None:
    damage(path, "UPDATE embedding SET code = x'00'")
    damage(path, "DELETE FROM block")
    with open_memory(path, embedder=hashing_embedder(local=False)) as memory:
        assert memory.engine.store.repair() == ROWS + 2
        assert memory.stats()["pending_vectors"] == ROWS + 2
        run_queries(memory)
        memory.add(sentences(), user_id="carol")
        assert memory.stats()["pending_vectors"] == 0
        assert run_queries(memory) == whole[1]
        assert memory.verify()["ok"]


def test_rebuild_succeeds_with_damaged_vectors(path: Path) -> None:
    damage(path, "UPDATE embedding SET code = substr(code, 1, 10)")
    with open_memory(path) as memory:
        memory.rebuild()
        assert len(memory.get_all(user_id="alice", limit=1000)["results"]) == ROWS


# Other models


MODEL = hashing_embedder().model


@pytest.mark.parametrize(("model", "dim"), [("other-32", 32), ("other-64", 64), (MODEL, 32)])
def test_different_embedder_is_rejected_with_reindex_hint(path: Path, model: str, dim: int) -> None:
    before = path.read_bytes()
    with pytest.raises(ModelMismatch) as refused:
        open_memory(path, embedder=hashing_embedder(dim=dim, model=model))
    assert MODEL in str(refused.value)
    assert "reindex" in str(refused.value)
    assert path.read_bytes() == before
    with open_memory(path) as memory:
        assert memory.verify()["ok"]


def test_store_without_embedder_searches_by_words_and_warns(path: Path) -> None:
    with open_memory(path, embedder="none") as memory:
        found = memory.search("violin", user_id="alice")
        assert found["warnings"]
        assert all("violin" in row["memory"] for row in found["results"])
        memory.add("a violin without a vector", user_id="alice")
        assert memory.stats()["pending_vectors"] == 1
    with open_memory(path) as memory:
        assert memory.stats()["pending_vectors"] == 1
        assert "a violin without a vector" in texts(
            memory.search("violin without a vector", user_id="alice")
        )
        assert memory.reindex()["embedded"] == 1


def texts(found: dict[str, Any]) -> list[str]:
    return [row["memory"] for row in found["results"]]


class CallbackEmbedder(HashingEmbedder):
    """Embedder that runs a callback before each batch."""

    def __init__(self, callback: Callable[[], None], **options: Any) -> None:
        super().__init__(**options)
        self.callback = callback

    def embed(self, texts: Sequence[str], purpose: Any = "passage") -> Any:
        if len(texts) > 1:
            self.callback()
        return super().embed(texts, purpose)


@pytest.fixture
def searching(path: Path) -> Iterator[tuple[Memory, list[Any], Callable[[], None]]]:
    """Store searched by two threads, their failures, and a function that waits for searches."""
    stop, failed = threading.Event(), []
    searched = threading.Semaphore(0)
    with open_memory(path) as memory:

        def search_loop() -> None:
            while not stop.is_set():
                try:
                    found = memory.search("violin meadow", user_id="alice", limit=20)
                    if len(found["results"]) != 20 or not any(
                        "violin" in text for text in texts(found)
                    ):
                        failed.append(found)
                    if memory.search("note", user_id="nobody")["results"]:
                        failed.append("a leak")
                except Exception as error:
                    failed.append(error)
                searched.release()

        def wait() -> None:
            for _ in range(3):
                searched.acquire(timeout=30)

        threads = [threading.Thread(target=search_loop) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield memory, failed, wait
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("dim", [48, 64])
def test_searches_work_during_reindex(
    searching: tuple[Memory, list[Any], Callable[[], None]], tmp_path: Path, dim: int
) -> None:
    memory, failed, wait = searching
    for turn in range(3):
        report = memory.reindex(CallbackEmbedder(wait, dim=dim, model=f"new-{turn}"))
        assert report["embedded"] >= ROWS
        wait()
    assert failed == []
    with open_memory(
        tmp_path / "fresh.db", embedder=hashing_embedder(dim=dim, model="new-2")
    ) as fresh:
        fresh.add(sentences(), user_id="alice")
        assert run_queries(memory) == run_queries(fresh)
    assert memory.verify()["ok"]
    assert memory.stats()["model"] == {"name": "new-2", "dim": dim}


def test_memories_added_during_reindex_are_embedded(path: Path) -> None:
    with open_memory(path) as memory:
        added: list[str] = []

        def callback() -> None:
            added.append(f"the kettle number {len(added)}")
            memory.add(added[-1], user_id="alice")

        memory.reindex(CallbackEmbedder(callback, dim=32, model="new"))
        assert added
        assert memory.stats()["pending_vectors"] == 0
        assert memory.verify()["ok"]
        for text in added:
            assert text in texts(memory.search(text, user_id="alice", limit=len(added) + 1))


def test_interrupted_reindex_changes_nothing_and_can_be_resumed(
    path: Path, whole: tuple[bytes, Any]
) -> None:
    class Breaking(HashingEmbedder):
        calls = 0

        def embed(self, texts: Sequence[str], purpose: Any = "passage") -> Any:
            Breaking.calls += 1
            if Breaking.calls == 2:
                raise EmbeddingError("The line went dead.")
            return super().embed(texts, purpose)

    with open_memory(path) as memory:
        with pytest.raises(EmbeddingError):
            memory.reindex(Breaking(dim=32, model="new"))
        assert memory.stats()["model"] == {"name": MODEL, "dim": 64}
        assert run_queries(memory) == whole[1]
    with open_memory(path) as memory:
        assert run_queries(memory) == whole[1]
        report = memory.reindex(hashing_embedder(dim=32, model="new"))
        assert report["embedded"] < ROWS
        assert memory.stats()["model"] == {"name": "new", "dim": 32}
        assert memory.verify()["ok"]
    with pytest.raises(ModelMismatch):
        open_memory(path)


def test_client_with_old_model_fails_or_warns_after_reindex(
    path: Path,
) -> None:
    with open_memory(path) as memory, open_memory(path) as old:
        run_queries(old)
        memory.reindex(hashing_embedder(dim=64, model="new"))
        try:
            found = old.search("violin meadow", user_id="alice")
        except ModelMismatch as error:
            assert "reindex" in str(error) or "Open" in str(error)  # noqa: PT017
        else:
            assert found.get("warnings"), (
                "vectors of one model were compared with those of another in silence"
            )


# Outages


@pytest.mark.parametrize("local", [True, False])
def test_embedder_outage_loses_no_memory(tmp_path: Path, local: bool) -> None:
    flaky = FlakyEmbedder(10**6, local=local)
    with open_memory(tmp_path / "m.db", embedder=flaky) as memory:
        for number in range(5):
            receipt = memory.add(
                [f"{text} again" for text in sentences(30)[number * 6 : number * 6 + 6]],
                user_id="alice",
            )
            assert any("Not embedded yet" in warning for warning in receipt["warnings"])
            assert [row["event"] for row in receipt["results"]] == ["ADD"] * 6
        found = memory.search("violin", user_id="alice")
        assert any("embedder failed" in warning for warning in found["warnings"])
        assert "note 2: violin beside the tea on day 2 again" in texts(found)
        assert memory.stats()["pending_vectors"] == 30
        flaky.failures = 0
        assert memory.reindex()["embedded"] == 30
        assert memory.stats()["pending_vectors"] == 0
        with open_memory(tmp_path / "fresh.db") as fresh:
            fresh.add([f"{text} again" for text in sentences(30)], user_id="alice")
            assert run_queries(fresh) == run_queries(memory)
        assert memory.verify()["ok"]


def test_remote_embedder_catches_up_after_outage(tmp_path: Path) -> None:
    flaky = FlakyEmbedder(10**6)
    with open_memory(tmp_path / "m.db", embedder=flaky) as memory:
        memory.add(["the first violin", "the second violin"], user_id="alice")
        assert memory.stats()["pending_vectors"] == 2
        flaky.failures = 0
        receipt = memory.add("the third violin", user_id="alice")
        assert "warnings" not in receipt
        assert memory.stats()["pending_vectors"] == 0


class InvalidEmbedder(HashingEmbedder):
    """Embedder that returns invalid vectors."""

    def __init__(self, answer: Callable[[Sequence[str]], Any], *, local: bool) -> None:
        super().__init__(local=local)
        self.answer = answer

    def embed(self, texts: Sequence[str], purpose: Any = "passage") -> Any:
        return self.answer(texts)


INVALID_REPLIES: dict[str, Callable[[Sequence[str]], Any]] = {
    "nothing": lambda texts: None,
    "too few": lambda texts: [],
    "too many": lambda texts: [[1.0] * 64] * (len(texts) + 1),
    "too short": lambda texts: [[1.0] * 3 for _ in texts],
    "too long": lambda texts: [[1.0] * 65 for _ in texts],
    "not numbers": lambda texts: [["x"] * 64 for _ in texts],
    "not a number": lambda texts: [[float("nan")] * 64 for _ in texts],
    "infinite": lambda texts: [[float("inf")] * 64 for _ in texts],
    "zeros": lambda texts: [[0.0] * 64 for _ in texts],
}


@pytest.mark.parametrize("local", [True, False], ids=["local", "remote"])
@pytest.mark.parametrize("answer", INVALID_REPLIES.values(), ids=INVALID_REPLIES.keys())
def test_invalid_embedder_reply_loses_no_memory(tmp_path: Path, answer: Any, local: bool) -> None:
    with open_memory(tmp_path / "m.db", embedder=InvalidEmbedder(answer, local=local)) as memory:
        receipt = memory.add("the violin is new", user_id="alice")
        assert receipt["results"][0]["event"] == "ADD"
        assert texts(memory.search("violin", user_id="alice")) == ["the violin is new"]
        assert memory.verify()["ok"]
    with open_memory(tmp_path / "m.db") as memory:
        if answer is not INVALID_REPLIES["zeros"]:
            assert memory.reindex()["embedded"] == 1
        assert texts(memory.search("violin", user_id="alice")) == ["the violin is new"]
