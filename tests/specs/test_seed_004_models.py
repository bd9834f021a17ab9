"""Seed 004 §4, §13 and §15: extraction, updates, graph and failing models, by case number.

Cases 1 to 18 and 33 to 35 run without a model; 36, 37 and 39 to 41 use a scripted model. Real
providers are tested in tests/processes and tests/unit over HTTP servers.
"""

import json

import pytest

from histories import stage
from told import LLMError, Memory
from told.testing import HashingEmbedder, ScriptedLLM

CONVERSATION = [
    {"role": "user", "content": "Hi, I'm Alice. I work at Acme Corp as a data scientist."},
    {
        "role": "assistant",
        "content": "Nice to meet you, Alice! What kind of data science work do you do?",
    },
    {
        "role": "user",
        "content": "Mostly NLP and recommendation systems. I prefer PyTorch over TensorFlow.",
    },
]


@pytest.fixture(params=["ram", "sqlite"])
def memory(request):
    with stage(request.param) as here:
        yield here.memory


def list_events(receipt):
    rows = receipt["results"]
    return [
        (row["event"], row.get("new_memory") or row.get("old_memory") or row["memory"])
        for row in rows
    ]


def list_texts(memory, user="alice"):
    return {row["memory"] for row in memory.get_all(user_id=user)["results"]}


# Without a model


def test_1_single_fact_is_added_in_the_third_person(memory):
    assert list_events(memory.add("My name is Bob", user_id="bob")) == [
        ("ADD", "User's name is Bob")
    ]
    assert list_texts(memory, "bob") == {"User's name is Bob"}


def test_2_conversation_yields_several_facts(memory):
    done = memory.add(CONVERSATION, user_id="alice")
    added = {text for event, text in list_events(done) if event == "ADD"}
    assert {"User's name is Alice", "User works at Acme Corp as a data scientist"} <= added
    assert "User prefers PyTorch over TensorFlow" in added
    assert any("NLP" in text and "recommendation systems" in text for text in added)


def test_3_greeting_is_skipped_with_a_reason(memory):
    done = memory.add("hello", user_id="x")
    assert done["results"] == []
    assert done["skipped"][0]["reason"]
    assert memory.get_all(user_id="x")["results"] == []


def test_8_get_all_lists_facts_without_their_evidence(memory):
    for text in ("My name is Alice", "I live in Lisbon", "I like Python"):
        memory.add(text, user_id="alice")
    assert list_texts(memory) == {
        "User's name is Alice",
        "User lives in Lisbon",
        "User likes Python",
    }


def test_14_repeated_fact_is_a_none_event(memory):
    [first] = memory.add("User likes Python", user_id="alice")["results"]
    [again] = memory.add("User likes Python", user_id="alice")["results"]
    assert (first["event"], again["event"], again["id"]) == ("ADD", "NONE", first["id"])
    [said] = memory.add("I like Python!", user_id="alice")["results"]
    assert (said["event"], said["id"]) == ("NONE", first["id"])


@pytest.mark.parametrize(
    "later", ["User moved to San Francisco", "I moved from NYC to San Francisco"]
)
def test_15_contradiction_updates_the_memory(memory, later):
    [home] = memory.add("User lives in NYC", user_id="alice")["results"]
    memory.add("I like hiking", user_id="alice")
    [moved] = memory.add(later, user_id="alice")["results"]
    assert (moved["event"], moved["id"]) == ("UPDATE", home["id"])
    assert (moved["old_memory"], moved["new_memory"]) == (
        "User lives in NYC",
        "User lives in San Francisco",
    )
    assert list_texts(memory) == {"User lives in San Francisco", "User likes hiking"}
    assert [row["event"] for row in memory.history(home["id"])] == ["ADD", "UPDATE"]


def test_16_refinement_updates_the_memory(memory):
    [vague] = memory.add("User works in tech", user_id="alice")["results"]
    [exact] = memory.add("User works at Google as a senior engineer", user_id="alice")["results"]
    assert (exact["event"], exact["id"]) == ("UPDATE", vague["id"])
    assert "Google" in exact["new_memory"]
    assert "senior engineer" in exact["new_memory"]
    assert len(list_texts(memory)) == 1


@pytest.mark.parametrize(
    "later",
    ["User started eating meat again", "I started eating meat again", "I'm no longer vegetarian"],
)
def test_17_negation_removes_the_claim(memory, later):
    [diet] = memory.add("User is vegetarian", user_id="alice")["results"]
    memory.add("I live in Rome", user_id="alice")
    done = memory.add(later, user_id="alice")["results"]
    assert (done[0]["event"] in ("DELETE", "UPDATE"), done[0]["id"]) == (True, diet["id"])
    assert not any("is vegetarian" in text for text in list_texts(memory))
    assert "User lives in Rome" in list_texts(memory)


def test_17_negation_of_an_unknown_fact_is_stored_verbatim(memory):
    said = "I am no longer a member of the chess club"
    assert list_events(memory.add(said, user_id="alice")) == [("ADD", said)]
    assert list_texts(memory) == {said}


def test_18_one_call_can_add_and_update(memory):
    memory.add("I live in Paris", user_id="alice")
    done = memory.add("I moved to Berlin. I also have a dog named Rex.", user_id="alice")
    assert {event for event, _ in list_events(done)} == {"UPDATE", "ADD"}


def test_13_1_new_job_updates_the_old_one(memory):
    memory.add(CONVERSATION, user_id="alice")
    done = memory.add("I just switched jobs. I'm now at BigTech Inc.", user_id="alice")
    [update] = [row for row in done["results"] if row["event"] == "UPDATE"]
    assert update["old_memory"] == "User works at Acme Corp as a data scientist"
    assert "BigTech Inc" in update["new_memory"]
    assert [row["event"] for row in memory.history(update["id"])] == ["ADD", "UPDATE"]


# The graph


def test_33_34_entities_and_relations_are_stored(memory):
    memory.add([{"role": "user", "content": "I'm Alice and I work at Google."}], user_id="alice")
    entities = {row["name"]: row["type"] for row in memory.entities(user_id="alice")["results"]}
    assert entities["Alice"] == "person"
    assert entities["Google"] == "organization"
    rows = memory.relations("Alice", user_id="alice")["results"]
    relations = [(row["source"], row["relation"], row["target"]) for row in rows]
    assert ("Alice", "works_at", "Google") in relations


def test_35_search_follows_the_graph(memory):
    memory.add("Bob works at Initech.", user_id="alice")
    memory.add("Bob is allergic to shellfish.", user_id="alice")
    found = memory.search("Initech", user_id="alice")["results"]
    assert any("shellfish" in row["memory"] for row in found)


# With a model


def open_with_model(*replies, **more):
    return Memory("ram://", embedder=HashingEmbedder(), llm=ScriptedLLM(replies), **more)


def test_4_2_model_extracts_facts_and_decides_events():
    facts = '["User\'s name is Alice", "User collects stamps from Peru"]'
    with open_with_model(
        facts, '[{"fact": 1, "event": "ADD"}, {"fact": 2, "event": "ADD"}]'
    ) as memory:
        done = memory.add(
            "whatever was said here about Alice and her stamps from Peru", user_id="alice"
        )
        assert {text for _, text in list_events(done)} >= {
            "User's name is Alice",
            "User collects stamps from Peru",
        }


def test_36_unavailable_model_loses_nothing_and_returns_a_warning():
    with open_with_model(
        LLMError("no connection"), LLMError("no connection"), LLMError("no connection")
    ) as memory:
        done = memory.add("I collect stamps from Peru since I was a child", user_id="alice")
        assert done["results"] == []
        assert any("no connection" in warning for warning in done["warnings"])
        assert memory.search("stamps", user_id="alice")["results"]
        assert memory.stats()["faults"] == 1


def test_36_failed_extraction_can_be_retried():
    replies = [
        LLMError("down"),
        json.dumps(["User collects stamps"]),
        '[{"fact": 1, "event": "ADD"}]',
    ]
    with open_with_model(*replies) as memory:
        memory.add("I collect stamps", user_id="alice")
        memory.retry_faults()
        assert "User collects stamps" in list_texts(memory)
        assert memory.stats()["faults"] == 0


def test_39_custom_prompt_replaces_the_extraction_prompt():
    llm = ScriptedLLM(['["User likes tea"]', '[{"fact": 1, "event": "ADD"}]'])
    with Memory("ram://", embedder="none", llm=llm) as memory:
        memory.add("I like tea", user_id="alice", prompt="Only ever look for drinks.")
    assert llm.asked[0][0].startswith("Only ever look for drinks.")


def test_9_updated_fact_is_compared_by_its_current_text(memory):
    [home] = memory.add("I live in Paris", user_id="alice")["results"]
    memory.update(home["id"], "User lives in Lyon")
    [again] = memory.add("I live in Lyon", user_id="alice")["results"]
    assert (again["event"], again["id"]) == ("NONE", home["id"])
    memory.update(home["id"], "The weather was nice")
    [anew] = memory.add("I live in Nice", user_id="alice")["results"]
    assert anew["event"] == "ADD"
