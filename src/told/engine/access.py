"""Policy checks for verbs, and guards that hide facts from a caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar, cast

from told.engine.results import QueuedReview
from told.errors import Denied, NotFoundError
from told.flow import Flow, call
from told.ledger.history import load_threads_from_evidence
from told.model.fact import EvidenceRow, Fact
from told.model.policy import DEFAULT_POLICIES, Action, PolicyDecision, decide_access
from told.model.query import AsOf, ReviewTask
from told.model.scope import Caller, Scope
from told.retrieval import access_log
from told.retrieval.candidates import ReadContext, find_denials
from told.retrieval.request import build_fact_query
from told.retrieval.topics import TopicListing, list_topics

F = TypeVar("F", bound=Callable[..., Flow[Any]])
VERB_ACTIONS: dict[str, Action] = {}


class HasCaller(Protocol):
    """An object that acts for a caller."""

    @property
    def caller(self) -> Caller:
        """The caller that verbs act for."""


def requires_action(action: Action) -> Callable[[F], F]:
    """Check that the caller may perform an action before the verb starts."""

    def decorate(method: F) -> F:
        VERB_ACTIONS[method.__name__] = action

        @wraps(method)
        def wrapper(self: HasCaller, *args: Any, **kwargs: Any) -> Flow[Any]:
            check_allowed(self.caller, action)
            return method(self, *args, **kwargs)

        return cast(F, wrapper)

    return decorate


def check_allowed(caller: Caller, action: Action) -> None:
    """Raise `Denied` unless the caller may perform an action in its account."""
    decision = _decide_without_grant(caller.name, action, owner="owner" in caller.roles)
    if not decision.allowed:
        raise Denied(decision.reason)


@lru_cache
def _decide_without_grant(holder: str, action: Action, *, owner: bool) -> PolicyDecision:
    """Decide by the default policy, which never expires, so that the decision can be cached."""
    return decide_access(DEFAULT_POLICIES["private"], (), holder, action, owner=owner, now=0)


def filter_visible(ctx: ReadContext, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that no guard denies."""
    denied = find_denials(facts, ctx.guards)
    return [fact for fact in facts if fact.seq not in denied]


def find_visible_fact(
    ctx: ReadContext, account: str, thread: str, scope: Scope | None, at: AsOf | None = None
) -> Flow[Fact | None]:
    """Return a fact of the scope, or None if it is missing or a guard denies it."""
    args = (account, thread) if at is None else (account, thread, at)
    fact = yield from call(ctx.store.get_fact, *args)
    is_hidden = (
        fact is None
        or (scope is not None and not scope.covers(fact.scope))
        or find_denials([fact], ctx.guards)
    )
    return None if is_hidden else fact


def require_visible_fact(
    ctx: ReadContext, account: str, thread: str, scope: Scope | None, at: AsOf | None = None
) -> Flow[Fact]:
    """Return a fact of the scope, or raise `NotFoundError` if it is missing or denied."""
    fact = yield from find_visible_fact(ctx, account, thread, scope, at)
    if fact is None:
        raise NotFoundError(
            f"There is no memory {thread!r} here.", hint="List them with get_all()."
        )
    return fact


def find_hidden_ids(ctx: ReadContext, scope: Scope) -> Flow[frozenset[str]]:
    """Return the ids of memories with a version that a guard denies."""
    versions = (
        (yield from call(ctx.store.find_versions, scope.account, scope=scope)) if ctx.guards else ()
    )
    denied = find_denials(versions, ctx.guards)
    return frozenset(fact.id for fact in versions if fact.seq in denied)


def is_evidence_visible(
    ctx: ReadContext, account: str, evidence: Sequence[EvidenceRow]
) -> Flow[bool]:
    """Return whether a guard allows some fact derived from the evidence."""
    if not ctx.guards:
        return True
    evidence_ids = [row.id for row in evidence]
    for thread in (yield from load_threads_from_evidence(ctx.store, account, evidence_ids)):
        fact = yield from call(ctx.store.get_fact, account, thread)
        if fact is not None and not find_denials([fact], ctx.guards):
            return True
    return False


def list_visible_tasks(
    ctx: ReadContext,
    account: str,
    tasks: Sequence[ReviewTask],
    reasons_by_id: Mapping[str, tuple[str, ...]],
) -> Flow[list[QueuedReview]]:
    """Return reconsolidation tasks with their facts, without those that a guard denies."""
    queued: list[QueuedReview] = []
    for task in tasks:
        fact = yield from find_visible_fact(ctx, account, task.thread, None)
        if fact is not None:
            queued.append(QueuedReview(task, fact, reasons_by_id.get(fact.id, ())))
    return queued


def list_visible_topics(ctx: ReadContext, scope: Scope, at: AsOf) -> Flow[list[TopicListing]]:
    """List the topics of a scope that no guard denies."""

    def cooccurrence(store: Any, account: str, topic_ids: Sequence[str]) -> Flow[Any]:
        return access_log.load_cooccurrence(store, ctx.hot_buffers, account, topic_ids)

    fact_query = build_fact_query(scope, at, None, limit=None)
    topics = yield from list_topics(ctx.store, fact_query, cooccurrence)
    denied = find_denials([topic.fact for topic in topics], ctx.guards)
    return [topic for topic in topics if topic.fact.seq not in denied]
