"""Laws of moving: adopting a ledger from elsewhere, beginning anew, and building views again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from told.core.entry import GENESIS, Draft, Entry, Ruled, chain, seal
from told.core.errors import Diverged, StoreCorrupt
from told.core.ids import sha256, text_hash
from told.core.scope import Scope
from told.ports import VIEWS, View
from told.testing.contract.erasing import erase
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe, assert_chained, ticket
from told.testing.fakes import ManualClock

BEGINNING = Draft(Ruled("ledger", "reset", {}), None, author="told")


def adopt(book: Scribe, entries: Sequence[Entry]) -> int:
    """Adopt entries into the scribe's account."""
    return book.store.adopt(book.account, entries, book.folding(VIEWS))


def live(book: Scribe, seed: int, steps: int = 40) -> None:
    """A random but replayable life: claims, updates, retractions, evidence, links and a few erasures."""
    dice = Random(seed)  # noqa: S311 - not a secret, a life that can be lived again
    for step in range(steps):
        thread, scope = f"t{dice.randrange(6)}", dice.choice([ALICE, BOB])
        match dice.randrange(8):
            case 0:
                book.observe(f"said {step}", f"e{step}", scope)
            case 1:
                book.retract(thread)
            case 2:
                book.link(f"e{dice.randrange(steps)}", "supports", thread)
            case 3 if book.seq:
                erase(book, sorted({dice.randint(1, book.seq) for _ in range(2)}))
            case _:
                book.tell(f"claim {step}", thread, scope, evidence=dice.choice([None, f"e{dice.randrange(steps)}"]))


class MovingLaws(Laws):
    """A ledger is the same ledger wherever it stands, and a view is nothing but its fold."""

    # Adopting

    def test_an_adopted_ledger_is_the_same_ledger(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.observe("said", "e1")
        here.tell("claimed", "t1", evidence="e1", meta={"n": 1})
        here.tell("claimed anew", "t1")
        assert adopt(there, here.entries()) == 3
        assert list(there.entries()) == list(here.entries())
        assert there.store.head(ACCOUNT) == here.store.head(ACCOUNT)
        assert there.rows() == here.rows()
        assert there.search("claimed") == here.search("claimed")

    def test_what_is_already_here_is_skipped(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("one")
        adopt(there, here.entries())
        here.tell("two")
        assert adopt(there, here.entries()) == 1
        assert adopt(there, here.entries()) == 0
        assert there.texts() == ["one", "two"]

    def test_an_adopted_ledger_goes_on(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("one", "t1")
        adopt(there, here.entries())
        there.tell("two", "t1")
        assert_chained(there.entries())
        assert adopt(here, there.entries()) == 1
        assert here.texts() == ["two"]

    def test_it_can_stand_in_an_account_of_another_name(self, open_book: Callable[[], Scribe]) -> None:
        here = open_book()
        here.tell("ours")
        there = self.elsewhere(open_book(), "umbrella")
        adopt(there, here.entries())
        assert there.texts(Scope("umbrella", user_id="alice")) == ["ours"]
        assert list(there.store.accounts()) == ["umbrella"]
        assert there.texts(ALICE) == []

    def test_two_histories_do_not_mix(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("one")
        here.tell("two")
        there.tell("another one")
        before = there.rows(), list(there.entries())
        with pytest.raises(Diverged):
            adopt(there, here.entries())
        assert (there.rows(), list(there.entries())) == before

    @pytest.mark.parametrize(
        "damage",
        [
            lambda entries: [entries[0], replace(entries[1], envelope=entries[0].envelope), entries[2]],
            lambda entries: [entries[0], replace(entries[1], salt=bytes(16)), entries[2]],
            lambda entries: [entries[0], replace(entries[1], digest=sha256(b"x")), entries[2]],
            lambda entries: [entries[0], replace(entries[1], at=entries[1].at + 1), entries[2]],
            lambda entries: [entries[0], replace(entries[1], sort="retracted"), entries[2]],
            lambda entries: [entries[0], replace(entries[2], seq=2)],
        ],
        ids=["envelope", "salt", "digest", "instant", "sort", "missing"],
    )
    def test_a_damaged_ledger_is_refused_where_it_is_damaged(
        self, open_book: Callable[[], Scribe], damage: Callable[[Sequence[Entry]], Sequence[Entry]]
    ) -> None:
        here, there = open_book(), open_book()
        for number in range(3):
            here.tell(f"fact {number}")
        with pytest.raises(StoreCorrupt, match=r"\b2\b"):
            adopt(there, damage(here.entries()))
        assert there.seq == 0
        assert there.texts() == []

    def test_a_gap_is_refused(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        for number in range(3):
            here.tell(f"fact {number}")
        adopt(there, here.entries()[:1])
        with pytest.raises(StoreCorrupt, match=r"\b3\b"):
            adopt(there, here.entries()[2:])
        head = there.store.head(ACCOUNT)
        forged = seal(BEGINNING, prev=head.hash, seq=5, tx=5, at=head.at + 1, salt=bytes(16))
        with pytest.raises(StoreCorrupt, match=r"\b5\b"):
            adopt(there, [forged])
        assert there.seq == 1

    def test_an_older_copy_brings_nothing_back(self, book: Scribe) -> None:
        book.tell("kept", "t1")
        book.tell("secret", "t2")
        copy = list(book.entries())
        erase(book, [2])
        assert adopt(book, copy) == 0
        assert book.texts() == ["kept"]
        assert book.entries()[1].envelope is None

    def test_an_older_copy_brings_nothing_back_under_another_name(self, book: Scribe) -> None:
        book.tell("kept", "t1")
        book.tell("secret", "t2")
        copy = list(book.entries())
        erase(book, [2])
        other = self.elsewhere(book, "umbrella")
        assert adopt(other, copy) == 2
        theirs = Scope("umbrella", user_id="alice")
        assert other.texts(theirs) == ["kept"]
        assert other.search("secret", theirs) == {}
        assert other.entries()[1].envelope is None
        assert_chained(other.entries())

    def test_an_erased_entry_is_adopted_without_its_content(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("kept", "t1")
        here.tell("secret", "t2")
        doomed = here.entries()[1]
        erase(here, [2])
        assert adopt(there, here.entries()) == 3
        assert list(there.entries()) == list(here.entries())
        assert there.rows() == here.rows()
        assert there.store.tombstoned(ACCOUNT, [doomed.digest]) == {doomed.digest}

    def test_an_adopted_tombstone_erases_here_too(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("kept", "t1")
        here.tell("secret", "t2")
        copy = list(here.entries())
        adopt(there, copy)
        there.store.use_model("m", 2)
        there.store.put_vectors({text_hash("secret"): [1.0, 0.0]})
        erase(here, [2])
        assert adopt(there, [*copy, *here.entries()[2:]]) == 1
        assert not there.store.cached([text_hash("secret")])
        assert there.texts() == ["kept"]
        assert there.search("secret") == {}
        assert list(there.entries()) == list(here.entries())

    def test_content_cut_out_by_hand_is_not_remembered_as_erased(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("kept", "t1")
        here.tell("secret", "t2")
        whole = here.entries()
        cut = replace(whole[1], salt=None, envelope=None, draft=None)
        assert adopt(there, [whole[0], cut]) == 2
        assert not there.store.tombstoned(ACCOUNT, [cut.digest])

    def test_a_tombstone_on_a_later_page_speaks_for_what_came_empty(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("kept", "t1")
        here.tell("secret", "t2")
        erase(here, [2])
        pages = here.entries()
        adopt(there, pages[:2])
        assert not there.store.tombstoned(ACCOUNT, [pages[1].digest])
        adopt(there, pages[2:])
        assert there.store.tombstoned(ACCOUNT, [pages[1].digest]) == {pages[1].digest}
        assert there.rows() == here.rows()

    def test_an_entry_that_names_another_thread_than_its_content_is_refused(
        self, open_book: Callable[[], Scribe]
    ) -> None:
        here, there = open_book(), open_book()
        here.tell("claimed", "t1")
        told = here.entries()[0]
        mark = chain(GENESIS, seq=told.seq, tx=told.tx, at=told.at, sort=told.sort, thread="t2", digest=told.digest)
        with pytest.raises(StoreCorrupt, match=r"\b1\b"):
            adopt(there, [replace(told, thread="t2", hash=mark)])
        assert there.seq == 0

    # Beginning anew

    def test_a_reset_account_begins_a_new_chain(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        book.write(ticket=ticket("key"))
        book.observe("said", "e1")
        book.tell("forgotten", "t1", evidence="e1")
        book.store.put_vectors({text_hash("forgotten"): [1.0, 0.0]})
        book.store.advance(ACCOUNT, "graph", 2)
        book.store.fault(ACCOUNT, "graph", 2, "lost")
        entry = book.store.reset(ACCOUNT, BEGINNING)
        assert list(book.entries()) == [entry]
        assert (entry.seq, entry.tx, entry.draft) == (1, 1, BEGINNING)
        assert_chained(book.entries())
        assert not any(book.rows().values())
        assert book.search("forgotten") == {}
        assert book.store.known(ALICE, [], [], "key").ticket is None
        assert not book.store.cached([text_hash("forgotten")])
        assert book.store.cursor(ACCOUNT, "graph") == 0
        assert list(book.store.faults(ACCOUNT)) == []
        book.tell("new")
        assert book.texts() == ["new"]

    def test_a_reset_account_takes_its_time_from_the_clock_again(self, book: Scribe, clock: ManualClock) -> None:
        now = clock.now
        clock.tick(10**12)
        book.tell("by a clock that was ahead", "t1")
        clock.now = now
        assert book.store.reset(ACCOUNT, BEGINNING).at == now

    def test_a_reset_touches_no_other_account(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        theirs = Scope("umbrella", user_id="alice")
        other = self.elsewhere(book, "umbrella")
        other.tell("tea", "t1", theirs)
        book.tell("tea", "t1")
        book.store.put_vectors({text_hash("tea"): [1.0, 0.0]})
        book.store.reset(ACCOUNT, BEGINNING)
        assert other.texts(theirs) == ["tea"]
        assert other.search(scope=theirs, vector=[1.0, 0.0])["tea"].cosine == 1.0

    def test_an_older_copy_brings_nothing_back_after_a_reset(self, book: Scribe) -> None:
        book.tell("secret", "t1")
        copy = list(book.entries())
        book.store.reset(ACCOUNT, BEGINNING)
        with pytest.raises(Diverged):
            adopt(book, copy)
        other = self.elsewhere(book, "umbrella")
        adopt(other, copy)
        theirs = Scope("umbrella", user_id="alice")
        assert other.texts(theirs) == []
        assert other.search("secret", theirs) == {}
        assert other.entries()[0].envelope is None
        assert_chained(other.entries())

    # Building views again

    @pytest.mark.parametrize("seed", range(4))
    def test_a_view_rebuilt_equals_the_view_grown(self, book: Scribe, seed: int) -> None:
        live(book, seed)
        grown, found = book.rows(), book.search("claim")
        counts = book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert book.rows() == grown
        assert book.search("claim") == found
        figures = book.store.stats(ACCOUNT)
        kept = {name: counts[name] for name in ("evidence", "links")}
        assert kept == {name: figures[name] for name in kept}
        assert counts["facts"] == counts["passages"] == figures["versions"] > 0

    @pytest.mark.parametrize("view", VIEWS)
    def test_each_view_can_be_rebuilt_alone(self, book: Scribe, view: View) -> None:
        live(book, 7)
        grown = book.rows()
        assert list(book.store.rebuild(ACCOUNT, [view], book.folding([view]))) == [view]
        assert book.rows() == grown

    @pytest.mark.parametrize("seed", range(2))
    def test_a_view_adopted_equals_the_view_grown(self, open_book: Callable[[], Scribe], seed: int) -> None:
        here, there = open_book(), open_book()
        for step in range(12):
            here.tell(f"claim {step}", f"t{(step + seed) % 4}", [ALICE, BOB][step % 2])
        here.retract("t1")
        adopt(there, here.entries())
        assert there.rows() == here.rows()

    def test_metadata_is_one_row_however_its_keys_were_ordered(self, open_book: Callable[[], Scribe]) -> None:
        here, there = open_book(), open_book()
        here.tell("tea", "t1", meta={"z": 1, "a": {"y": "\u00fc", "b": [1.0, None]}})
        adopt(there, here.entries())
        grown = here.rows()
        assert there.rows() == grown
        here.store.rebuild(ACCOUNT, VIEWS, here.folding(VIEWS))
        assert here.rows() == grown

    def test_rebuilding_loses_no_vector(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        book.tell("tea")
        book.store.put_vectors({text_hash("tea"): [1.0, 0.0]})
        book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert book.search(vector=[1.0, 0.0])["tea"].cosine == 1.0
        assert dict(book.store.pending()) == {}
