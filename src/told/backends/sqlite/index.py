"""Search inside a scope: partitions kept in memory within a byte budget, statistics of what is visible alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from itertools import count as counting
from typing import Any, Final, NamedTuple

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.connect import Snapshot, run
from told.backends.sqlite.filters import compile as compile_filter
from told.backends.sqlite.partition import Listing, Look, Partition, Sight
from told.backends.sqlite.rows import PART_BITS, PART_MASK, Scopes, fact_of, json_list, position, spaces_of
from told.backends.sqlite.sql import narrowed
from told.backends.sqlite.writer import Writer
from told.core.fact import NEVER, Fact
from told.core.filter import EVERYTHING, Filter, matches, record
from told.core.query import Find, Later, Mark, Offers, Probe, Ranked
from told.core.question import question
from told.core.score import Centre, Corpus, centre

Rows = list[tuple[Any, ...]]
FEW: Final = 256
"""So many new passages are read while nobody else may write."""


def partition_class() -> type[Partition]:
    """Arrays when NumPy is installed, lists when it is not."""
    try:
        from told.backends.sqlite.arrays import ArrayPartition
    except ImportError:
        from told.backends.sqlite.plain import PlainPartition

        return PlainPartition
    return ArrayPartition


@dataclass(slots=True)
class Cache:
    """Partitions in memory, the least recently used leaving first when the budget is spent."""

    budget: int
    exact_rows: int
    make: Callable[[int, vectors.Model | None, int], Partition] | None = None
    _parts: OrderedDict[tuple[int, int | None], Partition] = field(default_factory=OrderedDict)
    _sizes: dict[tuple[int, int | None], int] = field(default_factory=dict)
    _total: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, part: int, model: vectors.Model | None) -> Partition:
        """A partition, cached or new."""
        key = (part, model.id if model else None)
        with self._lock:
            found = self._parts.pop(key, None)
            if found is None:
                self.make = self.make or partition_class()
                found = self.make(part, model, self.exact_rows)
            self._parts[key] = found
        return found

    def grew(self, partition: Partition) -> None:
        """Note a partition's new size, and forget the least recently used ones until the rest fit the budget."""
        key, size = (partition.part, partition.model.id if partition.model else None), partition.size
        if self._sizes.get(key) == size:
            return
        with self._lock:
            if key in self._parts:
                self._total += size - self._sizes.get(key, 0)
                self._sizes[key] = size
            while self._total > self.budget and len(self._parts) > 1:
                gone, _ = self._parts.popitem(last=False)
                self._total -= self._sizes.pop(gone, 0)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._parts.clear()
            self._sizes.clear()
            self._total = 0


class Seen(NamedTuple):
    """What each partition shows of a read, and whether anything is linked."""

    sights: list[Sight]
    linked: bool


class SqliteIndex:
    """The index of one store."""

    def __init__(self, writer: Writer, cache: Cache) -> None:
        self.writer = writer
        self.cache = cache

    def search(self, probe: Probe) -> Ranked:
        """The best of each retriever: seen where the last pages are at hand, unless there is much to read."""
        brief = probe.find.as_of.valid_at is None and probe.find.filter == EVERYTHING
        seen = self.writer.glance(lambda db: self._seen(Snapshot(db), probe, FEW)) if brief else None
        while seen is None:
            seen = self._seen(self.writer.database.reading(), probe, NEVER)
        return _answered(seen.sights, probe, linked=seen.linked)

    def _seen(self, snapshot: AbstractContextManager[apsw.Connection], probe: Probe, most: int) -> Seen | None:
        """What a read sees, or None when the snapshot is older than what is cached or so many rows newer."""
        with snapshot as db:
            row = run(db, "searched", probe.find.scope.account).fetchone()
            if row is None:
                return Seen([], linked=False)
            account, linked, *model = row
            sights = self._sights(db, account, probe, _fitting(model, probe), most)
            return None if sights is None else Seen(sights, linked=bool(linked))

    def _sights(
        self, db: apsw.Connection, account: int, probe: Probe, model: vectors.Model | None, most: int
    ) -> list[Sight] | None:
        """What each partition shows."""
        find = probe.find
        spaces = spaces_of(db, account, find.scope)
        parts: dict[int, set[int]] = {}
        for space, part in spaces.items():
            parts.setdefault(part, set()).add(space)
        base, chosen = _decided(db, account, find, list(spaces))
        terms = tuple(dict.fromkeys(probe.terms))
        sights: list[Sight] = []
        for part, members in parts.items():
            look = Look(
                frozenset(members), find.as_of.seq, find.as_of.at, find.show_expired,
                None if base is None else base.get(part, frozenset()),
                None if chosen is None else chosen.get(part, frozenset()), bool(probe.centre),
            )  # fmt: skip
            partition = self.cache.get(part, model)
            taken = [False]
            try:
                taken[:] = map(partition.lock.acquire, (most == NEVER,))  # a glance holds up writers: it never waits
                if not taken[0] or not partition.refresh(db, most):
                    return None
                sights.append(partition.look(db, look, terms))
            finally:
                if taken[0]:
                    partition.lock.release()
            self.cache.grew(partition)
        return sights


def _fitting(row: Sequence[Any], probe: Probe) -> vectors.Model | None:
    """The model a probe's vector belongs to."""
    if probe.vector is None or row[0] is None:
        return None
    model = vectors.Model(*row)
    model.check(probe.model, len(probe.vector))
    return model


def _answered(sights: Sequence[Sight], probe: Probe, *, linked: bool) -> Ranked:
    """Both lists over all partitions, scored with the statistics of everything visible."""
    corpus = _together([sight.corpus for sight in sights])
    containing = _added([sight.containing() for sight in sights])
    speakers = {name for sight in sights for name in sight.speakers()} if probe.words else ()
    centred = probe.centre and probe.vector is not None
    middle, count = _middle(sights) if centred else (Centre(), 0)
    code = b"" if probe.vector is None else vectors.aim(probe.vector)
    asked = question(
        probe, code, corpus, containing if sights else [0] * len(set(probe.terms)), speakers,
        middle, count, vectors.toward,
    )  # fmt: skip
    answers = [sight.answer(asked) for sight in sights]
    near = _merged([answer.near for answer in answers], probe.depth)
    words = _merged([answer.words for answer in answers], probe.depth)

    def marks() -> Sequence[Mark]:
        given = zip(answers, near.places(len(answers)), words.places(len(answers)), strict=True)
        offered = [answer.marks(*places) for answer, *places in given]
        return offered[0] if len(offered) == 1 else sorted(chain.from_iterable(offered))

    return Ranked(
        near.offers, words.offers, Later(marks), asked.named, asked.mass, asked.middle.length, asked.visible, linked
    )


def _together(corpora: Sequence[Corpus]) -> Corpus:
    """All that is visible, wherever it is."""
    return corpora[0] if len(corpora) == 1 else Corpus(sum(c.passages for c in corpora), sum(c.terms for c in corpora))


def _middle(sights: Sequence[Sight]) -> tuple[Centre, int]:
    """The centre of all that is visible, wherever it is, and of how many vectors it is."""
    totals = [total for sight in sights if (total := sight.total())[1]]
    count = sum(count for _, count in totals)
    if len(sights) == 1:
        return sights[0].middle(), count
    return centre(_added([total for total, _ in totals]), count, vectors.code_of), count


def _added(totals: Sequence[Sequence[int]]) -> Sequence[int]:
    """Sums of vectors, or of counts, as one."""
    return totals[0] if len(totals) == 1 else [sum(values) for values in zip(*totals, strict=True)]


class Merged(NamedTuple):
    """Ranked lists as one: what it offers, and of which list, if not the only one, each is which ordinal."""

    offers: Offers
    ordinals: Sequence[int]
    owners: Sequence[int] = ()

    def places(self, lists: int) -> list[dict[int, int]]:
        """For each list the places its passages take, by ordinal."""
        if lists == 1:
            return [dict(zip(self.ordinals, counting(1), strict=False))]
        places: list[dict[int, int]] = [{} for _ in range(lists)]
        for place, (owner, ordinal) in enumerate(zip(self.owners, self.ordinals, strict=True), 1):
            places[owner][ordinal] = place
        return places


def _merged(lists: Sequence[Listing], depth: int) -> Merged:
    if len(lists) == 1:
        [only] = lists
        offers = Offers(bool(only.ordinals), lambda: ((seq, shown) for seq, shown, _ in only.known()))
        return Merged(offers, only.ordinals)
    every = (
        (score, seq, ordinal, owner, shown)
        for owner, one in enumerate(lists)
        for ordinal, (seq, shown, score) in zip(one.ordinals, one.known(), strict=True)
    )
    best = sorted(every, reverse=True)[:depth]
    _, seqs, ordinals, owners, shown = zip(*best, strict=True) if best else ((),) * 5
    return Merged(Offers(bool(best), lambda: zip(seqs, shown, strict=True)), ordinals, owners)


# Facts by SQL ---------------------------------------------------------------------------------------------------------


def visible(db: apsw.Connection, account: int, find: Find, spaces: Sequence[int]) -> list[Fact]:
    """The facts of a read, in ledger order, before its offset and limit."""
    condition, params, residual = compile_filter(find.filter)
    if find.after:
        condition = f"({condition}) AND f.id > ?" if condition else "f.id > ?"
        params = [*params, position(account, find.after)]
    tail = " ORDER BY f.id"
    if residual == EVERYTHING and find.limit is not None:
        tail += " LIMIT ? OFFSET ?"
        params = [*params, find.limit, find.offset]
    rows = _select(db, account, find, spaces, condition, params, tail)
    scopes = Scopes(db, find.scope.account)
    facts = (fact_of(row, scopes[row[3]]) for row in rows)
    if residual == EVERYTHING:
        kept = list(facts)
        return kept if find.limit is not None else kept[find.offset :]
    kept = [fact for fact in facts if matches(residual, record(fact))]
    return kept[find.offset : None if find.limit is None else find.offset + find.limit]


def _select(
    db: apsw.Connection, account: int, find: Find, spaces: Sequence[int], condition: str, params: Sequence[Any],
    tail: str = "",
) -> Rows:  # fmt: skip
    at = find.as_of
    name = "facts_latest" if at.valid_at is None else "facts_valid"
    times = [json_list(spaces), position(account, at.seq), at.seq, find.show_expired, at.at]
    if at.valid_at is not None:
        times.append(at.valid_at)
    return db.execute(narrowed(name, condition, tail), (*times, *params)).fetchall()


Ordinals = dict[int, frozenset[int]]


def _decided(
    db: apsw.Connection, account: int, find: Find, spaces: Sequence[int]
) -> tuple[Ordinals | None, Ordinals | None]:
    """The ordinals only SQL can decide on: by world time, and by the metadata filter."""
    if not spaces:
        return None, None
    base = None
    if find.as_of.valid_at is not None:
        base = _ordinals(db, account, find, spaces, EVERYTHING)
    chosen = None
    if find.filter != EVERYTHING:
        chosen = _ordinals(db, account, find, spaces, find.filter)
    return base, chosen


def _ordinals(db: apsw.Connection, account: int, find: Find, spaces: Sequence[int], wanted: Filter) -> Ordinals:
    condition, params, residual = compile_filter(wanted)
    rows = _select(db, account, find, spaces, condition, params)
    if residual != EVERYTHING:
        scopes = Scopes(db, find.scope.account)
        rows = [row for row in rows if matches(residual, record(fact_of(row, scopes[row[3]])))]
    found: dict[int, set[int]] = {}
    for id_, _ in run(db, "passages_of_facts", json_list([row[0] for row in rows])):
        found.setdefault(id_ >> PART_BITS, set()).add(id_ & PART_MASK)
    return {part: frozenset(ordinals) for part, ordinals in found.items()}
