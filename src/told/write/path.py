"""add, update, delete, retract and link: each decides on drafts against what is known, then commits them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from told.core.blob import Blob
from told.core.entry import Asserted, Claim, Draft, Linked, Observed, Retracted
from told.core.errors import IdempotencyConflict, NotFoundError
from told.core.fact import NEVER, Fact
from told.core.ids import Mint, text_hash
from told.core.query import AsOf, Event, Find, Receipt
from told.core.scope import Scope
from told.core.text import md5
from told.core.when import ALWAYS, Interval
from told.flow import Flow, call
from told.ledger.commit import commit, decided
from told.ledger.consume import drain
from told.ledger.erase import SUPPORTS
from told.ports import Batch, Embedder, Guard, Known, NoEvidence, NoFact, Store, ThreadAt, Ticket
from told.settings import Settings
from told.write import embed, talk
from told.write.embed import UNSEEN, Looked
from told.write.messages import Said, Turn

AGAIN = {"said": "again"}
HELD = "A text that is already held keeps the metadata and expiration it has; use update() to change them."


@dataclass(frozen=True, slots=True)
class Desk:
    """What a write works with."""

    store: Store
    mint: Mint
    settings: Settings
    embedder: Embedder | None = None
    author: str = "user"


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key and the digest of the request it stands for."""

    name: str
    digest: bytes


@dataclass(slots=True)
class Plan:
    """What a write will commit, and what it will say it did."""

    drafts: list[Draft]
    guards: list[Guard]
    events: list[Event]
    turns: dict[str, str] = field(default_factory=dict)
    """The wording of the turns that others were said after, by thread."""
    warnings: dict[str, None] = field(default_factory=dict)
    looked: Looked = UNSEEN
    blobs: Sequence[Blob] = ()


def add(desk: Desk, scope: Scope, said: Said, *, expires: int | None, kind: str, key: Key | None) -> Flow[Receipt]:
    """Keep each turn verbatim; a text this scope already holds gains evidence instead of a copy."""
    md5s = [md5(turn.evidence.content) for turn in said.turns]
    digests = [turn.evidence.digest() for turn in said.turns]
    hashes = [text_hash(_wording(turn)) for turn in said.turns] if desk.embedder and desk.embedder.local else ()
    first = said.turns[0] if said.turns else None
    answering = first is not None and first.evidence.said_at is not None and talk.answerable(first)

    def decide() -> Flow[Receipt]:
        name = key.name if key else None
        known = yield from call(desk.store.known, scope, md5s, digests, name, hashes, last=answering)
        if key and known.ticket:
            return (yield from _replay(desk.store, scope.account, key, known.ticket))
        plan = curate(desk, scope, said.turns, md5s, digests, known, expires=expires, kind=kind)
        plan.looked = Looked(frozenset(hashes), known.vectors)
        plan.blobs, plan.warnings = said.blobs, dict.fromkeys((*said.warnings, *plan.warnings))
        return (yield from _settle(desk, scope, plan, known.seen, key, said.skipped))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from _catch_up(desk, scope.account, receipt))


def curate(
    desk: Desk, scope: Scope, turns: Sequence[Turn], md5s: Sequence[str], digests: Sequence[bytes], known: Known,
    *, expires: int | None, kind: str,
) -> Plan:  # fmt: skip
    """Which entries stand for these turns: new evidence, and a new thread unless the text is already held."""
    plan = Plan([], [], [])
    now = desk.mint.now()
    held = {text: fact.id for text, fact in known.facts.items() if fact.expires > now}
    faded = {text: fact for text, fact in known.facts.items() if text not in held}
    seen = dict(known.evidence)
    last = talk.remembered(known.last)
    for turn, text, digest in zip(turns, md5s, digests, strict=True):
        evidence, thread = seen.get(digest), held.get(text)
        event, fresh = "NONE", evidence is None
        if evidence is None:
            evidence = seen[digest] = desk.mint.id()
            plan.drafts.append(Draft(Observed(evidence, turn.evidence), scope, desk.author))
            plan.guards.append(NoEvidence(scope, digest))
        if thread is None:
            before = last if talk.answers(turn, last, desk.settings.pause_minutes) else None
            if before is not None:
                plan.turns[before.thread] = before.wording
            old = faded.get(text)
            claim = _claim(turn, evidence, expires, kind, before.thread if before else None)
            event, thread = ("ADD", desk.mint.id()) if old is None else ("UPDATE", old.id)
            held[text] = thread
            last = talk.spoken(thread, turn) if old is None else None
            said_since = None if old is None else old.created_at
            plan.drafts.append(Draft(Asserted(thread, claim, said_since), scope, desk.author))
            plan.guards.append(NoFact(scope, text) if old is None else ThreadAt(thread, old.seq))
        else:
            last = None
            if fresh:
                plan.drafts.append(Draft(Linked(evidence, SUPPORTS, thread, meta=AGAIN), scope, desk.author))
            if turn.meta or expires is not None:
                plan.warnings[HELD] = None
        said = turn.evidence
        previous = said.content if event == "UPDATE" else None
        plan.events.append(Event(event, thread, said.content, previous, said.role, said.name))
    return plan


def _wording(turn: Turn) -> str:
    """What will be embedded of a turn that is short and answers nobody."""
    said = turn.evidence
    return f"{said.name}: {said.content}" if said.name else said.content


def _claim(turn: Turn, evidence: str, expires: int | None, kind: str, after: str | None) -> Claim:
    said = turn.evidence
    return Claim(
        said.content, kind, valid=turn.valid, expires=expires, evidence=evidence, span=(0, len(said.content)),
        role=said.role, actor=said.name, said_at=said.said_at, source=said.source, after=after, meta=turn.meta,
    )  # fmt: skip


def _settle(
    desk: Desk, scope: Scope, plan: Plan, seen: int, key: Key | None, skipped: Sequence[Mapping[str, Any]]
) -> Flow[Receipt]:
    """Commit a plan and write its receipt; a plan with nothing to say and no key to keep commits nothing."""
    tx: int | None = None
    warnings: tuple[str, ...] = ()
    if plan.drafts or key:
        vectors, warnings = yield from embed.before_commit(
            desk.store, desk.embedder, plan.drafts, plan.turns, plan.looked
        )
        ticket = Ticket(key.name, key.digest, _outcome(plan, skipped)) if key else None
        model = desk.embedder.model if desk.embedder else None
        batch = Batch(scope.account, plan.drafts, plan.guards, seen, ticket, vectors, model, plan.blobs)
        entries = yield from commit(desk.store, batch)
        tx = entries[0].tx if entries else None
    return Receipt(tuple(plan.events), tuple(skipped), (*plan.warnings, *warnings), tx)


def _outcome(plan: Plan, skipped: Sequence[Mapping[str, Any]]) -> str:
    """What a key remembers of its receipt: events, ids and who spoke, never what was said."""
    rows = [[event.event, event.id, event.role, event.actor] for event in plan.events]
    return json.dumps({"events": rows, "skipped": list(skipped), "warnings": list(plan.warnings)})


def _replay(store: Store, account: str, key: Key, ticket: Ticket) -> Flow[Receipt]:
    """The first receipt of a key again, with its texts as they were then."""
    if ticket.digest != key.digest:
        raise IdempotencyConflict()
    outcome = json.loads(ticket.outcome)
    events: list[Event] = []
    for event, thread, role, actor in outcome["events"]:
        fact = yield from call(store.fact, account, thread, AsOf(ticket.seq, 0))
        text = fact.text if fact else None
        events.append(Event(event, thread, text, text if event == "UPDATE" else None, role, actor))
    return Receipt(tuple(events), tuple(outcome["skipped"]), tuple(outcome["warnings"]))


def _catch_up(desk: Desk, account: str, receipt: Receipt) -> Flow[Receipt]:
    """Let a remote embedder see what was just committed; if it cannot, the words are already searchable."""
    if desk.embedder is None or desk.embedder.local or receipt.tx is None:
        return receipt
    failure = yield from drain(
        desk.store, account, embed.consumer(desk.store, desk.embedder, account),
        batch=desk.settings.consumer_batch, attempts=desk.settings.consumer_attempts,
    )  # fmt: skip
    if failure is None:
        return receipt
    return replace(receipt, warnings=(*receipt.warnings, f"Not embedded yet, found by words only: {failure}"))


# Changing what is there -----------------------------------------------------------------------------------------------


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
        return (yield from _settle(desk, fact.scope, plan, -1, None, ()))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from _catch_up(desk, account, receipt))


def _changed(fact: Fact, change: Change) -> Claim:
    """A changed text is a new statement that holds from now; changed metadata alone describes the same one."""
    said_again = change.text is not None and change.text != fact.text
    expires = change.expires if change.set_expiry else None if fact.expires == NEVER else fact.expires
    anew = said_again or change.valid is not ALWAYS
    valid = change.valid if anew else fact.valid()
    return Claim(
        fact.text if change.text is None else change.text, fact.kind, fact.subject, fact.predicate, fact.object,
        fact.polarity, fact.modality, fact.confidence, valid, expires,
        evidence=None if said_again else fact.evidence, role=fact.role, actor=fact.actor,
        said_at=change.valid.start if anew else fact.said_at, source=fact.source, after=None if anew else fact.after,
        meta=fact.meta if change.meta is None else change.meta,
    )  # fmt: skip


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
    for node in (verb.src, verb.dst):
        yield from held(desk.store, scope.account, node, scope)
    entries = yield from commit(desk.store, Batch(scope.account, [Draft(verb, scope, desk.author)]))
    return Receipt((Event("LINK", verb.dst),), tx=entries[0].tx)
