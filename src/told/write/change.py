"""update, delete, retract and link: what is there is given a new version, given up, or bound to something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.entry import Asserted, Claim, Draft, Linked, Retracted
from told.core.errors import NotFoundError
from told.core.fact import NEVER, Fact
from told.core.query import Event, Find, Receipt
from told.core.scope import Scope
from told.core.when import ALWAYS, Interval
from told.flow import Flow, call
from told.ledger.commit import commit, decided
from told.ports import Batch, Store, ThreadAt
from told.write.desk import Desk, Plan, settle
from told.write.embed import catch_up
from told.write.mind import read


@dataclass(frozen=True, slots=True)
class Change:
    """What to change in a memory; `expires` is only looked at when `set_expiry` says so."""

    text: str | None = None
    meta: Mapping[str, Any] | None = None
    set_expiry: bool = False
    expires: int | None = None
    valid: Interval = ALWAYS


def held(store: Store, account: str, thread: str, scope: Scope | None = None) -> Flow[Fact]:
    """The latest version of a thread, or `NotFoundError`; another scope's memory is as good as absent."""
    fact = yield from call(store.fact, account, thread)
    if fact is None or (scope is not None and not scope.covers(fact.scope)):
        raise NotFoundError(f"There is no memory {thread!r} here.", hint="List them with get_all().")
    return fact


def update(desk: Desk, account: str, thread: str, change: Change, scope: Scope | None = None) -> Flow[Receipt]:
    """A new version on the same thread; the version before it closes and stays."""

    def decide() -> Flow[Receipt]:
        fact = yield from held(desk.store, account, thread, scope)
        claim = _changed(fact, change)
        draft = Draft(Asserted(thread, claim, fact.created_at), fact.scope, desk.author)
        event = Event("UPDATE", thread, claim.text, fact.text, claim.role, claim.actor)
        plan = Plan([draft], [ThreadAt(thread, fact.seq)], [event])
        return (yield from settle(desk, fact.scope, plan))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from catch_up(desk.store, desk.embedder, account, receipt, desk.settings))


def _changed(fact: Fact, change: Change) -> Claim:
    """A changed text is a new statement that holds from now; changed metadata alone describes the same one."""
    said_again = change.text is not None and change.text != fact.text
    expires = change.expires if change.set_expiry else None if fact.expires == NEVER else fact.expires
    anew = said_again or change.valid is not ALWAYS
    valid = change.valid if anew else fact.valid()
    said = _read(fact, change.text if said_again else None)
    return Claim(
        fact.text if change.text is None else change.text, fact.kind, said.subject, said.predicate, said.object,
        said.polarity, said.modality, said.confidence, valid, expires,
        evidence=None if said_again else fact.evidence, role=fact.role, actor=fact.actor,
        said_at=change.valid.start if anew else fact.said_at, source=fact.source, after=None if anew else fact.after,
        meta=fact.meta if change.meta is None else change.meta,
    )  # fmt: skip


def _read(fact: Fact, text: str | None) -> Fact | Claim:
    """What a fact says in subject, predicate and object: as before, or as its new text reads."""
    if text is None or fact.predicate is None:
        return fact
    return read(text) or Claim(text)


def retract(desk: Desk, account: str, thread: str, why: str, scope: Scope | None = None) -> Flow[Receipt]:
    """Give up a memory; what was believed before stays readable as of then."""

    def decide() -> Flow[Receipt]:
        fact = yield from held(desk.store, account, thread, scope)
        return (yield from _let_go(desk, account, [fact], why))

    return (yield from decided(desk.settings.conflict_retries, decide))


def retract_all(desk: Desk, find: Find, why: str) -> Flow[Receipt]:
    """Give up everything a scope holds, in one transaction."""

    def decide() -> Flow[Receipt]:
        facts = yield from call(desk.store.facts, find)
        return (yield from _let_go(desk, find.scope.account, facts, why)) if facts else Receipt()

    return (yield from decided(desk.settings.conflict_retries, decide))


def _let_go(desk: Desk, account: str, facts: Sequence[Fact], why: str) -> Flow[Receipt]:
    drafts = [Draft(Retracted(fact.id, why), fact.scope, desk.author) for fact in facts]
    guards = [ThreadAt(fact.id, fact.seq) for fact in facts]
    entries = yield from commit(desk.store, Batch(account, drafts, guards))
    events = (Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor) for fact in facts)
    return Receipt(tuple(events), tx=entries[0].tx)


def link(desk: Desk, scope: Scope, verb: Linked) -> Flow[Receipt]:
    """Say that one memory bears on another; both must be in the scope."""

    def decide() -> Flow[Receipt]:
        guards = []
        for node in dict.fromkeys((verb.src, verb.dst)):
            fact = yield from held(desk.store, scope.account, node, scope)
            guards.append(ThreadAt(fact.id, fact.seq))
        entries = yield from commit(desk.store, Batch(scope.account, [Draft(verb, scope, desk.author)], guards))
        return Receipt((Event("LINK", verb.dst),), tx=entries[0].tx)

    return (yield from decided(desk.settings.conflict_retries, decide))
