"""Which entries stand for what was said: the evidence, and a thread for each turn that is more than evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from told.core.echo import Own
from told.core.entry import Asserted, Claim, Draft, Evidence, Linked, Observed
from told.core.fact import UNLISTED, Fact
from told.core.hearsay import is_pictured
from told.core.kind import Semantics, Write
from told.core.query import Event
from told.core.scope import Scope
from told.core.trust import STAMP, Trust, channel
from told.ledger.erase import SUPPORTS
from told.ports import Guard, Known, NoEvidence, NoFact, ThreadAt
from told.write import talk
from told.write.desk import Desk, Plan
from told.write.gate import Verdict
from told.write.hearing import marked
from told.write.messages import Turn
from told.write.mind import Ask
from told.write.talk import Spoken
from told.write.understand import ASK, META

AGAIN = {"said": "again"}
HELD = "A text that is already held keeps the metadata and expiration it has; use update() to change them."


@dataclass(slots=True)
class Observer:
    """Plans one turn after the other, seeing what the store knows and what was planned before."""

    desk: Desk
    scope: Scope
    expires: int | None
    asking: Mapping[str, Any] | None
    plan: Plan
    held: Mapping[str, Fact]
    seen: dict[bytes, str]
    last: Spoken | None
    listed: dict[str, str] = field(default_factory=dict)
    behind: dict[str, str] = field(default_factory=dict)
    """The threads made so far, by the text: those in listings, and those that these leave out."""

    def observe(self, verdict: Verdict, kind: str | None, md5: str) -> None:
        """Plan the evidence of a turn, and a thread for it unless it is kept as evidence alone."""
        before, self.last = self.last, None
        evidence, fresh = self._evidence(verdict, kind)
        self.plan.evidence.append(evidence)
        self.plan.fresh.append(fresh)
        if kind is None:
            return
        turn, old = verdict.turn, self.held.get(md5)
        if old is not None and fresh and self._at_another_time(turn, kind, old):
            old = None
        thread = self._made(kind, md5) or (None if old is None else self._holding(kind, old))
        if thread is None:
            self._assert(turn, kind, md5, evidence, before, old)
            return
        if fresh:
            self._draft(Linked(evidence, SUPPORTS, thread, meta=AGAIN))
        if (turn.meta or self.expires is not None) and kind not in UNLISTED:
            self.plan.warnings[HELD] = None
        self._tell(turn, kind, "NONE", thread)

    def _evidence(self, verdict: Verdict, kind: str | None) -> tuple[str, bool]:
        """The id of a turn's evidence, and whether it is new."""
        said = verdict.turn.evidence
        digest = said.digest()
        known = self.seen.get(digest)
        if known is not None:
            return known, False
        evidence = self.seen[digest] = self.desk.mint.id()
        if self.asking is not None and kind is not None:
            said = asking(said, self.asking, verdict.turn.meta, verdict.own)
        self._draft(Observed(evidence, said))
        return evidence, True

    def _made(self, kind: str, md5: str) -> str | None:
        """The thread that was just made for the same words; one that is not listed is enough for another such."""
        listed = self.listed.get(md5)
        return self.behind.get(md5) if listed is None and kind in UNLISTED else listed

    def _at_another_time(self, turn: Turn, kind: str, fact: Fact) -> bool:
        """Whether a kind that only ever adds up hears of something that happened again: the same words, another day."""
        said_at = turn.evidence.said_at
        if said_at in (None, fact.said_at) or fact.said_at is None:
            return False
        rules = self.desk.mind.ontology.get(kind)
        return rules is not None and rules.write is Write.APPEND and rules.semantics is Semantics.IMMUTABLE

    def _holding(self, kind: str, fact: Fact) -> str | None:
        """The thread that already says so, unless it has faded or lies behind what is listed while this would not."""
        hidden = fact.kind in UNLISTED and kind not in UNLISTED
        return None if hidden or fact.expires <= self.desk.mint.now() else fact.id

    def _assert(
        self, turn: Turn, kind: str, md5: str, evidence: str, last: Spoken | None, old: Fact | None
    ) -> None:
        """Plan a thread for a turn, or a new version of one that faded."""
        after = None
        if last is not None and talk.answers(turn.evidence, last, self.desk.settings.pause_minutes):
            after = last.thread
            self.plan.turns[after] = last.wording
        thread = self.desk.mint.id() if old is None else old.id
        claim = claim_of(turn, evidence, self.expires, kind, after)
        self._draft(Asserted(thread, claim, None if old is None else old.created_at))
        if old is not None:
            self.plan.guards.append(ThreadAt(thread, old.seq))
        (self.behind if kind in UNLISTED else self.listed)[md5] = thread
        self.last = talk.spoken(thread, turn.evidence) if old is None else None
        self._tell(turn, kind, "ADD" if old is None or old.kind in UNLISTED else "UPDATE", thread)

    def _tell(self, turn: Turn, kind: str, event: str, thread: str) -> None:
        if kind in UNLISTED:
            return
        said = turn.evidence
        previous = said.content if event == "UPDATE" else None
        self.plan.events.append(Event(event, thread, said.content, previous, said.role, said.name))

    def _draft(self, verb: Observed | Asserted | Linked) -> None:
        self.plan.drafts.append(Draft(verb, self.scope, self.desk.author))

    def guards(self, known: Known) -> tuple[Guard, ...]:
        """What nobody else may have written meanwhile: the evidence and the texts that were not known."""
        unseen, unheld = self.seen.keys() - known.evidence, (self.listed.keys() | self.behind) - known.facts.keys()
        return NoEvidence(self.scope, tuple(unseen)), NoFact(self.scope, tuple(unheld))


def observed(
    desk: Desk, scope: Scope, turns: Iterable[tuple[Verdict, str | None, str]], known: Known, *, expires: int | None,
    ask: Ask | None, anew: Collection[str] = (),
) -> Plan:  # fmt: skip
    """Which entries stand for turns, each with what it is kept as (None is evidence alone) and the MD5 of its words.

    With an `ask`, the evidence says that a model is to be asked about it; some that is known may have to say so anew.
    """
    plan = Plan([], [], [])
    question = None if ask is None else question_of(ask, expires)
    last = None if known.last is None else talk.remembered(known.last)
    seen = {digest: evidence for digest, evidence in known.evidence.items() if evidence not in anew}
    observer = Observer(desk, scope, expires, question, plan, known.facts, seen, last)
    for verdict, kind, md5 in turns:
        observer.observe(verdict, kind, md5)
    plan.guards += observer.guards(known)
    return plan


def question_of(ask: Ask, expires: int | None) -> dict[str, Any]:
    """How a model is to be asked, as the evidence keeps it."""
    given = {"by": ask.by, "prompt": ask.prompt, "facts": list(ask.facts), "expires": expires}
    return {name: value for name, value in given.items() if value not in (None, [])}


def asking(said: Evidence, question: Mapping[str, Any], meta: Mapping[str, Any], own: Own) -> Evidence:
    """Evidence that says how a model is to be asked about which of its words, and what to attach to what it finds."""
    more = {ASK: question, **({META: meta} if meta else {}), **marked(own, said.content)}
    return replace(said, meta={**said.meta, **more})


def claim_of(turn: Turn, evidence: str, expires: int | None, kind: str, after: str | None) -> Claim:
    """A turn, word for word, as a claim, with the stamp of what it is worth where its role says more."""
    said, meta = turn.evidence, turn.meta
    if (trust := worth(turn)) < channel(said.role):
        meta = {**meta, STAMP: trust.label}
    return Claim(
        said.content, kind, valid=turn.valid, expires=expires, evidence=evidence, span=(0, len(said.content)),
        role=said.role, actor=said.name, said_at=said.said_at, source=said.source, after=after, meta=meta,
    )  # fmt: skip


def worth(turn: Turn) -> Trust:
    """How far a turn is believed as a whole: with an image's words in it, no farther than a document."""
    said = turn.evidence
    return Trust.DOCUMENT if is_pictured(said.content) else channel(said.role, said.sort)
