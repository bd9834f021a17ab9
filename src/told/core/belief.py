"""What to believe of things that contradict each other; the ledger keeps them all, a read chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from told.core.errors import InvalidInput
from told.core.fact import NEVER, QUARANTINE, Fact, Link
from told.core.trust import STAMP, trust_of

CONTRADICTS: Final = "contradicts"
SUPPORTS: Final = "supports"
BELIEFS: Final = ("latest", "all", "majority", "trusted")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two memories that cannot both be true, what they disagree about, and where in the ledger that was noticed."""

    slot: str
    facts: tuple[Fact, Fact]
    seq: int

    def as_dict(self) -> dict[str, Any]:
        """The contradiction as JSON, the later memory first."""
        rows = [{"id": fact.id, "memory": fact.text, "trust": trust_of(fact).label} for fact in self.facts]
        return {"slot": self.slot, "memories": rows, "seq": self.seq}


def believed(facts: Sequence[Fact], links: Sequence[Link], belief: str = "latest") -> list[Fact]:
    """Those of some memories that a belief lets stand, in the order given.

    `links` are those that touch the memories. `all` keeps everything. Otherwise the best memory stands, then the next
    best that contradicts none of those that stand: the best is the `latest` said, the one most often said (`majority`),
    or the most `trusted`. What contradicts nothing always stands, and what is in quarantine contests nothing.
    """
    if belief not in BELIEFS:
        raise InvalidInput(f"There is no belief {belief!r}.", hint=f"Use one of {', '.join(BELIEFS)}.")
    against = _rivals(facts, links)
    if belief == "all" or not against:
        return list(facts)
    worth = _worth(belief, links)
    standing: set[str] = set()
    for fact in sorted((fact for fact in facts if fact.id in against), key=worth, reverse=True):
        if not against[fact.id] & standing:
            standing.add(fact.id)
    return [fact for fact in facts if fact.id not in against or fact.id in standing]


SUPERSEDES: Final = "supersedes"
DERIVED_FROM: Final = "derived_from"


@dataclass(frozen=True, slots=True)
class Sides:
    """Who contradicts whom, by id, and for each memory that a belief does not let stand, one that stands instead."""

    against: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


def sides(facts: Sequence[Fact], links: Sequence[Link], belief: str = "latest") -> Sides:
    """The contradictions among some memories, and who makes room for whom.

    What was said to supersede another stands instead of it wherever the latest is believed, unless it was made of it:
    then both stand, for nothing that is derived hides what it came from.
    """
    against = _rivals(facts, links)
    standing = {fact.id: fact for fact in believed(facts, links, belief)}
    worth = _worth(belief, links)
    lost: dict[str, str] = {}
    for thread, others in against.items():
        if thread not in standing:
            lost[thread] = max((standing[other] for other in others if other in standing), key=worth).id
    if belief == "latest":
        held = standing.keys()
        made = {(link.dst, link.src) for link in links if link.rel == DERIVED_FROM}
        over = {(link.dst, link.src): None for link in links if link.rel == SUPERSEDES and link.until == NEVER}
        lost |= {old: new for old, new in over if old != new and {old, new} <= held and (old, new) not in made}
    return Sides({thread: tuple(sorted(others)) for thread, others in against.items()}, lost)


def contradictions(facts: Sequence[Fact], links: Sequence[Link]) -> list[Contradiction]:
    """The contradictions among some memories, in the order they were noticed."""
    named = {fact.id: fact for fact in facts}
    found: dict[frozenset[str], Contradiction] = {}
    for link in sorted(links, key=lambda link: link.seq):
        if link.rel == CONTRADICTS and link.until == NEVER and link.src in named and link.dst in named:
            pair = named[link.src], named[link.dst]
            later, earlier = sorted(pair, key=_when, reverse=True)
            slot = str(link.meta.get("slot", ""))
            found.setdefault(frozenset((link.src, link.dst)), Contradiction(slot, (later, earlier), link.seq))
    return list(found.values())


def _rivals(facts: Sequence[Fact], links: Sequence[Link]) -> dict[str, set[str]]:
    """Whom each contested memory contradicts."""
    contested = [fact for fact in facts if fact.kind != QUARANTINE]
    against: dict[str, set[str]] = {}
    for each in contradictions(contested, links):
        one, other = each.facts
        against.setdefault(one.id, set()).add(other.id)
        against.setdefault(other.id, set()).add(one.id)
    return against


def _worth(belief: str, links: Sequence[Link]) -> Callable[[Fact], tuple[float, ...]]:
    """By what memories are put in order; of two that are worth the same, the later."""
    if belief == "majority":
        count = votes(links)
        return lambda fact: (count.get(fact.id, 0), *_when(fact))
    if belief == "trusted":
        return lambda fact: (trust_of(fact), fact.confidence, *_when(fact))
    return _when


def votes(links: Sequence[Link]) -> Mapping[str, int]:
    """How often each memory was said again; only what users say counts, so that nobody can stuff the ballot."""
    said = {(link.src, link.dst) for link in links if link.rel == SUPPORTS and STAMP not in link.meta}
    return Counter(thread for _, thread in said)


def _when(fact: Fact) -> tuple[int, int]:
    return (fact.updated_at if fact.said_at is None else fact.said_at, fact.seq)
