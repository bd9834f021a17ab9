"""Seed 000 in a ledger: durable facts of several users, shared by threads and processes."""

import json
import subprocess
import sys
import threading

import apsw
import pytest

from ontologies import FULL, MUSEUM, SEED, STYLE, chatter, five_turns, opened, tiers, values
from told import Memory, ScopeError
from told.backends.sqlite.connection import QUERIES
from told.errors import InvalidInput, NotFoundError
from told.flow import run
from told.ontology import Fact, MemoryStore
from told.testing import ManualClock

QUERY_PARAMETERS = {
    "ticked": (1, "[1]"),
    "ticks": (1, 1, 1),
    "evidence_named": (0, 1, "[]"),
    "tellings": (0, 1, "[]"),
}


@pytest.fixture(params=["ram", "sqlite"])
def memory(request, tmp_path):
    """Memory on each backend."""
    with opened(request.param, tmp_path) as kept:
        yield kept["memory"]


def open_store(memory, user="ann", **more):
    return MemoryStore(MUSEUM, memory=memory, user_id=user, **more)


def upsert_all(store, **said):
    for name, value in said.items():
        concept = next(key for key in store.ontology if key.endswith(name))
        store.upsert(concept, value, "asserted", f"I said {value}.")


# Sessions and users


def test_only_lasting_facts_survive_the_session(memory):
    first = open_store(memory)
    upsert_all(
        first, Hearing="deaf", Style="photography", TimeBudget="an hour", Refreshment="coffee"
    )
    assert sorted(values(first)) == ["an hour", "coffee", "deaf", "photography"]
    second = open_store(memory)
    assert sorted(values(second)) == ["deaf", "photography"]
    assert [fact.value for fact in second.recall("coffee")] == []
    assert sorted(values(first)) == ["an hour", "coffee", "deaf", "photography"]


def test_session_facts_are_kept_under_the_same_run_id(memory):
    upsert_all(open_store(memory, run_id="tuesday"), TimeBudget="an hour")
    assert values(open_store(memory, run_id="tuesday")) == ["an hour"]
    assert values(open_store(memory, run_id="wednesday")) == []


def test_turn_count_does_not_list_all_ticks(memory, monkeypatch):
    store = open_store(memory)
    upsert_all(store, Hearing="deaf", Style="oil")
    store.tick(5000)
    store.tick(7)

    tick_totals = memory.engine.store.tick_totals

    def count_only(*args, recent=0, **options):
        assert not recent, "the turns were listed one by one"
        return tick_totals(*args, **options)

    monkeypatch.setattr(memory.engine.store, "tick_totals", count_only)
    upsert_all(store, Style="wool")
    assert store.turn == 5007
    assert "wool" in store.context_block()
    found = {fact.value: (fact.first_turn, fact.salience) for fact in store.facts.values()}
    assert found == {"deaf": (0, 1.0), "wool": (5007, 0.7)}


def test_turn_count_continues_across_sessions(memory):
    first = open_store(memory)
    upsert_all(first, Style="oil")
    first.tick(10)
    second = open_store(memory)
    assert second.turn == 10
    assert next(iter(second.facts.values())).salience == pytest.approx(0.7 * 0.99**10)
    with pytest.raises(InvalidInput, match="tick"):
        second.turn = 3


def test_reopened_store_keeps_its_facts(tmp_path):
    for turn in range(3):
        with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
            store = open_store(memory)
            upsert_all(store, Style=f"style {turn}")
            store.tick()
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
        assert open_store(memory).dump().splitlines()[0] == "(turn 3) 3 fact(s):"


def test_users_and_agents_see_only_their_facts(memory):
    upsert_all(open_store(memory), Hearing="deaf")
    upsert_all(open_store(memory, "bob"), Mobility="wheelchair")
    upsert_all(open_store(memory, agent_id="guide"), Style="oil")
    assert values(open_store(memory)) == ["deaf"]
    assert values(open_store(memory, "bob")) == ["wheelchair"]
    assert values(open_store(memory, agent_id="guide")) == ["oil"]
    open_store(memory, "bob").tick(1000)
    assert open_store(memory).turn == 0


def test_fact_of_another_user_cannot_be_deleted(memory):
    upsert_all(open_store(memory), Hearing="deaf")
    [fact] = open_store(memory).facts.values()
    bob = open_store(memory, "bob")
    with pytest.raises(NotFoundError):
        run(memory.engine.forget_beliefs(bob._backend.scopes, [fact.id]))
    with pytest.raises(KeyError):
        del bob.facts[fact.id]
    assert values(open_store(memory)) == ["deaf"]


def test_user_or_agent_id_is_required(memory):
    with pytest.raises(ScopeError, match="user_id"):
        MemoryStore(MUSEUM, memory=memory)


# Ledger


def test_history_records_every_event_of_a_fact(memory):
    store = open_store(memory)
    upsert_all(store, Style="oil")
    [fact] = store.facts.values()
    store.upsert(STYLE, "Oil", "asserted", "Oil again")
    store.upsert(STYLE, "oil", "negated", "No more oil")
    assert [row["event"] for row in memory.history(fact.id)] == ["ADD", "NONE", "DELETE"]
    assert memory.get_all(user_id="ann")["results"] == []
    assert memory.verify()["ok"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda store: store.upsert("Position.CurrentArea", "east wing", "negated", "not there"),
            "negated",
        ),
        (
            lambda store: store.upsert("Position.CurrentArea", "west wing", "asserted", "now west"),
            "evicted",
        ),
        (
            lambda store: (
                store.tick(50),
                store.upsert("Position.CurrentArea", "hall", "asserted", "now hall"),
            ),
            "faded",
        ),
        (lambda store: store.forget(), "forgotten"),
    ],
)
def test_history_records_why_a_fact_was_deleted(memory, change, why):
    store = open_store(memory)
    upsert_all(store, CurrentArea="east wing")
    [fact] = store.facts.values()
    change(store)
    assert memory.history(fact.id)[-1]["why"] == why


def test_fact_is_found_by_memory_search(memory):
    upsert_all(open_store(memory), Style="photography", TimeBudget="an hour")
    found = memory.search("photography", user_id="ann")["results"]
    assert [(row["memory"], row["kind"]) for row in found][:1] == [
        ("Art style or medium: photography", STYLE)
    ]


def test_facts_extracted_by_the_memory_are_in_the_store(tmp_path):
    with Memory("ram://", embedder="none", ontology=MUSEUM, extract="closed") as memory:
        memory.add("I love photography", user_id="ann")
        store = open_store(memory)
        assert values(store) == ["photography"]
        again = store.upsert(STYLE, "Photography", "asserted", "Photography!")
        assert (again.reinforcements, len(store.facts)) == (1, 1)
        assert memory.about(user_id="ann")["results"][0]["id"] == again.id


def test_reads_write_no_entries(memory):
    store = open_store(memory)
    upsert_all(store, Style="oil")
    store.tick(1000)
    before = memory.stats()["entries"]
    assert (store.context_block(), len(store.facts), store.about()) == ("", 0, [])
    assert [fact.value for fact in store.recall("oil")] == ["oil"]
    assert memory.stats()["entries"] == before


def test_secret_is_not_stored(memory):
    store = open_store(memory)
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    with pytest.warns(UserWarning, match="Secrets"):
        store.upsert(STYLE, f"key {key}", "asserted", f"My key is {key}")
    assert key not in store.dump()


def test_evidence_is_optional(memory):
    store = open_store(memory)
    assert store.upsert(STYLE, "oil").evidence == ""
    assert values(store) == ["oil"]


def test_rebuild_keeps_the_facts(memory):
    store = open_store(memory)
    five_turns(MemoryStore(SEED, 0.8, memory=memory, user_id="ann"))
    before = store.dump()
    memory.rebuild()
    assert store.dump() == before


def test_fact_can_be_set_and_deleted_through_facts(memory):
    store = open_store(memory)
    store.facts["x"] = Fact("x", STYLE, "oil", "I love oil", "long_term", 0.3)
    [fact] = store.facts.values()
    assert (fact.value, fact.evidence, fact.salience) == ("oil", "I love oil", 0.7)
    del store.facts[fact.id]
    assert (values(store), store.recall("oil")) == ([], [])


def test_forget_with_erase_removes_the_evidence(memory):
    store = open_store(memory)
    upsert_all(store, Hearing="deaf", Style="oil")
    upsert_all(store, Hearing="deaf")
    [gone] = store.forget("SpecialNeed.", erase=True)
    assert (gone.value, values(store)) == ("deaf", ["oil"])
    entries = memory.engine.store.scan_entries(memory.engine.account, 0, 1000)
    assert not [entry for entry in entries if b"deaf" in (entry.envelope or b"")]
    assert memory.verify()["ok"]


# Concurrency and cost


def assert_limits_kept(store, talkers, rounds):
    held = [fact.concept for fact in store.facts.values()]
    assert (held.count("Likes"), held.count("Where"), held.count("Drinks")) == (5, 1, 1)
    assert (
        next(fact for fact in store.facts.values() if fact.value == "tea").reinforcements
        == talkers * rounds - 1
    )
    assert store.turn == talkers * rounds


def test_threads_sharing_a_user_respect_cardinality(memory):
    stores = [MemoryStore(FULL, memory=memory, user_id="ann", run_id="now") for _ in range(4)]
    threads = [
        threading.Thread(target=chatter, args=(each, "abcd"[place], 8))
        for place, each in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_limits_kept(stores[0], 4, 8)
    assert memory.verify()["ok"]


PROGRAM = """
import sys
from ontologies import FULL, chatter
from told import Memory
from told.ontology import MemoryStore
with Memory(sys.argv[1], embedder="none") as memory:
    chatter(MemoryStore(FULL, memory=memory, user_id="ann", run_id="now"), sys.argv[2], 8)
"""


def test_processes_can_share_a_file(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    Memory(url, embedder="none").close()
    paths = json.dumps(sys.path)
    program = f"import sys; sys.path[:] = {paths}\n{PROGRAM}"
    both = [subprocess.Popen([sys.executable, "-c", program, url, name]) for name in "ab"]
    assert [each.wait(timeout=120) for each in both] == [0, 0]
    with Memory(url, embedder="none") as memory:
        assert_limits_kept(MemoryStore(FULL, memory=memory, user_id="ann", run_id="now"), 2, 8)
        assert memory.verify()["ok"]


def test_stored_facts_fade_by_time(tmp_path):
    clock = ManualClock()
    with opened("sqlite", tmp_path, clock) as kept:
        store = MemoryStore(tiers(), clock="time", **kept)
        for tier in ("permanent", "long_term", "session", "ephemeral"):
            store.upsert(tier, tier, "asserted", tier)
        clock.tick(24 * 3_600_000_000)
        weights = {fact.value: fact.salience for fact in store.facts.values()}
        assert weights == pytest.approx(
            {"permanent": 1.0, "long_term": 0.5 ** (1 / 180), "session": 0.5}, abs=1e-4
        )
        assert store.upsert("session", "session", "asserted", "again").salience == pytest.approx(
            0.8, abs=1e-4
        )


@pytest.mark.parametrize("query", ["ticked", "ticks", "evidence_named", "tellings"])
def test_upsert_queries_do_not_scan_tables(tmp_path, query):
    Memory(f"sqlite:///{tmp_path}/m.db", embedder="none").close()
    with apsw.Connection(f"{tmp_path}/m.db") as db:
        plan = [
            row[-1]
            for row in db.execute(f"EXPLAIN QUERY PLAN {QUERIES[query]}", QUERY_PARAMETERS[query])
        ]
    db.close()
    assert not [step for step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
