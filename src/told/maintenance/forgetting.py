"""Archive faded memories, one page at a time; history is kept and permanent kinds never fade.

A page is committed only if none of its memories was mentioned since it was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from told.flow import Flow, call
from told.ledger.commit import commit_batch, retry_on_conflict
from told.model.entry import Draft, Retracted
from told.model.fact import Fact
from told.model.query import LATEST, AsOf, FactQuery, exclude_unlisted
from told.model.scope import Scope
from told.ports import Batch, ThreadUntouched
from told.retrieval.candidates import ReadContext, find_denials, load_facts_by_id
from told.retrieval.listing import find_faded, measure_strengths

CONSUMER: Final = "forgetting"
FADED, FORGOTTEN = "faded", "forgotten"
PAGE: Final = 1000
"""The number of memories measured at a time."""


@dataclass(frozen=True, slots=True)
class ForgottenFact:
    """An archived memory and its last weight."""

    fact: Fact
    weight: float


def forget_faded(ctx: ReadContext, scope: Scope) -> Flow[tuple[ForgottenFact, ...]]:
    """Archive every memory of a scope that has faded, as of the current head."""
    head = yield from call(ctx.store.get_head, scope.account)
    query = exclude_unlisted(
        FactQuery(scope, AsOf(head.seq, ctx.store.mint.now()), show_expired=True, limit=PAGE)
    )
    forgotten: list[ForgottenFact] = []
    while facts := (yield from call(ctx.store.find_facts, query)):
        denied = find_denials(facts, ctx.guards)
        faded_seqs = yield from find_faded(
            ctx, [fact for fact in facts if fact.seq not in denied], query
        )
        forgotten += yield from _retract_faded(
            ctx, query, [fact.id for fact in facts if fact.seq in faded_seqs]
        )
        query = replace(query, after=facts[-1].seq)
    return tuple(forgotten)


def _retract_faded(
    ctx: ReadContext, query: FactQuery, threads: Sequence[str]
) -> Flow[Sequence[ForgottenFact]]:
    """Retract in one commit the threads that are still faded."""
    latest = replace(query, as_of=AsOf(LATEST, query.as_of.at), limit=None, after=0)

    def decide() -> Flow[Sequence[ForgottenFact]]:
        head_seq = (yield from call(ctx.store.get_head, query.scope.account)).seq
        facts = yield from load_facts_by_id(ctx, latest, threads)
        strength_by_seq = yield from measure_strengths(ctx, facts, latest)
        forgotten = [
            ForgottenFact(fact, strength_by_seq[fact.seq].weight)
            for fact in facts
            if strength_by_seq[fact.seq].is_faded
        ]
        if forgotten:
            yield from commit_batch(
                ctx.store,
                _build_batch(query.scope.account, [item.fact for item in forgotten], head_seq),
            )
        return forgotten

    return (
        (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))
        if threads
        else ()
    )


def _build_batch(account: str, facts: Sequence[Fact], head_seq: int) -> Batch:
    drafts = [Draft(Retracted(fact.id, FADED), fact.scope, CONSUMER) for fact in facts]
    return Batch(account, drafts, [ThreadUntouched(fact.id, head_seq) for fact in facts], head_seq)
