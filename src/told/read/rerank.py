"""A second, better judge of the first few hits, where there is one: a reranker, or a language model that is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from math import isfinite
from typing import Any, SupportsFloat

from told.core.fact import Fact
from told.core.text import parse_lenient_json
from told.flow import Flow, call
from told.ledger.consume import Failure, catch_failure
from told.ports import LLM, Reranker
from told.read.gather import ReadContext
from told.read.rank import ScoredCandidate

SCORES_SCHEMA = {
    "type": "object", "required": ["scores"],
    "properties": {"scores": {"type": "array", "items": {"type": "number"}}},
}  # fmt: skip
NO_RERANKER_WARNING = (
    "rerank had no effect: no reranker is in use; give one with Memory(reranker=...)."
)


def rerank_head(
    ctx: ReadContext, query: str, scored: Sequence[ScoredCandidate], facts: Mapping[int, Fact]
) -> Flow[tuple[list[ScoredCandidate], tuple[str, ...]]]:
    """The first few in the order a reranker gives them, each keeping the score of the place it takes."""
    if ctx.reranker is None:
        return list(scored), (NO_RERANKER_WARNING,)
    head = list(scored[: ctx.settings.rerank_depth])
    texts = [facts[item.candidate.seq].text for item in head]
    reply = yield from catch_failure(_request_scores(ctx.reranker, query, texts))
    if isinstance(reply, Failure):
        return list(scored), (
            f"The reranker {ctx.reranker.model} failed, so the order is told's own: {reply}",
        )
    scores = _parse_scores(reply, len(head))
    if scores is None:
        return list(scored), (
            f"The reranker {ctx.reranker.model} did not answer with {len(head)} numbers.",
        )
    order = sorted(range(len(head)), key=lambda index: (-scores[index], index))
    places = zip(order, head, strict=True)
    reordered = [
        head[index].add_parts(rerank=place.score - head[index].score) for index, place in places
    ]
    return [*reordered, *scored[len(head) :]], ()


def _parse_scores(reply: Any, count: int) -> list[float] | None:
    """What a reranker gave, in a list or an array, if it is as many finite numbers as were asked for."""
    listed = reply.tolist() if hasattr(reply, "tolist") else reply
    if not isinstance(listed, list | tuple) or len(listed) != count:
        return None
    numbers = [float(score) for score in listed if isinstance(score, SupportsFloat)]
    return numbers if len(numbers) == count and all(map(isfinite, numbers)) else None


def _request_scores(reranker: Reranker | LLM, query: str, texts: Sequence[str]) -> Flow[Any]:
    if not isinstance(reranker, LLM):
        return (yield from call(reranker.score, query, texts))
    listed = "\n".join(f"{index}. {' '.join(text.split())}" for index, text in enumerate(texts, 1))
    system = resources.files("told.read").joinpath("prompts", "rerank.md").read_text("utf-8")
    reply = yield from call(
        reranker.ask, system, f"Question: {query}\n\nMemories:\n{listed}", schema=SCORES_SCHEMA
    )
    parsed = parse_lenient_json(reply)
    return parsed.get("scores") if isinstance(parsed, dict) else parsed
