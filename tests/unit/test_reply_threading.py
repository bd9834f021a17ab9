"""Who answers whom: which turns are understood together with the one before them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from told import Memory
from told.model.fact import PASSAGE_CHARS
from told.testing import HashingEmbedder, ManualClock, seeded_mint

Message = dict[str, Any]


@pytest.fixture(params=["ram", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Memory]:
    url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/m.db"
    with Memory(
        url, embedder=HashingEmbedder(), mint=seeded_mint(1, ManualClock()), durability="normal"
    ) as opened:
        yield opened


def turn(
    name: str | None, text: str, minute: int | None = None, role: str = "user", **more: Any
) -> Message:
    at = (
        {}
        if minute is None
        else {"timestamp": f"2024-05-01T{10 + minute // 60:02}:{minute % 60:02}:00Z"}
    )
    return {"role": role, "content": text, **({} if name is None else {"name": name}), **at, **more}


def tell(memory: Memory, *turns: Message, **ids: str) -> list[str]:
    return [row["id"] for row in memory.add(list(turns), **(ids or {"user_id": "u"}))["results"]]


def answered(memory: Memory, memory_id: str) -> str | None:
    """The text of the turn a memory was said after."""
    fact = memory.engine.store.get_fact("default", memory_id)
    assert fact is not None
    before = None if fact.after is None else memory.get(fact.after)
    return None if before is None else before["memory"]


def pairs(memory: Memory, *turns: Message) -> list[str | None]:
    return [answered(memory, memory_id) for memory_id in tell(memory, *turns)]


def test_people_answer_each_other(memory: Memory) -> None:
    turns = (turn("Ann", "one", 0), turn("Bob", "two", 1), turn("Ann", "three", 2))
    assert pairs(memory, *turns) == [None, "one", "two"]


def test_one_may_go_on_speaking(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn("Ann", "two", 1)) == [None, "one"]


@pytest.mark.parametrize(("minutes", "answer"), [(0, "one"), (30, "one"), (31, None), (600, None)])
def test_after_a_long_pause_a_talk_begins_anew(
    memory: Memory, minutes: int, answer: str | None
) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn("Bob", "two", minutes)) == [None, answer]


def test_what_was_said_earlier_answers_nothing_said_later(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 5), turn("Bob", "two", 0)) == [None, None]


def test_without_times_one_call_is_one_talk(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one"), turn("Bob", "two")) == [None, "one"]


@pytest.mark.parametrize(("first", "second"), [(0, None), (None, 0)])
def test_with_one_time_missing_nobody_knows(
    memory: Memory, first: int | None, second: int | None
) -> None:
    assert pairs(memory, turn("Ann", "one", first), turn("Bob", "two", second)) == [None, None]


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_an_assistant_neither_answers_nor_is_answered(memory: Memory, role: str) -> None:
    turns = (
        turn("Ann", "one", 0),
        turn("helper", "two", 1, role),
        turn("Ann", "three", 2),
        turn("Bob", "four", 3),
    )
    assert pairs(memory, *turns) == [None, None, None, "three"]


def test_who_has_no_name_is_in_no_talk(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn(None, "two", 1), turn("Bob", "three", 2)) == [
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(("length", "answer"), [(PASSAGE_CHARS, True), (PASSAGE_CHARS + 1, False)])
def test_a_long_turn_neither_answers_nor_is_answered(
    memory: Memory, length: int, answer: bool
) -> None:
    long = "x" * length
    found = pairs(memory, turn("Ann", "one", 0), turn("Bob", long, 1), turn("Ann", "three", 2))
    assert found == ([None, "one", long] if answer else [None, None, None])


def test_a_text_already_held_ends_the_talk(memory: Memory) -> None:
    tell(memory, turn("Ann", "zero", 0))
    turns = (turn("Bob", "one", 100), turn("Ann", "zero", 101), turn("Bob", "two", 102))
    one, again, two = tell(memory, *turns)
    assert [answered(memory, one), answered(memory, again), answered(memory, two)] == [
        None,
        None,
        None,
    ]


def test_a_turn_that_is_only_noise_is_no_part_of_the_talk(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn("Bob", "ok", 1), turn("Ann", "two", 2)) == [
        None,
        None,
    ]


def test_turns_answer_each_other_behind_what_was_understood_of_them(memory: Memory) -> None:
    tell(memory, turn("Ann", "I live in Lisbon", 0), turn("Bob", "I work at Acme", 1))
    rows = memory.get_all(user_id="u", filters={"kind": "turn"})["results"]
    assert [row["memory"] for row in rows] == ["I live in Lisbon", "I work at Acme"]
    assert [answered(memory, row["id"]) for row in rows] == [None, "I live in Lisbon"]


def test_a_talk_goes_on_in_the_next_call(memory: Memory) -> None:
    tell(memory, turn("Ann", "one", 0))
    assert pairs(memory, turn("Bob", "two", 10), turn("Ann", "three", 11)) == ["one", "two"]


def test_without_times_calls_are_apart(memory: Memory) -> None:
    tell(memory, turn("Ann", "one"))
    assert pairs(memory, turn("Bob", "two")) == [None]


@pytest.mark.parametrize(
    "between", [turn("helper", "x", 1, "assistant"), turn(None, "x", 1), turn("Cy", "x" * 700, 1)]
)
def test_somebody_in_between_ends_the_talk_across_calls(memory: Memory, between: Message) -> None:
    tell(memory, turn("Ann", "one", 0))
    tell(memory, between)
    assert pairs(memory, turn("Bob", "two", 2)) == [None]


@pytest.mark.parametrize("change", ["delete", "update", "erase"])
def test_a_turn_that_was_given_up_or_changed_is_not_answered(memory: Memory, change: str) -> None:
    [one] = tell(memory, turn("Ann", "one", 0))
    getattr(memory, change)(one, *(("other",) if change == "update" else ()))
    assert pairs(memory, turn("Bob", "two", 1)) == [None]


def test_talks_in_other_runs_are_apart(memory: Memory) -> None:
    tell(memory, turn("Ann", "one", 0), user_id="u", run_id="r1")
    [two] = tell(memory, turn("Bob", "two", 1), user_id="u", run_id="r2")
    [three] = tell(memory, turn("Bob", "three", 2), user_id="other")
    assert (answered(memory, two), answered(memory, three)) == (None, None)


def test_a_talk_of_one_run_is_found_as_one_by_its_user(memory: Memory) -> None:
    tell(
        memory,
        turn("Ann", "did you water the violets?", 0),
        turn("Bob", "yes, at noon", 1),
        user_id="u",
        run_id="r",
    )
    found = memory.search("violets", user_id="u", explain=True)["results"]
    assert {row["memory"] for row in found} == {"did you water the violets?", "yes, at noon"}
    answer = next(row for row in found if row["memory"] == "yes, at noon")
    assert answer["score_details"]["cover"] > 0, (
        "the words of the turn before it count for an answer"
    )


def test_a_new_version_of_a_turn_stays_in_its_place_but_a_new_text_does_not(memory: Memory) -> None:
    _, two = tell(memory, turn("Ann", "one", 0), turn("Bob", "two", 1))
    memory.update(two, metadata={"n": 1})
    assert answered(memory, two) == "one"
    memory.update(two, "another")
    assert answered(memory, two) is None


def test_the_same_call_twice_changes_nothing(memory: Memory) -> None:
    turns = (turn("Ann", "one", 0), turn("Bob", "two", 1))
    first = tell(memory, *turns)
    assert tell(memory, *turns) == first
    assert [answered(memory, memory_id) for memory_id in first] == [None, "one"]
    assert memory.stats()["pending_vectors"] == 0
