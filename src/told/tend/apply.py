"""Applying a delta: each operation becomes ledger entries, all of them in one transaction, or none.

What is there already is not written again, so a delta that is applied twice is applied once. Whoever proposes a delta
is trusted so far and no farther: what is worth less than a memory may not close, weaken or supersede it, and what was
made of several memories is worth no more than the least of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, assert_never

from told.core.belief import SUPERSEDES
from told.core.entry import Asserted, Claim, Draft, Linked, Retracted
from told.core.errors import InvalidInput
from told.core.fact import NEVER, UNLISTED, Fact, Link
from told.core.identity import DISTINCT, SAME_AS
from told.core.query import Event, Receipt
from told.core.recall import Reason, Task
from told.core.scope import Scope
from told.core.text import clean, md5
from told.core.trust import STAMP, Trust, least, may_touch, safe_kind, source_of, trust_of
from told.core.when import ALWAYS, Interval, iso
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.consume import Failure, attempt
from told.ledger.erase import DERIVED_FROM
from told.ports import NoFact, ThreadAt
from told.tend.delta import (
    AGAINST,
    LANES,
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
    touched,
)
from told.write import gate
from told.write.change import held
from told.write.desk import Desk, Plan, settle
from told.write.embed import catch_up
from told.write.messages import check_metadata

NEEDS_REVIEW: Final = "needs_review"
"""The link from a memory to itself that says somebody is to look at it, and why."""

MADE: Final = "made"
"""The metadata of a link to a source that names the kind of what was made of it."""

ENDED: Final = "ended"
CONFIDENCES: Final = "confidences"
FRAME: Final = "frame"
REVIEW_PRIORITY: Final = 1.0
SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Hand:
    """Who applies a delta: the author of its entries, how far it is trusted, and the scope it reaches."""

    author: str
    trust: Trust = Trust.USER
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What a delta came to: the receipt, and the operations that changed anything."""

    receipt: Receipt
    done: tuple[Operation, ...] = ()


@dataclass(slots=True)
class _Bench:
    """What operations are carried out on: the memories they name as they will be, what is there, and the plan."""

    desk: Desk
    hand: Hand
    now: int
    facts: dict[str, Fact]
    links: set[tuple[str, str, str]]
    reviews: set[tuple[str, str]]
    texts: dict[tuple[Scope, str], str | None] = field(default_factory=dict)
    """Which memory has a text already; none, where only the words of a turn do."""
    earlier: dict[str, list[Fact]] = field(default_factory=dict)
    plan: Plan = field(default_factory=lambda: Plan([], [], []))
    tasks: list[Task] = field(default_factory=list)

    def fact(self, thread: str) -> Fact:
        """A memory as the operations before this one leave it."""
        if thread not in self.facts:
            raise InvalidInput(f"The memory {thread!r} is closed by the same delta.")
        return self.facts[thread]

    def write(self, verb: Asserted | Retracted | Linked, scope: Scope) -> None:
        """Draft an entry."""
        self.plan.drafts.append(Draft(verb, scope, self.hand.author))

    def link(self, verb: Linked, scope: Scope, *, told: bool = True) -> None:
        """Draft a link that is not there yet, and tell of it unless it goes without saying."""
        ends = (verb.src, verb.rel, verb.dst)
        if ends not in self.links and verb.src != verb.dst:
            self.links.add(ends)
            self.write(verb, scope)
            self.plan.events += [Event("LINK", verb.dst)] if told else []

    def revise(self, fact: Fact, claim: Claim) -> None:
        """Draft a new version of a memory."""
        self.write(Asserted(fact.id, claim, fact.created_at), fact.scope)
        valid = claim.valid
        self.facts[fact.id] = replace(
            fact, confidence=claim.confidence, meta=claim.meta, precision=valid.precision,
            valid_to=NEVER if valid.end is None else valid.end,
        )  # fmt: skip
        self.plan.events.append(Event("UPDATE", fact.id, fact.text, fact.text, fact.role, fact.actor))


def apply(desk: Desk, account: str, operations: Sequence[Operation], hand: Hand) -> Flow[Applied]:
    """Carry out all operations in one transaction; one that cannot be done is an error, and nothing was done then."""
    tasks: list[Task] = []

    def decide() -> Flow[Applied]:
        bench = yield from _bench(desk, account, operations, hand)
        done = tuple(each for each in operations if _does(bench, each))
        tasks[:] = bench.tasks
        return Applied((yield from settle(desk, Scope(account), bench.plan)), done)

    applied = yield from decided(desk.settings.conflict_retries, decide)
    receipt = yield from catch_up(desk.store, desk.embedder, account, applied.receipt, desk.settings)
    if tasks:
        window = desk.settings.reconsolidate_window * SECOND
        queued = yield from attempt(call(desk.store.enqueue, account, tasks, window))
        if isinstance(queued, Failure):
            receipt = replace(receipt, warnings=(*receipt.warnings, f"A review could not be queued: {queued}"))
    return replace(applied, receipt=receipt)


def _bench(desk: Desk, account: str, operations: Sequence[Operation], hand: Hand) -> Flow[_Bench]:
    """Look up everything the operations name, and what says the same as what they would say."""
    facts: dict[str, Fact] = {}
    for thread in dict.fromkeys(thread for each in operations for thread in touched(each)):
        facts[thread] = yield from held(desk.store, account, thread, hand.scope)
    links: Sequence[Link] = (yield from call(desk.store.links, account, list(facts))) if facts else ()
    open_links = [link for link in links if link.until == NEVER]
    ends = {(link.src, link.rel, link.dst) for link in open_links}
    marks = {(link.src, str(link.meta.get("why", ""))) for link in open_links if link.rel == NEEDS_REVIEW}
    bench = _Bench(desk, hand, desk.mint.now(), facts, ends, marks)
    for each in operations:
        if reason := objection(each, facts, hand):
            raise InvalidInput(f"{reason[0].upper()}{reason[1:]}.")
        if isinstance(each, AssertClaim | AssertFrame):
            scope, text = _home(bench, each.sources), _worded(bench, each)
            known = yield from call(desk.store.known, scope, [md5(text)], (), None)
            same = known.facts.get(md5(text))
            if same is not None:
                bench.texts[scope, same.md5] = None if same.kind in UNLISTED else same.id
        if isinstance(each, CloseValidTime):
            bench.earlier[each.id] = yield from _earlier(desk, account, facts[each.id])
    bench.plan.guards += [ThreadAt(fact.id, fact.seq) for fact in facts.values()]
    return bench


def _earlier(desk: Desk, account: str, fact: Fact) -> Flow[list[Fact]]:
    """What a memory said before and still says of earlier times, in order."""
    entries = yield from call(desk.store.thread, account, fact.id)
    versions = yield from call(desk.store.versions, account, [entry.seq for entry in entries])
    return [each for seq, each in sorted(versions.items()) if seq < fact.seq and each.gone == NEVER]


def objection(operation: Operation, facts: Mapping[str, Fact], hand: Hand) -> str:
    """Why somebody may not do this to these memories, or nothing."""
    homes = {facts[thread].scope.home() for thread in touched(operation)}
    if len(homes) > 1:
        return "its memories belong to different owners"
    match operation:
        case CloseValidTime(id=id) | CloseTxTime(id=id) | UpdateConfidence(id=id):
            if not may_touch(hand.trust, trust_of(facts[id])):
                return f"{hand.author} may not close or weaken what is trusted more; schedule a review instead"
        case AddArgument(src=src, rel=rel, dst=dst) if rel in AGAINST and hand.trust < Trust.USER:
            if not may_touch(source_of(facts[src]), source_of(facts[dst])):
                return f"what is trusted less {rel} nothing that is trusted more"
        case AssertClaim(sources=sources) | AssertFrame(sources=sources):
            if len({facts[thread].scope for thread in sources}) > 1:
                return "its sources are in different scopes"
            if not sources and hand.trust < Trust.USER:
                return "it names no source"
        case _:
            pass
    return ""


def _home(bench: _Bench, sources: Sequence[str]) -> Scope:
    """Where a claim is held: where its sources are, or where its author is."""
    if sources:
        return bench.facts[sources[0]].scope
    if bench.hand.scope is None:
        raise InvalidInput("A claim without sources needs a scope.", hint="Give a user_id, agent_id or run_id.")
    return bench.hand.scope


def _worded(bench: _Bench, operation: AssertClaim | AssertFrame) -> str:
    """What a claim says, without secrets."""
    claim = _claim_of_frame(operation) if isinstance(operation, AssertFrame) else operation
    settings = bench.desk.settings
    words, warnings = gate.screen(clean(claim.text, limit=settings.text_limit), settings)
    bench.plan.warnings.update(dict.fromkeys(warnings))
    return words


def _claim_of_frame(frame: AssertFrame) -> AssertClaim:
    """A frame as a claim: its type is the predicate, and whoever plays the first role is the subject."""
    said = frame.text or f"{frame.type}: " + ", ".join(f"{role} {filler}" for role, filler in frame.roles.items())
    subject = next(iter(frame.roles.values()))
    meta = {FRAME: {"type": frame.type, "roles": dict(frame.roles)}}
    return AssertClaim(
        said, frame.sources, frame.kind, subject, frame.type, confidence=frame.confidence, meta=meta
    )


# Operations -----------------------------------------------------------------------------------------------------------


def _does(bench: _Bench, operation: Operation) -> bool:
    """Carry out one operation; whether it changes anything."""
    before = len(bench.plan.drafts), len(bench.tasks)
    match operation:
        case AssertClaim():
            _assert(bench, operation)
        case AssertFrame():
            _assert(bench, _claim_of_frame(operation))
        case AddArgument():
            _argue(bench, operation)
        case AddIdentityEdge():
            _identify(bench, operation)
        case CloseValidTime():
            _end(bench, operation)
        case CloseTxTime():
            _give_up(bench, operation)
        case UpdateConfidence():
            _weigh(bench, operation)
        case ScheduleReview():
            _review(bench, operation)
        case LinkDerivedArtifact(id=id, artifact=artifact):
            bench.link(Linked(artifact, DERIVED_FROM, id), bench.fact(id).scope)
        case _:
            assert_never(operation)
    return before != (len(bench.plan.drafts), len(bench.tasks))


def _assert(bench: _Bench, operation: AssertClaim) -> None:
    """Hold a claim, unless the very same is held, and bind it to what it was made of."""
    scope, text = _home(bench, operation.sources), _worded(bench, operation)
    key = (scope, md5(text))
    thread = bench.texts.get(key)
    if thread is None:
        bench.plan.guards += [] if key in bench.texts else [NoFact(scope, (key[1],))]
        thread = bench.texts[key] = bench.desk.mint.id()
        claim = _claim(bench, operation, text)
        bench.write(Asserted(thread, claim), scope)
        bench.plan.events.append(Event("ADD", thread, text, None, claim.role))
    for source in operation.sources:
        bench.link(Linked(thread, DERIVED_FROM, source, meta={MADE: operation.kind}), scope, told=False)
        bench.link(Linked(thread, SUPERSEDES, source), scope, told=False)


def _claim(bench: _Bench, operation: AssertClaim, text: str) -> Claim:
    """What is held: said by its author where nothing is behind it, concluded where it was made of something."""
    hand, desk = bench.hand, bench.desk
    desk.mind.ontology.named(operation.kind)
    derived = bool(operation.sources)
    trust = least([hand.trust, *(trust_of(bench.fact(source)) for source in operation.sources)])
    kind = safe_kind(operation.kind, min(trust, Trust.INFERENCE) if derived else trust)
    if kind in UNLISTED:
        raise InvalidInput(f"No claim is made of the kind {kind!r}.", hint="Leave the kind out.")
    meta = dict(check_metadata(operation.meta, desk.settings))
    stamped = {**meta, STAMP: trust.label} if trust < Trust.INFERENCE else meta
    start, end = operation.valid_from, operation.valid_to
    return Claim(
        text, kind, operation.subject, operation.predicate, operation.object, operation.polarity,
        "inferred" if derived else "stated", operation.confidence,
        ALWAYS if start is None and end is None else Interval(start, end, "instant"),
        role=None if derived else "user", meta=stamped,
    )  # fmt: skip


def _argue(bench: _Bench, operation: AddArgument) -> None:
    """An argument; one that no user makes is no vote."""
    meta = check_metadata(operation.meta, bench.desk.settings)
    stamped = meta if bench.hand.trust is Trust.USER else {**meta, STAMP: bench.hand.trust.label}
    scope = bench.fact(operation.dst).scope
    bench.fact(operation.src)
    bench.link(Linked(operation.src, operation.rel, operation.dst, operation.strength, stamped), scope)


def _identify(bench: _Bench, operation: AddIdentityEdge) -> None:
    """An edge that lenses see, if it is one of the two they look for; nothing is merged."""
    one, other = bench.fact(operation.one), bench.fact(operation.other)
    same = operation.relation in ("same_referent", "possibly_same_referent")
    rel = SAME_AS if same else DISTINCT if operation.relation == DISTINCT else operation.relation
    if not {(one.id, rel, other.id), (other.id, rel, one.id)} & bench.links:
        meta = {"method": operation.method, "relation": operation.relation}
        bench.link(Linked(other.id, rel, one.id, operation.confidence, meta), one.scope)


def _end(bench: _Bench, operation: CloseValidTime) -> None:
    """Hold a memory anew with its end, and with it what it said before, until it said something else.

    Each version of a memory holds in the world for as long as it says, so one that says no end is given up first.
    """
    fact = bench.fact(operation.id)
    if fact.valid_to == operation.at:
        return
    if operation.at <= fact.valid_from:
        hint = f"It holds from {iso(fact.valid_from)}; name a later time."
        raise InvalidInput(f"The memory {fact.id!r} cannot end before it begins.", hint=hint)
    bench.write(Retracted(fact.id, ENDED), fact.scope)
    line = [*bench.earlier[fact.id], fact]
    for version, after in pairwise(line):
        if version.valid_from < (end := min(version.valid_to, after.valid_from, operation.at)):
            bench.write(Asserted(fact.id, _until(version, end), fact.created_at), fact.scope)
    bench.revise(fact, _until(fact, operation.at))


def _until(fact: Fact, end: int) -> Claim:
    """What a memory says, until a time."""
    precision = "instant" if fact.precision == ALWAYS.precision else fact.precision
    return replace(_same(fact), valid=Interval(fact.valid().start, end, precision))


def _give_up(bench: _Bench, operation: CloseTxTime) -> None:
    fact = bench.fact(operation.id)
    bench.write(Retracted(fact.id, operation.why), fact.scope)
    bench.plan.events.append(Event("DELETE", fact.id, fact.text, fact.text, fact.role, fact.actor))
    del bench.facts[fact.id]


def _weigh(bench: _Bench, operation: UpdateConfidence) -> None:
    """Note one confidence beside the others; a person's counts before a measured one, and that before a machine's."""
    fact = bench.fact(operation.id)
    known = fact.meta.get(CONFIDENCES)
    before: Mapping[str, Any] = known if isinstance(known, Mapping) else {}
    lanes = {**before, operation.lane: operation.confidence}
    if lanes != before:
        counts = next(float(lanes[lane]) for lane in LANES if lane in lanes)
        bench.revise(fact, replace(_same(fact), confidence=counts, meta={**fact.meta, CONFIDENCES: lanes}))


def _review(bench: _Bench, operation: ScheduleReview) -> None:
    """Put a memory into the queue, with a mark that says why."""
    fact = bench.fact(operation.id)
    due = bench.now if operation.due is None else operation.due
    bench.tasks.append(Task(fact.id, Reason.SCHEDULED_REVIEW, REVIEW_PRIORITY, due))
    if (fact.id, operation.why) not in bench.reviews:
        bench.reviews.add((fact.id, operation.why))
        bench.write(Linked(fact.id, NEEDS_REVIEW, fact.id, meta={"why": operation.why, "due": iso(due)}), fact.scope)


def _same(fact: Fact) -> Claim:
    """What a memory says, as the claim of another version."""
    return Claim(
        fact.text, fact.kind, fact.subject, fact.predicate, fact.object, fact.polarity, fact.modality, fact.confidence,
        fact.valid(), None if fact.expires == NEVER else fact.expires, evidence=fact.evidence, role=fact.role,
        actor=fact.actor, said_at=fact.said_at, source=fact.source, after=fact.after, meta=fact.meta,
    )  # fmt: skip
