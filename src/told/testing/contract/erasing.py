"""Laws of erasing: what is destroyed is nowhere, the chain still holds, and nothing brings it back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from told.core.entry import Asserted, Claim, Draft, Entry, Erased
from told.core.errors import NotFoundError
from told.core.ids import text_hash
from told.core.scope import Scope
from told.core.text import md5
from told.ports import VIEWS
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe, assert_chained, ticket

SECRET = "the code is xyzzy"  # noqa: S105 - planted, to be looked for


def erase(book: Scribe, seqs: Sequence[int]) -> Entry:
    """Destroy entries without a trace and return the tombstone."""
    tombstone, _ = book.store.erase(book.account, seqs, Draft(Erased(tuple(seqs)), None, author="told"))
    assert not book.store.scrub()
    return tombstone


class ErasureLaws(Laws):
    """Erasing is for good."""

    def test_the_content_is_gone_and_the_entry_stays(self, book: Scribe) -> None:
        book.tell("before")
        doomed = book.write(Asserted("t1", Claim(SECRET)))[0]
        book.tell("after")
        tombstone = erase(book, [2])
        left = book.entries()[1]
        assert (left.draft, left.envelope, left.salt) == (None, None, None)
        assert (left.seq, left.tx, left.at, left.sort) == (2, 2, doomed.at, "asserted")
        assert (left.digest, left.hash) == (doomed.digest, doomed.hash)
        assert book.entries()[3] == tombstone
        assert tombstone.draft == Draft(Erased((2,)), None, author="told")
        assert_chained(book.entries())

    def test_no_view_knows_it_any_more(self, book: Scribe) -> None:
        book.observe(SECRET, "e1")
        book.tell(SECRET, "t1", evidence="e1")
        book.tell("harmless", "t2")
        book.link("t2", "supports", "t1")
        erase(book, [1, 2, 4])
        assert "xyzzy" not in repr(book.rows())
        assert book.texts() == ["harmless"]
        assert [book.texts(seq=seq) for seq in (2, 3)] == [[], ["harmless"]]
        assert book.search("xyzzy") == {}
        assert book.store.fact(ACCOUNT, "t1", book.find(seq=2).as_of) is None
        assert dict(book.store.versions(ACCOUNT, [2])) == {}
        assert list(book.store.witnesses(ACCOUNT, scope=ALICE)) == []
        assert list(book.store.witnesses(ACCOUNT, ids=["e1"])) == []
        assert list(book.store.links(ACCOUNT, ["t1", "t2", "e1"])) == []
        known = book.store.known(ALICE, [md5(SECRET)], [], None)
        assert dict(known.facts) == {}

    def test_a_link_goes_with_its_own_entry_and_with_no_other(self, book: Scribe) -> None:
        book.tell("one thing", "t1")
        book.tell("the other", "t2")
        book.link("t2", "supports", "t1")
        book.link("t2", "relates_to", "t1")
        erase(book, [1, 3])
        assert [(link.src, link.rel) for link in book.store.links(ACCOUNT, ["t1", "t2"])] == [("t2", "relates_to")]
        assert book.texts() == ["the other"]

    def test_the_cursors_of_a_scope_go_with_the_last_of_it(self, book: Scribe) -> None:
        book.tell("one of Alice's")
        book.tell("another of Alice's")
        book.tell("one of Bob's", scope=BOB)
        names = [f"tail:{ALICE.mark()}", f"tail:{BOB.mark()}", "tail"]
        for name in names:
            book.store.advance(ACCOUNT, name, 3)
        erase(book, [1])
        assert [book.store.cursor(ACCOUNT, name) for name in names] == [3, 3, 3]
        erase(book, [2])
        assert [book.store.cursor(ACCOUNT, name) for name in names] == [0, 3, 3]

    def test_scores_are_as_if_it_had_never_been(self, book: Scribe) -> None:
        book.tell("green tea")
        book.tell("black tea with milk")
        before = book.search("tea")
        erase(book, [book.tell("tea from the erased").seq])
        assert book.search("tea") == before

    def test_its_vector_goes_unless_another_says_the_same(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        book.tell("tea", "t1")
        book.tell("mate", "t2")
        book.tell("mate", "t3", BOB)
        book.store.put_vectors({text_hash("tea"): [1.0, 0.0], text_hash("mate"): [0.0, 1.0]})
        erase(book, [1, 2])
        assert book.store.cached([text_hash("tea"), text_hash("mate")]) == {text_hash("mate")}
        erase(book, [3])
        assert book.store.cached([text_hash("mate")]) == frozenset()

    def test_a_vector_another_account_needs_stays(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        book.tell("tea")
        self.elsewhere(book, "umbrella").tell("tea", scope=Scope("umbrella", user_id="carol"))
        book.store.put_vectors({text_hash("tea"): [1.0, 0.0]})
        erase(book, [1])
        assert book.store.cached([text_hash("tea")]) == {text_hash("tea")}

    def test_tickets_that_tell_of_it_are_void(self, book: Scribe) -> None:
        thread = book.store.mint.id()
        book.write(Asserted("t0", Claim("kept")), ticket=ticket("kept"))
        book.write(Asserted(thread, Claim(SECRET)), ticket=ticket("by tx"))
        book.write(Asserted("t2", Claim("kept too")), ticket=ticket("by name", thread))
        erase(book, [2])
        left = {key: book.store.known(ALICE, [], [], key).ticket for key in ("kept", "by tx", "by name")}
        assert [key for key, found in left.items() if found] == ["kept"]

    def test_faults_that_may_quote_it_are_dropped(self, book: Scribe) -> None:
        book.tell(SECRET)
        book.tell("harmless")
        book.store.fault(ACCOUNT, "extract", 1, f"cannot read {SECRET!r}")
        book.store.fault(ACCOUNT, "extract", 2, "cannot read 'harmless'")
        erase(book, [1])
        assert [fault.seq for fault in book.store.faults(ACCOUNT)] == [2]

    def test_its_digest_is_remembered_as_erased(self, book: Scribe) -> None:
        book.tell("kept")
        book.tell(SECRET)
        kept, doomed = (entry.digest for entry in book.entries())
        erase(book, [2])
        assert book.store.tombstoned(ACCOUNT, [kept, doomed, b"?"]) == {doomed}

    def test_the_thread_still_tells_that_something_was_erased(self, book: Scribe) -> None:
        book.tell(SECRET, "t1")
        book.retract("t1")
        erase(book, [1, 2])
        assert [(entry.seq, entry.draft) for entry in book.store.thread(ACCOUNT, "t1")] == [(1, None), (2, None)]

    def test_the_counts_say_what_was_destroyed(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        book.observe(SECRET, "e1")
        book.write(
            Asserted("t1", Claim(SECRET, evidence="e1")), ticket=ticket("key"),
            vectors={text_hash(SECRET): [1.0, 0.0]},
        )  # fmt: skip
        book.link("e1", "supports", "t1")
        _, counts = book.store.erase(ACCOUNT, [1, 2, 3], Draft(Erased((1, 2, 3)), None))
        wanted = {"entries": 3, "facts": 1, "links": 1, "evidence": 1, "passages": 1, "vectors": 1, "tickets": 1}
        assert counts == {**wanted, "faults": 0, "recalls": 0, "blobs": 0}

    def test_the_counts_are_of_rows_even_where_two_say_the_same(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        for thread in ("t1", "t2"):
            book.write(Asserted(thread, Claim(SECRET)), vectors={text_hash(SECRET): [1.0, 0.0]})
        book.store.fault(ACCOUNT, "extract", 1, "garbled")
        _, counts = book.store.erase(ACCOUNT, [1, 2], Draft(Erased((1, 2)), None))
        assert (counts["passages"], counts["vectors"], counts["faults"]) == (2, 1, 1)

    def test_erasing_again_destroys_nothing_more(self, book: Scribe) -> None:
        book.tell(SECRET)
        erase(book, [1])
        tombstone, counts = book.store.erase(ACCOUNT, [1], Draft(Erased((1,)), None))
        assert tombstone.seq == 3
        assert not any(counts.values())

    def test_an_entry_that_is_not_there_is_an_error_and_nothing_happens(self, book: Scribe) -> None:
        book.tell("kept")
        with pytest.raises(NotFoundError):
            erase(book, [1, 2])
        assert book.texts() == ["kept"]
        assert book.seq == 1

    def test_the_same_can_be_said_anew(self, book: Scribe) -> None:
        book.observe(SECRET, "e1")
        book.tell(SECRET, "t1", evidence="e1")
        erase(book, [1, 2])
        book.observe(SECRET, "e2")
        book.tell(SECRET, "t2", evidence="e2")
        assert book.texts() == [SECRET]
        assert list(book.store.derived(ACCOUNT, ["e2"])) == ["t2"]

    def test_what_was_taken_from_erased_evidence_is_still_found_by_it(self, book: Scribe) -> None:
        book.observe(SECRET, "e1")
        book.tell("right after it", "t1", evidence="e1")
        book.tell("later", "t2", evidence="e1")
        erase(book, [1])
        for _ in range(2):
            assert not book.store.witnesses(ACCOUNT, ids=["e1"])
            assert list(book.store.derived(ACCOUNT, ["e1"])) == ["t1", "t2"]
            book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))

    def test_other_accounts_are_not_touched(self, book: Scribe) -> None:
        theirs = Scope("umbrella", user_id="alice")
        other = self.elsewhere(book, "umbrella")
        book.tell(SECRET, "t1")
        other.tell(SECRET, "t1", theirs)
        erase(book, [1])
        assert other.texts(theirs) == [SECRET]
        assert list(other.search("xyzzy", theirs)) == [SECRET]

    @pytest.mark.parametrize("seqs", [[1, 2, 3, 5], [2], [4], [3, 4]], ids=str)
    def test_views_rebuilt_after_it_equal_those_it_left(self, book: Scribe, seqs: list[int]) -> None:
        book.observe("said", "e1")
        book.tell("first", "t1", evidence="e1")
        book.tell("second", "t1")
        book.retract("t1")
        book.link("e1", "supports", "t1")
        book.tell("sibling", "t2", evidence="e1")
        erase(book, seqs)
        grown = book.rows()
        book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert book.rows() == grown
