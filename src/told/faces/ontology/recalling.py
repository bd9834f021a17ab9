"""Facts that bear on a question, held or faded, and what can be said of each to the person they are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from told.core.alike import resemblance
from told.core.lazy import regex
from told.core.salience import Clock
from told.core.text import query_terms, terms
from told.faces.ontology.fact import Fact
from told.faces.ontology.keeping import Remaining
from told.faces.ontology.likeness import Vectors

_POINTING: Final = regex(r"\b(?:one|ones|it|its|that|this|those|these|them|there)\b", re.IGNORECASE)
"""Words that stand for what was spoken of last."""
LIKE: Final = 0.8
"""From here on two words are the same but for an ending or a slip."""


def best(query: str, facts: Sequence[Fact], vectors: Vectors | None) -> list[Fact]:
    """The facts that bear on a query, the best first.

    By the words of value, label and sentence, and by vectors if there are any. A question that names nothing but
    points back ("where can I get one?") is about what was said last.
    """
    scores = _scores(query, facts, vectors)
    found = [(score, fact) for score, fact in zip(scores, facts, strict=True) if score > 0.0]
    if found:
        found.sort(key=lambda pair: (pair[0], pair[1].salience, pair[1].last_turn), reverse=True)
        return [fact for _, fact in found]
    return sorted(facts, key=lambda fact: fact.last_turn, reverse=True) if _POINTING.search(query) else []


def _scores(query: str, facts: Sequence[Fact], vectors: Vectors | None) -> list[float]:
    sought = set(query_terms(query))
    worded = [_worded(sought, fact) for fact in facts]
    if vectors is None or not facts:
        return worded
    near = vectors.answers(query, [f"{fact.label}: {fact.value}" for fact in facts])
    return [word + score for word, score in zip(worded, near, strict=True)]


def _worded(sought: set[str], fact: Fact) -> float:
    """The share of the sought words that a fact has; those of its value count twice those of its sentence."""
    value, around = set(terms(fact.value)), set(terms(f"{fact.label} {fact.evidence}"))
    shares = (1.0 if term in value else max(_like(term, value), 0.5 * (term in around)) for term in sought)
    return sum(shares) / (len(sought) or 1)


def _like(term: str, words: Iterable[str]) -> float:
    """How much a word is like the likest of others, if it is like any."""
    best = max((resemblance(term, word) for word in words), default=0.0)
    return best if best >= LIKE else 0.0


def row(fact: Fact, remaining: Remaining) -> dict[str, Any]:
    """What can be said of a fact: what, since when, from which sentence, how strong, and how long yet."""
    unit = "days" if remaining.clock is Clock.TIME else "turns"
    return {
        "id": fact.id, "concept": fact.concept, "label": fact.label, "value": fact.value, "evidence": fact.evidence,
        "first_turn": fact.first_turn, "first_at": fact.first_at, "last_turn": fact.last_turn, "last_at": fact.last_at,
        "said": fact.reinforcements + 1, "salience": round(fact.salience, 4),
        "persistence_class": fact.persistence_class, f"fades_in_{unit}": remaining.left,
    }  # fmt: skip
