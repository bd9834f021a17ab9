"""Facts that bear on a question, held or faded, and what can be said of each to the person they are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from told.core.alike import value_similarity
from told.core.lazy import lazy_regex
from told.core.salience import DecayClock
from told.core.text import extract_query_terms, extract_terms
from told.faces.ontology.fact import Fact
from told.faces.ontology.keeping import RemainingLife
from told.faces.ontology.likeness import TextVectors

_PRONOUNS: Final = lazy_regex(
    r"\b(?:one|ones|it|its|that|this|those|these|them|there)\b", re.IGNORECASE
)
"""Words that stand for what was spoken of last."""
MIN_WORD_SIMILARITY: Final = 0.8
"""From here on two words are the same but for an ending or a slip."""


def rank_facts(query: str, facts: Sequence[Fact], vectors: TextVectors | None) -> list[Fact]:
    """The facts that bear on a query, the best first.

    By the words of value, label and sentence, and by vectors if there are any. A question that names nothing but
    points back ("where can I get one?") is about what was said last.
    """
    scores = _score_facts(query, facts, vectors)
    scored = [(score, fact) for score, fact in zip(scores, facts, strict=True) if score > 0.0]
    if scored:
        scored.sort(key=lambda pair: (pair[0], pair[1].salience, pair[1].last_turn), reverse=True)
        return [fact for _, fact in scored]
    return (
        sorted(facts, key=lambda fact: fact.last_turn, reverse=True)
        if _PRONOUNS.search(query)
        else []
    )


def _score_facts(query: str, facts: Sequence[Fact], vectors: TextVectors | None) -> list[float]:
    query_words = set(extract_query_terms(query))
    word_scores = [_score_words(query_words, fact) for fact in facts]
    if vectors is None or not facts:
        return word_scores
    vector_scores = vectors.score_answers(query, [f"{fact.label}: {fact.value}" for fact in facts])
    return [
        word_score + vector_score
        for word_score, vector_score in zip(word_scores, vector_scores, strict=True)
    ]


def _score_words(query_words: set[str], fact: Fact) -> float:
    """The share of the sought words that a fact has; those of its value count twice those of its sentence."""
    value_words, context_words = (
        set(extract_terms(fact.value)),
        set(extract_terms(f"{fact.label} {fact.evidence}")),
    )
    shares = (
        1.0
        if term in value_words
        else max(_best_word_similarity(term, value_words), 0.5 * (term in context_words))
        for term in query_words
    )
    return sum(shares) / (len(query_words) or 1)


def _best_word_similarity(term: str, words: Iterable[str]) -> float:
    """How much a word is like the likest of others, if it is like any."""
    best_score = max((value_similarity(term, word) for word in words), default=0.0)
    return best_score if best_score >= MIN_WORD_SIMILARITY else 0.0


def fact_to_row(fact: Fact, remaining: RemainingLife) -> dict[str, Any]:
    """What can be said of a fact: what, since when, from which sentence, how strong, and how long yet."""
    unit = "days" if remaining.clock is DecayClock.TIME else "turns"
    return {
        "id": fact.id,
        "concept": fact.concept,
        "label": fact.label,
        "value": fact.value,
        "evidence": fact.evidence,
        "first_turn": fact.first_turn,
        "first_at": fact.first_at,
        "last_turn": fact.last_turn,
        "last_at": fact.last_at,
        "said": fact.reinforcements + 1,
        "salience": round(fact.salience, 4),
        "persistence_class": fact.persistence_class,
        f"fades_in_{unit}": remaining.duration,
    }
