"""Laws of vectors: one model at a time, cached by text, and never a reason to lose a write."""

from __future__ import annotations

import pytest

from told.core.entry import Asserted, Claim
from told.core.errors import ModelMismatch
from told.core.ids import hash_text
from told.core.query import IndexQuery
from told.core.scope import Scope
from told.testing.contract.scribe import ALICE, BOB, AccountHarness, ContractBase

TEA_HASH, MATE_HASH = hash_text("tea"), hash_text("mate")
CAROL = Scope(BOB.account, user_id="carol")


class VectorContract(ContractBase):
    """A store is bound to its embedder until it is switched to another."""

    def test_a_new_store_is_bound_to_no_model(self, harness: AccountHarness) -> None:
        assert harness.store.current_model() is None
        harness.assert_claim("tea")
        assert dict(harness.store.pending_texts()) == {TEA_HASH: "tea"}

    def test_the_first_model_is_kept(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.store.bind_model("one", 2)
        assert harness.store.current_model() == ("one", 2)

    @pytest.mark.parametrize(("name", "dim"), [("two", 2), ("one", 3)])
    def test_another_model_is_refused_with_a_hint(
        self, harness: AccountHarness, name: str, dim: int
    ) -> None:
        harness.store.bind_model("one", 2)
        with pytest.raises(ModelMismatch, match="one") as refusal:
            harness.store.bind_model(name, dim)
        assert "reindex" in refusal.value.hint
        assert harness.store.current_model() == ("one", 2)

    def test_vectors_committed_with_their_text_are_searchable(
        self, harness: AccountHarness
    ) -> None:
        harness.store.bind_model("one", 2)
        harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0]})
        assert harness.store.embedded_hashes([TEA_HASH, MATE_HASH]) == {TEA_HASH}
        assert harness.store.lookup_existing(BOB, [], [], None, [TEA_HASH, MATE_HASH]).vectors == {
            TEA_HASH
        }
        assert dict(harness.store.pending_texts()) == {}
        assert harness.search_texts(vector=[1.0, 0.0])["tea"].cosine == 1.0

    def test_vectors_added_later_become_searchable(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.assert_claim("tea")
        assert harness.search_texts(vector=[1.0, 0.0]) == {}
        harness.store.put_vectors({TEA_HASH: [0.0, 2.0]})
        assert harness.search_texts(vector=[0.0, 1.0])["tea"].cosine == 1.0
        assert dict(harness.store.pending_texts()) == {}

    def test_a_new_vector_applies_to_earlier_identical_texts(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.assert_claim("tea")
        harness.assert_claim("tea", scope=CAROL)
        assert (
            harness.search_texts(vector=[0.0, 1.0])
            == harness.search_texts(scope=CAROL, vector=[0.0, 1.0])
            == {}
        )
        harness.commit(Asserted("t1", Claim("tea")), scope=BOB, vectors={TEA_HASH: [0.0, 2.0]})
        assert harness.search_texts(vector=[0.0, 1.0])["tea"].cosine == 1.0
        assert harness.search_texts(scope=CAROL, vector=[0.0, 1.0])["tea"].cosine == 1.0

    def test_identical_texts_share_one_vector(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0]})
        harness.assert_claim("tea", scope=BOB)
        other_scope = Scope("umbrella", user_id="carol")
        other = self.use_account(harness, "umbrella")
        other.assert_claim("tea", scope=other_scope)
        assert dict(harness.store.pending_texts()) == {}
        assert harness.search_texts(scope=BOB, vector=[1.0, 0.0])["tea"].cosine == 1.0
        assert other.search_texts(scope=other_scope, vector=[1.0, 0.0])["tea"].cosine == 1.0

    def test_replaced_versions_are_pending_too(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.assert_claim("tea", "t1")
        harness.assert_claim("mate", "t1")
        assert dict(harness.store.pending_texts()) == {TEA_HASH: "tea", MATE_HASH: "mate"}
        harness.store.put_vectors({TEA_HASH: [1.0, 0.0]})
        assert harness.search_texts(vector=[1.0, 0.0]) == {}
        assert list(harness.search_texts(vector=[1.0, 0.0], seq=1)) == ["tea"]

    def test_pending_texts_come_in_batches(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        for number in range(5):
            harness.assert_claim(f"tea {number}")
        rounds = 0
        while pending := harness.store.pending_texts(2):
            assert len(pending) <= 2
            assert all(hash_text(text) == key for key, text in pending.items())
            harness.store.put_vectors({key: [1.0, 0.0] for key in pending})
            rounds += 1
        assert rounds == 3

    def test_a_vector_of_the_wrong_size_is_refused_and_nothing_written(
        self, harness: AccountHarness
    ) -> None:
        harness.store.bind_model("one", 2)
        with pytest.raises(ModelMismatch):
            harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0, 0.0]})
        assert harness.head_seq == 0
        with pytest.raises(ModelMismatch):
            harness.store.put_vectors({TEA_HASH: [1.0]})
        assert not harness.store.embedded_hashes([TEA_HASH])

    def test_a_second_model_is_filled_before_switching(self, harness: AccountHarness) -> None:
        store = harness.store
        store.bind_model("one", 2)
        harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0]})
        assert dict(store.pending_texts(model="two")) == {TEA_HASH: "tea"}
        store.put_vectors({TEA_HASH: [0.0, 0.0, 1.0]}, "two")
        assert dict(store.pending_texts(model="two")) == {}
        assert harness.search_texts(vector=[1.0, 0.0])["tea"].cosine == 1.0
        store.switch_model("two", 3)
        assert (
            store.current_model() == store.lookup_existing(ALICE, [], [], None).model == ("two", 3)
        )
        assert harness.search_texts(vector=[0.0, 0.0, 1.0])["tea"].cosine == 1.0
        assert dict(store.pending_texts(model="one")) == {TEA_HASH: "tea"}
        with pytest.raises(ModelMismatch):
            store.bind_model("one", 2)

    def test_vectors_of_another_model_are_ignored(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.commit(
            Asserted("t1", Claim("tea")), vectors={hash_text("tea"): [1.0, 0.0]}, model="other"
        )
        assert harness.store.embedded_hashes([hash_text("tea")]) == frozenset()
        assert list(harness.store.pending_texts()) == [hash_text("tea")]
        with pytest.raises(ModelMismatch):
            harness.store.index.search(
                IndexQuery(harness.build_query(), vector=[1.0, 0.0], model="other")
            )

    def test_an_empty_store_switches_freely(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.store.switch_model("two", 3)
        assert harness.store.current_model() == ("two", 3)
