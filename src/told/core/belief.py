"""Which side of a contradiction is believed.

Two facts contradict each other where a link says so, where a later one was said to supersede the other, or where they
give one subject two values of a predicate that has only one. Nothing is retired for it: a read shows the side it
believes, and says that there is another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Literal, TypeAlias

from told.core.fact import Fact, Link
from told.core.kind import Semantics
from told.core.predicates import predicate
from told.core.text import normalise

Belief: TypeAlias = Literal["latest", "all", "majority", "trusted"]
BELIEFS: Final[tuple[Belief, ...]] = ("latest", "all", "majority", "trusted")

CONTRADICTS, SUPERSEDES, SUPPORTS = "contradicts", "supersedes", "supports"


# Sides ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sides:
    """Which facts stand against which, by thread, and which side of each dispute is not believed, for which other."""

    against: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


def believed(facts: Sequence[Fact], links: Iterable[Link], belief: Belief = "latest") -> Sides:
    """The sides of every contradiction among these facts; of each pair the lesser one is lost, unless all are shown."""
    known = {fact.id: fact for fact in facts}
    told = [link for link in links if link.src != link.dst]
    pairs = dict.fromkeys((*_linked(told, known), *_clashing(facts)))
    against: dict[str, list[str]] = {}
    for one, other in pairs:
        against.setdefault(one, []).append(other)
        against.setdefault(other, []).append(one)
    order = _order(belief, told)
    lost: dict[str, str] = {}
    for one, other in () if belief == "all" else pairs:
        weaker, stronger = sorted((known[one], known[other]), key=order)
        lost.setdefault(weaker.id, stronger.id)
    if belief == "latest":
        newer = {link.dst: link.src for link in told if link.rel == SUPERSEDES and {link.src, link.dst} <= known.keys()}
        lost = {thread: winner for thread, winner in lost.items() if newer.get(winner) != thread} | newer
    return Sides({thread: tuple(dict.fromkeys(others)) for thread, others in against.items()}, lost)


def _linked(links: Sequence[Link], known: Mapping[str, Fact]) -> Iterator[tuple[str, str]]:
    """The pairs that links set against each other."""
    for link in links:
        if link.rel in (CONTRADICTS, SUPERSEDES) and link.src in known and link.dst in known:
            yield min(link.src, link.dst), max(link.src, link.dst)


def _clashing(facts: Iterable[Fact]) -> Iterator[tuple[str, str]]:
    """The pairs that say two things of which only one can be so."""
    same: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in facts:
        if fact.predicate and fact.subject and fact.object:
            key = (repr(fact.scope.ids()), normalise(fact.subject), fact.predicate)
            same.setdefault(key, []).append(fact)
    for several in same.values():
        for one, other in combinations(several, 2):
            if one.id != other.id and clash(one, other):
                yield min(one.id, other.id), max(one.id, other.id)


def clash(one: Fact, other: Fact) -> bool:
    """Whether two facts of one subject and predicate cannot both be so at one time."""
    if one.valid_to <= other.valid_from or other.valid_to <= one.valid_from:
        return False
    alike = normalise(one.object or "") == normalise(other.object or "")
    if one.polarity != other.polarity:
        return alike
    single = predicate(one.predicate or "").semantics is not Semantics.MULTI
    return single and not alike and one.polarity == "asserted"


# Who is believed ------------------------------------------------------------------------------------------------------

Rank: TypeAlias = Callable[[Fact], tuple[float, ...]]


def _order(belief: Belief, links: Sequence[Link]) -> Rank:
    """What makes one side stronger than another; where it leaves them equal, the newer is."""
    if belief == "majority":
        backed: dict[str, int] = {}
        for link in links:
            if link.rel == SUPPORTS:
                backed[link.dst] = backed.get(link.dst, 0) + 1
        return lambda fact: (backed.get(fact.id, 0), *newest(fact))
    if belief == "trusted":
        return lambda fact: (standing(fact), *newest(fact))
    return newest


def newest(fact: Fact) -> tuple[float, ...]:
    """What holds since later is newer; of equals, what was said later, then what was written later."""
    said = fact.updated_at if fact.said_at is None else fact.said_at
    return fact.valid_from, said, fact.seq


def standing(fact: Fact) -> int:
    """Whose word it is: 3 the user's own, 2 a tool's, 1 a model's inference, 0 a document's."""
    if fact.source and fact.role not in ("user", "tool"):
        return 0
    if fact.role == "assistant" or fact.modality not in ("stated", "planned"):
        return 1
    return 2 if fact.role == "tool" else 3
