"""From decisions to ledger entries: drafts, the guards that keep two writers from both winning, and the events to tell.

The drafts name evidence by id, so they can be committed together with it in one transaction, or after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from told.core.entry import Asserted, Claim, Draft, Linked, Retracted, Verb
from told.core.fact import UNLISTED, Fact
from told.core.ids import Mint
from told.core.kind import Ontology
from told.core.query import Event
from told.core.scope import Scope
from told.core.text import md5
from told.core.trust import STAMP, Trust, trust_of
from told.ledger.erase import SUPPORTS
from told.ports import Guard, NoFact, NoMore, NoNews, ThreadAt
from told.write.curate.slots import about
from told.write.shape import SELF, Decision, made

AGAIN: Final = {"said": "again"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where decisions are carried out: a scope, its author, the position and the time they were made at.

    `bounded` are the kinds of which only so many are held.
    """

    scope: Scope
    author: str
    seen: int
    now: int
    mint: Mint
    bounded: frozenset[str] = frozenset()


def bounded(ontology: Ontology) -> frozenset[str]:
    """The kinds of which only so many are held."""
    return frozenset(name for name, kind in ontology.items() if kind.cardinality is not None)


@dataclass(slots=True)
class Written:
    """What decisions come to: drafts with their guards, an event for each, and the thread each one is about."""

    drafts: list[Draft] = field(default_factory=list)
    guards: dict[Guard, None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    threads: list[str | None] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """The thread each decision is about, by the name that later decisions have for it."""
    attested: set[tuple[str | None, str]] = field(default_factory=set)
    """Which evidence already speaks for which thread."""


def plan_claims(
    place: Place, decisions: Sequence[Decision], evidence: Sequence[str], fresh: Sequence[bool] | None = None
) -> Written:
    """The entries that carry decisions out.

    `evidence` is the id of each turn's evidence; `fresh` says which of it was never seen before (all of it, unless
    said): what was seen before has already been counted as a witness.
    """
    plan = Written()
    for decision in decisions:
        witness = evidence[decision.turn] if decision.turn < len(evidence) else None
        new = fresh is None or decision.turn >= len(fresh) or fresh[decision.turn]
        _carry_out(plan, place, decision, witness, new=new)
    return plan


def _carry_out(plan: Written, place: Place, decision: Decision, witness: str | None, *, new: bool) -> None:
    names = plan.names
    fact = None if decision.fact is None else replace(decision.fact, id=names.get(decision.fact.id, decision.fact.id))
    thread = place.mint.id() if decision.event == "ADD" else None if fact is None else fact.id
    plan.threads.append(thread)
    if thread is not None:
        plan.guards.update(dict.fromkeys(_guards(place, decision, fact, ours=thread in names.values())))
        speaks = new and (witness, thread) not in plan.attested and fact is not None and fact.evidence != witness
        verbs = _verbs(decision, fact, thread, witness, speaks=speaks)
        plan.drafts += [Draft(verb, place.scope, place.author) for verb in (*verbs, *_links(decision, thread, names))]
        plan.attested.add((witness, thread))
        names[made(len(plan.threads) - 1)] = thread
    plan.events.append(_event(decision, fact, thread))


def _guards(place: Place, decision: Decision, fact: Fact | None, *, ours: bool) -> list[Guard]:
    """What must still hold: nobody changed the memory, spoke of the same slot or filled the kind."""
    claim = decision.claim
    found: list[Guard] = []
    if decision.event == "ADD" and claim is not None and claim.kind in place.bounded:
        found.append(NoMore(place.scope, claim.kind, place.seen))
    if decision.event == "ADD" and claim is not None and claim.predicate is None:
        return [*found, NoFact(place.scope, (md5(claim.text),))]
    if fact is not None and not ours:
        found.append(ThreadAt(fact.id, fact.seq))
    if decision.event in ("ADD", "UPDATE") and claim is not None and claim.subject is not None:
        names = tuple(name for _, name in about(claim))
        found.append(NoNews(place.scope, claim.subject, names, place.seen))
    return found


def _verbs(decision: Decision, fact: Fact | None, thread: str, witness: str | None, *, speaks: bool) -> list[Verb]:
    claim = decision.claim
    match decision.event:
        case "ADD" | "UPDATE" if claim is not None:
            since = None if fact is None else fact.created_at
            return [Asserted(thread, replace(claim, evidence=claim.evidence or witness), since)]
        case "DELETE":
            return [Retracted(thread, decision.why)]
        case _ if speaks and witness is not None:
            return [Linked(witness, SUPPORTS, thread, meta=_again(claim))]
        case _:
            return []


def _again(claim: Claim | None) -> dict[str, str]:
    """How a witness counts: as much as whoever spoke."""
    trust = Trust.USER if claim is None else trust_of(claim)
    return AGAIN if trust is Trust.USER else {**AGAIN, STAMP: trust.label}


def _links(decision: Decision, thread: str, names: dict[str, str]) -> list[Linked]:
    if not decision.links:
        return []
    known = {**names, SELF: thread}
    ends = ((link, known.get(link.src, link.src), known.get(link.dst, link.dst)) for link in decision.links)
    return [replace(link, src=src, dst=dst) for link, src, dst in ends]


def _event(decision: Decision, fact: Fact | None, thread: str | None) -> Event:
    """What a receipt tells of a decision: of what is not held there is no id, and what was not listed is new."""
    claim = decision.claim
    if decision.event == "UPDATE" and fact is not None and fact.kind in UNLISTED:
        decision, fact = replace(decision, event="ADD"), None
    new = claim.text if claim is not None and decision.event in ("ADD", "UPDATE") else None
    text = new or (fact.text if fact is not None else claim.text if claim is not None else None)
    old = fact.text if fact is not None and decision.event in ("UPDATE", "DELETE") else None
    role, actor = (claim.role, claim.actor) if claim is not None else (None, None)
    return Event(decision.event, thread or "", text, old, role, actor)
