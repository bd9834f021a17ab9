"""Commits that share a transaction have the same effect as commits one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from told.backends.sqlite.connection import translate_errors
from told.backends.sqlite.group_commit import GroupCommitWriter, WriteJob
from told.backends.sqlite.store import SqliteStore
from told.ids import hash_text
from told.ledger.views import build_fold, fold_all
from told.model.entry import (
    Asserted,
    Claim,
    Draft,
    Evidence,
    Linked,
    Observed,
    Retracted,
    Ruled,
    Verb,
)
from told.model.scope import Scope
from told.ports import (
    VIEWS,
    Batch,
    CursorStep,
    EntryIntact,
    Guard,
    KindNotGrown,
    NoEvidence,
    NoFact,
    Store,
    ThreadAt,
    ThreadUntouched,
    UnchangedSlot,
)
from told.testing.contract.harness import make_idempotency_record
from told.testing.fakes import seeded_mint
from told.text.tokens import md5_hex

ACCOUNTS = ("acme", "other")
USERS = ("alice", "bob")
SCOPES = [
    Scope(account, user_id=user, run_id=run)
    for account in ACCOUNTS
    for user in USERS
    for run in (None, "r1")
]
THREADS = ("t1", "t2", "t3", "t4")
TEXTS = ("green tea", "black coffee", "a long walk", "tea again")

Deed = Callable[[Store], object]


def verb(random: Random) -> Verb:
    thread, text = random.choice(THREADS), random.choice(TEXTS)
    match random.randrange(8):
        case 0:
            return Retracted(thread)
        case 1:
            return Linked(thread, "about", random.choice(THREADS))
        case 2 | 3:
            return Observed(f"e{random.randrange(6)}", Evidence(text, said_at=1))
        case _:
            claim = Claim(
                text,
                kind=random.choice(("memory", "turn", "preference")),
                subject="user",
                predicate="likes",
            )
            return Asserted(thread, claim)


def guard(random: Random, scope: Scope) -> Guard:
    thread, text, seq = random.choice(THREADS), random.choice(TEXTS), random.randrange(12)
    match random.randrange(7):
        case 0:
            return ThreadAt(thread, random.choice((None, seq)))
        case 1 | 2:
            return NoFact(scope, (md5_hex(text),))
        case 3:
            return NoEvidence(scope, (Evidence(text, said_at=1).digest(),))
        case 4:
            return UnchangedSlot(scope, "user", ("likes",), seq)
        case 5:
            return random.choice(
                (KindNotGrown(scope, "preference", seq), ThreadUntouched(thread, seq))
            )
        case _:
            return EntryIntact(seq)


def commit(random: Random, store: Store) -> Deed:
    """Build a commit of a few verbs, some of them impossible; its guards hold right now."""
    scope = random.choice(SCOPES)
    head = store.get_head(scope.account).seq
    seen, guards = (
        random.choice((-1, head)),
        [guard(random, scope)] if random.random() < 0.6 else [],
    )
    if seen == head and tried(
        store, lambda store: store.commit(Batch(scope.account, [], guards), fold_all)
    ):
        guards = []
    drafts = [Draft(verb(random), scope) for _ in range(random.randrange(1, 4))]
    texts = [draft.verb.claim.text for draft in drafts if isinstance(draft.verb, Asserted)]
    vectors = {hash_text(text): [1.0, 0.5] for text in texts if random.random() < 0.5}
    if random.random() < 0.04:
        drafts.append(Draft(Asserted("t9", Claim(odd := random.choice((*TEXTS, "odd")))), scope))
        vectors[hash_text(odd)] = [1.0, 0.5, 0.5]
    if random.random() < 0.04:
        drafts.append(
            Draft(Asserted(random.choice(THREADS), Claim("of no day", said_at=2**70)), scope)
        )
    batch = Batch(
        scope.account,
        drafts,
        guards,
        seen,
        make_idempotency_record(f"k{random.randrange(5)}", "t1") if random.random() < 0.2 else None,
        vectors,
        None,
        step=CursorStep("graph", 0, random.randrange(1, 9)) if random.random() < 0.05 else None,
    )

    def broken(_: object) -> Any:
        raise LookupError("a view went wrong")

    fold = broken if random.random() < 0.03 else fold_all
    return lambda store: store.commit(batch, fold)


def random_other_write(random: Random, _: Store) -> Deed:
    """Build a write that is not a commit."""
    account, seq = random.choice(ACCOUNTS), random.randrange(1, 9)
    return random.choice(
        (
            lambda store: store.erase(account, [seq], Draft(Retracted("t1"), None)),
            lambda store: store.rebuild(account, VIEWS, build_fold(VIEWS)),
            lambda store: store.put_vectors({hash_text(TEXTS[0]): [0.0, 1.0]}, None),
            lambda store: store.put_vectors({hash_text(TEXTS[0]): [0.0]}, None),
            lambda store: store.bind_model("small", 2, switch=True),
            lambda store: store.reset(account, Draft(Ruled("ledger", "reset", {}), None)),
            lambda store: store.update_consumer(account, "words", cursor=seq),
        )
    )


class Gathering:
    """Replace a store's writer: collect writes as if another writer were busy."""

    def __init__(self, writer: GroupCommitWriter) -> None:
        self.writer = writer
        self.jobs: list[WriteJob[Any]] = []

    def __call__(self, work: Any, *, keeps_cache: bool = False, uses_buffer: bool = False) -> Any:
        self.jobs.append(WriteJob(work, keeps_cache, uses_buffer))
        raise InterruptedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writer, name)

    def go(self) -> list[object]:
        """Run every collected write and return the outcomes."""
        self.writer._queue.extend(self.jobs)
        self.writer(lambda db: None)
        return [name_error(job.error) for job in self.jobs]


def name_error(error: BaseException | None) -> object:
    """Return the name of an error as the caller sees it."""
    if error is None:
        return None
    try:
        with translate_errors():
            raise error
    except Exception as told:
        return type(told).__name__


def tried(store: Store, deed: Deed) -> BaseException | None:
    try:
        deed(store)
    except Exception as error:
        return error
    return None


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    made = [SqliteStore(tmp_path / f"{name}.db", seeded_mint(1), {}) for name in ("one", "all")]
    for store in made:
        store.bind_model("tiny", 2)
    yield made[0], made[1]
    for store in made:
        store.close()


@pytest.mark.parametrize("seed", range(60))
def test_commits_in_one_transaction_equal_commits_one_after_another(
    stores: tuple[SqliteStore, SqliteStore], seed: int
) -> None:
    random = Random(seed)
    one_by_one, together = stores
    writer = together._write
    for _ in range(4):
        kinds = [
            random_other_write if random.random() < 0.06 else commit
            for _ in range(random.randrange(2, 24))
        ]
        deeds = [kind(random, one_by_one) for kind in kinds]
        alone = [name_error(tried(one_by_one, deed)) for deed in deeds]
        gathering = together._write = Gathering(writer)  # type: ignore[assignment]
        for deed in deeds:
            tried(together, deed)
        together._write = writer
        assert gathering.go() == alone
        together.index.cache.clear()
        for account in ACCOUNTS:
            assert _snapshot(together, account) == _snapshot(one_by_one, account)


def _snapshot(store: Store, account: str) -> object:
    entries = [
        (e.seq, e.tx, e.sort, e.thread, e.draft) for e in store.scan_entries(account, 0, 10_000)
    ]
    rows = {view: sorted(map(repr, store.view_rows(account, view))) for view in VIEWS}
    return entries, rows, store.get_head(account).seq
