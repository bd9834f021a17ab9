"""Laws of recalling: counts add up, belong to one account, and go with what they count; the ledger hears nothing."""

from __future__ import annotations

from told.core.entry import Draft, Ruled
from told.core.query import Touch
from told.core.recall import Left
from told.core.scope import Scope
from told.ports import VIEWS
from told.testing.contract.erasing import erase
from told.testing.contract.scribe import ACCOUNT, Laws, Scribe

THEIRS = "umbrella"


class RecallLaws(Laws):
    """How often something was recalled is kept beside the ledger, never in it."""

    def test_counts_add_up_and_the_last_instant_is_the_largest(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        book.tell("mate", "t2")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(2, 50), "t2": Touch(1, 50)}))
        book.store.write_down(ACCOUNT, Left({"t1": Touch(3, 40)}))
        book.store.write_down(ACCOUNT, Left({"t2": Touch(1, 60)}))
        assert dict(book.store.touched(ACCOUNT, ["t2", "t1"])) == {"t1": Touch(5, 50), "t2": Touch(2, 60)}
        assert book.store.stats(ACCOUNT)["recalls"] == 7

    def test_what_was_never_recalled_is_absent(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        book.tell("mate", "t2")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 1)}))
        assert list(book.store.touched(ACCOUNT, ["t1", "t2", "t3", "\ud800"])) == ["t1"]
        assert dict(book.store.touched(ACCOUNT, [])) == {}
        assert book.store.stats(THEIRS)["recalls"] == 0

    def test_a_thread_that_is_not_there_is_not_counted(self, book: Scribe) -> None:
        book.observe("said", "e1")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 1), "e1": Touch(1, 1), "\ud800": Touch(1, 1)}))
        book.store.write_down(THEIRS, Left({"t1": Touch(1, 1)}))
        book.store.write_down(ACCOUNT, Left({}))
        book.tell("tea", "t1")
        assert dict(book.store.touched(ACCOUNT, ["t1", "e1"])) == {}
        assert list(book.store.accounts()) == [ACCOUNT]

    def test_a_retracted_thread_is_still_counted(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        book.retract("t1")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 1)}))
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {"t1": Touch(1, 1)}

    def test_accounts_do_not_see_each_other(self, book: Scribe) -> None:
        other = self.elsewhere(book, THEIRS)
        book.tell("tea", "t1")
        other.tell("tea", "t1", Scope(THEIRS, user_id="alice"))
        book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 1)}))
        assert dict(book.store.touched(THEIRS, ["t1"])) == {}
        book.store.write_down(THEIRS, Left({"t1": Touch(5, 9)}))
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {"t1": Touch(1, 1)}
        assert book.store.stats(ACCOUNT)["recalls"] == 1
        erase(book, [1])
        assert dict(book.store.touched(THEIRS, ["t1"])) == {"t1": Touch(5, 9)}
        book.store.reset(ACCOUNT, Draft(Ruled("ledger", "reset", {}), None))
        assert dict(book.store.touched(THEIRS, ["t1"])) == {"t1": Touch(5, 9)}

    def test_many_threads_of_any_name_are_counted_in_one_call(self, book: Scribe) -> None:
        names = ["t\u00fc", "\u6771\u4eac", 'a"b\\c', "\U0001f99c", *(f"t{number}" for number in range(300))]
        for name in names:
            book.tell(f"fact of {name}", name)
        recalls = {name: Touch(number, number * 10) for number, name in enumerate(names, 1)}
        for _ in range(2):
            book.store.write_down(ACCOUNT, Left(recalls))
        found = book.store.touched(ACCOUNT, names)
        assert found == {name: Touch(touch.count * 2, touch.last) for name, touch in recalls.items()}

    def test_erasing_forgets_the_recalls_of_the_erased(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        book.tell("green tea", "t1")
        book.tell("mate", "t2")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(3, 1), "t2": Touch(1, 1)}))
        erase(book, [1, 2])
        assert dict(book.store.touched(ACCOUNT, ["t1", "t2"])) == {"t2": Touch(1, 1)}
        assert book.store.stats(ACCOUNT)["recalls"] == 1

    def test_an_erasure_says_how_many_recalls_it_destroyed(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        book.tell("mate", "t2")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(3, 1), "t2": Touch(1, 1)}))
        _, counts = book.store.erase(ACCOUNT, [1], Draft(Ruled("ledger", "erase", {}), None))
        assert counts["recalls"] == 3

    def test_a_late_count_does_not_bring_an_erased_thread_back(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        erase(book, [1])
        book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 1)}))
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {}

    def test_an_adopted_tombstone_forgets_too(self, book: Scribe) -> None:
        other = self.elsewhere(book, THEIRS)
        book.tell("tea", "t1")
        before = list(book.entries())
        other.store.adopt(THEIRS, before, book.folding(VIEWS))
        other.store.write_down(THEIRS, Left({"t1": Touch(1, 1)}))
        erase(book, [1])
        other.store.adopt(THEIRS, book.entries(), book.folding(VIEWS))
        assert dict(other.store.touched(THEIRS, ["t1"])) == {}

    def test_a_reset_forgets_every_recall(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 1)}))
        book.store.reset(ACCOUNT, Draft(Ruled("ledger", "reset", {}), None))
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {}
        book.tell("tea", "t1")
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {}

    def test_rebuilding_every_view_leaves_recalls_alone(self, book: Scribe) -> None:
        book.tell("tea", "t1")
        book.store.write_down(ACCOUNT, Left({"t1": Touch(2, 7)}))
        book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {"t1": Touch(2, 7)}

    def test_counting_changes_neither_the_ledger_nor_a_view(self, book: Scribe) -> None:
        book.observe("said", "e1")
        book.tell("tea", "t1", evidence="e1")
        before = (book.store.head(ACCOUNT), list(book.entries()), book.rows(), book.search("tea"))
        book.store.write_down(ACCOUNT, Left({"t1": Touch(2, 7)}))
        assert (book.store.head(ACCOUNT), list(book.entries()), book.rows(), book.search("tea")) == before
        assert list(book.store.check()) == []
