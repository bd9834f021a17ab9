"""A text that is held already in almost the same words is found, with vectors and without, and
nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from told import Memory
from told.flow import run
from told.ingest.embedding import MAX_TEXT_CHARS, NewText, attach_vectors, find_near_duplicate
from told.model.fact import Fact
from told.model.scope import Scope
from told.testing import FlakyEmbedder, HashingEmbedder, ManualClock, seeded_mint
from told.text.dates import parse_instant

HOME = Scope(user_id="u")
EMBEDDER = HashingEmbedder()


@pytest.fixture(params=["ram", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Memory]:
    url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/m.db"
    mint = seeded_mint(1, ManualClock())
    with Memory(
        url, embedder=EMBEDDER, mint=mint, durability="normal", extract="verbatim"
    ) as opened:
        yield opened


def held(
    memory: Memory,
    text: str,
    *,
    vector: bool = True,
    scope: Scope = HOME,
    kinds: Any = None,
    **said: Any,
) -> Fact | None:
    engine = memory.engine
    wording = NewText(text, **{"role": "user", **said})
    (wording,) = run(attach_vectors(EMBEDDER if vector else None, [wording]))
    return run(
        find_near_duplicate(
            engine.store, scope, wording, engine.store.mint.now(), engine.settings, kinds=kinds
        )
    )


def text_of(fact: Fact | None) -> str | None:
    return None if fact is None else fact.text


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("text", ["I like tea", "i like tea!", "I LIKE TEA", "I like the tea"])
def test_the_same_in_other_dress_is_found(memory: Memory, text: str, vector: bool) -> None:
    memory.add("I like tea", user_id="u")
    memory.add("I like coffee", user_id="u")
    assert text_of(held(memory, text, vector=vector)) == "I like tea"


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "I like coffee",
        "I don't like tea",
        "I liked tea",
        "She likes tea",
        "I like tea?",
        "tea",
        "",
        "?",
    ],
)
def test_what_says_something_else_is_not(memory: Memory, text: str, vector: bool) -> None:
    memory.add("I like tea", user_id="u")
    assert held(memory, text, vector=vector) is None


def test_an_empty_memory_holds_nothing(memory: Memory) -> None:
    assert held(memory, "I like tea") is None


def test_it_is_found_among_many_that_are_alike(memory: Memory) -> None:
    memory.add(
        [
            f"I like {thing} with milk"
            for thing in ("tea", "coffee", "cake", "bread", "rice", "oats", "soup")
        ],
        user_id="u",
    )
    memory.add([f"I have {number} cups" for number in range(40)], user_id="u")
    assert text_of(held(memory, "I like the rice with milk!")) == "I like rice with milk"
    assert text_of(held(memory, "I have 23 cups.", vector=False)) == "I have 23 cups"


def test_another_speaker_or_role_says_something_of_their_own(memory: Memory) -> None:
    memory.add({"role": "user", "name": "Ann", "content": "I like tea"}, user_id="u")
    assert held(memory, "I like tea!", actor="Ben") is None
    assert held(memory, "I like tea!", actor="Ann", role="assistant") is None
    assert text_of(held(memory, "I like tea!", actor="Ann")) == "I like tea"


def test_another_scope_is_another_memory(memory: Memory) -> None:
    memory.add("I like tea", user_id="u", run_id="r")
    memory.add("I like tea", user_id="v")
    assert held(memory, "I like tea!") is None
    assert held(memory, "I like tea!", scope=Scope(user_id="u", run_id="r")) is not None


def test_today_on_another_day_is_something_else(memory: Memory) -> None:
    memory.add(
        {"role": "user", "content": "I ran 5 km today", "timestamp": "2024-05-01T10:00:00Z"},
        user_id="u",
    )
    assert held(memory, "I ran 5 km today!", said_at=parse_instant("2024-05-02T10:00:00Z")) is None
    assert held(memory, "I ran 5 km today!") is None, "nobody knows which day is meant"
    assert (
        held(memory, "I ran 5 km today!", said_at=parse_instant("2024-05-01T18:00:00Z")) is not None
    )


def test_what_was_retracted_or_changed_is_not_held(memory: Memory) -> None:
    gone = memory.add("I like tea", user_id="u")["results"][0]["id"]
    other = memory.add("I like rice", user_id="u")["results"][0]["id"]
    memory.delete(gone)
    memory.update(other, "I like oats")
    assert held(memory, "I like tea!") is None
    assert held(memory, "I like rice!") is None
    assert text_of(held(memory, "I like oats!")) == "I like oats"


def test_a_turn_embedded_with_the_one_before_it_is_found_by_its_words(memory: Memory) -> None:
    talk = [("Ann", "What do you drink in the morning?"), ("Ben", "I like tea")]
    memory.add(
        [
            {"role": "user", "name": who, "content": said, "timestamp": "2024-05-01T10:00:00Z"}
            for who, said in talk
        ],
        user_id="u",
    )
    at = parse_instant("2024-06-01T10:00:00Z")
    assert text_of(held(memory, "I like tea!", actor="Ben", said_at=at)) == "I like tea"


def test_only_the_kinds_asked_for_are_looked_at(memory: Memory) -> None:
    memory.add("I like tea", user_id="u", kind="preference")
    assert held(memory, "I like tea!", kinds={"memory"}) is None
    assert held(memory, "I like tea!", kinds={"memory", "preference"}) is not None


def test_how_near_is_near_can_be_set(memory: Memory) -> None:
    memory.add("I really do like tea", user_id="u")
    strict = memory.engine.settings.replace(near_duplicate=1.0)
    wording = NewText(
        "I do like tea",
        "user",
        vector=EMBEDDER.embed(["other words entirely"])[0],
        model=EMBEDDER.model,
    )
    store = memory.engine.store
    assert run(find_near_duplicate(store, HOME, wording, store.mint.now(), strict)) is None


def test_a_vector_of_another_model_falls_back_to_words(memory: Memory) -> None:
    memory.add("I like tea", user_id="u")
    store = memory.engine.store
    wording = NewText("I like tea!", "user", vector=[1.0, 0.0], model="other:2")
    assert (
        text_of(
            run(find_near_duplicate(store, HOME, wording, store.mint.now(), memory.engine.settings))
        )
        == "I like tea"
    )


def test_an_embedder_that_fails_leaves_the_words() -> None:
    wordings = [NewText("I like tea", "user"), NewText("I like rice", "user")]
    assert run(attach_vectors(FlakyEmbedder(1), wordings)) == wordings
    assert run(attach_vectors(EMBEDDER, [])) == []
    assert [one.model for one in run(attach_vectors(EMBEDDER, [*wordings, wordings[0]]))] == [
        EMBEDDER.model
    ] * 3


def test_a_long_text_is_left_to_its_hash(memory: Memory) -> None:
    long = "tea " * MAX_TEXT_CHARS
    memory.add(long, user_id="u")
    assert held(memory, long) is None
