"""A scribe writes to and reads from one account in few words, and the laws below are told through it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from told.core.entry import GENESIS, Asserted, Claim, Draft, Entry, Evidence, Linked, Observed, Retracted, Verb, follows
from told.core.fact import Fact
from told.core.filter import parse
from told.core.ids import Mint, sha256
from told.core.query import AsOf, Find, Probe
from told.core.scope import Scope
from told.core.text import terms
from told.ports import VIEWS, Batch, Fold, Guard, Store, Ticket, View
from told.testing.fakes import ManualClock, seeded_mint

ACCOUNT = "acme"
ALICE = Scope(ACCOUNT, user_id="alice")
BOB = Scope(ACCOUNT, user_id="bob")


@dataclass(frozen=True, slots=True)
class Match:
    """One fact with what each retriever said of it; None when it was not in that list."""

    seq: int
    cosine: float | None
    bm25: float | None


class Scribe:
    """One account of a store, with short words for long calls."""

    def __init__(self, store: Store, folding: Callable[[Sequence[View]], Fold], account: str = ACCOUNT) -> None:
        self.store = store
        self.folding = folding
        self.account = account

    @property
    def seq(self) -> int:
        """Where the ledger ends."""
        return self.store.head(self.account).seq

    # Writing

    def write(
        self, *verbs: Verb, scope: Scope = ALICE, guards: Sequence[Guard] = (), seen: int = -1,
        ticket: Ticket | None = None, vectors: Mapping[bytes, Sequence[float]] | None = None,
        model: str | None = None,
    ) -> Sequence[Entry]:  # fmt: skip
        """Commit verbs as one batch."""
        drafts = [Draft(verb, scope) for verb in verbs]
        batch = Batch(self.account, drafts, guards, seen, ticket, vectors or {}, model)
        return self.store.commit(batch, self.folding(VIEWS))

    def tell(self, text: str, thread: str | None = None, scope: Scope = ALICE, **claim: Any) -> Fact:
        """Assert a claim on a new or given thread; return the version it became."""
        [entry] = self.write(Asserted(thread or self.store.mint.id(), Claim(text, **claim)), scope=scope)
        return self.store.versions(self.account, [entry.seq])[entry.seq]

    def observe(self, content: str, id: str, scope: Scope = ALICE, source: str | None = None) -> Entry:
        """Keep evidence."""
        [entry] = self.write(Observed(id, Evidence(content, source=source)), scope=scope)
        return entry

    def retract(self, thread: str) -> Entry:
        """Give up a thread."""
        [entry] = self.write(Retracted(thread))
        return entry

    def link(self, src: str, rel: str, dst: str) -> Entry:
        """Link two things."""
        [entry] = self.write(Linked(src, rel, dst))
        return entry

    # Reading

    def find(
        self, scope: Scope = ALICE, *, seq: int | None = None, valid_at: int | None = None, at: int | None = None,
        where: Mapping[str, Any] | None = None, **more: Any,
    ) -> Find:  # fmt: skip
        """A read at a position, now unless said otherwise."""
        head = self.store.head(self.account)
        as_of = AsOf(head.seq if seq is None else seq, head.at if at is None else at, valid_at)
        return Find(scope, as_of, parse(where), **more)

    def texts(self, scope: Scope = ALICE, **find: Any) -> list[str]:
        """What a scope believes."""
        return [fact.text for fact in self.store.facts(self.find(scope, **find))]

    def search(
        self, query: str = "", scope: Scope = ALICE, *, vector: Sequence[float] | None = None, depth: int = 100,
        **find: Any,
    ) -> dict[str, Match]:  # fmt: skip
        """The matches of a query by the text of the fact that matched."""
        found = self.store.index.search(Probe(self.find(scope, **find), tuple(terms(query)), vector, depth))
        near, words = dict(found.near), dict(found.words)
        facts = self.store.versions(self.account, list({**near, **words}))
        return {fact.text: Match(seq, near.get(seq), words.get(seq)) for seq, fact in facts.items()}

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every view."""
        return {view: list(self.store.rows(self.account, view)) for view in VIEWS}

    def entries(self) -> Sequence[Entry]:
        """The whole ledger."""
        return self.store.scan(self.account, 0, 1_000_000)


def ticket(key: str, *threads: str, digest: bytes = b"request") -> Ticket:
    """A ticket whose outcome names threads, in the shape the write path gives it."""
    return Ticket(key, digest, json.dumps({"events": [["ADD", thread] for thread in threads], "skipped": []}))


def assert_chained(entries: Sequence[Entry]) -> None:
    """Each entry has the next number, follows from the one before it, and holds what its digest says, if anything."""
    prev = GENESIS
    for number, entry in enumerate(entries, 1):
        assert entry.seq == number
        assert follows(prev, entry)
        if entry.envelope is not None:
            assert entry.digest == sha256(entry.salt or b"", entry.envelope)
        prev = entry.hash


class Laws:
    """What every group of laws stands on: the fold of the views, and stores that are closed after the test."""

    folding: ClassVar[Callable[[Sequence[View]], Fold]]

    @pytest.fixture
    def store(self) -> Callable[[Mint], Store]:
        """The factory under test; a subclass provides it."""
        raise NotImplementedError("Override the `store` fixture: a factory that opens an empty store for a mint.")

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The clock of every store in the test."""
        return ManualClock()

    @pytest.fixture
    def open_book(self, store: Callable[[Mint], Store], clock: ManualClock) -> Iterator[Callable[[], Scribe]]:
        """Opens a scribe over a new store."""
        opened: list[Store] = []

        def opener() -> Scribe:
            opened.append(store(seeded_mint(len(opened), clock)))
            return Scribe(opened[-1], type(self).folding)

        yield opener
        for each in opened:
            each.close()

    @pytest.fixture
    def book(self, open_book: Callable[[], Scribe]) -> Scribe:
        """A scribe over an empty store."""
        return open_book()

    def elsewhere(self, book: Scribe, account: str) -> Scribe:
        """A scribe in another account of the same store."""
        return Scribe(book.store, book.folding, account)
