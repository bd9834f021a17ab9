"""Laws of recalling: counts add up, belong to one account, and go with what they count; the ledger hears nothing."""

from __future__ import annotations

from told.core.entry import Draft, Ruled
from told.core.query import AccessCount
from told.core.recall import AccessBatch
from told.core.scope import Scope
from told.ports import VIEWS
from told.testing.contract.erasing import erase_entries
from told.testing.contract.scribe import ACCOUNT, AccountHarness, ContractBase

SECOND_ACCOUNT = "umbrella"


class AccessCountContract(ContractBase):
    """How often something was recalled is kept beside the ledger, never in it."""

    def test_access_counts_add_up_and_keep_the_latest_time(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        harness.assert_claim("mate", "t2")
        harness.store.record_accesses(
            ACCOUNT, AccessBatch({"t1": AccessCount(2, 50), "t2": AccessCount(1, 50)})
        )
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(3, 40)}))
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t2": AccessCount(1, 60)}))
        assert dict(harness.store.access_counts(ACCOUNT, ["t2", "t1"])) == {
            "t1": AccessCount(5, 50),
            "t2": AccessCount(2, 60),
        }
        assert harness.store.get_stats(ACCOUNT)["recalls"] == 7

    def test_threads_never_accessed_are_omitted(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        harness.assert_claim("mate", "t2")
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        assert list(harness.store.access_counts(ACCOUNT, ["t1", "t2", "t3", "\ud800"])) == ["t1"]
        assert dict(harness.store.access_counts(ACCOUNT, [])) == {}
        assert harness.store.get_stats(SECOND_ACCOUNT)["recalls"] == 0

    def test_accesses_of_unknown_threads_are_not_counted(self, harness: AccountHarness) -> None:
        harness.add_evidence("said", "e1")
        harness.store.record_accesses(
            ACCOUNT,
            AccessBatch(
                {"t1": AccessCount(1, 1), "e1": AccessCount(1, 1), "\ud800": AccessCount(1, 1)}
            ),
        )
        harness.store.record_accesses(SECOND_ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        harness.store.record_accesses(ACCOUNT, AccessBatch({}))
        harness.assert_claim("tea", "t1")
        assert dict(harness.store.access_counts(ACCOUNT, ["t1", "e1"])) == {}
        assert list(harness.store.list_accounts()) == [ACCOUNT]

    def test_accesses_of_retracted_threads_are_counted(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        harness.retract_thread("t1")
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {"t1": AccessCount(1, 1)}

    def test_access_counts_are_separate_per_account(self, harness: AccountHarness) -> None:
        other = self.use_account(harness, SECOND_ACCOUNT)
        harness.assert_claim("tea", "t1")
        other.assert_claim("tea", "t1", Scope(SECOND_ACCOUNT, user_id="alice"))
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        assert dict(harness.store.access_counts(SECOND_ACCOUNT, ["t1"])) == {}
        harness.store.record_accesses(SECOND_ACCOUNT, AccessBatch({"t1": AccessCount(5, 9)}))
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {"t1": AccessCount(1, 1)}
        assert harness.store.get_stats(ACCOUNT)["recalls"] == 1
        erase_entries(harness, [1])
        assert dict(harness.store.access_counts(SECOND_ACCOUNT, ["t1"])) == {
            "t1": AccessCount(5, 9)
        }
        harness.store.reset(ACCOUNT, Draft(Ruled("ledger", "reset", {}), None))
        assert dict(harness.store.access_counts(SECOND_ACCOUNT, ["t1"])) == {
            "t1": AccessCount(5, 9)
        }

    def test_many_threads_of_any_name_are_counted_in_one_call(
        self, harness: AccountHarness
    ) -> None:
        names = [
            "t\u00fc",
            "\u6771\u4eac",
            'a"b\\c',
            "\U0001f99c",
            *(f"t{number}" for number in range(300)),
        ]
        for name in names:
            harness.assert_claim(f"fact of {name}", name)
        accesses = {name: AccessCount(number, number * 10) for number, name in enumerate(names, 1)}
        for _ in range(2):
            harness.store.record_accesses(ACCOUNT, AccessBatch(accesses))
        counts = harness.store.access_counts(ACCOUNT, names)
        assert counts == {
            name: AccessCount(count.count * 2, count.last) for name, count in accesses.items()
        }

    def test_erasing_a_thread_deletes_its_access_counts(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        harness.assert_claim("green tea", "t1")
        harness.assert_claim("mate", "t2")
        harness.store.record_accesses(
            ACCOUNT, AccessBatch({"t1": AccessCount(3, 1), "t2": AccessCount(1, 1)})
        )
        erase_entries(harness, [1, 2])
        assert dict(harness.store.access_counts(ACCOUNT, ["t1", "t2"])) == {"t2": AccessCount(1, 1)}
        assert harness.store.get_stats(ACCOUNT)["recalls"] == 1

    def test_erasure_reports_deleted_access_counts(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        harness.assert_claim("mate", "t2")
        harness.store.record_accesses(
            ACCOUNT, AccessBatch({"t1": AccessCount(3, 1), "t2": AccessCount(1, 1)})
        )
        _, counts = harness.store.erase(ACCOUNT, [1], Draft(Ruled("ledger", "erase", {}), None))
        assert counts["recalls"] == 3

    def test_a_late_access_does_not_restore_an_erased_thread(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        erase_entries(harness, [1])
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {}

    def test_an_imported_tombstone_deletes_access_counts(self, harness: AccountHarness) -> None:
        other = self.use_account(harness, SECOND_ACCOUNT)
        harness.assert_claim("tea", "t1")
        before = list(harness.list_entries())
        other.store.import_entries(SECOND_ACCOUNT, before, harness.folding(VIEWS))
        other.store.record_accesses(SECOND_ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        erase_entries(harness, [1])
        other.store.import_entries(SECOND_ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert dict(other.store.access_counts(SECOND_ACCOUNT, ["t1"])) == {}

    def test_a_reset_deletes_access_counts(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        harness.store.reset(ACCOUNT, Draft(Ruled("ledger", "reset", {}), None))
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {}
        harness.assert_claim("tea", "t1")
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {}

    def test_a_rebuild_keeps_access_counts(self, harness: AccountHarness) -> None:
        harness.assert_claim("tea", "t1")
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(2, 7)}))
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {"t1": AccessCount(2, 7)}

    def test_counting_accesses_changes_no_ledger_or_view(self, harness: AccountHarness) -> None:
        harness.add_evidence("said", "e1")
        harness.assert_claim("tea", "t1", evidence="e1")
        before = (
            harness.store.get_head(ACCOUNT),
            list(harness.list_entries()),
            harness.dump_views(),
            harness.search_texts("tea"),
        )
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(2, 7)}))
        assert (
            harness.store.get_head(ACCOUNT),
            list(harness.list_entries()),
            harness.dump_views(),
            harness.search_texts("tea"),
        ) == before
        assert list(harness.store.check_integrity()) == []
