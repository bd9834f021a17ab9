"""Apply a delta: turn its operations into ledger entries in one transaction.

Applying a delta twice has no further effect. Trust limits what an author may do: less trusted
input cannot close, weaken or supersede a memory, and a derived claim is trusted no more than its
least trusted source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, assert_never

from told.errors import InvalidInput
from told.flow import Flow, call
from told.ingest import gate
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ingest.edit import require_fact
from told.ingest.embedding import embed_after_commit
from told.ingest.messages import check_metadata
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import Failure, catch_failure
from told.ledger.erase import DERIVED_FROM
from told.maintenance.deltas import (
    CONFIDENCE_LANES,
    OPPOSING_RELATIONS,
    AddArgument,
    AddIdentityEdge,
    AssertClaim,
    AssertFrame,
    CloseTxTime,
    CloseValidTime,
    LinkDerivedArtifact,
    Operation,
    ScheduleReview,
    UpdateConfidence,
    list_memory_ids,
)
from told.model.beliefs import (
    SAME_AS,
    SUPERSEDES,
    TRUST_KEY,
    Trust,
    lowest_trust,
    may_replace,
    safe_kind,
    trust_of_claim,
    trust_of_source,
)
from told.model.entry import Asserted, Claim, Draft, Linked, Retracted
from told.model.fact import NEVER, UNLISTED_KINDS, Fact, Link
from told.model.query import AccessBatch, Event, Receipt, ReviewReason, ReviewTask
from told.model.scope import Scope
from told.ports import NoFact, ThreadAt
from told.text.dates import ALWAYS, Interval, format_iso
from told.text.tokens import md5_hex, validate_text

NEEDS_REVIEW: Final = "needs_review"
"""The relation from a memory to itself that requests a review; its metadata has the reason."""

DERIVED_KIND_KEY: Final = "made"
"""The metadata key of a derivation link that names the kind of the derived memory."""

ENDED_REASON: Final = "ended"
CONFIDENCES_KEY: Final = "confidences"
FRAME_KEY: Final = "frame"
REVIEW_PRIORITY: Final = 1.0
SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class DeltaAuthor:
    """The author of a delta, its trust level and the scope it may change."""

    name: str
    trust: Trust = Trust.USER
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class DeltaResult:
    """The receipt of a delta and the operations that changed anything."""

    receipt: Receipt
    applied: tuple[Operation, ...] = ()


@dataclass(slots=True)
class _ApplyState:
    """The state while applying a delta: memories as changed so far, existing links and the plan."""

    ctx: WriteContext
    author: DeltaAuthor
    now: int
    facts: dict[str, Fact]
    existing_links: set[tuple[str, str, str]]
    existing_reviews: set[tuple[str, str]]
    threads_by_text: dict[tuple[Scope, str], str | None] = field(default_factory=dict)
    """The memory with a given text; None if only a turn has it."""
    earlier_versions: dict[str, list[Fact]] = field(default_factory=dict)
    plan: WritePlan = field(default_factory=lambda: WritePlan([], [], []))
    tasks: list[ReviewTask] = field(default_factory=list)

    def get_fact(self, thread: str) -> Fact:
        """Return a memory as left by the previous operations."""
        if thread not in self.facts:
            raise InvalidInput(f"The memory {thread!r} is closed by the same delta.")
        return self.facts[thread]

    def add_draft(self, verb: Asserted | Retracted | Linked, scope: Scope) -> None:
        """Add an entry to the plan."""
        self.plan.drafts.append(Draft(verb, scope, self.author.name))

    def add_link(self, verb: Linked, scope: Scope, *, emit_event: bool = True) -> None:
        """Add a link unless it exists, with an event if `emit_event`."""
        link_ends = (verb.src, verb.rel, verb.dst)
        if link_ends not in self.existing_links and verb.src != verb.dst:
            self.existing_links.add(link_ends)
            self.add_draft(verb, scope)
            self.plan.events += [Event("LINK", verb.dst)] if emit_event else []

    def revise_fact(self, fact: Fact, claim: Claim) -> None:
        """Add a new version of a memory to the plan."""
        self.add_draft(Asserted(fact.id, claim, fact.created_at), fact.scope)
        valid = claim.valid
        self.facts[fact.id] = replace(
            fact,
            confidence=claim.confidence,
            meta=claim.meta,
            precision=valid.precision,
            valid_to=NEVER if valid.end is None else valid.end,
        )
        self.plan.events.append(
            Event("UPDATE", fact.id, fact.text, fact.text, fact.role, fact.actor)
        )


def apply_operations(
    ctx: WriteContext, account: str, operations: Sequence[Operation], author: DeltaAuthor
) -> Flow[DeltaResult]:
    """Apply all operations in one transaction; if one is invalid, raise and change nothing."""
    tasks: list[ReviewTask] = []

    def decide() -> Flow[DeltaResult]:
        state = yield from _load_state(ctx, account, operations, author)
        applied = tuple(operation for operation in operations if _apply_operation(state, operation))
        tasks[:] = state.tasks
        return DeltaResult((yield from commit_plan(ctx, Scope(account), state.plan)), applied)

    result = yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide)
    receipt = yield from embed_after_commit(
        ctx.store, ctx.embedder, account, result.receipt, ctx.settings
    )
    if tasks:
        window = ctx.settings.maintenance.reconsolidate_window * SECOND_US
        batch = AccessBatch(tasks=tasks, window=window)
        queued = yield from catch_failure(call(ctx.store.record_accesses, account, batch))
        if isinstance(queued, Failure):
            receipt = replace(
                receipt, warnings=(*receipt.warnings, f"A review could not be queued: {queued}")
            )
    return replace(result, receipt=receipt)


def _load_state(
    ctx: WriteContext, account: str, operations: Sequence[Operation], author: DeltaAuthor
) -> Flow[_ApplyState]:
    """Load every memory the operations name, its links, and existing duplicates of new claims."""
    facts: dict[str, Fact] = {}
    for thread in dict.fromkeys(
        thread for operation in operations for thread in list_memory_ids(operation)
    ):
        facts[thread] = yield from require_fact(ctx.store, account, thread, author.scope)
    links: Sequence[Link] = (
        (yield from call(ctx.store.find_links, account, list(facts))) if facts else ()
    )
    open_links = [link for link in links if link.until == NEVER]
    link_ends = {(link.src, link.rel, link.dst) for link in open_links}
    review_marks = {
        (link.src, str(link.meta.get("why", ""))) for link in open_links if link.rel == NEEDS_REVIEW
    }
    state = _ApplyState(ctx, author, ctx.id_generator.now(), facts, link_ends, review_marks)
    for operation in operations:
        if reason := find_objection(operation, facts, author):
            raise InvalidInput(f"{reason[0].upper()}{reason[1:]}.")
        if isinstance(operation, AssertClaim | AssertFrame):
            scope = _resolve_scope(state, operation.sources)
            text = _screen_claim_text(state, operation)
            existing = yield from call(ctx.store.lookup_existing, scope, [md5_hex(text)], (), None)
            duplicate = existing.facts.get(md5_hex(text))
            if duplicate is not None:
                state.threads_by_text[scope, duplicate.md5] = (
                    None if duplicate.kind in UNLISTED_KINDS else duplicate.id
                )
        if isinstance(operation, CloseValidTime):
            state.earlier_versions[operation.id] = yield from _load_earlier_versions(
                ctx, account, facts[operation.id]
            )
    state.plan.guards += [ThreadAt(fact.id, fact.seq) for fact in facts.values()]
    return state


def _load_earlier_versions(ctx: WriteContext, account: str, fact: Fact) -> Flow[list[Fact]]:
    """Return the earlier versions of a memory that were not retracted, in order."""
    versions = yield from call(ctx.store.find_versions, account, threads=[fact.id])
    return [version for version in versions if version.seq < fact.seq and version.gone == NEVER]


def find_objection(operation: Operation, facts: Mapping[str, Fact], author: DeltaAuthor) -> str:
    """Return why an author may not apply an operation, or an empty string."""
    owners = {facts[thread].scope.partition_key() for thread in list_memory_ids(operation)}
    if len(owners) > 1:
        return "its memories belong to different owners"
    match operation:
        case CloseValidTime(id=id) | CloseTxTime(id=id) | UpdateConfidence(id=id):
            if not may_replace(author.trust, trust_of_claim(facts[id])):
                return (
                    f"{author.name} may not close or weaken a more trusted memory; "
                    "schedule a review instead"
                )
        case AddArgument(src=src, rel=rel, dst=dst) if (
            rel in OPPOSING_RELATIONS and author.trust < Trust.USER
        ):
            if not may_replace(trust_of_source(facts[src]), trust_of_source(facts[dst])):
                return f"{rel} is not allowed from a less trusted to a more trusted memory"
        case AssertClaim(sources=sources) | AssertFrame(sources=sources):
            if len({facts[thread].scope for thread in sources}) > 1:
                return "its sources are in different scopes"
            if not sources and author.trust < Trust.USER:
                return "it has no source"
        case _:
            pass
    return ""


def _resolve_scope(state: _ApplyState, sources: Sequence[str]) -> Scope:
    """Return the scope of a new claim: that of its sources, or of its author."""
    if sources:
        return state.facts[sources[0]].scope
    if state.author.scope is None:
        raise InvalidInput(
            "A claim without sources needs a scope.", hint="Give a user_id, agent_id or run_id."
        )
    return state.author.scope


def _screen_claim_text(state: _ApplyState, operation: AssertClaim | AssertFrame) -> str:
    """Return the text of a claim with secrets removed."""
    claim = _frame_to_claim(operation) if isinstance(operation, AssertFrame) else operation
    settings = state.ctx.settings
    text, warnings = gate.screen_text(
        validate_text(claim.text, limit=settings.text_limit), settings
    )
    state.plan.warnings.update(dict.fromkeys(warnings))
    return text


def _frame_to_claim(frame: AssertFrame) -> AssertClaim:
    """Convert a frame to a claim with its type as predicate and its first role as subject."""
    text = frame.text or f"{frame.type}: " + ", ".join(
        f"{role} {filler}" for role, filler in frame.roles.items()
    )
    subject = next(iter(frame.roles.values()))
    meta = {FRAME_KEY: {"type": frame.type, "roles": dict(frame.roles)}}
    return AssertClaim(
        text, frame.sources, frame.kind, subject, frame.type, confidence=frame.confidence, meta=meta
    )


# Operations


def _apply_operation(state: _ApplyState, operation: Operation) -> bool:
    """Apply one operation and return whether it changes anything."""
    before = len(state.plan.drafts), len(state.tasks)
    match operation:
        case AssertClaim():
            _assert_claim(state, operation)
        case AssertFrame():
            _assert_claim(state, _frame_to_claim(operation))
        case AddArgument():
            _add_argument(state, operation)
        case AddIdentityEdge():
            _add_identity_edge(state, operation)
        case CloseValidTime():
            _close_valid_time(state, operation)
        case CloseTxTime():
            _close_tx_time(state, operation)
        case UpdateConfidence():
            _update_confidence(state, operation)
        case ScheduleReview():
            _schedule_review(state, operation)
        case LinkDerivedArtifact(id=id, artifact=artifact):
            state.add_link(Linked(artifact, DERIVED_FROM, id), state.get_fact(id).scope)
        case _:
            assert_never(operation)
    return before != (len(state.plan.drafts), len(state.tasks))


def _assert_claim(state: _ApplyState, operation: AssertClaim) -> None:
    """Add a claim unless the same text exists, and link it to its sources."""
    scope, text = _resolve_scope(state, operation.sources), _screen_claim_text(state, operation)
    key = (scope, md5_hex(text))
    thread = state.threads_by_text.get(key)
    if thread is None:
        state.plan.guards += [] if key in state.threads_by_text else [NoFact(scope, (key[1],))]
        thread = state.threads_by_text[key] = state.ctx.id_generator.new_id()
        claim = _build_claim(state, operation, text)
        state.add_draft(Asserted(thread, claim), scope)
        state.plan.events.append(Event("ADD", thread, text, None, claim.role))
    for source in operation.sources:
        state.add_link(
            Linked(thread, DERIVED_FROM, source, meta={DERIVED_KIND_KEY: operation.kind}),
            scope,
            emit_event=False,
        )
        state.add_link(Linked(thread, SUPERSEDES, source), scope, emit_event=False)


def _build_claim(state: _ApplyState, operation: AssertClaim, text: str) -> Claim:
    """Build a claim: stated by the author without sources, inferred with sources."""
    author, ctx = state.author, state.ctx
    ctx.extraction.ontology.get_kind(operation.kind)
    derived = bool(operation.sources)
    trust = lowest_trust(
        [author.trust, *(trust_of_claim(state.get_fact(source)) for source in operation.sources)]
    )
    kind = safe_kind(operation.kind, min(trust, Trust.INFERENCE) if derived else trust)
    if kind in UNLISTED_KINDS:
        raise InvalidInput(f"A claim cannot have the kind {kind!r}.", hint="Omit the kind.")
    meta = dict(check_metadata(operation.meta, ctx.settings))
    stamped = {**meta, TRUST_KEY: trust.label} if trust < Trust.INFERENCE else meta
    start, end = operation.valid_from, operation.valid_to
    return Claim(
        text,
        kind,
        operation.subject,
        operation.predicate,
        operation.object,
        operation.polarity,
        "inferred" if derived else "stated",
        operation.confidence,
        ALWAYS if start is None and end is None else Interval(start, end, "instant"),
        role=None if derived else "user",
        meta=stamped,
    )


def _add_argument(state: _ApplyState, operation: AddArgument) -> None:
    """Add an argument, marked with its trust unless a user makes it."""
    meta = check_metadata(operation.meta, state.ctx.settings)
    stamped = (
        meta if state.author.trust is Trust.USER else {**meta, TRUST_KEY: state.author.trust.label}
    )
    scope = state.get_fact(operation.dst).scope
    state.get_fact(operation.src)
    state.add_link(
        Linked(operation.src, operation.rel, operation.dst, operation.strength, stamped), scope
    )


def _add_identity_edge(state: _ApplyState, operation: AddIdentityEdge) -> None:
    """Add an identity edge, which identity lenses read; nothing is merged."""
    first, second = state.get_fact(operation.one), state.get_fact(operation.other)
    is_same = operation.relation in ("same_referent", "possibly_same_referent")
    rel = SAME_AS if is_same else operation.relation
    if not {(first.id, rel, second.id), (second.id, rel, first.id)} & state.existing_links:
        meta = {"method": operation.method, "relation": operation.relation}
        state.add_link(Linked(second.id, rel, first.id, operation.confidence, meta), first.scope)


def _close_valid_time(state: _ApplyState, operation: CloseValidTime) -> None:
    """End a memory's valid time by asserting its versions again with an end.

    The open-ended versions are retracted first, since each version holds for its own valid time.
    """
    fact = state.get_fact(operation.id)
    if fact.valid_to == operation.at:
        return
    if operation.at <= fact.valid_from:
        hint = f"It holds from {format_iso(fact.valid_from)}; name a later time."
        raise InvalidInput(f"The memory {fact.id!r} cannot end before it begins.", hint=hint)
    state.add_draft(Retracted(fact.id, ENDED_REASON), fact.scope)
    versions = [*state.earlier_versions[fact.id], fact]
    for version, following in pairwise(versions):
        if version.valid_from < (end := min(version.valid_to, following.valid_from, operation.at)):
            state.add_draft(
                Asserted(fact.id, _end_claim_at(version, end), fact.created_at), fact.scope
            )
    state.revise_fact(fact, _end_claim_at(fact, operation.at))


def _end_claim_at(fact: Fact, end: int) -> Claim:
    """Return the claim of a memory with an end of its valid time."""
    precision = "instant" if fact.precision == ALWAYS.precision else fact.precision
    return replace(
        _fact_to_claim(fact), valid=Interval(fact.valid_interval().start, end, precision)
    )


def _close_tx_time(state: _ApplyState, operation: CloseTxTime) -> None:
    fact = state.get_fact(operation.id)
    state.add_draft(Retracted(fact.id, operation.why), fact.scope)
    state.plan.events.append(Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor))
    del state.facts[fact.id]


def _update_confidence(state: _ApplyState, operation: UpdateConfidence) -> None:
    """Set one lane's confidence; the first lane with a value determines the effective one."""
    fact = state.get_fact(operation.id)
    recorded = fact.meta.get(CONFIDENCES_KEY)
    previous: Mapping[str, Any] = recorded if isinstance(recorded, Mapping) else {}
    lanes = {**previous, operation.lane: operation.confidence}
    if lanes != previous:
        confidence = next(float(lanes[lane]) for lane in CONFIDENCE_LANES if lane in lanes)
        state.revise_fact(
            fact,
            replace(
                _fact_to_claim(fact),
                confidence=confidence,
                meta={**fact.meta, CONFIDENCES_KEY: lanes},
            ),
        )


def _schedule_review(state: _ApplyState, operation: ScheduleReview) -> None:
    """Queue a review and add a link with the reason."""
    fact = state.get_fact(operation.id)
    due = state.now if operation.due is None else operation.due
    state.tasks.append(ReviewTask(fact.id, ReviewReason.SCHEDULED_REVIEW, REVIEW_PRIORITY, due))
    if (fact.id, operation.why) not in state.existing_reviews:
        state.existing_reviews.add((fact.id, operation.why))
        state.add_draft(
            Linked(
                fact.id, NEEDS_REVIEW, fact.id, meta={"why": operation.why, "due": format_iso(due)}
            ),
            fact.scope,
        )


def _fact_to_claim(fact: Fact) -> Claim:
    """Return the claim that a fact was built from."""
    return Claim(
        fact.text,
        fact.kind,
        fact.subject,
        fact.predicate,
        fact.object,
        fact.polarity,
        fact.modality,
        fact.confidence,
        fact.valid_interval(),
        None if fact.expires == NEVER else fact.expires,
        evidence=fact.evidence,
        role=fact.role,
        actor=fact.actor,
        said_at=fact.said_at,
        source=fact.source,
        after=fact.after,
        meta=fact.meta,
    )
