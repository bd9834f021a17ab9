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
from told.core.alike import WordingRelation, compare_wordings, stem_words
from told.core.belief import CONTRADICTS, SUPERSEDES
from told.core.fact import Fact, Link
from told.core.kind import Ontology, Semantics
from told.core.predicates import lookup_predicate
from told.core.salience import Tier
from told.core.trust import Trust, trust_of_source
from told.ledger.erase import DERIVED_FROM
from told.tend.apply import DERIVED_KIND_KEY, NEEDS_REVIEW
from told.tend.delta import (
    ARGUMENT_RELATIONS,
    NEEDS_CONTRADICTION_REVIEW,
    POTENTIALLY_SAME,
    STALE_SESSION,
    AddArgument,
    AssertClaim,
    CloseTxTime,
    Operation,
    ScheduleReview,
)
from told.tend.rows import ReflectionInput, get_event_time
from told.write.curate.slots import OPPOSITES, get_slot
from told.write.curate.verdicts import is_ended, is_tentative

AUTHOR: Final = "reflect"
PATTERN: Final = "pattern"
RECURS: Final = "recurs"
MIN_PATTERN_DAYS: Final = 3
"""On how many different days something happens that is a pattern."""

EVENT_KINDS: Final = frozenset({"event", "case", "memory"})
"""Kinds whose coming back tells something; that somebody still lives in Rome does not."""

DUPLICATE_STRENGTH: Final = 0.5
DAY_US: Final = 86_400_000_000
SESSION_KINDS: Final = frozenset({"session_summary", "session_archive"})
TRANSIENT_TIERS: Final = frozenset({Tier.SESSION, Tier.EPHEMERAL})
ORPHANED_REASON: Final = "what it was made of is held no more"


@dataclass(frozen=True, slots=True)
class _ExistingLinks:
    """What links say already."""

    relations: dict[frozenset[str], set[str]]
    reviews: set[tuple[str, str]]
    derivations: set[tuple[str, str]]
    pattern_sources: set[str]

    def relations_between(self, left: Fact, right: Fact) -> set[str]:
        """By which relations two memories are bound, either way."""
        return self.relations.get(frozenset((left.id, right.id)), set())


def reflect_by_rules(
    inputs: ReflectionInput, ontology: Ontology, now: int
) -> tuple[Operation, ...]:
    """What is to be done about some memories."""
    existing = _index_links(inputs.links)
    claims = [fact for fact in inputs.facts if fact.kind != PATTERN]
    return (
        *_find_orphans(inputs, existing),
        *_find_duplicates(claims, inputs, existing),
        *_find_contradictions(claims, existing, now),
        *_find_stale_sessions(claims, existing, ontology, now),
        *_find_patterns(claims, inputs, existing),
    )


def _index_links(links: Iterable[Link]) -> _ExistingLinks:
    existing = _ExistingLinks({}, set(), set(), set())
    for link in links:
        if link.rel == NEEDS_REVIEW:
            existing.reviews.add((link.src, str(link.meta.get("why", ""))))
        elif link.rel == DERIVED_FROM:
            existing.derivations.add((link.src, link.dst))
            existing.pattern_sources.update(
                [link.dst] if link.meta.get(DERIVED_KIND_KEY) == PATTERN else []
            )
        if link.rel in ARGUMENT_RELATIONS:
            existing.relations.setdefault(frozenset((link.src, link.dst)), set()).add(link.rel)
    return existing


def _sort_by_trust(left: Fact, right: Fact) -> tuple[Fact, Fact]:
    """The memory that is trusted more, of equals the later, before the other."""
    first, second = sorted(
        (left, right),
        key=lambda fact: (trust_of_source(fact), get_event_time(fact), fact.seq),
        reverse=True,
    )
    return first, second


# The rules ------------------------------------------------------------------------------------------------------------


def _find_orphans(inputs: ReflectionInput, existing: _ExistingLinks) -> Iterator[Operation]:
    """What reflection made of memories none of which is held any more is given up with them."""
    for fact in inputs.facts:
        sources = {source for derived, source in existing.derivations if derived == fact.id}
        if fact.author.startswith(AUTHOR) and sources and sources <= inputs.missing_sources:
            yield CloseTxTime(fact.id, ORPHANED_REASON)


def _find_duplicates(
    facts: Sequence[Fact], inputs: ReflectionInput, existing: _ExistingLinks
) -> Iterator[Operation]:
    """Two that say the same may be one; what happened on two days happened twice."""
    for group in _group_facts(facts, _make_statement_key):
        for left, right in combinations(group, 2):
            separate_events = (
                left.kind in EVENT_KINDS and not inputs.days[left.id] & inputs.days[right.id]
            )
            if (
                not separate_events
                and not existing.relations_between(left, right)
                and left.polarity == right.polarity
            ):
                yield AddArgument(right.id, POTENTIALLY_SAME, left.id, DUPLICATE_STRENGTH)


def _group_facts(facts: Iterable[Fact], key: Callable[[Fact], Hashable]) -> list[list[Fact]]:
    """The memories that have something in common, in order."""
    groups: dict[Hashable, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(key(fact), []).append(fact)
    return list(groups.values())


def _make_statement_key(fact: Fact) -> Hashable:
    """What a memory says, in whichever form its words are."""
    return fact.subject, fact.predicate, stem_words(fact.object or fact.text)


def _find_contradictions(
    facts: Sequence[Fact], existing: _ExistingLinks, now: int
) -> Iterator[Operation]:
    """Two that cannot both be true contradict each other, and somebody should look at the one that counts."""
    current = [fact for fact in facts if not is_ended(fact, now) and not is_tentative(fact, now)]
    for left, right in _find_suspect_pairs(current, existing):
        relations = existing.relations_between(left, right)
        if SUPERSEDES in relations or not (
            CONTRADICTS in relations or _are_incompatible(left, right)
        ):
            continue
        winner, loser = _sort_by_trust(left, right)
        if CONTRADICTS not in relations:
            values = [loser.object or loser.text, winner.object or winner.text]
            meta = {"slot": get_slot(winner.predicate or ""), "values": values}
            yield AddArgument(winner.id, CONTRADICTS, loser.id, meta=meta)
        if (winner.id, NEEDS_CONTRADICTION_REVIEW) not in existing.reviews:
            existing.reviews.add((winner.id, NEEDS_CONTRADICTION_REVIEW))
            yield ScheduleReview(winner.id, NEEDS_CONTRADICTION_REVIEW, now + DAY_US)


def _find_suspect_pairs(
    facts: Sequence[Fact], existing: _ExistingLinks
) -> Iterator[tuple[Fact, Fact]]:
    """The pairs that may contradict each other: of one thing, of one slot with room for one, or known to."""
    single = [
        fact
        for fact in facts
        if fact.predicate and lookup_predicate(fact.predicate).semantics is not Semantics.MULTI
    ]
    groups = (
        *_group_facts(facts, lambda fact: (fact.subject, stem_words(fact.object or fact.text))),
        *_group_facts(single, lambda fact: (fact.subject, fact.predicate)),
    )
    pairs = {
        (left.id, right.id): (left, right)
        for group in groups
        for left, right in combinations(group, 2)
    }
    facts_by_id = {fact.id: fact for fact in facts}
    for ends, rels in existing.relations.items():
        if CONTRADICTS in rels and len(ends) == 2 and ends <= facts_by_id.keys():
            left, right = sorted((facts_by_id[end] for end in ends), key=lambda fact: fact.seq)
            pairs[left.id, right.id] = (left, right)
    yield from pairs.values()


def _are_incompatible(left: Fact, right: Fact) -> bool:
    if left.predicate is None or right.predicate is None or left.subject != right.subject:
        return False
    is_same = (
        compare_wordings(left.object or left.text, right.object or right.text)
        is WordingRelation.SAME
    )
    if right.predicate in OPPOSITES.get(left.predicate, ()):
        return is_same and left.polarity == right.polarity
    if get_slot(left.predicate) != get_slot(right.predicate):
        return False
    if left.polarity != right.polarity:
        return is_same
    is_single_valued = (
        lookup_predicate(left.predicate).semantics is not Semantics.MULTI
        and left.predicate == right.predicate
    )
    return (
        is_single_valued
        and compare_wordings(left.object or "", right.object or "") is WordingRelation.OTHER
    )


def _find_stale_sessions(
    facts: Sequence[Fact], existing: _ExistingLinks, ontology: Ontology, now: int
) -> Iterator[Operation]:
    """What belongs to a session that has been over for longer than its half-life should be looked at."""
    for fact in facts:
        kind = ontology.get(fact.kind)
        if kind is None or not (kind.name in SESSION_KINDS or kind.tier in TRANSIENT_TIERS):
            continue
        if kind.half_life is None or now - fact.updated_at <= kind.half_life * DAY_US:
            continue
        if (fact.id, STALE_SESSION) not in existing.reviews:
            yield ScheduleReview(fact.id, STALE_SESSION, now + DAY_US)


def _find_patterns(
    facts: Sequence[Fact], inputs: ReflectionInput, existing: _ExistingLinks
) -> Iterator[Operation]:
    """What the user said happened on three different days or more is a pattern, derived from every time it was told."""
    for group in _group_facts(filter(_is_repeatable_event, facts), _make_statement_key):
        days = sorted(set().union(*(inputs.days[fact.id] for fact in group)))
        if len(days) < MIN_PATTERN_DAYS or any(
            fact.id in existing.pattern_sources for fact in group
        ):
            continue
        first = group[0]
        text = _describe_event(first)
        meta = {"slug": address.slugify(text)[:64], "days": [date_.isoformat() for date_ in days]}
        yield AssertClaim(
            f"Again and again: {text}",
            tuple(fact.id for fact in group),
            PATTERN,
            first.subject or "User",
            RECURS,
            first.object or text,
            confidence=min(1.0, 0.5 + 0.1 * len(days)),
            meta=meta,
        )


def _is_repeatable_event(fact: Fact) -> bool:
    """Whether a memory tells of something that can come back, by the user's own account."""
    is_event = fact.kind in EVENT_KINDS or fact.predicate == "habit"
    is_question = fact.text.rstrip().endswith("?")
    return (
        is_event
        and not is_question
        and fact.polarity == "asserted"
        and trust_of_source(fact) is Trust.USER
    )


def _describe_event(fact: Fact) -> str:
    """What was done, without when."""
    if fact.predicate is None or fact.object is None:
        return fact.text.strip().rstrip(".!")
    verb = fact.predicate.replace("_", " ")
    phrase = (
        fact.object
        if fact.object.casefold().startswith(verb.split()[0].casefold())
        else f"{verb} {fact.object}"
    )
    return f"{fact.subject or 'User'} {phrase}"
