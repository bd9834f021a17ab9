"""Laws of consumers: cursors, notes, faults and tasks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from told.errors import Conflict, InvalidInput
from told.model.entry import Asserted, Claim, Draft
from told.model.query import (
    ReviewReason,
    ReviewTask,
)
from told.ports import (
    VIEWS,
    Batch,
    CursorStep,
)
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    LONE_SURROGATE,
    OTHER_ACCOUNT,
    AccountHarness,
    ContractBase,
    add_threads,
    run_in_threads,
)
from told.testing.fakes import ManualClock


def commit_step(
    harness: AccountHarness, before: int, notes: Mapping[str, bytes | None], *drafts: Draft
) -> None:
    """Commit a cursor step of the consumer `topics` with notes."""
    batch = Batch(
        harness.account, drafts, step=CursorStep("topics", before, before + 1), notes=notes
    )
    harness.store.commit(batch, harness.folding(VIEWS))


class QueueContract(ContractBase):
    """Consumer state moves with its effects, and a task has one worker at a time."""

    def test_a_cursor_starts_at_zero_and_stays_where_set(self, harness: AccountHarness) -> None:
        harness.assert_claim("one")
        store = harness.store
        assert store.get_cursor(ACCOUNT, "graph") == 0
        store.update_consumer(ACCOUNT, "graph", cursor=1)
        store.update_consumer("umbrella", "graph", cursor=7)
        assert store.get_cursor(ACCOUNT, "graph") == 1
        assert store.get_cursor(ACCOUNT, "tree") == 0
        assert store.get_cursor("umbrella", "graph") == 7
        store.update_consumer(ACCOUNT, "graph", cursor=0)
        assert store.get_cursor(ACCOUNT, "graph") == 0

    def test_setting_a_cursor_creates_no_ledger(self, harness: AccountHarness) -> None:
        harness.store.update_consumer(ACCOUNT, "graph", cursor=0)
        assert list(harness.store.list_accounts()) == []

    def test_a_write_does_not_move_a_cursor(self, harness: AccountHarness) -> None:
        harness.store.update_consumer(ACCOUNT, "graph", cursor=0)
        harness.assert_claim("one")
        harness.store.update_consumer(ACCOUNT, "graph", cursor=1)
        harness.assert_claim("two")
        assert harness.store.get_cursor(ACCOUNT, "graph") == 1

    def test_a_cursor_step_commits_with_its_batch_or_not_at_all(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("one")
        store, draft = harness.store, Draft(Asserted("t9", Claim("made of one")), ALICE)
        store.commit(
            Batch(ACCOUNT, [draft], step=CursorStep("facts", 0, 1)), harness.folding(VIEWS)
        )
        assert store.get_cursor(ACCOUNT, "facts") == 1
        with pytest.raises(Conflict):
            store.commit(
                Batch(ACCOUNT, [draft], step=CursorStep("facts", 0, 1)), harness.folding(VIEWS)
            )
        assert store.get_head(ACCOUNT).seq == 2
        store.commit(Batch(ACCOUNT, [], step=CursorStep("facts", 1, 2)), harness.folding(VIEWS))
        assert (store.get_cursor(ACCOUNT, "facts"), store.get_head(ACCOUNT).seq) == (2, 2)

    def test_a_fault_counts_its_attempts(self, harness: AccountHarness, clock: ManualClock) -> None:
        harness.assert_claim("one")
        store = harness.store
        store.record_fault(ACCOUNT, "graph", 1, "no answer")
        clock.tick()
        store.record_fault(ACCOUNT, "graph", 1, "garbled")
        store.record_fault(ACCOUNT, "tree", 1, "too deep")
        store.record_fault("umbrella", "tree", 1, "theirs")
        kept = [
            (
                kept_fault.account,
                kept_fault.consumer,
                kept_fault.seq,
                kept_fault.error,
                kept_fault.attempts,
            )
            for kept_fault in store.list_faults(ACCOUNT)
        ]
        assert kept == [(ACCOUNT, "graph", 1, "garbled", 2), (ACCOUNT, "tree", 1, "too deep", 1)]
        assert [fault.at for fault in store.list_faults(ACCOUNT)] == [clock.now] * 2
        assert (
            len(
                {
                    fault.id
                    for account in (ACCOUNT, "umbrella")
                    for fault in store.list_faults(account)
                }
            )
            == 3
        )

    def test_a_fault_keeps_the_raw_reply_until_resolved(self, harness: AccountHarness) -> None:
        harness.assert_claim("one")
        store = harness.store
        store.record_fault(ACCOUNT, "facts", 1, "garbled", '["a", "b')
        store.record_fault(ACCOUNT, "tree", 1, "too deep")
        store.record_fault("umbrella", "tree", 1, "theirs")
        facts, tree = store.list_faults(ACCOUNT)
        assert (facts.raw, tree.raw) == ('["a", "b', "")
        assert (
            store.clear_faults(ACCOUNT, [facts.id, store.list_faults("umbrella")[0].id, 10_000])
            == 1
        )
        assert [fault.consumer for fault in store.list_faults(ACCOUNT)] == ["tree"]
        assert len(store.list_faults("umbrella")) == 1
        assert store.clear_faults(ACCOUNT, []) == 0

    def test_notes_belong_to_one_consumer(self, harness: AccountHarness) -> None:
        harness.store.update_consumer(
            ACCOUNT, "topics", notes={"a": b"\x00\xff", "b": b"", "c": b"old"}
        )
        harness.store.update_consumer(
            ACCOUNT, "topics", notes={"b": None, "c": b"new", "never": None}
        )
        assert dict(harness.store.read_notes(ACCOUNT, "topics")) == {"a": b"\x00\xff", "c": b"new"}
        assert dict(harness.store.read_notes(ACCOUNT, "topics", ["c", "b", LONE_SURROGATE])) == {
            "c": b"new"
        }
        assert (
            dict(harness.store.read_notes(ACCOUNT, "topics", []))
            == dict(harness.store.read_notes(ACCOUNT, "other"))
            == {}
        )
        assert (
            dict(harness.store.read_notes(OTHER_ACCOUNT, "topics"))
            == dict(harness.store.read_notes(ACCOUNT, LONE_SURROGATE))
            == {}
        )
        with pytest.raises(InvalidInput):
            harness.store.update_consumer(
                ACCOUNT, "topics", notes={"d": b"x", LONE_SURROGATE: b"x"}
            )
        assert "d" not in harness.store.read_notes(ACCOUNT, "topics")

    def test_notes_commit_with_their_step_or_not_at_all(self, harness: AccountHarness) -> None:
        commit_step(harness, 0, {"a": b"1", "b": b"1"}, Draft(Asserted("t1", Claim("tea")), ALICE))
        commit_step(harness, 1, {"a": None, "b": b"2"})
        assert (
            harness.store.get_cursor(ACCOUNT, "topics"),
            dict(harness.store.read_notes(ACCOUNT, "topics")),
        ) == (2, {"b": b"2"})
        with pytest.raises(Conflict):
            commit_step(harness, 1, {"b": b"3"})
        with pytest.raises(InvalidInput):
            commit_step(
                harness,
                2,
                {"b": b"3", LONE_SURROGATE: b"3"},
                Draft(Asserted("t2", Claim("mate")), ALICE),
            )
        assert (
            harness.store.get_cursor(ACCOUNT, "topics"),
            dict(harness.store.read_notes(ACCOUNT, "topics")),
        ) == (2, {"b": b"2"})
        assert harness.list_texts() == ["tea"]

    def test_notes_without_a_step_are_refused(self) -> None:
        with pytest.raises(InvalidInput):
            Batch(ACCOUNT, [], notes={"a": b"1"})

    def test_tasks_are_ordered_by_priority_then_due_time(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2", "t3")
        tasks = [
            ReviewTask("t1", ReviewReason.RECALL, 0.5, 30),
            ReviewTask("t2", ReviewReason.RECALL, 0.5, 10),
            ReviewTask("t3", ReviewReason.EXPLICIT, 0.9, 90),
            ReviewTask("t9", ReviewReason.RECALL, 1.0),
            ReviewTask(LONE_SURROGATE, ReviewReason.RECALL, 1.0),
        ]
        assert harness.enqueue_tasks(ACCOUNT, tasks, 0) == 3
        queued = harness.store.list_tasks(ACCOUNT)
        assert [task.thread for task in queued] == ["t3", "t2", "t1"]
        assert [task.thread for task in harness.store.list_tasks(ACCOUNT, 1)] == ["t3"]
        assert len({task.id for task in queued} - {0}) == 3
        assert harness.store.get_stats(ACCOUNT)["tasks"] == 3
        assert (
            harness.enqueue_tasks(OTHER_ACCOUNT, tasks, 0)
            == len(harness.store.list_tasks(OTHER_ACCOUNT))
            == 0
        )
        assert harness.store.get_stats(OTHER_ACCOUNT)["tasks"] == 0

    def test_tasks_within_the_window_merge_with_the_higher_priority(
        self, harness: AccountHarness
    ) -> None:
        add_threads(harness, "t1", "t2")
        tasks = [
            ReviewTask("t1", ReviewReason.RECALL, 0.2, 100),
            ReviewTask("t1", ReviewReason.RECALL, 0.7, 150),
        ]
        assert harness.enqueue_tasks(ACCOUNT, tasks, 50) == 1
        assert (
            harness.enqueue_tasks(ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL, 0.1, 50)], 50)
            == 0
        )
        [task] = harness.store.list_tasks(ACCOUNT)
        assert (task.due, task.priority) == (50, 0.7)
        others = [
            ReviewTask("t1", ReviewReason.RECALL, due=-1),
            ReviewTask("t1", ReviewReason.EXPLICIT, due=100),
            ReviewTask("t2", ReviewReason.RECALL),
        ]
        assert harness.enqueue_tasks(ACCOUNT, others, 50) == 3

    def test_unclaimed_tasks_merge_however_long_they_wait(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1")
        for due in range(0, 5000, 100):
            harness.enqueue_tasks(
                ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL, due / 5000, due)], 50
            )
        [task] = harness.store.list_tasks(ACCOUNT)
        assert (task.due, task.priority) == (0, 0.98)

    def test_a_claimed_task_merges_only_within_the_window(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1")
        harness.enqueue_tasks(ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL, due=100)], 50)
        [claimed] = harness.store.claim_tasks(ACCOUNT, 100, 9, 20)
        assert (
            harness.enqueue_tasks(ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL, due=150)], 50)
            == 0
        )
        assert (
            harness.enqueue_tasks(ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL, due=151)], 50)
            == 1
        )
        assert (
            harness.enqueue_tasks(ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL, due=999)], 50)
            == 0
        )
        assert [
            (task.id == claimed.id, task.due) for task in harness.store.list_tasks(ACCOUNT)
        ] == [(True, 100), (False, 151)]

    def test_a_claimed_task_is_exclusive_until_its_lease_expires(
        self, harness: AccountHarness
    ) -> None:
        add_threads(harness, "t1", "t2", "t3")
        specs = (("t1", 0.1, 10), ("t2", 0.9, 10), ("t3", 1.0, 99))
        harness.enqueue_tasks(
            ACCOUNT,
            [
                ReviewTask(thread, ReviewReason.RECALL, priority, due)
                for thread, priority, due in specs
            ],
            0,
        )
        [first] = harness.store.claim_tasks(ACCOUNT, 50, 1, 20)
        assert (first.thread, first.claimed, first.attempts) == ("t2", 50, 1)
        assert [task.thread for task in harness.store.claim_tasks(ACCOUNT, 60, 9, 20)] == ["t1"]
        assert list(harness.store.claim_tasks(ACCOUNT, 70, 9, 20)) == []
        [again] = harness.store.claim_tasks(ACCOUNT, 71, 9, 20)
        assert (again.id, again.claimed, again.attempts) == (first.id, 71, 2)
        assert {task.thread: task.claimed for task in harness.store.list_tasks(ACCOUNT)} == {
            "t3": 0,
            "t2": 71,
            "t1": 60,
        }
        assert (
            list(harness.store.claim_tasks(OTHER_ACCOUNT, 999, 9, 20))
            == list(harness.store.claim_tasks(ACCOUNT, 999, 0, 20))
            == []
        )

    def test_a_task_is_open_until_it_is_done(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2")
        harness.enqueue_tasks(
            ACCOUNT,
            [ReviewTask("t1", ReviewReason.RECALL), ReviewTask("t2", ReviewReason.RECALL)],
            0,
        )
        [task, other] = harness.store.claim_tasks(ACCOUNT, 50, 9, 20)
        assert harness.enqueue_tasks(ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL)], 0) == 0
        assert (
            harness.store.complete_tasks(OTHER_ACCOUNT, [task.id])
            == harness.store.complete_tasks(ACCOUNT, [])
            == 0
        )
        assert harness.store.complete_tasks(ACCOUNT, [task.id, 999]) == 1
        assert [remaining.id for remaining in harness.store.list_tasks(ACCOUNT)] == [other.id]
        assert harness.enqueue_tasks(ACCOUNT, [ReviewTask("t1", ReviewReason.RECALL)], 0) == 1
        assert task.id not in {queued.id for queued in harness.store.list_tasks(ACCOUNT)}

    def test_no_two_workers_get_the_same_task(self, harness: AccountHarness) -> None:
        names = [f"t{number}" for number in range(40)]
        add_threads(harness, *names)
        harness.enqueue_tasks(ACCOUNT, [ReviewTask(name, ReviewReason.RECALL) for name in names], 0)
        claims = run_in_threads(
            2,
            lambda _: [
                task.id for _ in range(10) for task in harness.store.claim_tasks(ACCOUNT, 50, 3, 20)
            ],
        )
        ids = [
            id_ for claimed_ids in claims if isinstance(claimed_ids, list) for id_ in claimed_ids
        ]
        assert sorted(ids) == sorted(task.id for task in harness.store.list_tasks(ACCOUNT))
        assert len(ids) == len(set(ids)) == 40
