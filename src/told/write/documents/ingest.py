"""A document as memories: its text as evidence, its parts as facts below one that stands for the whole.

What tells one document from another is its source and its scope. The same content again changes nothing; other content
is a revision: parts that stayed keep their threads, parts that changed supersede those before them, and what is no
longer in it is retracted as revised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.core.blob import BLOBS_KEY, Blob
from told.core.entry import (
    NO_META,
    Asserted,
    Claim,
    Draft,
    Evidence,
    Linked,
    Observed,
    Retracted,
    Verb,
)
from told.core.fact import Fact
from told.core.query import Event, Receipt
from told.core.scope import Scope
from told.core.text import make_snippet
from told.core.when import ALWAYS, Interval
from told.flow import Flow, call
from told.ledger.commit import commit_batch, retry_on_conflict
from told.ledger.consume import drain_consumer
from told.ports import Batch, Guard, NoEvidence, ThreadAt
from told.write import embed
from told.write.desk import WriteContext
from told.write.documents.document import Document, Section, split_parts
from told.write.messages import DOCUMENT, NAME_LIMIT

PART_OF: Final = "part_of"
SUPERSEDES: Final = "supersedes"
REVISED: Final = "revised"
OUTLINE_LIMIT: Final = 4000
"""The most characters of the fact that stands for a document of many parts: its title and its headings."""

UNCHANGED_WARNING: Final = "The document has not changed; it keeps the metadata it has."


@dataclass(frozen=True, slots=True)
class IncomingDocument:
    """A document on its way in: what it is, where it comes from, its bytes, and what the caller says of it."""

    document: Document
    source: str
    blob: Blob
    name: str
    meta: Mapping[str, Any]
    valid: Interval = ALWAYS
    expires: int | None = None

    def build_evidence(self) -> Evidence:
        """The document as it was read, verbatim."""
        meta = {
            "title": self.document.title,
            "media_type": self.document.media_type,
            BLOBS_KEY: [self.blob.hash],
        }
        text = self.document.text or f"[document: {self.name}]"
        return Evidence(text, DOCUMENT, self.name, self.valid.start, DOCUMENT, self.source, meta)

    def build_claim(
        self,
        text: str,
        evidence: str,
        about: Mapping[str, Any],
        span: tuple[int, int] | None = None,
    ) -> Claim:
        """Something the document says, told by the document itself."""
        return Claim(
            text,
            DOCUMENT,
            valid=self.valid,
            expires=self.expires,
            evidence=evidence,
            span=span,
            role=DOCUMENT,
            actor=self.name,
            said_at=self.valid.start,
            source=self.source,
            meta={**self.meta, DOCUMENT: dict(about)},
        )


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What is held of a document already: the fact that stands for it, and its parts."""

    root: Fact | None = None
    parts: tuple[Fact, ...] = ()


@dataclass(slots=True)
class IngestPlan:
    """What an ingestion will commit."""

    drafts: list[Draft]
    guards: list[Guard]


def ingest_document(
    ctx: WriteContext,
    scope: Scope,
    document: Document,
    *,
    source: str,
    data: bytes,
    name: str = "",
    metadata: Mapping[str, Any] = NO_META,
    valid: Interval = ALWAYS,
    expires: int | None = None,
) -> Flow[Receipt]:
    """Remember a document: add it, revise the one of the same source, or do nothing if that is the same."""
    blob = Blob.from_bytes(data, document.media_type)
    display_name = make_snippet(name or source, NAME_LIMIT)
    incoming = IncomingDocument(document, source, blob, display_name, metadata, valid, expires)

    def decide() -> Flow[Receipt]:
        stored = yield from _load_stored(ctx, scope, source)
        if (
            stored.root is not None
            and _get_document_meta(stored.root).get("sha256") == document.sha256
        ):
            warnings = (*document.warnings, *((UNCHANGED_WARNING,) if metadata else ()))
            return Receipt(
                (_build_event("NONE", stored.root.id, stored.root.text, incoming),), (), warnings
            )
        return (yield from _commit_revision(ctx, scope, incoming, stored))

    receipt = yield from retry_on_conflict(ctx.settings.conflict_retries, decide)
    return (yield from _embed_after_commit(ctx, scope.account, receipt))


def _load_stored(ctx: WriteContext, scope: Scope, source: str) -> Flow[StoredDocument]:
    """What exactly this scope holds of a source's document."""
    evidence_rows = yield from call(
        ctx.store.evidence_rows, scope.account, scope=scope, source=source
    )
    evidence_ids = [
        evidence_row.id for evidence_row in evidence_rows if evidence_row.scope == scope
    ]
    threads = (
        (yield from call(ctx.store.threads_from_evidence, scope.account, evidence_ids))
        if evidence_ids
        else ()
    )
    facts: list[Fact] = []
    for thread in threads:
        fact = yield from call(ctx.store.get_fact, scope.account, thread)
        if fact is not None and fact.kind == DOCUMENT and fact.source == source:
            facts.append(fact)
    roots = [fact for fact in facts if "sha256" in _get_document_meta(fact)]
    root = roots[-1] if roots else None
    return StoredDocument(root, tuple(fact for fact in facts if fact is not root))


def _get_document_meta(fact: Fact) -> Mapping[str, Any]:
    """What told itself noted of a document's fact."""
    meta = fact.meta.get(DOCUMENT)
    return meta if isinstance(meta, dict) else NO_META


def _commit_revision(
    ctx: WriteContext, scope: Scope, incoming: IncomingDocument, stored: StoredDocument
) -> Flow[Receipt]:
    """Commit a document that is new, or whose content is."""
    document_evidence = incoming.build_evidence()
    existing = yield from call(
        ctx.store.lookup_existing, scope, (), (document_evidence.digest(),), None
    )
    evidence = existing.evidence.get(document_evidence.digest())
    plan = IngestPlan([], [])
    if evidence is None:
        evidence = ctx.id_generator.new_id()
        plan.drafts.append(Draft(Observed(evidence, document_evidence), scope, ctx.author))
        plan.guards.append(NoEvidence(scope, (document_evidence.digest(),)))
    parts = split_parts(incoming.document, ctx.settings.document_part)
    text = _build_outline(incoming, parts) if len(parts) > 1 else document_evidence.content
    root = ctx.id_generator.new_id() if stored.root is None else stored.root.id
    since = None if stored.root is None else stored.root.created_at
    about = {
        "title": incoming.document.title,
        "media_type": incoming.document.media_type,
        "sha256": incoming.document.sha256,
        "size": incoming.blob.size,
        "parts": len(parts),
    }
    span = (0, len(text)) if len(parts) == 1 else None
    plan.drafts.append(
        Draft(
            Asserted(root, incoming.build_claim(text, evidence, about, span), since),
            scope,
            ctx.author,
        )
    )
    plan.guards.append(ThreadAt(root, None if stored.root is None else stored.root.seq))
    _draft_parts(
        ctx, scope, incoming, plan, stored, parts if len(parts) > 1 else (), (root, evidence)
    )
    vectors, warnings = yield from embed.embed_before_commit(
        ctx.store, ctx.embedder, plan.drafts, {}, embed.EMPTY_LOOKUP
    )
    model = ctx.embedder.model if ctx.embedder else None
    batch = Batch(
        scope.account, plan.drafts, plan.guards, -1, None, vectors, model, blobs=(incoming.blob,)
    )
    entries = yield from commit_batch(ctx.store, batch)
    previous_text = None if stored.root is None else stored.root.text
    event = _build_event(
        "ADD" if stored.root is None else "UPDATE", root, text, incoming, previous_text
    )
    return Receipt((event,), (), (*incoming.document.warnings, *warnings), entries[0].tx)


def _build_outline(incoming: IncomingDocument, parts: Sequence[Section]) -> str:
    """The fact that stands for a document of many parts: what it is called and what it speaks of."""
    sections = incoming.document.sections or parts
    titles = dict.fromkeys(section.title for section in sections if section.title)
    return "\n".join(
        [incoming.document.title, *(title for title in titles if title != incoming.document.title)]
    )[:OUTLINE_LIMIT]


def _draft_parts(
    ctx: WriteContext,
    scope: Scope,
    incoming: IncomingDocument,
    plan: IngestPlan,
    stored: StoredDocument,
    parts: Sequence[Section],
    root_and_evidence: tuple[str, str],
) -> None:
    """The drafts for a document's parts: what stayed is left alone, what is new is asserted, what is gone goes."""
    root, evidence = root_and_evidence
    removed = {fact.text: fact for fact in stored.parts}
    texts = {incoming.document.text[part.start : part.end].strip(): part for part in parts}
    for text in texts:
        removed.pop(text, None)
    kept_texts = {fact.text for fact in stored.parts if fact.text in texts}
    previous_by_section = {
        _get_document_meta(fact).get("section"): fact for fact in removed.values()
    }
    for text, part in texts.items():
        if text in kept_texts:
            continue
        thread, about = (
            ctx.id_generator.new_id(),
            {"title": incoming.document.title, "section": part.title},
        )
        claim = incoming.build_claim(text, evidence, about, (part.start, part.end))
        verbs: list[Verb] = [Asserted(thread, claim), Linked(thread, PART_OF, root)]
        if (previous := previous_by_section.pop(part.title, None)) is not None:
            verbs.append(Linked(thread, SUPERSEDES, previous.id))
        plan.drafts += [Draft(verb, scope, ctx.author) for verb in verbs]
    for fact in stored.parts:
        if fact.text not in texts:
            plan.drafts.append(Draft(Retracted(fact.id, REVISED), scope, ctx.author))
            plan.guards.append(ThreadAt(fact.id, fact.seq))


def _build_event(
    event: str, thread: str, text: str, incoming: IncomingDocument, previous_text: str | None = None
) -> Event:
    return Event(event, thread, text, previous_text, DOCUMENT, incoming.name)


def _embed_after_commit(ctx: WriteContext, account: str, receipt: Receipt) -> Flow[Receipt]:
    """Let a remote embedder see what was just committed; if it cannot, the words are already searchable."""
    if ctx.embedder is None or ctx.embedder.local or receipt.tx is None:
        return receipt
    failure = yield from drain_consumer(
        ctx.store,
        account,
        embed.make_embedding_consumer(ctx.store, ctx.embedder, account),
        batch=ctx.settings.consumer_batch,
        attempts=ctx.settings.consumer_attempts,
    )
    if failure is None:
        return receipt
    return replace(
        receipt, warnings=(*receipt.warnings, f"Not embedded yet, found by words only: {failure}")
    )
