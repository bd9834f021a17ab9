"""The parts an engine works with, and the contexts it builds from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from told.flow import Flow, call
from told.ingest.context import ExtractionConfig, WriteContext
from told.ingest.images import ImageContext
from told.maintenance.topic_assignment import TopicCache, TopicContext
from told.model.query import AsOf
from told.model.scope import Caller, Scope
from told.ports import LLM, Embedder, ImageReader, Reranker, Store, Usage
from told.retrieval import access_log, candidates, request
from told.retrieval.access_log import HotBuffers
from told.retrieval.candidates import Guard, ReadContext
from told.settings import Settings


class UsageReport(Protocol):
    """A meter of model usage by operation."""

    @property
    def by_operation(self) -> Mapping[str, Usage]:
        """Return the usage of each operation so far."""


@dataclass(frozen=True, slots=True)
class EngineContext:
    """A store, the models and settings used with it, and the caller."""

    store: Store
    settings: Settings
    embedder: Embedder | None = None
    caller: Caller = field(default_factory=Caller)
    hot_buffers: HotBuffers = field(default_factory=HotBuffers)
    reranker: Reranker | LLM | None = None
    guards: tuple[Guard, ...] = ()
    extraction: ExtractionConfig = field(default_factory=lambda: ExtractionConfig(Settings()))
    meter: UsageReport | None = None
    readers: tuple[ImageReader, ...] = ()
    topic_cache: TopicCache = field(default_factory=TopicCache)

    @property
    def account(self) -> str:
        """Return the account that verbs work in."""
        return self.caller.account

    @property
    def read_context(self) -> ReadContext:
        """Return the context of reads."""
        subscribes = self.caller.subscribes
        subscription = (candidates.allow_kinds(subscribes),) if subscribes else ()
        return ReadContext(
            self.store,
            self.settings,
            self.embedder,
            self.hot_buffers,
            (*subscription, *self.guards),
            self.reranker,
            self.extraction.echoes.record_prompt,
            self.extraction.ontology,
        )

    @property
    def write_context(self) -> WriteContext:
        """Return the context of writes."""
        return WriteContext(
            self.store,
            self.store.mint,
            self.settings,
            self.extraction,
            self.embedder,
            self.caller.name,
        )

    def image_context(self, limit: int) -> ImageContext:
        """Return the context of image reading; fetched images have at most `limit` bytes."""
        if not self.settings.fetch_urls:
            return ImageContext(self.readers, self.settings)
        from told.ingest.fetch import Fetcher

        fetcher = Fetcher(self.settings.fetch_timeout, limit)
        return ImageContext(self.readers, self.settings, fetcher)

    def topic_context(self) -> Flow[TopicContext]:
        """Return the context of topics; without an embedder they use the store's model."""
        bound_model = (
            None if self.embedder is not None else (yield from call(self.store.current_model))
        )
        model = bound_model[0] if bound_model else ""
        return TopicContext(
            self.store,
            self.store.mint,
            self.settings,
            candidates.resolve_thresholds(self.settings, self.embedder),
            model if self.embedder is None else self.embedder.model,
            self.embedder,
            self.topic_cache,
        )

    def resolve_scope(self, ids: Mapping[str, Any]) -> Scope:
        """Check scope ids and return their scope."""
        return Scope.create(**ids, account=self.account)

    def resolve_optional_scope(self, ids: Mapping[str, Any]) -> Scope | None:
        """Check scope ids and return their scope, or None if there are none."""
        given = {name: value for name, value in ids.items() if value is not None}
        return self.resolve_scope(given) if given else None

    def resolve_point(self, as_of: Any = None, valid_at: Any = None) -> Flow[AsOf]:
        """Resolve a point on both time axes; now by default."""
        return request.resolve_as_of(
            self.store, self.store.mint, self.account, self.settings, as_of=as_of, valid_at=valid_at
        )

    def flush_accesses(self) -> Flow[tuple[str, ...]]:
        """Write buffered access records; return a warning if that fails."""
        return access_log.flush_accesses(self.store, self.hot_buffers)
