"""What to believe of things that contradict each other; the ledger keeps them all, a read chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from told.core.errors import InvalidInput
from told.core.fact import NEVER, QUARANTINE, Fact, Link
from told.core.trust import TRUST_KEY, trust_of_claim

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
        rows = [
            {"id": fact.id, "memory": fact.text, "trust": trust_of_claim(fact).label}
            for fact in self.facts
        ]
        return {"slot": self.slot, "memories": rows, "seq": self.seq}


def select_believed(
    facts: Sequence[Fact], links: Sequence[Link], belief: str = "latest"
) -> list[Fact]:
    """Those of some memories that a belief lets stand, in the order given.

    `links` are those that touch the memories. `all` keeps everything. Otherwise the best memory stands, then the next
    best that contradicts none of those that stand: the best is the `latest` said, the one most often said (`majority`),
    or the most `trusted`. What contradicts nothing always stands, and what is in quarantine contests nothing.
    """
    if belief not in BELIEFS:
        raise InvalidInput(
            f"There is no belief {belief!r}.", hint=f"Use one of {', '.join(BELIEFS)}."
        )
    rivals = _map_rivals(facts, links)
    if belief == "all" or not rivals:
        return list(facts)
    ranking_key = _ranking_key(belief, links)
    standing: set[str] = set()
    for fact in sorted(
        (fact for fact in facts if fact.id in rivals), key=ranking_key, reverse=True
    ):
        if not rivals[fact.id] & standing:
            standing.add(fact.id)
    return [fact for fact in facts if fact.id not in rivals or fact.id in standing]


SUPERSEDES: Final = "supersedes"
DERIVED_FROM: Final = "derived_from"


@dataclass(frozen=True, slots=True)
class BeliefConflicts:
    """Who contradicts whom, by id, and for each memory that a belief does not let stand, one that stands instead."""

    rivals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    replaced_by: Mapping[str, str] = field(default_factory=dict)


def find_belief_conflicts(
    facts: Sequence[Fact], links: Sequence[Link], belief: str = "latest"
) -> BeliefConflicts:
    """The contradictions among some memories, and who makes room for whom.

    What was said to supersede another stands instead of it wherever the latest is believed, unless it was made of it:
    then both stand, for nothing that is derived hides what it came from.
    """
    rivals = _map_rivals(facts, links)
    standing = {fact.id: fact for fact in select_believed(facts, links, belief)}
    ranking_key = _ranking_key(belief, links)
    replaced_by: dict[str, str] = {}
    for thread, others in rivals.items():
        if thread not in standing:
            replaced_by[thread] = max(
                (standing[other] for other in others if other in standing), key=ranking_key
            ).id
    if belief == "latest":
        standing_ids = standing.keys()
        derived_pairs = {(link.dst, link.src) for link in links if link.rel == DERIVED_FROM}
        superseding_pairs = {
            (link.dst, link.src): None
            for link in links
            if link.rel == SUPERSEDES and link.until == NEVER
        }
        replaced_by |= {
            old: new
            for old, new in superseding_pairs
            if old != new and {old, new} <= standing_ids and (old, new) not in derived_pairs
        }
    return BeliefConflicts(
        {thread: tuple(sorted(others)) for thread, others in rivals.items()}, replaced_by
    )


def find_contradictions(facts: Sequence[Fact], links: Sequence[Link]) -> list[Contradiction]:
    """The contradictions among some memories, in the order they were noticed."""
    facts_by_id = {fact.id: fact for fact in facts}
    by_pair: dict[frozenset[str], Contradiction] = {}
    for link in sorted(links, key=lambda link: link.seq):
        if (
            link.rel == CONTRADICTS
            and link.until == NEVER
            and link.src in facts_by_id
            and link.dst in facts_by_id
        ):
            pair = facts_by_id[link.src], facts_by_id[link.dst]
            later, earlier = sorted(pair, key=_recency_key, reverse=True)
            slot = str(link.meta.get("slot", ""))
            by_pair.setdefault(
                frozenset((link.src, link.dst)), Contradiction(slot, (later, earlier), link.seq)
            )
    return list(by_pair.values())


def _map_rivals(facts: Sequence[Fact], links: Sequence[Link]) -> dict[str, set[str]]:
    """Whom each contested memory contradicts."""
    contested = [fact for fact in facts if fact.kind != QUARANTINE]
    rivals: dict[str, set[str]] = {}
    for contradiction in find_contradictions(contested, links):
        first, second = contradiction.facts
        rivals.setdefault(first.id, set()).add(second.id)
        rivals.setdefault(second.id, set()).add(first.id)
    return rivals


def _ranking_key(belief: str, links: Sequence[Link]) -> Callable[[Fact], tuple[float, ...]]:
    """By what memories are put in order; of two that are worth the same, the later."""
    if belief == "majority":
        vote_counts = count_votes(links)
        return lambda fact: (vote_counts.get(fact.id, 0), *_recency_key(fact))
    if belief == "trusted":
        return lambda fact: (trust_of_claim(fact), fact.confidence, *_recency_key(fact))
    return _recency_key


def count_votes(links: Sequence[Link]) -> Mapping[str, int]:
    """How often each memory was said again; only what users say counts, so that nobody can stuff the ballot."""
    supports = {
        (link.src, link.dst)
        for link in links
        if link.rel == SUPPORTS and TRUST_KEY not in link.meta
    }
    return Counter(thread for _, thread in supports)


def _recency_key(fact: Fact) -> tuple[int, int]:
    return (fact.updated_at if fact.said_at is None else fact.said_at, fact.seq)
