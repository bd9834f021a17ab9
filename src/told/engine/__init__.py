"""The engine: the table of contents. Each verb is one flow and names the policy action it needs; no logic is here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from told.engine.base import VERB_ACTIONS as VERB_ACTIONS
from told.engine.base import check_memory_id, requires_action
from told.engine.concepts import ConceptVerbs
from told.engine.reflecting import ReflectionVerbs
from told.engine.tiering import TierVerbs
from told.errors import EmbeddingError, InvalidInput, NotFoundError, ToldError
from told.flow import Flow, call, run
from told.ids import HASH_ALGORITHM, canonical_json, sha256
from told.ingest import edit, embedding, gate, messages, queue
from told.ingest import pipeline as writing
from told.ingest.context import ExtractionOptions, IdempotencyKey
from told.ingest.edit import MemoryUpdate
from told.ingest.images import read_images
from told.ledger import commit as keeping
from told.ledger import erase as erasing
from told.ledger import export, verify
from told.ledger import history as past
from told.ledger import verify as proof
from told.ledger.commit import ScopedBlob
from told.ledger.consumer import Failure, catch_failure
from told.ledger.erase import ErasureClosure
from told.ledger.views import build_fold
from told.maintenance import importance, reconsolidation
from told.model.beliefs import BeliefConflicts
from told.model.entry import Blob, Draft, Erased, Linked, is_blob_hash
from told.model.fact import EvidenceRow, Fact
from told.model.policy import Action
from told.model.query import (
    Bundle,
    Certificate,
    FactQuery,
    Receipt,
    Trace,
    VerifyResult,
    exclude_unlisted,
)
from told.model.scope import Scope
from told.ports import VIEWS, Embedder, View
from told.retrieval import context, listing, pipeline
from told.retrieval import pipeline as reading
from told.retrieval.candidates import find_denials
from told.retrieval.listing import OwnerStatistics
from told.retrieval.pipeline import WhyNot
from told.retrieval.request import (
    MAX_CHANGES,
    build_fact_query,
    drop_query_options,
    parse_belief,
    parse_context_request,
    parse_flag,
    parse_int,
    parse_lens,
    parse_limit,
    parse_min_score,
    parse_reference_date,
    resolve_scope_and_filter,
    restrict_to_kinds,
    warn_new_kind,
    warn_unknown_kinds,
)
from told.retrieval.state import SearchRequest, SearchResult
from told.text.tokens import format_value, validate_label, validate_text

if TYPE_CHECKING:
    from told.ingest.documents import Document

T = TypeVar("T")
W = TypeVar("W", SearchResult, Bundle, Receipt)


class Engine(ConceptVerbs, TierVerbs, ReflectionVerbs):
    """Every verb."""

    __slots__ = ()

    # Writing ----------------------------------------------------------------------------------------------------------

    @requires_action(Action.WRITE)
    def add(
        self,
        content: Any,
        ids: Mapping[str, Any],
        *,
        metadata: Any = None,
        timestamp: Any = None,
        expires: Any = None,
        kind: str = "memory",
        source: Any = None,
        key: Any = None,
        options: ExtractionOptions | None = None,
    ) -> Flow[Receipt]:
        """Remember what was said, understood by the usual extractor unless the call names another."""
        scope = self.resolve_scope(ids)
        parsed = messages.parse_messages(
            content, metadata=metadata, timestamp=timestamp, source=source, settings=self.settings
        )
        expires_at = messages.parse_expiry(expires, self.settings)
        resolved_options = self.extraction_options() if options is None else options
        key_name = None if key is None else validate_label(key, "idempotency_key", limit=256)
        idempotency_key = (
            None
            if key_name is None
            else IdempotencyKey(
                key_name, _request_digest(scope, parsed, expires_at, kind, resolved_options)
            )
        )
        if parsed.image_count:
            parsed = yield from read_images(parsed, self.image_context)
        ctx = self.write_context
        warnings = yield from self._warn_unknown_kind(scope, kind)
        request = writing.build_request(
            ctx, scope, parsed, expires=expires_at, kind=kind, options=resolved_options
        )
        receipt = yield from writing.write_memories(ctx, request, idempotency_key)
        return add_warnings(receipt, warnings)

    @requires_action(Action.WRITE)
    def update(
        self,
        id: str,
        *,
        text: str | None,
        metadata: Any,
        expires: Any,
        set_expiry: bool,
        timestamp: Any,
        ids: Mapping[str, Any],
    ) -> Flow[Receipt]:
        """A new version of a memory."""
        if text is None and metadata is None and timestamp is None and not set_expiry:
            raise InvalidInput(
                "Nothing to update.",
                hint="Give a text, metadata, a timestamp or an expiration_date.",
            )
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise InvalidInput("The new text is empty.", hint="To forget a memory use delete().")
        new_text, warnings = (
            (None, ())
            if text is None
            else gate.screen_text(
                validate_text(text, limit=self.settings.text_limit), self.settings
            )
        )
        changes = MemoryUpdate(
            new_text,
            None if metadata is None else messages.check_metadata(metadata, self.settings),
            set_expiry,
            messages.parse_expiry(expires, self.settings),
            messages.parse_valid_since(timestamp, self.settings),
        )
        receipt = yield from edit.update_memory(
            self.write_context,
            self.account,
            check_memory_id(id),
            changes,
            self.resolve_optional_scope(ids),
        )
        return replace(receipt, warnings=(*warnings, *receipt.warnings)) if warnings else receipt

    @requires_action(Action.WRITE)
    def retract(self, id: str, *, why: str, ids: Mapping[str, Any]) -> Flow[Receipt]:
        """Give up a memory; the past keeps it."""
        why = validate_text(why, limit=256)
        return (
            yield from edit.retract_memory(
                self.write_context,
                self.account,
                check_memory_id(id),
                why,
                self.resolve_optional_scope(ids),
            )
        )

    @requires_action(Action.WRITE)
    def retract_all(self, ids: Mapping[str, Any], *, why: str) -> Flow[Receipt]:
        """Give up everything a scope holds."""
        scope = self.resolve_scope(ids)
        now = yield from self.resolve_point()
        everything = build_fact_query(scope, now, None, limit=None, show_expired=True)
        return (yield from edit.retract_all(self.write_context, everything, why))

    @requires_action(Action.WRITE)
    def link(
        self, src: str, rel: str, dst: str, *, weight: float, metadata: Any, ids: Mapping[str, Any]
    ) -> Flow[Receipt]:
        """Say that one memory bears on another."""
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InvalidInput(f"weight must be a number from 0 to 1, not {format_value(weight)}.")
        meta = messages.check_metadata(metadata, self.settings)
        link = Linked(
            check_memory_id(src),
            validate_label(rel, "rel", limit=64),
            check_memory_id(dst),
            float(weight),
            meta,
        )
        return (yield from edit.link_memories(self.write_context, self.resolve_scope(ids), link))

    @requires_action(Action.WRITE)
    def upload(
        self,
        content: Any,
        ids: Mapping[str, Any],
        *,
        name: Any = None,
        source: Any = None,
        media_type: Any = None,
        metadata: Any = None,
        timestamp: Any = None,
        expires: Any = None,
    ) -> Flow[tuple[Receipt, Document]]:
        """Remember a document: add it, revise the one of the same source, or do nothing if that is the same."""
        meta = messages.check_metadata(metadata, self.settings)
        valid, expires_at = (
            messages.parse_valid_since(timestamp, self.settings),
            messages.parse_expiry(expires, self.settings),
        )
        from told.ingest import documents

        images = self.build_image_context(self.settings.document_limit)
        return (
            yield from documents.upload_document(
                self.write_context,
                self.resolve_scope(ids),
                content,
                images,
                name=name,
                source=source,
                media_type=media_type,
                metadata=meta,
                valid=valid,
                expires=expires_at,
            )
        )

    # Reading ----------------------------------------------------------------------------------------------------------

    @requires_action(Action.READ_CONTENT)
    def blob(self, hash: str, *, ids: Mapping[str, Any]) -> Flow[Blob]:
        """The bytes of a document or an image, which evidence of the scope names."""
        scope = self.resolve_scope(ids)
        holders = yield from keeping.map_blob_evidence(self.store, scope)
        is_named = is_blob_hash(hash) and hash in holders
        blobs = (yield from call(self.store.get_blobs, self.account, [hash])) if is_named else {}
        content = blobs.get(hash)
        if content is None or not (yield from self._is_evidence_visible(holders[hash])):
            raise NotFoundError(
                f"There is no blob {format_value(hash)} here.", hint="List them with blobs()."
            )
        return content

    @requires_action(Action.READ_CONTENT)
    def blobs(self, ids: Mapping[str, Any]) -> Flow[Sequence[ScopedBlob]]:
        """Every document and image that evidence of the scope names."""
        visible: list[ScopedBlob] = []
        for item in (yield from keeping.list_scope_blobs(self.store, self.resolve_scope(ids))):
            visible += [item] if (yield from self._is_evidence_visible(item.evidence_rows)) else []
        return visible

    @requires_action(Action.READ_CONTENT)
    def search(self, query: str, ids: Mapping[str, Any], **options: Any) -> Flow[SearchResult]:
        """The facts that answer a query best."""
        request, ctx = (
            (yield from self._build_search_request(query, ids, **options)),
            self.read_context,
        )
        result = yield from reading.search(ctx, request)
        return add_warnings(result, (yield from warn_unknown_kinds(ctx, request.fact_query)))

    @requires_action(Action.READ_CONTENT)
    def explain(
        self, query: str, ids: Mapping[str, Any], **options: Any
    ) -> Flow[tuple[SearchResult, Trace]]:
        """A search with every candidate accounted for."""
        request = yield from self._build_search_request(query, ids, **options)
        result, trace = yield from reading.explain(self.read_context, request)
        return add_warnings(
            result, (yield from warn_unknown_kinds(self.read_context, request.fact_query))
        ), trace

    @requires_action(Action.READ_CONTENT)
    def why_not(self, query: str, id: str, ids: Mapping[str, Any], **options: Any) -> Flow[WhyNot]:
        """What keeps a memory out of a search, or where it stands in it."""
        request = yield from self._build_search_request(query, ids, **options)
        return (
            yield from pipeline.explain_why_not(self.read_context, request, check_memory_id(id))
        )

    @requires_action(Action.READ_CONTENT)
    def context(
        self,
        query: str | None,
        ids: Mapping[str, Any],
        *,
        budget: Any = None,
        format: Any = None,
        tail: Any = None,
        limit: Any = None,
        top_k: Any = None,
        **options: Any,
    ) -> Flow[Bundle]:
        """A block of memories that fits a token budget."""
        context_request = parse_context_request(budget, format, tail, self.settings)
        is_unlimited = limit is None and top_k is None
        size = (
            context.estimate_max_items(context_request.budget)
            if is_unlimited
            else parse_limit(limit, top_k, self.settings)
        )
        if query is None:
            request, (fact_query, _) = (
                None,
                (yield from self._build_fact_query(ids, limit=size, **drop_query_options(options))),
            )
        else:
            request = replace(
                (yield from self._build_search_request(query, ids, limit=size, **options)),
                deep=False,
            )
            fact_query = request.fact_query
        result = yield from context.build_context(
            self.read_context, request, fact_query, context_request
        )
        return add_warnings(result, (yield from warn_unknown_kinds(self.read_context, fact_query)))

    @requires_action(Action.READ_CONTENT)
    def get(
        self, id: str, *, as_of: Any, valid_at: Any, ids: Mapping[str, Any]
    ) -> Flow[Fact | None]:
        """One memory, now or as it was."""
        at = yield from self.resolve_point(as_of, valid_at)
        fact = yield from call(self.store.get_fact, self.account, check_memory_id(id), at)
        scope = self.resolve_optional_scope(ids)
        is_hidden = (
            fact is None
            or (scope and not scope.covers(fact.scope))
            or find_denials([fact], self.read_context.guards)
        )
        return None if is_hidden else fact

    @requires_action(Action.READ_CONTENT)
    def get_all(
        self, ids: Mapping[str, Any], *, offset: int = 0, belief: Any = None, **options: Any
    ) -> Flow[tuple[Sequence[Fact], BeliefConflicts, Sequence[str]]]:
        """Everything a scope holds, but for what only stands behind it; and what of it contradicts what."""
        fact_query, _ = yield from self._build_fact_query(ids, offset=offset, **options)
        side = None if belief is None else parse_belief(belief)
        facts, sides = yield from reading.list_facts(
            self.read_context, exclude_unlisted(fact_query), side
        )
        return facts, sides, (yield from warn_unknown_kinds(self.read_context, fact_query))

    @requires_action(Action.READ_CONTENT)
    def history(self, id: str, *, ids: Mapping[str, Any]) -> Flow[Sequence[past.ThreadChange]]:
        """Everything that happened to a memory."""
        changes = yield from past.load_history(
            self.store, self.account, check_memory_id(id), self.resolve_optional_scope(ids)
        )
        versions = yield from call(
            self.store.find_versions, self.account, seqs=[change.seq for change in changes]
        )
        return [] if find_denials(versions, self.read_context.guards) else changes

    @requires_action(Action.READ_CONTENT)
    def timeline(
        self, ids: Mapping[str, Any], *, limit: Any = None
    ) -> Flow[Sequence[past.ThreadChange]]:
        """Everything a scope came to believe or gave up; with a limit, the newest of it."""
        newest = 0 if limit is None else parse_int(limit, "limit", 1, MAX_CHANGES)
        scope = self.resolve_scope(ids)
        hidden = yield from self._find_hidden_ids(scope)
        changes = yield from past.load_timeline(self.store, scope)
        return [change for change in changes if change.id not in hidden][-newest:]

    @requires_action(Action.READ_CONTENT)
    def diff(self, before: Any, after: Any, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        """What changed in a scope between two moments."""
        scope = self.resolve_scope(ids)
        hidden = yield from self._find_hidden_ids(scope)
        first, last = (
            (yield from self.resolve_point(before)),
            (yield from self.resolve_point(after)),
        )
        return (yield from past.diff_beliefs(self.store, scope, first, last, hidden))

    # Forgetting -------------------------------------------------------------------------------------------------------

    @requires_action(Action.REQUEST_DELETION)
    def reach(self, id: str | None, ids: Mapping[str, Any], *, source: Any) -> Flow[ErasureClosure]:
        """What an erasure would destroy: the target, its evidence and everything derived from it."""
        scoped = {name: value for name, value in ids.items() if value is not None}
        if (id is not None) + bool(scoped) + (source is not None) != 1:
            raise InvalidInput(
                "Say what to erase: a memory id, a scope or a source, and only one of them."
            )
        if id is not None:
            closure = yield from erasing.collect_thread_closure(
                self.store, self.account, check_memory_id(id)
            )
        elif source is not None:
            closure = yield from erasing.collect_source_closure(
                self.store, self.account, messages.check_source(source)
            )
        else:
            closure = yield from erasing.collect_scope_closure(self.store, self.resolve_scope(ids))
        if not closure.seqs:
            hint = "See whose memories there are with users()." if scoped else ""
            raise NotFoundError("There is nothing to erase there.", hint=hint)
        return closure

    @requires_action(Action.REQUEST_DELETION)
    def erase(
        self, id: str | None, ids: Mapping[str, Any], *, source: Any, why: str
    ) -> Flow[Certificate]:
        """Destroy content and everything derived from it, and certify it."""
        why = validate_text(why, limit=256)
        closure = yield from self.reach(id, ids, source=source)
        yield from queue.redact_faults(self.store, self.account, closure.seqs)
        yield from importance.redact_faults(self.store, self.account, closure.seqs)
        yield from reconsolidation.redact_reflection_faults(self.store, self.account)
        damage = yield from self._drop_topic_notes(closure.threads)
        try:
            certificate = yield from erasing.destroy_closure(self.store, self.account, closure, why)
        finally:
            self.hot_buffers.drop_threads(self.account, closure.threads)
        warnings = (
            *(yield from self._embed_missing()),
            *(yield from self._repair_topics(damage, closure.threads)),
        )
        return replace(certificate, warnings=(*certificate.warnings, *warnings))

    @requires_action(Action.REQUEST_DELETION)
    def reset(self) -> Flow[None]:
        """Destroy the account's ledger and begin a new chain that remembers only how long the old one was."""
        head = yield from call(self.store.get_head, self.account)
        summary = {"entries": head.seq, "head": f"{HASH_ALGORITHM}:{head.hash.hex()}"}
        yield from call(
            self.store.reset,
            self.account,
            Draft(Erased((), "reset", summary), None, self.caller.name),
        )
        self.hot_buffers.forget_account(self.account)
        self.extraction.echoes.forget_account(self.account)
        yield from call(self.store.scrub)

    # Care -------------------------------------------------------------------------------------------------------------

    @requires_action(Action.ADMINISTER)
    def verify(self) -> Flow[tuple[VerifyResult, Sequence[str]]]:
        """Prove the ledger, check the file and the index, and that every entry is in the views as the ledger has it."""
        yield from call(self.store.scrub)
        first_hash = yield from self._read_first_hash()
        result = yield from self._verify_once()
        while not _is_intact(result) and first_hash != (
            first_hash := (yield from self._read_first_hash())
        ):  # it was reset meanwhile
            result = yield from self._verify_once()
        return result

    @requires_action(Action.ADMINISTER)
    def rebuild(self, views: Sequence[View] | None = None) -> Flow[Mapping[str, int]]:
        """Drop views and fold them again from the ledger; no model is asked."""
        selected = VIEWS if views is None else _check_views(views)
        row_counts = yield from call(
            self.store.rebuild, self.account, selected, build_fold(selected)
        )
        yield from self._rebuild_topics()
        return row_counts

    @requires_action(Action.DERIVE_EMBEDDINGS)
    def reindex(self, embedder: Embedder) -> Flow[int]:
        """Embed everything with a model while searches go on with the old one, then switch."""
        outcome = yield from catch_failure(
            embedding.reindex(self.store, embedder, self.settings.conflict_retries)
        )
        return unwrap_embedding(embedder.model, outcome)

    @requires_action(Action.READ_METADATA)
    def stats(self) -> Flow[Mapping[str, Any]]:
        """Counts and sizes."""
        counts = yield from call(self.store.get_stats, self.account)
        spent = {} if self.meter is None else self.meter.by_operation
        usage = {"usage": {name: cost.as_dict() for name, cost in spent.items()}} if spent else {}
        waiting = yield from self.waiting()
        return {
            **counts,
            "recalls": counts["recalls"] + self.hot_buffers.count_pending(self.account),
            "pending": waiting,
            **usage,
        }

    @requires_action(Action.READ_METADATA)
    def users(self, *, type: Any = None) -> Flow[Sequence[OwnerStatistics]]:
        """Whose memories there are, how many, and since when; never what they say."""
        types = listing.parse_owner_types(type)
        return listing.summarise_owners(
            (yield from call(self.store.scope_tallies, self.account)), types
        )

    @requires_action(Action.EXPORT_CLAIMS)
    def export(self, write: Callable[[bytes], Any]) -> Flow[int]:
        """Write the account's ledger as one portable JSONL."""
        return (yield from export.export_ledger(self.store, self.account, write))

    @requires_action(Action.ADMINISTER)
    def import_(self, lines: Iterable[bytes | str]) -> Flow[tuple[int, tuple[str, ...]]]:
        """Append an exported ledger to the account it continues; a tombstone in it erases here too."""
        warnings = yield from self.flush_accesses()
        before = yield from call(self.store.get_head, self.account)
        try:
            imported, missing = yield from export.import_ledger(self.store, self.account, lines)
        finally:
            self.hot_buffers.forget_account(self.account)
        yield from self._invalidate_topics(before.seq)
        yield from call(self.store.scrub)
        return imported, (
            *warnings,
            *missing,
            *((yield from self._embed_missing()) if imported else ()),
        )

    @requires_action(Action.ADMINISTER)
    def backup(
        self, target: Path, staging: Callable[[Path], AbstractContextManager[Path]] = nullcontext
    ) -> Flow[None]:
        """Write a consistent copy of the store while others go on."""
        yield from call(run, self._copy_to(target, staging))

    # Shared -----------------------------------------------------------------------------------------------------------

    def _copy_to(
        self, target: Path, staging: Callable[[Path], AbstractContextManager[Path]]
    ) -> Flow[None]:
        """Copy and clear up, as one effect: whoever is cancelled meanwhile leaves no half of it."""
        with staging(target) as partial:
            yield from call(self.store.backup, partial)

    def _read_first_hash(self) -> Flow[list[bytes]]:
        """The mark of the ledger's first entry, which a reset changes and nothing else does."""
        return [
            entry.hash for entry in (yield from call(self.store.scan_entries, self.account, 0, 1))
        ]

    def _verify_once(self) -> Flow[tuple[VerifyResult, Sequence[str]]]:
        fates = verify.LedgerReplay()
        verify_result = yield from proof.verify_ledger(
            self.store, self.account, fates.apply_entries
        )
        problems = yield from call(self.store.check_integrity)
        if verify_result.ok and not problems:
            problems = yield from verify.find_view_mismatches(self.store, self.account, fates)
        return verify_result, problems

    def _embed_missing(self) -> Flow[tuple[str, ...]]:
        """Embed what has no vector, or say why not."""
        if self.embedder is None:
            return ()
        outcome = yield from catch_failure(embedding.embed_pending(self.store, self.embedder))
        return (
            (f"Not embedded yet, found by words only: {outcome}",)
            if isinstance(outcome, Failure)
            else ()
        )

    def _find_hidden_ids(self, scope: Scope) -> Flow[frozenset[str]]:
        """The memories of a scope of which some version may not be shown."""
        guards = self.read_context.guards
        versions = (
            (yield from call(self.store.find_versions, scope.account, scope=scope))
            if guards
            else ()
        )
        denied = find_denials(versions, guards)
        return frozenset(fact.id for fact in versions if fact.seq in denied)

    def _is_evidence_visible(self, evidence: Sequence[EvidenceRow]) -> Flow[bool]:
        """Whether some memory taken from this evidence may be shown; evidence itself has no kind to judge by."""
        guards = self.read_context.guards
        if not guards:
            return True
        for thread in (
            yield from past.load_threads_from_evidence(
                self.store, self.account, [row.id for row in evidence]
            )
        ):
            fact = yield from call(self.store.get_fact, self.account, thread)
            if fact is not None and not find_denials([fact], guards):
                return True
        return False

    def _warn_unknown_kind(self, scope: Scope, kind: str) -> Flow[tuple[str, ...]]:
        """What to say of a kind that something is about to be kept under."""
        if kind in self.extraction.ontology:
            return ()
        now = yield from self.resolve_point()
        return (yield from warn_new_kind(self.read_context, scope, now, kind))

    def _build_fact_query(
        self,
        ids: Mapping[str, Any],
        *,
        filters: Any = None,
        kinds: Any = None,
        limit: Any = None,
        top_k: Any = None,
        as_of: Any = None,
        valid_at: Any = None,
        show_expired: Any = False,
        offset: Any = 0,
    ) -> Flow[tuple[FactQuery, int]]:
        scope, rest = resolve_scope_and_filter(ids, filters, self.account)
        at = yield from self.resolve_point(as_of, valid_at)
        size = parse_limit(limit, top_k, self.settings)
        fact_query = build_fact_query(
            scope, at, rest, limit=size, offset=offset, show_expired=show_expired
        )
        return restrict_to_kinds(fact_query, kinds), size

    def _build_search_request(
        self,
        query: str,
        ids: Mapping[str, Any],
        *,
        threshold: Any = None,
        min_score: Any = None,
        rerank: Any = False,
        reference_date: Any = None,
        belief: Any = None,
        lens: Any = None,
        **options: Any,
    ) -> Flow[SearchRequest]:
        side, name_lens = parse_belief(belief), parse_lens(lens)
        fact_query, limit = yield from self._build_fact_query(ids, **options)
        now = parse_reference_date(reference_date, fact_query.as_of, self.settings)
        score_floor, use_reranker = (
            parse_min_score(threshold, min_score),
            parse_flag(rerank, "rerank"),
        )
        deep = limit > self.settings.depth
        return SearchRequest(
            query,
            fact_query,
            limit,
            score_floor,
            use_reranker,
            now,
            deep,
            belief=side,
            lens=name_lens,
        )


def add_warnings(result: W, warnings: tuple[str, ...]) -> W:
    """What a read returns, with something more to say of it."""
    return replace(result, warnings=(*result.warnings, *warnings)) if warnings else result


def unwrap_embedding(model: str, outcome: T | Failure) -> T:
    """What an embedder was asked for, or the error that says which one failed."""
    if not isinstance(outcome, Failure):
        return outcome
    if isinstance(outcome.error, ToldError):
        raise outcome.error
    hint = "An embedder turns a list of texts into a list of vectors."
    raise EmbeddingError(f"The embedder {model} failed: {outcome}.", hint=hint) from outcome.error


def _check_views(names: Any) -> tuple[View, ...]:
    hint = f"Views: {', '.join(VIEWS)}. Give a list of them, or leave it out for all."
    if not isinstance(names, list | tuple | set | frozenset) or not names:
        raise InvalidInput(f"views must be a list of names, not {format_value(names)}.", hint=hint)
    unknown = [name for name in names if name not in VIEWS]
    if unknown:
        raise InvalidInput(f"There is no view {format_value(unknown[0])}.", hint=hint)
    return tuple(view for view in VIEWS if view in names)


def _request_digest(
    scope: Scope,
    parsed: messages.ParsedMessages,
    expires: int | None,
    kind: str,
    options: ExtractionOptions,
) -> bytes:
    """What a request comes to, whichever way it was spelled."""
    turns = [
        [
            turn.evidence.digest().hex(),
            dict(turn.meta),
            turn.valid.as_json(),
            *(image.compute_identity() for image in turn.images),
        ]
        for turn in parsed.turns
    ]
    extraction = [options.extractor, options.prompt, list(options.facts)]
    return sha256(
        canonical_json([scope.ids(), turns, list(parsed.skipped), expires, kind, *extraction])
    )


def _is_intact(result: tuple[VerifyResult, Sequence[str]]) -> bool:
    verify_result, problems = result
    return verify_result.ok and not problems
