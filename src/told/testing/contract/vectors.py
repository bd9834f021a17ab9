"""Laws of vectors: one model at a time, cached by text, and never a reason to lose a write."""

from __future__ import annotations

import pytest

from told.core.entry import Asserted, Claim
from told.core.errors import ModelMismatch
from told.core.ids import text_hash
from told.core.query import Probe
from told.core.scope import Scope
from told.testing.contract.scribe import ALICE, BOB, Laws, Scribe

TEA, MATE = text_hash("tea"), text_hash("mate")
CAROL = Scope(BOB.account, user_id="carol")


class VectorLaws(Laws):
    """A store is bound to its embedder until it is switched to another."""

    def test_a_new_store_is_bound_to_no_model(self, book: Scribe) -> None:
        assert book.store.model() is None
        book.tell("tea")
        assert dict(book.store.pending()) == {TEA: "tea"}

    def test_the_first_model_is_kept(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        book.store.use_model("one", 2)
        assert book.store.model() == ("one", 2)

    @pytest.mark.parametrize(("name", "dim"), [("two", 2), ("one", 3)])
    def test_another_model_is_refused_with_the_way_out(self, book: Scribe, name: str, dim: int) -> None:
        book.store.use_model("one", 2)
        with pytest.raises(ModelMismatch, match="one") as refusal:
            book.store.use_model(name, dim)
        assert "reindex" in refusal.value.hint
        assert book.store.model() == ("one", 2)

    def test_vectors_committed_with_their_text_are_found_at_once(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        book.write(Asserted("t1", Claim("tea")), vectors={TEA: [1.0, 0.0]})
        assert book.store.cached([TEA, MATE]) == {TEA}
        assert book.store.known(BOB, [], [], None, [TEA, MATE]).vectors == {TEA}
        assert dict(book.store.pending()) == {}
        assert book.search(vector=[1.0, 0.0])["tea"].cosine == 1.0

    def test_vectors_that_come_later_are_found_from_then_on(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        book.tell("tea")
        assert book.search(vector=[1.0, 0.0]) == {}
        book.store.put_vectors({TEA: [0.0, 2.0]})
        assert book.search(vector=[0.0, 1.0])["tea"].cosine == 1.0
        assert dict(book.store.pending()) == {}

    def test_vectors_that_come_with_what_another_says_are_found_by_all_who_said_it_before(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        book.tell("tea")
        book.tell("tea", scope=CAROL)
        assert book.search(vector=[0.0, 1.0]) == book.search(scope=CAROL, vector=[0.0, 1.0]) == {}
        book.write(Asserted("t1", Claim("tea")), scope=BOB, vectors={TEA: [0.0, 2.0]})
        assert book.search(vector=[0.0, 1.0])["tea"].cosine == 1.0
        assert book.search(scope=CAROL, vector=[0.0, 1.0])["tea"].cosine == 1.0

    def test_a_text_is_embedded_once_for_all_who_say_it(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        book.write(Asserted("t1", Claim("tea")), vectors={TEA: [1.0, 0.0]})
        book.tell("tea", scope=BOB)
        theirs = Scope("umbrella", user_id="carol")
        other = self.elsewhere(book, "umbrella")
        other.tell("tea", scope=theirs)
        assert dict(book.store.pending()) == {}
        assert book.search(scope=BOB, vector=[1.0, 0.0])["tea"].cosine == 1.0
        assert other.search(scope=theirs, vector=[1.0, 0.0])["tea"].cosine == 1.0

    def test_closed_versions_wait_for_vectors_too(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        book.tell("tea", "t1")
        book.tell("mate", "t1")
        assert dict(book.store.pending()) == {TEA: "tea", MATE: "mate"}
        book.store.put_vectors({TEA: [1.0, 0.0]})
        assert book.search(vector=[1.0, 0.0]) == {}
        assert list(book.search(vector=[1.0, 0.0], seq=1)) == ["tea"]

    def test_what_waits_comes_in_portions(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        for number in range(5):
            book.tell(f"tea {number}")
        rounds = 0
        while waiting := book.store.pending(2):
            assert len(waiting) <= 2
            assert all(text_hash(text) == key for key, text in waiting.items())
            book.store.put_vectors({key: [1.0, 0.0] for key in waiting})
            rounds += 1
        assert rounds == 3

    def test_a_vector_of_the_wrong_size_is_refused_and_nothing_written(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        with pytest.raises(ModelMismatch):
            book.write(Asserted("t1", Claim("tea")), vectors={TEA: [1.0, 0.0, 0.0]})
        assert book.seq == 0
        with pytest.raises(ModelMismatch):
            book.store.put_vectors({TEA: [1.0]})
        assert not book.store.cached([TEA])

    def test_a_second_model_is_filled_aside_and_then_switched_to(self, book: Scribe) -> None:
        store = book.store
        store.use_model("one", 2)
        book.write(Asserted("t1", Claim("tea")), vectors={TEA: [1.0, 0.0]})
        assert dict(store.pending(model="two")) == {TEA: "tea"}
        store.put_vectors({TEA: [0.0, 0.0, 1.0]}, "two")
        assert dict(store.pending(model="two")) == {}
        assert book.search(vector=[1.0, 0.0])["tea"].cosine == 1.0
        store.switch_model("two", 3)
        assert store.model() == store.known(ALICE, [], [], None).model == ("two", 3)
        assert book.search(vector=[0.0, 0.0, 1.0])["tea"].cosine == 1.0
        assert dict(store.pending(model="one")) == {TEA: "tea"}
        with pytest.raises(ModelMismatch):
            store.use_model("one", 2)

    def test_vectors_of_another_model_do_not_get_in(self, book: Scribe) -> None:
        book.store.use_model("m", 2)
        book.write(Asserted("t1", Claim("tea")), vectors={text_hash("tea"): [1.0, 0.0]}, model="other")
        assert book.store.cached([text_hash("tea")]) == frozenset()
        assert list(book.store.pending()) == [text_hash("tea")]
        with pytest.raises(ModelMismatch):
            book.store.index.search(Probe(book.find(), vector=[1.0, 0.0], model="other"))

    def test_an_empty_store_switches_freely(self, book: Scribe) -> None:
        book.store.use_model("one", 2)
        book.store.switch_model("two", 3)
        assert book.store.model() == ("two", 3)
