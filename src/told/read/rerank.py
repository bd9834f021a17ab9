"""A second, better judge of the first few hits, where there is one: a reranker, or a language model that is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from math import isfinite
from typing import Any, SupportsFloat

from told.core.fact import Fact
from told.core.text import loads_forgiving
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Reranker
from told.read.gather import Eye
from told.read.rank import Scored

SCORES = {
    "type": "object", "required": ["scores"],
    "properties": {"scores": {"type": "array", "items": {"type": "number"}}},
}  # fmt: skip
NO_RERANKER = "rerank had no effect: no reranker is in use; give one with Memory(reranker=...)."


def reranked(
    eye: Eye, query: str, scored: Sequence[Scored], facts: Mapping[int, Fact]
) -> Flow[tuple[list[Scored], tuple[str, ...]]]:
    """The first few in the order a reranker gives them, each keeping the score of the place it takes."""
    if eye.reranker is None:
        return list(scored), (NO_RERANKER,)
    head = list(scored[: eye.settings.rerank_depth])
    texts = [facts[one.mark.seq].text for one in head]
    given = yield from attempt(_judged(eye.reranker, query, texts))
    if isinstance(given, Failure):
        return list(scored), (f"The reranker {eye.reranker.model} failed, so the order is told's own: {given}",)
    judged = _numbers(given, len(head))
    if judged is None:
        return list(scored), (f"The reranker {eye.reranker.model} did not answer with {len(head)} numbers.",)
    order = sorted(range(len(head)), key=lambda number: (-judged[number], number))
    places = zip(order, head, strict=True)
    moved = [head[number].plus(rerank=place.score - head[number].score) for number, place in places]
    return [*moved, *scored[len(head) :]], ()


def _numbers(given: Any, count: int) -> list[float] | None:
    """What a reranker gave, in a list or an array, if it is as many finite numbers as were asked for."""
    listed = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(listed, list | tuple) or len(listed) != count:
        return None
    numbers = [float(score) for score in listed if isinstance(score, SupportsFloat)]
    return numbers if len(numbers) == count and all(map(isfinite, numbers)) else None


def _judged(judge: Reranker | LLM, query: str, texts: Sequence[str]) -> Flow[Any]:
    if not isinstance(judge, LLM):
        return (yield from call(judge.score, query, texts))
    listed = "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts, 1))
    system = resources.files("told.read").joinpath("prompts", "rerank.md").read_text("utf-8")
    reply = yield from call(judge.ask, system, f"Question: {query}\n\nMemories:\n{listed}", schema=SCORES)
    said = loads_forgiving(reply)
    return said.get("scores") if isinstance(said, dict) else said
