"""What a ledger holds of a closed world, how strong it is by now, and what has faded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from told.core.concepts import FADED, Belief, Rules, Shelf
from told.core.entry import Entry, Observed, Retracted
from told.core.fact import NEVER, Fact
from told.core.fading import Clocks, Saying, strength
from told.core.query import LATEST, AsOf
from told.core.salience import Clock
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger.clocks import clocks, said_of
from told.ports import Store
from told.settings import Settings


def turns(store: Store, scope: Scope) -> Flow[int]:
    """How many turns have passed where a scope is at home."""
    return (yield from call(store.ticked, scope, [LATEST]))[LATEST][0]


def held(
    store: Store, shelf: Shelf, rules: Rules, settings: Settings, concepts: Sequence[str] | None = None
) -> Flow[list[Belief]]:
    """What is held under some concepts, or all, oldest first; what has faded too."""
    names = [name for name in rules.ontology if concepts is None or name in concepts]
    found: list[Fact] = []
    for scope in shelf.scopes:
        found += yield from call(store.held, scope, store.mint.now(), kinds=names)
    return (yield from believed(store, shelf, rules, settings, sorted(found, key=lambda fact: fact.seq)))


def archived(
    store: Store, shelf: Shelf, rules: Rules, settings: Settings, concepts: Sequence[str] | None = None
) -> Flow[list[Belief]]:
    """What was given up because it had faded, and was neither held again nor forgotten since."""
    names = frozenset(name for name in rules.ontology if concepts is None or name in concepts)
    known = yield from call(store.lives, shelf.lasting)
    last = {fact.id: fact for fact in known if fact.kind in names and fact.scope in shelf.scopes}
    gone = [fact for fact in last.values() if fact.gone < NEVER]
    found: list[Fact] = []
    for fact in gone:
        entries = yield from call(store.thread, fact.scope.account, fact.id)
        found += [fact] if _why(entries) == FADED else []
    return (yield from believed(store, shelf, rules, settings, found))


def _why(entries: Sequence[Entry]) -> str | None:
    """Why a thread was last given up."""
    said = [entry.verb for entry in entries if isinstance(entry.verb, Retracted)]
    return said[-1].why if said else None


def believed(
    store: Store, shelf: Shelf, rules: Rules, settings: Settings, facts: Sequence[Fact]
) -> Flow[list[Belief]]:
    """Facts with how strong they are, what was last said for each, and when."""
    if not facts:
        return []
    account, now = shelf.lasting.account, AsOf(LATEST, store.mint.now())
    said = yield from said_of(store, account, facts)
    places = {each.seq for sayings in said.values() for each in sayings}
    counted = yield from clocks(store, shelf.lasting, now, settings, places=places)
    quotes = yield from _quotes(store, account, [said[fact.seq][-1].evidence or "" for fact in facts])
    return [_belief(fact, rules, counted, said[fact.seq], quotes, settings.turn_events) for fact in facts]


def _belief(
    fact: Fact, rules: Rules, counted: Clocks, said: Sequence[Saying], quotes: Mapping[str, str], turn_events: float
) -> Belief:
    """A fact as it is believed, by the clocks it fades by and by the number of its turns."""
    kind, last = rules.ontology[fact.kind], said[-1]
    found, curve = strength(fact, kind, counted, said), rules.curve(kind.name, kind.tier)
    first, latest = (round(counted.reading(Clock.TURNS, each.seq, 0) * turn_events) for each in (said[0], last))
    quote = quotes.get(last.evidence or "", "")
    return Belief(fact, replace(found, curve=curve), quote, last.seq, first, latest, last.at)


def _quotes(store: Store, account: str, ids: Sequence[str]) -> Flow[Mapping[str, str]]:
    """What evidence says, by its id; nothing for what was erased."""
    wanted = [each for each in dict.fromkeys(ids) if each]
    witnesses = (yield from call(store.witnesses, account, ids=wanted)) if wanted else []
    said: dict[str, str] = {}
    for witness in witnesses:
        for entry in (yield from call(store.scan, account, witness.seq - 1, 1)):
            if isinstance(entry.verb, Observed) and entry.verb.id == witness.id:
                said[witness.id] = entry.verb.evidence.content
    return said
