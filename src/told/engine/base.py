"""What every verb works with: a store, the models beside it, the guard at the door, and the scope of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar, cast

from told.core.errors import Denied
from told.core.policy import DEFAULTS, Action, Verdict, allows
from told.core.query import AsOf
from told.core.scope import ID_LIMIT, Caller, Scope
from told.core.text import label
from told.flow import Flow
from told.ports import LLM, Embedder, ImageReader, Reranker, Store, Usage
from told.read import cache, plan
from told.read.cache import Overlay
from told.read.gather import Eye
from told.read.guard import Guard, subscribed
from told.settings import Settings
from told.tend.shelves import Shelves
from told.write.desk import Desk
from told.write.media.see import Look
from told.write.mind import Ask, Mind

F = TypeVar("F", bound=Callable[..., Flow[Any]])
VERBS: dict[str, Action] = {}


class Spent(Protocol):
    """What counts what models cost, by operation."""

    @property
    def by_operation(self) -> Mapping[str, Usage]:
        """What each operation cost so far."""


def verb(action: Action) -> Callable[[F], F]:
    """Name the policy action a verb needs; the guard asks before the verb's first step."""

    def mark(method: F) -> F:
        VERBS[method.__name__] = action

        @wraps(method)
        def guarded(self: Base, *args: Any, **kwargs: Any) -> Flow[Any]:
            self.allow(action)
            return method(self, *args, **kwargs)

        return cast(F, guarded)

    return mark


@dataclass(frozen=True, slots=True)
class Base:
    """A store, the models beside it, and what every verb over them needs."""

    store: Store
    settings: Settings
    embedder: Embedder | None = None
    caller: Caller = field(default_factory=Caller)
    overlay: Overlay = field(default_factory=Overlay)
    reranker: Reranker | LLM | None = None
    guards: tuple[Guard, ...] = ()
    mind: Mind = field(default_factory=lambda: Mind(Settings()))
    meter: Spent | None = None
    readers: tuple[ImageReader, ...] = ()
    shelves: Shelves = field(default_factory=Shelves)

    @property
    def account(self) -> str:
        """The account every verb works in."""
        return self.caller.account

    @property
    def eye(self) -> Eye:
        """What reads work with."""
        subscriptions = (subscribed(self.caller.subscribes),) if self.caller.subscribes else ()
        guards = (*subscriptions, *self.guards)
        heard = self.mind.echoes.remember
        kinds = self.mind.ontology
        return Eye(self.store, self.settings, self.embedder, self.overlay, guards, self.reranker, heard, kinds)

    @property
    def desk(self) -> Desk:
        """What writes work with."""
        return Desk(self.store, self.store.mint, self.settings, self.mind, self.embedder, self.caller.name)

    @property
    def look(self) -> Look:
        """How images are looked at, and what may be fetched for it."""
        return self.looking(self.settings.image_limit)

    def looking(self, limit: int) -> Look:
        """How images are looked at, with what fetches so many bytes if that is allowed."""
        if not self.settings.fetch_urls:
            return Look(self.readers, self.settings)
        from told.write.media.fetch import Fetcher

        return Look(self.readers, self.settings, Fetcher(self.settings.fetch_timeout, limit))

    def allow(self, action: Action) -> None:
        """Raise `Denied` unless the caller may do this in its account."""
        verdict = _verdict(self.caller.name, action, owner="owner" in self.caller.roles)
        if not verdict.allowed:
            raise Denied(verdict.reason)

    def scope(self, ids: Mapping[str, Any]) -> Scope:
        """The checked scope of a call."""
        return Scope.of(**ids, account=self.account)

    def point(self, as_of: Any = None, valid_at: Any = None) -> Flow[AsOf]:
        """A point on both time axes."""
        return plan.point(self.store, self.store.mint, self.account, self.settings, as_of=as_of, valid_at=valid_at)

    def ask(self, by: Any = None, *, prompt: Any = None, facts: Any = None, later: Any = None) -> Ask:
        """How a write is to be understood; with nothing said, by the usual extractor, and later if that is far away."""
        return self.mind.ask(by, prompt=prompt, facts=facts, later=later)

    def flush(self) -> Flow[tuple[str, ...]]:
        """Write down what was recalled; what could not be written is a warning."""
        return cache.flush(self.store, self.overlay)

    def within(self, ids: Mapping[str, Any]) -> Scope | None:
        named = {name: value for name, value in ids.items() if value is not None}
        return self.scope(named) if named else None


@lru_cache
def _verdict(holder: str, action: Action, *, owner: bool) -> Verdict:
    """What a caller may do who has no grant, under a policy that is in force at all times: the same every time."""
    return allows(DEFAULTS["private"], (), holder, action, owner=owner, now=0)


def named(value: Any) -> str:
    """The id of a memory, checked."""
    return label(value, "A memory id", limit=ID_LIMIT)
