"""The verbs about topics: what exchanges are about, which topics are one, and topics of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from told.engine.base import check_memory_id, requires_action
from told.engine.minding import ExtractionVerbs
from told.errors import NotFoundError
from told.flow import Flow, call
from told.ledger.consumer import Failure, catch_failure
from told.maintenance import topics
from told.maintenance.topic_assignment import TopicContext
from told.maintenance.topics import ErasureDamage, TopicAssignmentResult, TopicMergeResult
from told.model.fact import TOPIC, Fact
from told.model.policy import Action
from told.model.query import LATEST, AsOf
from told.model.scope import Scope
from told.retrieval import access_log, request
from told.retrieval import topics as reading
from told.retrieval.candidates import find_denials, resolve_thresholds
from told.retrieval.topics import TopicListing


class TopicVerbs(ExtractionVerbs):
    """Topics and what they hold."""

    __slots__ = ()

    @requires_action(Action.READ_CONTENT)
    def topics(self, ids: Mapping[str, Any], *, as_of: Any = None) -> Flow[Sequence[TopicListing]]:
        """The topics of a scope."""
        at = yield from self.resolve_point(as_of)
        return (yield from self._list_topics(self.resolve_scope(ids), at))

    @requires_action(Action.READ_CONTENT)
    def topic(
        self, id: str, *, ids: Mapping[str, Any]
    ) -> Flow[tuple[TopicListing, Sequence[Fact]]]:
        """One topic, with the turns in it."""
        topic_id = check_memory_id(id)
        missing = NotFoundError(
            f"There is no topic {topic_id!r} here.", hint="List them with topics()."
        )
        fact = yield from call(self.store.get_fact, self.account, topic_id)
        scope = self.resolve_optional_scope(ids)
        if fact is None or fact.kind != TOPIC or (scope and not scope.covers(fact.scope)):
            raise missing
        entries = yield from self._list_topics(fact.scope, AsOf(LATEST, self.store.mint.now()))
        entry = next((candidate for candidate in entries if candidate.fact.id == fact.id), None)
        if entry is None:
            raise missing
        return entry, self._filter_visible(
            [turn for exchange in entry.exchanges for turn in exchange]
        )

    @requires_action(Action.DERIVE_CLAIMS)
    def file_topics(self) -> Flow[TopicAssignmentResult]:
        """Put every exchange that waits into a topic."""
        return (
            yield from topics.assign_pending_exchanges(
                (yield from self._build_topic_files()), self.account
            )
        )

    @requires_action(Action.DERIVE_CLAIMS)
    def merge_topics(self, ids: Mapping[str, Any]) -> Flow[TopicMergeResult]:
        """Make one of topics of a scope that are nearly the same."""
        return (
            yield from topics.merge_topics(
                (yield from self._build_topic_files()), self.resolve_scope(ids)
            )
        )

    @requires_action(Action.DERIVE_CLAIMS)
    def abstract_topics(self, ids: Mapping[str, Any]) -> Flow[TopicMergeResult]:
        """Make topics of the topics of a scope, named by a model if there is one."""
        return (
            yield from topics.build_supertopics(
                (yield from self._build_topic_files()), self.resolve_scope(ids), self.extraction.llm
            )
        )

    # What other verbs do to topics

    def _drop_topic_notes(self, threads: Iterable[str]) -> Flow[dict[Scope, ErasureDamage]]:
        """Forget what is noted of threads that are about to be erased."""
        return (
            yield from topics.prepare_erasure(
                (yield from self._build_topic_files()), self.account, threads
            )
        )

    def _repair_topics(
        self, damage: dict[Scope, ErasureDamage], threads: Iterable[str]
    ) -> Flow[tuple[str, ...]]:
        """Make topics anew that lost something; what could not be done yet is a warning."""
        files = yield from self._build_topic_files()
        outcome = yield from catch_failure(
            topics.repair_after_erasure(files, self.account, damage, threads)
        )
        return (f"Topics wait to be made anew: {outcome}",) if isinstance(outcome, Failure) else ()

    def _invalidate_topics(self, after: int) -> Flow[None]:
        """Forget what is noted of topics if anything was erased after a position."""
        yield from topics.invalidate_after_import(
            (yield from self._build_topic_files()), self.account, after
        )

    def _rebuild_topics(self) -> Flow[int]:
        """Make the means of all topics anew."""
        return (
            yield from topics.rebuild_topics((yield from self._build_topic_files()), self.account)
        )

    def _build_topic_files(self) -> Flow[TopicContext]:
        """What topics are kept with; without an embedder, they are those of the store's model."""
        bound_model = (
            None if self.embedder is not None else (yield from call(self.store.current_model))
        )
        model = (
            self.embedder.model
            if self.embedder is not None
            else bound_model[0]
            if bound_model
            else ""
        )
        limits = resolve_thresholds(self.settings, self.embedder)
        return TopicContext(
            self.store,
            self.store.mint,
            self.settings,
            limits,
            model,
            self.embedder,
            self.topic_cache,
        )

    def _list_topics(self, scope: Scope, at: AsOf) -> Flow[Sequence[TopicListing]]:
        def cooccurrence(store: Any, account: str, topic_ids: Sequence[str]) -> Flow[Any]:
            return (
                yield from access_log.load_cooccurrence(store, self.hot_buffers, account, topic_ids)
            )

        fact_query = request.build_fact_query(scope, at, None, limit=None)
        entries = yield from reading.list_topics(self.store, fact_query, cooccurrence)
        denied = find_denials([entry.fact for entry in entries], self.read_context.guards)
        return [entry for entry in entries if entry.fact.seq not in denied]
