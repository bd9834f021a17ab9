"""Reply threading: which turns are linked to the turn before them."""

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


def replied_text(memory: Memory, memory_id: str) -> str | None:
    """Return the text of the turn a memory replies to."""
    fact = memory.engine.store.get_fact("default", memory_id)
    assert fact is not None
    before = None if fact.after is None else memory.get(fact.after)
    return None if before is None else before["memory"]


def pairs(memory: Memory, *turns: Message) -> list[str | None]:
    return [replied_text(memory, memory_id) for memory_id in tell(memory, *turns)]


def test_turns_of_different_speakers_are_linked(memory: Memory) -> None:
    turns = (turn("Ann", "one", 0), turn("Bob", "two", 1), turn("Ann", "three", 2))
    assert pairs(memory, *turns) == [None, "one", "two"]


def test_consecutive_turns_of_one_speaker_are_linked(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn("Ann", "two", 1)) == [None, "one"]


@pytest.mark.parametrize(("minutes", "answer"), [(0, "one"), (30, "one"), (31, None), (600, None)])
def test_a_long_pause_starts_a_new_thread(memory: Memory, minutes: int, answer: str | None) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn("Bob", "two", minutes)) == [None, answer]


def test_an_earlier_turn_does_not_reply_to_a_later_one(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 5), turn("Bob", "two", 0)) == [None, None]


def test_without_times_one_call_is_one_thread(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one"), turn("Bob", "two")) == [None, "one"]


@pytest.mark.parametrize(("first", "second"), [(0, None), (None, 0)])
def test_a_missing_time_prevents_linking(
    memory: Memory, first: int | None, second: int | None
) -> None:
    assert pairs(memory, turn("Ann", "one", first), turn("Bob", "two", second)) == [None, None]


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_assistant_turns_are_not_linked(memory: Memory, role: str) -> None:
    turns = (
        turn("Ann", "one", 0),
        turn("helper", "two", 1, role),
        turn("Ann", "three", 2),
        turn("Bob", "four", 3),
    )
    assert pairs(memory, *turns) == [None, None, None, "three"]


def test_turns_without_a_name_are_not_linked(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn(None, "two", 1), turn("Bob", "three", 2)) == [
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(("length", "answer"), [(PASSAGE_CHARS, True), (PASSAGE_CHARS + 1, False)])
def test_long_turns_are_not_linked(memory: Memory, length: int, answer: bool) -> None:
    long = "x" * length
    found = pairs(memory, turn("Ann", "one", 0), turn("Bob", long, 1), turn("Ann", "three", 2))
    assert found == ([None, "one", long] if answer else [None, None, None])


def test_a_duplicate_turn_ends_the_thread(memory: Memory) -> None:
    tell(memory, turn("Ann", "zero", 0))
    turns = (turn("Bob", "one", 100), turn("Ann", "zero", 101), turn("Bob", "two", 102))
    one, again, two = tell(memory, *turns)
    assert [replied_text(memory, one), replied_text(memory, again), replied_text(memory, two)] == [
        None,
        None,
        None,
    ]


def test_a_noise_turn_is_not_part_of_the_thread(memory: Memory) -> None:
    assert pairs(memory, turn("Ann", "one", 0), turn("Bob", "ok", 1), turn("Ann", "two", 2)) == [
        None,
        None,
    ]


def test_turns_are_linked_when_claims_are_extracted(memory: Memory) -> None:
    tell(memory, turn("Ann", "I live in Lisbon", 0), turn("Bob", "I work at Acme", 1))
    rows = memory.get_all(user_id="u", filters={"kind": "turn"})["results"]
    assert [row["memory"] for row in rows] == ["I live in Lisbon", "I work at Acme"]
    assert [replied_text(memory, row["id"]) for row in rows] == [None, "I live in Lisbon"]


def test_a_thread_continues_in_the_next_call(memory: Memory) -> None:
    tell(memory, turn("Ann", "one", 0))
    assert pairs(memory, turn("Bob", "two", 10), turn("Ann", "three", 11)) == ["one", "two"]


def test_without_times_calls_are_separate_threads(memory: Memory) -> None:
    tell(memory, turn("Ann", "one"))
    assert pairs(memory, turn("Bob", "two")) == [None]


@pytest.mark.parametrize(
    "between", [turn("helper", "x", 1, "assistant"), turn(None, "x", 1), turn("Cy", "x" * 700, 1)]
)
def test_another_speaker_between_calls_ends_the_thread(memory: Memory, between: Message) -> None:
    tell(memory, turn("Ann", "one", 0))
    tell(memory, between)
    assert pairs(memory, turn("Bob", "two", 2)) == [None]


@pytest.mark.parametrize("change", ["delete", "update", "erase"])
def test_a_deleted_or_changed_turn_gets_no_reply_link(memory: Memory, change: str) -> None:
    [one] = tell(memory, turn("Ann", "one", 0))
    getattr(memory, change)(one, *(("other",) if change == "update" else ()))
    assert pairs(memory, turn("Bob", "two", 1)) == [None]


def test_threads_of_different_runs_are_separate(memory: Memory) -> None:
    tell(memory, turn("Ann", "one", 0), user_id="u", run_id="r1")
    [two] = tell(memory, turn("Bob", "two", 1), user_id="u", run_id="r2")
    [three] = tell(memory, turn("Bob", "three", 2), user_id="other")
    assert (replied_text(memory, two), replied_text(memory, three)) == (None, None)


def test_a_thread_in_a_run_is_found_by_its_user(memory: Memory) -> None:
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


def test_a_new_version_keeps_its_thread_position_unless_the_text_changes(memory: Memory) -> None:
    _, two = tell(memory, turn("Ann", "one", 0), turn("Bob", "two", 1))
    memory.update(two, metadata={"n": 1})
    assert replied_text(memory, two) == "one"
    memory.update(two, "another")
    assert replied_text(memory, two) is None


def test_the_same_call_twice_changes_nothing(memory: Memory) -> None:
    turns = (turn("Ann", "one", 0), turn("Bob", "two", 1))
    first = tell(memory, *turns)
    assert tell(memory, *turns) == first
    assert [replied_text(memory, memory_id) for memory_id in first] == [None, "one"]
    assert memory.stats()["pending_vectors"] == 0
