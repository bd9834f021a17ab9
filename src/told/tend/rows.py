"""What reflection looks at: a memory, what the same scope holds of the same subject and predicate, and what is linked.

A turn leads to the claims that were taken from it. What has no predicate is looked up by its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from told.core.alike import same_text
from told.core.entry import Observed
from told.core.fact import NEVER, TURN, UNLISTED, Fact, Link
from told.core.query import LATEST, AsOf, Find, Probe
from told.core.text import query_terms
from told.core.when import by_clock
from told.flow import Flow, call
from told.ledger.erase import DERIVED_FROM, SUPPORTS
from told.ports import Store
from told.write.curate.plan import AGAIN
from told.write.curate.slots import OPPOSITES, siblings

MOST: Final = 200
"""How many memories are looked at together."""

WITNESSES: Final = 64
"""How many times of saying something again are looked up."""

DEPTH: Final = 20
TERMS: Final = 64


@dataclass(frozen=True, slots=True)
class Rows:
    """Memories to reflect on, in ledger order, the links that touch them, and on which days each was said.

    `gone` are memories that something here was derived from and that are held no more.
    """

    facts: tuple[Fact, ...] = ()
    links: tuple[Link, ...] = ()
    days: Mapping[str, frozenset[date]] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()


def gather(store: Store, fact: Fact, now: int, zone: str | None = None) -> Flow[Rows]:
    """Everything to be reflected on together with a memory, in exactly its scope."""
    seeds = (yield from _claims(store, fact, now)) if fact.kind == TURN else [fact]
    found = {seed.id: seed for seed in seeds if seed.kind not in UNLISTED}
    for seed in seeds:
        around = yield from _alike(store, seed, now) if seed.predicate is None else _about(store, seed, now)
        found |= {each.id: each for each in around if each.kind not in UNLISTED}
    facts = tuple(sorted(found.values(), key=lambda each: each.seq))[-MOST:]
    if not facts:
        return Rows()
    links = [link for link in (yield from call(store.links, fact.scope.account, list(found))) if link.until == NEVER]
    days = yield from _days(store, facts, links, zone)
    return Rows(facts, tuple(links), days, (yield from _gone(store, fact.scope.account, facts, links)))


def _claims(store: Store, turn: Fact, now: int) -> Flow[list[Fact]]:
    """What is held of what was taken from a turn, where it was said."""
    if turn.evidence is None:
        return []
    taken = yield from call(store.taken, turn.scope.account, [turn.evidence])
    return [each for each in taken if _held(each, now) and each.scope == turn.scope and each.kind not in UNLISTED]


def _held(fact: Fact, now: int) -> bool:
    return fact.until == fact.gone == NEVER and fact.expires > now


def _about(store: Store, seed: Fact, now: int) -> Flow[Sequence[Fact]]:
    """What is held of the same subject under the same predicate, its siblings and its opposites."""
    if seed.subject is None or seed.predicate is None:
        return ()
    names = (*siblings(seed.predicate), *OPPOSITES.get(seed.predicate, ()))
    pairs = [(seed.subject, name) for name in dict.fromkeys(names)]
    return (yield from call(store.held, seed.scope, now, about=pairs))


def _alike(store: Store, seed: Fact, now: int) -> Flow[Sequence[Fact]]:
    """What is held in the same words."""
    terms = tuple(dict.fromkeys(query_terms(seed.text)))[:TERMS]
    if not terms:
        return ()
    ranked = yield from call(store.index.search, Probe(Find(seed.scope, AsOf(LATEST, now)), terms, depth=DEPTH))
    near = yield from call(store.versions, seed.scope.account, [seq for seq, _ in ranked.words])
    return [each for each in near.values() if each.scope == seed.scope and same_text(each.text, seed.text)]


def _gone(store: Store, account: str, facts: Sequence[Fact], links: Sequence[Link]) -> Flow[frozenset[str]]:
    """What these memories were derived from and that is held no more."""
    ours = {fact.id for fact in facts}
    sources = {link.dst for link in links if link.rel == DERIVED_FROM and link.src in ours} - ours
    missing: set[str] = set()
    for thread in sorted(sources):
        if (yield from call(store.fact, account, thread)) is None:
            missing.add(thread)
    return frozenset(missing)


# Days -----------------------------------------------------------------------------------------------------------------


def _days(
    store: Store, facts: Sequence[Fact], links: Sequence[Link], zone: str | None
) -> Flow[Mapping[str, frozenset[date]]]:
    """On which days each memory was said, the first time and again."""
    days = {fact.id: {day(happened(fact), zone)} for fact in facts}
    again = [link for link in links if link.rel == SUPPORTS and _said_again(link) and link.dst in days][-WITNESSES:]
    times = yield from _times(store, facts[0].scope.account, [link.src for link in again])
    for link in again:
        if link.src in times:
            days[link.dst].add(day(times[link.src], zone))
    return {thread: frozenset(each) for thread, each in days.items()}


def _said_again(link: Link) -> bool:
    """Whether a link is a witness as the user is one; what a tool repeats tells nothing of the user."""
    return dict(link.meta) == AGAIN


def _times(store: Store, account: str, evidence: Sequence[str]) -> Flow[Mapping[str, int]]:
    """When each piece of evidence was said."""
    times: dict[str, int] = {}
    if not evidence:
        return times
    for witness in (yield from call(store.witnesses, account, ids=evidence)):
        for entry in (yield from call(store.scan, account, witness.seq - 1, 1)):
            if isinstance(entry.verb, Observed):
                said = entry.verb.evidence.said_at
                times[witness.id] = entry.at if said is None else said
    return times


def happened(fact: Fact) -> int:
    """When what a memory speaks of was: the time it holds from where that was said, else when it was said."""
    if fact.precision != "open" and fact.valid_from > -NEVER:
        return fact.valid_from
    return fact.created_at if fact.said_at is None else fact.said_at


def day(at: int, zone: str | None) -> date:
    """The day of an instant."""
    return by_clock(at, zone).date()
