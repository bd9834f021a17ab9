"""The measures: pure functions of what was offered and what was wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from statistics import fmean
from typing import Any, TypeAlias

from told.faces.eval.data import Conversation, Question, Turn, folded, words

BUDGETS = (500, 1000, 2000, 4000)
DEPTHS = (5, 10, 20, 50)
UNFOUND = 10**6
TELLING = 3
"""How many parts of a score are told of a miss."""

Figures: TypeAlias = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is offered for a question: the turns behind each hit, best first, and how sure the memory is."""

    ranked: tuple[tuple[str, ...], ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one question: its figures by name."""

    conversation: str
    question: Question
    confidence: float
    figures: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    """For each turn of the evidence, the place of the first hit that shows it, counted from one."""
    missing: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By budget, the evidence that does not stand in the context."""

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON."""
        question = self.question
        return {
            "conversation": self.conversation, "id": question.id, "question": question.text,
            "category": question.category, "answerable": question.answerable, "confidence": self.confidence,
            "figures": dict(self.figures), "ranks": dict(self.ranks),
            "missing": {str(budget): list(ids) for budget, ids in self.missing.items()},
        }  # fmt: skip


def seen(conversation: Conversation, question: Question, answer: Answer, contexts: Mapping[int, str]) -> Seen:
    """One question held against its evidence."""
    if not question.counts:
        return Seen(conversation.id, question, answer.confidence)
    evidence = [turn for turn in conversation.turns if turn.id in question.evidence]
    figures = ranking(answer.ranked, question.evidence)
    missing = {budget: absent(text, evidence) for budget, text in contexts.items()}
    for budget, text in contexts.items():
        figures[f"R@{budget}t"] = 1 - len(missing[budget]) / len(evidence)
        figures[f"all@{budget}t"] = float(not missing[budget])
        figures[f"words@{budget}t"] = coverage(question.answer, text)
    if question.superseded and question.newest:
        figures["newest first"] = float(newest_first(answer.ranked, question))
    places = first_places(answer.ranked)
    ranks = {one: places[one] + 1 if one in places else None for one in question.evidence}
    return Seen(conversation.id, question, answer.confidence, figures, ranks, missing)


def ranking(ranked: Sequence[Sequence[str]], evidence: Sequence[str]) -> dict[str, float]:
    """Recall at each depth and nDCG@10 by the turns behind the hits."""
    places = first_places(ranked)
    found = [places.get(one, UNFOUND) for one in evidence]
    recalls = {f"R@{depth}": sum(place < depth for place in found) / len(evidence) for depth in DEPTHS}
    return {**recalls, "nDCG@10": ndcg(found, 10)}


def ndcg(places: Sequence[int], depth: int) -> float:
    """Normalised discounted gain of places counted from zero; turns that one hit stands for are wanted once."""
    hits = set(places) - {UNFOUND}
    wanted = len(hits) + places.count(UNFOUND)
    gain = sum(1 / log2(place + 2) for place in hits if place < depth)
    return gain / sum(1 / log2(place + 2) for place in range(min(depth, wanted)))


def first_places(ranked: Sequence[Sequence[str]]) -> dict[str, int]:
    """Where each turn comes first, counted from zero."""
    places: dict[str, int] = {}
    for place, ids in enumerate(ranked):
        for one in ids:
            places.setdefault(one, place)
    return places


def absent(text: str, evidence: Iterable[Turn]) -> tuple[str, ...]:
    """The turns whose text does not stand verbatim in a text, white space folded; to name their ids is not enough."""
    shown = folded(text)
    return tuple(turn.id for turn in evidence if folded(turn.text) not in shown)


def coverage(answer: str, text: str) -> float:
    """The share of the answer's content words that stand in a text."""
    wanted = words(answer)
    return len(wanted & words(text)) / len(wanted) if wanted else 1.0


def newest_first(ranked: Sequence[Sequence[str]], question: Question) -> bool:
    """Whether the current evidence ranks before the superseded; neither found is not."""
    places = first_places(ranked)
    newest = min(places.get(one, UNFOUND) for one in question.newest)
    return newest < min(places.get(one, UNFOUND) for one in question.superseded)


def auroc(answerable: Sequence[float], others: Sequence[float]) -> float | None:
    """How often an answerable question has the higher score; ties count half."""
    if not answerable or not others:
        return None
    wins = sum((one > other) + 0.5 * (one == other) for one in answerable for other in others)
    return wins / (len(answerable) * len(others))


# Many questions -------------------------------------------------------------------------------------------------------


def summary(rows: Sequence[Seen]) -> Figures:
    """The mean of every figure over the questions that have it, and how well confidence tells them apart."""
    names = dict.fromkeys(name for row in rows for name in row.figures)
    means: Figures = {name: fmean(row.figures[name] for row in rows if name in row.figures) for name in names}
    means["AUROC"] = auroc(
        [row.confidence for row in rows if row.question.answerable],
        [row.confidence for row in rows if not row.question.answerable],
    )
    return means


def by_category(rows: Sequence[Seen]) -> dict[str, Figures]:
    """The same for each category."""
    return grouped(rows, lambda row: row.question.category)


def grouped(rows: Sequence[Seen], key: Callable[[Seen], str]) -> dict[str, Figures]:
    """The same for each group in which recall can be measured."""
    names = sorted({key(row) for row in rows if row.question.counts})
    return {name: summary([row for row in rows if key(row) == name]) for name in names}


def differences(figures: Figures, base: Figures) -> Figures:
    """By how much figures lie above those of a base, where both have them."""
    return {
        name: value - before
        for name, value in figures.items()
        if value is not None and (before := base.get(name)) is not None
    }


# Misses ---------------------------------------------------------------------------------------------------------------


def nearest(budgets: Sequence[int], wanted: int = 1000) -> int:
    """The budget whose figures stand for the run: the nearest to the default of a context."""
    return min(budgets, key=lambda budget: (abs(budget - wanted), budget))


def spread(rows: Sequence[Seen], budget: int, most: int) -> list[Seen]:
    """So many of the questions with evidence missing at a budget, evenly spaced over all of them."""
    missed = [row for row in rows if row.missing.get(budget)]
    count = min(most, len(missed))
    return [missed[place * len(missed) // count] for place in range(count)]


def telling(parts: Mapping[str, float | None], best: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """The parts of a missed memory's score that differ most from those of the best hit, by their relative size."""

    def gap(name: str) -> float:
        one, other = (scores.get(name) or 0.0 for scores in (parts, best))
        return abs(one - other) / (max(abs(one), abs(other)) or 1.0)

    names = sorted(dict.fromkeys([*best, *parts]), key=gap, reverse=True)
    rows = [{"part": name, "missed": parts.get(name), "best": best.get(name)} for name in names if gap(name) > 0]
    return rows[:TELLING]
