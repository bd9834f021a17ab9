"""Regression tests for known failures of memory systems: lost facts and facts that come back.

They run without a model; tests of model decisions script the bad decisions seen in practice.
"""

import json
import threading

import pytest

from histories import stage
from told import Memory
from told.testing import HashingEmbedder, ScriptedLLM

U = {"user_id": "ann"}


@pytest.fixture(params=["ram", "sqlite"])
def open_memory(request):
    stages = []

    def open_stage(*replies, **knobs):
        llm = ScriptedLLM(replies) if replies else "none"
        stages.append(stage(request.param, llm=llm, **knobs))
        return stages[-1].__enter__().memory

    yield open_stage
    for opened in stages:
        opened.__exit__(None, None, None)


@pytest.fixture
def memory(open_memory):
    return open_memory()


def texts(memory):
    return [row["memory"] for row in memory.get_all(**U, limit=1000)["results"]]


def add_all(memory, *messages):
    return [memory.add(text, **U)["results"] for text in messages]


def facts_json(*facts):
    return json.dumps(list(facts))


def decisions_json(*decisions):
    return json.dumps({"decisions": list(decisions)})


# No fact is lost unless it is retracted


def test_repeated_add_keeps_the_memory(memory):
    for _ in range(4):
        memory.add("I like green tea", **U)
    assert texts(memory) == ["User likes green tea"]


def test_deleted_memory_can_be_added_again(memory):
    [[first]] = add_all(memory, "I like green tea")
    memory.delete(first["id"])
    assert texts(memory) == []
    [[again]] = add_all(memory, "I like green tea")
    assert again["event"] == "ADD"
    assert texts(memory) == ["User likes green tea"]


def test_negated_fact_can_be_added_again(memory):
    add_all(memory, "I live in Rome", "I no longer live in Rome")
    assert texts(memory) == []
    add_all(memory, "I live in Rome again")
    assert texts(memory) == ["User lives in Rome"]


@pytest.mark.parametrize(
    "said",
    [
        ("I was born in Paris", "I was born in Lyon", "born"),
        ("I live in Paris", "I live in Lyon", "lives"),
        ("I like jazz", "I dislike jazz", "likes"),
        ("My favourite colour is blue", "My favourite colour is green", "colour"),
        ("I work at Acme", "I work at Globex", "works"),
    ],
)
def test_contradiction_keeps_at_least_one_side(memory, said):
    first, second, word = said
    add_all(memory, first, second, first, second)
    left = [text for text in texts(memory) if word in text]
    assert left
    assert len(left) <= 2


UNRELATED = [
    "I live in Rome",
    "I work at Acme as a designer",
    "My favourite colour is blue",
    "My favourite food is ramen",
    "I have a dog named Rex",
    "I have a cat named Tom",
    "I speak French",
    "I speak German",
    "I like tea",
    "I'm allergic to peanuts",
    "I like peanut butter cookies",
    "My brother lives in Oslo",
    "My sister works at Globex",
    "I play chess",
    "I dislike cold weather",
    "I want to learn Rust",
]


@pytest.mark.parametrize(
    "order", [1, -1, 5, 7], ids=["as it is", "backwards", "by fives", "by sevens"]
)
def test_unrelated_facts_do_not_replace_each_other(memory, order):
    size = len(UNRELATED)
    said = (
        UNRELATED[::order]
        if order == -1
        else [UNRELATED[place * order % size] for place in range(size)]
    )
    done = add_all(memory, *said)
    assert {row["event"] for results in done for row in results} == {"ADD"}
    assert len(texts(memory)) >= size


def test_update_does_not_affect_other_facts(memory):
    add_all(memory, *UNRELATED)
    before = set(texts(memory))
    add_all(memory, "I moved to Lima", "I no longer like tea", "My favourite colour is red now")
    assert before - set(texts(memory)) == {
        "User lives in Rome",
        "User likes tea",
        "User's favourite colour is blue",
    }
    assert {"User lives in Lima", "User's favourite colour is red"} <= set(texts(memory))


@pytest.mark.parametrize(
    "said",
    [
        ("My favourite colour is blue", "My favourite food is ramen", "My favourite film is Alien"),
        ("I have a dog named Rex", "I have a dog named Bo"),
        ("I have a dog named Rex", "I have a cat named Tom"),
        ("I speak French", "I speak German too"),
        ("I'm allergic to nuts", "I'm allergic to shellfish"),
        ("My sister lives in Oslo", "My brother lives in Rome", "I live in Lima"),
        ("I like Python", "I like Rust"),
    ],
)
def test_compatible_facts_are_kept_together(memory, said):
    add_all(memory, *said)
    assert len(texts(memory)) == len(said)


@pytest.mark.parametrize(
    ("said", "held"),
    [
        (("I have a dog", "I have a dog named Rex"), ["User has a dog named Rex"]),
        (
            ("I have a dog", "My dog Rex loves walks"),
            ["User has a dog named Rex", "Rex likes walks"],
        ),
        (("I have a dog named Rex", "I have a dog"), ["User has a dog named Rex"]),
        (
            ("I have a sister", "My sister Emma is a nurse"),
            ["User has a sister named Emma", "Emma works as a nurse"],
        ),
        (
            ("I have a dog named Rex", "I have another dog"),
            ["User has a dog named Rex", "User has another dog"],
        ),
        (
            ("I have a dog", "I have a cat named Tom"),
            ["User has a dog", "User has a cat named Tom"],
        ),
        (
            ("I have two dogs", "I have a dog named Rex"),
            ["User has two dogs", "User has a dog named Rex"],
        ),
        (("I have a dog named Rex", "I have a cat", "My dog died"), ["User has a cat"]),
    ],
)
def test_name_refines_an_unnamed_fact(memory, said, held):
    add_all(memory, *said)
    assert texts(memory) == held


# Restatement


@pytest.mark.parametrize(
    "ways",
    [
        ("I like tea", "I like tea.", "I like tea!", "User likes tea", "I love tea"),
        ("I live in Rome", "I live in rome", "User lives in Rome"),
        ("My name is Ann", "I'm Ann", "User's name is Ann"),
    ],
)
def test_restatement_changes_nothing(memory, ways):
    [[first], *rest] = add_all(memory, *ways)
    assert {(row["event"], row["id"]) for results in rest for row in results} == {
        ("NONE", first["id"])
    }
    assert len(texts(memory)) == 1
    assert {row["event"] for row in memory.history(first["id"])} == {"ADD", "NONE"}


def test_alternating_values_keep_one_thread(memory):
    done = add_all(memory, *["I live in Rome", "I live in Oslo"] * 3)
    assert len({row["id"] for results in done for row in results}) == 1
    assert texts(memory) == ["User lives in Oslo"]


# Deleted memories stay deleted


def test_rebuild_does_not_restore_deleted_memories(memory):
    [[home], [tea], _] = add_all(memory, "I live in Rome", "I like tea", "I like jazz")
    memory.delete(tea["id"])
    memory.add("I no longer live in Rome", **U)
    memory.rebuild()
    assert texts(memory) == ["User likes jazz"]
    assert memory.get(home["id"]) is None
    assert memory.verify()["ok"]


def test_unrelated_add_does_not_restore_deleted_memory(memory):
    [[tea]] = add_all(memory, "I like tea")
    memory.delete(tea["id"])
    add_all(memory, "I like jazz", "I live in Rome")
    assert "User likes tea" not in texts(memory)


def test_deleted_memory_is_not_extracted_again_by_wait(open_memory):
    memory = open_memory(facts_json("User likes tea"))
    [tea] = memory.add("I do like tea", **U)["results"]
    memory.delete(tea["id"])
    memory.wait()
    assert texts(memory) == []


# Concurrency


@pytest.mark.parametrize("same_words", [True, False])
def test_concurrent_identical_adds_create_one_memory(open_memory, same_words):
    memory = open_memory(embedder=None)
    start, failed = threading.Barrier(8), []
    ways = [
        "I live in Rome",
        "User lives in Rome",
        "I live in Rome!",
        "I do live in Rome, you know",
    ]

    def say(number):
        start.wait()
        try:
            memory.add(ways[0] if same_words else ways[number % len(ways)], **U)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=say, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert texts(memory) == ["User lives in Rome"]
    assert memory.verify()["ok"]


def test_concurrent_conflicting_adds_keep_one_memory_with_history(open_memory):
    memory = open_memory(embedder=None)
    cities = ["Rome", "Oslo", "Lima", "Cairo", "Delhi", "Quito", "Accra", "Tunis"]
    threads = [
        threading.Thread(target=memory.add, args=[f"I live in {city}"], kwargs=U) for city in cities
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [row] = memory.get_all(**U)["results"]
    versions = {change["new_memory"] for change in memory.history(row["id"])}
    assert versions <= {f"User lives in {city}" for city in cities}
    assert row["memory"] in versions


# Bad model decisions


def texts_after_decision(open_memory, first, second, *decisions):
    """Extract two facts, apply the decisions about the second, and return the memories left."""
    memory = open_memory(facts_json(first), facts_json(second), decisions_json(*decisions))
    memory.add(first.replace("User", "I think the user"), **U)
    memory.add(second.replace("User", "I think the user"), **U)
    return texts(memory)


def test_model_delete_decision_keeps_the_new_fact(open_memory):
    left = texts_after_decision(
        open_memory,
        "User lives in Rome",
        "User lives in Oslo",
        {"fact": 1, "event": "DELETE", "id": 1},
    )
    assert left == ["User lives in Oslo"]


@pytest.mark.parametrize("event", ["UPDATE", "DELETE"])
def test_model_cannot_replace_unrelated_memory(open_memory, event):
    wrong = {"fact": 1, "event": event, "id": 1, "text": "User's favourite food is ramen"}
    left = texts_after_decision(
        open_memory, "User's favourite colour is blue", "User's favourite food is ramen", wrong
    )
    assert left == ["User's favourite colour is blue", "User's favourite food is ramen"]


def test_model_decision_with_unknown_id_is_ignored(open_memory):
    left = texts_after_decision(
        open_memory,
        "User speaks French",
        "User speaks German",
        {"fact": 1, "event": "DELETE", "id": 9},
    )
    assert left == ["User speaks French", "User speaks German"]


def test_model_delete_of_restated_fact_is_ignored(open_memory):
    memory = open_memory(
        facts_json("User likes tea"),
        facts_json("User likes tea"),
        decisions_json({"fact": 1, "event": "DELETE", "id": 1}),
    )
    memory.add("I do like tea", **U)
    memory.add("I really do like tea", **U)
    assert texts(memory) == ["User likes tea"]


def test_fact_equal_to_its_turn_is_kept_as_memory(open_memory):
    said = "The spare key is under the blue pot"
    memory = open_memory(facts_json(said))
    [row] = memory.add(said, **U)["results"]
    assert (row["event"], texts(memory)) == ("ADD", [said])


def test_two_clients_of_one_file_agree(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    with (
        Memory(url, embedder=HashingEmbedder()) as first,
        Memory(url, embedder=HashingEmbedder()) as second,
    ):
        first.add("I live in Rome", **U)
        second.add("I live in Oslo", **U)
        first.add("I speak French", **U)
        assert (
            sorted(texts(first))
            == sorted(texts(second))
            == ["User lives in Oslo", "User speaks French"]
        )
