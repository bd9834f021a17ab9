"""Laws of integrity checks, statistics, closing, and data beside the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from told.errors import StoreClosed
from told.model.entry import Asserted, Claim, Draft, Erased, Evidence, Observed, Ruled
from told.model.fact import Passage
from told.model.query import (
    AccessBatch,
    AccessCount,
    AccessRecord,
    IndexQuery,
)
from told.model.scope import Scope
from told.ports import (
    VIEWS,
    Batch,
    CloseThread,
    EndVersion,
    RowOp,
    Store,
    ViewRow,
)
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    OTHER_ACCOUNT,
    AccountHarness,
    ContractBase,
    add_threads,
    add_turn,
    dump_side_data,
    erase_entries,
    fill_side_data,
    make_idempotency_record,
)

RESET_DRAFT = Draft(Ruled("ledger", "reset", {}), None)

STORE_CALLS: dict[str, Callable[[Store, AccountHarness], Any]] = {
    "commit": lambda s, b: s.commit(
        Batch(ACCOUNT, [Draft(Asserted("t", Claim("x")), ALICE)]), b.folding(VIEWS)
    ),
    "adopt": lambda s, b: s.import_entries(ACCOUNT, [], b.folding(VIEWS)),
    "erase": lambda s, _: s.erase(ACCOUNT, [], Draft(Erased(()), None)),
    "reset": lambda s, _: s.reset(ACCOUNT, Draft(Ruled("a", "b", {}), None)),
    "rebuild": lambda s, b: s.rebuild(ACCOUNT, VIEWS, b.folding(VIEWS)),
    "accounts": lambda s, _: s.list_accounts(),
    "head": lambda s, _: s.get_head(ACCOUNT),
    "scan": lambda s, _: s.scan_entries(ACCOUNT),
    "held": lambda s, _: s.current_facts(ALICE, 0, slots=[("x", "y")], kinds=["z"]),
    "known": lambda s, _: s.lookup_existing(ALICE, ["x"], [b"x"], "x"),
    "fact": lambda s, _: s.get_fact(ACCOUNT, "t"),
    "links": lambda s, _: s.find_links(ACCOUNT, ["t"]),
    "witnesses": lambda s, _: s.evidence_rows(ACCOUNT, scope=ALICE),
    "folded": lambda s, _: s.rows_between(ACCOUNT, 0, 9),
    "model": lambda s, _: s.current_model(),
    "use_model": lambda s, _: s.bind_model("m", 2),
    "pending": lambda s, _: s.pending_texts(),
    "put_vectors": lambda s, _: s.put_vectors({b"x": [1.0]}, "m"),
    "cursor": lambda s, _: s.get_cursor(ACCOUNT, "c"),
    "fault": lambda s, _: s.record_fault(ACCOUNT, "c", 1, "x"),
    "faults": lambda s, _: s.list_faults(ACCOUNT),
    "scopes": lambda s, _: s.list_scopes(ACCOUNT),
    "tallies": lambda s, _: s.scope_tallies(ACCOUNT),
    "settle": lambda s, _: s.clear_faults(ACCOUNT, [1]),
    "touched": lambda s, _: s.access_counts(ACCOUNT, ["t"]),
    "write_down": lambda s, _: s.record_accesses(ACCOUNT, AccessBatch({"t": AccessCount(1, 1)})),
    "met": lambda s, _: s.cooccurrence(ACCOUNT, ["t"]),
    "queue": lambda s, _: s.list_tasks(ACCOUNT),
    "claim": lambda s, _: s.claim_tasks(ACCOUNT, 1, 1, 1),
    "done": lambda s, _: s.complete_tasks(ACCOUNT, [1]),
    "notes": lambda s, _: s.read_notes(ACCOUNT, "c"),
    "check": lambda s, _: s.check_integrity(),
    "stats": lambda s, _: s.get_stats(ACCOUNT),
    "tombstones": lambda s, _: s.tombstoned_digests([b"x"]),
    "versions": lambda s, _: s.find_versions(ACCOUNT, seqs=[1]),
    "versions of a scope": lambda s, _: s.find_versions(ACCOUNT, scope=ALICE),
    "switch the model": lambda s, _: s.bind_model("m", 2, switch=True),
    "a cursor": lambda s, _: s.update_consumer(ACCOUNT, "c", cursor=1),
    "a note": lambda s, _: s.update_consumer(ACCOUNT, "c", notes={"k": b"x"}),
    "blobs": lambda s, _: s.get_blobs(ACCOUNT),
    "ticks": lambda s, _: s.tick_totals(ALICE, [1], 1),
    "access history": lambda s, _: s.access_history(ACCOUNT, "t"),
    "turns": lambda s, _: s.list_turns(ALICE),
}


class MaintenanceContract(ContractBase):
    """A store reports its state, and refuses calls once it is closed."""

    def test_stored_rows_equal_the_folded_entries(self, harness: AccountHarness) -> None:
        harness.commit(Observed("e1", Evidence("hi", role="user", source="chat")))
        harness.assert_claim("lives in Rome", "home", actor="Ann", evidence="e1")
        harness.assert_claim(
            "since May", "may", actor="Ann", after="home", meta={"abstract": "May"}
        )
        harness.add_link("home", "relates_to", "may")
        harness.commit(Observed("e2", Evidence("ho", role="user")), scope=BOB)
        folded = _to_stored_rows(harness.folding(VIEWS)(harness.list_entries()))
        for after in range(harness.head_seq + 1):
            for upto in range(after, harness.head_seq + 1):
                rows = harness.store.rows_between(ACCOUNT, after, upto)
                assert _sort_rows(rows) == _sort_rows(
                    [row for row in folded if after < row.seq <= upto]
                )
        assert len(folded) == 10
        assert harness.store.rows_between("umbrella", 0, 99) == []

    def test_a_passage_does_not_follow_an_erased_turn(self, harness: AccountHarness) -> None:
        harness.assert_claim("lives in Rome", "home", actor="Ann")
        harness.assert_claim("since May", "may", actor="Ann", after="home")
        erase_entries(harness, [1])
        [passage] = [
            row for row in harness.store.rows_between(ACCOUNT, 0, 9) if isinstance(row, Passage)
        ]
        assert (passage.seq, passage.after) == (2, None)

    def test_a_rebuild_repairs_orphaned_tickets_and_cursors(self, harness: AccountHarness) -> None:
        harness.commit(
            Asserted("t1", Claim("one")), idempotency=make_idempotency_record("good", "t1")
        )
        harness.store.update_consumer(ACCOUNT, "c", cursor=1)
        assert list(harness.store.check_integrity()) == []
        harness.commit(
            Asserted("t2", Claim("two")), idempotency=make_idempotency_record("bad", "nobody")
        )
        assert len(harness.store.check_integrity()) == 1
        harness.store.update_consumer(ACCOUNT, "c", cursor=99)
        assert len(harness.store.check_integrity()) == 2
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert list(harness.store.check_integrity()) == []
        assert harness.store.get_cursor(ACCOUNT, "c") == harness.head_seq
        kept = [
            harness.store.lookup_existing(ALICE, [], [], key).idempotency for key in ("good", "bad")
        ]
        assert [found_ticket and found_ticket.key for found_ticket in kept] == ["good", None]

    def test_an_intact_store_passes_the_check(self, harness: AccountHarness) -> None:
        assert list(harness.store.check_integrity()) == []
        harness.store.bind_model("m", 2)
        harness.add_evidence("said", "e1")
        harness.assert_claim("one", "t1", evidence="e1")
        harness.assert_claim("two", "t1")
        harness.retract_thread("t1")
        erase_entries(harness, [2])
        assert list(harness.store.check_integrity()) == []

    def test_stats_count_existing_rows(self, harness: AccountHarness) -> None:
        harness.add_evidence("said", "e1")
        harness.assert_claim("one", "t1", evidence="e1")
        harness.assert_claim("two", "t1")
        harness.assert_claim("three", "t2", BOB)
        harness.assert_claim(
            "four", "t3", Scope(ACCOUNT, user_id="alice", agent_id="a", run_id="r")
        )
        harness.add_link("t3", "supports", "t1")
        erase_entries(harness, [4])
        stats = harness.store.get_stats(ACCOUNT)
        expected = {
            "entries": 7,
            "erased": 1,
            "memories": 2,
            "versions": 3,
            "links": 1,
            "evidence": 1,
            "users": 1,
            "agents": 1,
            "runs": 1,
            "faults": 0,
            "recalls": 0,
            "blobs": 0,
            "tasks": 0,
            "model": None,
            "pending_vectors": 0,
        }
        assert {name: stats.get(name, "missing") for name in expected} == expected
        harness.store.bind_model("m", 2)
        stats = harness.store.get_stats(ACCOUNT)
        assert (stats["model"], stats["pending_vectors"]) == ({"name": "m", "dim": 2}, 3)
        assert harness.store.get_stats("umbrella")["entries"] == 0

    @pytest.mark.parametrize("name", STORE_CALLS)
    def test_a_closed_store_refuses_calls(self, harness: AccountHarness, name: str) -> None:
        STORE_CALLS[name](harness.store, harness)
        harness.store.close()
        with pytest.raises(StoreClosed):
            STORE_CALLS[name](harness.store, harness)

    def test_a_closed_store_refuses_reads_of_facts(self, harness: AccountHarness) -> None:
        query = harness.build_query()
        harness.store.close()
        with pytest.raises(StoreClosed):
            harness.store.find_facts(query)
        with pytest.raises(StoreClosed):
            harness.store.index.search(IndexQuery(query, ("tea",)))

    def test_closing_twice_is_allowed(self, harness: AccountHarness) -> None:
        harness.store.close()
        harness.store.close()

    def test_erasing_a_thread_deletes_its_access_data_tasks_and_notes(
        self, harness: AccountHarness
    ) -> None:
        add_threads(harness, "t1", "t2", "t3")
        fill_side_data(harness)
        erase_entries(harness, [1])
        met, recalls, states, tasks, notes = dump_side_data(harness)
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
        fill_side_data(harness)
        assert dict(harness.store.cooccurrence(ACCOUNT, ["t1"])) == {}
        assert not [
            *harness.store.access_history(ACCOUNT, "t1").records,
            *harness.store.access_history(ACCOUNT, "t1").states,
        ]
        assert "t1" not in {task.thread for task in harness.store.list_tasks(ACCOUNT)}

    def test_an_imported_tombstone_deletes_access_data_tasks_and_notes(
        self, harness: AccountHarness
    ) -> None:
        other = self.use_account(harness, OTHER_ACCOUNT)
        add_threads(harness, "t1", "t2", "t3")
        other.store.import_entries(OTHER_ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        fill_side_data(harness, OTHER_ACCOUNT)
        erase_entries(harness, [1, 2, 3])
        other.store.import_entries(OTHER_ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert dump_side_data(harness, OTHER_ACCOUNT) == (
            {},
            [[], [], []],
            [],
            [],
            {"all": b"three"},
        )

    def test_a_reset_deletes_access_data_tasks_and_notes_of_one_account(
        self, harness: AccountHarness
    ) -> None:
        other = self.use_account(harness, OTHER_ACCOUNT)
        other.commit(
            *(Asserted(f"t{n}", Claim("x")) for n in (1, 2, 3)),
            scope=Scope(OTHER_ACCOUNT, user_id="alice"),
        )
        add_threads(harness, "t1", "t2", "t3")
        add_turn(harness, "one")
        for account in (ACCOUNT, OTHER_ACCOUNT):
            fill_side_data(harness, account)
        other_data = dump_side_data(harness, OTHER_ACCOUNT)
        harness.store.reset(ACCOUNT, RESET_DRAFT)
        add_threads(harness, "t1", "t2", "t3")
        assert dump_side_data(harness) == ({}, [[], [], []], [], [], {})
        assert list(harness.list_ticks(ALICE)) == []
        assert dump_side_data(harness, OTHER_ACCOUNT) == other_data

    def test_access_data_tasks_and_notes_do_not_change_ledger_or_views(
        self, harness: AccountHarness
    ) -> None:
        add_threads(harness, "t1", "t2", "t3")
        add_turn(harness, "one")
        before = (
            harness.store.get_head(ACCOUNT),
            list(harness.list_entries()),
            harness.dump_views(),
            harness.search_texts("fact"),
        )
        fill_side_data(harness)
        overlay_before = dump_side_data(harness)
        assert (
            harness.store.get_head(ACCOUNT),
            list(harness.list_entries()),
            harness.dump_views(),
            harness.search_texts("fact"),
        ) == before
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert dump_side_data(harness) == overlay_before
        assert list(harness.store.check_integrity()) == []


def _to_stored_rows(ops: Iterable[RowOp]) -> list[ViewRow]:
    """Return folded rows as a store returns them."""
    rows = [op for op in ops if not isinstance(op, CloseThread | EndVersion)]
    return [replace(row, thread=None) if isinstance(row, Passage) else row for row in rows]


def _sort_rows(rows: Sequence[ViewRow]) -> list[str]:
    """Return the rows of several views in one stable order."""
    return sorted(map(repr, rows))
