"""The writer's cache is never older than the file."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.errors import Conflict, InvalidInput
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft
from told.model.scope import Scope
from told.ports import VIEWS, Batch, NoFact
from told.testing import hashing_embedder
from told.text.tokens import md5_hex

ALICE = Scope(user_id="alice")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """Two writers of one file, each with its own cache."""
    url = f"sqlite:///{tmp_path}/m.db"
    with (
        Memory(url, embedder=hashing_embedder()) as one,
        Memory(url, embedder=hashing_embedder()) as other,
    ):
        yield one, other


def rows(memory: Memory) -> list[Any]:
    return [list(memory.engine.store.view_rows("default", view)) for view in VIEWS]


def views_equal_rebuild(memory: Memory) -> bool:
    grown = rows(memory)
    memory.rebuild()
    return rows(memory) == grown and bool(memory.verify()["ok"])


def test_alternating_writers_share_one_ledger(pair: tuple[Memory, Memory]) -> None:
    for number in range(150):
        pair[number % 2].add(f"number {number}", user_id="alice")
    assert pair[0].stats()["memories"] == 150
    assert [entry.seq for entry in pair[1].engine.store.scan_entries("default")] == list(
        range(1, 301)
    )
    assert views_equal_rebuild(pair[0])


def test_a_text_added_by_the_other_writer_is_not_duplicated(pair: tuple[Memory, Memory]) -> None:
    one, other = pair
    one.add("before", user_id="alice")
    other.add("I drink tea", user_id="alice")
    assert one.add("I drink tea", user_id="alice")["results"][0]["event"] == "NONE"


def test_a_scope_erased_by_the_other_writer_starts_empty(pair: tuple[Memory, Memory]) -> None:
    one, other = pair
    one.add(["tea", "milk"], user_id="alice")
    one.add("bread", user_id="bob")
    other.erase(user_id="alice")
    one.add("coffee", user_id="alice")
    assert [row["memory"] for row in other.get_all(user_id="alice")["results"]] == ["coffee"]
    assert [row["memory"] for row in other.search("coffee", user_id="alice")["results"]] == [
        "coffee"
    ]
    assert views_equal_rebuild(one)


def test_an_account_reset_by_the_other_writer_starts_empty(pair: tuple[Memory, Memory]) -> None:
    one, other = pair
    one.add("tea", user_id="alice")
    other.reset()
    one.add("coffee", user_id="alice")
    assert [entry.sort for entry in other.engine.store.scan_entries("default")] == [
        "erased",
        "observed",
        "asserted",
    ]
    assert views_equal_rebuild(one)


def test_a_scope_erased_by_this_writer_starts_empty(pair: tuple[Memory, Memory]) -> None:
    one, _ = pair
    one.add("tea", user_id="alice")
    one.erase(user_id="alice")
    one.add("coffee", user_id="alice")
    assert [row["memory"] for row in one.search("coffee", user_id="alice")["results"]] == ["coffee"]
    assert views_equal_rebuild(one)


def test_a_model_switch_by_the_other_writer_is_noticed(
    pair: tuple[Memory, Memory],
) -> None:
    one, other = pair
    one.add("tea", user_id="alice")
    other.reindex(hashing_embedder(dim=48))
    one.add("coffee", user_id="alice")
    assert other.stats()["pending_vectors"] == 1
    assert other.reindex()["embedded"] == 1


@pytest.mark.parametrize("moment", ["while sealing", "while folding"])
def test_a_failed_write_does_not_advance_the_cache(
    pair: tuple[Memory, Memory], moment: str
) -> None:
    store = pair[0].engine.store
    pair[0].add("tea", user_id="alice")
    said = Claim("x", meta={"key": object()} if moment == "while sealing" else {})

    def failing_fold(entries: Any) -> Any:
        yield from fold_all(entries)
        raise LookupError("a view went wrong")

    with pytest.raises((InvalidInput, LookupError)):
        store.commit(
            Batch(
                "default", [Draft(Asserted("t", said), ALICE), Draft(Asserted("u", said), ALICE)]
            ),
            failing_fold,
        )
    pair[0].add("coffee", user_id="alice")
    assert [entry.seq for entry in store.scan_entries("default")] == [1, 2, 3, 4]
    assert views_equal_rebuild(pair[0])


def change(memory: Memory, chance: random.Random) -> None:
    """Apply one random operation that changes facts."""
    ids = [row["id"] for row in memory.get_all(user_id="alice")["results"]]
    some = chance.choice(ids) if ids else memory.add("tea", user_id="alice")["results"][0]["id"]
    match chance.randrange(12):
        case 0:
            memory.erase(some)
        case 1:
            memory.delete(some)
        case 2 | 3 | 4:
            memory.update(some, f"number {chance.random()}")
        case 5:
            memory.rebuild()
        case 6 if chance.random() < 0.3:
            memory.reset()
        case _:
            memory.add(f"number {chance.random()}", user_id="alice", infer=False)


@pytest.mark.parametrize("seed", range(8))
def test_cached_facts_match_the_file(pair: tuple[Memory, Memory], seed: int) -> None:
    chance, path = random.Random(seed), pair[0].engine.store.path
    for _ in range(25):
        change(chance.choice(pair), chance)
        with Memory(f"sqlite:///{path}", embedder=hashing_embedder()) as fresh:
            as_is = fresh.engine.store.find_versions("default", seqs=range(1, 80))
        for memory in pair:
            assert memory.engine.store.find_versions("default", seqs=range(1, 80)) == as_is
            assert memory.engine.store.find_versions("default", seqs=range(79, 0, -1)) == as_is


def test_cached_facts_are_not_reread_after_an_add_to_the_same_scope(
    pair: tuple[Memory, Memory],
) -> None:
    store = pair[0].engine.store
    pair[0].add(["tea", "milk"], user_id="alice", infer=False)
    known = store.find_versions("default", seqs=[3, 4])
    pair[0].add("bread", user_id="alice", infer=False)
    assert all(store.find_versions("default", seqs=[fact.seq])[0] is fact for fact in known)


def test_a_long_fact_is_not_cached(pair: tuple[Memory, Memory]) -> None:
    store = pair[0].engine.store
    pair[0].add("tea", user_id="alice", infer=False, metadata={"notes": "word " * 1000})
    [first], [second] = (store.find_versions("default", seqs=[2]) for _ in range(2))
    assert first == second
    assert first is not second


@pytest.mark.parametrize("between", [(0, "alice"), (1, "alice"), (0, "bob"), (1, "bob"), None])
def test_a_guard_holds_only_if_its_scope_was_not_written(
    pair: tuple[Memory, Memory], between: tuple[int, str] | None
) -> None:
    one, store = pair[0], pair[0].engine.store
    one.add("milk", user_id="alice", infer=False)
    seen = store.lookup_existing(ALICE, [md5_hex("tea")], [], None).read_seq
    one.add("water", user_id="carol", infer=False)
    if between is not None:
        writer, user = between
        pair[writer].add("tea", user_id=user, infer=False)
    batch = Batch(
        "default",
        [Draft(Asserted("t", Claim("tea")), ALICE)],
        [NoFact(ALICE, (md5_hex("tea"),))],
        seen,
    )
    if between is not None and between[1] == "alice":
        with pytest.raises(Conflict):
            store.commit(batch, fold_all)
    else:
        assert len(store.commit(batch, fold_all)) == 1
    assert views_equal_rebuild(one)
