"""Laws of the access log."""

from __future__ import annotations

import pytest

from told.errors import InvalidInput
from told.model.entry import Draft, Ruled
from told.model.fact import NEVER
from told.model.query import (
    AccessBatch,
    AccessCount,
    AccessOutcome,
    AccessRecord,
    AccessState,
    ReviewReason,
    ReviewTask,
)
from told.model.scope import Scope
from told.ports import (
    VIEWS,
)
from told.testing.contract.harness import (
    ACCOUNT,
    LONE_SURROGATE,
    OTHER_ACCOUNT,
    AccountHarness,
    ContractBase,
    add_threads,
    dump_side_data,
    erase_entries,
    run_in_threads,
)


class AccessLogContract(ContractBase):
    """Accesses are recorded beside the ledger and deleted with their thread."""

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
        assert harness.store.get_stats(OTHER_ACCOUNT)["recalls"] == 0

    def test_accesses_of_unknown_threads_are_not_counted(self, harness: AccountHarness) -> None:
        harness.add_evidence("said", "e1")
        harness.store.record_accesses(
            ACCOUNT,
            AccessBatch(
                {"t1": AccessCount(1, 1), "e1": AccessCount(1, 1), "\ud800": AccessCount(1, 1)}
            ),
        )
        harness.store.record_accesses(OTHER_ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
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
        other = self.use_account(harness, OTHER_ACCOUNT)
        harness.assert_claim("tea", "t1")
        other.assert_claim("tea", "t1", Scope(OTHER_ACCOUNT, user_id="alice"))
        harness.store.record_accesses(ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        assert dict(harness.store.access_counts(OTHER_ACCOUNT, ["t1"])) == {}
        harness.store.record_accesses(OTHER_ACCOUNT, AccessBatch({"t1": AccessCount(5, 9)}))
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {"t1": AccessCount(1, 1)}
        assert harness.store.get_stats(ACCOUNT)["recalls"] == 1
        erase_entries(harness, [1])
        assert dict(harness.store.access_counts(OTHER_ACCOUNT, ["t1"])) == {"t1": AccessCount(5, 9)}
        harness.store.reset(ACCOUNT, Draft(Ruled("ledger", "reset", {}), None))
        assert dict(harness.store.access_counts(OTHER_ACCOUNT, ["t1"])) == {"t1": AccessCount(5, 9)}

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
        other = self.use_account(harness, OTHER_ACCOUNT)
        harness.assert_claim("tea", "t1")
        before = list(harness.list_entries())
        other.store.import_entries(OTHER_ACCOUNT, before, harness.folding(VIEWS))
        other.store.record_accesses(OTHER_ACCOUNT, AccessBatch({"t1": AccessCount(1, 1)}))
        erase_entries(harness, [1])
        other.store.import_entries(OTHER_ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert dict(other.store.access_counts(OTHER_ACCOUNT, ["t1"])) == {}

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

    def test_cooccurrence_counts_ignore_pair_order(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2", "t3")
        harness.record_cooccurrence(
            ACCOUNT, {("t1", "t2"): AccessCount(1, 9), ("t3", "t2"): AccessCount(1, 1)}
        )
        harness.record_cooccurrence(ACCOUNT, {("t2", "t1"): AccessCount(2, 5)})
        assert dict(harness.store.cooccurrence(ACCOUNT, ["t1"])) == {
            ("t1", "t2"): AccessCount(3, 9)
        }
        expected = {("t1", "t2"): AccessCount(3, 9), ("t2", "t3"): AccessCount(1, 1)}
        assert (
            dict(harness.store.cooccurrence(ACCOUNT, ["t2"]))
            == dict(harness.store.cooccurrence(ACCOUNT, ["t1", "t2", LONE_SURROGATE]))
            == expected
        )
        assert (
            dict(harness.store.cooccurrence(ACCOUNT, []))
            == dict(harness.store.cooccurrence(OTHER_ACCOUNT, ["t1"]))
            == {}
        )

    def test_unknown_and_self_pairs_are_not_counted(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1")
        pairs = [("t1", "t9"), ("t9", "t1"), ("t1", "t1"), ("t1", LONE_SURROGATE)]
        harness.record_cooccurrence(ACCOUNT, dict.fromkeys(pairs, AccessCount(1, 1)))
        harness.record_cooccurrence(OTHER_ACCOUNT, {("t1", "t2"): AccessCount(1, 1)})
        add_threads(harness, "t9")
        assert dict(harness.store.cooccurrence(ACCOUNT, ["t1", "t9"])) == {}
        assert list(harness.store.list_accounts()) == [ACCOUNT]

    def test_concurrent_cooccurrence_counts_are_all_recorded(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2")

        def record(number: int) -> None:
            for offset in range(10):
                harness.record_cooccurrence(
                    ACCOUNT, {("t1", "t2"): AccessCount(1, number * 10 + offset)}
                )

        run_in_threads(8, record)
        assert dict(harness.store.cooccurrence(ACCOUNT, ["t1"])) == {
            ("t1", "t2"): AccessCount(80, 79)
        }

    def test_an_access_batch_records_each_of_its_parts(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2", "t3")
        met, counts = (
            {("t2", "t1"): AccessCount(2, 7), ("t1", "t9"): AccessCount(1, 1)},
            {"t1": AccessCount(3, 9), "t9": AccessCount(1, 1)},
        )
        recalls = [
            AccessRecord(thread, at, query="q") for at in range(4) for thread in ("t3", "t1", "t9")
        ]
        tasks = [ReviewTask(thread, ReviewReason.RECALL, 0.5, 4) for thread in ("t2", "t9", "t2")]
        for _ in range(2):
            harness.store.record_accesses(ACCOUNT, AccessBatch(counts, met, recalls, 3, tasks, 10))
        assert dict(harness.store.access_counts(ACCOUNT, ["t1", "t9"])) == {"t1": AccessCount(6, 9)}
        assert dict(harness.store.cooccurrence(ACCOUNT, ["t1"])) == {
            ("t1", "t2"): AccessCount(4, 7)
        }
        assert [access.at for access in harness.store.access_history(ACCOUNT, "t1").records] == [
            2,
            3,
            3,
        ]
        assert [state.count for state in harness.store.access_history(ACCOUNT, "t3").states] == [
            6,
            7,
            8,
        ]
        assert [
            (task.thread, task.priority, task.due) for task in harness.store.list_tasks(ACCOUNT)
        ] == [("t2", 0.5, 4)]

    def test_accesses_are_not_logged_when_none_are_kept(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1")
        harness.store.record_accesses(
            ACCOUNT, AccessBatch(records=[AccessRecord("t1", 1)], keep_per_thread=10)
        )
        harness.store.record_accesses(
            ACCOUNT, AccessBatch({"t1": AccessCount(1, 2)}, records=[AccessRecord("t1", 2)])
        )
        assert [access.at for access in harness.store.access_history(ACCOUNT, "t1").records] == [1]
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {"t1": AccessCount(1, 2)}

    def test_an_invalid_access_batch_records_nothing(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2", "t3")
        parts = (
            {("t1", "t2"): AccessCount(1, 1)},
            [AccessRecord("t1", 1), AccessRecord("t2", 1, query=LONE_SURROGATE)],
        )
        before = dump_side_data(harness)
        with pytest.raises(InvalidInput):
            harness.store.record_accesses(
                ACCOUNT,
                AccessBatch(
                    {"t1": AccessCount(1, 1)},
                    *parts,
                    10,
                    [ReviewTask("t1", ReviewReason.RECALL)],
                    0,
                ),
            )
        assert dict(harness.store.access_counts(ACCOUNT, ["t1"])) == {}
        assert dump_side_data(harness) == before

    def test_accesses_are_returned_unchanged_oldest_first(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2")
        late, early = (
            AccessRecord("t1", 20, 1, 0.25, "abc", AccessOutcome.CITED),
            AccessRecord("t1", 10),
        )
        others = [AccessRecord("t2", 5), AccessRecord("t9", 5), AccessRecord(LONE_SURROGATE, 5)]
        harness.store.record_accesses(
            ACCOUNT, AccessBatch(records=[late, *others], keep_per_thread=10)
        )
        harness.store.record_accesses(ACCOUNT, AccessBatch(records=[early], keep_per_thread=10))
        assert list(harness.store.access_history(ACCOUNT, "t1").records) == [early, late]
        assert list(harness.store.access_history(ACCOUNT, "t2").records) == [AccessRecord("t2", 5)]
        for account, thread in ((ACCOUNT, "t9"), (ACCOUNT, LONE_SURROGATE), (OTHER_ACCOUNT, "t1")):
            assert list(harness.store.access_history(account, thread).records) == []
            assert list(harness.store.access_history(account, thread).states) == []

    def test_each_access_opens_a_stronger_state(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2")
        harness.store.record_accesses(
            ACCOUNT,
            AccessBatch(
                records=[AccessRecord("t1", 10), AccessRecord("t2", 15)], keep_per_thread=10
            ),
        )
        harness.store.record_accesses(
            ACCOUNT,
            AccessBatch(
                records=[AccessRecord("t1", 20), AccessRecord("t1", 30)], keep_per_thread=10
            ),
        )
        assert list(harness.store.access_history(ACCOUNT, "t1").states) == [
            AccessState("t1", 10, 20, 1, 0.1),
            AccessState("t1", 20, 30, 2, 0.2),
            AccessState("t1", 30, NEVER, 3, 0.3),
        ]
        assert list(harness.store.access_history(ACCOUNT, "t2").states) == [
            AccessState("t2", 15, NEVER, 1, 0.1)
        ]

    def test_a_late_access_opens_no_earlier_state(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1")
        harness.store.record_accesses(
            ACCOUNT,
            AccessBatch(
                records=[AccessRecord("t1", 20), AccessRecord("t1", 10)], keep_per_thread=10
            ),
        )
        states = [
            (state.since, state.until, state.count)
            for state in harness.store.access_history(ACCOUNT, "t1").states
        ]
        assert states == [(20, 20, 1), (20, NEVER, 2)]

    def test_newest_accesses_are_kept_and_strength_is_capped_at_one(
        self, harness: AccountHarness
    ) -> None:
        add_threads(harness, "t1", "t2")
        harness.store.record_accesses(
            ACCOUNT, AccessBatch(records=[AccessRecord("t2", 1)], keep_per_thread=3)
        )
        for at in range(12):
            harness.store.record_accesses(
                ACCOUNT, AccessBatch(records=[AccessRecord("t1", at)], keep_per_thread=3)
            )
        assert [access.at for access in harness.store.access_history(ACCOUNT, "t1").records] == [
            9,
            10,
            11,
        ]
        states = list(harness.store.access_history(ACCOUNT, "t1").states)
        assert [(state.since, state.until, state.count) for state in states] == [
            (9, 10, 10),
            (10, 11, 11),
            (11, NEVER, 12),
        ]
        assert states[-1].strength == 1.0
        assert (
            len(harness.store.access_history(ACCOUNT, "t2").records)
            == len(harness.store.access_history(ACCOUNT, "t2").states)
            == 1
        )
