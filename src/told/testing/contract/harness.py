"""Shared parts of the contract tests: a harness for one account, fixtures and helpers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import isclose
from threading import Barrier
from typing import Any, ClassVar

import pytest

from told.ids import IdGenerator, sha256
from told.model.entry import (
    GENESIS,
    Asserted,
    Blob,
    Claim,
    Draft,
    Entry,
    Erased,
    Evidence,
    Linked,
    Observed,
    Retracted,
    Verb,
    is_next_in_chain,
)
from told.model.fact import EvidenceRow, Fact, Link, Passage, Tick
from told.model.filter import parse_filter
from told.model.query import (
    LATEST,
    AccessBatch,
    AccessCount,
    AccessRecord,
    AsOf,
    FactQuery,
    IndexQuery,
    ReviewReason,
    ReviewTask,
)
from told.model.scope import Scope
from told.ports import VIEWS, Batch, Fold, Guard, IdempotencyRecord, Store, View, ViewRow
from told.testing.fakes import ManualClock, seeded_mint
from told.text.tokens import extract_terms

ACCOUNT = "acme"
ALICE = Scope(ACCOUNT, user_id="alice")
BOB = Scope(ACCOUNT, user_id="bob")
OTHER_ACCOUNT = "umbrella"
LONE_SURROGATE = "\ud800"


VIEW_ROWS: Mapping[View, type[ViewRow]] = {
    "evidence": EvidenceRow,
    "facts": Fact,
    "links": Link,
    "passages": Passage,
    "ticks": Tick,
}
SCORE_TOLERANCE = 1e-6
"""The difference of scores up to which two backends agree."""


@dataclass(frozen=True, slots=True, eq=False)
class RetrieverScores:
    """The scores of one fact, None where a retriever did not list it; equal within 1e-6."""

    seq: int
    cosine: float | None
    bm25: float | None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RetrieverScores)
            and self.seq == other.seq
            and _is_close(self.cosine, other.cosine)
            and _is_close(self.bm25, other.bm25)
        )

    __hash__ = None  # type: ignore[assignment]


def _is_close(score: float | None, other: float | None) -> bool:
    if score is None or other is None:
        return score is other
    return isclose(score, other, rel_tol=0, abs_tol=SCORE_TOLERANCE)


class AccountHarness:
    """Shorthands for calls to one account of a store."""

    def __init__(
        self, store: Store, folding: Callable[[Sequence[View]], Fold], account: str = ACCOUNT
    ) -> None:
        self.store = store
        self.folding = folding
        self.account = account

    @property
    def head_seq(self) -> int:
        """The last position of the ledger."""
        return self.store.get_head(self.account).seq

    # Writing

    def commit(
        self,
        *verbs: Verb,
        scope: Scope = ALICE,
        guards: Sequence[Guard] = (),
        read_seq: int = -1,
        idempotency: IdempotencyRecord | None = None,
        vectors: Mapping[bytes, Sequence[float]] | None = None,
        model: str | None = None,
    ) -> Sequence[Entry]:
        """Commit verbs as one batch."""
        drafts = [Draft(verb, scope) for verb in verbs]
        batch = Batch(self.account, drafts, guards, read_seq, idempotency, vectors or {}, model)
        return self.store.commit(batch, self.folding(VIEWS))

    def assert_claim(
        self, text: str, thread: str | None = None, scope: Scope = ALICE, **claim: Any
    ) -> Fact:
        """Assert a claim on a new or given thread; return the version it became."""
        [entry] = self.commit(
            Asserted(thread or self.store.mint.new_id(), Claim(text, **claim)), scope=scope
        )
        [fact] = self.store.find_versions(self.account, seqs=[entry.seq])
        return fact

    def add_evidence(
        self, content: str, id: str, scope: Scope = ALICE, source: str | None = None
    ) -> Entry:
        """Add evidence and return its entry."""
        [entry] = self.commit(Observed(id, Evidence(content, source=source)), scope=scope)
        return entry

    def retract_thread(self, thread: str) -> Entry:
        """Retract a thread and return the entry."""
        [entry] = self.commit(Retracted(thread))
        return entry

    def add_link(self, src: str, rel: str, dst: str) -> Entry:
        """Add a link and return its entry."""
        [entry] = self.commit(Linked(src, rel, dst))
        return entry

    def record_cooccurrence(
        self, account: str, pairs: Mapping[tuple[str, str], AccessCount]
    ) -> None:
        """Count that topics came up together."""
        self.store.record_accesses(account, AccessBatch(cooccurrences=pairs))

    def enqueue_tasks(self, account: str, tasks: Sequence[ReviewTask], window: int) -> int:
        """Queue tasks; return how many are new."""
        return self.store.record_accesses(account, AccessBatch(tasks=tasks, window=window))

    def put_blob(self, account: str, data: bytes, media_type: str) -> str:
        """Store a blob that no evidence names; return its hash."""
        blob = Blob.from_bytes(data, media_type)
        self.store.commit(Batch(account, (), blobs=(blob,)), self.folding(VIEWS))
        return blob.hash

    # Reading

    def build_query(
        self,
        scope: Scope = ALICE,
        *,
        seq: int | None = None,
        valid_at: int | None = None,
        at: int | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> FactQuery:
        """Build a query at a position, by default the head."""
        head = self.store.get_head(self.account)
        as_of = AsOf(head.seq if seq is None else seq, head.at if at is None else at, valid_at)
        return FactQuery(scope, as_of, parse_filter(where), **options)

    def list_texts(self, scope: Scope = ALICE, **query_options: Any) -> list[str]:
        """Return the texts of the facts visible to a scope."""
        return [
            fact.text for fact in self.store.find_facts(self.build_query(scope, **query_options))
        ]

    def search_texts(
        self,
        query: str = "",
        scope: Scope = ALICE,
        *,
        vector: Sequence[float] | None = None,
        depth: int = 100,
        **query_options: Any,
    ) -> dict[str, RetrieverScores]:
        """Search and return the scores by the text of each fact."""
        index_result = self.store.index.search(
            IndexQuery(
                self.build_query(scope, **query_options), tuple(extract_terms(query)), vector, depth
            )
        )
        near, words = dict(index_result.by_vector), dict(index_result.by_terms)
        facts = self.store.find_versions(self.account, seqs=list({**near, **words}))
        return {
            fact.text: RetrieverScores(fact.seq, near.get(fact.seq), words.get(fact.seq))
            for fact in facts
        }

    def dump_views(self) -> dict[str, list[ViewRow]]:
        """Return every row of every view."""
        rows = self.store.rows_between(self.account, 0, self.head_seq)
        return {view: [row for row in rows if isinstance(row, VIEW_ROWS[view])] for view in VIEWS}

    def embedded_hashes(self, hashes: Sequence[bytes]) -> frozenset[bytes]:
        """Return the hashes that have a vector."""
        scope = Scope(self.account)
        return self.store.lookup_existing(scope, (), (), None, hashes).vectors

    def threads_from_evidence(self, account: str, evidence: Sequence[str]) -> list[str]:
        """Return the threads with a version taken from any of this evidence."""
        versions = self.store.find_versions(account, evidence=evidence)
        return list(dict.fromkeys(fact.id for fact in versions if fact.evidence in evidence))

    def list_ticks(
        self, scope: Scope, upto: int | None = None, limit: int = 4096
    ) -> Sequence[Tick]:
        """Return the last ticks of a scope's partition up to a position."""
        return self.store.tick_totals(scope, [LATEST if upto is None else upto], limit).recent

    def list_entries(self) -> Sequence[Entry]:
        """Return all entries."""
        return self.store.scan_entries(self.account, 0, 1_000_000)


def erase_entries(harness: AccountHarness, seqs: Sequence[int]) -> Entry:
    """Erase entries, scrub the store and return the tombstone."""
    tombstone, _ = harness.store.erase(
        harness.account, seqs, Draft(Erased(tuple(seqs)), None, author="told")
    )
    assert not harness.store.scrub()
    return tombstone


def add_turn(
    harness: AccountHarness,
    content: str,
    scope: Scope = ALICE,
    role: str = "user",
    **evidence: object,
) -> int:
    """Add a turn as evidence and return its position."""
    turn = Evidence(content, role=role, **{"sort": "turn", **evidence})  # type: ignore[arg-type]
    [entry] = harness.commit(Observed(harness.store.mint.new_id(), turn), scope=scope)
    return entry.seq


def add_threads(harness: AccountHarness, *threads: str) -> None:
    """Add threads with one version each."""
    harness.commit(*(Asserted(thread, Claim(f"fact of {thread}")) for thread in threads))


def run_in_threads(count: int, work: Callable[[int], object]) -> list[object]:
    """Run a function in several threads that start together."""
    gate = Barrier(count)

    def run_one(number: int) -> object:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run_one, range(count)))


def dump_side_data(harness: AccountHarness, account: str = ACCOUNT) -> tuple[object, ...]:
    """Return the access data, tasks and notes of t1, t2 and t3."""
    store, threads = harness.store, ("t1", "t2", "t3")
    return (
        dict(store.cooccurrence(account, threads)),
        [list(store.access_history(account, thread).records) for thread in threads],
        [state for t in threads for state in store.access_history(account, t).states],
        list(store.list_tasks(account)),
        dict(store.read_notes(account, "topics")),
    )


def fill_side_data(harness: AccountHarness, account: str = ACCOUNT) -> None:
    """Write access data, tasks and notes of t1, t2 and t3."""
    store = harness.store
    harness.record_cooccurrence(
        account,
        {
            ("t1", "t2"): AccessCount(1, 1),
            ("t3", "t1"): AccessCount(2, 2),
            ("t2", "t3"): AccessCount(3, 3),
        },
    )
    store.record_accesses(
        account,
        AccessBatch(
            records=[AccessRecord(thread, 5, query="q") for thread in ("t1", "t2", "t3")],
            keep_per_thread=10,
        ),
    )
    harness.enqueue_tasks(
        account, [ReviewTask(thread, ReviewReason.RECALL) for thread in ("t1", "t2", "t3")], 0
    )
    store.update_consumer(account, "topics", notes={"t1": b"one", "t2": b"two", "all": b"three"})


def make_idempotency_record(
    key: str, *threads: str, digest: bytes = b"request"
) -> IdempotencyRecord:
    """Build an idempotency record whose outcome names threads as the write path does."""
    return IdempotencyRecord(
        key, digest, json.dumps({"events": [["ADD", thread] for thread in threads], "skipped": []})
    )


def assert_chained(entries: Sequence[Entry]) -> None:
    """Assert that entries are numbered, chained and match their digests."""
    prev = GENESIS
    for number, entry in enumerate(entries, 1):
        assert entry.seq == number
        assert is_next_in_chain(prev, entry)
        if entry.envelope is not None:
            assert entry.digest == sha256(entry.salt or b"", entry.envelope)
        prev = entry.hash


class ContractBase:
    """The fixtures of all contract classes; every store is closed after its test."""

    folding: ClassVar[Callable[[Sequence[View]], Fold]]

    @pytest.fixture
    def store(self) -> Callable[[IdGenerator], Store]:
        """Return the store factory; override it in a subclass."""
        raise NotImplementedError(
            "Override the `store` fixture with a factory that opens an empty store for a mint."
        )

    @pytest.fixture
    def clock(self) -> ManualClock:
        """Return the clock of all stores in the test."""
        return ManualClock()

    @pytest.fixture
    def open_harness(
        self, store: Callable[[IdGenerator], Store], clock: ManualClock
    ) -> Iterator[Callable[[], AccountHarness]]:
        """Return a function that opens a harness over a new store."""
        stores: list[Store] = []

        def open_new() -> AccountHarness:
            stores.append(store(seeded_mint(len(stores), clock)))
            return AccountHarness(stores[-1], type(self).folding)

        yield open_new
        for opened_store in stores:
            opened_store.close()

    @pytest.fixture
    def harness(self, open_harness: Callable[[], AccountHarness]) -> AccountHarness:
        """Return a harness over an empty store."""
        return open_harness()

    def use_account(self, harness: AccountHarness, account: str) -> AccountHarness:
        """Return a harness for another account of the same store."""
        return AccountHarness(harness.store, harness.folding, account)
