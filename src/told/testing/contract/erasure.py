"""Laws of erasure: content is gone, the chain holds, and nothing restores it."""

from __future__ import annotations

import pytest

from told.errors import NotFoundError
from told.ids import hash_text
from told.model.entry import Asserted, Claim, Draft, Erased
from told.model.scope import Scope
from told.ports import VIEWS
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    AccountHarness,
    ContractBase,
    assert_chained,
    erase_entries,
    make_idempotency_record,
)
from told.text.tokens import md5_hex

SECRET_TEXT = "the code is xyzzy"  # noqa: S105


class ErasureContract(ContractBase):
    """Erasure is permanent."""

    def test_erasing_removes_content_and_keeps_the_entry(self, harness: AccountHarness) -> None:
        harness.assert_claim("before")
        erased = harness.commit(Asserted("t1", Claim(SECRET_TEXT)))[0]
        harness.assert_claim("after")
        tombstone = erase_entries(harness, [2])
        remaining = harness.list_entries()[1]
        assert (remaining.draft, remaining.envelope, remaining.salt) == (None, None, None)
        assert (remaining.seq, remaining.tx, remaining.at, remaining.sort) == (
            2,
            2,
            erased.at,
            "asserted",
        )
        assert (remaining.digest, remaining.hash) == (erased.digest, erased.hash)
        assert harness.list_entries()[3] == tombstone
        assert tombstone.draft == Draft(Erased((2,)), None, author="told")
        assert_chained(harness.list_entries())

    def test_erased_content_is_in_no_view(self, harness: AccountHarness) -> None:
        harness.add_evidence(SECRET_TEXT, "e1")
        harness.assert_claim(SECRET_TEXT, "t1", evidence="e1")
        harness.assert_claim("harmless", "t2")
        harness.add_link("t2", "supports", "t1")
        erase_entries(harness, [1, 2, 4])
        assert "xyzzy" not in repr(harness.dump_views())
        assert harness.list_texts() == ["harmless"]
        assert [harness.list_texts(seq=seq) for seq in (2, 3)] == [[], ["harmless"]]
        assert harness.search_texts("xyzzy") == {}
        assert harness.store.get_fact(ACCOUNT, "t1", harness.build_query(seq=2).as_of) is None
        assert list(harness.store.find_versions(ACCOUNT, seqs=[2])) == []
        assert list(harness.store.evidence_rows(ACCOUNT, scope=ALICE)) == []
        assert list(harness.store.evidence_rows(ACCOUNT, ids=["e1"])) == []
        assert list(harness.store.find_links(ACCOUNT, ["t1", "t2", "e1"])) == []
        existing = harness.store.lookup_existing(ALICE, [md5_hex(SECRET_TEXT)], [], None)
        assert dict(existing.facts) == {}

    def test_a_link_is_erased_only_with_its_own_entry(self, harness: AccountHarness) -> None:
        harness.assert_claim("one thing", "t1")
        harness.assert_claim("the other", "t2")
        harness.add_link("t2", "supports", "t1")
        harness.add_link("t2", "relates_to", "t1")
        erase_entries(harness, [1, 3])
        assert [
            (link.src, link.rel) for link in harness.store.find_links(ACCOUNT, ["t1", "t2"])
        ] == [("t2", "relates_to")]
        assert harness.list_texts() == ["the other"]

    def test_scope_cursors_are_deleted_with_its_last_entry(self, harness: AccountHarness) -> None:
        harness.assert_claim("one of Alice's")
        harness.assert_claim("another of Alice's")
        harness.assert_claim("one of Bob's", scope=BOB)
        names = [f"tail:{ALICE.digest()}", f"tail:{BOB.digest()}", "tail"]
        for name in names:
            harness.store.update_consumer(ACCOUNT, name, cursor=3)
        erase_entries(harness, [1])
        assert [harness.store.get_cursor(ACCOUNT, name) for name in names] == [3, 3, 3]
        erase_entries(harness, [2])
        assert [harness.store.get_cursor(ACCOUNT, name) for name in names] == [0, 3, 3]

    def test_erased_content_does_not_affect_scores(self, harness: AccountHarness) -> None:
        harness.assert_claim("green tea")
        harness.assert_claim("black tea with milk")
        before = harness.search_texts("tea")
        erase_entries(harness, [harness.assert_claim("tea from the erased").seq])
        assert harness.search_texts("tea") == before

    def test_a_vector_is_deleted_unless_the_text_is_still_used(
        self, harness: AccountHarness
    ) -> None:
        harness.store.bind_model("m", 2)
        harness.assert_claim("tea", "t1")
        harness.assert_claim("mate", "t2")
        harness.assert_claim("mate", "t3", BOB)
        harness.store.put_vectors({hash_text("tea"): [1.0, 0.0], hash_text("mate"): [0.0, 1.0]})
        erase_entries(harness, [1, 2])
        assert harness.embedded_hashes([hash_text("tea"), hash_text("mate")]) == {hash_text("mate")}
        erase_entries(harness, [3])
        assert harness.embedded_hashes([hash_text("mate")]) == frozenset()

    def test_a_vector_used_by_another_account_is_kept(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.assert_claim("tea")
        self.use_account(harness, "umbrella").assert_claim(
            "tea", scope=Scope("umbrella", user_id="carol")
        )
        harness.store.put_vectors({hash_text("tea"): [1.0, 0.0]})
        erase_entries(harness, [1])
        assert harness.embedded_hashes([hash_text("tea")]) == {hash_text("tea")}

    def test_tickets_naming_erased_threads_are_deleted(self, harness: AccountHarness) -> None:
        thread = harness.store.mint.new_id()
        harness.commit(Asserted("t0", Claim("kept")), idempotency=make_idempotency_record("kept"))
        harness.commit(
            Asserted(thread, Claim(SECRET_TEXT)), idempotency=make_idempotency_record("by tx")
        )
        harness.commit(
            Asserted("t2", Claim("kept too")),
            idempotency=make_idempotency_record("by name", thread),
        )
        erase_entries(harness, [2])
        remaining = {
            key: harness.store.lookup_existing(ALICE, [], [], key).idempotency
            for key in ("kept", "by tx", "by name")
        }
        assert [key for key, stored in remaining.items() if stored] == ["kept"]

    def test_faults_of_erased_entries_are_deleted(self, harness: AccountHarness) -> None:
        harness.assert_claim(SECRET_TEXT)
        harness.assert_claim("harmless")
        harness.store.record_fault(ACCOUNT, "extract", 1, f"cannot read {SECRET_TEXT!r}")
        harness.store.record_fault(ACCOUNT, "extract", 2, "cannot read 'harmless'")
        erase_entries(harness, [1])
        assert [fault.seq for fault in harness.store.list_faults(ACCOUNT)] == [2]

    def test_the_erased_digest_is_remembered(self, harness: AccountHarness) -> None:
        harness.assert_claim("kept")
        harness.assert_claim(SECRET_TEXT)
        kept, erased = (entry.digest for entry in harness.list_entries())
        erase_entries(harness, [2])
        assert harness.store.tombstoned_digests([kept, erased, b"?"]) == {erased}

    def test_an_erased_thread_still_lists_its_entries(self, harness: AccountHarness) -> None:
        harness.assert_claim(SECRET_TEXT, "t1")
        harness.retract_thread("t1")
        erase_entries(harness, [1, 2])
        assert [
            (entry.seq, entry.draft) for entry in harness.store.scan_entries(ACCOUNT, thread="t1")
        ] == [(1, None), (2, None)]

    def test_erasure_counts_what_was_destroyed(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.add_evidence(SECRET_TEXT, "e1")
        harness.commit(
            Asserted("t1", Claim(SECRET_TEXT, evidence="e1")),
            idempotency=make_idempotency_record("key"),
            vectors={hash_text(SECRET_TEXT): [1.0, 0.0]},
        )
        harness.add_link("e1", "supports", "t1")
        _, counts = harness.store.erase(ACCOUNT, [1, 2, 3], Draft(Erased((1, 2, 3)), None))
        expected = {
            "entries": 3,
            "facts": 1,
            "links": 1,
            "evidence": 1,
            "passages": 1,
            "vectors": 1,
            "tickets": 1,
        }
        assert counts == {**expected, "faults": 0, "recalls": 0, "blobs": 0}

    def test_erasure_counts_rows_with_identical_text(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        for thread in ("t1", "t2"):
            harness.commit(
                Asserted(thread, Claim(SECRET_TEXT)), vectors={hash_text(SECRET_TEXT): [1.0, 0.0]}
            )
        harness.store.record_fault(ACCOUNT, "extract", 1, "garbled")
        _, counts = harness.store.erase(ACCOUNT, [1, 2], Draft(Erased((1, 2)), None))
        assert (counts["passages"], counts["vectors"], counts["faults"]) == (2, 1, 1)

    def test_erasing_again_destroys_nothing_more(self, harness: AccountHarness) -> None:
        harness.assert_claim(SECRET_TEXT)
        erase_entries(harness, [1])
        tombstone, counts = harness.store.erase(ACCOUNT, [1], Draft(Erased((1,)), None))
        assert tombstone.seq == 3
        assert not any(counts.values())

    def test_erasing_a_missing_entry_fails_and_changes_nothing(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("kept")
        with pytest.raises(NotFoundError):
            erase_entries(harness, [1, 2])
        assert harness.list_texts() == ["kept"]
        assert harness.head_seq == 1

    def test_erased_text_can_be_added_again(self, harness: AccountHarness) -> None:
        harness.add_evidence(SECRET_TEXT, "e1")
        harness.assert_claim(SECRET_TEXT, "t1", evidence="e1")
        erase_entries(harness, [1, 2])
        harness.add_evidence(SECRET_TEXT, "e2")
        harness.assert_claim(SECRET_TEXT, "t2", evidence="e2")
        assert harness.list_texts() == [SECRET_TEXT]
        assert list(harness.threads_from_evidence(ACCOUNT, ["e2"])) == ["t2"]

    def test_facts_are_still_found_by_their_erased_evidence(self, harness: AccountHarness) -> None:
        harness.add_evidence(SECRET_TEXT, "e1")
        harness.assert_claim("right after it", "t1", evidence="e1")
        harness.assert_claim("later", "t2", evidence="e1")
        erase_entries(harness, [1])
        for _ in range(2):
            assert not harness.store.evidence_rows(ACCOUNT, ids=["e1"])
            assert list(harness.threads_from_evidence(ACCOUNT, ["e1"])) == ["t1", "t2"]
            harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))

    def test_erasing_affects_no_other_account(self, harness: AccountHarness) -> None:
        other_scope = Scope("umbrella", user_id="alice")
        other = self.use_account(harness, "umbrella")
        harness.assert_claim(SECRET_TEXT, "t1")
        other.assert_claim(SECRET_TEXT, "t1", other_scope)
        erase_entries(harness, [1])
        assert other.list_texts(other_scope) == [SECRET_TEXT]
        assert list(other.search_texts("xyzzy", other_scope)) == [SECRET_TEXT]

    @pytest.mark.parametrize("seqs", [[1, 2, 3, 5], [2], [4], [3, 4]], ids=str)
    def test_a_rebuild_after_erasure_changes_no_view(
        self, harness: AccountHarness, seqs: list[int]
    ) -> None:
        harness.add_evidence("said", "e1")
        harness.assert_claim("first", "t1", evidence="e1")
        harness.assert_claim("second", "t1")
        harness.retract_thread("t1")
        harness.add_link("e1", "supports", "t1")
        harness.assert_claim("sibling", "t2", evidence="e1")
        erase_entries(harness, seqs)
        rows_before = harness.dump_views()
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert harness.dump_views() == rows_before
