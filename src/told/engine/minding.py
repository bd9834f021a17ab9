"""The verbs about what was understood: what waits, what failed, what is in doubt, who and what is spoken of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.curation import graph
from told.curation import revoke as disputes
from told.curation import revoke as revoking
from told.curation.graph import IdentityMatch
from told.engine.base import EngineBase, check_memory_id, requires_action
from told.errors import ConfigError, InvalidInput, NotFoundError
from told.flow import Flow, call
from told.ingest import edit, gate, messages, queue, tool_output
from told.ingest.apply_claims import make_job_handler
from told.ingest.edit import require_fact
from told.ingest.queue import DrainResult
from told.ingest.tool_output import ToolOutput
from told.maintenance import importance, summaries
from told.model.beliefs import Contradiction
from told.model.fact import QUARANTINE, Fact
from told.model.filter import parse_filter
from told.model.policy import Action
from told.model.query import Receipt
from told.ports import Fault
from told.retrieval import listing, request
from told.retrieval.candidates import find_denials
from told.retrieval.listing import EntityRelation
from told.text.tokens import format_value, validate_label, validate_text


class ExtractionVerbs(EngineBase):
    """What was understood, what was not, and what is in doubt."""

    __slots__ = ()

    @requires_action(Action.DERIVE_CLAIMS)
    def catch_up(self) -> Flow[DrainResult]:
        """Ask the model about everything that waits for it."""
        attempts, mutex = self.settings.consumer_attempts, self.extraction.mutex
        if self.extraction.llm is None:
            return DrainResult({})
        return (
            yield from queue.drain_queue(
                self.store, self.account, make_job_handler(self.write_context), attempts, mutex
            )
        )

    @requires_action(Action.READ_METADATA)
    def enough(self) -> Flow[bool]:
        """Whether so much waits for a model that it is worth a question."""
        return (
            yield from queue.is_threshold_reached(
                self.store, self.account, self.settings.extract_threshold
            )
        )

    @requires_action(Action.READ_METADATA)
    def waiting(self) -> Flow[int]:
        """How many pieces of evidence wait for a model; none where no model was ever asked."""
        has_model = self.extraction.llm is not None or (
            yield from call(self.store.get_cursor, self.account, queue.CONSUMER)
        )
        return (yield from queue.count_pending(self.store, self.account)) if has_model else 0

    @requires_action(Action.READ_CONTENT)
    def faults(self) -> Flow[Sequence[Fault]]:
        """What consumers could not do, with what a model answered."""
        return (yield from call(self.store.list_faults, self.account))

    @requires_action(Action.DERIVE_CLAIMS)
    def retry_faults(self, chosen: Any = None) -> Flow[Mapping[str, int]]:
        """Ask again about what failed."""
        ids = _check_fault_ids(chosen)
        yield from self._find_fault_ids(ids)
        totals = yield from queue.retry_faults(
            self.store,
            self.account,
            make_job_handler(self.write_context),
            ids,
            self.settings.consumer_attempts,
            self.extraction.mutex,
        )
        for retry in (importance.retry_faults, summaries.retry_faults):
            mended, remaining = yield from retry(self.write_context, self.account, ids)
            totals = totals[0] + mended, totals[1] + remaining
        return dict(zip(("mended", "left"), totals, strict=True))

    @requires_action(Action.WRITE)
    def drop_faults(self, chosen: Any = None) -> Flow[int]:
        """Forget what failed; the words are kept."""
        ids = _check_fault_ids(chosen)
        return (
            yield from call(
                self.store.clear_faults, self.account, (yield from self._find_fault_ids(ids))
            )
        )

    def _find_fault_ids(self, ids: Sequence[int]) -> Flow[list[int]]:
        """The faults of these ids, or all; one of them at least must be there."""
        faults = yield from call(self.store.list_faults, self.account)
        fault_ids = [fault.id for fault in faults if not ids or fault.id in ids]
        if not fault_ids and ids:
            raise NotFoundError(f"There is no fault {ids[0]}.", hint="List them with faults().")
        return fault_ids

    @requires_action(Action.READ_CONTENT)
    def contradictions(self, ids: Mapping[str, Any]) -> Flow[Sequence[Contradiction]]:
        """Memories that say different things of the same."""
        conflicts = yield from disputes.load_contradictions(
            self.store, self.resolve_scope(ids), self.store.mint.now()
        )
        return [
            conflict
            for conflict in conflicts
            if not find_denials(conflict.facts, self.read_context.guards)
        ]

    @requires_action(Action.READ_CONTENT)
    def entities(self, ids: Mapping[str, Any]) -> Flow[Sequence[Fact]]:
        """Whom and what a scope speaks of."""
        return self._filter_visible(
            (
                yield from listing.list_nodes(
                    self.store, self.resolve_scope(ids), self.store.mint.now()
                )
            )
        )

    @requires_action(Action.READ_CONTENT)
    def relations(self, name: str, ids: Mapping[str, Any]) -> Flow[Sequence[EntityRelation]]:
        """How one that is spoken of bears on others."""
        entity_name = validate_label(name, "name", limit=256)
        results = yield from listing.list_relations(
            self.store, self.resolve_scope(ids), entity_name, self.store.mint.now()
        )
        return [
            relation
            for relation in results
            if not find_denials((relation.source, relation.target), self.read_context.guards)
        ]

    @requires_action(Action.DERIVE_CLAIMS)
    def identify(self, ids: Mapping[str, Any]) -> Flow[Sequence[IdentityMatch]]:
        """Draw edges between names of a scope that may mean the same."""
        return (yield from graph.record_identity_edges(self.write_context, self.resolve_scope(ids)))

    @requires_action(Action.READ_CONTENT)
    def quarantine(self, ids: Mapping[str, Any]) -> Flow[Sequence[Fact]]:
        """The claims that wait for a review."""
        at = yield from self.resolve_point()
        only = parse_filter({"kind": QUARANTINE})
        return self._filter_visible(
            (
                yield from call(
                    self.store.find_facts,
                    request.build_fact_query(self.resolve_scope(ids), at, only, limit=None),
                )
            )
        )

    @requires_action(Action.ADMINISTER)
    def reveal(self, id: str, *, ids: Mapping[str, Any]) -> Flow[str]:
        """What a memory says with the secrets in it that are kept encrypted."""
        fact = yield from require_fact(
            self.store, self.account, check_memory_id(id), self.resolve_optional_scope(ids)
        )
        if self.extraction.vault is None:
            raise ConfigError(
                "There is no vault here.",
                hint='Open the memory with secrets="encrypt" and its key.',
            )
        return gate.reveal_secrets(fact.text, fact.meta, self.extraction.vault)

    @requires_action(Action.WRITE)
    def review(self, id: str, *, accept: Any, ids: Mapping[str, Any]) -> Flow[Receipt]:
        """Let a claim out of quarantine, or give it up."""
        if not isinstance(accept, bool):
            raise InvalidInput(f"accept must be True or False, not {format_value(accept)}.")
        return (
            yield from edit.review_quarantined(
                self.write_context,
                self.account,
                check_memory_id(id),
                self.resolve_optional_scope(ids),
                accept=accept,
            )
        )

    @requires_action(Action.WRITE)
    def tool_result(
        self, text: Any, ids: Mapping[str, Any], *, tool: Any, source: Any
    ) -> Flow[ToolOutput]:
        """Keep a tool's output whole, and give back as much of it as an agent needs."""
        if not isinstance(text, str):
            raise InvalidInput(f"A tool's output is text, not {format_value(text)}.")
        name = None if tool is None else validate_label(tool, "tool", limit=256)
        origin = None if source is None else messages.check_source(source)
        words = validate_text(text, limit=self.settings.document_limit)
        return (
            yield from tool_output.keep_output(
                self.write_context, self.resolve_scope(ids), words, name, origin
            )
        )

    @requires_action(Action.WRITE)
    def revoke(self, source: Any) -> Flow[Receipt]:
        """Give up everything that was taken from a source."""
        return (
            yield from revoking.revoke_source(
                self.write_context, self.account, messages.check_source(source)
            )
        )

    def _filter_visible(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """Those that no guard stops."""
        denied = find_denials(facts, self.read_context.guards)
        return [fact for fact in facts if fact.seq not in denied]


def _check_fault_ids(selection: Any) -> list[int]:
    numbers = [] if selection is None else [selection] if isinstance(selection, int) else selection
    if not isinstance(numbers, list | tuple) or not all(type(item) is int for item in numbers):
        raise InvalidInput(
            f"Faults are named by their numbers, not {format_value(selection)}.",
            hint="See faults().",
        )
    return list(numbers)
