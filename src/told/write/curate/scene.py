"""What is held where a claim arrives, and what it will be once the decisions so far are carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from told.core.entry import Claim
from told.core.fact import NEVER, UNLISTED, Fact, Link
from told.core.fading import Clocks, Saying, said_again, sayings
from told.core.kind import Kind, Ontology, Write
from told.core.query import LATEST, AsOf
from told.core.scope import Scope
from told.core.text import md5
from told.core.trust import GUESSED, STAMP, channel, safe_kind, source_of, trust_of
from told.flow import Flow, call
from told.ledger.clocks import clocks_of, tellings
from told.ports import Store
from told.settings import Settings
from told.write.curate.slots import about, eats_meat, says_outright
from told.write.shape import Decision, Found, Heard, made


@dataclass(slots=True)
class Scene:
    """The memories that claims are held against; it changes as decisions are made, so that later claims see them.

    `clocks`, `again` and `before` tell how strong those are by now that a full kind may have to choose among.
    """

    scope: Scope
    now: int
    ontology: Ontology
    held: list[Fact]
    texts: dict[str, Fact]
    clocks: Clocks
    again: Mapping[str, Sequence[Link]] = field(default_factory=dict)
    before: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    """The memories that this write makes or changes."""

    def of(self, subject: str | None, names: Sequence[str]) -> list[Fact]:
        """What is held of a subject under some predicates, newest first; what is in doubt is not held."""
        return [
            fact
            for fact in reversed(self.held)
            if fact.subject == subject and fact.predicate in names and fact.kind not in UNLISTED
        ]

    def said(self, fact: Fact) -> Sequence[Saying]:
        """Where a memory was said, in this write after all else."""
        here = replace(fact, seq=LATEST) if fact.id in self.fresh else fact
        return sayings(here, self.again.get(fact.id, ()), self.before.get(fact.id, ()))

    def kind(self, name: str) -> Kind | None:
        """The rules of a kind, if it has any here."""
        return self.ontology.get(name)

    def same(self, claim: Claim) -> Fact | None:
        """The memory with exactly this text, expired or not."""
        return self.texts.get(md5(claim.text))

    def take(self, decision: Decision) -> None:
        """Keep a decision and what it makes of the memories."""
        number = len(self.decisions)
        self.decisions.append(decision)
        old, claim = decision.fact, decision.claim
        if decision.event in ("UPDATE", "DELETE") and old is not None:
            self.held = [fact for fact in self.held if fact.id != old.id]
            self.texts = {text: fact for text, fact in self.texts.items() if fact.id != old.id}
        if decision.event in ("ADD", "UPDATE") and claim is not None:
            fact = version(claim, self.scope, self.now, made(number) if old is None else old.id, old)
            self.held.append(fact)
            self.fresh.add(fact.id)
            self.texts[fact.md5] = fact


def version(claim: Claim, scope: Scope, now: int, thread: str, before: Fact | None = None) -> Fact:
    """The memory a claim will be, as far as it can be known before it is written."""
    begins = claim.valid.start
    if begins is None and claim.valid.end is None:
        begins = now if claim.said_at is None else claim.said_at
    return Fact(
        thread, 0 if before is None else before.seq, 0, scope, claim.text, md5(claim.text), claim.kind,
        created_at=now if before is None else before.created_at, updated_at=now,
        valid_from=-NEVER if begins is None else begins,
        valid_to=NEVER if claim.valid.end is None else claim.valid.end, precision=claim.valid.precision,
        expires=NEVER if claim.expires is None else claim.expires, said_at=claim.said_at, role=claim.role,
        actor=claim.actor, evidence=claim.evidence, source=claim.source, subject=claim.subject,
        predicate=claim.predicate, object=claim.object, polarity=claim.polarity, modality=claim.modality,
        confidence=claim.confidence, meta=claim.meta,
    )  # fmt: skip


def look(store: Store, heard: Heard, claims: Sequence[Found], settings: Settings) -> Flow[Scene]:
    """Everything these claims have to be held against, in two questions to the store, or four if a kind may be full."""
    texts = [md5(found.claim.text) for found in claims]
    known = yield from call(store.known, heard.scope, texts, (), None)
    pairs = list(dict.fromkeys(pair for found in claims if _compared(heard, found) for pair in about(found.claim)))
    kinds = sorted({found.claim.kind for found in claims if _listed(heard.ontology.get(found.claim.kind), found.claim)})
    held: Sequence[Fact] = ()
    if pairs or kinds:
        held = yield from call(store.held, heard.scope, heard.now, about=pairs, kinds=kinds)
    rivals = [fact for fact in held if _crowded(heard.ontology.get(fact.kind))]
    links = (yield from call(store.links, heard.scope.account, [fact.id for fact in rivals])) if rivals else ()
    now = AsOf(LATEST, heard.now)
    again, told = said_again(links), (yield from tellings(store, heard.scope.account, rivals))
    before = {fact.id: told.get(fact.id, [fact]) for fact in rivals}
    said = {fact.seq: sayings(fact, again.get(fact.id, ()), before[fact.id]) for fact in rivals}
    clocks = yield from clocks_of(store, rivals, said, heard.ontology, now, settings)
    here = clocks.get(heard.scope.home(), Clocks(heard.now))
    return Scene(heard.scope, heard.now, heard.ontology, list(held), dict(known.facts), here, again, before)


def _crowded(kind: Kind | None) -> bool:
    """Whether a kind lets some of its memories go when it is full."""
    return kind is not None and kind.cardinality is not None


def _compared(heard: Heard, found: Found) -> bool:
    """Whether a claim has to be held against others at all: what only ever adds up is known by its words."""
    kind = heard.ontology.get(found.claim.kind)
    adds_up = kind is not None and kind.write is Write.APPEND and found.claim.kind != "memory"
    return not adds_up or found.claim.polarity != "asserted" or eats_meat(found.claim)


def _listed(kind: Kind | None, claim: Claim) -> bool:
    """Whether all memories of a kind have to be looked at: it has room for a few only, or a document of its own."""
    if kind is None:
        return False
    return kind.cardinality is not None or (claim.predicate is None and kind.write is not Write.APPEND)


def judged(heard: Heard, found: Found) -> Claim:
    """A claim with the kind its source may give it, and the stamp of a source worth less than its role."""
    said = heard.turns[found.turn].evidence
    claim, sort = found.claim, said.sort
    if claim.role is None:
        claim = replace(claim, role=said.role, actor=claim.actor or said.name)
    if claim.modality in GUESSED and says_outright(claim):
        claim = replace(claim, modality="stated")
    source = min(source_of(claim, sort), channel(said.role, sort))
    kind = safe_kind(claim.kind, min(source, trust_of(claim, sort)))
    meta = claim.meta if source >= channel(claim.role) else {**claim.meta, STAMP: source.label}
    if kind == claim.kind and meta is claim.meta:
        return claim
    return replace(claim, kind=kind, meta=meta)
