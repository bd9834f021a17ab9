"""A text in fewer words without a model: its most telling sentences, in the order in which they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import sqrt

from told.core.importance import score_importance
from told.core.text import extract_terms, make_snippet, split_sentences

SUMMARY_LENGTH = 240
"""How many characters a summary has at most, unless another length is asked for."""

MAX_INPUT_CHARS = 20_000
"""How many characters of a text are read for it."""

FIRST_SENTENCE_BONUS = 0.15
"""What it is worth to open a text: who speaks says there what it is about."""


def extract_summary(text: str, max_chars: int = SUMMARY_LENGTH) -> str:
    """The most telling sentences of a text that fit into so many characters; a text that fits is its own summary.

    Which are telling depends on the text alone, so the same text has the same summary on every machine and day.
    """
    flat_text = " ".join(text.split())
    if len(flat_text) <= max_chars:
        return flat_text
    parts = [" ".join(sentence.split()) for sentence in split_sentences(text[:MAX_INPUT_CHARS])]
    selected = _select_sentences(parts, _score_sentences(parts), max_chars)
    return " ".join(parts[index] for index in sorted(selected)) or make_snippet(
        flat_text, max_chars
    )


def _score_sentences(parts: Sequence[str]) -> list[float]:
    """What each sentence tells: how important it is by itself, and how many of the text's own words it holds."""
    term_lists = [extract_terms(part) for part in parts]
    counts = Counter(term for part_terms in term_lists for term in set(part_terms))
    max_count = max(counts.values(), default=1)
    return [
        score_importance(part)
        + sum(counts[term] for term in set(part_terms))
        / (max_count * sqrt(len(part_terms) or 1))
        / 4
        + (FIRST_SENTENCE_BONUS if index == 0 else 0.0)
        for index, (part, part_terms) in enumerate(zip(parts, term_lists, strict=True))
    ]


def _select_sentences(parts: Sequence[str], scores: Sequence[float], max_chars: int) -> set[int]:
    """The best sentences that fit, each with the space before it; one that is too long leaves room for others."""
    selected: set[int] = set()
    remaining = max_chars + 1
    for index in sorted(range(len(parts)), key=lambda index: (-scores[index], index)):
        if len(parts[index]) + 1 <= remaining:
            selected.add(index)
            remaining -= len(parts[index]) + 1
    return selected
