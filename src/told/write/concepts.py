"""Values of a closed world in the ledger: held, said again, given up, let go for others, and the turns in between.

What was said is evidence; what it does to the beliefs follows in the same transaction. Two writers never both win: who
decided on something that has changed since decides again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from told.core.concepts import (
    EVICTED,
    FADED,
    FORGOTTEN,
    NEGATED,
    VALUE,
    Belief,
    Rules,
    Shelf,
    Weighed,
    leaving,
)
from told.core.entry import Asserted, Claim, Draft, Evidence, Linked, Observed, Retracted, Verb
from told.core.errors import NotFoundError
from told.core.kind import Kind
from told.core.query import Event, Receipt
from told.core.salience import said_anew
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger import concepts
from told.ledger.commit import commit, decided
from told.ledger.erase import SUPPORTS
from told.ports import Batch, NoNews, Still, Store, ThreadAt
from told.views.ticks import TICK, TOKENS, TURNS
from told.write.curate.plan import AGAIN
from told.write.desk import Desk, Plan, settle
from told.write.embed import catch_up
from told.write.extract.ground import SPEAKER

QUOTE: Final = "quote"
"""The sort of evidence that is a sentence somebody took from a turn; it is no turn of its own."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value of a concept, whether it is asserted or negated, and the sentence that says so."""

    kind: Kind
    value: str
    polarity: str
    quote: str


@dataclass(slots=True)
class _Move:
    """What one thing that was said comes to."""

    desk: Desk
    scope: Scope
    said: Said
    seen: int
    plan: Plan = field(default_factory=lambda: Plan([], [], []))

    def observe(self) -> str:
        """Plan the evidence, and give its id."""
        evidence = self.desk.mint.id()
        self._draft(Observed(evidence, Evidence(self.said.quote, said_at=self.desk.mint.now(), sort=QUOTE)))
        return evidence

    def hold(self, thread: str, evidence: str) -> None:
        """Plan a belief of its own."""
        kind, value = self.said.kind, self.said.value
        text = f"{kind.label or kind.name}: {value}"
        meta = {VALUE: value}
        claim = Claim(text, kind.name, SPEAKER, kind.name, value, evidence=evidence, role="user", meta=meta)
        self._draft(Asserted(thread, claim))
        self.plan.guards.append(NoNews(self.scope, SPEAKER, (kind.name,), self.seen))
        self.plan.events.append(Event("ADD", thread, text))

    def support(self, belief: Belief, evidence: str) -> None:
        """Plan one more witness for a belief."""
        thread = belief.fact.id
        self._draft(Linked(evidence, SUPPORTS, thread, meta=AGAIN))
        self.plan.guards.append(ThreadAt(thread, belief.fact.seq))
        self.plan.events.append(Event("NONE", thread))

    def give_up(self, thread: str, why: str) -> None:
        """Plan the end of a belief, unless something is said of it meanwhile."""
        self._draft(Retracted(thread, why))
        self.plan.guards.append(Still(thread, self.seen))
        self.plan.events.append(Event("DELETE", thread))

    def _draft(self, verb: Verb) -> None:
        self.plan.drafts.append(Draft(verb, self.scope, self.desk.author))


def upsert(desk: Desk, shelf: Shelf, rules: Rules, said: Said) -> Flow[Receipt]:
    """Hold a value, hold it more firmly, or give it up; its event names the thread."""
    scope = shelf.of(said.kind.tier)

    def decide() -> Flow[Receipt]:
        head = yield from call(desk.store.head, scope.account)
        here = yield from concepts.held(desk.store, shelf, rules, desk.settings, [said.kind.name])
        plan = _decided(_Move(desk, scope, said, head.seq), rules, here)
        return (yield from settle(desk, scope, plan, head.seq))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from catch_up(desk.store, desk.embedder, scope.account, receipt, desk.settings))


def _decided(move: _Move, rules: Rules, here: Sequence[Belief]) -> Plan:
    said, evidence = move.said, move.observe()
    alive = [belief.weighed() for belief in here if not belief.strength.faded]
    for belief in here:
        if belief.strength.faded:
            move.give_up(belief.fact.id, FADED)
    meant = rules.matcher.meant(said.value, alive)
    if said.polarity == NEGATED:
        if meant is not None:
            move.give_up(meant.id, NEGATED)
    elif meant is not None:
        move.support(next(belief for belief in here if belief.fact.id == meant.id), evidence)
    else:
        _make_room(move, rules, alive, evidence)
    return move.plan


def _make_room(move: _Move, rules: Rules, alive: Sequence[Weighed], evidence: str) -> None:
    """Plan a new belief and the end of those it leaves no room for; one too weak to stay is not held at all."""
    kind, thread = move.said.kind, move.desk.mint.id()
    weight = said_anew(rules.curve(kind.name, kind.tier), 0.0)
    last = max((one.place for one in alive), default=0)
    going = [one.id for one in leaving(kind, [*alive, Weighed(thread, move.said.value, weight, last + 1)])]
    for one in going:
        if one != thread:
            move.give_up(one, EVICTED)
    if thread not in going:
        move.hold(thread, evidence)


def tick(desk: Desk, scope: Scope, turns: int, tokens: int | None) -> Flow[Receipt]:
    """Let some turns pass, of so many tokens together; of the usual size if nobody says."""
    size = turns * desk.settings.turn_tokens if tokens is None else tokens
    said = Evidence("", "system", said_at=desk.mint.now(), sort=TICK, meta={TURNS: turns, TOKENS: size})
    draft = Draft(Observed(desk.mint.id(), said), scope, desk.author)
    entries = yield from commit(desk.store, Batch(scope.account, [draft]))
    return Receipt(tx=entries[0].tx)


def forget(desk: Desk, shelf: Shelf, threads: Sequence[str]) -> Flow[Receipt]:
    """Give up beliefs, held or faded, so that nothing recalls them; the past keeps them."""
    account = shelf.lasting.account
    drafts: list[Draft] = []
    for thread in threads:
        scope = yield from _scope(desk.store, account, thread)
        if scope not in shelf.scopes:
            raise NotFoundError(f"There is no memory {thread!r} here.", hint="List them with about().")
        drafts.append(Draft(Retracted(thread, FORGOTTEN), scope, desk.author))
    entries = yield from commit(desk.store, Batch(account, drafts))
    return Receipt(tuple(Event("DELETE", thread) for thread in threads), tx=entries[0].tx)


def _scope(store: Store, account: str, thread: str) -> Flow[Scope | None]:
    """Whose a thread is, held or not."""
    entries = yield from call(store.thread, account, thread)
    return next((entry.draft.scope for entry in entries if entry.draft is not None), None)
