"""The measures: pure functions of what was offered and what was wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from statistics import fmean
from typing import Any, TypeAlias

from told.faces.eval.data import (
    EvalConversation,
    EvalQuestion,
    EvalTurn,
    content_words,
    normalize_whitespace,
)

BUDGETS = (500, 1000, 2000, 4000)
RECALL_DEPTHS = (5, 10, 20, 50)
NOT_FOUND = 10**6
MAX_SCORE_PARTS = 3
"""How many parts of a score are told of a miss."""

Metrics: TypeAlias = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class EvalAnswer:
    """What is offered for a question: the turns behind each hit, best first, and how sure the memory is."""

    ranked: tuple[tuple[str, ...], ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """What became of one question: its figures by name."""

    conversation: str
    question: EvalQuestion
    confidence: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    """For each turn of the evidence, the place of the first hit that shows it, counted from one."""
    missing: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By budget, the evidence that does not stand in the context."""

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON."""
        question = self.question
        return {
            "conversation": self.conversation,
            "id": question.id,
            "question": question.text,
            "category": question.category,
            "answerable": question.answerable,
            "confidence": self.confidence,
            "figures": dict(self.metrics),
            "ranks": dict(self.ranks),
            "missing": {str(budget): list(ids) for budget, ids in self.missing.items()},
        }


def measure_question(
    conversation: EvalConversation,
    question: EvalQuestion,
    answer: EvalAnswer,
    contexts: Mapping[int, str],
) -> QuestionResult:
    """One question held against its evidence."""
    if not question.is_measurable:
        return QuestionResult(conversation.id, question, answer.confidence)
    evidence = [turn for turn in conversation.turns if turn.id in question.evidence]
    metrics = measure_ranking(answer.ranked, question.evidence)
    missing = {budget: find_missing_turns(text, evidence) for budget, text in contexts.items()}
    for budget, text in contexts.items():
        metrics[f"R@{budget}t"] = 1 - len(missing[budget]) / len(evidence)
        metrics[f"all@{budget}t"] = float(not missing[budget])
        metrics[f"words@{budget}t"] = compute_word_coverage(question.answer, text)
    if question.superseded and question.newest:
        metrics["newest first"] = float(is_newest_first(answer.ranked, question))
    positions = first_positions(answer.ranked)
    ranks = {
        turn_id: positions[turn_id] + 1 if turn_id in positions else None
        for turn_id in question.evidence
    }
    return QuestionResult(conversation.id, question, answer.confidence, metrics, ranks, missing)


def measure_ranking(ranked: Sequence[Sequence[str]], evidence: Sequence[str]) -> dict[str, float]:
    """Recall at each depth and nDCG@10 by the turns behind the hits."""
    positions = first_positions(ranked)
    evidence_positions = [positions.get(turn_id, NOT_FOUND) for turn_id in evidence]
    recalls = {
        f"R@{depth}": sum(position < depth for position in evidence_positions) / len(evidence)
        for depth in RECALL_DEPTHS
    }
    return {**recalls, "nDCG@10": compute_ndcg(evidence_positions, 10)}


def compute_ndcg(positions: Sequence[int], depth: int) -> float:
    """Normalised discounted gain of places counted from zero; turns that one hit stands for are wanted once."""
    hits = set(positions) - {NOT_FOUND}
    relevant_count = len(hits) + positions.count(NOT_FOUND)
    gain = sum(1 / log2(position + 2) for position in hits if position < depth)
    return gain / sum(1 / log2(position + 2) for position in range(min(depth, relevant_count)))


def first_positions(ranked: Sequence[Sequence[str]]) -> dict[str, int]:
    """Where each turn comes first, counted from zero."""
    positions: dict[str, int] = {}
    for position, ids in enumerate(ranked):
        for turn_id in ids:
            positions.setdefault(turn_id, position)
    return positions


def find_missing_turns(text: str, evidence: Iterable[EvalTurn]) -> tuple[str, ...]:
    """The turns whose text does not stand verbatim in a text, white space folded; to name their ids is not enough."""
    normalized = normalize_whitespace(text)
    return tuple(turn.id for turn in evidence if normalize_whitespace(turn.text) not in normalized)


def compute_word_coverage(answer: str, text: str) -> float:
    """The share of the answer's content words that stand in a text."""
    answer_words = content_words(answer)
    return len(answer_words & content_words(text)) / len(answer_words) if answer_words else 1.0


def is_newest_first(ranked: Sequence[Sequence[str]], question: EvalQuestion) -> bool:
    """Whether the current evidence ranks before the superseded; neither found is not."""
    positions = first_positions(ranked)
    newest_position = min(positions.get(turn_id, NOT_FOUND) for turn_id in question.newest)
    return newest_position < min(
        positions.get(turn_id, NOT_FOUND) for turn_id in question.superseded
    )


def compute_auroc(answerable: Sequence[float], unanswerable: Sequence[float]) -> float | None:
    """How often an answerable question has the higher score; ties count half."""
    if not answerable or not unanswerable:
        return None
    wins = sum(
        (score > other_score) + 0.5 * (score == other_score)
        for score in answerable
        for other_score in unanswerable
    )
    return wins / (len(answerable) * len(unanswerable))


# Many questions -------------------------------------------------------------------------------------------------------


def summarize(rows: Sequence[QuestionResult]) -> Metrics:
    """The mean of every figure over the questions that have it, and how well confidence tells them apart."""
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    means: Metrics = {
        name: fmean(row.metrics[name] for row in rows if name in row.metrics) for name in names
    }
    means["AUROC"] = compute_auroc(
        [row.confidence for row in rows if row.question.answerable],
        [row.confidence for row in rows if not row.question.answerable],
    )
    return means


def summarize_by_category(rows: Sequence[QuestionResult]) -> dict[str, Metrics]:
    """The same for each category."""
    return summarize_groups(rows, lambda row: row.question.category)


def summarize_groups(
    rows: Sequence[QuestionResult], key: Callable[[QuestionResult], str]
) -> dict[str, Metrics]:
    """The same for each group in which recall can be measured."""
    names = sorted({key(row) for row in rows if row.question.is_measurable})
    return {name: summarize([row for row in rows if key(row) == name]) for name in names}


def diff_metrics(metrics: Metrics, base: Metrics) -> Metrics:
    """By how much figures lie above those of a base, where both have them."""
    return {
        name: value - base_value
        for name, value in metrics.items()
        if value is not None and (base_value := base.get(name)) is not None
    }


# Misses ---------------------------------------------------------------------------------------------------------------


def headline_budget(budgets: Sequence[int], target: int = 1000) -> int:
    """The budget whose figures stand for the run: the nearest to the default of a context."""
    return min(budgets, key=lambda budget: (abs(budget - target), budget))


def sample_misses(rows: Sequence[QuestionResult], budget: int, limit: int) -> list[QuestionResult]:
    """So many of the questions with evidence missing at a budget, evenly spaced over all of them."""
    missed = [row for row in rows if row.missing.get(budget)]
    count = min(limit, len(missed))
    return [missed[index * len(missed) // count] for index in range(count)]


def compare_score_parts(
    parts: Mapping[str, float | None], best: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """The parts of a missed memory's score that differ most from those of the best hit, by their relative size."""

    def relative_gap(name: str) -> float:
        missed_score, best_score = (scores.get(name) or 0.0 for scores in (parts, best))
        return abs(missed_score - best_score) / (max(abs(missed_score), abs(best_score)) or 1.0)

    names = sorted(dict.fromkeys([*best, *parts]), key=relative_gap, reverse=True)
    rows = [
        {"part": name, "missed": parts.get(name), "best": best.get(name)}
        for name in names
        if relative_gap(name) > 0
    ]
    return rows[:MAX_SCORE_PARTS]
