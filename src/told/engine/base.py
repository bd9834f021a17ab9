"""What every verb works with: a store, the models beside it, the guard at the door, and the scope of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar, cast

from told.errors import Denied
from told.flow import Flow
from told.ingest.context import ExtractionConfig, ExtractionOptions, WriteContext
from told.ingest.images import ImageContext
from told.maintenance.topic_assignment import TopicCache
from told.model.policy import DEFAULT_POLICIES, Action, PolicyDecision, decide_access
from told.model.query import AsOf
from told.model.scope import ID_LIMIT, Caller, Scope
from told.ports import LLM, Embedder, ImageReader, Reranker, Store, Usage
from told.retrieval import access_log, request
from told.retrieval.access_log import HotBuffers
from told.retrieval.candidates import Guard, ReadContext, allow_kinds
from told.settings import Settings
from told.text.tokens import validate_label

F = TypeVar("F", bound=Callable[..., Flow[Any]])
VERB_ACTIONS: dict[str, Action] = {}


class UsageReport(Protocol):
    """What counts what models cost, by operation."""

    @property
    def by_operation(self) -> Mapping[str, Usage]:
        """What each operation cost so far."""


def requires_action(action: Action) -> Callable[[F], F]:
    """Name the policy action a verb needs; the guard asks before the verb's first step."""

    def decorate(method: F) -> F:
        VERB_ACTIONS[method.__name__] = action

        @wraps(method)
        def wrapper(self: EngineBase, *args: Any, **kwargs: Any) -> Flow[Any]:
            self.check_allowed(action)
            return method(self, *args, **kwargs)

        return cast(F, wrapper)

    return decorate


@dataclass(frozen=True, slots=True)
class EngineBase:
    """A store, the models beside it, and what every verb over them needs."""

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
        """The account every verb works in."""
        return self.caller.account

    @property
    def read_context(self) -> ReadContext:
        """What reads work with."""
        subscriptions = (allow_kinds(self.caller.subscribes),) if self.caller.subscribes else ()
        guards = (*subscriptions, *self.guards)
        remember_echo = self.extraction.echoes.record_prompt
        kinds = self.extraction.ontology
        return ReadContext(
            self.store,
            self.settings,
            self.embedder,
            self.hot_buffers,
            guards,
            self.reranker,
            remember_echo,
            kinds,
        )

    @property
    def write_context(self) -> WriteContext:
        """What writes work with."""
        return WriteContext(
            self.store,
            self.store.mint,
            self.settings,
            self.extraction,
            self.embedder,
            self.caller.name,
        )

    @property
    def image_context(self) -> ImageContext:
        """How images are looked at, and what may be fetched for it."""
        return self.build_image_context(self.settings.image_limit)

    def build_image_context(self, limit: int) -> ImageContext:
        """How images are looked at, with what fetches so many bytes if that is allowed."""
        if not self.settings.fetch_urls:
            return ImageContext(self.readers, self.settings)
        from told.ingest.fetch import Fetcher

        return ImageContext(
            self.readers, self.settings, Fetcher(self.settings.fetch_timeout, limit)
        )

    def check_allowed(self, action: Action) -> None:
        """Raise `Denied` unless the caller may do this in its account."""
        decision = _decide_without_grant(
            self.caller.name, action, owner="owner" in self.caller.roles
        )
        if not decision.allowed:
            raise Denied(decision.reason)

    def resolve_scope(self, ids: Mapping[str, Any]) -> Scope:
        """The checked scope of a call."""
        return Scope.create(**ids, account=self.account)

    def resolve_point(self, as_of: Any = None, valid_at: Any = None) -> Flow[AsOf]:
        """A point on both time axes."""
        return request.resolve_as_of(
            self.store, self.store.mint, self.account, self.settings, as_of=as_of, valid_at=valid_at
        )

    def extraction_options(
        self, by: Any = None, *, prompt: Any = None, facts: Any = None, later: Any = None
    ) -> ExtractionOptions:
        """How a write is to be understood; with nothing said, by the usual extractor, and later if that is far away."""
        return self.extraction.build_options(by, prompt=prompt, facts=facts, deferred=later)

    def flush_accesses(self) -> Flow[tuple[str, ...]]:
        """Write down what was recalled; what could not be written is a warning."""
        return access_log.flush_accesses(self.store, self.hot_buffers)

    def resolve_optional_scope(self, ids: Mapping[str, Any]) -> Scope | None:
        given = {name: value for name, value in ids.items() if value is not None}
        return self.resolve_scope(given) if given else None


@lru_cache
def _decide_without_grant(holder: str, action: Action, *, owner: bool) -> PolicyDecision:
    """What a caller may do who has no grant, under a policy that is in force at all times: the same every time."""
    return decide_access(DEFAULT_POLICIES["private"], (), holder, action, owner=owner, now=0)


def check_memory_id(value: Any) -> str:
    """The id of a memory, checked."""
    return validate_label(value, "A memory id", limit=ID_LIMIT)
