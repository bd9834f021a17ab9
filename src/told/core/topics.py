"""Topics: what was said, in clusters, each known by the mean direction of its members.

Members are compared as the index compares passages, by cosines of quantised vectors, and summed as whole numbers: the
same members make the same topic, in whatever order they came.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt, sqrt
from operator import mul
from sys import byteorder
from typing import NamedTuple, TypeAlias

from told.core.lazy import regex
from told.core.score import norm, quantise, share
from told.core.text import terms

IN_EXCHANGE, IN_TOPIC, ABSTRACTED_FROM, DERIVED_FROM = "in_exchange", "in_topic", "abstracted_from", "derived_from"
EXCHANGE, SUPER = "exchange", "super"
"""The metadata of a link into a topic that names the exchange, and that of a topic of topics."""

_WORD_EDGES = regex(r"^[\W_]+|[\W_]+$")

LABEL = 80
"""How many characters of what a user said make a label."""

EXACT = 256
"""Among so many topics every one is compared; among more, only those in the nearest cells."""

CELL = 32
"""How many topics a cell holds before it is divided, while there are few; later it is a multiple of the root."""

PROBES = 8
"""How many of the nearest cells are looked into."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which cosines on: a turn joins a topic, topics are one, a topic bears on a query, what is hot answers one.

    `group` is from where topics make a topic of topics. The numbers are those of BGE large; each embedder has its own.
    """

    join: float = 0.70
    merge: float = 0.93
    near: float = 0.60
    hot: float = 0.60
    group: float = 0.65

    @property
    def split(self) -> float:
        """How near the parts of a topic are in themselves: 0.05 nearer than to join at 0.70, as far on elsewhere."""
        return self.join + (1.0 - self.join) * 0.05 / (1.0 - 0.70)


# The mean of members --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mean:
    """So many vectors and their sum, in whole numbers."""

    total: tuple[int, ...] = ()
    count: int = 0

    def plus(self, code: bytes) -> Mean:
        """The same with one more."""
        return self._with(code, 1)

    def minus(self, code: bytes) -> Mean:
        """The same with one less."""
        return self._with(code, -1)

    def _with(self, code: bytes, sign: int) -> Mean:
        if not (length := norm(code)):
            return Mean(self.total or (0,) * len(code), self.count + sign)
        weight, values = sign * share(length), memoryview(code).cast("b")
        before = self.total or (0,) * len(code)
        return Mean(tuple([a + weight * b for a, b in zip(before, values, strict=True)]), self.count + sign)

    @property
    def code(self) -> bytes:
        """The direction, as codes are compared."""
        return quantise(self.total)

    def pack(self, model: str) -> bytes:
        """The mean as a note: its direction, how many there are, and their sum."""
        sums = array("q", (self.count, *self.total))
        if byteorder == "big":
            sums.byteswap()
        return _under(model, b"m", self.code + sums.tobytes())


def mean_of(codes: Iterable[bytes]) -> Mean:
    """The mean of some vectors."""
    mean = Mean()
    for code in codes:
        mean = mean.plus(code)
    return mean


def is_mean(note: bytes) -> bool:
    """Whether a note is a mean, and not the code of one vector."""
    return note[:1] == b"m"


def mean_in(note: bytes | None, model: str) -> Mean | None:
    """A packed mean, if the note is one of vectors of this model."""
    body = _body(note, b"m", model)
    if body is None:
        return None
    sums = array("q", body[_wide(body) :])
    if byteorder == "big":
        sums.byteswap()
    count, *total = sums
    return Mean(tuple(total), count)


def centre_in(note: bytes | None, model: str) -> bytes | None:
    """The direction of a packed mean, if the note is one of vectors of this model."""
    body = _body(note, b"m", model)
    return None if body is None else body[: _wide(body)]


def _wide(body: bytes) -> int:
    """How many dimensions a packed mean has: one byte and one number for each, and one number more."""
    return (len(body) - 8) // 9


def pack_code(code: bytes, model: str) -> bytes:
    """A code as a note."""
    return _under(model, b"c", code)


def code_in(note: bytes | None, model: str) -> bytes | None:
    """A packed code, if the note is one of this model."""
    return _body(note, b"c", model)


def _under(model: str, sort: bytes, body: bytes) -> bytes:
    return sort + model.encode() + b"\0" + body


def _body(note: bytes | None, sort: bytes, model: str) -> bytes | None:
    begin = _under(model, sort, b"")
    return note[len(begin) :] if note is not None and note.startswith(begin) else None


# The topics of a scope ------------------------------------------------------------------------------------------------


class Near(NamedTuple):
    """A topic and how near it is."""

    topic: str
    cosine: float


class _Spot(NamedTuple):
    """Where something points to, and the length of its code."""

    code: bytes
    length: float


def _spot(code: bytes) -> _Spot:
    [square] = dots(code, [code])
    return _Spot(code, sqrt(square))


def dots(code: bytes, others: Sequence[bytes]) -> Sequence[int]:
    """The products of a code with others, exactly; whoever computes them faster computes the same."""
    values = array("b", code)
    return [sum(map(mul, values, array("b", other))) for other in others]


Dots: TypeAlias = Callable[[bytes, Sequence[bytes]], Sequence[int]]


@dataclass(slots=True)
class _Cell:
    """Topics that point about the same way, and which way that is."""

    middle: _Spot
    spots: dict[str, _Spot] = field(default_factory=dict)


class Shelf:
    """The topics of one scope by their directions; what is found among few is exact, among many it is nearly so.

    Topics lie in cells that grow with the root of their number, and a search looks into a few of them: so it costs
    about the root of their number too. The older of two equally near is the nearer one.
    """

    def __init__(
        self, topics: Mapping[str, bytes] | None = None, products: Dots = dots, exact: int = EXACT
    ) -> None:
        self._products = products
        self._exact = exact
        self._cells: list[_Cell] = []
        self._where: dict[str, _Cell] = {}
        for topic, code in (topics or {}).items():
            self.put(topic, code)

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, topic: object) -> bool:
        return topic in self._where

    def codes(self) -> dict[str, bytes]:
        """Where every topic points to."""
        return {topic: spot.code for cell in self._cells for topic, spot in cell.spots.items()}

    def put(self, topic: str, code: bytes) -> None:
        """A topic points this way now."""
        spot = _spot(code)
        cell = self._where.get(topic)
        if cell is None:
            cell = self._cell(spot)
            self._where[topic] = cell
        cell.spots[topic] = spot
        if len(cell.spots) > max(CELL, isqrt(len(self))):
            self._divide(cell)

    def drop(self, topic: str) -> None:
        """A topic is no more."""
        cell = self._where.pop(topic, None)
        if cell is not None:
            del cell.spots[topic]
            if not cell.spots:
                self._cells.remove(cell)

    def nearest(self, code: bytes) -> Near | None:
        """The topic nearest to a vector."""
        spot = _spot(code)
        found: list[Near] = []
        for cell in self._look(spot):
            cosines = self._cosines(spot, list(cell.spots.values()))
            most = max(cosines)
            found += [Near(name, most) for name, cosine in zip(cell.spots, cosines, strict=True) if cosine == most]
        return min(found, key=_order, default=None)

    def near(self, code: bytes, least: float) -> list[Near]:
        """The topics that are so near at least, the nearest first."""
        spot = _spot(code)
        found: list[Near] = []
        for cell in self._look(spot):
            found += map(Near, cell.spots, self._cosines(spot, list(cell.spots.values())))
        return sorted((near for near in found if near.cosine >= least), key=_order)

    def _look(self, spot: _Spot) -> Sequence[_Cell]:
        """The cells that may hold what is near."""
        if len(self) <= self._exact:
            return self._cells
        ways = self._cosines(spot, [cell.middle for cell in self._cells])
        first = sorted(range(len(ways)), key=lambda place: (-ways[place], place))[:PROBES]
        return [self._cells[place] for place in first]

    def _cosines(self, spot: _Spot, others: Sequence[_Spot]) -> list[float]:
        products = self._products(spot.code, [other.code for other in others])
        norms = (spot.length * other.length for other in others)
        return [product / length if length else 0.0 for product, length in zip(products, norms, strict=True)]

    def _cell(self, spot: _Spot) -> _Cell:
        """The cell that points most nearly this way."""
        if not self._cells:
            self._cells.append(_Cell(spot))
        ways = self._cosines(spot, [cell.middle for cell in self._cells])
        return self._cells[ways.index(max(ways))]

    def _divide(self, cell: _Cell) -> None:
        """Make two of a cell: one around what is furthest from its middle, one around what is furthest from that."""
        spots = list(cell.spots.values())
        one = self._furthest(cell.middle, spots)
        other = self._furthest(one, spots)
        nearer = map(float.__lt__, self._cosines(one, spots), self._cosines(other, spots))
        halves: tuple[dict[str, _Spot], dict[str, _Spot]] = ({}, {})
        for (topic, spot), second in zip(cell.spots.items(), nearer, strict=True):
            halves[second][topic] = spot
        if not all(halves):
            return
        self._cells.remove(cell)
        for half in halves:
            made = _Cell(_spot(mean_of(spot.code for spot in half.values()).code), half)
            self._cells.append(made)
            self._where.update(dict.fromkeys(half, made))

    def _furthest(self, spot: _Spot, others: Sequence[_Spot]) -> _Spot:
        ways = self._cosines(spot, others)
        return others[ways.index(min(ways))]


def _order(near: Near) -> tuple[float, str]:
    return -near.cosine, near.topic


# Joining, dividing and uniting ----------------------------------------------------------------------------------------


def join(code: bytes, shelf: Shelf, threshold: float) -> str | None:
    """The topic a vector joins: the nearest, if it is near enough; none means a new one."""
    found = shelf.nearest(code)
    return found.topic if found is not None and found.cosine >= threshold else None


def clusters(codes: Mapping[str, bytes], threshold: float) -> list[list[str]]:
    """Vectors in clusters: each in turn joins the nearest mean that is near enough, or begins a cluster."""
    shelf, means, groups = Shelf(), dict[str, Mean](), dict[str, list[str]]()
    for name, code in codes.items():
        cluster = join(code, shelf, threshold) or name
        means[cluster] = means.get(cluster, Mean()).plus(code)
        groups.setdefault(cluster, []).append(name)
        shelf.put(cluster, means[cluster].code)
    return list(groups.values())


def overfull(before: int, after: int, most: int) -> bool:
    """Whether a topic that grows is to be divided: when it has more than so many, and then whenever that doubled.

    What cannot be divided now is not asked again with every member.
    """
    bound = most
    while bound < before:
        bound *= 2
    return before <= bound < after


def unions(means: Mapping[str, bytes], threshold: float) -> dict[str, str]:
    """Which topics are one with an earlier one, by the later; the earlier is never itself a later one."""
    shelf, one = Shelf(), dict[str, str]()
    for topic, code in means.items():
        older = join(code, shelf, threshold)
        if older is None:
            shelf.put(topic, code)
        else:
            one[topic] = older
    return one


# Names ----------------------------------------------------------------------------------------------------------------


def label(text: str, most: int = LABEL) -> str:
    """The beginning of what was said."""
    return " ".join(text.split())[:most].rstrip()


def common(texts: Sequence[str], most: int = 4) -> str:
    """The words that more than half of some texts share, the commonest first, of equals the earlier; none for nothing.

    Words are counted by their terms, and shown as they were first written.
    """
    found = Counter(term for text in texts for term in dict.fromkeys(terms(text)) if len(term) > 2)
    written: dict[str, str] = {}
    for word in (_WORD_EDGES.sub("", word) for text in texts for word in text.split()):
        if len(own := terms(word)) == 1:
            written.setdefault(own[0], word)
    shared = (term for term, count in found.items() if 2 * count > len(texts) and term in written)
    return ", ".join(written[term] for term in sorted(shared, key=lambda term: -found[term])[:most])
