"""Quarantine and the way out of it: somebody looks at a claim in doubt and holds it, or gives it up."""

from __future__ import annotations

from dataclasses import replace

from told.core.entry import Claim, Draft, Evidence, Retracted
from told.core.errors import InvalidInput
from told.core.fact import NEVER, QUARANTINE, Fact
from told.core.predicates import predicate
from told.core.query import Event, Receipt
from told.core.scope import Scope
from told.core.trust import STAMP
from told.core.when import ALWAYS
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ports import ThreadAt
from told.write.change import held
from told.write.curate.plan import Place, bounded, plan_claims
from told.write.curate.rules import RuleCurator
from told.write.desk import Desk, Plan, settle
from told.write.embed import catch_up
from told.write.messages import Turn
from told.write.shape import CONCEPT, Found, Heard

ACCEPTED, REJECTED, PLAIN = "accepted", "rejected", "memory"
ASIDE = frozenset({"kind", "why", "modality", CONCEPT, STAMP})
"""The metadata of a claim in doubt that it has only there."""


def review(desk: Desk, account: str, thread: str, scope: Scope | None, *, accept: bool) -> Flow[Receipt]:
    """Hold a claim that was in doubt as if its reviewer had said it, or give it up; the doubt stays in its history."""

    def decide() -> Flow[Receipt]:
        fact = yield from held(desk.store, account, thread, scope)
        if fact.kind != QUARANTINE:
            raise InvalidInput(f"The memory {thread!r} is not in quarantine.", hint="List those with quarantine().")
        plan = Plan([Draft(Retracted(thread, ACCEPTED if accept else REJECTED), fact.scope, desk.author)],
                    [ThreadAt(thread, fact.seq)], [])  # fmt: skip
        if accept:
            yield from _held(desk, plan, fact)
        else:
            plan.events.append(Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor))
        return (yield from settle(desk, fact.scope, plan))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from catch_up(desk.store, desk.embedder, account, receipt, desk.settings))


def _held(desk: Desk, plan: Plan, fact: Fact) -> Flow[None]:
    """Let the rules decide what becomes of a claim that is no longer in doubt."""
    now = desk.mint.now()
    heard = Heard((Turn(Evidence(fact.text), {}),), now, fact.scope, desk.mind.ontology)
    seen = (yield from call(desk.store.head, fact.scope.account)).seq
    done = yield from RuleCurator(desk.store, desk.settings).decide(heard, [Found(_claim(fact), 0)])
    place = Place(fact.scope, desk.author, seen, now, desk.mint, bounded(heard.ontology))
    written = plan_claims(place, done.decisions, [], [])
    plan.drafts += written.drafts
    plan.guards += written.guards
    plan.events += [event for event in written.events if event.id]


def _claim(fact: Fact) -> Claim:
    """What was in doubt, as it was found; from the reviewer it may be of the kind its source could not give it."""
    meta = {name: value for name, value in fact.meta.items() if name not in ASIDE}
    kind, modality = fact.meta.get("kind", PLAIN), fact.meta.get("modality", "stated")
    if kind == PLAIN and fact.predicate is not None:
        kind = predicate(fact.predicate).kind
    claim = Claim(fact.text, str(kind), fact.subject, fact.predicate, fact.object, fact.polarity, str(modality))
    expires = None if fact.expires == NEVER else fact.expires
    valid = ALWAYS if fact.precision == ALWAYS.precision else fact.valid()
    return replace(
        claim, confidence=fact.confidence, valid=valid, expires=expires, evidence=fact.evidence,
        role="user", actor=fact.actor, said_at=fact.said_at, source=fact.source, meta=meta,
    )  # fmt: skip
