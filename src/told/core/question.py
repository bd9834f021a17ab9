"""A probe as every part of an index answers it: weighed with the statistics of everything the read can see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from told.core.query import Probe
from told.core.score import Centre, Corpus, counted, idf, level, named, toward, trust
from told.core.value import quick


@quick
@dataclass(frozen=True, slots=True)
class Question:
    """A probe as every part of an index answers it: with the statistics of everything the read can see.

    `off` is how much of the mean direction is really taken off, and `level` how near a passage then is on the average.
    """

    probe: Probe
    weights: Mapping[str, float]
    average: float
    named: tuple[str, ...] = ()
    asked: bytes = b""
    middle: Centre = field(default_factory=Centre)
    off: float = 0.0
    level: float = 0.0
    visible: int = 0

    @property
    def mass(self) -> float:
        """What all terms of the query tell together."""
        return sum(self.weights.values())


def question(
    probe: Probe, asked: bytes, corpus: Corpus, containing: Sequence[int], speakers: Iterable[str],
    middle: Centre, count: int, toward: Callable[[bytes, bytes], float] = toward,
) -> Question:  # fmt: skip
    """What is asked, given its vector's code and what is visible: how much, with which terms, by whom, and where.

    The last is the centre of so many vectors; `toward` is what the cosine of a query with a code is found by.
    """
    terms = tuple(dict.fromkeys(probe.terms))
    people, names = named(speakers, probe.words) if probe.words else ((), frozenset())
    kept = counted(terms, names)
    pairs = zip(terms, containing, strict=True)
    weights = {term: idf(corpus, number) if term in kept else 0.0 for term, number in pairs}
    trusted = trust(count)
    off = probe.centre * trusted
    near = toward(asked, middle.code) if asked and middle.length else 0.0
    usual = level(near, middle, off, probe.usual, trusted) if asked else 0.0
    return Question(probe, weights, corpus.average, people, asked, middle, off, usual, corpus.passages)
