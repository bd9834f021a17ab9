"""Assign exchanges to topics, as drafts and notes that commit together."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final

from told.flow import Flow, call
from told.ids import IdGenerator, canonical_json, sha256
from told.model.entry import Asserted, Claim, Draft, Linked, Retracted
from told.model.fact import TOPIC, Fact, Link
from told.model.query import LATEST, AsOf
from told.model.scope import Scope
from told.model.scoring import quantise
from told.model.topics import (
    DERIVED_FROM,
    EXCHANGE,
    IN_TOPIC,
    SUPER,
    DotProducts,
    Thresholds,
    TopicIndex,
    VectorMean,
    cluster_codes,
    compute_mean,
    find_topic_to_join,
    make_label,
    needs_split,
    pack_code,
    unpack_centroid,
    unpack_code,
    unpack_mean,
)
from told.model.topics import dot_products as plain
from told.ports import Embedder, EntryIntact, Guard, Store, validate_vectors
from told.retrieval.topics import (
    CONSUMER,
    DEFAULT_AUTHOR,
    PAGE_SIZE,
    load_current_turns,
    pick_opening_turn,
)
from told.runtime import reset_on_fork
from told.settings import Settings

MIN_NUMPY_ROWS = 4
"""The smallest number of codes for which an array is faster."""

FLOAT32_EXACT_LIMIT = 1 << 24
MAX_CODE_PRODUCT = 127 * 127


def numpy_dot_products(code: bytes, others: Sequence[bytes]) -> Sequence[int]:
    """Return the exact dot products of an int8 code with others."""
    if len(others) < MIN_NUMPY_ROWS:
        return plain(code, others)
    import numpy as np

    dtype = np.float32 if len(code) * MAX_CODE_PRODUCT < FLOAT32_EXACT_LIMIT else np.float64
    rows = (
        np.frombuffer(b"".join(others), dtype=np.int8).reshape(len(others), len(code)).astype(dtype)
    )
    return [int(product) for product in rows @ np.frombuffer(code, dtype=np.int8).astype(dtype)]


def choose_dot_products() -> DotProducts:
    """Return the NumPy implementation if NumPy is installed, or else the plain one."""
    return numpy_dot_products if find_spec("numpy") else plain


MAX_CACHED_SCOPES: Final = 16
"""The number of scopes to cache; the least recently used one is evicted."""


def epoch_key(scope: Scope) -> str:
    """Return the key of the note that changes whenever the topics of a scope do."""
    return f"epoch {sha256(canonical_json(scope.as_json())).hex()}"


class TopicCache:
    """A cache of topic indexes by scope, valid for one epoch."""

    def __init__(self) -> None:
        self._lock = reset_on_fork(threading.Lock())
        self._entries: OrderedDict[Scope, tuple[bytes, TopicIndex]] = OrderedDict()

    def pop(self, scope: Scope, epoch: bytes | None) -> TopicIndex | None:
        """Remove and return the index of a scope, or None if its epoch is outdated."""
        with self._lock:
            cached_epoch, topic_index = self._entries.pop(scope, (None, None))
        return topic_index if cached_epoch == epoch else None

    def put(self, scope: Scope, epoch: bytes, topic_index: TopicIndex) -> None:
        """Store the index of a scope for an epoch."""
        with self._lock:
            self._entries[scope] = epoch, topic_index
            if len(self._entries) > MAX_CACHED_SCOPES:
                self._entries.popitem(last=False)


UNNAMED_LABEL: Final = "(no longer held)"


@dataclass(frozen=True, slots=True)
class TopicMember:
    """An exchange in a topic: its id and threads; its vector is noted under the id."""

    key: str
    threads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExchangeText:
    """An exchange with its turns."""

    member: TopicMember
    facts: tuple[Fact, ...]

    @property
    def text(self) -> str:
        """Return the text to embed: all turns together."""
        return "\n".join(
            f"{'User' if fact.role == 'user' else 'Agent'}: {fact.text}" for fact in self.facts
        )


@dataclass(frozen=True, slots=True)
class TopicContext:
    """The dependencies of topic maintenance; `model` names the embedding model."""

    store: Store
    id_generator: IdGenerator
    settings: Settings
    thresholds: Thresholds
    model: str
    embedder: Embedder | None = None
    cache: TopicCache = field(default_factory=TopicCache)


@dataclass(slots=True)
class TopicChanges:
    """The pending changes to the topics of one scope, for one commit."""

    ctx: TopicContext
    scope: Scope
    topic_index: TopicIndex
    drafts: list[Draft] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    notes: dict[str, bytes | None] = field(default_factory=dict)
    means: dict[str, VectorMean] = field(default_factory=dict)
    added_members: dict[str, list[TopicMember]] = field(default_factory=dict)
    created_count: int = 0
    split_count: int = 0

    def add_drafts(self, *verbs: Asserted | Linked | Retracted) -> None:
        """Add entries to write."""
        self.drafts += [Draft(verb, self.scope, DEFAULT_AUTHOR) for verb in verbs]

    def set_mean(self, topic: str, mean: VectorMean) -> None:
        """Set the mean of a topic."""
        self.means[topic] = mean
        self.notes[topic] = mean.pack(self.ctx.model)
        self.topic_index.put_topic(topic, mean.code)

    def retract_topic(self, topic: str, why: str) -> None:
        """Retract a topic; its history is kept."""
        self.add_drafts(Retracted(topic, why))
        self.means.pop(topic, None)
        self.notes[topic] = None
        self.topic_index.drop_topic(topic)

    def add_members(self, topic: str, members: Iterable[TopicMember]) -> None:
        """Add exchanges to a topic."""
        for member in members:
            meta = {EXCHANGE: member.key}
            self.add_drafts(
                *(Linked(thread, IN_TOPIC, topic, meta=meta) for thread in member.threads)
            )
            self.added_members.setdefault(topic, []).append(member)

    def create_topic(self, turn: Fact | None) -> str:
        """Create a topic named after a turn; erasing the turn erases the topic."""
        topic = self.ctx.id_generator.new_id()
        self.guards += [] if turn is None else [EntryIntact(turn.seq)]
        self.add_drafts(*draft_topic_name(topic, turn))
        self.created_count += 1
        return topic

    def renew_epoch(self) -> bytes:
        """Start a new epoch for the scope and return it."""
        epoch = self.ctx.id_generator.new_salt()
        self.notes[epoch_key(self.scope)] = epoch
        return epoch


def draft_topic_name(
    topic: str, turn: Fact | None, since: int | None = None
) -> tuple[Asserted | Linked, ...]:
    """Return the verbs that name a topic after a turn, or leave it unnamed."""
    if turn is None:
        return (Asserted(topic, Claim(UNNAMED_LABEL, TOPIC), since),)
    return Asserted(topic, Claim(make_label(turn.text), TOPIC), since), Linked(
        topic, DERIVED_FROM, turn.id
    )


# Loading


def begin_changes(ctx: TopicContext, scope: Scope) -> Flow[TopicChanges]:
    """Load the topic index of a scope and start a set of changes."""
    key = epoch_key(scope)
    notes = yield from call(ctx.store.read_notes, scope.account, CONSUMER, [key])
    topic_index = ctx.cache.pop(scope, notes.get(key))
    changes = TopicChanges(
        ctx,
        scope,
        TopicIndex(dot_fn=choose_dot_products()) if topic_index is None else topic_index,
    )
    if topic_index is None:
        yield from _load_index(changes)
    return changes


def load_topics(ctx: TopicContext, scope: Scope) -> Flow[Sequence[Fact]]:
    """Return the topics of exactly this scope, oldest first, without supertopics."""
    facts = yield from call(ctx.store.current_facts, scope, ctx.id_generator.now(), kinds=[TOPIC])
    return [fact for fact in facts if not fact.meta.get(SUPER)]


def _load_index(changes: TopicChanges) -> Flow[None]:
    """Index every topic of the scope; recompute means that are not noted."""
    ctx, account = changes.ctx, changes.scope.account
    topics = [fact.id for fact in (yield from load_topics(ctx, changes.scope))]
    for start in range(0, len(topics), PAGE_SIZE):
        page = topics[start : start + PAGE_SIZE]
        notes = yield from call(ctx.store.read_notes, account, CONSUMER, page)
        for topic in page:
            centre = unpack_centroid(notes.get(topic), ctx.model)
            if centre is None:
                yield from recompute_mean(changes, topic)
            else:
                changes.topic_index.put_topic(topic, centre)


def collect_members(links: Iterable[Link], topic: str) -> list[TopicMember]:
    """Return the exchanges that links assign to a topic, in ledger order."""
    threads_by_exchange: dict[str, dict[str, None]] = {}
    for link in links:
        if link.rel == IN_TOPIC and link.dst == topic:
            threads_by_exchange.setdefault(str(link.meta.get(EXCHANGE, link.src)), {})[link.src] = (
                None
            )
    return [
        TopicMember(exchange, tuple(threads)) for exchange, threads in threads_by_exchange.items()
    ]


def load_members(changes: TopicChanges, topic: str) -> Flow[list[TopicMember]]:
    """Return the exchanges of a topic, including those added by these changes."""
    links = yield from call(changes.ctx.store.find_links, changes.scope.account, [topic])
    return [
        *collect_members(sorted(links, key=lambda link: link.seq), topic),
        *changes.added_members.get(topic, ()),
    ]


def load_exchange_texts(
    ctx: TopicContext, scope: Scope, exchanges: Iterable[TopicMember]
) -> Flow[list[ExchangeText]]:
    """Return exchanges with their current turns, without empty ones."""
    members, now = list(exchanges), AsOf(LATEST, ctx.id_generator.now())
    turns = yield from load_current_turns(
        ctx.store, scope, now, (thread for exchange in members for thread in exchange.threads)
    )
    texts = (
        ExchangeText(
            exchange, tuple(turns[thread] for thread in exchange.threads if thread in turns)
        )
        for exchange in members
    )
    return [exchange for exchange in texts if exchange.facts]


def load_codes(changes: TopicChanges, exchanges: Sequence[TopicMember]) -> Flow[dict[str, bytes]]:
    """Return the vectors of exchanges by key, from notes or else from the embedder."""
    ctx, account = changes.ctx, changes.scope.account
    notes = dict(
        (
            yield from call(
                ctx.store.read_notes, account, CONSUMER, [member.key for member in exchanges]
            )
        )
    )
    notes |= {key: note for key, note in changes.notes.items() if note is not None}
    codes = {member.key: unpack_code(notes.get(member.key), ctx.model) for member in exchanges}
    missing = [member for member in exchanges if codes[member.key] is None]
    if missing and ctx.embedder is not None and ctx.embedder.model == ctx.model:
        texts = yield from load_exchange_texts(ctx, changes.scope, missing)
        changes.guards += [EntryIntact(fact.seq) for exchange in texts for fact in exchange.facts]
        for key, code in (yield from _embed_exchanges(ctx.embedder, texts)).items():
            codes[key], changes.notes[key] = code, pack_code(code, ctx.model)
    return {key: code for key, code in codes.items() if code is not None}


def _embed_exchanges(
    embedder: Embedder, texts: Sequence[ExchangeText]
) -> Flow[Mapping[str, bytes]]:
    if not texts:
        return {}
    vectors = yield from call(embedder.embed, [exchange.text for exchange in texts], "passage")
    vectors = validate_vectors(embedder, vectors, len(texts))
    return {
        exchange.member.key: quantise([float(x) for x in vec])
        for exchange, vec in zip(texts, vectors, strict=True)
    }


def recompute_mean(changes: TopicChanges, topic: str) -> Flow[None]:
    """Recompute the mean of a topic from its members; retract it if it has none."""
    exchanges = yield from load_members(changes, topic)
    codes = yield from load_codes(changes, exchanges)
    if codes:
        changes.set_mean(topic, compute_mean(codes.values()))
    elif not exchanges:
        changes.retract_topic(topic, "empty")


# Assignment


def assign_exchanges(changes: TopicChanges, exchanges: Sequence[TopicMember]) -> Flow[int]:
    """Assign exchanges to the nearest topic or a new one; return how many were assigned."""
    codes = yield from load_codes(changes, exchanges)
    count = 0
    for member in exchanges:
        if (code := codes.get(member.key)) is None:
            continue
        topic = find_topic_to_join(code, changes.topic_index, changes.ctx.thresholds.join)
        if topic is None:
            topic = changes.create_topic(
                (yield from find_naming_turn(changes.ctx, changes.scope, [member]))
            )
            mean = VectorMean()
        else:
            mean = yield from _load_mean(changes, topic)
        changes.add_members(topic, [member])
        changes.set_mean(topic, mean.add(code))
        count += 1
        if needs_split(mean.count, mean.count + 1, changes.ctx.settings.maintenance.topic_cap):
            yield from split_topic(changes, topic)
    return count


def _load_mean(changes: TopicChanges, topic: str) -> Flow[VectorMean]:
    if topic not in changes.means:
        notes = yield from call(
            changes.ctx.store.read_notes, changes.scope.account, CONSUMER, [topic]
        )
        stored = unpack_mean(notes.get(topic), changes.ctx.model)
        if stored is not None:
            return stored
        yield from recompute_mean(changes, topic)
    return changes.means.get(topic, VectorMean())


def find_naming_turn(
    ctx: TopicContext, scope: Scope, exchanges: Iterable[TopicMember]
) -> Flow[Fact | None]:
    """Return the turn to name a topic after: the opening turn of the first current exchange."""
    for member in exchanges:
        for exchange in (yield from load_exchange_texts(ctx, scope, [member])):
            return pick_opening_turn(exchange.facts)
    return None


def split_topic(changes: TopicChanges, topic: str) -> Flow[None]:
    """Split a topic whose members form several clusters."""
    exchanges = {member.key: member for member in (yield from load_members(changes, topic))}
    codes = yield from load_codes(changes, list(exchanges.values()))
    groups = cluster_codes(codes, changes.ctx.thresholds.split)
    if len(groups) < 2:
        return
    changes.retract_topic(topic, "split")
    changes.split_count += 1
    for keys in groups:
        group = [exchanges[key] for key in keys]
        new_topic = changes.create_topic(
            (yield from find_naming_turn(changes.ctx, changes.scope, group))
        )
        changes.add_members(new_topic, group)
        changes.set_mean(new_topic, compute_mean(codes[key] for key in keys))
