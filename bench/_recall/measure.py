"""The measures: pure functions of what was offered and what was wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from statistics import fmean
from typing import Any

from bench._recall.contenders import Answer
from bench._recall.data import Conversation, Question, Turn, folded, words

BUDGETS = (500, 1000, 2000, 4000)
DEPTHS = (5, 10, 20, 50)
UNFOUND = 10**6


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one question: its figures by name."""

    question: Question
    confidence: float
    figures: Mapping[str, float]
    missing: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By budget, the evidence that does not stand in the context."""


def seen(conversation: Conversation, question: Question, answer: Answer, contexts: Mapping[int, str]) -> Seen:
    """One question held against its evidence."""
    turns = {turn.id: turn for turn in conversation.turns}
    figures: dict[str, float] = {}
    missing: dict[int, tuple[str, ...]] = {}
    if question.counts:
        figures |= ranking(answer.ranked, question.evidence)
        for budget, text in contexts.items():
            missing[budget] = absent(text, [turns[one] for one in question.evidence])
            figures[f"R@{budget}t"] = 1 - len(missing[budget]) / len(question.evidence)
            figures[f"all@{budget}t"] = float(not missing[budget])
            figures[f"words@{budget}t"] = coverage(question.answer, text)
        if question.oldest and question.newest and set(question.oldest) != set(question.newest):
            figures["newest first"] = float(newest_first(answer.ranked, question))
    return Seen(question, answer.confidence, figures, missing)


def ranking(ranked: Sequence[Sequence[str]], evidence: Sequence[str]) -> dict[str, float]:
    """Recall at each depth and nDCG@10 by the turns behind the hits."""
    places = first_places(ranked)
    found = [places.get(one, UNFOUND) for one in evidence]
    figures = {f"R@{depth}": sum(place < depth for place in found) / len(evidence) for depth in DEPTHS}
    gain = sum(1 / log2(place + 2) for place in found if place < 10)
    best = sum(1 / log2(place + 2) for place in range(min(10, len(evidence))))
    return {**figures, "nDCG@10": gain / best}


def first_places(ranked: Sequence[Sequence[str]]) -> dict[str, int]:
    """Where each turn comes first."""
    places: dict[str, int] = {}
    for place, ids in enumerate(ranked):
        for one in ids:
            places.setdefault(one, place)
    return places


def absent(text: str, evidence: Iterable[Turn]) -> tuple[str, ...]:
    """The turns whose text does not stand verbatim in a text, white space folded."""
    shown = folded(text)
    return tuple(turn.id for turn in evidence if folded(turn.text) not in shown)


def coverage(answer: str, text: str) -> float:
    """The share of the answer's content words that stand in a text."""
    wanted = words(answer)
    return len(wanted & words(text)) / len(wanted) if wanted else 1.0


def newest_first(ranked: Sequence[Sequence[str]], question: Question) -> bool:
    """Whether the current evidence ranks before the superseded."""
    places = first_places(ranked)
    newest = min(places.get(one, UNFOUND) for one in question.newest)
    return newest < min(places.get(one, UNFOUND) for one in question.oldest if one not in question.newest)


def auroc(answerable: Sequence[float], others: Sequence[float]) -> float | None:
    """How often an answerable question has the higher score; ties count half."""
    if not answerable or not others:
        return None
    wins = sum((one > other) + 0.5 * (one == other) for one in answerable for other in others)
    return wins / (len(answerable) * len(others))


def summary(rows: Sequence[Seen]) -> dict[str, float | None]:
    """The mean of every figure over the questions that have it, and how well confidence tells them apart."""
    names = dict.fromkeys(name for row in rows for name in row.figures)
    means: dict[str, float | None] = {
        name: fmean(row.figures[name] for row in rows if name in row.figures) for name in names
    }
    means["AUROC"] = auroc(
        [row.confidence for row in rows if row.question.answerable],
        [row.confidence for row in rows if not row.question.answerable],
    )
    return means


def by_category(rows: Sequence[Seen]) -> dict[str, dict[str, float | None]]:
    """The same for each category."""
    return grouped(rows, lambda row: row.question.category)


def grouped(rows: Sequence[Seen], key: Callable[[Seen], str]) -> dict[str, dict[str, float | None]]:
    """The same for each group."""
    names = sorted({key(row) for row in rows if row.question.counts})
    return {name: summary([row for row in rows if key(row) == name]) for name in names}


def misses(conversation: Conversation, rows: Sequence[Seen], budget: int) -> list[dict[str, Any]]:
    """The evidence that is not found at a budget, for a reader to think about."""
    turns = {turn.id: turn for turn in conversation.turns}
    return [
        {
            "conversation": conversation.id, "question": row.question.text, "category": row.question.category,
            "answer": row.question.answer, "missing": [f"{one}: {turns[one].text}" for one in row.missing[budget]],
        }
        for row in rows
        if row.missing.get(budget)
    ]  # fmt: skip
