"""Buffer accesses in process memory, as hot buffers and until they are flushed to the store.

Recording takes a few dictionary updates under a lock and no transaction. Only thread ids,
positions, counts and times are kept, no content. A killed process loses the counts it had not
flushed and nothing else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from told.flow import Flow, call, run
from told.ids import sha256
from told.ledger.consumer import Failure, catch_failure
from told.model.fact import Fact
from told.model.query import AccessBatch, AccessCount, AccessRecord, Hit, ReviewReason, ReviewTask
from told.model.scope import Scope
from told.model.scoring import cosine
from told.ports import Store
from told.runtime import at_fork
from told.text.tokens import normalise_text

SECOND_US: Final = 1_000_000
HASH_DIGITS: Final = 16
"""Number of hexadecimal digits of a query hash to keep."""

_PendingAccess: TypeAlias = tuple[int, int, float, str]
"""Time, rank, score and query hash of an access."""


class AccessBuffer:
    """Accesses of this process that are not in the store yet.

    At most `keep` accesses per memory are kept, none if it is 0. With `enqueue`, each memory also
    enters the review queue: once while it waits there, and again while a worker holds it if that is
    `window` seconds later.
    """

    def __init__(self, keep: int = 10, window: int = 300, *, enqueue: bool = True) -> None:
        self._keep = keep
        self._window = window
        self._enqueue = enqueue
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Reset the buffer, as after a fork: the parent flushes what was recorded before."""
        self._lock = threading.Lock()
        self._pending: dict[str, dict[str, deque[_PendingAccess]]] = {}

    def record_hits(self, account: str, hits: Sequence[Hit], query: str, at: int) -> None:
        """Record the hits of a read, best first; count a memory once, at its best rank."""
        if not self._keep and not self._enqueue:
            return
        query_hash = hash_query(query)
        best = {
            hit.fact.id: (at, rank, hit.score, query_hash)
            for rank, hit in reversed(list(enumerate(hits, 1)))
        }
        self._append_records(account, best.items())

    def _append_records(self, account: str, entries: Iterable[tuple[str, _PendingAccess]]) -> None:
        with self._lock:
            threads = self._pending.setdefault(account, {})
            for thread, entry in entries:
                if (existing := threads.get(thread)) is None:
                    threads[thread] = deque((entry,), max(self._keep, 1))
                else:
                    existing.append(entry)

    def take_records(self) -> Mapping[str, Sequence[AccessRecord]]:
        """Remove and return all pending records by account, oldest first."""
        with self._lock:
            pending, self._pending = self._pending, {}
        return {
            account: sorted(
                (
                    AccessRecord(thread, *entry)
                    for thread, entries in threads.items()
                    for entry in entries
                ),
                key=attrgetter("at"),
            )
            for account, threads in pending.items()
        }

    def drop_threads(self, account: str, threads: Iterable[str]) -> None:
        """Drop the records of erased threads."""
        with self._lock:
            for thread in threads:
                self._pending.get(account, {}).pop(thread, None)

    def forget_account(self, account: str) -> None:
        """Drop all records of an account."""
        with self._lock:
            self._pending.pop(account, None)

    def restore_records(self, account: str, records: Sequence[AccessRecord]) -> None:
        """Put back records that could not be written."""
        self._append_records(
            account,
            ((entry.thread, (entry.at, entry.rank, entry.score, entry.query)) for entry in records),
        )

    def build_batch(self, records: Sequence[AccessRecord]) -> AccessBatch:
        """Return the batch to write for some records, including review tasks."""
        review_tasks = build_review_tasks(records) if self._enqueue else ()
        return AccessBatch(
            records=records,
            keep_per_thread=self._keep,
            tasks=review_tasks,
            window=self._window * SECOND_US,
        )


def hash_query(query: str) -> str:
    """Return a short hash that identifies a query without revealing it."""
    return (
        sha256(normalise_text(query).encode("utf-8", "surrogatepass")).hex()[:HASH_DIGITS]
        if query
        else ""
    )


def build_review_tasks(records: Sequence[AccessRecord]) -> list[ReviewTask]:
    """Return one review task per memory, with its best score and first access time."""
    best_score, first_at = dict[str, float](), dict[str, int]()
    for record in records:
        thread = record.thread
        if record.score > best_score.setdefault(thread, record.score):
            best_score[thread] = record.score
        if record.at < first_at.setdefault(thread, record.at):
            first_at[thread] = record.at
    return [
        ReviewTask(thread, ReviewReason.RECALL, score, first_at[thread])
        for thread, score in best_score.items()
    ]


Pair: TypeAlias = tuple[str, str]
MAX_SCOPES: Final = 1024
"""Maximum number of scopes with a hot buffer; the least recently used is dropped."""


NO_CODES: Mapping[int, bytes] = {}


class HotItem(NamedTuple):
    """A recently accessed memory: its thread and the code of the matching passage."""

    thread: str
    code: bytes = b""

    def is_near(self, query_code: bytes, min_cosine: float) -> bool:
        """Return True if the item is near the query, or either has no vector."""
        return (
            not query_code
            or len(query_code) != len(self.code)
            or cosine(query_code, self.code) >= min_cosine
        )


_make_hot_item = partial(tuple.__new__, HotItem)
"""Build a HotItem from a tuple; twice as fast as its constructor."""


@dataclass(slots=True)
class HotBuffer:
    """The last accesses of one scope, newest last, and the topics fetched with their members."""

    items: dict[int, HotItem] = field(default_factory=dict)
    topics: dict[str, frozenset[str]] = field(default_factory=dict)

    def trim_topics(self) -> None:
        """Drop topics with a member that left the buffer."""
        if not self.topics:
            return
        threads = {item.thread for item in self.items.values()}
        self.topics = {
            topic: members for topic, members in self.topics.items() if members <= threads
        }


class HotBuffers:
    """Recent accesses of this process: a hot buffer per scope, and counts not flushed yet."""

    def __init__(
        self, size: int = 20, flush_every: int = 256, access_buffer: AccessBuffer | None = None
    ) -> None:
        self._buffer_size = size
        self._flush_every = flush_every
        self.access_buffer = access_buffer or AccessBuffer()
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Reset the buffers, as after a fork: the parent flushes what was recorded before."""
        self._lock = threading.Lock()
        self._buffers: OrderedDict[Scope, HotBuffer] = OrderedDict()
        self._pending_counts: dict[str, dict[str, list[int]]] = {}
        self._cooccurrence: dict[str, dict[Pair, AccessCount]] = {}
        self._read_count = 0

    def record_hits(
        self,
        account: str,
        scope: Scope,
        hits: Sequence[Fact],
        at: int,
        codes: Mapping[int, bytes] = NO_CODES,
    ) -> None:
        """Record the hits of a read in a scope, best first, with the codes of the passages."""
        if not hits:
            return
        with self._lock:
            self._read_count += 1
            counts = self._pending_counts.setdefault(account, {})
            _add_counts(counts, {fact.id for fact in hits}, 1, at)
            self._update_buffer(scope, hits, codes)

    def _update_buffer(
        self, scope: Scope, hits: Sequence[Fact], codes: Mapping[int, bytes]
    ) -> None:
        """Move the hits to the end of the scope's buffer, best last, and trim its start."""
        if not self._buffer_size:
            return
        if (buffer := self._buffers.get(scope)) is None:
            buffer = self._buffers[scope] = HotBuffer()
        self._buffers.move_to_end(scope)
        items = buffer.items
        for fact in reversed(hits[: self._buffer_size]):
            previous = items.pop(fact.seq, None)
            items[fact.seq] = _make_hot_item(
                (fact.id, codes.get(fact.seq, b"") or (previous.code if previous else b""))
            )
        for seq in list(items)[: -self._buffer_size]:
            del items[seq]
        buffer.trim_topics()
        if len(self._buffers) > MAX_SCOPES:
            self._buffers.popitem(last=False)

    def get_hot_seqs(
        self, scope: Scope, query_code: bytes = b"", min_cosine: float = 0.0
    ) -> tuple[int, ...]:
        """Return the seqs this scope accessed last that are near the query, newest first.

        They are hints: another process may have changed or erased the facts, so read them like any
        other candidate, with scope and time.
        """
        with self._lock:
            buffer = self._buffers.get(scope)
            if buffer is None:
                return ()
            if not query_code:
                return tuple(reversed(buffer.items))
            items = list(buffer.items.items())
        return tuple([seq for seq, item in reversed(items) if item.is_near(query_code, min_cosine)])

    # Topics

    def record_topic_fetch(self, scope: Scope, topic: str, members: Iterable[str]) -> None:
        """Record that a read in this scope fetched these members of a topic."""
        with self._lock:
            if scope in self._buffers:
                self._buffers[scope].topics[topic] = frozenset(members)

    def find_hot_topics(
        self,
        scope: Scope,
        topics: Mapping[str, Iterable[str]],
        query_code: bytes = b"",
        min_cosine: float = 0.0,
    ) -> set[str]:
        """Return fetched topics with unchanged members that are all in the buffer and near."""
        with self._lock:
            buffer = self._buffers.get(scope, HotBuffer())
            matching = {
                topic
                for topic, members in topics.items()
                if buffer.topics.get(topic) == frozenset(members)
            }
            items = list(buffer.items.values()) if matching else []
            members_by_topic = {topic: buffer.topics[topic] for topic in matching}
        hot_threads = {item.thread for item in items if item.is_near(query_code, min_cosine)}
        return {topic for topic, members in members_by_topic.items() if members <= hot_threads}

    def record_cooccurrence(self, account: str, topics: Iterable[str], at: int) -> None:
        """Count each pair of these topics once, regardless of order."""
        with self._lock:
            counts = self._cooccurrence.setdefault(account, {})
            for pair in combinations(sorted(set(topics)), 2):
                counts[pair] = (
                    counts[pair] + AccessCount(1, at) if pair in counts else AccessCount(1, at)
                )

    def get_pending_cooccurrence(
        self, account: str, topics: Iterable[str]
    ) -> Mapping[Pair, AccessCount]:
        """Return co-occurrence counts of these topics that are not flushed yet."""
        wanted = set(topics)
        with self._lock:
            return {
                pair: access_count
                for pair, access_count in self._cooccurrence.get(account, {}).items()
                if not wanted.isdisjoint(pair)
            }

    def take_cooccurrence(self) -> Mapping[str, Mapping[Pair, AccessCount]]:
        """Remove and return all pending co-occurrence counts by account."""
        with self._lock:
            pending, self._cooccurrence = self._cooccurrence, {}
        return {account: pairs for account, pairs in pending.items() if pairs}

    def restore_cooccurrence(self, account: str, pairs: Mapping[Pair, AccessCount]) -> None:
        """Put back counts that could not be written."""
        with self._lock:
            counts = self._cooccurrence.setdefault(account, {})
            for pair, access_count in pairs.items():
                counts[pair] = counts[pair] + access_count if pair in counts else access_count

    # Pending counts

    @property
    def is_flush_due(self) -> bool:
        """Return True if enough reads happened since the last flush."""
        return self._read_count >= self._flush_every

    def get_pending_counts(self, account: str, threads: Iterable[str]) -> Mapping[str, AccessCount]:
        """Return the access counts of these threads that are not flushed yet."""
        with self._lock:
            counts = self._pending_counts.get(account, {})
            return {thread: AccessCount(*counts[thread]) for thread in threads if thread in counts}

    def count_pending(self, account: str) -> int:
        """Return the number of accesses that are not flushed yet."""
        with self._lock:
            return sum(count for count, _ in self._pending_counts.get(account, {}).values())

    def take_counts(self) -> Mapping[str, Mapping[str, AccessCount]]:
        """Remove and return all pending access counts by account."""
        with self._lock:
            pending, self._pending_counts, self._read_count = self._pending_counts, {}, 0
        return {
            account: {thread: AccessCount(*count) for thread, count in counts.items()}
            for account, counts in pending.items()
            if counts
        }

    def restore_counts(self, account: str, access_counts: Mapping[str, AccessCount]) -> None:
        """Put back counts that could not be written; the flush interval starts over."""
        with self._lock:
            counts = self._pending_counts.setdefault(account, {})
            for thread, access_count in access_counts.items():
                _add_counts(counts, (thread,), access_count.count, access_count.last)

    # All pending data

    def take_all(self) -> Mapping[str, AccessBatch]:
        """Remove and return everything pending, by account."""
        counts = self.take_counts()
        cooccurrence = self.take_cooccurrence()
        records = self.access_buffer.take_records()
        return {
            account: replace(
                self.access_buffer.build_batch(records.get(account, ())),
                counts=counts.get(account, {}),
                cooccurrences=cooccurrence.get(account, {}),
            )
            for account in {**counts, **cooccurrence, **records}
        }

    def restore_all(self, account: str, batch: AccessBatch) -> None:
        """Put back a batch that could not be written."""
        self.restore_counts(account, batch.counts)
        self.restore_cooccurrence(account, batch.cooccurrences)
        self.access_buffer.restore_records(account, batch.records)

    # Erasure

    def drop_threads(self, account: str, threads: Iterable[str]) -> None:
        """Drop erased threads, and every scope whose buffer becomes empty."""
        erased = set(threads)
        self.access_buffer.drop_threads(account, erased)
        with self._lock:
            for thread in erased & self._pending_counts.get(account, {}).keys():
                del self._pending_counts[account][thread]
            for pair in [
                pair for pair in self._cooccurrence.get(account, {}) if not erased.isdisjoint(pair)
            ]:
                del self._cooccurrence[account][pair]
            for scope in [scope for scope in self._buffers if scope.account == account]:
                buffer = self._buffers[scope]
                buffer.topics = {
                    topic: members
                    for topic, members in buffer.topics.items()
                    if topic not in erased and erased.isdisjoint(members)
                }
                for seq in [seq for seq, item in buffer.items.items() if item.thread in erased]:
                    del buffer.items[seq]
                if not buffer.items:
                    del self._buffers[scope]

    def forget_account(self, account: str) -> None:
        """Drop everything about an account."""
        self.access_buffer.forget_account(account)
        with self._lock:
            self._pending_counts.pop(account, None)
            self._cooccurrence.pop(account, None)
            for scope in [scope for scope in self._buffers if scope.account == account]:
                del self._buffers[scope]


def _add_counts(counts: dict[str, list[int]], threads: Iterable[str], count: int, at: int) -> None:
    for thread in threads:
        existing = counts.get(thread)
        if existing is None:
            counts[thread] = [count, at]
        else:
            existing[0] += count
            existing[1] = max(existing[1], at)


# Flows


def record_read(
    store: Store,
    hot_buffers: HotBuffers,
    scope: Scope,
    hits: Sequence[Fact],
    at: int,
    codes: Mapping[int, bytes] = NO_CODES,
) -> Flow[tuple[str, ...]]:
    """Record the hits of a read, flush if due, and return warnings."""
    hot_buffers.record_hits(scope.account, scope, hits, at, codes)
    return (yield from flush_accesses(store, hot_buffers)) if hot_buffers.is_flush_due else ()


def flush_accesses(store: Store, hot_buffers: HotBuffers) -> Flow[tuple[str, ...]]:
    """Write pending accesses; on failure keep them and return a warning.

    This is one effect: a cancelled task has either completed it or not started it.
    """
    return (yield from call(run, _write_pending(store, hot_buffers)))


def _write_pending(store: Store, hot_buffers: HotBuffers) -> Flow[tuple[str, ...]]:
    warnings: list[str] = []
    for account, batch in hot_buffers.take_all().items():
        result = yield from catch_failure(call(store.record_accesses, account, batch))
        if isinstance(result, Failure):
            hot_buffers.restore_all(account, batch)
            warnings.append(f"The access log could not be written: {result}")
    return tuple(warnings)


def load_cooccurrence(
    store: Store, hot_buffers: HotBuffers, account: str, topics: Sequence[str]
) -> Flow[Mapping[Pair, AccessCount]]:
    """Return co-occurrence counts of topics, stored and pending."""
    stored = (yield from call(store.cooccurrence, account, topics)) if topics else {}
    pending = hot_buffers.get_pending_cooccurrence(account, topics)
    return {
        **stored,
        **{pair: stored[pair] + new if pair in stored else new for pair, new in pending.items()},
    }


def load_access_counts(
    store: Store, hot_buffers: HotBuffers, account: str, threads: Sequence[str]
) -> Flow[Mapping[str, AccessCount]]:
    """Return access counts of threads, stored and pending."""
    stored = yield from call(store.access_counts, account, threads)
    pending = hot_buffers.get_pending_counts(account, threads)
    return {
        **stored,
        **{
            thread: stored[thread] + new if thread in stored else new
            for thread, new in pending.items()
        },
    }
