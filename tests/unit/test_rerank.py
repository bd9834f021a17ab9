"""A second judge of the first few hits: any object or function, and no read fails over it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from math import inf, nan
from typing import Any

import pytest

from tables import each_row
from told import AsyncMemory, ConfigError, Memory
from told.testing import HashingEmbedder, ManualClock, seeded_mint

TEXTS = [f"tea number {number} {'tea ' * number}" for number in range(8)]


class Judge:
    """Likes the last of the texts best, and keeps what it was asked."""

    model = "judge"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((query, list(texts)))
        return [float(number) for number in range(len(texts))]


def opened(reranker: Any, **knobs: Any) -> Memory:
    made = Memory(
        "ram://",
        embedder=HashingEmbedder(),
        mint=seeded_mint(1, ManualClock()),
        reranker=reranker,
        **knobs,
    )
    made.add(TEXTS, user_id="u")
    return made


def found(memory: Memory, **options: Any) -> list[str]:
    return [row["memory"] for row in memory.search("tea number", user_id="u", **options)["results"]]


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def judged(judge: Judge) -> Iterator[Memory]:
    with opened(judge) as memory:
        yield memory


def test_the_order_is_the_rerankers(judge: Judge, judged: Memory) -> None:
    assert found(judged, rerank=True) == found(judged)[::-1]
    assert judge.asked == [("tea number", found(judged))]


def test_each_keeps_the_score_of_the_place_it_takes(judged: Memory) -> None:
    before = judged.search("tea number", user_id="u", explain=True)["results"]
    after = judged.search("tea number", user_id="u", explain=True, rerank=True)["results"]
    assert [row["score"] for row in after] == pytest.approx([row["score"] for row in before])
    for row in after:
        parts = row["score_details"]
        names = ("dense", "cover", "talk", "speaker", "role", "time", "newer", "rerank")
        assert parts["raw"] == pytest.approx(sum(parts.get(name, 0.0) for name in names))


def test_only_the_first_few_are_judged_and_the_others_follow(judge: Judge) -> None:
    with opened(judge, rerank_depth=3) as memory:
        plain = found(memory)
        assert found(memory, rerank=True) == [*plain[2::-1], *plain[3:]]
        assert len(judge.asked[0][1]) == 3


def test_as_many_are_judged_as_the_settings_say_however_few_are_wanted(judge: Judge) -> None:
    with opened(judge, rerank_depth=8, spare=0) as memory:
        assert found(memory, rerank=True, limit=1) == [judge.asked[0][1][-1]]
        assert len(judge.asked[0][1]) == 8


def test_it_is_asked_only_when_a_caller_says_so(judge: Judge, judged: Memory) -> None:
    found(judged)
    judged.context("tea number", user_id="u")
    assert judge.asked == []
    judged.context("tea number", user_id="u", rerank=True)
    judged.explain("tea number", user_id="u", rerank=True)
    assert len(judge.asked) == 2


def test_a_function_will_do() -> None:
    with opened(lambda query, texts: [-len(text) for text in texts]) as memory:
        assert found(memory, rerank=True) == sorted(TEXTS, key=len)


def test_equal_judgements_leave_the_order() -> None:
    with opened(lambda query, texts: [1] * len(texts)) as memory:
        assert found(memory, rerank=True) == found(memory)


def test_arrays_of_single_precision_are_numbers_too() -> None:
    numpy = pytest.importorskip("numpy")
    with opened(lambda query, texts: numpy.arange(len(texts), dtype=numpy.float32)) as memory:
        answer = memory.search("tea number", user_id="u", rerank=True)
        assert [row["memory"] for row in answer["results"]] == found(memory)[::-1]
        assert "warnings" not in answer
    with opened(lambda query, texts: list(numpy.arange(len(texts), dtype=numpy.float32))) as memory:
        assert found(memory, rerank=True) == found(memory)[::-1]


@each_row(
    "answer",
    [
        [],
        [1.0] * 7,
        [1.0] * 9,
        [nan] + [1.0] * 7,
        [inf] + [1.0] * 7,
        ["1"] * 8,
        [None] * 8,
        None,
        "12345678",
        8,
        [[1.0]] * 8,
        dict.fromkeys(range(8), 1.0),
    ],
)
def test_an_answer_that_is_not_a_number_for_each_is_a_warning_and_the_order_stays(
    answer: Any,
) -> None:
    with opened(lambda query, texts: answer) as memory:
        seen = memory.search("tea number", user_id="u", rerank=True)
        assert [row["memory"] for row in seen["results"]] == found(memory)
        assert any("did not return 8 numbers" in warning for warning in seen["warnings"])


@pytest.mark.parametrize(
    "error", [RuntimeError("out of memory"), ValueError("no"), OSError("gone"), TimeoutError()]
)
def test_a_reranker_that_fails_is_a_warning_and_the_order_stays(error: Exception) -> None:
    def fail(query: str, texts: Sequence[str]) -> list[float]:
        raise error

    with opened(fail) as memory:
        seen = memory.search("tea number", user_id="u", rerank=True)
        assert [row["memory"] for row in seen["results"]] == found(memory)
        assert any("failed" in warning for warning in seen["warnings"])
        bundle = memory.context("tea number", user_id="u", rerank=True)
        assert any("failed" in warning for warning in bundle.warnings)


def test_without_a_reranker_a_warning_says_that_it_had_no_effect() -> None:
    with opened(None) as memory:
        warnings = memory.search("tea", user_id="u", rerank=True)["warnings"]
        assert any("rerank had no effect" in warning for warning in warnings)


@pytest.mark.parametrize("thing", ["judge", 3, ["judge"]])
def test_what_cannot_judge_is_refused_at_once(thing: Any) -> None:
    with pytest.raises(ConfigError, match="reranker"):
        Memory("ram://", embedder="none", reranker=thing)


def test_what_may_not_be_seen_is_not_shown_to_the_reranker_either(judge: Judge) -> None:
    with opened(judge, guard=lambda row: "number 3" not in row["memory"]) as memory:
        found(memory, rerank=True)
        assert not any("number 3" in text for _, texts in judge.asked for text in texts)


def test_nothing_found_is_judged_by_nobody(judge: Judge, judged: Memory) -> None:
    assert judged.search("tea", user_id="stranger", rerank=True)["results"] == []
    assert judge.asked in ([], [("tea", [])])


def test_an_async_reranker_is_awaited() -> None:
    class Slow(Judge):
        async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:  # type: ignore[override]
            await asyncio.sleep(0)
            return super().score(query, texts)

    async def both() -> tuple[list[str], list[str]]:
        async with AsyncMemory(
            "ram://",
            embedder=HashingEmbedder(),
            mint=seeded_mint(1, ManualClock()),
            reranker=Slow(),
        ) as memory:
            await memory.add(TEXTS, user_id="u")
            plain = await memory.search("tea number", user_id="u")
            judged = await memory.search("tea number", user_id="u", rerank=True)
            return [row["memory"] for row in plain["results"]], [
                row["memory"] for row in judged["results"]
            ]

    plain, judged = asyncio.run(both())
    assert judged == plain[::-1]
