"""Reranking the top hits with any object or function; a failing reranker never fails a read."""

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


class ReversingReranker:
    """A reranker that prefers the last text and records its calls."""

    model = "judge"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((query, list(texts)))
        return [float(number) for number in range(len(texts))]


def open_memory(reranker: Any, **knobs: Any) -> Memory:
    made = Memory(
        "ram://",
        embedder=HashingEmbedder(),
        mint=seeded_mint(1, ManualClock()),
        reranker=reranker,
        **knobs,
    )
    made.add(TEXTS, user_id="u")
    return made


def search_texts(memory: Memory, **options: Any) -> list[str]:
    return [row["memory"] for row in memory.search("tea number", user_id="u", **options)["results"]]


@pytest.fixture
def judge() -> ReversingReranker:
    return ReversingReranker()


@pytest.fixture
def reranked_memory(judge: ReversingReranker) -> Iterator[Memory]:
    with open_memory(judge) as memory:
        yield memory


def test_the_reranker_decides_the_order(judge: ReversingReranker, reranked_memory: Memory) -> None:
    assert search_texts(reranked_memory, rerank=True) == search_texts(reranked_memory)[::-1]
    assert judge.asked == [("tea number", search_texts(reranked_memory))]


def test_scores_stay_with_the_rank_position(reranked_memory: Memory) -> None:
    before = reranked_memory.search("tea number", user_id="u", explain=True)["results"]
    after = reranked_memory.search("tea number", user_id="u", explain=True, rerank=True)["results"]
    assert [row["score"] for row in after] == pytest.approx([row["score"] for row in before])
    for row in after:
        parts = row["score_details"]
        names = ("dense", "cover", "talk", "speaker", "role", "time", "newer", "rerank")
        assert parts["raw"] == pytest.approx(sum(parts.get(name, 0.0) for name in names))


def test_only_the_top_hits_are_reranked(judge: ReversingReranker) -> None:
    with open_memory(judge, rerank_depth=3) as memory:
        plain = search_texts(memory)
        assert search_texts(memory, rerank=True) == [*plain[2::-1], *plain[3:]]
        assert len(judge.asked[0][1]) == 3


def test_the_rerank_depth_does_not_depend_on_the_limit(judge: ReversingReranker) -> None:
    with open_memory(judge, rerank_depth=8, spare=0) as memory:
        assert search_texts(memory, rerank=True, limit=1) == [judge.asked[0][1][-1]]
        assert len(judge.asked[0][1]) == 8


def test_reranking_happens_only_on_request(
    judge: ReversingReranker, reranked_memory: Memory
) -> None:
    search_texts(reranked_memory)
    reranked_memory.context("tea number", user_id="u")
    assert judge.asked == []
    reranked_memory.context("tea number", user_id="u", rerank=True)
    reranked_memory.explain("tea number", user_id="u", rerank=True)
    assert len(judge.asked) == 2


def test_a_function_can_be_a_reranker() -> None:
    with open_memory(lambda query, texts: [-len(text) for text in texts]) as memory:
        assert search_texts(memory, rerank=True) == sorted(TEXTS, key=len)


def test_equal_scores_keep_the_order() -> None:
    with open_memory(lambda query, texts: [1] * len(texts)) as memory:
        assert search_texts(memory, rerank=True) == search_texts(memory)


def test_float32_arrays_are_accepted() -> None:
    numpy = pytest.importorskip("numpy")
    with open_memory(lambda query, texts: numpy.arange(len(texts), dtype=numpy.float32)) as memory:
        answer = memory.search("tea number", user_id="u", rerank=True)
        assert [row["memory"] for row in answer["results"]] == search_texts(memory)[::-1]
        assert "warnings" not in answer
    with open_memory(
        lambda query, texts: list(numpy.arange(len(texts), dtype=numpy.float32))
    ) as memory:
        assert search_texts(memory, rerank=True) == search_texts(memory)[::-1]


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
def test_invalid_scores_give_a_warning_and_keep_the_order(
    answer: Any,
) -> None:
    with open_memory(lambda query, texts: answer) as memory:
        seen = memory.search("tea number", user_id="u", rerank=True)
        assert [row["memory"] for row in seen["results"]] == search_texts(memory)
        assert any("did not return 8 numbers" in warning for warning in seen["warnings"])


@pytest.mark.parametrize(
    "error", [RuntimeError("out of memory"), ValueError("no"), OSError("gone"), TimeoutError()]
)
def test_a_failing_reranker_gives_a_warning_and_keeps_the_order(error: Exception) -> None:
    def fail(query: str, texts: Sequence[str]) -> list[float]:
        raise error

    with open_memory(fail) as memory:
        seen = memory.search("tea number", user_id="u", rerank=True)
        assert [row["memory"] for row in seen["results"]] == search_texts(memory)
        assert any("failed" in warning for warning in seen["warnings"])
        bundle = memory.context("tea number", user_id="u", rerank=True)
        assert any("failed" in warning for warning in bundle.warnings)


def test_reranking_without_a_reranker_gives_a_warning() -> None:
    with open_memory(None) as memory:
        warnings = memory.search("tea", user_id="u", rerank=True)["warnings"]
        assert any("rerank had no effect" in warning for warning in warnings)


@pytest.mark.parametrize("thing", ["judge", 3, ["judge"]])
def test_an_invalid_reranker_is_rejected_at_once(thing: Any) -> None:
    with pytest.raises(ConfigError, match="reranker"):
        Memory("ram://", embedder="none", reranker=thing)


def test_hidden_memories_are_not_shown_to_the_reranker(judge: ReversingReranker) -> None:
    with open_memory(judge, guard=lambda row: "number 3" not in row["memory"]) as memory:
        search_texts(memory, rerank=True)
        assert not any("number 3" in text for _, texts in judge.asked for text in texts)


def test_the_reranker_is_not_called_without_hits(
    judge: ReversingReranker, reranked_memory: Memory
) -> None:
    assert reranked_memory.search("tea", user_id="stranger", rerank=True)["results"] == []
    assert judge.asked in ([], [("tea", [])])


def test_an_async_reranker_is_awaited() -> None:
    class Slow(ReversingReranker):
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
            reranked = await memory.search("tea number", user_id="u", rerank=True)
            return [row["memory"] for row in plain["results"]], [
                row["memory"] for row in reranked["results"]
            ]

    plain, reranked = asyncio.run(both())
    assert reranked == plain[::-1]
