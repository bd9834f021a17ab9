"""Laws of what is beside the ledger: the clock of a conversation, what reads leave behind, what consumers note."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from told.errors import Conflict, InvalidInput
from told.model.entry import Asserted, Claim, Draft, Evidence, Observed, Ruled
from told.model.fact import NEVER, Tick
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
from told.ports import VIEWS, Batch, CursorStep
from told.testing.contract.erasure import erase_entries
from told.testing.contract.harness import ACCOUNT, ALICE, BOB, AccountHarness, ContractBase

OTHER_ACCOUNT = "umbrella"
ALICE_AGENT_RUN = Scope(ACCOUNT, user_id="alice", agent_id="clerk", run_id="r1")
OVERLAY_RESET_DRAFT = Draft(Ruled("ledger", "reset", {}), None)
LONE_SURROGATE = "\ud800"


def add_turn(
    harness: AccountHarness,
    content: str,
    scope: Scope = ALICE,
    role: str = "user",
    **evidence: object,
) -> int:
    """A turn somebody said; the position of its evidence."""
    turn = Evidence(content, role=role, **{"sort": "turn", **evidence})  # type: ignore[arg-type]
    [entry] = harness.commit(Observed(harness.store.mint.new_id(), turn), scope=scope)
    return entry.seq


def add_threads(harness: AccountHarness, *threads: str) -> None:
    """Threads with a version each."""
    harness.commit(*(Asserted(thread, Claim(f"fact of {thread}")) for thread in threads))


def commit_step(
    harness: AccountHarness, before: int, notes: Mapping[str, bytes | None], *drafts: Draft
) -> None:
    """A commit that moves the consumer `topics` one on and notes something with it."""
    batch = Batch(
        harness.account, drafts, step=CursorStep("topics", before, before + 1), notes=notes
    )
    harness.store.commit(batch, harness.folding(VIEWS))


def dump_overlay(harness: AccountHarness, account: str = ACCOUNT) -> tuple[object, ...]:
    """All that is beside the ledger of t1, t2 and t3."""
    store, threads = harness.store, ("t1", "t2", "t3")
    return (
        dict(store.cooccurrence(account, threads)),
        [list(store.access_history(account, thread).records) for thread in threads],
        [state for t in threads for state in store.access_history(account, t).states],
        list(store.list_tasks(account)),
        dict(store.read_notes(account, "topics")),
    )


def fill_overlay(harness: AccountHarness, account: str = ACCOUNT) -> None:
    """Something of every sort about t1, t2 and t3."""
    store = harness.store
    harness.record_cooccurrence(
        account,
        {
            ("t1", "t2"): AccessCount(1, 1),
            ("t3", "t1"): AccessCount(2, 2),
            ("t2", "t3"): AccessCount(3, 3),
        },
    )
    store.record_accesses(
        account,
        AccessBatch(
            records=[AccessRecord(thread, 5, query="q") for thread in ("t1", "t2", "t3")],
            keep_per_thread=10,
        ),
    )
    harness.enqueue_tasks(
        account, [ReviewTask(thread, ReviewReason.RECALL) for thread in ("t1", "t2", "t3")], 0
    )
    store.update_consumer(account, "topics", notes={"t1": b"one", "t2": b"two", "all": b"three"})


def run_in_threads(count: int, work: Callable[[int], object]) -> list[object]:
    """What some threads make of the same moment."""
    gate = Barrier(count)

    def run_one(number: int) -> object:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run_one, range(count)))


class OverlayContract(ContractBase):
    """Ticks are a view; the rest is beside the ledger, and goes with what it belongs to."""

    # Ticks

    def test_user_turns_are_ticks_and_agent_turns_are_not(self, harness: AccountHarness) -> None:
        first = add_turn(harness, "one two three four")
        add_turn(harness, "an answer", role="assistant")
        add_turn(harness, "a document", sort="document")
        second = add_turn(harness, "", sort="tick", meta={"turns": 3, "tokens": 90})
        ats = [entry.at for entry in harness.list_entries() if entry.seq in (first, second)]
        ticks = list(harness.list_ticks(ALICE))
        assert [(tick.seq, tick.scope, tick.turns, tick.at) for tick in ticks] == [
            (first, ALICE, 1, ats[0]),
            (second, ALICE, 3, ats[1]),
        ]
        assert (ticks[0].tokens > 0, ticks[1].tokens) == (True, 90)

    def test_ticks_are_shared_by_all_runs_of_a_home(self, harness: AccountHarness) -> None:
        alice_seq, agent_seq, bob_seq = (
            add_turn(harness, "a"),
            add_turn(harness, "b", ALICE_AGENT_RUN),
            add_turn(harness, "c", BOB),
        )
        for scope in (
            ALICE,
            ALICE_AGENT_RUN,
            Scope(ACCOUNT, user_id="alice", agent_id="nobody yet"),
        ):
            assert [(tick.seq, tick.scope) for tick in harness.list_ticks(scope)] == [
                (alice_seq, ALICE),
                (agent_seq, ALICE_AGENT_RUN),
            ]
        assert [tick.seq for tick in harness.list_ticks(BOB)] == [bob_seq]
        for empty_scope in (
            Scope(ACCOUNT, user_id="nobody"),
            Scope(OTHER_ACCOUNT, user_id="alice"),
            Scope(ACCOUNT, user_id=LONE_SURROGATE),
        ):
            assert list(harness.list_ticks(empty_scope)) == []

    def test_ticks_up_to_a_position_are_the_newest_in_order(self, harness: AccountHarness) -> None:
        seqs = [add_turn(harness, f"turn {number}") for number in range(6)]
        assert [tick.seq for tick in harness.list_ticks(ALICE, limit=2)] == seqs[-2:]
        assert [tick.seq for tick in harness.list_ticks(ALICE, seqs[3], 2)] == seqs[2:4]
        assert [tick.seq for tick in harness.list_ticks(ALICE, seqs[0])] == seqs[:1]
        assert [tick.seq for tick in harness.list_ticks(ALICE, 1 << 50)] == seqs
        assert (
            list(harness.list_ticks(ALICE, 0)),
            list(harness.list_ticks(ALICE, limit=0)),
        ) == ([], [])

    def test_tick_totals_are_summed_up_to_each_position(self, harness: AccountHarness) -> None:
        first = add_turn(harness, "", sort="tick", meta={"turns": 1, "tokens": 10})
        add_turn(harness, "", BOB, sort="tick", meta={"turns": 50, "tokens": 50})
        second = add_turn(harness, "", ALICE_AGENT_RUN, sort="tick", meta={"turns": 4, "tokens": 0})
        last = add_turn(harness, "", sort="tick", meta={"turns": 2, "tokens": 7})
        places = [last, 0, first, second - 1, second, 1 << 50, NEVER, last]
        assert dict(harness.store.tick_totals(ALICE_AGENT_RUN, places).totals) == {
            0: (0, 0),
            first: (1, 10),
            second - 1: (1, 10),
            second: (5, 10),
            last: (7, 17),
            1 << 50: (7, 17),
            NEVER: (7, 17),
        }
        assert dict(harness.store.tick_totals(ALICE, []).totals) == {}
        for empty_scope in (
            Scope(ACCOUNT, user_id="nobody"),
            Scope(OTHER_ACCOUNT, user_id="alice"),
            Scope(ACCOUNT, user_id=LONE_SURROGATE),
        ):
            assert dict(harness.store.tick_totals(empty_scope, [last]).totals) == {last: (0, 0)}
        erase_entries(harness, [first])
        assert dict(harness.store.tick_totals(ALICE, [last]).totals) == {last: (6, 7)}

    def test_erased_turns_are_not_ticks_even_after_a_rebuild(self, harness: AccountHarness) -> None:
        seqs = [
            add_turn(harness, f"turn {number}", scope)
            for number, scope in enumerate((ALICE, ALICE_AGENT_RUN, BOB, ALICE))
        ]
        erase_entries(harness, [seqs[0], seqs[2]])
        rows_before = harness.dump_views()
        assert [tick.seq for tick in harness.list_ticks(ALICE)] == [seqs[1], seqs[3]]
        assert list(harness.list_ticks(BOB)) == []
        assert len(rows_before["ticks"]) == 2
        assert harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))["ticks"] == 2
        assert harness.dump_views() == rows_before
        assert [tick.seq for tick in harness.list_ticks(ALICE)] == [seqs[1], seqs[3]]

    def test_ticks_can_be_rebuilt_alone_and_no_view_is_stale(self, harness: AccountHarness) -> None:
        add_turn(harness, "one")
        before: Sequence[Tick] = list(harness.list_ticks(ALICE))
        assert harness.store.rebuild(ACCOUNT, ["ticks"], harness.folding(["ticks"])) == {"ticks": 1}
        assert list(harness.list_ticks(ALICE)) == before
        assert (
            list(harness.store.list_accounts().get(ACCOUNT, ()))
            == list(harness.store.list_accounts().get(OTHER_ACCOUNT, ()))
            == []
        )

    def test_imported_turns_are_ticks(
        self, harness: AccountHarness, open_harness: Callable[[], AccountHarness]
    ) -> None:
        seqs = [add_turn(harness, "one"), add_turn(harness, "two")]
        other = open_harness()
        other.store.import_entries(ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert list(other.list_ticks(ALICE)) == list(harness.list_ticks(ALICE))
        erase_entries(harness, seqs[:1])
        other.store.import_entries(ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert [tick.seq for tick in other.list_ticks(ALICE)] == seqs[1:]

    # Topics that came up together

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

    # What reads leave behind

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
        before = dump_overlay(harness)
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
        assert dump_overlay(harness) == before

    # Recalls one by one

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

    # What is to be thought over

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

    # What consumers note for themselves

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

    # All of it

    def test_erasing_a_thread_deletes_its_overlay_data(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2", "t3")
        fill_overlay(harness)
        erase_entries(harness, [1])
        met, recalls, states, tasks, notes = dump_overlay(harness)
        assert met == {("t2", "t3"): AccessCount(3, 3)}
        assert recalls == [
            [],
            [AccessRecord("t2", 5, query="q")],
            [AccessRecord("t3", 5, query="q")],
        ]
        assert isinstance(states, list)
        assert isinstance(tasks, list)
        assert [state.thread for state in states] == [task.thread for task in tasks] == ["t2", "t3"]
        assert notes == {"all": b"three", "t2": b"two"}
        fill_overlay(harness)
        assert dict(harness.store.cooccurrence(ACCOUNT, ["t1"])) == {}
        assert not [
            *harness.store.access_history(ACCOUNT, "t1").records,
            *harness.store.access_history(ACCOUNT, "t1").states,
        ]
        assert "t1" not in {task.thread for task in harness.store.list_tasks(ACCOUNT)}

    def test_an_imported_tombstone_deletes_overlay_data(self, harness: AccountHarness) -> None:
        other = self.use_account(harness, OTHER_ACCOUNT)
        add_threads(harness, "t1", "t2", "t3")
        other.store.import_entries(OTHER_ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        fill_overlay(harness, OTHER_ACCOUNT)
        erase_entries(harness, [1, 2, 3])
        other.store.import_entries(OTHER_ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert dump_overlay(harness, OTHER_ACCOUNT) == ({}, [[], [], []], [], [], {"all": b"three"})

    def test_a_reset_deletes_the_overlay_of_one_account(self, harness: AccountHarness) -> None:
        other = self.use_account(harness, OTHER_ACCOUNT)
        other.commit(
            *(Asserted(f"t{n}", Claim("x")) for n in (1, 2, 3)),
            scope=Scope(OTHER_ACCOUNT, user_id="alice"),
        )
        add_threads(harness, "t1", "t2", "t3")
        add_turn(harness, "one")
        for account in (ACCOUNT, OTHER_ACCOUNT):
            fill_overlay(harness, account)
        other_overlay = dump_overlay(harness, OTHER_ACCOUNT)
        harness.store.reset(ACCOUNT, OVERLAY_RESET_DRAFT)
        add_threads(harness, "t1", "t2", "t3")
        assert dump_overlay(harness) == ({}, [[], [], []], [], [], {})
        assert list(harness.list_ticks(ALICE)) == []
        assert dump_overlay(harness, OTHER_ACCOUNT) == other_overlay

    def test_overlay_data_is_independent_of_ledger_and_views(self, harness: AccountHarness) -> None:
        add_threads(harness, "t1", "t2", "t3")
        add_turn(harness, "one")
        before = (
            harness.store.get_head(ACCOUNT),
            list(harness.list_entries()),
            harness.dump_views(),
            harness.search_texts("fact"),
        )
        fill_overlay(harness)
        overlay_before = dump_overlay(harness)
        assert (
            harness.store.get_head(ACCOUNT),
            list(harness.list_entries()),
            harness.dump_views(),
            harness.search_texts("fact"),
        ) == before
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert dump_overlay(harness) == overlay_before
        assert list(harness.store.check_integrity()) == []
