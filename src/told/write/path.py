"""add: observe, gate, extract, curate and commit what was said."""

from __future__ import annotations

import json
from collections.abc import Sequence

from told.core.entry import Asserted, Claim, Draft, Linked, Observed
from told.core.errors import IdempotencyConflict
from told.core.ids import text_hash
from told.core.query import AsOf, Event, Receipt
from told.core.scope import Scope
from told.core.text import md5
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.erase import SUPPORTS
from told.ports import Known, NoEvidence, NoFact, Store, ThreadAt, Ticket
from told.write import talk
from told.write.desk import Desk, Key, Plan, settle
from told.write.embed import Looked, catch_up
from told.write.messages import Said, Turn

AGAIN = {"said": "again"}
HELD = "A text that is already held keeps the metadata and expiration it has; use update() to change them."


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
        return (yield from settle(desk, scope, plan, known.seen, key, said.skipped))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from catch_up(desk.store, desk.embedder, scope.account, receipt, desk.settings))


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
