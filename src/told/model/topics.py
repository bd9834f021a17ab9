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

from told.model.scoring import fixed_point_weight, norm, quantise
from told.runtime import lazy_regex
from told.text.tokens import extract_terms

IN_EXCHANGE, IN_TOPIC, ABSTRACTED_FROM, DERIVED_FROM = (
    "in_exchange",
    "in_topic",
    "abstracted_from",
    "derived_from",
)
EXCHANGE, SUPER = "exchange", "super"
"""The metadata of a link into a topic that names the exchange, and that of a topic of topics."""

_WORD_EDGES = lazy_regex(r"^[\W_]+|[\W_]+$")

LABEL_LENGTH = 80
"""How many characters of what a user said make a label."""

EXACT_SEARCH_LIMIT = 256
"""Among so many topics every one is compared; among more, only those in the nearest cells."""

MIN_CELL_SIZE = 32
"""How many topics a cell holds before it is divided, while there are few; later it is a multiple of the root."""

PROBED_CELLS = 8
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
class VectorMean:
    """So many vectors and their sum, in whole numbers."""

    total: tuple[int, ...] = ()
    count: int = 0

    def add(self, code: bytes) -> VectorMean:
        """The same with one more."""
        return self._adjust(code, 1)

    def subtract(self, code: bytes) -> VectorMean:
        """The same with one less."""
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
        """The direction, as codes are compared."""
        return quantise(self.total)

    def pack(self, model: str) -> bytes:
        """The mean as a note: its direction, how many there are, and their sum."""
        sums = array("q", (self.count, *self.total))
        if byteorder == "big":
            sums.byteswap()
        return _pack_note(model, b"m", self.code + sums.tobytes())


def compute_mean(codes: Iterable[bytes]) -> VectorMean:
    """The mean of some vectors."""
    mean = VectorMean()
    for code in codes:
        mean = mean.add(code)
    return mean


def is_packed_mean(note: bytes) -> bool:
    """Whether a note is a mean, and not the code of one vector."""
    return note[:1] == b"m"


def unpack_mean(note: bytes | None, model: str) -> VectorMean | None:
    """A packed mean, if the note is one of vectors of this model."""
    body = _unpack_note(note, b"m", model)
    if body is None:
        return None
    sums = array("q", body[_packed_dimensions(body) :])
    if byteorder == "big":
        sums.byteswap()
    count, *total = sums
    return VectorMean(tuple(total), count)


def unpack_centroid(note: bytes | None, model: str) -> bytes | None:
    """The direction of a packed mean, if the note is one of vectors of this model."""
    body = _unpack_note(note, b"m", model)
    return None if body is None else body[: _packed_dimensions(body)]


def _packed_dimensions(body: bytes) -> int:
    """How many dimensions a packed mean has: one byte and one number for each, and one number more."""
    return (len(body) - 8) // 9


def pack_code(code: bytes, model: str) -> bytes:
    """A code as a note."""
    return _pack_note(model, b"c", code)


def unpack_code(note: bytes | None, model: str) -> bytes | None:
    """A packed code, if the note is one of this model."""
    return _unpack_note(note, b"c", model)


def _pack_note(model: str, tag: bytes, body: bytes) -> bytes:
    return tag + model.encode() + b"\0" + body


def _unpack_note(note: bytes | None, tag: bytes, model: str) -> bytes | None:
    prefix = _pack_note(model, tag, b"")
    return note[len(prefix) :] if note is not None and note.startswith(prefix) else None


# The topics of a scope ------------------------------------------------------------------------------------------------


class TopicMatch(NamedTuple):
    """A topic and how near it is."""

    topic: str
    cosine: float


class _CodeVector(NamedTuple):
    """Where something points to, and the length of its code."""

    code: bytes
    length: float


def _to_code_vector(code: bytes) -> _CodeVector:
    [square] = dot_products(code, [code])
    return _CodeVector(code, sqrt(square))


def dot_products(code: bytes, others: Sequence[bytes]) -> Sequence[int]:
    """The products of a code with others, exactly; whoever computes them faster computes the same."""
    values = array("b", code)
    return [sum(map(mul, values, array("b", other))) for other in others]


DotProducts: TypeAlias = Callable[[bytes, Sequence[bytes]], Sequence[int]]


@dataclass(slots=True)
class _TopicCell:
    """Topics that point about the same way, and which way that is."""

    centroid: _CodeVector
    vectors: dict[str, _CodeVector] = field(default_factory=dict)


class TopicIndex:
    """The topics of one scope by their directions; what is found among few is exact, among many it is nearly so.

    Topics lie in cells that grow with the root of their number, and a search looks into a few of them: so it costs
    about the root of their number too. The older of two equally near is the nearer one.
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
        """Where every topic points to."""
        return {
            topic: vector.code for cell in self._cells for topic, vector in cell.vectors.items()
        }

    def put_topic(self, topic: str, code: bytes) -> None:
        """A topic points this way now."""
        vector = _to_code_vector(code)
        cell = self._cell_by_topic.get(topic)
        if cell is None:
            cell = self._find_cell(vector)
            self._cell_by_topic[topic] = cell
        cell.vectors[topic] = vector
        if len(cell.vectors) > max(MIN_CELL_SIZE, isqrt(len(self))):
            self._split_cell(cell)

    def drop_topic(self, topic: str) -> None:
        """A topic is no more."""
        cell = self._cell_by_topic.pop(topic, None)
        if cell is not None:
            del cell.vectors[topic]
            if not cell.vectors:
                self._cells.remove(cell)

    def find_nearest(self, code: bytes) -> TopicMatch | None:
        """The topic nearest to a vector."""
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
        """The topics that are so near at least, the nearest first."""
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
        """The cells that may hold what is near."""
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
        """The cell that points most nearly this way."""
        if not self._cells:
            self._cells.append(_TopicCell(vector))
        cosines = self._compute_cosines(vector, [cell.centroid for cell in self._cells])
        return self._cells[cosines.index(max(cosines))]

    def _split_cell(self, cell: _TopicCell) -> None:
        """Make two of a cell: one around what is furthest from its middle, one around what is furthest from that."""
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


# Joining, dividing and uniting ----------------------------------------------------------------------------------------


def find_topic_to_join(code: bytes, index: TopicIndex, threshold: float) -> str | None:
    """The topic a vector joins: the nearest, if it is near enough; none means a new one."""
    match = index.find_nearest(code)
    return match.topic if match is not None and match.cosine >= threshold else None


def cluster_codes(codes: Mapping[str, bytes], threshold: float) -> list[list[str]]:
    """Vectors in clusters: each in turn joins the nearest mean that is near enough, or begins a cluster."""
    index, means, groups = TopicIndex(), dict[str, VectorMean](), dict[str, list[str]]()
    for name, code in codes.items():
        cluster = find_topic_to_join(code, index, threshold) or name
        means[cluster] = means.get(cluster, VectorMean()).add(code)
        groups.setdefault(cluster, []).append(name)
        index.put_topic(cluster, means[cluster].code)
    return list(groups.values())


def needs_split(before: int, after: int, capacity: int) -> bool:
    """Whether a topic that grows is to be divided: when it has more than so many, and then whenever that doubled.

    What cannot be divided now is not asked again with every member.
    """
    bound = capacity
    while bound < before:
        bound *= 2
    return before <= bound < after


def find_merges(means: Mapping[str, bytes], threshold: float) -> dict[str, str]:
    """Which topics are one with an earlier one, by the later; the earlier is never itself a later one."""
    index, merged_into = TopicIndex(), dict[str, str]()
    for topic, code in means.items():
        older = find_topic_to_join(code, index, threshold)
        if older is None:
            index.put_topic(topic, code)
        else:
            merged_into[topic] = older
    return merged_into


# Names ----------------------------------------------------------------------------------------------------------------


def make_label(text: str, max_length: int = LABEL_LENGTH) -> str:
    """The beginning of what was said."""
    return " ".join(text.split())[:max_length].rstrip()


def extract_common_words(texts: Sequence[str], count: int = 4) -> str:
    """The words that more than half of some texts share, the commonest first, of equals the earlier; none for nothing.

    Words are counted by their terms, and shown as they were first written.
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
