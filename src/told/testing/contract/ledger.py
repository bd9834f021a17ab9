"""Laws of the ledger: numbers, instants, the chain, and reading it back."""

from __future__ import annotations

import pytest

from told.core.entry import (
    Asserted,
    Claim,
    Draft,
    Evidence,
    Linked,
    Observed,
    Retracted,
    Ruled,
    Verb,
    decode_envelope,
)
from told.core.scope import Scope
from told.core.when import Interval
from told.ports import Batch
from told.testing.contract.scribe import (
    ACCOUNT,
    ALICE,
    AccountHarness,
    ContractBase,
    assert_chained,
)
from told.testing.fakes import ManualClock


class LedgerContract(ContractBase):
    """What is written once is there, in order, for good."""

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
        assert harness.store.position_at(ACCOUNT, start - 1) == 0
        assert harness.store.position_at(ACCOUNT, start) == 2
        assert harness.store.position_at(ACCOUNT, start + 999) == 2
        assert harness.store.position_at(ACCOUNT, start + 1000) == 3
        assert harness.store.position_at(ACCOUNT, start + 10**9) == 3

    def test_a_thread_lists_assertions_retractions_and_links(self, harness: AccountHarness) -> None:
        harness.assert_claim("first", "t1")
        harness.assert_claim("other", "t2")
        harness.assert_claim("second", "t1")
        harness.add_link("e9", "supports", "t1")
        harness.add_link("t1", "supports", "t2")
        harness.retract_thread("t1")
        assert [entry.seq for entry in harness.store.thread_entries(ACCOUNT, "t1")] == [1, 3, 4, 6]
        assert list(harness.store.thread_entries(ACCOUNT, "nobody")) == []

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
