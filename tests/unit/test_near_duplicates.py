"""Near-duplicate detection, with and without vectors."""

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


def find_duplicate(
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
def test_a_reformatted_duplicate_is_found(memory: Memory, text: str, vector: bool) -> None:
    memory.add("I like tea", user_id="u")
    memory.add("I like coffee", user_id="u")
    assert text_of(find_duplicate(memory, text, vector=vector)) == "I like tea"


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
def test_a_different_text_is_not_a_duplicate(memory: Memory, text: str, vector: bool) -> None:
    memory.add("I like tea", user_id="u")
    assert find_duplicate(memory, text, vector=vector) is None


def test_an_empty_memory_has_no_duplicates(memory: Memory) -> None:
    assert find_duplicate(memory, "I like tea") is None


def test_a_duplicate_is_found_among_many_similar_texts(memory: Memory) -> None:
    memory.add(
        [
            f"I like {thing} with milk"
            for thing in ("tea", "coffee", "cake", "bread", "rice", "oats", "soup")
        ],
        user_id="u",
    )
    memory.add([f"I have {number} cups" for number in range(40)], user_id="u")
    assert text_of(find_duplicate(memory, "I like the rice with milk!")) == "I like rice with milk"
    assert text_of(find_duplicate(memory, "I have 23 cups.", vector=False)) == "I have 23 cups"


def test_another_speaker_or_role_is_not_a_duplicate(memory: Memory) -> None:
    memory.add({"role": "user", "name": "Ann", "content": "I like tea"}, user_id="u")
    assert find_duplicate(memory, "I like tea!", actor="Ben") is None
    assert find_duplicate(memory, "I like tea!", actor="Ann", role="assistant") is None
    assert text_of(find_duplicate(memory, "I like tea!", actor="Ann")) == "I like tea"


def test_another_scope_is_not_a_duplicate(memory: Memory) -> None:
    memory.add("I like tea", user_id="u", run_id="r")
    memory.add("I like tea", user_id="v")
    assert find_duplicate(memory, "I like tea!") is None
    assert find_duplicate(memory, "I like tea!", scope=Scope(user_id="u", run_id="r")) is not None


def test_a_relative_date_said_on_another_day_is_not_a_duplicate(memory: Memory) -> None:
    memory.add(
        {"role": "user", "content": "I ran 5 km today", "timestamp": "2024-05-01T10:00:00Z"},
        user_id="u",
    )
    assert (
        find_duplicate(memory, "I ran 5 km today!", said_at=parse_instant("2024-05-02T10:00:00Z"))
        is None
    )
    assert find_duplicate(memory, "I ran 5 km today!") is None, "nobody knows which day is meant"
    assert (
        find_duplicate(memory, "I ran 5 km today!", said_at=parse_instant("2024-05-01T18:00:00Z"))
        is not None
    )


def test_retracted_or_changed_memories_are_not_duplicates(memory: Memory) -> None:
    gone = memory.add("I like tea", user_id="u")["results"][0]["id"]
    other = memory.add("I like rice", user_id="u")["results"][0]["id"]
    memory.delete(gone)
    memory.update(other, "I like oats")
    assert find_duplicate(memory, "I like tea!") is None
    assert find_duplicate(memory, "I like rice!") is None
    assert text_of(find_duplicate(memory, "I like oats!")) == "I like oats"


def test_a_turn_embedded_with_its_predecessor_is_found_by_text(memory: Memory) -> None:
    talk = [("Ann", "What do you drink in the morning?"), ("Ben", "I like tea")]
    memory.add(
        [
            {"role": "user", "name": who, "content": said, "timestamp": "2024-05-01T10:00:00Z"}
            for who, said in talk
        ],
        user_id="u",
    )
    at = parse_instant("2024-06-01T10:00:00Z")
    assert text_of(find_duplicate(memory, "I like tea!", actor="Ben", said_at=at)) == "I like tea"


def test_only_the_requested_kinds_are_compared(memory: Memory) -> None:
    memory.add("I like tea", user_id="u", kind="preference")
    assert find_duplicate(memory, "I like tea!", kinds={"memory"}) is None
    assert find_duplicate(memory, "I like tea!", kinds={"memory", "preference"}) is not None


def test_the_similarity_threshold_is_configurable(memory: Memory) -> None:
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


def test_a_failing_embedder_falls_back_to_words() -> None:
    wordings = [NewText("I like tea", "user"), NewText("I like rice", "user")]
    assert run(attach_vectors(FlakyEmbedder(1), wordings)) == wordings
    assert run(attach_vectors(EMBEDDER, [])) == []
    assert [one.model for one in run(attach_vectors(EMBEDDER, [*wordings, wordings[0]]))] == [
        EMBEDDER.model
    ] * 3


def test_a_long_text_is_not_compared(memory: Memory) -> None:
    long = "tea " * MAX_TEXT_CHARS
    memory.add(long, user_id="u")
    assert find_duplicate(memory, long) is None
