"""The engine: one flow per verb over a store. Logic lives in the packages below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from told.curation import graph, revoke
from told.engine import requests
from told.engine.access import (
    VERB_ACTIONS,
    filter_visible,
    find_hidden_ids,
    find_visible_fact,
    is_evidence_visible,
    list_visible_tasks,
    list_visible_topics,
    require_visible_fact,
    requires_action,
)
from told.engine.context import EngineContext
from told.engine.requests import ScopeIds, parse_fault_ids, parse_memory_id
from told.engine.results import (
    DecayReport,
    ErasurePreview,
    FactListing,
    QueuedReview,
    WaitResult,
    add_warnings,
)
from told.errors import ConfigError, InvalidInput, NotFoundError, Unsupported
from told.flow import Flow, call, run
from told.ids import HASH_ALGORITHM
from told.ingest import apply_claims, edit, embedding, gate, messages, queue, tool_output
from told.ingest import pipeline as ingest_pipeline
from told.ingest.images import read_images
from told.ledger import clocks, commit, export, files, verify
from told.ledger import history as ledger_history
from told.ledger.consumer import catch_failure
from told.ledger.erase import ErasureClosure
from told.ledger.views import build_fold
from told.maintenance import erasure, forgetting, importance, summaries, tiers
from told.maintenance import topics as topic_clusters
from told.model.entry import Blob, Draft, Erased, Linked, is_blob_hash
from told.model.fact import QUARANTINE, TOPIC, Fact
from told.model.filter import parse_filter
from told.model.policy import Action
from told.model.query import (
    LATEST,
    AccessBatch,
    AsOf,
    Bundle,
    Certificate,
    FactQuery,
    Receipt,
    ReviewTask,
    Trace,
    VerifyResult,
    exclude_unlisted,
)
from told.model.scope import Scope
from told.ports import Embedder, Fault
from told.retrieval import context, listing, request
from told.retrieval import pipeline as read_pipeline
from told.retrieval.candidates import find_denials
from told.retrieval.listing import MemoryDetail, measure_strengths
from told.retrieval.state import SearchResult
from told.text.tokens import format_value, validate_label, validate_text

if TYPE_CHECKING:
    from told.curation.graph import IdentityMatch
    from told.ingest.apply_claims import ConceptStatement
    from told.ingest.documents import Document
    from told.maintenance import delta_apply, reconsolidation
    from told.maintenance.tiers import FollowUpStage, SweepResult
    from told.model.beliefs import Contradiction
    from told.model.concepts import ConceptBelief, ConceptRules, ConceptScopes
    from told.model.kind import Ontology
    from told.model.query import AccessRecord, AccessState
    from told.retrieval.pipeline import WhyNot
    from told.retrieval.topics import TopicListing

__all__ = ["VERB_ACTIONS", "Engine"]

MAX_POINTS = 10_000
MAX_REASON_LENGTH = 256
SECOND_US = 1_000_000


class Engine(EngineContext):
    """Every verb as one flow: parse the arguments, call the logic, return its result."""

    __slots__ = ()

    # Writing

    @requires_action(Action.WRITE)
    def add(self, messages: Any, ids: ScopeIds, **options: Any) -> Flow[Receipt]:
        """Store messages and the facts extracted from them."""
        add = requests.parse_add_request(
            self.extraction, self.settings, ids, self.account, messages, **options
        )
        turns, ctx = add.messages, self.write_context
        if turns.image_count:
            turns = yield from read_images(turns, self.image_context(self.settings.image_limit))
        warnings: tuple[str, ...] = ()
        if add.kind not in self.extraction.ontology:
            now = yield from self.resolve_point()
            warnings = yield from request.warn_new_kind(self.read_context, add.scope, now, add.kind)
        write = ingest_pipeline.build_request(
            ctx, add.scope, turns, expires=add.expires, kind=add.kind, options=add.options
        )
        receipt = yield from ingest_pipeline.write_memories(ctx, write, add.key)
        return add_warnings(receipt, (*warnings, *add.unused))

    @requires_action(Action.WRITE)
    def update(self, memory_id: Any, ids: ScopeIds, **changes: Any) -> Flow[Receipt]:
        """Add a new version of a memory."""
        update, warnings = requests.parse_update(self.settings, **changes)
        thread, scope = parse_memory_id(memory_id), self.resolve_optional_scope(ids)
        receipt = yield from edit.update_memory(
            self.write_context, self.account, thread, update, scope
        )
        return replace(receipt, warnings=(*warnings, *receipt.warnings)) if warnings else receipt

    @requires_action(Action.WRITE)
    def delete(self, memory_id: Any, ids: ScopeIds) -> Flow[Receipt]:
        """Delete a memory; its history is kept."""
        return self.retract(memory_id, ids, why="deleted")

    @requires_action(Action.WRITE)
    def delete_all(self, ids: ScopeIds) -> Flow[Receipt]:
        """Delete all memories of a scope; their history is kept."""
        scope = self.resolve_scope(ids)
        now = yield from self.resolve_point()
        everything = request.build_fact_query(scope, now, None, limit=None, show_expired=True)
        return (yield from edit.retract_all(self.write_context, everything, "deleted"))

    @requires_action(Action.WRITE)
    def retract(self, memory_id: Any, ids: ScopeIds, *, why: Any) -> Flow[Receipt]:
        """Delete a memory and record the reason."""
        reason = validate_text(why, limit=MAX_REASON_LENGTH)
        thread, scope = parse_memory_id(memory_id), self.resolve_optional_scope(ids)
        return edit.retract_memory(self.write_context, self.account, thread, reason, scope)

    @requires_action(Action.WRITE)
    def link(
        self, src: Any, rel: Any, dst: Any, ids: ScopeIds, **details: Any
    ) -> Flow[tuple[Linked, Receipt]]:
        """Link two memories by a relation."""
        link = requests.parse_link(src, rel, dst, self.settings, **details)
        scope = self.resolve_scope(ids)
        return link, (yield from edit.link_memories(self.write_context, scope, link))

    @requires_action(Action.WRITE)
    def upload(self, content: Any, ids: ScopeIds, **options: Any) -> Flow[tuple[Receipt, Document]]:
        """Store a document, or revise the one with the same source."""
        from told.ingest import documents

        document = files.read_document(content)
        arguments = requests.parse_upload_options(self.settings, **options)
        images = self.image_context(self.settings.document_limit)
        return documents.upload_document(
            self.write_context, self.resolve_scope(ids), document, images, **arguments
        )

    @requires_action(Action.WRITE)
    def tool_result(
        self, text: Any, ids: ScopeIds, *, tool: Any = None, source: Any = None
    ) -> Flow[tool_output.ToolOutput]:
        """Store a tool's output and return a version short enough for a prompt."""
        if not isinstance(text, str):
            raise InvalidInput(f"A tool's output is text, not {format_value(text)}.")
        name = None if tool is None else validate_label(tool, "tool", limit=256)
        origin = None if source is None else messages.check_source(source)
        output = validate_text(text, limit=self.settings.document_limit)
        scope = self.resolve_scope(ids)
        return tool_output.keep_output(self.write_context, scope, output, name, origin)

    @requires_action(Action.WRITE)
    def revoke(self, source: Any) -> Flow[Receipt]:
        """Delete everything derived from a source and restore what it had changed."""
        origin = messages.check_source(source)
        return revoke.revoke_source(self.write_context, self.account, origin)

    # Reading

    @requires_action(Action.READ_CONTENT)
    def search(
        self, query: Any, ids: ScopeIds, *, explain: Any = False, **options: Any
    ) -> Flow[tuple[SearchResult, bool]]:
        """Return the best matching facts, and whether to show how they were scored."""
        with_details, ctx = request.parse_flag(explain, "explain"), self.read_context
        search = yield from requests.parse_search_request(ctx, self.account, query, ids, **options)
        result = yield from read_pipeline.search(ctx, search)
        warnings = yield from request.warn_unknown_kinds(ctx, search.fact_query)
        return add_warnings(result, warnings), with_details

    @requires_action(Action.READ_CONTENT)
    def context(self, query: Any, ids: ScopeIds, **options: Any) -> Flow[Bundle]:
        """Return memories as a block of text within a token budget."""
        ctx = self.read_context
        search, fact_query, form = yield from requests.parse_context_request(
            ctx, self.account, query, ids, **options
        )
        result = yield from context.build_context(ctx, search, fact_query, form)
        return add_warnings(result, (yield from request.warn_unknown_kinds(ctx, fact_query)))

    @requires_action(Action.READ_CONTENT)
    def explain(
        self, query: Any, ids: ScopeIds, **options: Any
    ) -> Flow[tuple[SearchResult, Trace]]:
        """Run a search and trace every candidate."""
        ctx = self.read_context
        search = yield from requests.parse_search_request(ctx, self.account, query, ids, **options)
        result, trace = yield from read_pipeline.explain(ctx, search)
        warnings = yield from request.warn_unknown_kinds(ctx, search.fact_query)
        return add_warnings(result, warnings), trace

    @requires_action(Action.READ_CONTENT)
    def why_not(self, query: Any, memory_id: Any, ids: ScopeIds, **options: Any) -> Flow[WhyNot]:
        """Explain why a search leaves a memory out, or its rank if it does not."""
        ctx = self.read_context
        search = yield from requests.parse_search_request(ctx, self.account, query, ids, **options)
        return (yield from read_pipeline.explain_why_not(ctx, search, parse_memory_id(memory_id)))

    @requires_action(Action.READ_CONTENT)
    def get(
        self, memory_id: Any, ids: ScopeIds, *, as_of: Any = None, valid_at: Any = None
    ) -> Flow[Fact | None]:
        """Return a memory, now or at an earlier point, or None."""
        at = yield from self.resolve_point(as_of, valid_at)
        thread, scope = parse_memory_id(memory_id), self.resolve_optional_scope(ids)
        return (yield from find_visible_fact(self.read_context, self.account, thread, scope, at))

    @requires_action(Action.READ_CONTENT)
    def get_all(self, ids: ScopeIds, *, belief: Any = None, **options: Any) -> Flow[FactListing]:
        """List the visible facts of a scope and their contradictions."""
        ctx = self.read_context
        fact_query, _ = yield from requests.parse_fact_query(ctx, self.account, ids, **options)
        side = None if belief is None else request.parse_belief(belief)
        facts, conflicts = yield from read_pipeline.list_facts(
            ctx, exclude_unlisted(fact_query), side
        )
        warnings = yield from request.warn_unknown_kinds(ctx, fact_query)
        return FactListing(facts, conflicts, warnings)

    @requires_action(Action.READ_CONTENT)
    def history(self, memory_id: Any, ids: ScopeIds) -> Flow[Sequence[ledger_history.ThreadChange]]:
        """List all changes of a memory in order."""
        thread, scope = parse_memory_id(memory_id), self.resolve_optional_scope(ids)
        changes = yield from ledger_history.load_history(self.store, self.account, thread, scope)
        seqs = [change.seq for change in changes]
        versions = yield from call(self.store.find_versions, self.account, seqs=seqs)
        return [] if find_denials(versions, self.read_context.guards) else changes

    @requires_action(Action.READ_CONTENT)
    def timeline(
        self, ids: ScopeIds, *, limit: Any = None
    ) -> Flow[Sequence[ledger_history.ThreadChange]]:
        """List the changes of a scope in order; with a limit, the newest ones."""
        newest = 0 if limit is None else request.parse_int(limit, "limit", 1, request.MAX_CHANGES)
        scope = self.resolve_scope(ids)
        hidden = yield from find_hidden_ids(self.read_context, scope)
        changes = yield from ledger_history.load_timeline(self.store, scope)
        return [change for change in changes if change.id not in hidden][-newest:]

    @requires_action(Action.READ_CONTENT)
    def diff(self, before: Any, after: Any, ids: ScopeIds) -> Flow[dict[str, Any]]:
        """Compare the memories of a scope at two points in time."""
        scope = self.resolve_scope(ids)
        hidden = yield from find_hidden_ids(self.read_context, scope)
        first = yield from self.resolve_point(before)
        last = yield from self.resolve_point(after)
        return (yield from ledger_history.diff_beliefs(self.store, scope, first, last, hidden))

    @requires_action(Action.READ_CONTENT)
    def blob(self, hash: Any, ids: ScopeIds) -> Flow[Blob]:
        """Return the bytes of a document or an image of a scope."""
        holders = yield from commit.map_blob_evidence(self.store, self.resolve_scope(ids))
        content: Blob | None = None
        if is_blob_hash(hash) and hash in holders:
            content = (yield from call(self.store.get_blobs, self.account, [hash])).get(hash)
        if content is None or not (
            yield from is_evidence_visible(self.read_context, self.account, holders[hash])
        ):
            hint = "List them with blobs()."
            raise NotFoundError(f"There is no blob {format_value(hash)} here.", hint=hint)
        return content

    @requires_action(Action.READ_CONTENT)
    def blobs(self, ids: ScopeIds) -> Flow[Sequence[commit.ScopedBlob]]:
        """List the documents and images of a scope."""
        visible: list[commit.ScopedBlob] = []
        for blob in (yield from commit.list_scope_blobs(self.store, self.resolve_scope(ids))):
            is_visible = is_evidence_visible(self.read_context, self.account, blob.evidence_rows)
            visible += [blob] if (yield from is_visible) else []
        return visible

    @requires_action(Action.ADMINISTER)
    def reveal(self, memory_id: Any, ids: ScopeIds) -> Flow[tuple[str, str]]:
        """Return a memory's id and its text with encrypted secrets decrypted."""
        thread, scope = parse_memory_id(memory_id), self.resolve_optional_scope(ids)
        fact = yield from edit.require_fact(self.store, self.account, thread, scope)
        if self.extraction.vault is None:
            hint = 'Open the memory with secrets="encrypt" and its key.'
            raise ConfigError("There is no vault here.", hint=hint)
        return fact.id, gate.reveal_secrets(fact.text, fact.meta, self.extraction.vault)

    # Erasing

    @requires_action(Action.REQUEST_DELETION)
    def erase(
        self,
        memory_id: Any,
        ids: ScopeIds,
        *,
        source: Any = None,
        why: Any = "requested",
        dry_run: Any = False,
    ) -> Flow[Certificate | ErasurePreview]:
        """Destroy content and everything derived from it; a dry run returns what would go."""
        is_dry_run = request.parse_flag(dry_run, "dry_run")
        reason = "" if is_dry_run else validate_text(why, limit=MAX_REASON_LENGTH)
        thread = None if memory_id is None else parse_memory_id(memory_id)
        closure = yield from erasure.collect_closure(self.store, self.account, thread, ids, source)
        if is_dry_run:
            return (yield from self._preview_erasure(closure))
        ctx = yield from self.topic_context()
        return (
            yield from erasure.erase_closure(ctx, self.hot_buffers, self.account, closure, reason)
        )

    @requires_action(Action.REQUEST_DELETION)
    def reset(self) -> Flow[None]:
        """Destroy the account's ledger and start a new chain."""
        head = yield from call(self.store.get_head, self.account)
        summary = {"entries": head.seq, "head": f"{HASH_ALGORITHM}:{head.hash.hex()}"}
        draft = Draft(Erased((), "reset", summary), None, self.caller.name)
        yield from call(self.store.reset, self.account, draft)
        self.hot_buffers.forget_account(self.account)
        self.extraction.echoes.forget_account(self.account)
        yield from call(self.store.scrub)

    # Extraction

    @requires_action(Action.DERIVE_CLAIMS)
    def wait(self) -> Flow[WaitResult]:
        """Extract facts from all pending evidence and judge the importance of turns."""
        drained = yield from self.extract_pending()
        pending = yield from self.count_pending()
        judgement = yield from self.judge_importance()
        failures = [str(f) for f in (drained.failure, judgement.failure) if f is not None]
        judged = judgement if self.settings.judge else None
        return WaitResult(drained, pending, judged, failures)

    @requires_action(Action.DERIVE_CLAIMS)
    def extract_pending(self) -> Flow[queue.DrainResult]:
        """Extract facts from all pending evidence."""
        if self.extraction.llm is None:
            return queue.DrainResult({})
        handler = apply_claims.make_job_handler(self.write_context)
        attempts, mutex = self.settings.maintenance.consumer_attempts, self.extraction.mutex
        return (yield from queue.drain_queue(self.store, self.account, handler, attempts, mutex))

    @requires_action(Action.READ_METADATA)
    def is_extraction_due(self) -> Flow[bool]:
        """Return whether enough evidence is pending to call the model."""
        threshold = self.settings.extract_threshold
        return queue.is_threshold_reached(self.store, self.account, threshold)

    @requires_action(Action.READ_METADATA)
    def count_pending(self) -> Flow[int]:
        """Count the evidence that waits for extraction; 0 if no model was ever used."""
        has_model = self.extraction.llm is not None or (
            yield from call(self.store.get_cursor, self.account, queue.CONSUMER)
        )
        return (yield from queue.count_pending(self.store, self.account)) if has_model else 0

    @requires_action(Action.DERIVE_CLAIMS)
    def judge_importance(self, *, full: bool = False) -> Flow[importance.JudgeResult]:
        """Let the model rate the importance of turns, if the setting `judge` is on."""
        return importance.judge_turns(self.write_context, self.account, full_only=full)

    @requires_action(Action.READ_CONTENT)
    def faults(self) -> Flow[Sequence[Fault]]:
        """List failed jobs with the model's raw replies."""
        return call(self.store.list_faults, self.account)

    @requires_action(Action.DERIVE_CLAIMS)
    def retry_faults(self, ids: Any = None) -> Flow[Mapping[str, int]]:
        """Retry failed jobs."""
        chosen, ctx = parse_fault_ids(ids), self.write_context
        yield from requests.select_fault_ids(self.store, self.account, chosen)
        handler = apply_claims.make_job_handler(ctx)
        attempts, mutex = self.settings.maintenance.consumer_attempts, self.extraction.mutex
        mended, left = yield from queue.retry_faults(
            self.store, self.account, handler, chosen, attempts, mutex
        )
        for retry in (importance.retry_faults, summaries.retry_faults):
            more_mended, more_left = yield from retry(ctx, self.account, chosen)
            mended, left = mended + more_mended, left + more_left
        return {"mended": mended, "left": left}

    @requires_action(Action.WRITE)
    def drop_faults(self, ids: Any = None) -> Flow[int]:
        """Delete failed jobs; their evidence is kept."""
        chosen = parse_fault_ids(ids)
        chosen = yield from requests.select_fault_ids(self.store, self.account, chosen)
        return (yield from call(self.store.clear_faults, self.account, chosen))

    @requires_action(Action.READ_CONTENT)
    def quarantine(self, ids: ScopeIds) -> Flow[Sequence[Fact]]:
        """List the claims that wait for a review."""
        at = yield from self.resolve_point()
        only = parse_filter({"kind": QUARANTINE})
        fact_query = request.build_fact_query(self.resolve_scope(ids), at, only, limit=None)
        facts = yield from call(self.store.find_facts, fact_query)
        return filter_visible(self.read_context, facts)

    @requires_action(Action.WRITE)
    def review(self, memory_id: Any, accept: Any, ids: ScopeIds) -> Flow[Receipt]:
        """Accept or reject a quarantined claim."""
        if not isinstance(accept, bool):
            raise InvalidInput(f"accept must be True or False, not {format_value(accept)}.")
        thread, scope = parse_memory_id(memory_id), self.resolve_optional_scope(ids)
        return edit.review_quarantined(
            self.write_context, self.account, thread, scope, accept=accept
        )

    @requires_action(Action.READ_CONTENT)
    def infer_kinds(self, ids: ScopeIds) -> Flow[tuple[Sequence[Fact], Ontology]]:
        """Return the quarantined claims and the ontology that lacks their kinds."""
        return (yield from self.quarantine(ids)), self.extraction.ontology

    @requires_action(Action.READ_CONTENT)
    def contradictions(self, ids: ScopeIds) -> Flow[Sequence[Contradiction]]:
        """List conflicting memories."""
        scope, guards = self.resolve_scope(ids), self.read_context.guards
        conflicts = yield from revoke.load_contradictions(self.store, scope, self.store.mint.now())
        return [conflict for conflict in conflicts if not find_denials(conflict.facts, guards)]

    @requires_action(Action.READ_CONTENT)
    def entities(self, ids: ScopeIds) -> Flow[Sequence[Fact]]:
        """List the entities mentioned in a scope."""
        scope, now = self.resolve_scope(ids), self.store.mint.now()
        nodes = yield from listing.list_nodes(self.store, scope, now)
        return filter_visible(self.read_context, nodes)

    @requires_action(Action.READ_CONTENT)
    def relations(self, name: Any, ids: ScopeIds) -> Flow[Sequence[listing.EntityRelation]]:
        """List an entity's relations."""
        entity, guards = validate_label(name, "name", limit=256), self.read_context.guards
        relations = yield from listing.list_relations(
            self.store, self.resolve_scope(ids), entity, self.store.mint.now()
        )
        return [item for item in relations if not find_denials((item.source, item.target), guards)]

    @requires_action(Action.DERIVE_CLAIMS)
    def identify(self, ids: ScopeIds) -> Flow[Sequence[IdentityMatch]]:
        """Link names that may mean the same entity; nothing is merged."""
        return graph.record_identity_edges(self.write_context, self.resolve_scope(ids))

    # Reconsolidation

    @requires_action(Action.READ_CONTENT)
    def recalls(
        self, memory_id: Any, ids: ScopeIds
    ) -> Flow[tuple[Sequence[AccessRecord], Sequence[AccessState]]]:
        """Return a memory's access records and access states."""
        fact = yield from self._require_fact(memory_id, ids)
        yield from self.flush_accesses()
        return (yield from call(self.store.access_history, self.account, fact.id))

    @requires_action(Action.DERIVE_CLAIMS)
    def enqueue(
        self, memory_id: Any, ids: ScopeIds, *, reason: Any = "explicit", priority: Any = 1.0
    ) -> Flow[tuple[str, bool]]:
        """Queue a memory for reconsolidation; return its id and whether it is new there."""
        why, weight = requests.parse_review_reason(reason), requests.parse_priority(priority)
        fact = yield from self._require_fact(memory_id, ids)
        task = ReviewTask(fact.id, why, weight, self.store.mint.now())
        window = self.settings.maintenance.reconsolidate_window * SECOND_US
        batch = AccessBatch(tasks=[task], window=window)
        added = yield from call(self.store.record_accesses, self.account, batch)
        return memory_id, bool(added)

    @requires_action(Action.READ_CONTENT)
    def queue(self, *, limit: Any = None) -> Flow[Sequence[QueuedReview]]:
        """List the reconsolidation queue, most urgent first."""
        size = request.parse_limit(limit, None, self.settings)
        yield from self.flush_accesses()
        tasks = yield from call(self.store.list_tasks, self.account, size)
        threads = list({task.thread for task in tasks})
        links = yield from call(self.store.find_links, self.account, threads)
        from told.maintenance import reconsolidation

        reasons = reconsolidation.collect_review_reasons(links)
        return (yield from list_visible_tasks(self.read_context, self.account, tasks, reasons))

    @requires_action(Action.DERIVE_CLAIMS)
    def reflect(self, *, limit: Any = None) -> Flow[reconsolidation.ReconsolidationResult]:
        """Reconsolidate the memories that are due."""
        size = request.parse_limit(limit, None, self.settings)
        yield from self.flush_accesses()
        from told.maintenance import reconsolidation

        return (yield from reconsolidation.reconsolidate(self.write_context, self.account, size))

    @requires_action(Action.WRITE)
    def apply_delta(self, delta: Any, ids: ScopeIds) -> Flow[delta_apply.DeltaResult]:
        """Apply the operations of a delta, all or none."""
        from told.maintenance import delta_apply, deltas

        clock = deltas.DeltaClock(self.store.mint.now(), self.settings.zone or None)
        operations = deltas.parse_delta(delta, clock).require_complete()
        scope = self.resolve_optional_scope(ids)
        author = delta_apply.DeltaAuthor(self.caller.name, scope=scope)
        return delta_apply.apply_operations(self.write_context, self.account, operations, author)

    # Decay

    @requires_action(Action.READ_CONTENT)
    def decay(
        self,
        memory_id: Any,
        ids: ScopeIds,
        *,
        points: Any = 60,
        clock: Any = None,
        as_of: Any = None,
    ) -> Flow[DecayReport]:
        """Return a memory's strength and decay curve, by its kind's clock or another."""
        count = request.parse_int(points, "points", 2, MAX_POINTS)
        at = yield from self.resolve_point(as_of)
        fact = yield from self._require_fact(memory_id, ids, at)
        ctx = self.read_context
        kind = ctx.kinds.get(fact.kind)
        if kind is not None and clock is not None:
            kind = replace(kind, clock=requests.parse_clock(clock))
            ctx = replace(ctx, kinds=ctx.kinds.with_kinds(kind))
        strengths = yield from measure_strengths(
            ctx, [fact], FactQuery(fact.scope, at), with_pace=True
        )
        strength = strengths[fact.seq]
        return DecayReport(MemoryDetail(fact, kind, strength), list(strength.sample_curve(count)))

    @requires_action(Action.READ_CONTENT)
    def about(self, ids: ScopeIds, *, as_of: Any = None) -> Flow[list[MemoryDetail]]:
        """List a scope's memories with their quotes and strengths."""
        scope = self.resolve_scope(ids)
        fact_query = FactQuery(scope, (yield from self.resolve_point(as_of)))
        return (yield from listing.list_memory_details(self.read_context, fact_query))

    @requires_action(Action.WRITE)
    def forget(self, memory_id: Any, ids: ScopeIds) -> Flow[Sequence[forgetting.ForgottenFact]]:
        """Archive one memory, or every memory of a scope that has faded."""
        ctx = self.read_context
        if memory_id is None:
            return (yield from forgetting.forget_faded(ctx, self.resolve_scope(ids)))
        now = yield from self.resolve_point()
        fact = yield from self._require_fact(memory_id, ids, now)
        strengths = yield from measure_strengths(ctx, [fact], FactQuery(fact.scope, now))
        yield from self.retract(fact.id, ids, why=forgetting.FORGOTTEN)
        return [forgetting.ForgottenFact(fact, strengths[fact.seq].weight)]

    # Tiers and topics

    @requires_action(Action.WRITE)
    def consolidate(self, ids: ScopeIds, *, force: Any = False) -> Flow[SweepResult]:
        """Move old turns out of the tail and file cold exchanges, in a scope or the account."""
        is_forced = request.parse_flag(force, "force")
        scope, stages = self.resolve_optional_scope(ids), self._follow_up_stages()
        return tiers.run_sweep(
            self.write_context, self.account, scope, force=is_forced, follow_ups=stages
        )

    @requires_action(Action.READ_CONTENT)
    def tiers(self, ids: ScopeIds) -> Flow[tiers.TierState]:
        """Return the tier that each turn of a scope is in."""
        scope, guards = self.resolve_scope(ids), self.read_context.guards
        hot_seqs = self.hot_buffers.get_hot_seqs(scope)
        state = yield from tiers.load_tier_state(self.write_context, scope, hot_seqs)
        hidden = find_denials([*(entry.turn for entry in state.tail), *state.hot], guards)
        tail = tuple(entry for entry in state.tail if entry.turn.seq not in hidden)
        hot = tuple(fact for fact in state.hot if fact.seq not in hidden)
        return replace(state, tail=tail, hot=hot)

    @requires_action(Action.READ_CONTENT)
    def registry(
        self, ids: ScopeIds, *, limit: Any = None
    ) -> Flow[Sequence[summaries.FiledExchange]]:
        """List a scope's filed exchanges, newest first."""
        scope, ctx = self.resolve_scope(ids), self.write_context
        size = request.parse_limit(limit, None, self.settings)
        scopes = yield from tiers.load_covered_scopes(ctx, self.account, scope)
        exchanges = yield from summaries.load_newest(ctx, scopes, size)
        guards = self.read_context.guards
        return [exchange for exchange in exchanges if not find_denials(exchange.turns, guards)]

    @requires_action(Action.READ_CONTENT)
    def topics(self, ids: ScopeIds, *, as_of: Any = None) -> Flow[Sequence[TopicListing]]:
        """List the topics of a scope."""
        at = yield from self.resolve_point(as_of)
        return (yield from list_visible_topics(self.read_context, self.resolve_scope(ids), at))

    @requires_action(Action.READ_CONTENT)
    def topic(self, topic_id: Any, ids: ScopeIds) -> Flow[tuple[TopicListing, Sequence[Fact]]]:
        """Return a topic and its turns."""
        thread, scope = parse_memory_id(topic_id), self.resolve_optional_scope(ids)
        fact = yield from call(self.store.get_fact, self.account, thread)
        if fact is not None and fact.kind == TOPIC and (scope is None or scope.covers(fact.scope)):
            now = AsOf(LATEST, self.store.mint.now())
            for topic in (yield from list_visible_topics(self.read_context, fact.scope, now)):
                if topic.fact.id == fact.id:
                    turns = [turn for exchange in topic.exchanges for turn in exchange]
                    return topic, filter_visible(self.read_context, turns)
        raise NotFoundError(f"There is no topic {thread!r} here.", hint="List them with topics().")

    @requires_action(Action.DERIVE_CLAIMS)
    def file_topics(self) -> Flow[topic_clusters.TopicAssignmentResult]:
        """Assign every pending exchange to a topic."""
        ctx = yield from self.topic_context()
        return (yield from topic_clusters.assign_pending_exchanges(ctx, self.account))

    @requires_action(Action.DERIVE_CLAIMS)
    def merge_topics(self, ids: ScopeIds) -> Flow[topic_clusters.TopicMergeResult]:
        """Merge topics of a scope that are nearly the same."""
        ctx = yield from self.topic_context()
        return (yield from topic_clusters.merge_topics(ctx, self.resolve_scope(ids)))

    @requires_action(Action.DERIVE_CLAIMS)
    def abstract_topics(
        self, ids: ScopeIds
    ) -> Flow[tuple[topic_clusters.TopicMergeResult, Sequence[TopicListing]]]:
        """Group the topics of a scope into supertopics and return these."""
        scope, llm = self.resolve_scope(ids), self.extraction.llm
        ctx = yield from self.topic_context()
        result = yield from topic_clusters.build_supertopics(ctx, scope, llm)
        topics = yield from self.topics(ids)
        return result, [topic for topic in topics if topic.fact.id in result.supertopics]

    # Concepts of an ontology

    @requires_action(Action.WRITE)
    def upsert_value(
        self, scopes: ConceptScopes, rules: ConceptRules, statement: ConceptStatement
    ) -> Flow[Receipt]:
        """Hold, reinforce or retract the value of a concept."""
        limit = self.settings.text_limit
        texts = [validate_text(text, limit=limit) for text in (statement.value, statement.quote)]
        screened = [gate.screen_text(text, self.settings) for text in texts]
        (value, value_warnings), (quote, quote_warnings) = screened
        clean = replace(statement, value=value, quote=quote)
        receipt = yield from apply_claims.upsert_value(self.write_context, scopes, rules, clean)
        warnings = dict.fromkeys((*value_warnings, *quote_warnings, *receipt.warnings))
        return replace(receipt, warnings=tuple(warnings))

    @requires_action(Action.READ_CONTENT)
    def list_beliefs(
        self,
        scopes: ConceptScopes,
        rules: ConceptRules,
        concepts: Sequence[str] | None = None,
        *,
        archived: bool = False,
    ) -> Flow[Sequence[ConceptBelief]]:
        """List the values of concepts, faded ones included, or the archived ones instead."""
        load = clocks.load_archived_beliefs if archived else clocks.load_beliefs
        beliefs = yield from load(self.store, scopes, rules, self.settings, concepts)
        denied = find_denials([belief.fact for belief in beliefs], self.read_context.guards)
        return [belief for belief in beliefs if belief.fact.seq not in denied]

    @requires_action(Action.WRITE)
    def forget_beliefs(self, scopes: ConceptScopes, threads: Sequence[str]) -> Flow[Receipt]:
        """Retract values of concepts, faded or not."""
        ids = [parse_memory_id(thread) for thread in threads]
        return apply_claims.forget_beliefs(self.write_context, scopes, ids)

    @requires_action(Action.WRITE)
    def record_turns(self, ids: ScopeIds, *, turns: int, tokens: int | None) -> Flow[Receipt]:
        """Advance the turn clock of a scope."""
        scope = self.resolve_scope(ids)
        return apply_claims.record_turns(self.write_context, scope, turns, tokens)

    @requires_action(Action.READ_METADATA)
    def count_turns(self, ids: ScopeIds) -> Flow[int]:
        """Return the turn clock of a scope."""
        return clocks.count_turns(self.store, self.resolve_scope(ids))

    # Administration

    @requires_action(Action.ADMINISTER)
    def verify(self) -> Flow[tuple[VerifyResult, Sequence[str]]]:
        """Verify the ledger, the store and the views."""
        yield from call(self.store.scrub)
        return (yield from verify.verify_account(self.store, self.account))

    @requires_action(Action.ADMINISTER)
    def rebuild(self, views: Any = None) -> Flow[Mapping[str, int]]:
        """Rebuild views from the ledger without calling a model."""
        chosen = requests.parse_views(views)
        counts = yield from call(self.store.rebuild, self.account, chosen, build_fold(chosen))
        ctx = yield from self.topic_context()
        yield from topic_clusters.rebuild_topics(ctx, self.account)
        return counts

    @requires_action(Action.DERIVE_EMBEDDINGS)
    def reindex(self, embedder: Embedder | None = None) -> Flow[tuple[int, Embedder]]:
        """Embed all passages with an embedder, then switch to it; return the count and it."""
        chosen = embedder or self.embedder
        if chosen is None:
            hint = "Run `told models install`, or pass embedder=."
            raise Unsupported("There is no embedder to reindex with.", hint=hint)
        attempts = self.settings.ingestion.conflict_retries
        outcome = yield from catch_failure(embedding.reindex(self.store, chosen, attempts))
        return embedding.unwrap_embedding(chosen.model, outcome), chosen

    @requires_action(Action.READ_METADATA)
    def stats(self) -> Flow[dict[str, Any]]:
        """Return counts and sizes."""
        counts = yield from call(self.store.get_stats, self.account)
        costs = {} if self.meter is None else self.meter.by_operation
        usage = {"usage": {name: cost.as_dict() for name, cost in costs.items()}} if costs else {}
        recalls = counts["recalls"] + self.hot_buffers.count_pending(self.account)
        pending = yield from self.count_pending()
        return {**counts, "recalls": recalls, "pending": pending, **usage}

    @requires_action(Action.READ_METADATA)
    def users(self, *, type: Any = None) -> Flow[Sequence[listing.OwnerStatistics]]:
        """List users, agents and runs with their memory counts."""
        types = listing.parse_owner_types(type)
        tallies = yield from call(self.store.scope_tallies, self.account)
        return listing.summarise_owners(tallies, types)

    @requires_action(Action.EXPORT_CLAIMS)
    def export(self, target: Any) -> Flow[tuple[int, Path | None]]:
        """Write the ledger as JSON Lines to a path or a binary file; return the entry count."""
        with files.open_target(target) as (write, path):
            return (yield from export.export_ledger(self.store, self.account, write)), path

    @requires_action(Action.ADMINISTER)
    def import_(self, source: Any) -> Flow[tuple[int, Sequence[str]]]:
        """Append an exported ledger; return the number of new entries and warnings."""
        with files.open_lines(source) as lines:
            warnings = yield from self.flush_accesses()
            before = yield from call(self.store.get_head, self.account)
            try:
                imported, missing = yield from export.import_ledger(self.store, self.account, lines)
            finally:
                self.hot_buffers.forget_account(self.account)
            ctx = yield from self.topic_context()
            yield from topic_clusters.invalidate_after_import(ctx, self.account, before.seq)
            yield from call(self.store.scrub)
            if imported:
                missing = (
                    *missing,
                    *(yield from embedding.embed_missing(self.store, self.embedder)),
                )
            return imported, (*warnings, *missing)

    @requires_action(Action.ADMINISTER)
    def backup(self, target: Any) -> Flow[Path]:
        """Write a consistent copy of the store to a new file and return its path."""
        path = files.to_path(target, "target")
        yield from call(run, files.copy_store(self.store, path))
        return path

    # Helpers

    def _require_fact(self, memory_id: Any, ids: ScopeIds, at: AsOf | None = None) -> Flow[Fact]:
        thread, scope = parse_memory_id(memory_id), self.resolve_optional_scope(ids)
        return require_visible_fact(self.read_context, self.account, thread, scope, at)

    def _preview_erasure(self, closure: ErasureClosure) -> Flow[ErasurePreview]:
        facts: list[Fact] = []
        for thread in closure.threads:
            fact = yield from self.get(thread, {})
            facts += [] if fact is None else [fact]
        return ErasurePreview(closure, facts)

    def _follow_up_stages(self) -> tuple[FollowUpStage, ...]:
        """Return the stages of a sweep that follow filing, in order."""
        return self._assign_topics, self._forget_faded

    def _assign_topics(self, _: Sequence[Scope]) -> Flow[SweepResult]:
        result = yield from self.file_topics()
        return tiers.SweepResult(topics=result.exchanges, warnings=tuple(result.warnings))

    def _forget_faded(self, scopes: Sequence[Scope]) -> Flow[SweepResult]:
        forgotten = 0
        for scope in tiers.select_widest_scopes(scopes):
            forgotten += len((yield from self.forget(None, scope.ids())))
        return tiers.SweepResult(forgotten=forgotten)
