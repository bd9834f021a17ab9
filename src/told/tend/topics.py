"""The consumer that puts exchanges into topics, and what keeps topics right when something in them is erased.

Which topic a turn is in is a belief, and stands in the ledger; the latest link counts. Means and vectors are notes of
the consumer. They commit with its step, and can be thrown away: they are made anew of the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from told.core.entry import Asserted, Draft, Entry, Linked
from told.core.fact import TOPIC, Link
from told.core.scope import Scope
from told.core.topics import EXCHANGE, IN_EXCHANGE, IN_TOPIC, SUPER, is_packed_mean
from told.flow import Flow, call
from told.ledger.commit import commit_batch, retry_on_conflict
from told.ledger.consume import Failure, catch_failure
from told.ports import Batch, CursorStep, Guard
from told.read.topics import CONSUMER, PAGE_SIZE
from told.tend.filing import (
    TopicChanges,
    TopicContext,
    TopicMember,
    assign_exchanges,
    begin_changes,
)
from told.tend.naming import rename_topics
from told.tend.shelves import epoch_key

NO_EMBEDDER_WARNING = (
    "No embedder is in use, so no topics are made; `told models install` adds one."
)


@dataclass(frozen=True, slots=True)
class TopicAssignmentResult:
    """What the consumer did: exchanges put into topics, topics made and split, and what was not as it should be."""

    exchanges: int = 0
    created: int = 0
    split: int = 0
    warnings: tuple[str, ...] = ()

    def __add__(self, other: TopicAssignmentResult) -> TopicAssignmentResult:
        return TopicAssignmentResult(
            self.exchanges + other.exchanges,
            self.created + other.created,
            self.split + other.split,
            (*self.warnings, *other.warnings),
        )


def assign_pending_exchanges(ctx: TopicContext, account: str) -> Flow[TopicAssignmentResult]:
    """Put every exchange that waits into a topic, a page of the ledger at a time; without an embedder, none."""
    result = TopicAssignmentResult()
    while True:
        page_result = yield from catch_failure(
            retry_on_conflict(ctx.settings.conflict_retries, lambda: _process_page(ctx, account))
        )
        if isinstance(page_result, Failure):
            return result + TopicAssignmentResult(
                warnings=(f"Not put into topics yet: {page_result}",)
            )
        if page_result is None:
            return result
        result += page_result
        if page_result.warnings:
            return result


def _process_page(ctx: TopicContext, account: str) -> Flow[TopicAssignmentResult | None]:
    """What the next page of the ledger comes to; none when there is none."""
    before = yield from call(ctx.store.get_cursor, account, CONSUMER)
    head = yield from call(ctx.store.get_head, account)
    limit = ctx.settings.consumer_batch
    entries = yield from call(ctx.store.scan_entries, account, before, limit)
    while entries and len(entries) == limit and not _drop_last_transaction(entries):
        limit *= 2
        entries = yield from call(ctx.store.scan_entries, account, before, limit)
    if not entries:
        return None
    complete = _drop_last_transaction(entries) if len(entries) == limit else entries
    if (yield from rename_topics(ctx, account, complete, head.seq)):
        head = yield from call(ctx.store.get_head, account)
    unassigned = yield from _filter_unassigned(ctx, account, _collect_exchanges(complete))
    if not unassigned:
        yield from call(ctx.store.advance_cursor, account, CONSUMER, complete[-1].seq)
        return TopicAssignmentResult()
    if ctx.embedder is None:
        return TopicAssignmentResult(warnings=(NO_EMBEDDER_WARNING,))
    changesets, count = [], 0
    for scope, exchanges in unassigned.items():
        changes = yield from begin_changes(ctx, scope)
        count += yield from assign_exchanges(changes, exchanges)
        changesets.append(changes)
    yield from commit_changes(
        ctx, changesets, CursorStep(CONSUMER, before, complete[-1].seq), head.seq
    )
    return TopicAssignmentResult(
        count, sum(f.created_count for f in changesets), sum(f.split_count for f in changesets)
    )


def _drop_last_transaction(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries without those of the last transaction, of which more may follow."""
    return [entry for entry in entries if entry.tx != entries[-1].tx]


def _collect_exchanges(entries: Iterable[Entry]) -> dict[Scope, list[TopicMember]]:
    """The exchanges that entries tell of, by scope."""
    threads_by_exchange: dict[tuple[Scope, str], dict[str, None]] = {}
    for entry in entries:
        match entry.draft:
            case Draft(verb=Linked(src=src, rel=rel, dst=dst), scope=Scope() as scope) if (
                rel == IN_EXCHANGE
            ):
                threads_by_exchange.setdefault((scope, dst), {})[src] = None
            case _:
                pass
    members: dict[Scope, list[TopicMember]] = {}
    for (scope, exchange), threads in threads_by_exchange.items():
        members.setdefault(scope, []).append(TopicMember(exchange, tuple(threads)))
    return members


def _filter_unassigned(
    ctx: TopicContext, account: str, exchanges: dict[Scope, list[TopicMember]]
) -> Flow[dict[Scope, list[TopicMember]]]:
    """Those that no topic holds: who reads a ledger again, or one from elsewhere, files nothing twice."""
    threads = [
        thread for members in exchanges.values() for member in members for thread in member.threads
    ]
    links = yield from _load_links(ctx, account, threads)
    assigned = {link.meta.get(EXCHANGE) for link in links if link.rel == IN_TOPIC}
    remaining = {
        scope: [exchange for exchange in members if exchange.key not in assigned]
        for scope, members in exchanges.items()
    }
    return {scope: members for scope, members in remaining.items() if members}


def commit_changes(
    ctx: TopicContext, changesets: Sequence[TopicChanges], step: CursorStep, head_seq: int = -1
) -> Flow[None]:
    """Commit what became of the topics of some scopes, and keep their shelves for the next time."""
    epochs = [changes.renew_epoch() for changes in changesets]
    drafts: list[Draft] = []
    guards: list[Guard] = []
    notes: dict[str, bytes | None] = {}
    for changes in changesets:
        drafts += changes.drafts
        guards += changes.guards
        notes |= changes.notes
    account = changesets[0].scope.account
    yield from commit_batch(
        ctx.store, Batch(account, drafts, guards, head_seq, step=step, notes=notes)
    )
    for changes, epoch in zip(changesets, epochs, strict=True):
        ctx.cache.put(changes.scope, epoch, changes.topic_index)


def load_current_step(ctx: TopicContext, account: str) -> Flow[CursorStep]:
    """A step on the spot: what changes topics without a page of the ledger takes its turn with what does."""
    cursor = yield from call(ctx.store.get_cursor, account, CONSUMER)
    return CursorStep(CONSUMER, cursor, cursor)


def change_topics(
    ctx: TopicContext, scope: Scope, change: Callable[[TopicChanges], Flow[None]]
) -> Flow[TopicChanges]:
    """Change the topics of a scope in one commit, again if another was quicker."""

    def decide() -> Flow[TopicChanges]:
        step = yield from load_current_step(ctx, scope.account)
        head = yield from call(ctx.store.get_head, scope.account)
        changes = yield from begin_changes(ctx, scope)
        yield from change(changes)
        yield from commit_changes(ctx, [changes], step, head.seq)
        return changes

    return (yield from retry_on_conflict(ctx.settings.conflict_retries, decide))


# Erasure --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ErasureDamage:
    """What an erasure takes from the topics of a scope: members of some, and others altogether."""

    topics: dict[str, None] = field(default_factory=dict)
    exchange_keys: dict[str, None] = field(default_factory=dict)
    orphans: dict[str, dict[str, None]] = field(default_factory=dict)


def prepare_erasure(
    ctx: TopicContext, account: str, threads: Iterable[str]
) -> Flow[dict[Scope, ErasureDamage]]:
    """Forget every mean and vector that threads are in, before they are erased; what is to be mended afterwards."""
    erased = set(threads)
    damage_by_scope: dict[Scope, ErasureDamage] = {}
    links = yield from _load_links(ctx, account, sorted(erased))
    for link in (link for link in links if link.rel in (IN_TOPIC, IN_EXCHANGE)):
        damage = damage_by_scope.setdefault(link.scope, ErasureDamage())
        if link.rel == IN_TOPIC and link.dst in erased:
            damage.orphans.setdefault(str(link.meta.get(EXCHANGE, link.src)), {})[link.src] = None
        elif link.rel == IN_TOPIC:
            damage.topics[link.dst] = None
            damage.exchange_keys[str(link.meta.get(EXCHANGE, link.src))] = None
        else:
            damage.exchange_keys[link.dst] = None
    yield from _delete_notes(ctx, account, damage_by_scope)
    return damage_by_scope


def _load_links(ctx: TopicContext, account: str, nodes: Sequence[str]) -> Flow[list[Link]]:
    links: list[Link] = []
    for start in range(0, len(nodes), PAGE_SIZE):
        links += yield from call(ctx.store.find_links, account, nodes[start : start + PAGE_SIZE])
    return sorted({link.seq: link for link in links}.values(), key=lambda link: link.seq)


def _delete_notes(
    ctx: TopicContext, account: str, damage_by_scope: dict[Scope, ErasureDamage]
) -> Flow[None]:
    notes: dict[str, bytes | None] = {}
    for scope, damage in damage_by_scope.items():
        notes |= dict.fromkeys((*damage.topics, *damage.exchange_keys, epoch_key(scope)))
    if notes:
        yield from call(ctx.store.write_notes, account, CONSUMER, notes)


def repair_after_erasure(
    ctx: TopicContext,
    account: str,
    damage_by_scope: dict[Scope, ErasureDamage],
    threads: Iterable[str],
) -> Flow[None]:
    """Make anew, after an erasure, what it took something from: means of what is left, topics for what has none."""
    erased = set(threads)
    yield from _delete_notes(ctx, account, damage_by_scope)
    for scope, damage in damage_by_scope.items():
        members = (
            TopicMember(exchange_key, tuple(t for t in threads if t not in erased))
            for exchange_key, threads in damage.orphans.items()
        )
        orphans = [member for member in members if member.threads]
        if orphans or (
            yield from call(ctx.store.current_facts, scope, ctx.id_generator.now(), kinds=[TOPIC])
        ):
            yield from change_topics(ctx, scope, partial(_assign_orphans, orphans))


def _assign_orphans(orphans: Sequence[TopicMember], changes: TopicChanges) -> Flow[None]:
    """Put exchanges that lost their topic into another; the means of the others were made anew when they were read."""
    yield from assign_exchanges(changes, orphans)


def invalidate_after_import(ctx: TopicContext, account: str, after: int) -> Flow[None]:
    """Forget all that is noted if entries from elsewhere erased anything; it is made anew when it is needed."""
    while page := (yield from call(ctx.store.scan_entries, account, after, PAGE_SIZE * 4)):
        if any(entry.sort == "erased" for entry in page):
            notes = yield from call(ctx.store.read_notes, account, CONSUMER)
            yield from call(ctx.store.write_notes, account, CONSUMER, dict.fromkeys(notes))
            return
        after = page[-1].seq


# Rebuilding -----------------------------------------------------------------------------------------------------------


def rebuild_topics(ctx: TopicContext, account: str) -> Flow[int]:
    """Throw every mean away and make it anew of the links and the noted vectors; how many topics there are."""
    topics = yield from _load_topic_scopes(ctx, account)
    scopes = dict.fromkeys(topics.values())
    notes = yield from call(ctx.store.read_notes, account, CONSUMER)
    stale: dict[str, bytes | None] = {
        key: None for key, note in notes.items() if is_packed_mean(note)
    }
    stale |= dict.fromkeys(map(epoch_key, scopes))
    if stale:
        yield from call(ctx.store.write_notes, account, CONSUMER, stale)
    for scope in scopes:
        yield from change_topics(ctx, scope, partial(_assign_orphans, ()))
    return len(topics)


def _load_topic_scopes(ctx: TopicContext, account: str) -> Flow[dict[str, Scope]]:
    """Every topic that is held, by its id, with its scope."""
    scopes: dict[str, Scope] = {}
    seq = 0
    while page := (yield from call(ctx.store.scan_entries, account, seq, PAGE_SIZE * 4)):
        for entry in page:
            if isinstance(entry.verb, Asserted) and entry.verb.claim.kind == TOPIC:
                fact = yield from call(ctx.store.get_fact, account, entry.verb.thread)
                if fact is not None and not fact.meta.get(SUPER):
                    scopes[fact.id] = fact.scope
        seq = page[-1].seq
    return scopes
