"""A text in fewer words without a model: its most telling sentences, in the order in which they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import sqrt

from told.core.importance import importance
from told.core.text import sentences, snippet, terms

LENGTH = 240
"""How many characters a summary has at most, unless another length is asked for."""

READ = 20_000
"""How many characters of a text are read for it."""

FIRST = 0.15
"""What it is worth to open a text: who speaks says there what it is about."""


def condense(text: str, most: int = LENGTH) -> str:
    """The most telling sentences of a text that fit into so many characters; a text that fits is its own summary.

    Which are telling depends on the text alone, so the same text has the same summary on every machine and day.
    """
    whole = " ".join(text.split())
    if len(whole) <= most:
        return whole
    parts = [" ".join(sentence.split()) for sentence in sentences(text[:READ])]
    chosen = _chosen(parts, _worths(parts), most)
    return " ".join(parts[place] for place in sorted(chosen)) or snippet(whole, most)


def _worths(parts: Sequence[str]) -> list[float]:
    """What each sentence tells: how important it is by itself, and how many of the text's own words it holds."""
    held = [terms(part) for part in parts]
    counts = Counter(term for each in held for term in set(each))
    often = max(counts.values(), default=1)
    return [
        importance(part) + sum(counts[term] for term in set(each)) / (often * sqrt(len(each) or 1)) / 4
        + (FIRST if place == 0 else 0.0)
        for place, (part, each) in enumerate(zip(parts, held, strict=True))
    ]  # fmt: skip


def _chosen(parts: Sequence[str], worths: Sequence[float], most: int) -> set[int]:
    """The best sentences that fit, each with the space before it; one that is too long leaves room for others."""
    chosen: set[int] = set()
    room = most + 1
    for place in sorted(range(len(parts)), key=lambda place: (-worths[place], place)):
        if len(parts[place]) + 1 <= room:
            chosen.add(place)
            room -= len(parts[place]) + 1
    return chosen
