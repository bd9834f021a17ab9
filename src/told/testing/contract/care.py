"""Laws of care: cursors, faults, health, figures and closing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from told.core.entry import Asserted, Claim, Draft, Erased, Evidence, Observed, Ruled
from told.core.errors import Conflict, StoreClosed
from told.core.fact import Passage
from told.core.query import AccessCount, IndexQuery
from told.core.recall import AccessBatch, ReviewReason, ReviewTask
from told.core.scope import Scope
from told.ports import VIEWS, Batch, CloseThread, CursorStep, EndVersion, RowOp, Store, ViewRow
from told.testing.contract.erasing import erase_entries
from told.testing.contract.scribe import (
    ACCOUNT,
    ALICE,
    BOB,
    AccountHarness,
    ContractBase,
    make_idempotency_record,
)
from told.testing.fakes import ManualClock

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
    "position": lambda s, _: s.position_at(ACCOUNT, 0),
    "scan": lambda s, _: s.scan_entries(ACCOUNT),
    "thread": lambda s, _: s.thread_entries(ACCOUNT, "t"),
    "tombstoned": lambda s, _: s.tombstoned_digests(ACCOUNT, [b"x"]),
    "held": lambda s, _: s.current_facts(ALICE, 0, slots=[("x", "y")], kinds=["z"]),
    "known": lambda s, _: s.lookup_existing(ALICE, ["x"], [b"x"], "x"),
    "fact": lambda s, _: s.get_fact(ACCOUNT, "t"),
    "versions": lambda s, _: s.facts_by_seq(ACCOUNT, [1]),
    "lives": lambda s, _: s.all_versions(ALICE),
    "links": lambda s, _: s.find_links(ACCOUNT, ["t"]),
    "witnesses": lambda s, _: s.evidence_rows(ACCOUNT, scope=ALICE),
    "rows": lambda s, _: list(s.view_rows(ACCOUNT, "facts")),
    "folded": lambda s, _: s.rows_between(ACCOUNT, 0, 9),
    "model": lambda s, _: s.current_model(),
    "use_model": lambda s, _: s.bind_model("m", 2),
    "cached": lambda s, _: s.embedded_hashes([b"x"]),
    "pending": lambda s, _: s.pending_texts(),
    "put_vectors": lambda s, _: s.put_vectors({b"x": [1.0]}, "m"),
    "switch_model": lambda s, _: s.switch_model("m", 2),
    "cursor": lambda s, _: s.get_cursor(ACCOUNT, "c"),
    "advance": lambda s, _: s.advance_cursor(ACCOUNT, "c", 1),
    "fault": lambda s, _: s.record_fault(ACCOUNT, "c", 1, "x"),
    "faults": lambda s, _: s.list_faults(ACCOUNT),
    "scopes": lambda s, _: s.list_scopes(ACCOUNT),
    "tallies": lambda s, _: s.scope_tallies(ACCOUNT),
    "settle": lambda s, _: s.clear_faults(ACCOUNT, [1]),
    "touched": lambda s, _: s.access_counts(ACCOUNT, ["t"]),
    "put_blob": lambda s, _: s.put_blob(ACCOUNT, b"x", "text/plain"),
    "blob": lambda s, _: s.get_blob(ACCOUNT, "x"),
    "blobs": lambda s, _: s.list_blobs(ACCOUNT),
    "drop_blob": lambda s, _: s.drop_blob(ACCOUNT, "x"),
    "behind": lambda s, _: s.stale_views(ACCOUNT),
    "ticks": lambda s, _: s.list_ticks(ALICE),
    "write_down": lambda s, _: s.record_accesses(ACCOUNT, AccessBatch({"t": AccessCount(1, 1)})),
    "meet": lambda s, _: s.record_cooccurrence(ACCOUNT, {("t", "u"): AccessCount(1, 1)}),
    "met": lambda s, _: s.cooccurrence(ACCOUNT, ["t"]),
    "recalls": lambda s, _: s.access_records(ACCOUNT, "t"),
    "states": lambda s, _: s.access_states(ACCOUNT, ["t"]),
    "enqueue": lambda s, _: s.enqueue_tasks(ACCOUNT, [ReviewTask("t", ReviewReason.RECALL)], 1),
    "queue": lambda s, _: s.list_tasks(ACCOUNT),
    "claim": lambda s, _: s.claim_tasks(ACCOUNT, 1, 1, 1),
    "done": lambda s, _: s.complete_tasks(ACCOUNT, [1]),
    "notes": lambda s, _: s.read_notes(ACCOUNT, "c"),
    "note": lambda s, _: s.write_notes(ACCOUNT, "c", {"k": b"x"}),
    "check": lambda s, _: s.check_integrity(),
    "mistyped": lambda s, _: s.find_type_errors(),
    "stats": lambda s, _: s.get_stats(ACCOUNT),
}


class MaintenanceContract(ContractBase):
    """A store says how it is, and after closing says only that it is closed."""

    def test_a_cursor_starts_at_zero_and_stays_where_set(self, harness: AccountHarness) -> None:
        harness.assert_claim("one")
        store = harness.store
        assert store.get_cursor(ACCOUNT, "graph") == 0
        store.advance_cursor(ACCOUNT, "graph", 1)
        store.advance_cursor("umbrella", "graph", 7)
        assert store.get_cursor(ACCOUNT, "graph") == 1
        assert store.get_cursor(ACCOUNT, "tree") == 0
        assert store.get_cursor("umbrella", "graph") == 7
        store.advance_cursor(ACCOUNT, "graph", 0)
        assert store.get_cursor(ACCOUNT, "graph") == 0

    def test_setting_a_cursor_creates_no_ledger(self, harness: AccountHarness) -> None:
        harness.store.advance_cursor(ACCOUNT, "graph", 0)
        assert list(harness.store.list_accounts()) == []

    def test_a_write_does_not_move_a_cursor(self, harness: AccountHarness) -> None:
        harness.store.advance_cursor(ACCOUNT, "graph", 0)
        harness.assert_claim("one")
        harness.store.advance_cursor(ACCOUNT, "graph", 1)
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
        harness.store.advance_cursor(ACCOUNT, "c", 1)
        assert list(harness.store.check_integrity()) == []
        harness.commit(
            Asserted("t2", Claim("two")), idempotency=make_idempotency_record("bad", "nobody")
        )
        assert len(harness.store.check_integrity()) == 1
        harness.store.advance_cursor(ACCOUNT, "c", 99)
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


def _to_stored_rows(ops: Iterable[RowOp]) -> list[ViewRow]:
    """What is folded, as the rows of a store where nothing has ended are."""
    rows = [op for op in ops if not isinstance(op, CloseThread | EndVersion)]
    return [replace(row, thread=None) if isinstance(row, Passage) else row for row in rows]


def _sort_rows(rows: Sequence[ViewRow]) -> list[str]:
    """Rows of several views in an order of their own."""
    return sorted(map(repr, rows))
