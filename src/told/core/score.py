"""The definition of every score: BM25 of one scope, and cosine of quantised vectors.

A backend may compute these faster, never differently: the formulas are written so that the same IEEE operations in the
same order give the same bits in plain Python and in vectorised code. Statistics are those of the facts a read can see,
so neither another tenant's data nor a later write can move a score.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

K1 = 1.2
B = 0.75
TF_CAP = 15


@dataclass(frozen=True, slots=True)
class Corpus:
    """How many passages a read can see, and how many terms they hold."""

    passages: int
    terms: int

    @property
    def average(self) -> float:
        """The mean length of a passage."""
        return self.terms / self.passages if self.terms else 1.0


def idf(corpus: Corpus, containing: int) -> float:
    """How much a term tells, given how many visible passages contain it."""
    return log(1.0 + (corpus.passages - containing + 0.5) / (containing + 0.5))


def bm25(weight: float, tf: int, length: int, average: float) -> float:
    """One term's part of a passage's score."""
    return weight * (tf * (K1 + 1.0)) / (tf + K1 * (1.0 - B + B * length / average))


def frequencies(terms: Iterable[str]) -> dict[str, int]:
    """How often each term occurs, capped where BM25 has long been flat."""
    counts = Counter(terms)
    for term, count in counts.items():
        if count > TF_CAP:
            counts[term] = TF_CAP
    return counts


def quantise(vector: Sequence[float]) -> bytes:
    """Eight bits for each dimension; cosine does not care about the scale that is lost."""
    peak = max(map(abs, vector), default=0.0)
    if not peak:
        return bytes(len(vector))
    scale = 127.0 / peak
    return array("b", [round(value * scale) for value in vector]).tobytes()


def cosine(a: bytes, b: bytes) -> float:
    """The cosine of two quantised vectors; zero when either is empty."""
    left, right = array("b", a), array("b", b)
    norms = sqrt(_dot(left, left)) * sqrt(_dot(right, right))
    return _dot(left, right) / norms if norms else 0.0


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def top(scores: Mapping[int, float], depth: int) -> list[tuple[int, float]]:
    """The best positions with their scores; equals go to the newer one."""
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:depth]
