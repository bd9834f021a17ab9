"""Recalls are not beliefs: what a process selects is noted here, and written to the store's overlay now and then.

Noting is a few dictionary updates under a lock, no transaction. Only ids of threads, positions, counts and instants are
kept, no content. A process that is killed loses the counts it had not written yet, and nothing else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from math import exp2, log1p
from typing import Final, NamedTuple, TypeAlias

from told.core.fact import Fact
from told.core.fork import at_fork
from told.core.query import Touch
from told.core.recall import Left
from told.core.scope import Scope
from told.core.score import cosine
from told.flow import Flow, call, run
from told.ledger.consume import Failure, attempt
from told.ports import Store
from told.read.recalling import Recalls

DAY: Final = 86_400_000_000
Pair: TypeAlias = tuple[str, str]
SCOPES: Final = 1024
"""How many scopes have a hot buffer; the one that recalled nothing for the longest time loses its own."""


NO_CODES: Mapping[int, bytes] = {}


def hotness(count: int, last: int, now: int, half_life_days: float = 7.0) -> float:
    """How much a memory is in use, from 0 for never to just below 1: it grows with recalls and halves with time."""
    much = log1p(max(count, 0))
    return much / (1 + much) * exp2(-max(now - last, 0) / (half_life_days * DAY))


class Hot(NamedTuple):
    """A memory at hand: its thread, and the code of the passage of it that was found."""

    thread: str
    code: bytes = b""

    def answers(self, asked: bytes, least: float) -> bool:
        """Whether it is near enough to what is asked; where either has no vector it may be."""
        return not asked or len(asked) != len(self.code) or cosine(asked, self.code) >= least


_hot = partial(tuple.__new__, Hot)
"""What makes one of its two parts; by name it takes twice as long."""


@dataclass(slots=True)
class Buffer:
    """What one scope selected last, the newest at the end, and the topics that were fetched, each with its members."""

    places: dict[int, Hot] = field(default_factory=dict)
    topics: dict[str, frozenset[str]] = field(default_factory=dict)

    def trim(self) -> None:
        """Let go of topics of which a member has left: only those at hand as a whole are of use."""
        if not self.topics:
            return
        threads = {hot.thread for hot in self.places.values()}
        self.topics = {topic: members for topic, members in self.topics.items() if members <= threads}


class Overlay:
    """What this process recalled lately: a hot buffer for each scope, and the counts the store does not have yet."""

    def __init__(self, size: int = 20, every: int = 256, recalls: Recalls | None = None) -> None:
        self._size = size
        self._every = every
        self.recalls = recalls or Recalls()
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nothing, as a child process does: its parent writes down what was noted before the fork."""
        self._lock = threading.Lock()
        self._hot: OrderedDict[Scope, Buffer] = OrderedDict()
        self._pending: dict[str, dict[str, list[int]]] = {}
        self._met: dict[str, dict[Pair, Touch]] = {}
        self._reads = 0

    def note(
        self, account: str, scope: Scope, hits: Sequence[Fact], at: int, codes: Mapping[int, bytes] = NO_CODES
    ) -> None:
        """A read in this scope selected these, best first; codes are those of what was found of them."""
        if not hits:
            return
        with self._lock:
            self._reads += 1
            counts = self._pending.setdefault(account, {})
            _count(counts, {fact.id for fact in hits}, 1, at)
            self._warm(scope, hits, codes)

    def _warm(self, scope: Scope, hits: Sequence[Fact], codes: Mapping[int, bytes]) -> None:
        """Put the best hits last, the very best at the end, and let go of what is too much at the other end."""
        if not self._size:
            return
        if (buffer := self._hot.get(scope)) is None:
            buffer = self._hot[scope] = Buffer()
        self._hot.move_to_end(scope)
        places = buffer.places
        for fact in reversed(hits[: self._size]):
            known = places.pop(fact.seq, None)
            places[fact.seq] = _hot((fact.id, codes.get(fact.seq, b"") or (known.code if known else b"")))
        for seq in list(places)[: -self._size]:
            del places[seq]
        buffer.trim()
        if len(self._hot) > SCOPES:
            self._hot.popitem(last=False)

    def hot(self, scope: Scope, asked: bytes = b"", least: float = 0.0) -> tuple[int, ...]:
        """The ledger positions this very scope selected last and that are near enough to what is asked, newest first.

        They are hints: another process may have updated, erased or even reset what stood there, so whoever follows one
        reads it as any other candidate, in its scope and at its point in time.
        """
        with self._lock:
            buffer = self._hot.get(scope)
            if buffer is None:
                return ()
            if not asked:
                return tuple(reversed(buffer.places))
            found = list(buffer.places.items())
        return tuple([seq for seq, hot in reversed(found) if hot.answers(asked, least)])

    # Topics

    def fetched(self, scope: Scope, topic: str, members: Iterable[str]) -> None:
        """A read in this scope fetched these members of a topic."""
        with self._lock:
            if scope in self._hot:
                self._hot[scope].topics[topic] = frozenset(members)

    def at_hand(
        self, scope: Scope, topics: Mapping[str, Iterable[str]], asked: bytes = b"", least: float = 0.0
    ) -> set[str]:
        """The topics that were fetched and whose members, the same as then, are all in the buffer and near enough."""
        with self._lock:
            buffer = self._hot.get(scope, Buffer())
            known = {topic for topic, members in topics.items() if buffer.topics.get(topic) == frozenset(members)}
            places = list(buffer.places.values()) if known else []
            fetched = {topic: buffer.topics[topic] for topic in known}
        hot = {place.thread for place in places if place.answers(asked, least)}
        return {topic for topic, members in fetched.items() if members <= hot}

    def meet(self, account: str, topics: Iterable[str], at: int) -> None:
        """These topics came up together: each pair of them once more, whoever came first."""
        with self._lock:
            counts = self._met.setdefault(account, {})
            for pair in combinations(sorted(set(topics)), 2):
                counts[pair] = counts[pair] + Touch(1, at) if pair in counts else Touch(1, at)

    def met(self, account: str, topics: Iterable[str]) -> Mapping[Pair, Touch]:
        """How often any of these topics came up with others, as far as the store does not know it yet."""
        asked = set(topics)
        with self._lock:
            return {pair: touch for pair, touch in self._met.get(account, {}).items() if not asked.isdisjoint(pair)}

    def take_met(self) -> Mapping[str, Mapping[Pair, Touch]]:
        """All pending meetings by account, for somebody who writes them down or gives them back."""
        with self._lock:
            taken, self._met = self._met, {}
        return {account: pairs for account, pairs in taken.items() if pairs}

    def give_back_met(self, account: str, pairs: Mapping[Pair, Touch]) -> None:
        """These could not be written down."""
        with self._lock:
            counts = self._met.setdefault(account, {})
            for pair, touch in pairs.items():
                counts[pair] = counts[pair] + touch if pair in counts else touch

    # Pending counts

    @property
    def due(self) -> bool:
        """Whether enough was read since recalls were last written down."""
        return self._reads >= self._every

    def pending(self, account: str, threads: Iterable[str]) -> Mapping[str, Touch]:
        """The recalls of these threads that the store does not have yet."""
        with self._lock:
            counts = self._pending.get(account, {})
            return {thread: Touch(*counts[thread]) for thread in threads if thread in counts}

    def waiting(self, account: str) -> int:
        """How many recalls the store does not have yet."""
        with self._lock:
            return sum(count for count, _ in self._pending.get(account, {}).values())

    def take(self) -> Mapping[str, Mapping[str, Touch]]:
        """All pending recalls by account, for somebody who writes them down or gives them back."""
        with self._lock:
            taken, self._pending, self._reads = self._pending, {}, 0
        return {
            account: {thread: Touch(*count) for thread, count in counts.items()}
            for account, counts in taken.items()
            if counts
        }

    def give_back(self, account: str, recalls: Mapping[str, Touch]) -> None:
        """These could not be written down; they are tried again after as many reads as before."""
        with self._lock:
            counts = self._pending.setdefault(account, {})
            for thread, touch in recalls.items():
                _count(counts, (thread,), touch.count, touch.last)

    # All that is pending

    def take_all(self) -> Mapping[str, Left]:
        """All that is pending by account, for somebody who writes it down or gives it back."""
        counts, met, recalls = self.take(), self.take_met(), self.recalls.take()
        return {
            account: replace(
                self.recalls.left(recalls.get(account, ())), counts=counts.get(account, {}), met=met.get(account, {})
            )
            for account in {**counts, **met, **recalls}
        }

    def give_all_back(self, account: str, left: Left) -> None:
        """What could not be written down."""
        self.give_back(account, left.counts)
        self.give_back_met(account, left.met)
        self.recalls.give_back(account, left.recalls)

    # Forgetting

    def drop(self, account: str, threads: Iterable[str]) -> None:
        """Forget erased threads, and the name of every scope that is left with nothing."""
        gone = set(threads)
        self.recalls.drop(account, gone)
        with self._lock:
            for thread in gone & self._pending.get(account, {}).keys():
                del self._pending[account][thread]
            for pair in [pair for pair in self._met.get(account, {}) if not gone.isdisjoint(pair)]:
                del self._met[account][pair]
            for scope in [scope for scope in self._hot if scope.account == account]:
                buffer = self._hot[scope]
                buffer.topics = {
                    topic: members
                    for topic, members in buffer.topics.items()
                    if topic not in gone and gone.isdisjoint(members)
                }
                for seq in [seq for seq, hot in buffer.places.items() if hot.thread in gone]:
                    del buffer.places[seq]
                if not buffer.places:
                    del self._hot[scope]

    def forget(self, account: str) -> None:
        """Forget everything about an account."""
        self.recalls.forget(account)
        with self._lock:
            self._pending.pop(account, None)
            self._met.pop(account, None)
            for scope in [scope for scope in self._hot if scope.account == account]:
                del self._hot[scope]


def _count(counts: dict[str, list[int]], threads: Iterable[str], count: int, at: int) -> None:
    for thread in threads:
        known = counts.get(thread)
        if known is None:
            counts[thread] = [count, at]
        else:
            known[0] += count
            known[1] = max(known[1], at)


# Flows ----------------------------------------------------------------------------------------------------------------


def noted(
    store: Store, overlay: Overlay, scope: Scope, hits: Sequence[Fact], at: int, codes: Mapping[int, bytes] = NO_CODES
) -> Flow[tuple[str, ...]]:
    """Note what a read selected, and write recalls down when that is due; what went wrong is a warning."""
    overlay.note(scope.account, scope, hits, at, codes)
    return (yield from flush(store, overlay)) if overlay.due else ()


def flush(store: Store, overlay: Overlay) -> Flow[tuple[str, ...]]:
    """Write pending recalls down; what cannot be written stays pending and is a warning, for no read fails over it.

    It is one effect: a task that is cancelled meanwhile has had it done, or not begun.
    """
    return (yield from call(run, _written(store, overlay)))


def _written(store: Store, overlay: Overlay) -> Flow[tuple[str, ...]]:
    warnings: list[str] = []
    for account, left in overlay.take_all().items():
        done = yield from attempt(call(store.write_down, account, left))
        if isinstance(done, Failure):
            overlay.give_all_back(account, left)
            warnings.append(f"Recalls could not be written down: {done}")
    return tuple(warnings)


def met(store: Store, overlay: Overlay, account: str, topics: Sequence[str]) -> Flow[Mapping[Pair, Touch]]:
    """How often topics came up with others, with what this process has not written down yet."""
    stored = (yield from call(store.met, account, topics)) if topics else {}
    fresh = overlay.met(account, topics)
    return {**stored, **{pair: stored[pair] + new if pair in stored else new for pair, new in fresh.items()}}


def touched(store: Store, overlay: Overlay, account: str, threads: Sequence[str]) -> Flow[Mapping[str, Touch]]:
    """How often threads were recalled, with what this process has not written down yet."""
    stored = yield from call(store.touched, account, threads)
    fresh = overlay.pending(account, threads)
    return {**stored, **{thread: stored[thread] + new if thread in stored else new for thread, new in fresh.items()}}
