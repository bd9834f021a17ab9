"""What other memories are known to get wrong: things forgotten that nobody took back, and things
kept that were.

Each holds with no model, and where a model decides, with one that decides as badly as models have
been seen to.
"""

import json
import threading

import pytest

from histories import stage
from told import Memory
from told.testing import HashingEmbedder, ScriptedLLM

U = {"user_id": "ann"}


@pytest.fixture(params=["ram", "sqlite"])
def opened(request):
    stages = []

    def open_one(*replies, **knobs):
        llm = ScriptedLLM(replies) if replies else "none"
        stages.append(stage(request.param, llm=llm, **knobs))
        return stages[-1].__enter__().memory

    yield open_one
    for each in stages:
        each.__exit__(None, None, None)


@pytest.fixture
def memory(opened):
    return opened()


def texts(memory):
    return [row["memory"] for row in memory.get_all(**U, limit=1000)["results"]]


def told(memory, *said):
    return [memory.add(text, **U)["results"] for text in said]


def facts(*found):
    return json.dumps(list(found))


def decided(*decisions):
    return json.dumps({"decisions": list(decisions)})


# Nothing that was not taken back is lost


def test_a_memory_that_is_added_again_is_not_deleted(memory):
    for _ in range(4):
        memory.add("I like green tea", **U)
    assert texts(memory) == ["User likes green tea"]


def test_what_was_deleted_can_be_said_again(memory):
    [[first]] = told(memory, "I like green tea")
    memory.delete(first["id"])
    assert texts(memory) == []
    [[again]] = told(memory, "I like green tea")
    assert again["event"] == "ADD"
    assert texts(memory) == ["User likes green tea"]


def test_what_was_denied_can_become_true_again(memory):
    told(memory, "I live in Rome", "I no longer live in Rome")
    assert texts(memory) == []
    told(memory, "I live in Rome again")
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
def test_a_contradiction_never_leaves_nothing(memory, said):
    first, second, word = said
    told(memory, first, second, first, second)
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
def test_unrelated_facts_never_retire_each_other(memory, order):
    size = len(UNRELATED)
    said = (
        UNRELATED[::order]
        if order == -1
        else [UNRELATED[place * order % size] for place in range(size)]
    )
    done = told(memory, *said)
    assert {row["event"] for results in done for row in results} == {"ADD"}
    assert len(texts(memory)) >= size


def test_a_change_of_one_thing_leaves_all_others(memory):
    told(memory, *UNRELATED)
    before = set(texts(memory))
    told(memory, "I moved to Lima", "I no longer like tea", "My favourite colour is red now")
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
def test_what_can_be_true_at_once_stands_side_by_side(memory, said):
    told(memory, *said)
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
def test_a_name_refines_what_was_held_without_one(memory, said, held):
    told(memory, *said)
    assert texts(memory) == held


# Saying it again


@pytest.mark.parametrize(
    "ways",
    [
        ("I like tea", "I like tea.", "I like tea!", "User likes tea", "I love tea"),
        ("I live in Rome", "I live in rome", "User lives in Rome"),
        ("My name is Ann", "I'm Ann", "User's name is Ann"),
    ],
)
def test_restating_changes_nothing(memory, ways):
    [[first], *rest] = told(memory, *ways)
    assert {(row["event"], row["id"]) for results in rest for row in results} == {
        ("NONE", first["id"])
    }
    assert len(texts(memory)) == 1
    assert {row["event"] for row in memory.history(first["id"])} == {"ADD", "NONE"}


def test_going_back_and_forth_keeps_one_thread(memory):
    done = told(memory, *["I live in Rome", "I live in Oslo"] * 3)
    assert len({row["id"] for results in done for row in results}) == 1
    assert texts(memory) == ["User lives in Oslo"]


# What is gone stays gone


def test_a_rebuild_brings_nothing_back(memory):
    [[home], [tea], _] = told(memory, "I live in Rome", "I like tea", "I like jazz")
    memory.delete(tea["id"])
    memory.add("I no longer live in Rome", **U)
    memory.rebuild()
    assert texts(memory) == ["User likes jazz"]
    assert memory.get(home["id"]) is None
    assert memory.verify()["ok"]


def test_a_deleted_memory_is_not_brought_back_by_saying_something_else(memory):
    [[tea]] = told(memory, "I like tea")
    memory.delete(tea["id"])
    told(memory, "I like jazz", "I live in Rome")
    assert "User likes tea" not in texts(memory)


def test_what_was_deleted_is_not_extracted_again_by_a_model_that_catches_up(opened):
    memory = opened(facts("User likes tea"))
    [tea] = memory.add("I do like tea", **U)["results"]
    memory.delete(tea["id"])
    memory.wait()
    assert texts(memory) == []


# At once


@pytest.mark.parametrize("same_words", [True, False])
def test_eight_who_say_the_same_at_once_leave_one(opened, same_words):
    memory = opened(embedder=None)
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


def test_eight_who_say_different_things_of_one_leave_one_and_a_history(opened):
    memory = opened(embedder=None)
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


# A model that decides badly


def judged(opened, first, second, *decisions):
    """What is left after a model took two facts from two turns and decided about the second."""
    memory = opened(facts(first), facts(second), decided(*decisions))
    memory.add(first.replace("User", "I think the user"), **U)
    memory.add(second.replace("User", "I think the user"), **U)
    return texts(memory)


def test_a_model_cannot_delete_the_old_and_leave_nothing(opened):
    left = judged(
        opened, "User lives in Rome", "User lives in Oslo", {"fact": 1, "event": "DELETE", "id": 1}
    )
    assert left == ["User lives in Oslo"]


@pytest.mark.parametrize("event", ["UPDATE", "DELETE"])
def test_a_model_cannot_retire_what_a_fact_does_not_speak_of(opened, event):
    wrong = {"fact": 1, "event": event, "id": 1, "text": "User's favourite food is ramen"}
    left = judged(
        opened, "User's favourite colour is blue", "User's favourite food is ramen", wrong
    )
    assert left == ["User's favourite colour is blue", "User's favourite food is ramen"]


def test_a_model_cannot_name_what_it_was_not_shown(opened):
    left = judged(
        opened, "User speaks French", "User speaks German", {"fact": 1, "event": "DELETE", "id": 9}
    )
    assert left == ["User speaks French", "User speaks German"]


def test_a_model_that_finds_its_own_fact_again_does_not_delete_it(opened):
    memory = opened(
        facts("User likes tea"),
        facts("User likes tea"),
        decided({"fact": 1, "event": "DELETE", "id": 1}),
    )
    memory.add("I do like tea", **U)
    memory.add("I really do like tea", **U)
    assert texts(memory) == ["User likes tea"]


def test_a_sentence_that_is_the_turn_itself_is_a_memory(opened):
    said = "The spare key is under the blue pot"
    memory = opened(facts(said))
    [row] = memory.add(said, **U)["results"]
    assert (row["event"], texts(memory)) == ("ADD", [said])


def test_two_memories_over_one_file_agree(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    with (
        Memory(url, embedder=HashingEmbedder()) as one,
        Memory(url, embedder=HashingEmbedder()) as other,
    ):
        one.add("I live in Rome", **U)
        other.add("I live in Oslo", **U)
        one.add("I speak French", **U)
        assert (
            sorted(texts(one))
            == sorted(texts(other))
            == ["User lives in Oslo", "User speaks French"]
        )
