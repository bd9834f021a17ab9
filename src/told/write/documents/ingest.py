"""A document as memories: its text as evidence, its parts as facts below one that stands for the whole.

What tells one document from another is its source and its scope. The same content again changes nothing; other content
is a revision: parts that stayed keep their threads, parts that changed supersede those before them, and what is no
longer in it is retracted as revised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.core.blob import NAMED, Blob
from told.core.entry import NO_META, Asserted, Claim, Draft, Evidence, Linked, Observed, Retracted, Verb
from told.core.fact import Fact
from told.core.query import Event, Receipt
from told.core.scope import Scope
from told.core.text import snippet
from told.core.when import ALWAYS, Interval
from told.flow import Flow, call
from told.ledger.commit import commit, decided
from told.ledger.consume import drain
from told.ports import Batch, Guard, NoEvidence, ThreadAt
from told.write import embed
from told.write.desk import Desk
from told.write.documents.document import Document, Section, parts
from told.write.messages import DOCUMENT, NAME_LIMIT

PART_OF: Final = "part_of"
SUPERSEDES: Final = "supersedes"
REVISED: Final = "revised"
OUTLINE: Final = 4000
"""The most characters of the fact that stands for a document of many parts: its title and its headings."""

SAME: Final = "The document has not changed; it keeps the metadata it has."


@dataclass(frozen=True, slots=True)
class Paper:
    """A document on its way in: what it is, where it comes from, its bytes, and what the caller says of it."""

    document: Document
    source: str
    blob: Blob
    name: str
    meta: Mapping[str, Any]
    valid: Interval = ALWAYS
    expires: int | None = None

    def evidence(self) -> Evidence:
        """The document as it was read, verbatim."""
        known = {"title": self.document.title, "media_type": self.document.media_type, NAMED: [self.blob.hash]}
        text = self.document.text or f"[document: {self.name}]"
        return Evidence(text, DOCUMENT, self.name, self.valid.start, DOCUMENT, self.source, known)

    def claim(self, text: str, evidence: str, about: Mapping[str, Any], span: tuple[int, int] | None = None) -> Claim:
        """Something the document says, told by the document itself."""
        return Claim(
            text, DOCUMENT, valid=self.valid, expires=self.expires, evidence=evidence, span=span, role=DOCUMENT,
            actor=self.name, said_at=self.valid.start, source=self.source, meta={**self.meta, DOCUMENT: dict(about)},
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Held:
    """What is held of a document already: the fact that stands for it, and its parts."""

    root: Fact | None = None
    parts: tuple[Fact, ...] = ()


@dataclass(slots=True)
class Plan:
    """What an ingestion will commit."""

    drafts: list[Draft]
    guards: list[Guard]


def ingest(
    desk: Desk, scope: Scope, document: Document, *, source: str, data: bytes, name: str = "",
    metadata: Mapping[str, Any] = NO_META, valid: Interval = ALWAYS, expires: int | None = None,
) -> Flow[Receipt]:  # fmt: skip
    """Remember a document: add it, revise the one of the same source, or do nothing if that is the same."""
    blob = Blob.of(data, document.media_type)
    called = snippet(name or source, NAME_LIMIT)
    paper = Paper(document, source, blob, called, metadata, valid, expires)

    def decide() -> Flow[Receipt]:
        held = yield from _held(desk, scope, source)
        if held.root is not None and _about(held.root).get("sha256") == document.sha256:
            warnings = (*document.warnings, *((SAME,) if metadata else ()))
            return Receipt((_event("NONE", held.root.id, held.root.text, paper),), (), warnings)
        return (yield from _revised(desk, scope, paper, held))

    receipt = yield from decided(desk.settings.conflict_retries, decide)
    return (yield from _caught_up(desk, scope.account, receipt))


def _held(desk: Desk, scope: Scope, source: str) -> Flow[Held]:
    """What exactly this scope holds of a source's document."""
    witnesses = yield from call(desk.store.witnesses, scope.account, scope=scope, source=source)
    ours = [witness.id for witness in witnesses if witness.scope == scope]
    threads = (yield from call(desk.store.derived, scope.account, ours)) if ours else ()
    facts: list[Fact] = []
    for thread in threads:
        fact = yield from call(desk.store.fact, scope.account, thread)
        if fact is not None and fact.kind == DOCUMENT and fact.source == source:
            facts.append(fact)
    roots = [fact for fact in facts if "sha256" in _about(fact)]
    root = roots[-1] if roots else None
    return Held(root, tuple(fact for fact in facts if fact is not root))


def _about(fact: Fact) -> Mapping[str, Any]:
    """What told itself noted of a document's fact."""
    noted = fact.meta.get(DOCUMENT)
    return noted if isinstance(noted, dict) else NO_META


def _revised(desk: Desk, scope: Scope, paper: Paper, held: Held) -> Flow[Receipt]:
    """Commit a document that is new, or whose content is."""
    said = paper.evidence()
    known = yield from call(desk.store.known, scope, (), (said.digest(),), None)
    evidence = known.evidence.get(said.digest())
    plan = Plan([], [])
    if evidence is None:
        evidence = desk.mint.id()
        plan.drafts.append(Draft(Observed(evidence, said), scope, desk.author))
        plan.guards.append(NoEvidence(scope, (said.digest(),)))
    pieces = parts(paper.document, desk.settings.document_part)
    text = _outline(paper, pieces) if len(pieces) > 1 else said.content
    root = desk.mint.id() if held.root is None else held.root.id
    since = None if held.root is None else held.root.created_at
    about = {
        "title": paper.document.title, "media_type": paper.document.media_type, "sha256": paper.document.sha256,
        "size": paper.blob.size, "parts": len(pieces),
    }  # fmt: skip
    span = (0, len(text)) if len(pieces) == 1 else None
    plan.drafts.append(Draft(Asserted(root, paper.claim(text, evidence, about, span), since), scope, desk.author))
    plan.guards.append(ThreadAt(root, None if held.root is None else held.root.seq))
    _parts(desk, scope, paper, plan, held, pieces if len(pieces) > 1 else (), (root, evidence))
    vectors, warnings = yield from embed.before_commit(desk.store, desk.embedder, plan.drafts, {}, embed.UNSEEN)
    model = desk.embedder.model if desk.embedder else None
    batch = Batch(scope.account, plan.drafts, plan.guards, -1, None, vectors, model, blobs=(paper.blob,))
    entries = yield from commit(desk.store, batch)
    before = None if held.root is None else held.root.text
    event = _event("ADD" if held.root is None else "UPDATE", root, text, paper, before)
    return Receipt((event,), (), (*paper.document.warnings, *warnings), entries[0].tx)


def _outline(paper: Paper, pieces: Sequence[Section]) -> str:
    """The fact that stands for a document of many parts: what it is called and what it speaks of."""
    sections = paper.document.sections or pieces
    titles = dict.fromkeys(section.title for section in sections if section.title)
    return "\n".join([paper.document.title, *(title for title in titles if title != paper.document.title)])[:OUTLINE]


def _parts(
    desk: Desk, scope: Scope, paper: Paper, plan: Plan, held: Held, pieces: Sequence[Section], whole: tuple[str, str]
) -> None:
    """The drafts for a document's parts: what stayed is left alone, what is new is asserted, what is gone goes."""
    root, evidence = whole
    gone = {fact.text: fact for fact in held.parts}
    texts = {paper.document.text[piece.start : piece.end].strip(): piece for piece in pieces}
    for text in texts:
        gone.pop(text, None)
    stayed = {fact.text for fact in held.parts if fact.text in texts}
    before = {_about(fact).get("section"): fact for fact in gone.values()}
    for text, piece in texts.items():
        if text in stayed:
            continue
        thread, about = desk.mint.id(), {"title": paper.document.title, "section": piece.title}
        claim = paper.claim(text, evidence, about, (piece.start, piece.end))
        verbs: list[Verb] = [Asserted(thread, claim), Linked(thread, PART_OF, root)]
        if (old := before.pop(piece.title, None)) is not None:
            verbs.append(Linked(thread, SUPERSEDES, old.id))
        plan.drafts += [Draft(verb, scope, desk.author) for verb in verbs]
    for fact in held.parts:
        if fact.text not in texts:
            plan.drafts.append(Draft(Retracted(fact.id, REVISED), scope, desk.author))
            plan.guards.append(ThreadAt(fact.id, fact.seq))


def _event(event: str, thread: str, text: str, paper: Paper, before: str | None = None) -> Event:
    return Event(event, thread, text, before, DOCUMENT, paper.name)


def _caught_up(desk: Desk, account: str, receipt: Receipt) -> Flow[Receipt]:
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
