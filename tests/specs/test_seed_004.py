"""Seed 004, the fact API: its data model (§2), methods (§3), history (§5), errors (§14) and
behaviours (§15).

Cases of §15 about extraction, updates, the graph, failing models and custom prompts (1 to 3, 14 to
18, 33 to 36 and 39) are in test_seed_004_models.py. Case 4 needs semantic vectors and uses the
installed model.
"""

import hashlib
from datetime import datetime

import pytest

from histories import stage
from told import (
    ConfigError,
    EmbeddingError,
    FilterError,
    InvalidInput,
    LLMError,
    Memory,
    NotFoundError,
    ScopeError,
    StoreError,
    ToldError,
)
from told.testing import FlakyEmbedder, HashingEmbedder

MISSING_SCOPE = "At least one of user_id, agent_id, or run_id must be provided"
WORK, HOME = {"tag": "work"}, {"tag": "home"}


@pytest.fixture(params=["ram", "sqlite"])
def memory(request):
    with stage(request.param) as here:
        yield here.memory


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def add_texts(memory, *texts, **more):
    """Add memories, of alice by default; return their ids."""
    scope = more if {"user_id", "agent_id", "run_id"} & set(more) else {"user_id": "alice", **more}
    return [row["id"] for row in memory.add(list(texts), **scope)["results"]]


def list_texts(memory, **scope):
    return [row["memory"] for row in memory.get_all(**(scope or {"user_id": "alice"}))["results"]]


# §2 The data model


def test_2_1_memory_item_has_all_fields(memory):
    [memory_id] = add_texts(memory, "User likes Python", metadata={"tag": "work", "n": 1})
    item = memory.get(memory_id)
    assert item["id"] == memory_id
    assert item["memory"] == "User likes Python"
    assert item["hash"] == md5("User likes Python")
    assert item["metadata"] == {"tag": "work", "n": 1}
    assert item["score"] is None
    assert item["user_id"] == "alice"
    for name in ("created_at", "updated_at"):
        assert datetime.fromisoformat(item[name]).utcoffset() is not None
    assert item["created_at"] == item["updated_at"]


def test_2_1_only_search_results_have_a_score(memory):
    add_texts(memory, "User likes Python")
    [hit] = memory.search("Python", user_id="alice")["results"]
    assert 0 <= hit["score"] <= 1
    assert hit.keys() == memory.get_all(user_id="alice")["results"][0].keys()


def test_2_2_receipts_report_add_none_update_and_delete_events(memory):
    [add] = memory.add("User likes Python", user_id="alice")["results"]
    assert (add["event"], add["new_memory"], "old_memory" in add) == (
        "ADD",
        "User likes Python",
        False,
    )
    [none] = memory.add("User likes Python", user_id="alice")["results"]
    assert (none["event"], none["id"], "new_memory" in none) == ("NONE", add["id"], False)
    [update] = memory.update(add["id"], "User likes Rust")["results"]
    assert (update["event"], update["old_memory"], update["new_memory"]) == (
        "UPDATE",
        "User likes Python",
        "User likes Rust",
    )
    [delete] = memory.delete(add["id"])["results"]
    assert (delete["event"], delete["old_memory"], "new_memory" in delete) == (
        "DELETE",
        "User likes Rust",
        False,
    )


def test_2_3_string_is_one_user_message(memory):
    [row] = memory.add("the kettle is new", user_id="alice")["results"]
    assert row["role"] == memory.get(row["id"])["role"] == "user"


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.add("x"),
        lambda m: m.search("x"),
        lambda m: m.get_all(),
        lambda m: m.delete_all(),
        lambda m: m.context("x"),
        lambda m: m.explain("x"),
        lambda m: m.timeline(),
        lambda m: m.diff("2020-01-01"),
        lambda m: m.search("x", filters={"tag": "work"}),
        lambda m: m.get_all(filters={"NOT": {"user_id": "a"}}),
    ],
)
def test_2_4_21_38_call_without_a_scope_is_rejected(memory, ask):
    with pytest.raises(ScopeError, match=MISSING_SCOPE):
        ask(memory)


# §15 Memory CRUD


def test_1_adding_a_single_fact_returns_one_add_event(memory):
    [row] = memory.add("My name is Bob", user_id="bob")["results"]
    assert (row["event"], row["memory"]) == ("ADD", "User's name is Bob")


def test_2_adding_a_conversation_verbatim_returns_an_event_per_message(memory):
    talk = [
        {"role": "system", "content": "You are kind."},
        {"role": "user", "content": "Hi, I'm Alice."},
        {"role": "assistant", "content": "Nice to meet you!"},
    ]
    done = memory.add(talk, user_id="alice", infer=False)
    assert [(row["event"], row["role"], row["memory"]) for row in done["results"]] == [
        ("ADD", "user", "Hi, I'm Alice."),
        ("ADD", "assistant", "Nice to meet you!"),
    ]
    assert done["skipped"] == [{"index": 0, "role": "system", "reason": "system message"}]


def test_4_search_finds_by_meaning(memory):
    from told.providers.local import open_embedder

    try:
        local = open_embedder(None)
    except ToldError as missing:
        pytest.skip(f"no local model is installed: {missing}")
    with Memory("ram://", embedder=local) as meaning:
        meaning.add(
            ["User likes Python", "User's sister lives in Berlin", "The soup was cold"],
            user_id="alice",
        )
        best = meaning.search("programming languages", user_id="alice")["results"][0]
        assert best["memory"] == "User likes Python"
        assert best["score"] > 0.5


@pytest.mark.parametrize("spelling", ["limit", "top_k"])
def test_5_search_returns_at_most_limit_results(memory, spelling):
    add_texts(memory, *(f"tea number {n}" for n in range(6)))
    assert len(memory.search("tea", user_id="alice", **{spelling: 3})["results"]) == 3
    scores = [row["score"] for row in memory.search("tea", user_id="alice")["results"]]
    assert scores == sorted(scores, reverse=True)


def test_5_default_limit_is_one_hundred(memory):
    add_texts(memory, *(f"tea number {n}" for n in range(120)))
    assert len(memory.search("tea", user_id="alice")["results"]) == 100
    assert len(memory.get_all(user_id="alice")["results"]) == 100
    assert len(memory.get_all(user_id="alice", limit=1000)["results"]) == 120


def test_6_get_returns_a_memory_by_id(memory):
    [memory_id] = add_texts(memory, "User likes Python")
    assert memory.get(memory_id)["memory"] == "User likes Python"


def test_7_get_of_an_unknown_id_returns_none(memory):
    assert memory.get("fake-id") is None


def test_8_get_all_lists_the_whole_scope(memory):
    add_texts(memory, "one", "two", "three")
    add_texts(memory, "four", user_id="bob")
    assert list_texts(memory) == ["one", "two", "three"]


def test_pages_as_of_one_position_are_stable_under_concurrent_writes(memory):
    ids = [
        memory.add(f"note {number}", user_id="alice", infer=False)["results"][0]["id"]
        for number in range(7)
    ]
    here, seen = f"#{memory.stats()['entries']}", []
    while page := memory.get_all(user_id="alice", as_of=here, offset=len(seen), limit=2)["results"]:
        memory.update(page[0]["id"], f"{page[0]['memory']} again")
        memory.add(f"something new after {len(seen)}", user_id="alice", infer=False)
        memory.delete(ids[len(seen) + 1] if len(seen) + 1 < len(ids) else ids[0])
        seen += page
    assert [row["id"] for row in seen] == ids
    assert [row["memory"] for row in seen] == [f"note {number}" for number in range(7)]


@pytest.mark.parametrize("spelling", ["text", "data"])
def test_9_10_update_overwrites_text_hash_and_updated_at(memory, spelling):
    [memory_id] = add_texts(memory, "old text", metadata=WORK)
    before = memory.get(memory_id)
    assert (
        memory.update(memory_id, **{spelling: "new text"})["message"]
        == "Memory updated successfully!"
    )
    after = memory.get(memory_id)
    assert (after["memory"], after["hash"]) == ("new text", md5("new text"))
    assert after["created_at"] == before["created_at"]
    assert after["updated_at"] > before["updated_at"]
    assert after["metadata"] == WORK, "what was not named stays"
    assert [row["memory"] for row in memory.search("new text", user_id="alice")["results"]] == [
        "new text"
    ]
    assert "old text" not in [
        row["memory"] for row in memory.search("old text", user_id="alice")["results"]
    ]


def test_9_update_accepts_the_text_as_a_positional_argument(memory):
    [memory_id] = add_texts(memory, "old text")
    memory.update(memory_id, "new text")
    assert memory.get(memory_id)["memory"] == "new text"


def test_11_deleted_memory_is_not_returned(memory):
    memory_id, _ = add_texts(memory, "User likes Python", "User likes tea")
    assert memory.delete(memory_id)["message"] == "Memory deleted successfully!"
    assert memory.get(memory_id) is None
    assert list_texts(memory) == ["User likes tea"]
    assert memory_id not in [
        row["id"] for row in memory.search("Python", user_id="alice")["results"]
    ]


def test_12_delete_all_clears_only_its_scope(memory):
    add_texts(memory, "one", "two")
    add_texts(memory, "three", user_id="bob")
    done = memory.delete_all(user_id="alice")
    assert done["message"] == "Memories deleted successfully!"
    assert [row["event"] for row in done["results"]] == ["DELETE", "DELETE"]
    assert list_texts(memory) == []
    assert list_texts(memory, user_id="bob") == ["three"]


def test_12_delete_all_clears_a_large_scope(memory):
    add_texts(memory, *(f"fact {n}" for n in range(1100)))
    memory.delete_all(user_id="alice")
    assert list_texts(memory) == []
    assert memory.stats()["memories"] == 0


def test_12_delete_all_of_an_empty_scope_succeeds(memory):
    assert memory.delete_all(user_id="nobody")["results"] == []


def test_13_reset_removes_everything(memory):
    [memory_id] = add_texts(memory, "one", idempotency_key="k")
    add_texts(memory, "two", agent_id="helper")
    assert memory.reset() == {"message": "All memories reset"}
    assert list_texts(memory) == list_texts(memory, agent_id="helper") == []
    assert memory.history(memory_id) == []
    assert memory.get(memory_id) is None
    assert memory.search("one", user_id="alice")["results"] == []
    assert memory.verify()["ok"]
    assert add_texts(memory, "one", idempotency_key="k") != [memory_id]


# Update intelligence that needs no model


def test_14_exact_duplicate_is_a_none_event(memory):
    [memory_id] = add_texts(memory, "User likes Python")
    [again] = memory.add("User likes Python", user_id="alice")["results"]
    assert (again["event"], again["id"]) == ("NONE", memory_id)
    assert list_texts(memory) == ["User likes Python"]


def test_14_same_text_in_another_scope_is_added(memory):
    add_texts(memory, "User likes Python")
    [other] = memory.add("User likes Python", user_id="alice", agent_id="helper")["results"]
    assert other["event"] == "ADD"


# Scoping


def test_19_users_are_isolated(memory):
    add_texts(memory, "alice likes tea")
    assert memory.search("tea", user_id="bob")["results"] == []
    assert memory.get_all(user_id="bob")["results"] == []


def test_20_all_ids_of_a_scope_must_match(memory):
    add_texts(memory, "both", user_id="alice", agent_id="helper")
    add_texts(memory, "alice alone")
    add_texts(memory, "helper alone", agent_id="helper")
    assert list_texts(memory, user_id="alice", agent_id="helper") == ["both"]
    assert list_texts(memory, user_id="alice", agent_id="other") == []
    assert list_texts(memory, user_id="bob", agent_id="helper") == []
    assert list_texts(memory, user_id="alice") == ["both", "alice alone"]
    assert list_texts(memory, agent_id="helper") == ["both", "helper alone"]


def test_22_runs_are_isolated(memory):
    add_texts(memory, "first", run_id="session-1")
    add_texts(memory, "second", run_id="session-2")
    assert list_texts(memory, run_id="session-1") == ["first"]
    assert list_texts(memory, run_id="session-2") == ["second"]


# History (§5)

FIELDS = {"id", "memory_id", "event", "old_value", "new_value", "timestamp", "is_deleted"}
LATER_FIELDS = {"old_memory", "new_memory", "created_at", "updated_at", "actor_id", "role"}


def test_23_to_26_history_lists_changes_in_order(memory):
    [memory_id] = add_texts(memory, "one")
    assert [change["event"] for change in memory.history(memory_id)] == ["ADD"]
    memory.update(memory_id, "two")
    memory.delete(memory_id)
    history = memory.history(memory_id)
    assert [(c["event"], c["old_value"], c["new_value"], c["is_deleted"]) for c in history] == [
        ("ADD", None, "one", False),
        ("UPDATE", "one", "two", False),
        ("DELETE", "two", None, True),
    ]
    assert [(c["old_memory"], c["new_memory"]) for c in history] == [
        (c["old_value"], c["new_value"]) for c in history
    ]
    stamps = [change["timestamp"] for change in history]
    assert stamps == sorted(stamps)
    assert all(datetime.fromisoformat(stamp).utcoffset() is not None for stamp in stamps)
    assert all(change.keys() >= FIELDS | LATER_FIELDS for change in history)
    assert {change["memory_id"] for change in history} == {memory_id}
    assert len({change["id"] for change in history}) == 3


def test_23_history_includes_role_and_actor(memory):
    [row] = memory.add({"role": "user", "content": "tea", "name": "Ann"}, user_id="alice")[
        "results"
    ]
    [change] = memory.history(row["id"])
    assert (change["role"], change["actor_id"]) == ("user", "Ann")


def test_23_history_of_an_unknown_id_is_empty(memory):
    assert memory.history("fake-id") == []


def test_23_erasing_a_linked_memory_does_not_mark_the_other_as_erased(memory):
    gone, stays = add_texts(memory, "gone", "stays")
    memory.link(gone, "relates_to", stays, user_id="alice")
    memory.erase(gone)
    memory.update(stays, "stays on")
    assert [
        (c["event"], c["is_deleted"]) for c in memory.history(stays) if c["event"] != "LINK"
    ] == [
        ("ADD", False),
        ("UPDATE", False),
    ]


def test_23_link_adds_no_event_to_the_target_history(memory):
    one, two = add_texts(memory, "one", "two")
    memory.link(one, "supports", two, user_id="alice")
    assert [change["event"] for change in memory.history(two)] == ["ADD"]


def test_25_history_of_an_erased_memory_has_no_content(memory):
    [memory_id] = add_texts(memory, "a secret")
    memory.erase(memory_id)
    history = memory.history(memory_id)
    assert history[-1]["event"] == "ERASE"
    assert history[-1]["is_deleted"]
    assert "a secret" not in str(history)


# Filters

LONG = {"field": "tag", "operator": "eq", "value": "work"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LONG, {"work"}),
        ({"tag": "work"}, {"work"}),
        ({"tag": {"eq": "work"}}, {"work"}),
        ({"field": "tag", "operator": "ne", "value": "work"}, {"home", "Python for ML", "none"}),
        ({"field": "tag", "operator": "in", "value": ["work", "home"]}, {"work", "home"}),
        ({"field": "tag", "operator": "nin", "value": ["work", "home"]}, {"Python for ML", "none"}),
        ({"field": "n", "operator": "gt", "value": 1}, {"home", "Python for ML"}),
        ({"field": "n", "operator": "gte", "value": 1}, {"work", "home", "Python for ML"}),
        ({"field": "n", "operator": "lt", "value": 2}, {"work"}),
        ({"field": "n", "operator": "lte", "value": 2}, {"work", "home"}),
        ({"AND": [{"n": {"gte": 1}}, {"NOT": LONG}]}, {"home", "Python for ML"}),
        ({"OR": [LONG, {"field": "n", "operator": "eq", "value": 3}]}, {"work", "Python for ML"}),
        ({"NOT": LONG}, {"home", "Python for ML", "none"}),
        ({"NOT": [LONG, {"n": 2}]}, {"Python for ML", "none"}),
        ({"field": "memory", "operator": "contains", "value": "Python"}, {"Python for ML"}),
        ({"field": "memory", "operator": "contains", "value": "python"}, set()),
        ({"field": "memory", "operator": "icontains", "value": "python"}, {"Python for ML"}),
        ({"user_id": "alice", "tag": "work"}, {"work"}),
        ({"created_at": {"gte": "2024-01-01"}, "tag": "home"}, {"home"}),
    ],
)
def test_27_to_32_filters_select_matching_memories(memory, wanted, found):
    for number, tag in enumerate(("work", "home", "Python for ML"), 1):
        memory.add(tag, user_id="alice", metadata={"tag": tag, "n": number})
    memory.add("none", user_id="alice")
    assert set(list_texts(memory, user_id="alice", filters=wanted)) == found
    hits = memory.search("work home ML none", user_id="alice", filters=wanted)["results"]
    assert {row["memory"] for row in hits} == found


@pytest.mark.parametrize(
    "wanted",
    [
        {"tag": {"like": "w"}},
        {"field": "tag", "operator": "eq"},
        {"AND": "tag"},
        ["tag"],
        "tag",
        {"tag": {}},
        {"or": []},
    ],
)
def test_27_invalid_filter_is_rejected(memory, wanted):
    with pytest.raises(FilterError):
        memory.search("x", user_id="alice", filters=wanted)


# Errors (§14)


def test_14_1_errors_share_a_base_class_and_have_codes():
    for error in (
        ScopeError,
        StoreError,
        LLMError,
        EmbeddingError,
        NotFoundError,
        InvalidInput,
        ConfigError,
    ):
        assert issubclass(error, ToldError)
        assert error("x").as_dict()["code"].startswith("TOLD-E")
    assert issubclass(ScopeError, ValueError)
    assert issubclass(NotFoundError, LookupError)


def test_14_1_changing_a_missing_memory_raises_not_found(memory):
    [memory_id] = add_texts(memory, "one")
    memory.delete(memory_id)
    for missing in ("fake-id", memory_id):
        for change in (lambda m: memory.update(m, "x"), memory.delete, memory.retract):
            with pytest.raises(NotFoundError):
                change(missing)
    with pytest.raises(NotFoundError):
        memory.erase("fake-id")


def test_37_failing_embedder_loses_no_memory():
    for local in (True, False):
        with stage("ram", embedder=FlakyEmbedder(10_000, local=local)) as here:
            done = here.memory.add(["one tea", "two teas", "three"], user_id="alice")
            assert [row["event"] for row in done["results"]] == ["ADD"] * 3
            assert "found by keywords only" in done["warnings"][0]
            found = here.memory.search("tea", user_id="alice")
            assert {row["memory"] for row in found["results"]} == {"one tea", "two teas"}
            assert found["warnings"]


def test_37_pending_vectors_are_computed_when_the_embedder_recovers():
    with stage("ram", embedder=FlakyEmbedder(30)) as here:
        here.memory.add(["one", "two"], user_id="alice")
        while here.memory.embedder.calls < 30:
            here.memory.search("x", user_id="alice")
        here.memory.add("three", user_id="alice")
        assert here.memory.stats()["pending_vectors"] == 0


def test_42_memory_opens_without_configuration(home):
    with Memory() as memory:
        memory.add("tea", user_id="alice")
    with Memory() as memory:
        assert list_texts(memory) == ["tea"], "and it is durable"
    assert any(home.rglob("told.db"))


# Configuration (§8)


def test_8_1_nested_configuration_opens_its_store(tmp_path):
    config = {
        "vector_store": {"provider": "sqlite", "config": {"path": str(tmp_path / "m.db")}},
        "embedder": {"provider": "hash", "config": {}},
        "version": "v1.1",
    }
    with Memory.from_config(config) as memory:
        memory.add("tea", user_id="alice")
        assert memory.embedder.model == HashingEmbedder().model
    assert (tmp_path / "m.db").exists()
    spare = {"history_db_path": "history.db", "custom_instructions": None}
    with Memory.from_config(
        {"vector_store": {"provider": "memory", "config": {}}, **spare}
    ) as memory:
        assert list_texts(memory) == []


@pytest.mark.parametrize(
    "config",
    [
        {"vector_store": {"provider": "qdrant", "config": {}}},
        {"vector_store": "sqlite"},
        {"nonsense": 1},
        ["x"],
        None,
        {"llm": {"provider": "openai", "config": {"model": "x"}}},
        {"graph_store": {"provider": "neo4j", "config": {}}},
        {"vector_store": {"provider": "sqlite", "config": {"db": "m.db"}}},
        {"history": {"path": "m.db"}},
        {
            "vector_store": {
                "provider": "sqlite",
                "config": {"path": "m.db", "collection_name": "one of two"},
            }
        },
        {"custom_instructions": "Only devices."},
        {"custom_prompts": {"fact_extraction": 5}},
    ],
)
def test_8_1_unsupported_configuration_is_rejected(config):
    with pytest.raises(ConfigError):
        Memory.from_config(config)
