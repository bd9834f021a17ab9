"""Reflect on related memories, by rules and with a model.

The rules report possible duplicates, contradictions to review, stale session memories, and events
that recur on three days as patterns. Existing links are not repeated, so reflecting again has no
effect.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import combinations
from typing import Any, Final

from told.curation.decisions import REPEAT_META, is_ended, is_tentative
from told.curation.llm import is_grounded
from told.curation.predicates import OPPOSITES, get_sibling_predicates, get_slot
from told.errors import InvalidInput
from told.extraction.prompting import ask_llm, fence_as_data, load_prompt
from told.flow import Flow, call
from told.ledger.erase import DERIVED_FROM, SUPPORTS
from told.maintenance import deltas
from told.maintenance.delta_apply import DERIVED_KIND_KEY, NEEDS_REVIEW, DeltaAuthor, find_objection
from told.maintenance.deltas import (
    ARGUMENT_RELATIONS,
    ID_FIELDS,
    NEEDS_CONTRADICTION_REVIEW,
    POTENTIALLY_SAME,
    REBUTS,
    STALE_SESSION,
    AddArgument,
    AddIdentityEdge,
    AssertClaim,
    AssertFrame,
    CloseTxTime,
    DeltaClock,
    LinkDerivedArtifact,
    Operation,
    RefusedOperation,
    ScheduleReview,
    UpdateConfidence,
)
from told.model import kind
from told.model.beliefs import (
    CONTRADICTS,
    SUPERSEDES,
    Trust,
    may_replace,
    trust_of_claim,
    trust_of_source,
)
from told.model.entry import Observed
from told.model.fact import NEVER, TURN, UNLISTED_KINDS, Fact, Link
from told.model.kind import Ontology, Semantics, lookup_predicate
from told.model.query import LATEST, AsOf, FactQuery, IndexQuery
from told.model.salience import Tier
from told.ports import LLM, Store, Usage
from told.text.dates import format_iso, to_zone
from told.text.similarity import (
    WordingRelation,
    compare_wordings,
    extract_names,
    is_same_text,
    stem_words,
)
from told.text.tokens import extract_query_terms, format_value, parse_lenient_json

MAX_FACTS: Final = 200
"""The maximum number of memories to reflect on together."""

MAX_REPEATS: Final = 64
"""The maximum number of repetitions to look up."""

SEARCH_DEPTH: Final = 20
MAX_TERMS: Final = 64


@dataclass(frozen=True, slots=True)
class ReflectionInput:
    """Memories in ledger order, their links, and the days each was stated.

    `missing_sources` are sources of these memories that are no longer current.
    """

    facts: tuple[Fact, ...] = ()
    links: tuple[Link, ...] = ()
    days: Mapping[str, frozenset[date]] = field(default_factory=dict)
    missing_sources: frozenset[str] = frozenset()


def load_reflection_input(
    store: Store, fact: Fact, now: int, zone: str | None = None
) -> Flow[ReflectionInput]:
    """Load a memory and everything in exactly its scope to reflect on with it."""
    seeds = (yield from _load_claims(store, fact, now)) if fact.kind == TURN else [fact]
    facts_by_id = {seed.id: seed for seed in seeds if seed.kind not in UNLISTED_KINDS}
    for seed in seeds:
        related = (
            yield from _load_same_text(store, seed, now)
            if seed.predicate is None
            else _load_same_predicate(store, seed, now)
        )
        facts_by_id |= {
            candidate.id: candidate for candidate in related if candidate.kind not in UNLISTED_KINDS
        }
    facts = tuple(sorted(facts_by_id.values(), key=lambda candidate: candidate.seq))[-MAX_FACTS:]
    if not facts:
        return ReflectionInput()
    links = [
        link
        for link in (yield from call(store.find_links, fact.scope.account, list(facts_by_id)))
        if link.until == NEVER
    ]
    days = yield from _load_days(store, facts, links, zone)
    return ReflectionInput(
        facts,
        tuple(links),
        days,
        (yield from _find_missing_sources(store, fact.scope.account, facts, links)),
    )


def _load_claims(store: Store, turn: Fact, now: int) -> Flow[list[Fact]]:
    """Return the current claims extracted from a turn in its scope."""
    if turn.evidence is None:
        return []
    versions = yield from call(store.find_versions, turn.scope.account, evidence=[turn.evidence])
    return [
        candidate
        for candidate in versions
        if _is_current(candidate, now)
        and candidate.scope == turn.scope
        and candidate.kind not in UNLISTED_KINDS
    ]


def _is_current(fact: Fact, now: int) -> bool:
    return fact.until == fact.gone == NEVER and fact.expires > now


def _load_same_predicate(store: Store, seed: Fact, now: int) -> Flow[Sequence[Fact]]:
    """Return current facts of the subject with the same, sibling or opposite predicates."""
    if seed.subject is None or seed.predicate is None:
        return ()
    predicates = (*get_sibling_predicates(seed.predicate), *OPPOSITES.get(seed.predicate, ()))
    pairs = [(seed.subject, name) for name in dict.fromkeys(predicates)]
    return (yield from call(store.current_facts, seed.scope, now, slots=pairs))


def _load_same_text(store: Store, seed: Fact, now: int) -> Flow[Sequence[Fact]]:
    """Return current facts with the same text."""
    terms = tuple(dict.fromkeys(extract_query_terms(seed.text)))[:MAX_TERMS]
    if not terms:
        return ()
    index_result = yield from call(
        store.index.search,
        IndexQuery(FactQuery(seed.scope, AsOf(LATEST, now)), terms, depth=SEARCH_DEPTH),
    )
    nearby = yield from call(
        store.find_versions, seed.scope.account, seqs=[seq for seq, _ in index_result.by_terms]
    )
    return [
        candidate
        for candidate in nearby
        if candidate.scope == seed.scope and is_same_text(candidate.text, seed.text)
    ]


def _find_missing_sources(
    store: Store, account: str, facts: Sequence[Fact], links: Sequence[Link]
) -> Flow[frozenset[str]]:
    """Return the sources of these memories that are no longer current."""
    fact_ids = {fact.id for fact in facts}
    sources = {
        link.dst for link in links if link.rel == DERIVED_FROM and link.src in fact_ids
    } - fact_ids
    missing: set[str] = set()
    for thread in sorted(sources):
        if (yield from call(store.get_fact, account, thread)) is None:
            missing.add(thread)
    return frozenset(missing)


# Days


def _load_days(
    store: Store, facts: Sequence[Fact], links: Sequence[Link], zone: str | None
) -> Flow[Mapping[str, frozenset[date]]]:
    """Return the days on which each memory was stated or repeated."""
    days = {fact.id: {to_local_day(get_event_time(fact), zone)} for fact in facts}
    repeats = [
        link for link in links if link.rel == SUPPORTS and _is_repeat(link) and link.dst in days
    ][-MAX_REPEATS:]
    times = yield from _load_said_times(
        store, facts[0].scope.account, [link.src for link in repeats]
    )
    for link in repeats:
        if link.src in times:
            days[link.dst].add(to_local_day(times[link.src], zone))
    return {thread: frozenset(dates) for thread, dates in days.items()}


def _is_repeat(link: Link) -> bool:
    """Return whether a link records a repetition by the user, not by a tool."""
    return dict(link.meta) == REPEAT_META


def _load_said_times(
    store: Store, account: str, evidence: Sequence[str]
) -> Flow[Mapping[str, int]]:
    """Return when each piece of evidence was said."""
    times: dict[str, int] = {}
    if not evidence:
        return times
    for evidence_row in (yield from call(store.evidence_rows, account, ids=evidence)):
        for entry in (yield from call(store.scan_entries, account, evidence_row.seq - 1, 1)):
            if isinstance(entry.verb, Observed):
                said_at = entry.verb.evidence.said_at
                times[evidence_row.id] = entry.at if said_at is None else said_at
    return times


def get_event_time(fact: Fact) -> int:
    """Return when a fact happened: its explicit valid time, or else when it was said."""
    if fact.precision != "open" and fact.valid_from > -NEVER:
        return fact.valid_from
    return fact.created_at if fact.said_at is None else fact.said_at


def to_local_day(at: int, zone: str | None) -> date:
    """Return the local date of an instant."""
    return to_zone(at, zone).date()


AUTHOR: Final = "reflect"
PATTERN: Final = "pattern"
RECURS: Final = "recurs"
MIN_PATTERN_DAYS: Final = 3
"""The number of different days that make an event a pattern."""

EVENT_KINDS: Final = frozenset({"event", "case", "memory"})
"""The kinds whose repetition is informative."""

DUPLICATE_STRENGTH: Final = 0.5
DAY_US: Final = 86_400_000_000
SESSION_KINDS: Final = frozenset({"session_summary", "session_archive"})
TRANSIENT_TIERS: Final = frozenset({Tier.SESSION, Tier.EPHEMERAL})
ORPHANED_REASON: Final = "what it was made of is held no more"


@dataclass(frozen=True, slots=True)
class _ExistingLinks:
    """The relations, reviews and derivations that are already recorded."""

    relations: dict[frozenset[str], set[str]]
    reviews: set[tuple[str, str]]
    derivations: set[tuple[str, str]]
    pattern_sources: set[str]

    def relations_between(self, left: Fact, right: Fact) -> set[str]:
        """Return the relations between two memories in either direction."""
        return self.relations.get(frozenset((left.id, right.id)), set())


def reflect_by_rules(
    inputs: ReflectionInput, ontology: Ontology, now: int
) -> tuple[Operation, ...]:
    """Return the operations that the rules propose."""
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
    """Return the more trusted memory first, or the later one if they are equal."""
    first, second = sorted(
        (left, right),
        key=lambda fact: (trust_of_source(fact), get_event_time(fact), fact.seq),
        reverse=True,
    )
    return first, second


# Rules


def _find_orphans(inputs: ReflectionInput, existing: _ExistingLinks) -> Iterator[Operation]:
    """Retract reflections whose sources are all gone."""
    for fact in inputs.facts:
        sources = {source for derived, source in existing.derivations if derived == fact.id}
        if fact.author.startswith(AUTHOR) and sources and sources <= inputs.missing_sources:
            yield CloseTxTime(fact.id, ORPHANED_REASON)


def _find_duplicates(
    facts: Sequence[Fact], inputs: ReflectionInput, existing: _ExistingLinks
) -> Iterator[Operation]:
    """Link memories that say the same, unless they are events of different days."""
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
    """Group memories by a key, in order."""
    groups: dict[Hashable, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(key(fact), []).append(fact)
    return list(groups.values())


def _make_statement_key(fact: Fact) -> Hashable:
    """Return a key for the statement of a memory, independent of word forms."""
    return fact.subject, fact.predicate, stem_words(fact.object or fact.text)


def _find_contradictions(
    facts: Sequence[Fact], existing: _ExistingLinks, now: int
) -> Iterator[Operation]:
    """Link incompatible memories and schedule a review of the preferred one."""
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
    """Yield pairs that may contradict: same object, same single-valued slot, or known to."""
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
    """Return whether two facts of one subject cannot both hold."""
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
    """Schedule reviews of session memories older than their half-life."""
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
    """Assert a pattern for each user event that occurred on at least three days."""
    for group in _group_facts(filter(_is_repeatable_event, facts), _make_statement_key):
        days = sorted(set().union(*(inputs.days[fact.id] for fact in group)))
        if len(days) < MIN_PATTERN_DAYS or any(
            fact.id in existing.pattern_sources for fact in group
        ):
            continue
        first = group[0]
        text = _describe_event(first)
        meta = {"slug": kind.slugify(text)[:64], "days": [date_.isoformat() for date_ in days]}
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
    """Return whether a memory is an event that the user asserted."""
    is_event = fact.kind in EVENT_KINDS or fact.predicate == "habit"
    is_question = fact.text.rstrip().endswith("?")
    return (
        is_event
        and not is_question
        and fact.polarity == "asserted"
        and trust_of_source(fact) is Trust.USER
    )


def _describe_event(fact: Fact) -> str:
    """Describe an event without its time."""
    if fact.predicate is None or fact.object is None:
        return fact.text.strip().rstrip(".!")
    verb = fact.predicate.replace("_", " ")
    phrase = (
        fact.object
        if fact.object.casefold().startswith(verb.split()[0].casefold())
        else f"{verb} {fact.object}"
    )
    return f"{fact.subject or 'User'} {phrase}"


MAX_IDENTITY_CONFIDENCE: Final = 0.9
"""The maximum confidence of identity edges that a model proposes."""

PROPOSAL_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["operations"],
    "properties": {
        "operations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["op"],
                "properties": {"op": {"type": "string", "enum": list(deltas.OPERATIONS)}},
            },
        }
    },
}


@dataclass(frozen=True, slots=True)
class ReflectionProposal:
    """The accepted and rejected operations of a model, and its reply if unreadable."""

    operations: tuple[Operation, ...] = ()
    refused: tuple[RefusedOperation, ...] = ()
    unreadable_reply: str = ""
    usage: Usage = field(default_factory=Usage)


def propose_operations(
    llm: LLM, facts: Sequence[Fact], now: int, zone: str | None = None
) -> Flow[ReflectionProposal]:
    """Ask a model for operations; raise `LLMError` if it is not available."""
    reply, usage = yield from ask_llm(
        llm, load_prompt("reflect"), format_memories(facts), PROPOSAL_SCHEMA
    )
    author = DeltaAuthor(f"{AUTHOR}:{llm.model}", Trust.INFERENCE)
    return replace(check_proposal(str(reply), facts, author, DeltaClock(now, zone)), usage=usage)


def format_memories(facts: Sequence[Fact]) -> str:
    """Format memories as fenced data lines with number, day, trust and text."""
    return fence_as_data(
        "memories",
        (
            f"{number}. [{format_iso(fact.updated_at)[:10]}] [{trust_of_source(fact).label}] "
            f"{' '.join(fact.text.split())}"
            for number, fact in enumerate(facts, 1)
        ),
    )


def check_proposal(
    reply: str, facts: Sequence[Fact], author: DeltaAuthor, clock: DeltaClock
) -> ReflectionProposal:
    """Validate each operation of a reply and return the accepted and rejected ones."""
    try:
        data = parse_lenient_json(reply)
        items = deltas.split_operations(data)
    except InvalidInput:
        return ReflectionProposal(unreadable_reply=reply)
    parsed = deltas.parse_delta([_resolve_numbers(item, facts) for item in items], clock)
    if (
        parsed.refused
        and not parsed.operations
        and not any(isinstance(item, Mapping) and "op" in item for item in items)
    ):
        return ReflectionProposal(refused=parsed.refused, unreadable_reply=reply)
    facts_by_id = {fact.id: fact for fact in facts}
    accepted: list[Operation] = []
    refused = list(parsed.refused)
    for number, operation in parsed.operations.items():
        if reason := _find_proposal_objection(operation, facts_by_id, author):
            refused.append(RefusedOperation(number, deltas.get_operation_name(operation), reason))
        else:
            accepted.append(_limit_operation(operation, facts_by_id, author, clock.now))
    return ReflectionProposal(tuple(accepted), tuple(refused))


def _resolve_numbers(item: Any, facts: Sequence[Fact]) -> Any:
    """Replace memory numbers in an operation with ids."""
    if not isinstance(item, Mapping):
        return item
    return {
        name: _resolve_ids(value, facts) if name in ID_FIELDS else value
        for name, value in item.items()
    }


def _resolve_ids(value: Any, facts: Sequence[Fact]) -> Any:
    if isinstance(value, list):
        return [_resolve_ids(item, facts) for item in value]
    digits = str(value).strip().lstrip("#")
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else 0
    return (
        facts[number - 1].id
        if 0 < number <= len(facts)
        else f"the memory {format_value(value)}, which was not shown"
    )


def _find_proposal_objection(
    operation: Operation, facts: Mapping[str, Fact], author: DeltaAuthor
) -> str:
    """Return why a proposed operation is rejected, or an empty string."""
    unknown = [thread for thread in deltas.list_memory_ids(operation) if thread not in facts]
    if unknown:
        return f"it names {unknown[0]}"
    match operation:
        case UpdateConfidence(lane=lane) if lane != "machine":
            return f"a model may not set the {lane} lane"
        case AddArgument(rel=rel, dst=dst) if rel == SUPERSEDES and not may_replace(
            author.trust, trust_of_claim(facts[dst])
        ):
            return "a model may not supersede a more trusted memory"
        case LinkDerivedArtifact(artifact=artifact) if not facts[artifact].author.startswith(
            AUTHOR
        ):
            return "only a memory created by reflection can be a derived artifact"
        case AssertClaim(text=text, sources=sources, subject=subject, object=value):
            claim_text = " ".join(part for part in (text, subject, value) if part)
            return _find_grounding_error(claim_text, sources, facts) or find_objection(
                operation, facts, author
            )
        case AssertFrame(text=text, sources=sources, roles=roles):
            return _find_grounding_error(
                " ".join((text, *roles.values())), sources, facts
            ) or find_objection(operation, facts, author)
        case _:
            return find_objection(operation, facts, author)


def _find_grounding_error(text: str, sources: Sequence[str], facts: Mapping[str, Fact]) -> str:
    """Return why a text is not grounded in its sources, or an empty string."""
    source_texts = [f"{facts[source].text} {facts[source].subject or ''}" for source in sources]
    if not source_texts:
        return "it has no source"
    new_names = extract_names(f". {text}") - frozenset().union(
        *(extract_names(f". {source_text}") for source_text in source_texts)
    )
    return (
        ""
        if is_grounded(text, *source_texts) and not new_names
        else "it is not grounded in its sources"
    )


def _limit_operation(
    operation: Operation, facts: Mapping[str, Fact], author: DeltaAuthor, now: int
) -> Operation:
    """Limit the confidence and urgency of a proposed operation.

    A contradiction hides one side on read, so against a more trusted memory it becomes a rebuttal.
    """
    match operation:
        case ScheduleReview(due=due):
            return replace(operation, due=max(due or 0, now + DAY_US))
        case AddIdentityEdge(confidence=confidence):
            return replace(
                operation, confidence=min(confidence, MAX_IDENTITY_CONFIDENCE), method="model"
            )
        case AddArgument(src=src, rel=rel, dst=dst) if rel == CONTRADICTS:
            trust = max(trust_of_claim(facts[src]), trust_of_claim(facts[dst]))
            return operation if may_replace(author.trust, trust) else replace(operation, rel=REBUTS)
        case _:
            return operation
