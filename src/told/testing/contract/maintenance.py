"""Laws of care: cursors, faults, health, figures and closing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from told.errors import Conflict, StoreClosed
from told.model.entry import Asserted, Claim, Draft, Erased, Evidence, Observed, Retracted, Ruled
from told.model.fact import Passage
from told.model.query import AccessBatch, AccessCount, IndexQuery, ReviewReason, ReviewTask
from told.model.scope import Scope
from told.ports import (
    VIEWS,
    Batch,
    CloseThread,
    CursorStep,
    EndVersion,
    RowOp,
    ScopeTally,
    Store,
    ViewRow,
)
from told.testing.contract.erasure import erase_entries
from told.testing.contract.harness import (
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
    """A store says how it is, and after closing says only that it is closed."""

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


def _to_stored_rows(ops: Iterable[RowOp]) -> list[ViewRow]:
    """What is folded, as the rows of a store where nothing has ended are."""
    rows = [op for op in ops if not isinstance(op, CloseThread | EndVersion)]
    return [replace(row, thread=None) if isinstance(row, Passage) else row for row in rows]


def _sort_rows(rows: Sequence[ViewRow]) -> list[str]:
    """Rows of several views in an order of their own."""
    return sorted(map(repr, rows))


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


ALICE_RUN = Scope(ACCOUNT, user_id="alice", run_id="one")


def add_spoken_turn(
    harness: AccountHarness, text: str, role: str = "user", scope: Scope = ALICE
) -> str:
    """A turn with evidence of its own; its thread is its text."""
    harness.add_evidence(text, f"said {text}", scope)
    return harness.assert_claim(text, text, scope, evidence=f"said {text}", role=role).id


def list_turn_texts(
    harness: AccountHarness, scope: Scope = ALICE, **options: int | bool
) -> list[str]:
    """The texts of a scope's turns."""
    return [turn.fact.text for turn in harness.store.list_turns(scope, **options)]  # type: ignore[arg-type]


class TurnContract(ContractBase):
    """A turn is what somebody said, once, for as long as it is held."""

    def test_turns_come_in_ledger_order(self, harness: AccountHarness) -> None:
        for text, role in (("one", "user"), ("two", "assistant"), ("three", "user")):
            add_spoken_turn(harness, text, role)
        assert list_turn_texts(harness) == ["one", "two", "three"]

    def test_only_user_and_assistant_messages_are_turns(self, harness: AccountHarness) -> None:
        for role in ("tool", "document", "system"):
            add_spoken_turn(harness, f"by a {role}", role)
        harness.assert_claim("nobody said it", "a")
        harness.assert_claim("without evidence", "b", role="user")
        assert list_turn_texts(harness) == []

    def test_the_first_thread_of_some_evidence_is_the_turn(self, harness: AccountHarness) -> None:
        add_spoken_turn(harness, "I live in Rome")
        harness.assert_claim(
            "User lives in Rome",
            "claim",
            evidence="said I live in Rome",
            role="user",
            predicate="lives_in",
        )
        assert list_turn_texts(harness) == ["I live in Rome"]
        harness.retract_thread("I live in Rome")
        assert list_turn_texts(harness) == []
        harness.assert_claim(
            "I live in Rome", "I live in Rome", evidence="said I live in Rome", role="user"
        )
        assert list_turn_texts(harness) == ["I live in Rome"]

    def test_nodes_and_quarantined_facts_are_not_turns(self, harness: AccountHarness) -> None:
        for kind in ("node", "quarantine"):
            harness.assert_claim(kind, kind, evidence=f"said {kind}", role="user", kind=kind)
        assert list_turn_texts(harness) == []

    def test_turns_can_be_paged_between_two_positions(self, harness: AccountHarness) -> None:
        for number in range(5):
            add_spoken_turn(harness, str(number))
        harness.assert_claim("1", "1", evidence="said 1", role="user", meta={"looked": "at again"})
        positions = [turn.said_seq for turn in harness.store.list_turns(ALICE)]
        assert list_turn_texts(harness, after=positions[1]) == ["2", "3", "4"]
        assert list_turn_texts(harness, before=positions[3]) == ["0", "1", "2"]
        assert list_turn_texts(harness, after=positions[0], limit=2) == ["1", "2"]
        assert list_turn_texts(harness, limit=2, newest=True) == ["3", "4"]
        assert list_turn_texts(harness, before=positions[3], limit=2, newest=True) == ["1", "2"]

    def test_turns_come_from_the_exact_scope(self, harness: AccountHarness) -> None:
        add_spoken_turn(harness, "at home")
        add_spoken_turn(harness, "once", scope=ALICE_RUN)
        assert (
            list_turn_texts(harness),
            list_turn_texts(harness, ALICE_RUN),
            list_turn_texts(harness, BOB),
        ) == (["at home"], ["once"], [])
        assert list_turn_texts(harness, Scope("umbrella", user_id="alice")) == []

    def test_a_corrected_turn_keeps_its_position(self, harness: AccountHarness) -> None:
        for text in ("one", "two", "three"):
            add_spoken_turn(harness, text)
        positions = [turn.said_seq for turn in harness.store.list_turns(ALICE)]
        harness.assert_claim("one, again", "one", evidence="said one", role="user")
        harness.assert_claim("two, corrected", "two", role="user")
        assert list_turn_texts(harness) == ["one, again", "two, corrected", "three"]
        turns_after = harness.store.list_turns(ALICE)
        assert [turn.said_seq for turn in turns_after] == positions
        assert all(turn.fact.seq > turn.said_seq for turn in turns_after[:2])

    def test_a_restated_turn_moves_to_its_new_position(self, harness: AccountHarness) -> None:
        for text in ("one", "two", "three"):
            add_spoken_turn(harness, text)
        harness.add_evidence("one, anew", "said anew")
        harness.assert_claim("one, anew", "one", evidence="said anew", role="user")
        assert list_turn_texts(harness) == ["two", "three", "one, anew"]
        harness.retract_thread("two")
        harness.assert_claim("two", "two", evidence="said two", role="user")
        harness.assert_claim("two, corrected", "two", role="user")
        assert list_turn_texts(harness) == ["three", "one, anew", "two, corrected"]
        harness.assert_claim("one", "one", evidence="said one", role="user")
        assert list_turn_texts(harness) == ["three", "two, corrected", "one"]

    def test_each_non_empty_scope_is_listed_once(self, harness: AccountHarness) -> None:
        assert list(harness.store.list_scopes(ACCOUNT)) == []
        add_spoken_turn(harness, "at home")
        add_spoken_turn(harness, "at home again")
        add_spoken_turn(harness, "once", scope=ALICE_RUN)
        harness.add_evidence("only evidence", "e", BOB)
        assert set(harness.store.list_scopes(ACCOUNT)) == {ALICE, ALICE_RUN, BOB}
        assert len(harness.store.list_scopes(ACCOUNT)) == 3
        assert list(harness.store.list_scopes("umbrella")) == []

    def test_a_tally_has_memory_count_and_first_and_last_write(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        begun = harness.add_evidence("I live in Rome", "e").at
        clock.tick()
        harness.assert_claim("I live in Rome", "turn", evidence="e", role="user", kind="turn")
        harness.assert_claim("User lives in Rome", "home")
        harness.assert_claim("User lives in Bari", "home")
        harness.assert_claim("User likes tea", "tea", expires=begun)
        ended = harness.add_link("tea", "relates_to", "home").at
        other = harness.assert_claim("gone", "gone", BOB).updated_at
        harness.commit(Retracted("gone"), scope=BOB)
        assert list(harness.store.scope_tallies(ACCOUNT)) == [
            ScopeTally(ALICE, 2, begun, ended),
            ScopeTally(BOB, 0, other, other),
        ]
        assert [tally.scope for tally in harness.store.scope_tallies(ACCOUNT)] == list(
            harness.store.list_scopes(ACCOUNT)
        )
        assert list(harness.store.scope_tallies("umbrella")) == []
