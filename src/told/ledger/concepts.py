"""What a ledger holds of a closed world, how strong it is by now, and what has faded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from told.core.concepts import FADED, Belief, Rules, Shelf
from told.core.entry import Entry, Observed, Retracted
from told.core.fact import NEVER, Fact, Link
from told.core.fading import Clocks, said_again, strength
from told.core.ids import made_at
from told.core.salience import Clock
from told.flow import Flow, call
from told.ports import Store
from told.settings import Settings

EVERY: Final = 1 << 40
"""More turns than any conversation has: a turn is told by its number, so all of them are counted."""


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
    ticks, now = (yield from call(store.ticks, shelf.lasting, None, EVERY)), store.mint.now()
    clocks = Clocks.of(ticks, now, turn_events=settings.turn_events, turn_tokens=settings.turn_tokens)
    turns = Clocks.of(ticks, now)
    links = yield from call(store.links, shelf.lasting.account, [fact.id for fact in facts])
    again = said_again(links)
    latest = [_latest(fact, again) for fact in facts]
    quotes = yield from _quotes(store, shelf.lasting.account, latest)
    return [
        _belief(fact, rules, (clocks, turns), again.get(fact.id, []), quotes.get(evidence, ""))
        for fact, evidence in zip(facts, latest, strict=True)
    ]


def _latest(fact: Fact, again: Mapping[str, Sequence[Link]]) -> str:
    """The evidence that was last given for a fact."""
    later = [link for link in again.get(fact.id, ()) if link.seq > fact.seq]
    return max(later, key=lambda link: link.seq).src if later else fact.evidence or ""


def _belief(
    fact: Fact, rules: Rules, counted: tuple[Clocks, Clocks], again: Sequence[Link], quote: str
) -> Belief:
    """A fact as it is believed, by the clocks it fades by and by the number of its turns."""
    clocks, numbers = counted
    later = [link for link in again if link.seq > fact.seq]
    kind = rules.ontology[fact.kind]
    found, curve = strength(fact, kind, clocks, later), rules.curve(kind.name, kind.tier)
    place = max((link.seq for link in later), default=fact.seq)
    last_at = max((made_at(link.src) or 0 for link in later), default=fact.updated_at)
    first, last = (int(numbers.reading(Clock.TURNS, seq, 0)) for seq in (fact.seq, place))
    return Belief(fact, replace(found, curve=curve), quote, place, first, last, last_at)


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
