"""Values of a closed world in the ledger: held, said again, given up, let go for others, and the turns in between.

What was said is evidence; what it does to the beliefs follows in the same transaction. Two writers never both win: who
decided on something that has changed since decides again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from told.core.concepts import (
    EVICTED,
    FADED,
    FORGOTTEN,
    NEGATED,
    VALUE_KEY,
    ConceptBelief,
    ConceptRules,
    ConceptScopes,
    WeightedValue,
    select_evicted,
)
from told.core.entry import Asserted, Claim, Draft, Evidence, Linked, Observed, Retracted, Verb
from told.core.errors import NotFoundError
from told.core.kind import Kind
from told.core.query import Event, Receipt
from told.core.salience import reinforce
from told.core.scope import Scope
from told.flow import Flow, call
from told.ledger import concepts
from told.ledger.commit import commit_batch, retry_on_conflict
from told.ledger.erase import SUPPORTS
from told.ports import Batch, Store, ThreadAt, ThreadUntouched, UnchangedSlot
from told.views.ticks import TICK_SORT, TOKENS_KEY, TURNS_KEY
from told.write.curate.plan import REPEAT_META
from told.write.desk import WriteContext, WritePlan, commit_plan
from told.write.embed import embed_after_commit
from told.write.extract.ground import DEFAULT_SPEAKER

QUOTE: Final = "quote"
"""The sort of evidence that is a sentence somebody took from a turn; it is no turn of its own."""


@dataclass(frozen=True, slots=True)
class ConceptStatement:
    """A value of a concept, whether it is asserted or negated, and the sentence that says so."""

    kind: Kind
    value: str
    polarity: str
    quote: str


@dataclass(slots=True)
class _ConceptUpdate:
    """What one thing that was said comes to."""

    ctx: WriteContext
    scope: Scope
    statement: ConceptStatement
    head_seq: int
    plan: WritePlan = field(default_factory=lambda: WritePlan([], [], []))

    def add_evidence(self) -> str:
        """Plan the evidence, and give its id."""
        evidence = self.ctx.id_generator.new_id()
        self._add_draft(
            Observed(
                evidence,
                Evidence(self.statement.quote, said_at=self.ctx.id_generator.now(), sort=QUOTE),
            )
        )
        return evidence

    def add_belief(self, thread: str, evidence: str) -> None:
        """Plan a belief of its own."""
        kind, value = self.statement.kind, self.statement.value
        text = f"{kind.label or kind.name}: {value}"
        meta = {VALUE_KEY: value}
        claim = Claim(
            text,
            kind.name,
            DEFAULT_SPEAKER,
            kind.name,
            value,
            evidence=evidence,
            role="user",
            meta=meta,
        )
        self._add_draft(Asserted(thread, claim))
        self.plan.guards.append(
            UnchangedSlot(self.scope, DEFAULT_SPEAKER, (kind.name,), self.head_seq)
        )
        self.plan.events.append(Event("ADD", thread, text))

    def add_support(self, belief: ConceptBelief, evidence: str) -> None:
        """Plan one more witness for a belief."""
        thread = belief.fact.id
        self._add_draft(Linked(evidence, SUPPORTS, thread, meta=REPEAT_META))
        self.plan.guards.append(ThreadAt(thread, belief.fact.seq))
        self.plan.events.append(Event("NONE", thread))

    def retract_belief(self, thread: str, why: str) -> None:
        """Plan the end of a belief, unless something is said of it meanwhile."""
        self._add_draft(Retracted(thread, why))
        self.plan.guards.append(ThreadUntouched(thread, self.head_seq))
        self.plan.events.append(Event("DELETE", thread))

    def _add_draft(self, verb: Verb) -> None:
        self.plan.drafts.append(Draft(verb, self.scope, self.ctx.author))


def upsert_value(
    ctx: WriteContext,
    concept_scopes: ConceptScopes,
    rules: ConceptRules,
    statement: ConceptStatement,
) -> Flow[Receipt]:
    """Hold a value, hold it more firmly, or give it up; its event names the thread."""
    scope = concept_scopes.scope_for(statement.kind.tier)

    def decide() -> Flow[Receipt]:
        head = yield from call(ctx.store.get_head, scope.account)
        beliefs = yield from concepts.load_beliefs(
            ctx.store, concept_scopes, rules, ctx.settings, [statement.kind.name]
        )
        plan = _plan_update(_ConceptUpdate(ctx, scope, statement, head.seq), rules, beliefs)
        return (yield from commit_plan(ctx, scope, plan, head.seq))

    receipt = yield from retry_on_conflict(ctx.settings.conflict_retries, decide)
    return (
        yield from embed_after_commit(ctx.store, ctx.embedder, scope.account, receipt, ctx.settings)
    )


def _plan_update(
    update: _ConceptUpdate, rules: ConceptRules, beliefs: Sequence[ConceptBelief]
) -> WritePlan:
    statement, evidence = update.statement, update.add_evidence()
    active = [belief.to_weighted_value() for belief in beliefs if not belief.strength.is_faded]
    for belief in beliefs:
        if belief.strength.is_faded:
            update.retract_belief(belief.fact.id, FADED)
    matched = rules.matcher.find_match(statement.value, active)
    if statement.polarity == NEGATED:
        if matched is not None:
            update.retract_belief(matched.id, NEGATED)
    elif matched is not None:
        update.add_support(
            next(belief for belief in beliefs if belief.fact.id == matched.id), evidence
        )
    else:
        _make_room(update, rules, active, evidence)
    return update.plan


def _make_room(
    update: _ConceptUpdate, rules: ConceptRules, active: Sequence[WeightedValue], evidence: str
) -> None:
    """Plan a new belief and the end of those it leaves no room for; one too weak to stay is not held at all."""
    kind, thread = update.statement.kind, update.ctx.id_generator.new_id()
    weight = reinforce(rules.build_curve(kind.name, kind.tier), 0.0)
    last_place = max((candidate.position for candidate in active), default=0)
    evicted = [
        candidate.id
        for candidate in select_evicted(
            kind, [*active, WeightedValue(thread, update.statement.value, weight, last_place + 1)]
        )
    ]
    for candidate in evicted:
        if candidate != thread:
            update.retract_belief(candidate, EVICTED)
    if thread not in evicted:
        update.add_belief(thread, evidence)


def record_turns(ctx: WriteContext, scope: Scope, turns: int, tokens: int | None) -> Flow[Receipt]:
    """Let some turns pass, of so many tokens together; of the usual size if nobody says."""
    size = turns * ctx.settings.turn_tokens if tokens is None else tokens
    evidence = Evidence(
        "",
        "system",
        said_at=ctx.id_generator.now(),
        sort=TICK_SORT,
        meta={TURNS_KEY: turns, TOKENS_KEY: size},
    )
    draft = Draft(Observed(ctx.id_generator.new_id(), evidence), scope, ctx.author)
    entries = yield from commit_batch(ctx.store, Batch(scope.account, [draft]))
    return Receipt(tx=entries[0].tx)


def forget_beliefs(
    ctx: WriteContext, concept_scopes: ConceptScopes, threads: Sequence[str]
) -> Flow[Receipt]:
    """Give up beliefs, held or faded, so that nothing recalls them; the past keeps them."""
    account = concept_scopes.lasting.account
    drafts: list[Draft] = []
    for thread in threads:
        scope = yield from _load_thread_scope(ctx.store, account, thread)
        if scope not in concept_scopes.distinct:
            raise NotFoundError(
                f"There is no memory {thread!r} here.", hint="List them with about()."
            )
        drafts.append(Draft(Retracted(thread, FORGOTTEN), scope, ctx.author))
    entries = yield from commit_batch(ctx.store, Batch(account, drafts))
    return Receipt(tuple(Event("DELETE", thread) for thread in threads), tx=entries[0].tx)


def _load_thread_scope(store: Store, account: str, thread: str) -> Flow[Scope | None]:
    """Whose a thread is, held or not."""
    entries = yield from call(store.thread_entries, account, thread)
    return next((entry.draft.scope for entry in entries if entry.draft is not None), None)
