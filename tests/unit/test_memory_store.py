"""Behaviour specific to the in-memory store; the shared contract is in tests/contract."""

from dataclasses import replace
from pathlib import Path

import pytest

from told.backends.memory.store import InMemoryStore, open_store
from told.errors import ConfigError, Conflict, ModelMismatch, Unsupported
from told.ids import hash_text
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft, Erased, Linked
from told.model.query import AsOf, FactQuery, IndexQuery
from told.model.scope import Scope
from told.ports import VIEWS, Batch
from told.testing import ManualClock, seeded_mint

ALICE = Scope("acme", user_id="alice")


@pytest.fixture
def store():
    return open_store("ram://", mint=seeded_mint(1))


def tell(store: InMemoryStore, text: str, thread: str = "t1", **claim) -> None:
    store.commit(Batch("acme", [Draft(Asserted(thread, Claim(text, **claim)), ALICE)]), fold_all)


@pytest.mark.parametrize("url", ["ram:", "ram://"])
def test_each_in_memory_store_is_separate(url):
    first, second = open_store(url), open_store(url, busy_timeout=5)
    tell(first, "only here")
    assert list(first.list_accounts()) == ["acme"]
    assert list(second.list_accounts()) == []


@pytest.mark.parametrize("url", ["ram:///data.db", "ram://name", "sqlite:///x.db", ""])
def test_a_path_is_rejected(url):
    with pytest.raises(ConfigError, match="ram://"):
        open_store(url)


def test_the_default_id_generator_uses_the_wall_clock_and_unique_ids():
    store = open_store("ram://")
    assert store.mint.new_id() != store.mint.new_id()
    tell(store, "now")
    assert 0 < store.get_head("acme").at <= store.mint.now() + 1


def test_stores_with_the_same_seed_write_the_same_ledger():
    heads = []
    for _ in range(2):
        store = open_store("ram://", mint=seeded_mint("seed", ManualClock(5)))
        tell(store, "same")
        heads.append(store.get_head("acme"))
    assert heads[0] == heads[1]


def test_the_backup_error_suggests_export(store, tmp_path: Path):
    with pytest.raises(Unsupported, match="Export"):
        store.backup(tmp_path / "copy.db")


def test_later_changes_to_passed_values_do_not_affect_the_store(store):
    meta = {"tags": ["a"]}
    tell(store, "tagged", meta=meta)
    meta["tags"].append("b")
    assert store.get_fact("acme", "t1").meta == {"tags": ["a"]}


def test_ledger_tampering_is_detected(store):
    for text in ("one", "two"):
        tell(store, text)
    entries = store._accounts["acme"].entries
    entries[0] = replace(entries[0], envelope=entries[0].envelope.replace(b"one", b"1"))
    assert store.check_integrity() == ["acme: entry 1: its content is not what was written"]
    entries[0] = replace(entries[0], hash=bytes(32))
    assert [problem.split(":")[1] for problem in store.check_integrity()] == [
        " entry 1",
        " entry 2",
    ]


def test_a_fact_without_its_passage_is_detected(store):
    tell(store, "one")
    store._accounts["acme"].passages.clear()
    assert store.check_integrity() == ["acme: entry 1 has a fact or a passage, not both"]


def test_vectors_need_a_model(store):
    tell(store, "tea")
    with pytest.raises(ModelMismatch, match="bind_model"):
        store.put_vectors({hash_text("tea"): [1.0, 0.0]})


def test_switching_to_a_model_with_missing_vectors_is_rejected(store):
    store.bind_model("one", 2)
    tell(store, "tea", "t1")
    tell(store, "mate", "t2")
    store.put_vectors({hash_text("tea"): [1.0, 0.0, 0.0]}, "two")
    with pytest.raises(Conflict, match="1 texts have no vector under two"):
        store.bind_model("two", 3, switch=True)
    assert store.current_model() == ("one", 2)


def test_switching_to_a_model_with_another_dimension_is_rejected(store):
    store.bind_model("one", 2)
    tell(store, "tea")
    store.put_vectors({hash_text("tea"): [1.0, 0.0, 0.0]}, "two")
    with pytest.raises(ModelMismatch):
        store.bind_model("two", 4, switch=True)
    assert store.current_model() == ("one", 2)


def test_ties_are_newest_first_and_search_ignores_the_query_limit(store):
    for number in range(4):
        tell(store, f"tea {number}", f"t{number}")
    find = FactQuery(ALICE, AsOf(4, store.get_head("acme").at), limit=1, offset=2)
    assert [seq for seq, _ in store.search(IndexQuery(find, ("tea",))).by_terms] == [4, 3, 2, 1]
    assert [fact.seq for fact in store.find_facts(find)] == [3]


def test_rebuilding_one_view_does_not_change_the_others(store):
    tell(store, "tea", evidence="e1")
    before = {view: list(store.view_rows("acme", view)) for view in VIEWS}
    assert store.rebuild("acme", ["facts"], fold_all) == {"facts": 1}
    assert {view: list(store.view_rows("acme", view)) for view in VIEWS} == before


def test_erasing_one_version_keeps_the_links_of_the_thread(store):
    tell(store, "green tea")
    tell(store, "black tea")
    store.commit(Batch("acme", [Draft(Linked("e1", "supports", "t1"), ALICE)]), fold_all)
    store.erase("acme", [1], Draft(Erased((1,)), None))
    assert [link.src for link in store.find_links("acme", ["t1"])] == ["e1"]


def test_rows_are_plain_values_in_the_order_of_the_fields(store):
    tell(store, "tea", meta={"b": 1, "a": [None]}, evidence="e1")
    [fact] = store.view_rows("acme", "facts")
    assert fact[:5] == ("t1", 1, 1, ("alice", None, None), "tea")
    assert fact[-1] == '{"a":[null],"b":1}'
    assert list(store.view_rows("acme", "links")) == []
