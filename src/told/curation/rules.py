"""Curate by rules: offline and deterministic.

A claim with a subject and a predicate is compared only with the facts of that subject in the
predicate's slot. Other claims are compared by text. Uncertain claims are kept beside existing
facts. A contradiction is recorded, never resolved by dropping both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from told.curation import write_policies
from told.curation.decisions import (
    NEGATED,
    SUPERSEDED,
    build_contradiction,
    decide_add,
    decide_delete,
    decide_none,
    decide_quarantine,
    decide_update,
    get_said_time,
    is_ended,
    is_late,
    is_tentative,
    is_trusted_over,
    make_historical,
    merge_meta,
)
from told.curation.lookup import CurationState, apply_source_trust, load_state
from told.curation.predicates import (
    OPPOSITES,
    SLOT_TEMPLATES,
    describe_value,
    get_sibling_predicates,
    get_slot,
    has_end_marker,
    is_eating_meat,
    is_implied_denial,
    is_loose,
    is_meatless,
    merge_facets,
    parse_facets,
    remove_facets,
)
from told.flow import Flow
from told.ingest.types import QUARANTINED, CurationResult, Decision, ExtractedClaim, ExtractionInput
from told.model.beliefs import trust_of_claim, trust_of_source
from told.model.entry import Claim
from told.model.fact import QUARANTINE, UNLISTED_KINDS, Fact
from told.model.kind import PREDICATES, Semantics, WriteMode, lookup_predicate
from told.ports import Store
from told.settings import Settings
from told.text.similarity import (
    WordingRelation,
    compare_wordings,
    extract_names,
    has_extra_words,
    is_same_text,
)

SAME = WordingRelation.SAME
MORE = WordingRelation.MORE
LESS = WordingRelation.LESS
OTHER = WordingRelation.OTHER
AGREEING: Final = (SAME, LESS)


@dataclass(frozen=True, slots=True)
class RuleCurator:
    """A curator that decides by rules."""

    store: Store
    settings: Settings = field(default_factory=Settings)

    def decide(
        self, inputs: ExtractionInput, claims: Sequence[ExtractedClaim]
    ) -> Flow[CurationResult]:
        """Return one or more decisions for every claim; later claims see earlier decisions."""
        state = yield from load_state(self.store, inputs, claims, self.settings)
        for extracted in claims:
            apply_claim(state, inputs, extracted)
        return CurationResult(tuple(state.decisions))


def apply_claim(state: CurationState, inputs: ExtractionInput, extracted: ExtractedClaim) -> None:
    """Decide about one claim and apply the decisions to the state."""
    claim = apply_source_trust(inputs, extracted)
    for decision in decide_claim(state, claim):
        state.apply_decision(replace(decision, turn=extracted.turn))
        for eviction in write_policies.evict_overflow(state, decision):
            state.apply_decision(replace(eviction, turn=extracted.turn))


def decide_claim(state: CurationState, claim: Claim) -> list[Decision]:
    """Return the decisions for a claim."""
    if claim.kind == QUARANTINE or claim.modality == QUARANTINED:
        return [_decide_by_text(state, claim)]
    if claim.subject is None or claim.predicate is None:
        return write_policies.decide_document(state, claim) or [_decide_by_text(state, claim)]
    exact = _find_exact_match(state, claim)
    if exact is not None:
        return [_decide_repeat(claim, exact, "it is held in these very words")]
    decisions = (
        _decide_denied(state, claim)
        if claim.polarity == NEGATED
        else _decide_asserted(state, claim)
    )
    return [_revive_expired(state, decision) for decision in decisions]


def _decide_repeat(claim: Claim, fact: Fact, reason: str) -> Decision:
    """Count a repeat as support, or update the fact if the new source is more trusted."""
    if trust_of_claim(claim) > trust_of_claim(fact):
        return decide_update(claim, fact, "a more trusted source confirms it")
    return decide_none(claim, fact, reason)


def _decide_by_text(state: CurationState, claim: Claim) -> Decision:
    """Decide about a claim by comparing its text only."""
    exact = state.find_same_text(claim)
    if exact is None:
        return decide_add(claim, "no memory says this")
    if exact.kind in UNLISTED_KINDS and claim.kind not in UNLISTED_KINDS:
        return decide_update(claim, exact, "what was evidence is a memory now")
    if exact.expires <= state.now and is_trusted_over(claim, exact):
        return decide_update(claim, exact, "it had expired and is said again")
    return decide_none(claim, exact, "it is held in these very words")


def _find_exact_match(state: CurationState, claim: Claim) -> Fact | None:
    """Return the fact with the same text, polarity and time, or None."""
    fact = state.find_same_text(claim)
    if (
        fact is None
        or fact.kind in UNLISTED_KINDS
        or fact.expires <= state.now
        or fact.polarity != claim.polarity
    ):
        return None
    return (
        fact
        if is_ended(fact, state.now) == is_ended(claim, state.now)
        and not _is_another_time(claim, fact)
        else None
    )


def _revive_expired(state: CurationState, decision: Decision) -> Decision:
    """Turn an ADD into an UPDATE of an expired memory with the same text."""
    expired = (
        state.find_same_text(decision.claim) if decision.event == "ADD" and decision.claim else None
    )
    if expired is None or expired.expires > state.now or expired.kind in UNLISTED_KINDS:
        return decision
    if decision.claim is not None and not is_trusted_over(decision.claim, expired):
        return decide_none(
            decision.claim, expired, "an expired memory of a more trusted source says it"
        )
    return replace(decision, event="UPDATE", fact=expired, why="it had expired and is said again")


# Asserted claims


def _decide_asserted(state: CurationState, claim: Claim) -> list[Decision]:
    """Decide about an asserted claim: a repeat, the past, a doubt, or a present statement."""
    now = state.now
    slot_facts = state.find_facts(claim.subject, get_sibling_predicates(claim.predicate or ""))
    is_past = is_ended(claim, now)
    same_period = [
        fact
        for fact in slot_facts
        if fact.polarity == "asserted" and is_ended(fact, now) == is_past
    ]
    comparisons = [(fact, *_compare_to_fact(state, claim, fact)) for fact in same_period]
    tentative_facts = [fact for fact in same_period if is_tentative(fact, now)]
    comparable = (
        comparisons
        if is_tentative(claim, now)
        else [row for row in comparisons if row[0] not in tentative_facts]
    )
    for fact, likeness, _ in comparable:
        if likeness is SAME:
            return [_decide_repeat(claim, fact, "a memory says it in other words")]
    for fact, likeness, _ in comparable:
        if likeness is LESS and trust_of_claim(claim) <= trust_of_claim(fact):
            return [decide_none(claim, fact, "a memory says more")]
    if is_past:
        return [
            _decide_past(state, claim, [fact for fact in slot_facts if fact not in same_period])
        ]
    if is_tentative(claim, now):
        return [decide_add(claim, "uncertain, so kept beside other memories")]
    confirmed = [
        fact
        for fact in tentative_facts
        if _compare_values(claim, fact) is SAME and not is_late(claim, fact, now)
    ]
    return [
        *_decide_present(
            state, claim, comparable, [*_find_opposites(state, claim, slot_facts), *confirmed]
        ),
        *_retire_contradicted(state, claim),
    ]


def _compare_to_fact(
    state: CurationState, claim: Claim, fact: Fact
) -> tuple[WordingRelation, Claim]:
    """Compare a claim with a fact of its slot and merge them where they are complementary.

    A fact of a less trusted source is never merged in.
    """
    slot = get_slot(claim.predicate or "")
    if slot in SLOT_TEMPLATES:
        likeness, merged = merge_facets(slot, claim, fact)
        merged = merged if trust_of_source(fact) >= trust_of_source(claim) else claim
    else:
        likeness, merged = _compare_values(claim, fact), claim
    if likeness is SAME and (
        has_extra_words(claim.text, fact.text)
        or extract_names(claim.text) - extract_names(f"{fact.text} {fact.object}")
    ):
        likeness = MORE
    kind = state.get_kind(claim.kind)
    if kind is not None and kind.write is WriteMode.APPEND:
        is_different = likeness is not SAME or _is_another_time(claim, fact)
        likeness = OTHER if is_different else SAME
    return likeness, merged


def _compare_values(claim: Claim, fact: Fact) -> WordingRelation:
    if claim.object is None or fact.object is None:
        return SAME if is_same_text(claim.text, fact.text) else OTHER
    is_loose_predicate = is_loose(claim.predicate or "")
    likeness = compare_wordings(claim.object, fact.object, loose=is_loose_predicate)
    return (
        likeness
        if likeness is not OTHER
        else compare_wordings(describe_value(claim), describe_value(fact), loose=is_loose_predicate)
    )


def _is_another_time(claim: Claim, fact: Fact) -> bool:
    """Return True if a claim names a bounded time that differs from the fact's."""
    return (
        claim.valid.precision != "open"
        and claim.valid != fact.valid_interval()
        and claim.valid.end is not None
    )


def _decide_past(state: CurationState, claim: Claim, present_facts: Sequence[Fact]) -> Decision:
    """Decide about a past claim: it ends the matching present fact or is added as history."""
    for fact in present_facts:
        likeness = _compare_values(claim, fact) if fact.polarity == "asserted" else OTHER
        if likeness is OTHER:
            continue
        can_end = not is_late(claim, fact, state.now) and is_trusted_over(claim, fact)
        if can_end and has_end_marker(claim.text):
            return decide_update(claim, fact, "it has ended")
        return decide_none(claim, fact, "a current memory says it too")
    return decide_add(claim, "about the past, so it replaces nothing")


def _find_opposites(state: CurationState, claim: Claim, slot_facts: Sequence[Fact]) -> list[Fact]:
    """Return facts that deny the claim or state its opposite."""
    denials = [fact for fact in slot_facts if fact.polarity == NEGATED]
    opposite = state.find_facts(claim.subject, OPPOSITES.get(claim.predicate or "", ()))
    rivals = [
        *denials,
        *(
            fact
            for fact in opposite
            if fact.polarity == "asserted" and not is_ended(fact, state.now)
        ),
    ]
    return [fact for fact in rivals if _compare_values(claim, fact) is SAME]


def _decide_present(
    state: CurationState,
    claim: Claim,
    comparable: Sequence[tuple[Fact, WordingRelation, Claim]],
    opposites: Sequence[Fact],
) -> list[Decision]:
    """Decide about a present claim that no fact states yet."""
    semantics = _get_semantics(state, claim)
    rivals = (
        list(comparable)
        if semantics is Semantics.FUNCTIONAL
        else [row for row in comparable if row[1] is MORE][:1]
    )
    rivals += [(fact, OTHER, claim) for fact in opposites]
    if newer := [fact for fact, _, _ in rivals if is_late(claim, fact, state.now)]:
        return [_decide_late(state, claim, newer[0], functional=semantics is Semantics.FUNCTIONAL)]
    if higher_trust := [fact for fact, _, _ in rivals if not is_trusted_over(claim, fact)]:
        return [_decide_outranked(state, claim, higher_trust[0])]
    if rivals:
        (fact, likeness, merged), *others = rivals
        why = "more specific than the memory" if likeness is MORE else "replaces the memory"
        final = replace(merged, meta=merge_meta(fact, claim)) if likeness is MORE else merged
        return [
            decide_update(final, fact, why),
            *(decide_delete(claim, other, SUPERSEDED) for other, _, _ in others),
        ]
    if semantics is Semantics.IMMUTABLE and comparable:
        return [_record_contradiction(state, claim, [fact for fact, _, _ in comparable])]
    return [decide_add(claim, "no memory says this")]


def _get_semantics(state: CurationState, claim: Claim) -> Semantics:
    """Return the semantics of the claim's predicate, or of the concept of that name."""
    kind = state.get_kind(claim.predicate or "")
    is_custom = claim.predicate not in PREDICATES and kind is not None
    return (
        kind.semantics
        if is_custom and kind is not None
        else lookup_predicate(claim.predicate or "").semantics
    )


def _decide_late(state: CurationState, claim: Claim, newer: Fact, *, functional: bool) -> Decision:
    """Add a late claim as history, unless a past fact already states it."""
    now = state.now
    for fact in state.find_facts(claim.subject, get_sibling_predicates(claim.predicate or "")):
        was_current = is_ended(fact, now) and fact.valid_interval().contains(
            get_said_time(claim, now)
        )
        if (
            was_current
            and fact.polarity == "asserted"
            and _compare_to_fact(state, claim, fact)[0] in AGREEING
        ):
            return decide_none(claim, fact, "a past memory says it")
    added = make_historical(claim, newer, now) if functional else claim
    return decide_add(added, "said before the memory, so it replaces nothing")


def _decide_outranked(state: CurationState, claim: Claim, higher_trust: Fact) -> Decision:
    quarantined = state.find_same_text(claim)
    if quarantined is not None and quarantined.kind == QUARANTINE:
        return decide_none(claim, quarantined, "it waits for a review already")
    return decide_quarantine(claim, higher_trust)


def _record_contradiction(
    state: CurationState, claim: Claim, current_facts: Sequence[Fact]
) -> Decision:
    """Keep both values of an immutable predicate and record the contradiction."""
    if higher_trust := [fact for fact in current_facts if not is_trusted_over(claim, fact)]:
        return _decide_outranked(state, claim, higher_trust[0])
    links = [build_contradiction(claim, fact) for fact in current_facts]
    return decide_add(
        claim,
        "the value cannot change, so both are kept and the contradiction is recorded",
        *links,
    )


def _retire_contradicted(state: CurationState, claim: Claim) -> list[Decision]:
    """Retract facts of other slots that the claim rules out: eating meat ends a vegetarian diet."""
    if claim.predicate == "diet" or not is_eating_meat(claim):
        return []
    diets = [
        fact
        for fact in state.find_facts(claim.subject, ("diet",))
        if is_meatless(fact) and not is_ended(fact, state.now)
    ]
    return [
        decide_delete(claim, fact, NEGATED) for fact in diets if _can_retire(state, claim, fact)
    ]


def _can_retire(state: CurationState, claim: Claim, fact: Fact) -> bool:
    return is_trusted_over(claim, fact) and not is_late(claim, fact, state.now)


# Denied claims


def _decide_denied(state: CurationState, claim: Claim) -> list[Decision]:
    """Retract the facts that a claim denies; without any, store the denial itself."""
    predicates = get_sibling_predicates(claim.predicate or "")
    slot_facts = state.find_facts(claim.subject, predicates)
    present_facts = [
        fact for fact in slot_facts if fact.polarity == "asserted" and not is_ended(fact, state.now)
    ]
    exact, wider = _find_denied_facts(state, claim, present_facts)
    if not exact and len(wider) > 1:
        if higher_trust := [fact for fact in wider if not is_trusted_over(claim, fact)]:
            return [_decide_outranked(state, claim, higher_trust[0])]
        links = [build_contradiction(claim, fact) for fact in wider]
        return [decide_add(claim, "it denies one of several memories without saying which", *links)]
    if targets := exact or wider:
        return [_retire_denied(state, claim, fact) for fact in targets]
    opposite = state.find_facts(claim.subject, OPPOSITES.get(claim.predicate or "", ()))
    agreeing = [*(fact for fact in slot_facts if fact.polarity == NEGATED), *opposite]
    for fact in agreeing:
        if _compare_values(claim, fact) in AGREEING:
            return [decide_none(claim, fact, "a memory denies it already")]
    if has_end_marker(claim.text) or is_tentative(claim, state.now):
        return [decide_none(claim, None, "nothing is held that it could end")]
    return [decide_add(claim, "no memory says this")]


def _find_denied_facts(
    state: CurationState, claim: Claim, present_facts: Sequence[Fact]
) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that match a denial exactly, and those that say more."""
    if claim.object is None:
        return (
            (list(present_facts), [])
            if _get_semantics(state, claim) is Semantics.FUNCTIONAL
            else ([], [])
        )
    exact, wider = [], []
    for fact in present_facts:
        likeness = _compare_denial(claim, fact)
        if likeness is SAME or is_implied_denial(claim, fact):
            exact.append(fact)
        elif likeness is LESS:
            wider.append(fact)
    return exact, wider


def _compare_denial(claim: Claim, fact: Fact) -> WordingRelation:
    slot = get_slot(claim.predicate or "")
    if slot not in SLOT_TEMPLATES:
        return _compare_values(claim, fact)
    denied, old = parse_facets(slot, claim), parse_facets(slot, fact)
    comparisons = [compare_wordings(denied[name], old[name]) for name in denied if name in old]
    return SAME if comparisons and all(likeness in AGREEING for likeness in comparisons) else OTHER


def _retire_denied(state: CurationState, claim: Claim, fact: Fact) -> Decision:
    """Retract a denied fact, or the denied part of it, if the claim is newer and trusted."""
    if is_late(claim, fact, state.now):
        return decide_none(claim, fact, "said before the memory")
    if not is_trusted_over(claim, fact):
        return _decide_outranked(state, claim, fact)
    slot = get_slot(claim.predicate or "")
    remaining = remove_facets(slot, claim, fact) if slot in SLOT_TEMPLATES else None
    return (
        decide_delete(claim, fact, NEGATED)
        if remaining is None
        else decide_update(remaining, fact, "a part of it was denied")
    )
