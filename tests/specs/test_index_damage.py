"""The index is derived: damage to it is never an answer, is named by a check, and is mended without
a model.
"""

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


def opened(path: Path, **options: Any) -> Memory:
    return Memory(f"sqlite:///{path}", **{"embedder": hashing_embedder(), **options})


def asked(memory: Memory) -> list[list[tuple[str, float]]]:
    """Every answer to every question, with its score."""
    return [
        [
            (row["memory"], row["score"])
            for row in memory.search(query, user_id="alice", limit=100)["results"]
        ]
        for query in QUERIES
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[list[tuple[str, float]]]]:
    """A store with two full blocks and a tail, as bytes, and what it answers."""
    path = tmp_path_factory.mktemp("whole") / "m.db"
    with opened(path, durability="normal") as memory:
        memory.add(sentences(), user_id="alice")
        memory.add(["bob's violin", "bob's meadow"], user_id="bob")
        answers = asked(memory)
    return path.read_bytes(), answers


@pytest.fixture
def path(whole: tuple[bytes, Any], tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    path.write_bytes(whole[0])
    return path


def damage(path: Path, statement: str, *values: Any) -> None:
    """Change the file behind told's back."""
    db = apsw.Connection(str(path))
    db.create_scalar_function("flip", flipped)
    db.execute(statement, values)
    assert db.changes()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def flipped(blob: bytes, offset: int) -> bytes:
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
def test_a_damaged_block_is_named_and_mended_and_never_answers(
    path: Path, whole: tuple[bytes, Any], statement: str
) -> None:
    damage(path, statement)
    with opened(path) as memory:
        assert asked(memory) == whole[1]
        assert any("block" in problem for problem in memory.engine.store.check_integrity())
        assert any("block" in problem for problem in memory.verify()["index_problems"])
        assert not memory.verify()["ok"]
        assert memory.engine.store.repair() > 0
        assert memory.engine.store.check_integrity() == []
        assert memory.verify()["ok"]
        assert asked(memory) == whole[1]
    assert blocks(path) == 2


def blocks(path: Path) -> int:
    db = apsw.Connection(str(path))
    try:
        return db.execute("SELECT count(*) FROM block").get
    finally:
        db.close()


def test_damage_behind_an_open_store_is_harmless_too(path: Path, whole: tuple[bytes, Any]) -> None:
    with opened(path) as memory:
        assert asked(memory) == whole[1]
        db = apsw.Connection(str(path))
        db.execute("DELETE FROM block")
        db.close()
        assert asked(memory) == whole[1]
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
def test_damaged_postings_never_crash_a_search_and_are_named_and_mended(
    path: Path, whole: tuple[bytes, Any], statement: str
) -> None:
    damage(path, statement)
    with opened(path) as memory:
        try:
            asked(memory)
        except ToldError as error:
            assert "verify" in str(error) or "rebuild" in str(error)  # noqa: PT017
        assert memory.engine.store.check_integrity() != []
        assert not memory.verify()["ok"]
        memory.engine.store.repair()
        assert memory.engine.store.check_integrity() == []
        assert asked(memory) == whole[1]


@pytest.mark.parametrize("statement", POSTINGS.values(), ids=POSTINGS.keys())
def test_rebuilding_mends_damaged_postings(
    path: Path, whole: tuple[bytes, Any], statement: str
) -> None:
    damage(path, statement)
    with opened(path) as memory:
        memory.rebuild(["passages"])
        assert asked(memory) == whole[1]


@pytest.mark.parametrize(
    "which", ["BETWEEN 5 AND 9", "> (SELECT max(id & 4294967295) - 3 FROM passage)"]
)
def test_passages_deleted_by_hand_are_named_and_mended(
    path: Path, whole: tuple[bytes, Any], which: str
) -> None:
    damage(path, f"DELETE FROM passage WHERE id & 4294967295 {which}")
    with opened(path) as memory:
        try:
            asked(memory)
        except ToldError as error:
            assert "verify" in str(error) or "rebuild" in str(error)  # noqa: PT017
        assert not memory.verify()["ok"]
        memory.rebuild()
        assert asked(memory) == whole[1]
        assert memory.verify()["ok"]


# Vectors


LOST = {
    "its fact deleted": "DELETE FROM fact WHERE text LIKE 'zebulon%'",
    "its place forgotten": "UPDATE fact SET first = NULL, last = NULL WHERE text LIKE 'zebulon%'",
    "another place": "UPDATE fact SET first = first + 7, last = last + 7 WHERE text LIKE "
    "'zebulon%'",
}


@pytest.mark.parametrize("statement", LOST.values(), ids=LOST.keys())
def test_what_a_damaged_view_has_lost_sight_of_is_erased_all_the_same(
    tmp_path: Path, statement: str
) -> None:
    path, left = tmp_path / "m.db", []
    with opened(path) as memory:
        memory.add("tea", user_id="alice")
    left.append(_traces(path))
    with opened(path) as memory:
        (row,) = memory.add("zebulon plays the violin", user_id="alice")["results"]
    damage(path, statement)
    with opened(path) as memory:
        memory.erase(memory_id=row["id"])
    left.append(_traces(path))
    assert left[0] == left[1]


def test_a_passage_with_a_damaged_hash_is_erased_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        (row,) = memory.add("zebulon plays the violin", user_id="alice")["results"]
    damage(path, "UPDATE passage SET hash = 'zebulon'")
    with opened(path) as memory:
        memory.erase(memory_id=row["id"])
    assert _traces(path)[:2] == (0, 0)


def _traces(path: Path) -> tuple[int, ...]:
    """How often a name stands in the file, and how many passages and vectors there are."""
    with apsw.Connection(str(path)) as db:
        counts = db.execute(
            "SELECT (SELECT count(*) FROM passage), (SELECT count(*) FROM embedding)"
        ).fetchone()
    db.close()
    return path.read_bytes().count(b"zebulon"), *counts


def test_deleted_vectors_are_counted_and_embedded_again(
    path: Path, whole: tuple[bytes, Any]
) -> None:
    damage(path, "DELETE FROM embedding")
    damage(path, "DELETE FROM block")
    with opened(path) as memory:
        assert {text for text, _ in asked(memory)[0]} <= set(sentences())
        assert memory.stats()["pending_vectors"] == ROWS + 2
        assert any("reindex" in problem for problem in memory.verify()["index_problems"])
        memory.reindex()
        assert memory.stats()["pending_vectors"] == 0
        assert asked(memory) == whole[1]
        assert memory.verify()["ok"]


BLOCKED = {
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
@pytest.mark.parametrize("statement", BLOCKED.values(), ids=BLOCKED.keys())
def test_vectors_that_a_block_still_has_come_back_without_a_model(
    path: Path, whole: tuple[bytes, Any], statement: str, mend: str
) -> None:
    db = apsw.Connection(str(path))
    [part] = db.execute("SELECT part FROM block LIMIT 1").fetchone()
    db.close()
    damage(
        path,
        statement.replace("id & 4294967295", f"id - ({part} << 32) >= 0 AND id - ({part} << 32)"),
    )
    with opened(path, embedder="none") as memory:
        assert any("block" in problem for problem in memory.verify()["index_problems"])
        if mend == "rebuild":
            memory.rebuild()
        else:
            memory.engine.store.repair()
        assert memory.verify()["ok"]
    with opened(path) as memory:
        assert asked(memory) == whole[1]


VECTORS = {
    "cut short": "UPDATE embedding SET code = substr(code, 1, 10)",
    "text in its place": "UPDATE embedding SET code = 'oops!'",
}


@pytest.mark.parametrize("statement", VECTORS.values(), ids=VECTORS.keys())
def test_damaged_vectors_never_crash_a_search_and_are_named(path: Path, statement: str) -> None:
    damage(
        path, f"{statement} WHERE hash IN (SELECT hash FROM passage WHERE id & 4294967295 > 550)"
    )
    with opened(path) as memory:
        try:
            asked(memory)
        except ToldError as error:
            assert "verify" in str(error) or "reindex" in str(error)  # noqa: PT017
        assert not memory.verify()["ok"]


def test_a_vector_that_comes_again_is_seen_wherever_its_damaged_one_was(
    path: Path, whole: tuple[bytes, Any]
) -> None:
    damage(path, "UPDATE embedding SET code = x'00'")
    damage(path, "DELETE FROM block")
    with opened(path, embedder=hashing_embedder(local=False)) as memory:
        assert memory.engine.store.repair() == ROWS + 2
        assert memory.stats()["pending_vectors"] == ROWS + 2
        asked(memory)
        memory.add(sentences(), user_id="carol")
        assert memory.stats()["pending_vectors"] == 0
        assert asked(memory) == whole[1]
        assert memory.verify()["ok"]


def test_damaged_vectors_do_not_spoil_a_rebuild(path: Path) -> None:
    damage(path, "UPDATE embedding SET code = substr(code, 1, 10)")
    with opened(path) as memory:
        memory.rebuild()
        assert len(memory.get_all(user_id="alice", limit=1000)["results"]) == ROWS


# Other models


MODEL = hashing_embedder().model


@pytest.mark.parametrize(("model", "dim"), [("other-32", 32), ("other-64", 64), (MODEL, 32)])
def test_another_embedder_is_refused_with_the_way_out(path: Path, model: str, dim: int) -> None:
    before = path.read_bytes()
    with pytest.raises(ModelMismatch) as refused:
        opened(path, embedder=hashing_embedder(dim=dim, model=model))
    assert MODEL in str(refused.value)
    assert "reindex" in str(refused.value)
    assert path.read_bytes() == before
    with opened(path) as memory:
        assert memory.verify()["ok"]


def test_a_store_opened_without_an_embedder_answers_by_words_and_says_so(path: Path) -> None:
    with opened(path, embedder="none") as memory:
        found = memory.search("violin", user_id="alice")
        assert found["warnings"]
        assert all("violin" in row["memory"] for row in found["results"])
        memory.add("a violin without a vector", user_id="alice")
        assert memory.stats()["pending_vectors"] == 1
    with opened(path) as memory:
        assert memory.stats()["pending_vectors"] == 1
        assert "a violin without a vector" in texts(
            memory.search("violin without a vector", user_id="alice")
        )
        assert memory.reindex()["embedded"] == 1


def texts(found: dict[str, Any]) -> list[str]:
    return [row["memory"] for row in found["results"]]


class Watched(HashingEmbedder):
    """An embedder that lets the test act in the middle of its work."""

    def __init__(self, meanwhile: Callable[[], None], **options: Any) -> None:
        super().__init__(**options)
        self.meanwhile = meanwhile

    def embed(self, texts: Sequence[str], purpose: Any = "passage") -> Any:
        if len(texts) > 1:
            self.meanwhile()
        return super().embed(texts, purpose)


@pytest.fixture
def searching(path: Path) -> Iterator[tuple[Memory, list[Any], Callable[[], None]]]:
    """A store that another thread keeps searching, what went wrong there, and a way to wait for a
    few searches.
    """
    stop, failed = threading.Event(), []
    looked = threading.Semaphore(0)
    with opened(path) as memory:

        def look() -> None:
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
                looked.release()

        def wait() -> None:
            for _ in range(3):
                looked.acquire(timeout=30)

        threads = [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield memory, failed, wait
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("dim", [48, 64])
def test_searches_go_on_while_everything_is_embedded_anew(
    searching: tuple[Memory, list[Any], Callable[[], None]], tmp_path: Path, dim: int
) -> None:
    memory, failed, wait = searching
    for turn in range(3):
        report = memory.reindex(Watched(wait, dim=dim, model=f"new-{turn}"))
        assert report["embedded"] >= ROWS
        wait()
    assert failed == []
    with opened(tmp_path / "fresh.db", embedder=hashing_embedder(dim=dim, model="new-2")) as fresh:
        fresh.add(sentences(), user_id="alice")
        assert asked(memory) == asked(fresh)
    assert memory.verify()["ok"]
    assert memory.stats()["model"] == {"name": "new-2", "dim": dim}


def test_what_is_added_while_everything_is_embedded_anew_is_embedded_too(path: Path) -> None:
    with opened(path) as memory:
        added: list[str] = []

        def meanwhile() -> None:
            added.append(f"the kettle number {len(added)}")
            memory.add(added[-1], user_id="alice")

        memory.reindex(Watched(meanwhile, dim=32, model="new"))
        assert added
        assert memory.stats()["pending_vectors"] == 0
        assert memory.verify()["ok"]
        for text in added:
            assert text in texts(memory.search(text, user_id="alice", limit=len(added) + 1))


def test_a_reindex_that_breaks_off_changes_nothing_and_can_be_finished(
    path: Path, whole: tuple[bytes, Any]
) -> None:
    class Breaking(HashingEmbedder):
        calls = 0

        def embed(self, texts: Sequence[str], purpose: Any = "passage") -> Any:
            Breaking.calls += 1
            if Breaking.calls == 2:
                raise EmbeddingError("The line went dead.")
            return super().embed(texts, purpose)

    with opened(path) as memory:
        with pytest.raises(EmbeddingError):
            memory.reindex(Breaking(dim=32, model="new"))
        assert memory.stats()["model"] == {"name": MODEL, "dim": 64}
        assert asked(memory) == whole[1]
    with opened(path) as memory:
        assert asked(memory) == whole[1]
        report = memory.reindex(hashing_embedder(dim=32, model="new"))
        assert report["embedded"] < ROWS
        assert memory.stats()["model"] == {"name": "new", "dim": 32}
        assert memory.verify()["ok"]
    with pytest.raises(ModelMismatch):
        opened(path)


def test_another_process_that_still_has_the_old_model_is_told_or_answers_rightly(
    path: Path,
) -> None:
    with opened(path) as memory, opened(path) as old:
        asked(old)
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
def test_an_outage_of_the_embedder_loses_nothing(tmp_path: Path, local: bool) -> None:
    flaky = FlakyEmbedder(10**6, local=local)
    with opened(tmp_path / "m.db", embedder=flaky) as memory:
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
        with opened(tmp_path / "fresh.db") as fresh:
            fresh.add([f"{text} again" for text in sentences(30)], user_id="alice")
            assert asked(fresh) == asked(memory)
        assert memory.verify()["ok"]


def test_a_remote_embedder_that_comes_back_catches_up_by_itself(tmp_path: Path) -> None:
    flaky = FlakyEmbedder(10**6)
    with opened(tmp_path / "m.db", embedder=flaky) as memory:
        memory.add(["the first violin", "the second violin"], user_id="alice")
        assert memory.stats()["pending_vectors"] == 2
        flaky.failures = 0
        receipt = memory.add("the third violin", user_id="alice")
        assert "warnings" not in receipt
        assert memory.stats()["pending_vectors"] == 0


class Rubbish(HashingEmbedder):
    """An embedder whose answers are useless."""

    def __init__(self, answer: Callable[[Sequence[str]], Any], *, local: bool) -> None:
        super().__init__(local=local)
        self.answer = answer

    def embed(self, texts: Sequence[str], purpose: Any = "passage") -> Any:
        return self.answer(texts)


RUBBISH: dict[str, Callable[[Sequence[str]], Any]] = {
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
@pytest.mark.parametrize("answer", RUBBISH.values(), ids=RUBBISH.keys())
def test_an_embedder_that_answers_rubbish_loses_nothing(
    tmp_path: Path, answer: Any, local: bool
) -> None:
    with opened(tmp_path / "m.db", embedder=Rubbish(answer, local=local)) as memory:
        receipt = memory.add("the violin is new", user_id="alice")
        assert receipt["results"][0]["event"] == "ADD"
        assert texts(memory.search("violin", user_id="alice")) == ["the violin is new"]
        assert memory.verify()["ok"]
    with opened(tmp_path / "m.db") as memory:
        if answer is not RUBBISH["zeros"]:
            assert memory.reindex()["embedded"] == 1
        assert texts(memory.search("violin", user_id="alice")) == ["the violin is new"]
