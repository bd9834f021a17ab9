"""Laws of writing: atomic commits, guards, idempotency keys and concurrent writers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any, TypeVar

import pytest

from told.errors import Conflict, InvalidInput, ScopeError
from told.ids import hash_text
from told.model.entry import (
    Asserted,
    Claim,
    Draft,
    Entry,
    Erased,
    Evidence,
    Linked,
    Observed,
    Retracted,
    Ruled,
    Verb,
    decode_envelope,
)
from told.model.scope import Scope
from told.ports import VIEWS, Batch, EntryIntact, Guard, NoEvidence, NoFact, RowOp, ThreadAt
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    AccountHarness,
    ContractBase,
    assert_chained,
    make_idempotency_record,
)
from told.testing.fakes import ManualClock
from told.text.dates import Interval
from told.text.tokens import md5_hex


class AppendContract(ContractBase):
    """Entries are appended in order and never change."""

    def test_an_empty_account_has_head_zero(self, harness: AccountHarness) -> None:
        assert harness.head_seq == 0
        assert list(harness.list_entries()) == []
        assert list(harness.store.list_accounts()) == []

    def test_entries_are_numbered_from_one_without_gaps(self, harness: AccountHarness) -> None:
        for number in range(5):
            harness.commit(
                *[Asserted(f"t{number}{part}", Claim("x")) for part in range(number + 1)]
            )
        assert [entry.seq for entry in harness.list_entries()] == list(range(1, 16))
        assert harness.head_seq == 15

    def test_a_batch_is_one_transaction_at_one_instant(self, harness: AccountHarness) -> None:
        harness.assert_claim("before")
        batch = harness.commit(*[Asserted(f"t{number}", Claim("x")) for number in range(3)])
        assert [entry.tx for entry in batch] == [2, 2, 2]
        assert len({entry.at for entry in batch}) == 1
        assert harness.commit(Retracted("t0"))[0].tx == 5

    def test_the_first_timestamp_comes_from_the_clock(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        assert harness.assert_claim("now").updated_at == clock.now

    def test_timestamps_increase_when_the_clock_does_not(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        for step in (0, 0, -3_600_000_000, 5, 7_200_000_000):
            clock.tick(step)
            harness.assert_claim(f"after {step}")
        instants = [entry.at for entry in harness.list_entries()]
        assert instants == sorted(set(instants))
        assert instants[-1] == clock.now

    def test_each_entry_hash_covers_the_previous_one(self, harness: AccountHarness) -> None:
        harness.add_evidence("I moved", "e1")
        harness.commit(
            Asserted("t1", Claim("Alice moved", evidence="e1")), Linked("e1", "supports", "t1")
        )
        harness.retract_thread("t1")
        assert_chained(harness.list_entries())
        assert harness.store.get_head(ACCOUNT).hash == harness.list_entries()[-1].hash

    def test_no_two_entries_share_a_salt(self, harness: AccountHarness) -> None:
        for _ in range(3):
            harness.commit(Asserted("t1", Claim("same")), Asserted("t2", Claim("same")))
        assert len({entry.salt for entry in harness.list_entries()}) == 6

    def test_what_commit_returns_is_what_scan_reads(self, harness: AccountHarness) -> None:
        claim = Claim("greeted", meta={"n": [1, {"a": None}]})
        written = harness.commit(Observed("e1", Evidence("hello")), Asserted("t1", claim))
        assert list(harness.list_entries()) == list(written)

    @pytest.mark.parametrize(
        "verb",
        [
            Observed(
                "e1", Evidence("said", "assistant", "Bo", 5, "document", "a.txt", {"page": 3})
            ),
            Asserted("t1", Claim("plain")),
            Asserted("t1", Claim("\u00fcber \U0001f600 \u8fd1", span=(1, 4)), since=7),
            Asserted("t1", Claim("for a while", valid=Interval(10, 20, "instant"), expires=30)),
            Asserted(
                "t1",
                Claim(
                    "Ann is here", "profile", "Ann", "is_at", "here", "negated", "inferred", 0.25
                ),
            ),
            Retracted("t1", "negated"),
            Linked("a", "supports", "t1", 0.5, {"why": "said again"}),
            Ruled("kind", "profile", {"tier": "permanent"}),
        ],
        ids=lambda verb: type(verb).__name__,
    )
    def test_every_verb_reads_back_as_it_was_written(
        self, harness: AccountHarness, verb: Verb
    ) -> None:
        [entry] = harness.commit(verb)
        [stored] = harness.list_entries()
        assert stored.draft == Draft(verb, ALICE)
        assert stored.envelope is not None
        assert decode_envelope(stored.sort, ACCOUNT, stored.envelope) == Draft(verb, ALICE)
        assert stored == entry

    def test_a_rule_needs_no_scope(self, harness: AccountHarness) -> None:
        draft = Draft(Ruled("policy", "p", {"allow": True}), None, author="admin", policy="public")
        harness.store.commit(Batch(ACCOUNT, [draft]), harness.folding(("facts",)))
        assert [entry.draft for entry in harness.list_entries()] == [draft]

    def test_scan_starts_after_a_position_and_respects_its_limit(
        self, harness: AccountHarness
    ) -> None:
        for number in range(6):
            harness.assert_claim(f"fact {number}")
        assert [entry.seq for entry in harness.store.scan_entries(ACCOUNT, 2, 3)] == [3, 4, 5]
        assert [entry.seq for entry in harness.store.scan_entries(ACCOUNT, 5)] == [6]
        assert list(harness.store.scan_entries(ACCOUNT, 6)) == []

    def test_a_position_is_the_last_entry_at_or_before_an_instant(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        start = clock.now
        harness.commit(Asserted("t1", Claim("one")), Asserted("t2", Claim("two")))
        clock.tick(1000)
        harness.assert_claim("three")
        assert harness.store.get_head(ACCOUNT, start - 1).seq == 0
        assert harness.store.get_head(ACCOUNT, start).seq == 2
        assert harness.store.get_head(ACCOUNT, start + 999).seq == 2
        assert harness.store.get_head(ACCOUNT, start + 1000).seq == 3
        assert harness.store.get_head(ACCOUNT, start + 10**9).seq == 3

    def test_a_thread_lists_assertions_retractions_and_links(self, harness: AccountHarness) -> None:
        harness.assert_claim("first", "t1")
        harness.assert_claim("other", "t2")
        harness.assert_claim("second", "t1")
        harness.add_link("e9", "supports", "t1")
        harness.add_link("t1", "supports", "t2")
        harness.retract_thread("t1")
        assert [entry.seq for entry in harness.store.scan_entries(ACCOUNT, thread="t1")] == [
            1,
            3,
            4,
            6,
        ]
        assert list(harness.store.scan_entries(ACCOUNT, thread="nobody")) == []

    def test_each_account_has_its_own_ledger(self, harness: AccountHarness) -> None:
        other = self.use_account(harness, "umbrella")
        harness.assert_claim("ours", "t1")
        other_scope = Scope("umbrella", user_id="alice")
        other.assert_claim("theirs", "t1", other_scope)
        harness.assert_claim("ours again", "t1")
        assert sorted(harness.store.list_accounts()) == ["acme", "umbrella"]
        assert (harness.head_seq, other.head_seq) == (2, 1)
        assert_chained(harness.list_entries())
        assert_chained(other.list_entries())
        assert harness.list_texts() == ["ours again"]
        assert other.list_texts(other_scope) == ["theirs"]


T = TypeVar("T")
WRITER_COUNT = 8
ALICE_AT_WORK = Scope(ACCOUNT, user_id="alice", agent_id="work")

UNENCODABLE_TEXT = "half \ud800"
UNENCODABLE_WRITES: dict[str, Callable[[AccountHarness], Any]] = {
    "a claim": lambda harness: harness.assert_claim(UNENCODABLE_TEXT),
    "a thread": lambda harness: harness.assert_claim("tea", UNENCODABLE_TEXT),
    "metadata": lambda harness: harness.assert_claim("tea", meta={"deep": [UNENCODABLE_TEXT]}),
    "a scope": lambda harness: harness.assert_claim(
        "tea", scope=Scope(ACCOUNT, user_id=UNENCODABLE_TEXT)
    ),
    "a ticket": lambda harness: harness.commit(
        idempotency=make_idempotency_record(UNENCODABLE_TEXT)
    ),
    "an account": lambda harness: harness.store.reset(
        UNENCODABLE_TEXT, Draft(Retracted("t"), None)
    ),
    "a consumer": lambda harness: harness.store.update_consumer(
        ACCOUNT, UNENCODABLE_TEXT, cursor=1
    ),
    "a fault": lambda harness: harness.store.record_fault(ACCOUNT, "graph", 1, UNENCODABLE_TEXT),
    "a model": lambda harness: harness.store.put_vectors({b"x": [1.0, 0.0]}, UNENCODABLE_TEXT),
}

FAILING_GUARDS: dict[str, Guard] = {
    "an older version": ThreadAt("t1", 1),
    "no version where there is one": ThreadAt("t1", None),
    "a retracted version": ThreadAt("gone", 2),
    "a version of nothing": ThreadAt("nobody", 7),
    "a text that is held": NoFact(ALICE, (md5_hex("second"),)),
    "one of the texts that is held": NoFact(ALICE, (md5_hex("first"), md5_hex("second"))),
    "evidence that is there": NoEvidence(ALICE, (Evidence("said").digest(),)),
    "some evidence that is there": NoEvidence(
        ALICE, (Evidence("below").digest(), Evidence("said").digest())
    ),
    "an entry that was erased": EntryIntact(8),
    "an entry that is to come": EntryIntact(99),
}
PASSING_GUARDS: dict[str, Guard] = {
    "the latest version": ThreadAt("t1", 3),
    "no version after a retraction": ThreadAt("gone", None),
    "no version of nothing": ThreadAt("nobody", None),
    "no text": NoFact(ALICE, ()),
    "no evidence": NoEvidence(ALICE, ()),
    "a text of a closed version": NoFact(ALICE, (md5_hex("first"),)),
    "a text that was given up": NoFact(ALICE, (md5_hex("given up"),)),
    "a text another holds": NoFact(BOB, (md5_hex("second"),)),
    "a text held one scope above": NoFact(ALICE_AT_WORK, (md5_hex("second"),)),
    "a text held one scope below": NoFact(ALICE, (md5_hex("below"),)),
    "a text in other letters": NoFact(ALICE, (md5_hex("SECOND"),)),
    "evidence of another": NoEvidence(BOB, (Evidence("said").digest(),)),
    "evidence one scope below": NoEvidence(ALICE, (Evidence("below").digest(),)),
    "an entry with its content": EntryIntact(5),
    "evidence in another role": NoEvidence(ALICE, (Evidence("said", "assistant").digest(),)),
}


class CommitContract(ContractBase):
    """A conflicting batch writes nothing."""

    def test_a_failing_fold_writes_nothing(self, harness: AccountHarness) -> None:
        harness.assert_claim("here before", "t1")
        harness.store.bind_model("m", 2)
        before = harness.dump_views(), list(harness.list_entries())

        def failing_fold(entries: Sequence[Entry]) -> Sequence[RowOp]:
            raise ZeroDivisionError(len(entries))

        draft = Draft(Asserted("t1", Claim("never")), ALICE)
        vectors = {hash_text("never"): [1.0, 0.0]}
        with pytest.raises(ZeroDivisionError):
            harness.store.commit(
                Batch(
                    ACCOUNT, [draft], idempotency=make_idempotency_record("key"), vectors=vectors
                ),
                failing_fold,
            )
        assert (harness.dump_views(), list(harness.list_entries())) == before
        assert harness.store.lookup_existing(ALICE, [], [], "key").idempotency is None
        assert not harness.embedded_hashes([hash_text("never")])

    def test_a_draft_of_another_account_is_refused(self, harness: AccountHarness) -> None:
        foreign = Scope("umbrella", user_id="alice")
        with pytest.raises(ScopeError):
            harness.commit(
                Asserted("t1", Claim("ours")), Asserted("t2", Claim("theirs")), scope=foreign
            )
        assert harness.head_seq == 0

    @pytest.mark.parametrize("guard", FAILING_GUARDS.values(), ids=FAILING_GUARDS.keys())
    def test_a_broken_guard_refuses_the_whole_batch(
        self, harness: AccountHarness, guard: Guard
    ) -> None:
        self._write_history(harness)
        before = harness.dump_views(), list(harness.list_entries())
        with pytest.raises(Conflict):
            harness.commit(
                Asserted("new", Claim("new")), guards=[ThreadAt("nobody", None), guard], read_seq=2
            )
        assert (harness.dump_views(), list(harness.list_entries())) == before

    @pytest.mark.parametrize("guard", PASSING_GUARDS.values(), ids=PASSING_GUARDS.keys())
    def test_a_guard_that_holds_lets_the_batch_through(
        self, harness: AccountHarness, guard: Guard
    ) -> None:
        self._write_history(harness)
        harness.commit(Asserted("new", Claim("new")), guards=[guard], read_seq=2)
        assert "new" in harness.list_texts()

    def _write_history(self, harness: AccountHarness) -> None:
        """Write versions, a retraction and evidence in two scopes, and erase an entry."""
        harness.assert_claim("first", "t1")
        harness.assert_claim("given up", "gone")
        harness.assert_claim("second", "t1")
        harness.retract_thread("gone")
        harness.add_evidence("said", "e1")
        harness.assert_claim("below", "t2", ALICE_AT_WORK)
        harness.add_evidence("below", "e2", ALICE_AT_WORK)
        harness.add_evidence("erased", "e3")
        harness.store.erase(ACCOUNT, [8], Draft(Erased((8,)), None))

    def test_a_committed_ticket_can_be_looked_up(self, harness: AccountHarness) -> None:
        harness.assert_claim("before")
        harness.commit(
            Asserted("t1", Claim("once")),
            Asserted("t2", Claim("and more")),
            idempotency=make_idempotency_record("key", "t1", "t2"),
        )
        harness.assert_claim("after")
        kept = replace(make_idempotency_record("key", "t1", "t2"), seq=3)
        assert harness.store.lookup_existing(ALICE, [], [], "key").idempotency == kept
        assert harness.store.lookup_existing(BOB, [], [], "key").idempotency == kept
        assert harness.store.lookup_existing(ALICE, [], [], "other").idempotency is None
        assert harness.store.lookup_existing(ALICE, [], [], None).idempotency is None

    def test_a_ticket_can_be_used_only_once(self, harness: AccountHarness) -> None:
        harness.commit(Asserted("t1", Claim("once")), idempotency=make_idempotency_record("key"))
        with pytest.raises(Conflict):
            harness.commit(
                Asserted("t2", Claim("twice")),
                idempotency=make_idempotency_record("key"),
                read_seq=1,
            )
        assert harness.list_texts() == ["once"]

    def test_tickets_are_separate_per_account(self, harness: AccountHarness) -> None:
        other = self.use_account(harness, "umbrella")
        other_scope = Scope("umbrella", user_id="alice")
        harness.commit(
            Asserted("t1", Claim("ours")), idempotency=make_idempotency_record("key", digest=b"a")
        )
        other.commit(
            Asserted("t1", Claim("theirs")),
            scope=other_scope,
            idempotency=make_idempotency_record("key", digest=b"b"),
        )
        tickets = (
            harness.store.lookup_existing(ALICE, [], [], "key").idempotency,
            harness.store.lookup_existing(other_scope, [], [], "key").idempotency,
        )
        assert [stored.digest for stored in tickets if stored] == [b"a", b"b"]

    def test_a_request_that_wrote_nothing_is_remembered_too(self, harness: AccountHarness) -> None:
        assert list(harness.commit(idempotency=make_idempotency_record("key"))) == []
        assert harness.head_seq == 0
        assert harness.store.lookup_existing(
            ALICE, [], [], "key"
        ).idempotency == make_idempotency_record("key")

    def test_lookup_returns_state_of_the_exact_scope(self, harness: AccountHarness) -> None:
        self._write_history(harness)
        digest, below = Evidence("said").digest(), Evidence("below").digest()
        texts = [md5_hex(text) for text in ("second", "first", "given up", "below")]
        existing = harness.store.lookup_existing(ALICE, texts, [digest, below, b"?"], None)
        assert existing.read_seq == harness.head_seq
        assert {key: fact.id for key, fact in existing.facts.items()} == {md5_hex("second"): "t1"}
        assert dict(existing.evidence) == {digest: "e1"}
        for scope in (BOB, ALICE_AT_WORK, Scope("umbrella", user_id="alice")):
            existing = harness.store.lookup_existing(scope, [md5_hex("second")], [digest], None)
            assert (dict(existing.facts), dict(existing.evidence)) == ({}, {})

    def test_lookup_returns_the_newest_fact_of_a_text(self, harness: AccountHarness) -> None:
        for thread in ("t3", "t1", "t2"):
            harness.assert_claim("tea", thread)
        for texts in ([md5_hex("tea")], [md5_hex("tea"), md5_hex("coffee")]):
            assert (
                harness.store.lookup_existing(ALICE, texts, [b"x"], None).facts[md5_hex("tea")].id
                == "t2"
            )

    @pytest.mark.parametrize("name", UNENCODABLE_WRITES)
    def test_unencodable_text_is_refused(self, harness: AccountHarness, name: str) -> None:
        harness.store.bind_model("m", 2)
        with pytest.raises(InvalidInput):
            UNENCODABLE_WRITES[name](harness)
        assert harness.head_seq == 0

    def test_eight_writers_lose_no_write(self, harness: AccountHarness) -> None:
        def write(writer: int) -> None:
            for number in range(5):
                thread = f"{writer}/{number}"
                harness.commit(Asserted(thread, Claim(thread)), Asserted("shared", Claim(thread)))

        self._run_in_threads(write)
        assert_chained(harness.list_entries())
        assert harness.head_seq == 2 * 5 * WRITER_COUNT
        assert all(entry.tx == entry.seq - (entry.seq + 1) % 2 for entry in harness.list_entries())
        expected = {f"{writer}/{number}" for writer in range(WRITER_COUNT) for number in range(5)}
        assert {text for text in harness.list_texts() if text in expected} == expected
        [latest] = [
            fact for fact in harness.store.find_facts(harness.build_query()) if fact.id == "shared"
        ]
        assert latest.seq == harness.head_seq
        rows_before = harness.dump_views()
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert harness.dump_views() == rows_before

    def test_one_of_eight_writers_of_the_same_text_wins(self, harness: AccountHarness) -> None:
        seen = harness.assert_claim("somebody else was here").seq

        def write(writer: int) -> bool:
            try:
                harness.commit(
                    Asserted(f"t{writer}", Claim("same")),
                    guards=[NoFact(ALICE, (md5_hex("same"),))],
                    read_seq=seen,
                )
            except Conflict:
                return False
            return True

        assert sorted(self._run_in_threads(write)) == [False] * (WRITER_COUNT - 1) + [True]
        assert harness.list_texts().count("same") == 1

    def test_one_of_eight_updates_of_the_same_version_wins(self, harness: AccountHarness) -> None:
        seen = harness.assert_claim("before", "t1").seq

        def write(writer: int) -> bool:
            try:
                harness.commit(
                    Asserted("t1", Claim(f"by {writer}")),
                    guards=[ThreadAt("t1", seen)],
                    read_seq=seen,
                )
            except Conflict:
                return False
            return True

        assert sum(self._run_in_threads(write)) == 1
        assert len(harness.store.scan_entries(ACCOUNT, thread="t1")) == 2

    def test_readers_never_see_half_a_batch(self, harness: AccountHarness) -> None:
        def work(worker: int) -> list[int]:
            if worker:
                return [len(harness.list_texts()) for _ in range(20)]
            for number in range(10):
                harness.commit(
                    Asserted(f"a{number}", Claim("a")), Asserted(f"b{number}", Claim("b"))
                )
            return []

        assert all(count % 2 == 0 for counts in self._run_in_threads(work) for count in counts)

    def _run_in_threads(self, work: Callable[[int], T]) -> list[T]:
        """Run a task in eight threads that start together."""
        start = Barrier(WRITER_COUNT)

        def begin(worker: int) -> T:
            start.wait()
            return work(worker)

        switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # force the threads to interleave
        try:
            with ThreadPoolExecutor(WRITER_COUNT) as pool:
                return list(pool.map(begin, range(WRITER_COUNT)))
        finally:
            sys.setswitchinterval(switch_interval)

    def test_a_retracted_thread_can_be_asserted_again(self, harness: AccountHarness) -> None:
        harness.commit(Asserted("t1", Claim("tea")), Observed("e1", Evidence("I like tea")))
        harness.commit(Retracted("t1"))
        harness.commit(Asserted("t1", Claim("tea after all")), guards=[ThreadAt("t1", None)])
        assert harness.list_texts() == ["tea after all"]
        assert harness.list_texts(seq=2) == ["tea"]
        assert harness.list_texts(seq=3) == []
