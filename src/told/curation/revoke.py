"""Revoke a source: retract everything that rests on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ingest.embedding import embed_after_commit
from told.ledger.commit import retry_on_conflict
from told.ledger.erase import DERIVED_FROM, ErasureClosure, collect_source_closure
from told.model.beliefs import CONTRADICTS, Contradiction, find_contradictions
from told.model.entry import Asserted, Draft, Entry, Retracted
from told.model.fact import Fact
from told.model.query import LATEST, AsOf, Event, FactQuery, Receipt
from told.model.scope import Scope
from told.ports import Guard, Store, ThreadAt

REVOKED: Final = "revoked"


def load_contradictions(store: Store, scope: Scope, now: int) -> Flow[list[Contradiction]]:
    """Return the contradictions in a scope in order of detection, including quarantined claims."""
    facts = yield from call(store.find_facts, FactQuery(scope, AsOf(LATEST, now)))
    links = yield from call(store.find_links, scope.account, [fact.id for fact in facts])
    return find_contradictions(facts, [link for link in links if link.rel == CONTRADICTS])


def revoke_source(ctx: WriteContext, account: str, source: str) -> Flow[Receipt]:
    """Retract everything that rests on a source and restore independent earlier versions.

    Nothing is destroyed: old states stay readable with `as_of`. Use `erase` to destroy.
    """

    def decide() -> Flow[Receipt]:
        closure = yield from collect_source_closure(ctx.store, account, source)
        plan = WritePlan([], [], [])
        retracted: dict[str, Fact] = {}
        for thread in closure.threads:
            fact = yield from call(ctx.store.get_fact, account, thread)
            if fact is not None and (
                yield from _is_based_on(ctx, fact, closure.evidence.keys() | retracted.keys())
            ):
                is_direct = fact.evidence in closure.evidence  # derived facts have no earlier state
                entries = (
                    (yield from call(ctx.store.scan_entries, account, thread=thread))
                    if is_direct
                    else ()
                )
                _plan_retraction(ctx, plan, fact, _find_earlier_claim(entries, closure))
                retracted[thread] = fact
        if not retracted:
            return Receipt()
        return (yield from commit_plan(ctx, next(iter(retracted.values())).scope, plan))

    receipt = yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide)
    return (yield from embed_after_commit(ctx.store, ctx.embedder, account, receipt, ctx.settings))


def _is_based_on(ctx: WriteContext, fact: Fact, sources: Collection[str]) -> Flow[bool]:
    """Return True if the current version of a fact comes from, or is derived from, a source."""
    if fact.evidence in sources:
        return True
    links = yield from call(ctx.store.find_links, fact.scope.account, [fact.id])
    return any(
        link.src == fact.id and link.rel == DERIVED_FROM and link.dst in sources for link in links
    )


def _find_earlier_claim(entries: Sequence[Entry], closure: ErasureClosure) -> Asserted | None:
    """Return the last independent assertion of a thread that was not retracted, or None."""
    current: Asserted | None = None
    for entry in entries:
        match entry.verb:
            case Retracted():
                current = None
            case Asserted() as asserted if asserted.claim.evidence not in closure.evidence:
                current = asserted
            case _:
                pass
    return current


def _plan_retraction(
    ctx: WriteContext, plan: WritePlan, fact: Fact, earlier: Asserted | None
) -> None:
    guard: Guard = ThreadAt(fact.id, fact.seq)
    plan.guards.append(guard)
    plan.drafts.append(Draft(Retracted(fact.id, REVOKED), fact.scope, ctx.author))
    plan.events.append(Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor))
    if earlier is not None:
        claim = earlier.claim
        plan.drafts.append(Draft(Asserted(fact.id, claim, fact.created_at), fact.scope, ctx.author))
        plan.events.append(Event("ADD", fact.id, claim.text, None, claim.role, claim.actor))
