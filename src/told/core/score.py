"""The definition of every score: BM25 and coverage of one scope, and cosine of quantised vectors.

A backend may compute these faster, never differently: the formulas are written so that the same IEEE operations in the
same order give the same bits in plain Python and in vectorised code. Statistics are those of the facts a read can see,
so neither another tenant's data nor a later write can move a score.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import dist, log, sqrt
from operator import mul

from told.core.query import Word

K1 = 1.2
B = 0.75
TF_CAP = 15
UNIT = 1 << 20
ZERO = 128
RAISED = bytes((value + ZERO) % 256 for value in range(256))
FLOATS = tuple(map(float, range(256)))
"""What `math.dist` is quickest with, each made once for all codes."""

WIDE = 32767
FINE = 4000
"""The length of a query's code: its own square, and products of 1024 dimensions, add up exactly in single precision."""

PRIOR = 20
"""So many vectors tell as much of what is usual as the embedder itself says."""

REACH: tuple[tuple[int, float], ...] = ((-1, 0.8), (1, 0.6), (-2, 0.6), (2, 0.5))
"""How much a word counts for a turn when it stands in the turn before it, after it, and so on."""


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


def frequencies(terms: Sequence[str]) -> dict[str, int]:
    """How often each term occurs, capped where BM25 has long been flat."""
    once = dict.fromkeys(terms, 1)
    if len(once) == len(terms):
        return once
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
    return array("b", map(round, [value * scale for value in vector])).tobytes()


def fine(vector: Sequence[float]) -> bytes:
    """A query in two bytes for each dimension, raised like the values of any code; nothing, if it has no direction.

    What it is held against is rounded to one byte; its own rounding shall not show beside that. It is made of whole
    numbers before its length is taken, so that no order of summing matters.
    """
    peak = max(map(abs, vector), default=0.0)
    if not peak:
        return b""
    whole = [round(value / peak * WIDE) for value in vector]
    scale = FINE / sqrt(sum(map(mul, whole, whole)))
    return array("h", [round(value * scale) + ZERO for value in whole]).tobytes()


def toward(asked: bytes, code: bytes) -> float:
    """The cosine of a query, as `fine` has it, with a quantised vector; zero when that is empty."""
    values, square = _aim(asked)
    norms = sqrt(square) * norm(code)
    return _product(dist(values, _values(code)), square, _square(code)) / norms if norms else 0.0


def cosine(a: bytes, b: bytes) -> float:
    """The cosine of two quantised vectors; zero when either is empty."""
    norms = norm(a) * norm(b)
    return _dot(a, b) / norms if norms else 0.0


@lru_cache(maxsize=4096)
def norm(code: bytes) -> float:
    """The length of a quantised vector."""
    return sqrt(_square(code))


@lru_cache(maxsize=4096)
def _square(code: bytes) -> int:
    return _length(_values(code))


@lru_cache(maxsize=16)
def _aim(asked: bytes) -> tuple[tuple[float, ...], int]:
    """The values of a query's code and the square of its length."""
    values = tuple(map(float, array("h", asked)))
    return values, _length(values)


def _length(values: tuple[float, ...]) -> int:
    """The square of the length of raised values."""
    length = dist(values, (FLOATS[ZERO],) * len(values))
    return round(length * length)


@lru_cache(maxsize=512)
def _values(code: bytes) -> tuple[float, ...]:
    """The values of a code, each raised so that none is negative, for bytes come apart quickest that way."""
    return tuple([FLOATS[value] for value in code.translate(RAISED)])


@lru_cache(maxsize=4096)
def _dot(a: bytes, b: bytes) -> int:
    """The product of two codes."""
    a, b = a[: len(b)], b[: len(a)]
    return _product(dist(_values(a), _values(b)), _square(a), _square(b))


def _product(apart: float, a: int, b: int) -> int:
    """The product of two codes by way of the distance between them, which is done in C, and the squares of lengths.

    All these squares are whole numbers far below 2 ** 53, so rounding brings them back exactly.
    """
    return (a + b - round(apart * apart)) // 2


@dataclass(frozen=True, slots=True)
class Centre:
    """The mean direction of a scope's vectors, quantised, and its length: 1.0 when they all point one way."""

    code: bytes = b""
    length: float = 0.0

    def hub(self, cosine: float) -> float:
        """The mean cosine of a passage with all others of its scope, given its cosine with the centre."""
        return self.length * cosine


def share(norm: float) -> int:
    """What a code counts for in a sum of unit vectors: whole numbers, so that no order of summing matters."""
    return round(UNIT / norm)


def centre(total: Sequence[int], count: int, code: Callable[[Sequence[float]], bytes] = quantise) -> Centre:
    """The centre of so many vectors, given the sum of their codes, each times its share; `code` quantises it."""
    return _centre(tuple(total), count, code) if count and any(total) else Centre()


@lru_cache(maxsize=256)
def _centre(total: tuple[int, ...], count: int, code: Callable[[Sequence[float]], bytes]) -> Centre:
    """The same, remembered: it changes with every write and with no read."""
    return Centre(code(total), sqrt(sum(map(mul, total, total))) / (UNIT * count))


def above(cosine: float, hub: float, off: float) -> float:
    """A cosine with some of the scope's mean direction taken off."""
    return cosine - off * hub


def trust(count: int) -> float:
    """How much the mean of so many vectors tells of what is usual; that of a few tells little."""
    return count / (count + PRIOR)


def level(near: float, middle: Centre, off: float, usual: float, trusted: float) -> float:
    """What `above` comes to on the average: that of the scope, as far as it is trusted, and else what is usual.

    `near` is the cosine of the query with the centre.
    """
    return above(trusted * middle.hub(near) + (1.0 - trusted) * usual, middle.length * middle.length, off)


def cover(told: float, mass: float) -> float:
    """How much of a query a turn holds, given what the terms it has tell and what all of them tell."""
    return told / sqrt(mass) if mass else 0.0


def named(speakers: Iterable[str], words: Sequence[Word]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The speakers a query names, by a name of theirs or the capitalised beginning of one, and the terms that do."""
    found: dict[str, None] = {}
    terms: set[str] = set()
    for speaker in sorted(set(speakers)):
        names = speaker.casefold().split()
        for word in words:
            begins = word.capital and len(word.text) > 2
            if any(name == word.text or (begins and name.startswith(word.text)) for name in names):
                found[speaker] = None
                terms.update(word.terms)
    return tuple(found), frozenset(terms)


def counted(terms: Sequence[str], names: frozenset[str]) -> frozenset[str]:
    """The terms of a query that count: all but names, unless it is nothing but names."""
    return frozenset(terms) - names or frozenset(terms)


def top(scores: Mapping[int, float], depth: int) -> list[tuple[int, float]]:
    """The best positions with their scores; equals go to the newer one."""
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:depth]
