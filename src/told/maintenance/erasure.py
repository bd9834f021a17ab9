"""Erase content together with the faults, topics and vectors that depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from told.errors import InvalidInput, NotFoundError
from told.flow import Flow
from told.ingest import embedding, messages, queue
from told.ledger import erase
from told.ledger.consumer import Failure, catch_failure
from told.ledger.erase import ErasureClosure
from told.maintenance import topics
from told.maintenance.topic_assignment import TopicContext
from told.model.query import Certificate
from told.model.scope import Scope
from told.ports import Store
from told.retrieval.access_log import HotBuffers


def collect_closure(
    store: Store, account: str, thread: str | None, ids: Mapping[str, Any], source: Any
) -> Flow[ErasureClosure]:
    """Collect the entries to erase for exactly one of a memory, a scope and a source."""
    has_scope = any(value is not None for value in ids.values())
    if (thread is not None) + has_scope + (source is not None) != 1:
        raise InvalidInput("Pass exactly one of a memory id, a scope and a source to erase.")
    if thread is not None:
        closure = yield from erase.collect_thread_closure(store, account, thread)
    elif source is not None:
        origin = messages.check_source(source)
        closure = yield from erase.collect_source_closure(store, account, origin)
    else:
        scope = Scope.create(**ids, account=account)
        closure = yield from erase.collect_scope_closure(store, scope)
    if not closure.seqs:
        hint = "List users, agents and runs with users()." if has_scope else ""
        raise NotFoundError("There is nothing to erase there.", hint=hint)
    return closure


def erase_closure(
    ctx: TopicContext, hot_buffers: HotBuffers, account: str, closure: ErasureClosure, why: str
) -> Flow[Certificate]:
    """Destroy a closure, repair the topics it belonged to, and return the certificate."""
    from told.maintenance import importance, reconsolidation  # late: keeps import chains short

    yield from queue.redact_faults(ctx.store, account, closure.seqs)
    yield from importance.redact_faults(ctx.store, account, closure.seqs)
    yield from reconsolidation.redact_reflection_faults(ctx.store, account)
    damage = yield from topics.prepare_erasure(ctx, account, closure.threads)
    try:
        certificate = yield from erase.destroy_closure(ctx.store, account, closure, why)
    finally:
        hot_buffers.drop_threads(account, closure.threads)
    warnings = yield from embedding.embed_missing(ctx.store, ctx.embedder)
    repair = topics.repair_after_erasure(ctx, account, damage, closure.threads)
    outcome = yield from catch_failure(repair)
    if isinstance(outcome, Failure):
        warnings = (*warnings, f"Topics were not repaired yet: {outcome}")
    return replace(certificate, warnings=(*certificate.warnings, *warnings))
