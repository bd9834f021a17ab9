"""Reflection without a model: what memories of one subject and predicate say when they are looked at together.

Four rules, each careful never to say more than is there: the same twice may be one, two that cannot both be true
contradict each other and somebody should look, what belonged to a session that is long over should be looked at too,
and what happened on three different days is a pattern. What links say already is not said again, so reflecting twice
is reflecting once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from told.core import address
from told.core.alike import Likeness, compare, words
from told.core.belief import CONTRADICTS, SUPERSEDES
from told.core.fact import Fact, Link
from told.core.kind import Ontology, Semantics
from told.core.predicates import predicate
from told.core.salience import Tier
from told.core.trust import Trust, source_of
from told.ledger.erase import DERIVED_FROM
from told.tend.apply import MADE, NEEDS_REVIEW
from told.tend.delta import (
    ARGUMENTS,
    NEEDS_CONTRADICTION_REVIEW,
    POTENTIALLY_SAME,
    STALE_SESSION,
    AddArgument,
    AssertClaim,
    CloseTxTime,
    Operation,
    ScheduleReview,
)
from told.tend.rows import Rows, happened
from told.write.curate.slots import OPPOSITES, slot_of
from told.write.curate.verdicts import ended, tentative

AUTHOR: Final = "reflect"
PATTERN: Final = "pattern"
RECURS: Final = "recurs"
OFTEN: Final = 3
"""On how many different days something happens that is a pattern."""

HAPPENING: Final = frozenset({"event", "case", "memory"})
"""Kinds whose coming back tells something; that somebody still lives in Rome does not."""

PERHAPS: Final = 0.5
DAY: Final = 86_400_000_000
SESSION: Final = frozenset({"session_summary", "session_archive"})
PASSING: Final = frozenset({Tier.SESSION, Tier.EPHEMERAL})
ORPHANED: Final = "what it was made of is held no more"


@dataclass(frozen=True, slots=True)
class _Bonds:
    """What links say already."""

    pairs: dict[frozenset[str], set[str]]
    reviews: set[tuple[str, str]]
    made: set[tuple[str, str]]
    patterned: set[str]

    def between(self, one: Fact, other: Fact) -> set[str]:
        """By which relations two memories are bound, either way."""
        return self.pairs.get(frozenset((one.id, other.id)), set())


def reflect(rows: Rows, ontology: Ontology, now: int) -> tuple[Operation, ...]:
    """What is to be done about some memories."""
    bonds = _bonds(rows.links)
    told = [fact for fact in rows.facts if fact.kind != PATTERN]
    return (
        *_orphans(rows, bonds),
        *_doubles(told, rows, bonds),
        *_contradictions(told, bonds, now),
        *_stale(told, bonds, ontology, now),
        *_patterns(told, rows, bonds),
    )


def _bonds(links: Iterable[Link]) -> _Bonds:
    bonds = _Bonds({}, set(), set(), set())
    for link in links:
        if link.rel == NEEDS_REVIEW:
            bonds.reviews.add((link.src, str(link.meta.get("why", ""))))
        elif link.rel == DERIVED_FROM:
            bonds.made.add((link.src, link.dst))
            bonds.patterned.update([link.dst] if link.meta.get(MADE) == PATTERN else [])
        if link.rel in ARGUMENTS:
            bonds.pairs.setdefault(frozenset((link.src, link.dst)), set()).add(link.rel)
    return bonds


def _by_worth(one: Fact, other: Fact) -> tuple[Fact, Fact]:
    """The memory that is trusted more, of equals the later, before the other."""
    first, second = sorted((one, other), key=lambda each: (source_of(each), happened(each), each.seq), reverse=True)
    return first, second


# The rules ------------------------------------------------------------------------------------------------------------


def _orphans(rows: Rows, bonds: _Bonds) -> Iterator[Operation]:
    """What reflection made of memories none of which is held any more is given up with them."""
    for fact in rows.facts:
        sources = {source for made, source in bonds.made if made == fact.id}
        if fact.author.startswith(AUTHOR) and sources and sources <= rows.gone:
            yield CloseTxTime(fact.id, ORPHANED)


def _doubles(facts: Sequence[Fact], rows: Rows, bonds: _Bonds) -> Iterator[Operation]:
    """Two that say the same may be one; what happened on two days happened twice."""
    for group in _grouped(facts, _saying):
        for one, other in combinations(group, 2):
            twice = one.kind in HAPPENING and not rows.days[one.id] & rows.days[other.id]
            if not twice and not bonds.between(one, other) and one.polarity == other.polarity:
                yield AddArgument(other.id, POTENTIALLY_SAME, one.id, PERHAPS)


def _grouped(facts: Iterable[Fact], key: Callable[[Fact], Hashable]) -> list[list[Fact]]:
    """The memories that have something in common, in order."""
    groups: dict[Hashable, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(key(fact), []).append(fact)
    return list(groups.values())


def _saying(fact: Fact) -> Hashable:
    """What a memory says, in whichever form its words are."""
    return fact.subject, fact.predicate, words(fact.object or fact.text)


def _contradictions(facts: Sequence[Fact], bonds: _Bonds, now: int) -> Iterator[Operation]:
    """Two that cannot both be true contradict each other, and somebody should look at the one that counts."""
    current = [fact for fact in facts if not ended(fact, now) and not tentative(fact, now)]
    for one, other in _suspects(current, bonds):
        known = bonds.between(one, other)
        if SUPERSEDES in known or not (CONTRADICTS in known or _cannot_both_be(one, other)):
            continue
        counts, against = _by_worth(one, other)
        if CONTRADICTS not in known:
            values = [against.object or against.text, counts.object or counts.text]
            meta = {"slot": slot_of(counts.predicate or ""), "values": values}
            yield AddArgument(counts.id, CONTRADICTS, against.id, meta=meta)
        if (counts.id, NEEDS_CONTRADICTION_REVIEW) not in bonds.reviews:
            bonds.reviews.add((counts.id, NEEDS_CONTRADICTION_REVIEW))
            yield ScheduleReview(counts.id, NEEDS_CONTRADICTION_REVIEW, now + DAY)


def _suspects(facts: Sequence[Fact], bonds: _Bonds) -> Iterator[tuple[Fact, Fact]]:
    """The pairs that may contradict each other: of one thing, of one slot with room for one, or known to."""
    single = [fact for fact in facts if fact.predicate and predicate(fact.predicate).semantics is not Semantics.MULTI]
    groups = (
        *_grouped(facts, lambda fact: (fact.subject, words(fact.object or fact.text))),
        *_grouped(single, lambda fact: (fact.subject, fact.predicate)),
    )
    pairs = {(one.id, other.id): (one, other) for group in groups for one, other in combinations(group, 2)}
    order = {fact.id: fact for fact in facts}
    for ends, rels in bonds.pairs.items():
        if CONTRADICTS in rels and len(ends) == 2 and ends <= order.keys():
            one, other = sorted((order[end] for end in ends), key=lambda fact: fact.seq)
            pairs[one.id, other.id] = (one, other)
    yield from pairs.values()


def _cannot_both_be(one: Fact, other: Fact) -> bool:
    if one.predicate is None or other.predicate is None or one.subject != other.subject:
        return False
    same = compare(one.object or one.text, other.object or other.text) is Likeness.SAME
    if other.predicate in OPPOSITES.get(one.predicate, ()):
        return same and one.polarity == other.polarity
    if slot_of(one.predicate) != slot_of(other.predicate):
        return False
    if one.polarity != other.polarity:
        return same
    single = predicate(one.predicate).semantics is not Semantics.MULTI and one.predicate == other.predicate
    return single and compare(one.object or "", other.object or "") is Likeness.OTHER


def _stale(facts: Sequence[Fact], bonds: _Bonds, ontology: Ontology, now: int) -> Iterator[Operation]:
    """What belongs to a session that has been over for longer than its half-life should be looked at."""
    for fact in facts:
        kind = ontology.get(fact.kind)
        if kind is None or not (kind.name in SESSION or kind.tier in PASSING):
            continue
        if kind.half_life is None or now - fact.updated_at <= kind.half_life * DAY:
            continue
        if (fact.id, STALE_SESSION) not in bonds.reviews:
            yield ScheduleReview(fact.id, STALE_SESSION, now + DAY)


def _patterns(facts: Sequence[Fact], rows: Rows, bonds: _Bonds) -> Iterator[Operation]:
    """What the user said happened on three different days or more is a pattern, derived from every time it was told."""
    for group in _grouped(filter(_happens, facts), _saying):
        days = sorted(set().union(*(rows.days[fact.id] for fact in group)))
        if len(days) < OFTEN or any(fact.id in bonds.patterned for fact in group):
            continue
        first = group[0]
        said = _deed(first)
        meta = {"slug": address.slug(said)[:64], "days": [each.isoformat() for each in days]}
        yield AssertClaim(
            f"Again and again: {said}", tuple(fact.id for fact in group), PATTERN, first.subject or "User", RECURS,
            first.object or said, confidence=min(1.0, 0.5 + 0.1 * len(days)), meta=meta,
        )  # fmt: skip


def _happens(fact: Fact) -> bool:
    """Whether a memory tells of something that can come back, by the user's own account."""
    doing = fact.kind in HAPPENING or fact.predicate == "habit"
    asked = fact.text.rstrip().endswith("?")
    return doing and not asked and fact.polarity == "asserted" and source_of(fact) is Trust.USER


def _deed(fact: Fact) -> str:
    """What was done, without when."""
    if fact.predicate is None or fact.object is None:
        return fact.text.strip().rstrip(".!")
    verb = fact.predicate.replace("_", " ")
    spelled = fact.object if fact.object.casefold().startswith(verb.split()[0].casefold()) else f"{verb} {fact.object}"
    return f"{fact.subject or 'User'} {spelled}"
