"""Topics: clusters of exchanges, each represented by the mean direction of its members.

Members are compared like index passages, by cosines of quantised vectors, and summed as integers,
so the same members make the same topic in any order.
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

from told.model.scoring import fixed_point_weight, norm, quantise
from told.runtime import lazy_regex
from told.text.tokens import extract_terms

IN_EXCHANGE = "in_exchange"
IN_TOPIC = "in_topic"
ABSTRACTED_FROM = "abstracted_from"
DERIVED_FROM = "derived_from"
EXCHANGE, SUPER = "exchange", "super"
"""Metadata keys: the exchange of a link into a topic, and the mark of a super-topic."""

_WORD_EDGES = lazy_regex(r"^[\W_]+|[\W_]+$")

LABEL_LENGTH = 80
"""The maximum length of a label in characters."""

EXACT_SEARCH_LIMIT = 256
"""Up to this many topics the search is exact; beyond it only the nearest cells are searched."""

MIN_CELL_SIZE = 32
"""The minimum size at which a cell is split; it grows with the root of the topic count."""

PROBED_CELLS = 8
"""The number of nearest cells to search."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosine thresholds: join a topic, merge topics, relate a topic to a query, match a hot memory.

    `group` is the threshold for super-topics. The defaults suit BGE large; each embedder has its
    own.
    """

    join: float = 0.70
    merge: float = 0.93
    near: float = 0.60
    hot: float = 0.60
    group: float = 0.65

    @property
    def split(self) -> float:
        """Return the split threshold: 0.05 above a join threshold of 0.70, scaled for others."""
        return self.join + (1.0 - self.join) * 0.05 / (1.0 - 0.70)


# Means


@dataclass(frozen=True, slots=True)
class VectorMean:
    """A number of vectors and their integer sum."""

    total: tuple[int, ...] = ()
    count: int = 0

    def add(self, code: bytes) -> VectorMean:
        """Return the mean with one more vector."""
        return self._adjust(code, 1)

    def subtract(self, code: bytes) -> VectorMean:
        """Return the mean with one vector less."""
        return self._adjust(code, -1)

    def _adjust(self, code: bytes, sign: int) -> VectorMean:
        if not (length := norm(code)):
            return VectorMean(self.total or (0,) * len(code), self.count + sign)
        weight, values = sign * fixed_point_weight(length), memoryview(code).cast("b")
        before = self.total or (0,) * len(code)
        return VectorMean(
            tuple([a + weight * b for a, b in zip(before, values, strict=True)]), self.count + sign
        )

    @property
    def code(self) -> bytes:
        """Return the quantised direction."""
        return quantise(self.total)

    def pack(self, model: str) -> bytes:
        """Pack the direction, the count and the sum into a note."""
        sums = array("q", (self.count, *self.total))
        if byteorder == "big":
            sums.byteswap()
        return _pack_note(model, b"m", self.code + sums.tobytes())


def compute_mean(codes: Iterable[bytes]) -> VectorMean:
    """Return the mean of vectors."""
    mean = VectorMean()
    for code in codes:
        mean = mean.add(code)
    return mean


def is_packed_mean(note: bytes) -> bool:
    """Return True if a note is a packed mean rather than a single code."""
    return note[:1] == b"m"


def unpack_mean(note: bytes | None, model: str) -> VectorMean | None:
    """Unpack a mean of this model, or return None."""
    body = _unpack_note(note, b"m", model)
    if body is None:
        return None
    sums = array("q", body[_packed_dimensions(body) :])
    if byteorder == "big":
        sums.byteswap()
    count, *total = sums
    return VectorMean(tuple(total), count)


def unpack_centroid(note: bytes | None, model: str) -> bytes | None:
    """Unpack only the direction of a mean of this model, or return None."""
    body = _unpack_note(note, b"m", model)
    return None if body is None else body[: _packed_dimensions(body)]


def _packed_dimensions(body: bytes) -> int:
    """Return the dimensions of a packed mean: a byte and an integer each, plus the count."""
    return (len(body) - 8) // 9


def pack_code(code: bytes, model: str) -> bytes:
    """Pack a code into a note."""
    return _pack_note(model, b"c", code)


def unpack_code(note: bytes | None, model: str) -> bytes | None:
    """Unpack a code of this model, or return None."""
    return _unpack_note(note, b"c", model)


def _pack_note(model: str, tag: bytes, body: bytes) -> bytes:
    return tag + model.encode() + b"\0" + body


def _unpack_note(note: bytes | None, tag: bytes, model: str) -> bytes | None:
    prefix = _pack_note(model, tag, b"")
    return note[len(prefix) :] if note is not None and note.startswith(prefix) else None


# Topic index


class TopicMatch(NamedTuple):
    """A topic and its cosine."""

    topic: str
    cosine: float


class _CodeVector(NamedTuple):
    """A code and its length."""

    code: bytes
    length: float


def _to_code_vector(code: bytes) -> _CodeVector:
    [square] = dot_products(code, [code])
    return _CodeVector(code, sqrt(square))


def dot_products(code: bytes, others: Sequence[bytes]) -> Sequence[int]:
    """Return the exact dot products of a code with others; faster versions must agree."""
    values = array("b", code)
    return [sum(map(mul, values, array("b", other))) for other in others]


DotProducts: TypeAlias = Callable[[bytes, Sequence[bytes]], Sequence[int]]


@dataclass(slots=True)
class _TopicCell:
    """A cell of topics with similar directions, and its centroid."""

    centroid: _CodeVector
    vectors: dict[str, _CodeVector] = field(default_factory=dict)


class TopicIndex:
    """The topics of a scope by direction: exact search among few, approximate among many.

    Cell sizes grow with the root of the topic count and a search probes a fixed number of cells, so
    its cost grows with the root too. Ties go to the older topic.
    """

    def __init__(
        self,
        topics: Mapping[str, bytes] | None = None,
        dot_fn: DotProducts = dot_products,
        exact_limit: int = EXACT_SEARCH_LIMIT,
    ) -> None:
        self._dot_fn = dot_fn
        self._exact_limit = exact_limit
        self._cells: list[_TopicCell] = []
        self._cell_by_topic: dict[str, _TopicCell] = {}
        for topic, code in (topics or {}).items():
            self.put_topic(topic, code)

    def __len__(self) -> int:
        return len(self._cell_by_topic)

    def __contains__(self, topic: object) -> bool:
        return topic in self._cell_by_topic

    def codes(self) -> dict[str, bytes]:
        """Return the direction of every topic."""
        return {
            topic: vector.code for cell in self._cells for topic, vector in cell.vectors.items()
        }

    def put_topic(self, topic: str, code: bytes) -> None:
        """Add a topic or update its direction."""
        vector = _to_code_vector(code)
        cell = self._cell_by_topic.get(topic)
        if cell is None:
            cell = self._find_cell(vector)
            self._cell_by_topic[topic] = cell
        cell.vectors[topic] = vector
        if len(cell.vectors) > max(MIN_CELL_SIZE, isqrt(len(self))):
            self._split_cell(cell)

    def drop_topic(self, topic: str) -> None:
        """Remove a topic."""
        cell = self._cell_by_topic.pop(topic, None)
        if cell is not None:
            del cell.vectors[topic]
            if not cell.vectors:
                self._cells.remove(cell)

    def find_nearest(self, code: bytes) -> TopicMatch | None:
        """Return the topic nearest to a vector."""
        vector = _to_code_vector(code)
        matches: list[TopicMatch] = []
        for cell in self._probe_cells(vector):
            cosines = self._compute_cosines(vector, list(cell.vectors.values()))
            best = max(cosines)
            matches += [
                TopicMatch(name, best)
                for name, cosine in zip(cell.vectors, cosines, strict=True)
                if cosine == best
            ]
        return min(matches, key=_topic_sort_key, default=None)

    def find_near(self, code: bytes, min_cosine: float) -> list[TopicMatch]:
        """Return the topics with at least this cosine, nearest first."""
        vector = _to_code_vector(code)
        matches: list[TopicMatch] = []
        for cell in self._probe_cells(vector):
            matches += map(
                TopicMatch, cell.vectors, self._compute_cosines(vector, list(cell.vectors.values()))
            )
        return sorted(
            (match for match in matches if match.cosine >= min_cosine), key=_topic_sort_key
        )

    def _probe_cells(self, vector: _CodeVector) -> Sequence[_TopicCell]:
        """Return the cells to search."""
        if len(self) <= self._exact_limit:
            return self._cells
        cosines = self._compute_cosines(vector, [cell.centroid for cell in self._cells])
        nearest = sorted(range(len(cosines)), key=lambda i: (-cosines[i], i))[:PROBED_CELLS]
        return [self._cells[i] for i in nearest]

    def _compute_cosines(self, vector: _CodeVector, others: Sequence[_CodeVector]) -> list[float]:
        products = self._dot_fn(vector.code, [other.code for other in others])
        norms = (vector.length * other.length for other in others)
        return [
            product / length if length else 0.0
            for product, length in zip(products, norms, strict=True)
        ]

    def _find_cell(self, vector: _CodeVector) -> _TopicCell:
        """Return the cell with the nearest centroid."""
        if not self._cells:
            self._cells.append(_TopicCell(vector))
        cosines = self._compute_cosines(vector, [cell.centroid for cell in self._cells])
        return self._cells[cosines.index(max(cosines))]

    def _split_cell(self, cell: _TopicCell) -> None:
        """Split a cell around its two most distant topics."""
        vectors = list(cell.vectors.values())
        first_pole = self._find_furthest(cell.centroid, vectors)
        second_pole = self._find_furthest(first_pole, vectors)
        nearer = map(
            float.__lt__,
            self._compute_cosines(first_pole, vectors),
            self._compute_cosines(second_pole, vectors),
        )
        halves: tuple[dict[str, _CodeVector], dict[str, _CodeVector]] = ({}, {})
        for (topic, vector), side in zip(cell.vectors.items(), nearer, strict=True):
            halves[side][topic] = vector
        if not all(halves):
            return
        self._cells.remove(cell)
        for half in halves:
            new_cell = _TopicCell(
                _to_code_vector(compute_mean(vector.code for vector in half.values()).code), half
            )
            self._cells.append(new_cell)
            self._cell_by_topic.update(dict.fromkeys(half, new_cell))

    def _find_furthest(self, vector: _CodeVector, others: Sequence[_CodeVector]) -> _CodeVector:
        cosines = self._compute_cosines(vector, others)
        return others[cosines.index(min(cosines))]


def _topic_sort_key(match: TopicMatch) -> tuple[float, str]:
    return -match.cosine, match.topic


# Joining, splitting and merging


def find_topic_to_join(code: bytes, index: TopicIndex, threshold: float) -> str | None:
    """Return the nearest topic if it is near enough, else None for a new one."""
    match = index.find_nearest(code)
    return match.topic if match is not None and match.cosine >= threshold else None


def cluster_codes(codes: Mapping[str, bytes], threshold: float) -> list[list[str]]:
    """Cluster vectors greedily: join the nearest mean that is near enough, or start a cluster."""
    index, means, groups = TopicIndex(), dict[str, VectorMean](), dict[str, list[str]]()
    for name, code in codes.items():
        cluster = find_topic_to_join(code, index, threshold) or name
        means[cluster] = means.get(cluster, VectorMean()).add(code)
        groups.setdefault(cluster, []).append(name)
        index.put_topic(cluster, means[cluster].code)
    return list(groups.values())


def needs_split(before: int, after: int, capacity: int) -> bool:
    """Return True if a growing topic should be split: over its capacity, then at every doubling.

    The doubling avoids retrying with every member when the topic cannot be split.
    """
    bound = capacity
    while bound < before:
        bound *= 2
    return before <= bound < after


def find_merges(means: Mapping[str, bytes], threshold: float) -> dict[str, str]:
    """Map each topic to the earlier topic it merges into, if any."""
    index, merged_into = TopicIndex(), dict[str, str]()
    for topic, code in means.items():
        older = find_topic_to_join(code, index, threshold)
        if older is None:
            index.put_topic(topic, code)
        else:
            merged_into[topic] = older
    return merged_into


# Labels


def make_label(text: str, max_length: int = LABEL_LENGTH) -> str:
    """Return the beginning of a text as a label."""
    return " ".join(text.split())[:max_length].rstrip()


def extract_common_words(texts: Sequence[str], count: int = 4) -> str:
    """Return the words shared by more than half of the texts, most common first.

    Words are counted by term and shown as first written.
    """
    frequencies = Counter(
        term for text in texts for term in dict.fromkeys(extract_terms(text)) if len(term) > 2
    )
    written: dict[str, str] = {}
    for word in (_WORD_EDGES.sub("", word) for text in texts for word in text.split()):
        if len(word_terms := extract_terms(word)) == 1:
            written.setdefault(word_terms[0], word)
    shared = (
        term
        for term, frequency in frequencies.items()
        if 2 * frequency > len(texts) and term in written
    )
    return ", ".join(
        written[term] for term in sorted(shared, key=lambda term: -frequencies[term])[:count]
    )
