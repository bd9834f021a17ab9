"""Search inside a scope: partitions kept in memory within a byte budget, statistics of what is visible alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, NamedTuple

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.connect import Database, run
from told.backends.sqlite.filters import compile as compile_filter
from told.backends.sqlite.partition import Listing, Look, Partition, PlainPartition, Sight
from told.backends.sqlite.rows import PART_BITS, PART_MASK, Scopes, fact_of, json_list, position, spaces_of
from told.backends.sqlite.sql import narrowed
from told.core.fact import Fact
from told.core.filter import EVERYTHING, Filter, matches, record
from told.core.match import facts, question
from told.core.query import Find, Mark, Marks, Probe, Ranked
from told.core.score import Corpus

Rows = list[tuple[Any, ...]]


def partition_class() -> type[Partition]:
    """Arrays when NumPy is installed, lists when it is not."""
    try:
        from told.backends.sqlite.arrays import ArrayPartition
    except ImportError:
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
        key = (partition.part, partition.model.id if partition.model else None)
        with self._lock:
            if key in self._parts:
                self._total += partition.size - self._sizes.get(key, 0)
                self._sizes[key] = partition.size
            while self._total > self.budget and len(self._parts) > 1:
                gone, _ = self._parts.popitem(last=False)
                self._total -= self._sizes.pop(gone, 0)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._parts.clear()
            self._sizes.clear()
            self._total = 0


class SqliteIndex:
    """The index of one store."""

    def __init__(self, database: Database, cache: Cache) -> None:
        self.database = database
        self.cache = cache

    def search(self, probe: Probe) -> Ranked:
        """The best of each retriever."""
        sights, linked = None, False
        while sights is None:
            with self.database.reading() as db:
                sights = self._sights(db, probe)
                linked = run(db, "any_link").get is not None
        return _answered(sights, probe, linked=linked)

    def _sights(self, db: apsw.Connection, probe: Probe) -> list[Sight] | None:
        """What each partition shows of a read, or None when this snapshot is older than what is cached."""
        find = probe.find
        account = run(db, "account", find.scope.account).fetchone()
        if account is None:
            return []
        spaces = spaces_of(db, account[0], find.scope)
        parts: dict[int, set[int]] = {}
        for space, part in spaces.items():
            parts.setdefault(part, set()).add(space)
        base, chosen = _decided(db, account[0], find, list(spaces))
        model, terms = _fitting(db, probe), tuple(dict.fromkeys(probe.terms))
        sights: list[Sight] = []
        for part, members in parts.items():
            look = Look(
                frozenset(members), find.as_of.seq, find.as_of.at, find.show_expired,
                None if base is None else base.get(part, frozenset()),
                None if chosen is None else chosen.get(part, frozenset()), bool(probe.centre),
            )  # fmt: skip
            partition = self.cache.get(part, model)
            with partition.lock:
                if not partition.refresh(db):
                    return None
                sights.append(partition.look(db, look, terms))
            self.cache.grew(partition)
        return sights


def _fitting(db: apsw.Connection, probe: Probe) -> vectors.Model | None:
    """The model a probe's vector belongs to."""
    model = vectors.current(db) if probe.vector is not None else None
    if model is not None and probe.vector is not None:
        model.check(probe.model, len(probe.vector))
    return model


def _answered(sights: Sequence[Sight], probe: Probe, *, linked: bool) -> Ranked:
    """Both lists over all partitions, scored with the statistics of everything visible."""
    corpora = [sight.corpus for sight in sights]
    corpus = Corpus(sum(c.passages for c in corpora), sum(c.terms for c in corpora))
    containing = [sum(counts) for counts in zip(*(sight.containing() for sight in sights), strict=True)]
    speakers = {name for sight in sights for name in sight.speakers()} if probe.words else ()
    centred = probe.centre and probe.vector is not None
    totals = [total for sight in sights if (total := sight.total())[1]] if centred else []
    code = b"" if probe.vector is None else vectors.aim(probe.vector)
    asked = question(
        probe, code, corpus, containing if sights else [0] * len(set(probe.terms)), speakers,
        _added([total for total, _ in totals]),
        sum(count for _, count in totals),
    )  # fmt: skip
    answers = [sight.answer(asked) for sight in sights]
    near = _merged([answer.near for answer in answers], probe.depth)
    words = _merged([answer.words for answer in answers], probe.depth)

    def marks() -> list[Mark]:
        given = zip(answers, near.places(len(answers)), words.places(len(answers)), strict=True)
        return sorted(chain.from_iterable(answer.marks(*places) for answer, *places in given))

    return Ranked(
        facts(near.seqs, near.shown), facts(words.seqs, words.shown), Marks(marks), asked.named, asked.mass,
        asked.middle.length, asked.visible, linked,
    )  # fmt: skip


def _added(totals: Sequence[Sequence[int]]) -> Sequence[int]:
    """Sums of vectors as one."""
    return totals[0] if len(totals) == 1 else [sum(values) for values in zip(*totals, strict=True)]


class Merged(NamedTuple):
    """Ranked lists as one: positions, scores to show, and the list and the ordinal in it that each comes from."""

    seqs: Sequence[int] = ()
    shown: Sequence[float] = ()
    owners: Sequence[int] = ()
    ordinals: Sequence[int] = ()

    def places(self, lists: int) -> list[dict[int, int]]:
        """For each list the places its passages take, by ordinal."""
        if lists == 1:
            return [dict(zip(self.ordinals, count(1), strict=False))]
        places: list[dict[int, int]] = [{} for _ in range(lists)]
        for place, (owner, ordinal) in enumerate(zip(self.owners, self.ordinals, strict=True), 1):
            places[owner][ordinal] = place
        return places


def _merged(lists: Sequence[Listing], depth: int) -> Merged:
    if len(lists) == 1:
        [only] = lists
        return Merged(only.seqs, only.shown, [0] * len(only.seqs), only.ordinals)
    offers = (
        (score, seq, ordinal, owner, shown)
        for owner, one in enumerate(lists)
        for seq, shown, score, ordinal in zip(*one, strict=True)
    )
    best = sorted(offers, reverse=True)[:depth]
    _, seqs, ordinals, owners, shown = zip(*best, strict=True) if best else ((),) * 5
    return Merged(seqs, shown, owners, ordinals)


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
