"""Row operations onto tables, inside the transaction that appends their entries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from struct import Struct
from typing import Any, Final, TypeAlias, assert_never

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.connect import run, run_many, run_rows
from told.backends.sqlite.rows import PART_BITS, fact_row, meta_text, part_span, space_of, span, spoken
from told.core.errors import ScopeError
from told.core.fact import Fact, Link, Passage, Tick, Witness, together
from told.core.ids import text_hash
from told.core.scope import Scope
from told.core.score import frequencies
from told.core.text import terms
from told.ports import CloseThread, EndVersion, RowOp

CHUNK_BITS: Final = 11
TF_BITS: Final = 4
DOC_BYTES: Final = 4
STRETCH: Final = 64
"""How many passages are folded at a time; the view `extent` knows it too."""
MOST: Final = 2**63 - 1
FIRST: Final = -2
"""Where in the row of a fact it says where its first passage stands; where the last does is behind it."""
HASH: Final = 8
READY: Final = 10
"""Where in the row of a passage stand the hash of what is embedded, and whether its vector is at hand."""

Turn: TypeAlias = tuple[int, str]
"""A passage others may have been said after: its ordinal and its text."""

Said: TypeAlias = tuple[int, int | None, str | None, list[Any] | None]
"""A fact, until when it is the latest of its thread, what it says, and its row if that is not written yet."""
NOBODY: Final[Said] = (0, None, None, None)

_posting: Final = Struct("<I").pack


@dataclass(slots=True)
class Grower:
    """One transaction's growth of an account's views and index; rows are gathered and written together.

    The scopes it met and the marks of texts and evidence tell what may be among the rows gathered.
    """

    db: apsw.Connection
    account: int
    name: str
    model: vectors.Model | None = None
    fresh: Mapping[bytes, Sequence[float]] = field(default_factory=dict)
    spaces: dict[Scope, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    clocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    facts: dict[tuple[str, int], Fact] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    ends: dict[str, int] = field(default_factory=dict)
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    entries: list[tuple[Any, ...]] = field(default_factory=list)
    gathered: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    terms: dict[int, list[str]] = field(default_factory=dict)
    vectors: dict[bytes, Sequence[float]] = field(default_factory=dict)
    turns: dict[tuple[int, str], Turn] = field(default_factory=dict)
    recent: tuple[Scope | None, tuple[int, int]] = (None, (0, 0))
    met: set[Scope] = field(default_factory=set)
    marks: set[str | bytes] = field(default_factory=set)
    latest: Said = NOBODY
    base: int = field(init=False)

    def __post_init__(self) -> None:
        self.base, _ = span(self.account)

    def grow(self, ops: Iterable[RowOp]) -> None:
        """Apply the operations in order, then write what they gathered."""
        self.gather(ops)
        self.settle()

    def gather(self, ops: Iterable[RowOp]) -> None:
        """Apply the operations in order; most of what they come to is written when it is settled."""
        for op in ops:
            match op:
                case Fact():
                    self._fact(op)
                case Passage():
                    space, part = self.space(op.scope)
                    self.index(part, self.base + op.seq, space, op, self._before(space, op))
                case Witness():
                    self._witness(op)
                case Tick():
                    self._tick(op)
                case Link():
                    self._link(op)
                case EndVersion(thread=thread, seq=seq):
                    self._close(thread, seq)
                case CloseThread(thread=thread, seq=seq):
                    self._close(thread, seq)
                    self.facts.clear()
                    run(self.db, "retire_thread", seq, thread, *span(self.account))
                case _:
                    assert_never(op)

    def settle(self) -> None:
        """Write everything gathered, move the partitions on, and fold full blocks of vectors."""
        for part, rows in self.rows.items():
            fold_terms(self.db, part, self.starts[part], rows, self.terms)
            self.sizes[part] = rows
        self._flush()
        for part in self.touched - self.rows.keys():
            run(self.db, "bump_part", part)
        if self.model is not None:
            if awaited := self.model.remember(self.db, self.vectors):
                vectors.arrive(self.db, self.model, vectors.waiting(self.db, awaited))
            for part, rows in self.rows.items():
                vectors.fold_blocks(self.db, self.model, part, self.starts[part], rows)
        for settled in (self.vectors, self.rows, self.touched, self.turns):
            settled.clear()

    def append(self) -> None:
        """Write the rows of entries, by which the threads of facts are known."""
        run_rows(self.db, "add_entry", self.entries, len(self.entries))
        self.entries.clear()

    def _flush(self) -> None:
        """End the versions that have a later one, and write the rows of the views."""
        if self.entries:
            self.append()
        self._end(self.ends)
        self.ends.clear()
        self.latest = NOBODY
        passages = self.gathered.get("add_passage", ())
        for row in passages:
            if (words := self.terms.pop(row[0], None)) is not None:
                row[-1] = " ".join(words)
        self._ready([row for row in passages if row[READY] is None])
        for query, rows in self.gathered.items():
            run_rows(self.db, query, rows, len(rows))
        self.gathered.clear()
        if self.places:
            run_many(self.db, "place_fact", [(fact, *place) for fact, place in self.places.items()])
            self.places.clear()

    def _ready(self, bare: Sequence[list[Any]]) -> None:
        """Make passages ready that came without a vector, but whose text has had one before."""
        if not bare or self.model is None:
            return
        cached = vectors.cached(self.db, [row[HASH] for row in bare])
        for row in bare:
            row[READY] = 1 if row[HASH] in cached else None

    def space(self, scope: Scope) -> tuple[int, int]:
        """The space and partition of a scope, made at its first use."""
        if scope is self.recent[0]:
            return self.recent[1]
        if scope.account != self.name:
            raise ScopeError(f"A draft of account {scope.account!r} cannot be written to {self.name!r}.")
        found = self.spaces.get(scope) or space_of(self.db, self.account, scope)
        if found is None:
            part = run(self.db, "part", self.account, scope.home()).get
            if part is None:
                part = run(self.db, "add_part", self.account, scope.home()).get
            ids = (scope.user_id, scope.agent_id, scope.run_id)
            found = (run(self.db, "add_space", self.account, part, *ids).get, part)
        self.spaces[scope] = found
        self.recent = (scope, found)
        self.met.add(scope)
        return found

    def _fact(self, fact: Fact) -> None:
        if fact.id in self.ends:
            self._flush()
        self.ends[fact.id] = fact.seq
        self.marks.add(fact.md5)
        row = fact_row(fact, self.base + fact.seq, self.space(fact.scope)[0])
        self.gathered["add_fact"].append(row)
        self.latest = (row[0], fact.until, spoken(fact), row)

    def _close(self, thread: str, seq: int) -> None:
        """End the thread's latest version, which may still be among the rows gathered."""
        if thread in self.ends:
            self._flush()
        self._end({thread: seq})

    def _end(self, ends: Mapping[str, int]) -> None:
        """End the latest version of each of some threads at a position."""
        threads = ((thread, self.base + seq) for thread, seq in ends.items())
        for id_, thread in run_rows(self.db, "held", threads, len(ends), self.base):
            self.facts.pop((self.name, id_ - self.base), None)
            run(self.db, "close_fact", ends[thread], id_)
            closed = run(self.db, "close_passages", ends[thread], id_).fetchall()
            self.touched.update(part for (part,) in closed)

    def _link(self, link: Link) -> None:
        space, _ = self.space(link.scope)
        id_ = self.base + link.seq
        row = (id_, link.src, link.rel, link.dst, space, link.weight, link.until, meta_text(link.meta))
        self.gathered["add_link"].append(row)

    def _witness(self, witness: Witness) -> None:
        space, _ = self.space(witness.scope)
        id_ = self.base + witness.seq
        self.marks.add(witness.digest)
        self.gathered["add_evidence"].append((id_, witness.id, space, witness.digest, witness.source))
        if witness.blobs:
            run_rows(self.db, "add_holding", ((id_, name) for name in witness.blobs), len(witness.blobs))

    def _tick(self, tick: Tick) -> None:
        space, part = self.space(tick.scope)
        turns, tokens = self.clocks.get(part) or run(self.db, "last_tick", part).fetchone() or (0, 0)
        clock = self.clocks[part] = (min(turns + tick.turns, MOST), min(tokens + tick.tokens, MOST))
        self.gathered["add_tick"].append((self.base + tick.seq, space, part, tick.at, tick.turns, tick.tokens, *clock))

    def _size(self, part: int) -> int:
        """How many passages a partition holds before this growth."""
        known = self.sizes.get(part)
        return int(run(self.db, "part_state", part).fetchone()[0]) if known is None else known

    def _before(self, space: int, passage: Passage) -> Turn | None:
        """The turn a passage was said after, which may still be among the rows gathered."""
        if passage.after is None:
            return None
        gathered = self.turns.get((space, passage.after))
        row = None if gathered else run(self.db, "turn", passage.after, space).fetchone()
        return gathered or (None if row is None else (row[0], row[1]))

    def _said(self, fact: int) -> Said:
        """What a passage's fact says, which may still be among the rows gathered."""
        if fact == self.latest[0]:
            return self.latest
        until, text = run(self.db, "spoken", fact).fetchone() or (None, None)
        return fact, until, text, None

    def index(self, part: int, fact: int, space: int, passage: Passage, before: Turn | None) -> Turn:
        """Append a passage to its partition: its row with its terms and, if there is one, its vector."""
        ordinal = self.rows.get(part)
        if ordinal is None:
            ordinal = self.starts[part] = self._size(part)
        words = terms(passage.text)
        earlier, said = (None, None) if before is None else before
        digest = text_hash(together(said, passage.text))
        id_ = part << PART_BITS | ordinal
        self.terms[id_] = words
        _, until, text, row = self._said(fact)
        if row is None:
            self.places[fact] = (self.places.get(fact, (id_,))[0], id_)
        else:
            row[FIRST:] = (id_ if row[FIRST] is None else row[FIRST], id_)
        vector = self.fresh.get(digest)
        if vector is not None:
            self.vectors.setdefault(digest, vector)
        self.gathered["add_passage"].append([
            id_, fact, passage.slot, space, passage.until if until is None else until, passage.expires, earlier,
            len(words), digest, None if text == passage.text else passage.text,
            None if vector is None else 1, None,
        ])  # fmt: skip
        self.rows[part] = ordinal + 1
        turn = (ordinal, passage.text)
        if passage.thread is not None:
            self.turns.setdefault((space, passage.thread), turn)
        return turn


def fold_terms(db: apsw.Connection, part: int, first: int, size: int, fresh: dict[int, list[str]]) -> None:
    """Move the terms of every full stretch of passages into postings.

    Terms are taken from the passages that are written already and from fresh ones, by id, which then need not keep
    them. Where it stops follows from the number of passages alone, so a partition grown and one rebuilt are the same.
    """
    folded, goal = first - first % STRETCH, size - size % STRETCH
    if goal <= folded:
        return
    lo, _ = part_span(part)
    written = {ordinal: words.split() for ordinal, words in run(db, "part_terms", lo + folded, lo + goal)}
    for chunk in range(folded >> CHUNK_BITS, (goal - 1 >> CHUNK_BITS) + 1):
        postings: dict[str, bytes] = {}
        for ordinal in range(max(folded, chunk << CHUNK_BITS), min(goal, chunk + 1 << CHUNK_BITS)):
            place = ordinal << TF_BITS
            once = _posting(place | 1)
            for term, count in frequencies(fresh.pop(lo + ordinal, ()) or written.get(ordinal, ())).items():
                posting = once if count == 1 else _posting(place | count)
                before = postings.get(term)
                postings[term] = posting if before is None else before + posting
        ordered = sorted(postings)
        rows = zip(repeat(part), ordered, repeat(chunk), map(postings.__getitem__, ordered))
        run_rows(db, "add_posting", rows, len(postings))
    run(db, "drop_terms", lo + folded, lo + goal)


def docs_of(ordinal: int, words: str) -> Iterator[tuple[str, int]]:
    """A passage's terms, each with its posting: the ordinal and how often the term occurs."""
    for term, count in frequencies(words.split(" ") if words else ()).items():
        yield term, ordinal << TF_BITS | count
