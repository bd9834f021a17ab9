"""What a ledger holds of a closed world, how strong it is by now, and what has faded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from told.core.concepts import FADED, ConceptBelief, ConceptRules, ConceptScopes
from told.core.entry import Entry, Observed, Retracted
from told.core.fact import NEVER, Fact
from told.core.fading import ClockReadings, FactMention, compute_strength
from told.core.query import LATEST, AsOf
from told.core.salience import DecayClock
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.clocks import load_mentions, read_clocks
from told.ports import Store
from told.settings import Settings


def count_turns(store: Store, scope: Scope) -> Flow[int]:
    """How many turns have passed where a scope is at home."""
    return (yield from call(store.tick_totals, scope, [LATEST]))[LATEST][0]


def load_beliefs(
    store: Store,
    scopes: ConceptScopes,
    rules: ConceptRules,
    settings: Settings,
    concepts: Sequence[str] | None = None,
) -> Flow[list[ConceptBelief]]:
    """What is held under some concepts, or all, oldest first; what has faded too."""
    names = [name for name in rules.ontology if concepts is None or name in concepts]
    facts: list[Fact] = []
    for scope in scopes.distinct:
        facts += yield from call(store.current_facts, scope, store.mint.now(), kinds=names)
    return (
        yield from build_beliefs(
            store, scopes, rules, settings, sorted(facts, key=lambda fact: fact.seq)
        )
    )


def load_archived_beliefs(
    store: Store,
    scopes: ConceptScopes,
    rules: ConceptRules,
    settings: Settings,
    concepts: Sequence[str] | None = None,
) -> Flow[list[ConceptBelief]]:
    """What was given up because it had faded, and was neither held again nor forgotten since."""
    names = frozenset(name for name in rules.ontology if concepts is None or name in concepts)
    versions = yield from call(store.all_versions, scopes.lasting)
    last_versions = {
        fact.id: fact for fact in versions if fact.kind in names and fact.scope in scopes.distinct
    }
    retracted = [fact for fact in last_versions.values() if fact.gone < NEVER]
    faded: list[Fact] = []
    for fact in retracted:
        entries = yield from call(store.thread_entries, fact.scope.account, fact.id)
        faded += [fact] if _last_retraction_reason(entries) == FADED else []
    return (yield from build_beliefs(store, scopes, rules, settings, faded))


def _last_retraction_reason(entries: Sequence[Entry]) -> str | None:
    """Why a thread was last given up."""
    retractions = [entry.verb for entry in entries if isinstance(entry.verb, Retracted)]
    return retractions[-1].why if retractions else None


def build_beliefs(
    store: Store,
    scopes: ConceptScopes,
    rules: ConceptRules,
    settings: Settings,
    facts: Sequence[Fact],
) -> Flow[list[ConceptBelief]]:
    """Facts with how strong they are, what was last said for each, and when."""
    if not facts:
        return []
    account, now = scopes.lasting.account, AsOf(LATEST, store.mint.now())
    mentions = yield from load_mentions(store, account, facts)
    positions = {mention.seq for fact_mentions in mentions.values() for mention in fact_mentions}
    clock_readings = yield from read_clocks(
        store, scopes.lasting, now, settings, positions=positions
    )
    quotes = yield from _load_quotes(
        store, account, [mentions[fact.seq][-1].evidence or "" for fact in facts]
    )
    return [
        _build_belief(fact, rules, clock_readings, mentions[fact.seq], quotes, settings.turn_events)
        for fact in facts
    ]


def _build_belief(
    fact: Fact,
    rules: ConceptRules,
    clock_readings: ClockReadings,
    mentions: Sequence[FactMention],
    quotes: Mapping[str, str],
    turn_events: float,
) -> ConceptBelief:
    """A fact as it is believed, by the clocks it fades by and by the number of its turns."""
    kind, last = rules.ontology[fact.kind], mentions[-1]
    fact_strength, curve = (
        compute_strength(fact, kind, clock_readings, mentions),
        rules.build_curve(kind.name, kind.tier),
    )
    first_turn, last_turn = (
        round(clock_readings.reading_at(DecayClock.TURNS, mention.seq, 0) * turn_events)
        for mention in (mentions[0], last)
    )
    quote = quotes.get(last.evidence or "", "")
    return ConceptBelief(
        fact, replace(fact_strength, curve=curve), quote, last.seq, first_turn, last_turn, last.at
    )


def _load_quotes(store: Store, account: str, ids: Sequence[str]) -> Flow[Mapping[str, str]]:
    """What evidence says, by its id; nothing for what was erased."""
    evidence_ids = [evidence_id for evidence_id in dict.fromkeys(ids) if evidence_id]
    evidence_rows = (
        (yield from call(store.evidence_rows, account, ids=evidence_ids)) if evidence_ids else []
    )
    quotes: dict[str, str] = {}
    for evidence_row in evidence_rows:
        for entry in (yield from call(store.scan_entries, account, evidence_row.seq - 1, 1)):
            if isinstance(entry.verb, Observed) and entry.verb.id == evidence_row.id:
                quotes[evidence_row.id] = entry.verb.evidence.content
    return quotes
