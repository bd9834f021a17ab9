"""Load the memories that claims are compared with, and track pending decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from told.curation.predicates import build_lookup_pairs, is_eating_meat, is_explicit_denial
from told.flow import Flow, call
from told.ingest.types import Decision, ExtractedClaim, ExtractionInput, make_planned_id
from told.ledger.clocks import load_versions, read_fact_clocks
from told.model.beliefs import (
    INFERRED_MODALITIES,
    TRUST_KEY,
    safe_kind,
    trust_of_channel,
    trust_of_claim,
    trust_of_source,
)
from told.model.decay import ClockReadings, FactMention, group_repetitions, list_mentions
from told.model.entry import Claim
from told.model.fact import NEVER, UNLISTED_KINDS, Fact, Link
from told.model.kind import Kind, Ontology, WriteMode
from told.model.query import LATEST, AsOf
from told.model.scope import Scope
from told.ports import Store
from told.settings import Settings
from told.text.tokens import md5_hex


@dataclass(slots=True)
class CurationState:
    """The memories claims are compared with, updated as decisions are made.

    `clocks`, `repeats` and `earlier_versions` give the strength of memories for eviction.
    """

    scope: Scope
    now: int
    ontology: Ontology
    facts: list[Fact]
    facts_by_text: dict[str, Fact]
    clocks: ClockReadings
    repeats: Mapping[str, Sequence[Link]] = field(default_factory=dict)
    earlier_versions: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    changed_ids: set[str] = field(default_factory=set)
    """Ids of the memories added or changed by this write."""

    def find_facts(self, subject: str | None, predicates: Sequence[str]) -> list[Fact]:
        """Return the listed facts of a subject under some predicates, newest first."""
        return [
            fact
            for fact in reversed(self.facts)
            if fact.subject == subject
            and fact.predicate in predicates
            and fact.kind not in UNLISTED_KINDS
        ]

    def list_fact_mentions(self, fact: Fact) -> Sequence[FactMention]:
        """Return the mentions of a fact; a change in this write counts as the latest."""
        latest = replace(fact, seq=LATEST) if fact.id in self.changed_ids else fact
        return list_mentions(
            latest, self.repeats.get(fact.id, ()), self.earlier_versions.get(fact.id, ())
        )

    def get_kind(self, name: str) -> Kind | None:
        """Return the kind with this name, or None."""
        return self.ontology.get(name)

    def find_same_text(self, claim: Claim) -> Fact | None:
        """Return the memory with exactly this text, expired or not."""
        return self.facts_by_text.get(md5_hex(claim.text))

    def apply_decision(self, decision: Decision) -> None:
        """Record a decision and update the memories accordingly."""
        number = len(self.decisions)
        self.decisions.append(decision)
        old, claim = decision.fact, decision.claim
        if decision.event in ("UPDATE", "DELETE") and old is not None:
            self.facts = [fact for fact in self.facts if fact.id != old.id]
            self.facts_by_text = {
                text: fact for text, fact in self.facts_by_text.items() if fact.id != old.id
            }
        if decision.event in ("ADD", "UPDATE") and claim is not None:
            fact = build_fact(
                claim, self.scope, self.now, make_planned_id(number) if old is None else old.id, old
            )
            self.facts.append(fact)
            self.changed_ids.add(fact.id)
            self.facts_by_text[fact.md5] = fact


def build_fact(
    claim: Claim, scope: Scope, now: int, thread_id: str, earlier: Fact | None = None
) -> Fact:
    """Build the fact that a claim will become, as far as known before the commit."""
    start = claim.valid.start
    if start is None and claim.valid.end is None:
        start = now if claim.said_at is None else claim.said_at
    return Fact(
        thread_id,
        0 if earlier is None else earlier.seq,
        0,
        scope,
        claim.text,
        md5_hex(claim.text),
        claim.kind,
        created_at=now if earlier is None else earlier.created_at,
        updated_at=now,
        valid_from=-NEVER if start is None else start,
        valid_to=NEVER if claim.valid.end is None else claim.valid.end,
        precision=claim.valid.precision,
        expires=NEVER if claim.expires is None else claim.expires,
        said_at=claim.said_at,
        role=claim.role,
        actor=claim.actor,
        evidence=claim.evidence,
        source=claim.source,
        subject=claim.subject,
        predicate=claim.predicate,
        object=claim.object,
        polarity=claim.polarity,
        modality=claim.modality,
        confidence=claim.confidence,
        meta=claim.meta,
    )


def load_state(
    store: Store, inputs: ExtractionInput, claims: Sequence[ExtractedClaim], settings: Settings
) -> Flow[CurationState]:
    """Load the memories to compare claims with.

    This takes two store calls, or more if a kind has a cardinality limit.
    """
    texts = [md5_hex(extracted.claim.text) for extracted in claims]
    existing = yield from call(store.lookup_existing, inputs.scope, texts, (), None)
    current = yield from _load_current_facts(store, inputs, claims)
    state = CurationState(
        inputs.scope,
        inputs.now,
        inputs.ontology,
        list(current),
        dict(existing.facts),
        ClockReadings(inputs.now),
    )
    bounded_facts = [fact for fact in current if _is_bounded(inputs.ontology.get(fact.kind))]
    yield from _load_mentions(store, state, bounded_facts, settings)
    return state


def _load_current_facts(
    store: Store, inputs: ExtractionInput, claims: Sequence[ExtractedClaim]
) -> Flow[Sequence[Fact]]:
    """Load the current facts in the slots and kinds of the claims."""
    pairs = list(
        dict.fromkeys(
            pair
            for extracted in claims
            if _needs_comparison(inputs, extracted)
            for pair in build_lookup_pairs(extracted.claim)
        )
    )
    kinds = sorted(
        {
            extracted.claim.kind
            for extracted in claims
            if _needs_listing(inputs.ontology.get(extracted.claim.kind), extracted.claim)
        }
    )
    if not pairs and not kinds:
        return ()
    return (
        yield from call(store.current_facts, inputs.scope, inputs.now, slots=pairs, kinds=kinds)
    )


def _load_mentions(
    store: Store, state: CurationState, bounded_facts: Sequence[Fact], settings: Settings
) -> Flow[None]:
    """Load what the salience of facts of bounded kinds depends on."""
    account, ids = state.scope.account, [fact.id for fact in bounded_facts]
    links = (yield from call(store.find_links, account, ids)) if ids else ()
    versions_by_thread = yield from load_versions(store, account, bounded_facts)
    state.repeats = group_repetitions(links)
    state.earlier_versions = {
        fact.id: versions_by_thread.get(fact.id, [fact]) for fact in bounded_facts
    }
    mentions_by_seq = {
        fact.seq: list_mentions(
            fact, state.repeats.get(fact.id, ()), state.earlier_versions[fact.id]
        )
        for fact in bounded_facts
    }
    clocks = yield from read_fact_clocks(
        store, bounded_facts, mentions_by_seq, state.ontology, AsOf(LATEST, state.now), settings
    )
    state.clocks = clocks.get(state.scope.partition_key(), state.clocks)


def _is_bounded(kind: Kind | None) -> bool:
    """Return True if a kind has a cardinality limit."""
    return kind is not None and kind.cardinality is not None


def _needs_comparison(inputs: ExtractionInput, extracted: ExtractedClaim) -> bool:
    """Return True unless the claim's kind only appends, where repeats are found by text."""
    kind = inputs.ontology.get(extracted.claim.kind)
    is_additive = (
        kind is not None and kind.write is WriteMode.APPEND and extracted.claim.kind != "memory"
    )
    return (
        not is_additive or extracted.claim.polarity != "asserted" or is_eating_meat(extracted.claim)
    )


def _needs_listing(kind: Kind | None, claim: Claim) -> bool:
    """Return True if all memories of a kind are needed: it is bounded or holds documents."""
    if kind is None:
        return False
    return kind.cardinality is not None or (
        claim.predicate is None and kind.write is not WriteMode.APPEND
    )


def apply_source_trust(inputs: ExtractionInput, extracted: ExtractedClaim) -> Claim:
    """Return the claim with a kind its source may use, and a trust stamp if it needs one."""
    evidence = inputs.turns[extracted.turn].evidence
    claim, channel_kind = extracted.claim, evidence.sort
    if claim.role is None:
        claim = replace(claim, role=evidence.role, actor=claim.actor or evidence.name)
    if claim.modality in INFERRED_MODALITIES and is_explicit_denial(claim):
        claim = replace(claim, modality="stated")
    source = min(
        trust_of_source(claim, channel_kind), trust_of_channel(evidence.role, channel_kind)
    )
    kind = safe_kind(claim.kind, min(source, trust_of_claim(claim, channel_kind)))
    meta = (
        claim.meta
        if source >= trust_of_channel(claim.role)
        else {**claim.meta, TRUST_KEY: source.label}
    )
    if kind == claim.kind and meta is claim.meta:
        return claim
    return replace(claim, kind=kind, meta=meta)
