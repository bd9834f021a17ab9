"""Laws of the ledger: numbers, instants, the chain, and reading it back."""

from __future__ import annotations

import pytest

from told.core.entry import Asserted, Claim, Draft, Evidence, Linked, Observed, Retracted, Ruled, Verb, decode
from told.core.scope import Scope
from told.core.when import Interval
from told.ports import Batch
from told.testing.contract.scribe import ACCOUNT, ALICE, Laws, Scribe, assert_chained
from told.testing.fakes import ManualClock


class LedgerLaws(Laws):
    """What is written once is there, in order, for good."""

    def test_an_account_without_a_ledger_stands_at_zero(self, book: Scribe) -> None:
        assert book.seq == 0
        assert list(book.entries()) == []
        assert list(book.store.accounts()) == []

    def test_entries_are_numbered_from_one_without_gaps(self, book: Scribe) -> None:
        for number in range(5):
            book.write(*[Asserted(f"t{number}{part}", Claim("x")) for part in range(number + 1)])
        assert [entry.seq for entry in book.entries()] == list(range(1, 16))
        assert book.seq == 15

    def test_a_batch_is_one_transaction_at_one_instant(self, book: Scribe) -> None:
        book.tell("before")
        batch = book.write(*[Asserted(f"t{number}", Claim("x")) for number in range(3)])
        assert [entry.tx for entry in batch] == [2, 2, 2]
        assert len({entry.at for entry in batch}) == 1
        assert book.write(Retracted("t0"))[0].tx == 5

    def test_the_first_instant_is_the_clocks(self, book: Scribe, clock: ManualClock) -> None:
        assert book.tell("now").updated_at == clock.now

    def test_instants_rise_while_the_clock_stands_still_or_goes_back(self, book: Scribe, clock: ManualClock) -> None:
        for step in (0, 0, -3_600_000_000, 5, 7_200_000_000):
            clock.tick(step)
            book.tell(f"after {step}")
        instants = [entry.at for entry in book.entries()]
        assert instants == sorted(set(instants))
        assert instants[-1] == clock.now

    def test_each_entry_seals_the_one_before_it(self, book: Scribe) -> None:
        book.observe("I moved", "e1")
        book.write(Asserted("t1", Claim("Alice moved", evidence="e1")), Linked("e1", "supports", "t1"))
        book.retract("t1")
        assert_chained(book.entries())
        assert book.store.head(ACCOUNT).hash == book.entries()[-1].hash

    def test_no_two_entries_share_a_salt(self, book: Scribe) -> None:
        for _ in range(3):
            book.write(Asserted("t1", Claim("same")), Asserted("t2", Claim("same")))
        assert len({entry.salt for entry in book.entries()}) == 6

    def test_what_commit_returns_is_what_scan_reads(self, book: Scribe) -> None:
        claim = Claim("greeted", meta={"n": [1, {"a": None}]})
        written = book.write(Observed("e1", Evidence("hello")), Asserted("t1", claim))
        assert list(book.entries()) == list(written)

    @pytest.mark.parametrize(
        "verb",
        [
            Observed("e1", Evidence("said", "assistant", "Bo", 5, "document", "a.txt", {"page": 3})),
            Asserted("t1", Claim("plain")),
            Asserted("t1", Claim("\u00fcber \U0001f600 \u8fd1", span=(1, 4)), since=7),
            Asserted("t1", Claim("for a while", valid=Interval(10, 20, "instant"), expires=30)),
            Asserted("t1", Claim("Ann is here", "profile", "Ann", "is_at", "here", "negated", "inferred", 0.25)),
            Retracted("t1", "negated"),
            Linked("a", "supports", "t1", 0.5, {"why": "said again"}),
            Ruled("kind", "profile", {"tier": "permanent"}),
        ],
        ids=lambda verb: type(verb).__name__,
    )
    def test_every_verb_reads_back_as_it_was_written(self, book: Scribe, verb: Verb) -> None:
        [entry] = book.write(verb)
        [stored] = book.entries()
        assert stored.draft == Draft(verb, ALICE)
        assert stored.envelope is not None
        assert decode(stored.sort, ACCOUNT, stored.envelope) == Draft(verb, ALICE)
        assert stored == entry

    def test_a_rule_needs_no_scope(self, book: Scribe) -> None:
        draft = Draft(Ruled("policy", "p", {"allow": True}), None, author="admin", policy="public")
        book.store.commit(Batch(ACCOUNT, [draft]), book.folding(("facts",)))
        assert [entry.draft for entry in book.entries()] == [draft]

    def test_scan_goes_on_after_a_position_and_stops_at_its_limit(self, book: Scribe) -> None:
        for number in range(6):
            book.tell(f"fact {number}")
        assert [entry.seq for entry in book.store.scan(ACCOUNT, 2, 3)] == [3, 4, 5]
        assert [entry.seq for entry in book.store.scan(ACCOUNT, 5)] == [6]
        assert list(book.store.scan(ACCOUNT, 6)) == []

    def test_a_position_is_the_last_entry_at_or_before_an_instant(self, book: Scribe, clock: ManualClock) -> None:
        start = clock.now
        book.write(Asserted("t1", Claim("one")), Asserted("t2", Claim("two")))
        clock.tick(1000)
        book.tell("three")
        assert book.store.position(ACCOUNT, start - 1) == 0
        assert book.store.position(ACCOUNT, start) == 2
        assert book.store.position(ACCOUNT, start + 999) == 2
        assert book.store.position(ACCOUNT, start + 1000) == 3
        assert book.store.position(ACCOUNT, start + 10**9) == 3

    def test_a_thread_is_its_assertions_retractions_and_the_links_to_it(self, book: Scribe) -> None:
        book.tell("first", "t1")
        book.tell("other", "t2")
        book.tell("second", "t1")
        book.link("e9", "supports", "t1")
        book.link("t1", "supports", "t2")
        book.retract("t1")
        assert [entry.seq for entry in book.store.thread(ACCOUNT, "t1")] == [1, 3, 4, 6]
        assert list(book.store.thread(ACCOUNT, "nobody")) == []

    def test_accounts_have_ledgers_of_their_own(self, book: Scribe) -> None:
        other = self.elsewhere(book, "umbrella")
        book.tell("ours", "t1")
        theirs = Scope("umbrella", user_id="alice")
        other.tell("theirs", "t1", theirs)
        book.tell("ours again", "t1")
        assert sorted(book.store.accounts()) == ["acme", "umbrella"]
        assert (book.seq, other.seq) == (2, 1)
        assert_chained(book.entries())
        assert_chained(other.entries())
        assert book.texts() == ["ours again"]
        assert other.texts(theirs) == ["theirs"]
