"""The access log: hotness, recall counts, flushing and forgetting."""

import gc
import math
import os
import threading
import weakref

import pytest

from tables import each_row
from told.backends.memory.store import InMemoryStore, open_store
from told.errors import StoreFull
from told.flow import run
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft
from told.model.fact import Fact
from told.model.query import AccessBatch, AccessCount
from told.model.scope import Scope
from told.ports import Batch
from told.retrieval.access_log import (
    MAX_SCOPES,
    HotBuffers,
    flush_accesses,
    load_access_counts,
    record_read,
)
from told.retrieval.ranking import DAY_US, compute_hotness

ALICE = Scope("acme", user_id="alice")
BOB = Scope("acme", user_id="bob")
ELSEWHERE = Scope("umbrella", user_id="alice")


def fact(seq: int, thread: str | None = None, scope: Scope = ALICE) -> Fact:
    return Fact(thread or f"t{seq}", seq, seq, scope, f"fact {seq}", "")


def facts(*seqs: int) -> list[Fact]:
    return [fact(seq) for seq in seqs]


def make_store(*threads: str) -> InMemoryStore:
    """Open a store that holds these threads in the account acme."""
    store = open_store("ram://")
    store.commit(
        Batch("acme", [Draft(Asserted(thread, Claim(thread)), ALICE) for thread in threads]),
        fold_all,
    )
    return store


# Hotness


@each_row(
    ("count", "age", "wanted"),
    [
        (0, 0, 0.0),
        (1, 0, 0.409384),
        (3, 0, 0.580940),
        (100, 0, 0.821910),
        (1, 7, 0.204692),
        (1, 14, 0.102346),
        (100, 3.5, 0.581178),
        (1, -5, 0.409384),
        (1, 36500, 0.0),
    ],
)
def test_hotness_matches_the_formula_computed_by_hand(count, age, wanted):
    now = 10**17
    assert compute_hotness(count, now - round(age * DAY_US), now) == pytest.approx(wanted, abs=1e-6)


def test_hotness_grows_with_recalls_decays_with_time_and_stays_below_one():
    by_count = [compute_hotness(count, 0, DAY_US) for count in range(50)]
    assert by_count == sorted(set(by_count))
    by_age = [compute_hotness(5, 0, days * DAY_US) for days in range(50)]
    assert by_age == sorted(set(by_age), reverse=True)
    assert compute_hotness(10**9, 0, 0) < 1.0


def test_a_custom_half_life_halves_hotness_after_that_time():
    assert compute_hotness(1, 0, 2 * DAY_US, half_life_days=2.0) == pytest.approx(
        compute_hotness(1, 0, 0) / 2
    )
    assert math.isfinite(compute_hotness(1, 0, 10**18, half_life_days=0.01))


# The hot buffer


def test_the_newest_read_is_hottest_and_its_best_hit_comes_first():
    overlay = HotBuffers()
    overlay.record_hits("acme", ALICE, facts(5, 3), 1)
    overlay.record_hits("acme", ALICE, facts(9, 1), 2)
    assert overlay.get_hot_seqs(ALICE) == (9, 1, 5, 3)
    overlay.record_hits("acme", ALICE, facts(3), 3)
    assert overlay.get_hot_seqs(ALICE) == (3, 9, 1, 5)


def test_a_full_buffer_evicts_the_least_recently_selected_fact():
    overlay = HotBuffers(size=3)
    overlay.record_hits("acme", ALICE, facts(1, 2, 3), 1)
    overlay.record_hits("acme", ALICE, facts(3, 4), 2)
    assert overlay.get_hot_seqs(ALICE) == (3, 4, 1)
    overlay.record_hits("acme", ALICE, facts(10, 11, 12, 13, 14), 3)
    assert overlay.get_hot_seqs(ALICE) == (10, 11, 12)


def test_each_scope_has_its_own_buffer():
    overlay = HotBuffers()
    overlay.record_hits("acme", ALICE, facts(1), 1)
    overlay.record_hits("umbrella", ELSEWHERE, facts(2), 1)
    narrow = Scope("acme", user_id="alice", agent_id="coder")
    assert [overlay.get_hot_seqs(scope) for scope in (ALICE, ELSEWHERE, BOB, narrow)] == [
        (1,),
        (2,),
        (),
        (),
    ]


def test_a_zero_size_buffer_keeps_nothing_but_still_counts_recalls():
    overlay = HotBuffers(size=0)
    overlay.record_hits("acme", ALICE, facts(1), 1)
    assert overlay.get_hot_seqs(ALICE) == ()
    assert overlay.count_pending("acme") == 1


def test_the_longest_idle_scope_loses_its_buffer():
    overlay = HotBuffers()
    scopes = [Scope("acme", user_id=f"u{number}") for number in range(MAX_SCOPES)]
    for scope in scopes:
        overlay.record_hits("acme", scope, facts(1), 1)
    overlay.record_hits("acme", scopes[0], facts(2), 2)
    overlay.record_hits("acme", ALICE, facts(3), 3)
    assert [overlay.get_hot_seqs(scope) for scope in (*scopes[:3], ALICE)] == [
        (2, 1),
        (),
        (1,),
        (3,),
    ]


# Counting


def test_recalls_of_a_thread_are_summed_and_keep_the_latest_time():
    overlay = HotBuffers()
    overlay.record_hits("acme", ALICE, facts(1, 2), 10)
    overlay.record_hits("acme", BOB, facts(2), 30)
    overlay.record_hits("acme", ALICE, facts(2), 20)
    assert overlay.get_pending_counts("acme", ["t1", "t2", "t3"]) == {
        "t1": AccessCount(1, 10),
        "t2": AccessCount(3, 30),
    }
    assert overlay.get_pending_counts("umbrella", ["t1"]) == {}
    assert (overlay.count_pending("acme"), overlay.count_pending("umbrella")) == (4, 0)


def test_two_versions_of_a_thread_in_one_read_count_as_one_recall():
    overlay = HotBuffers()
    overlay.record_hits("acme", ALICE, [fact(1, "t"), fact(2, "t")], 10)
    assert overlay.get_pending_counts("acme", ["t"]) == {"t": AccessCount(1, 10)}


def test_concurrent_threads_lose_no_recall_counts():
    overlay, store = (
        HotBuffers(size=4, flush_every=10),
        make_store(*(f"t{number}" for number in range(8))),
    )
    begin = threading.Barrier(8)

    def read(number: int) -> None:
        begin.wait()
        for step in range(200):
            run(record_read(store, overlay, ALICE, facts(number, (number + step) % 8), step))
            overlay.get_hot_seqs(ALICE)
            overlay.drop_threads("acme", ["never there"])

    readers = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    run(flush_accesses(store, overlay))
    wanted = 8 * sum(1 if step % 8 == 0 else 2 for step in range(200))
    assert store.get_stats("acme")["recalls"] == wanted
    assert overlay.count_pending("acme") == 0
    assert len(overlay.get_hot_seqs(ALICE)) == 4


# Flushing


class FullStore(InMemoryStore):
    """A store that rejects access records until it is given room."""

    full = True
    asked = 0

    def record_accesses(self, account: str, batch: AccessBatch) -> int:
        self.asked += 1
        if self.full:
            raise StoreFull()
        return super().record_accesses(account, batch)


def full_store() -> FullStore:
    store = FullStore()
    store.commit(Batch("acme", [Draft(Asserted("t1", Claim("tea")), ALICE)]), fold_all)
    return store


def test_recalls_are_flushed_only_after_flush_every_reads():
    overlay, store = HotBuffers(flush_every=3), make_store("t1")
    written = []
    for step in range(7):
        assert run(record_read(store, overlay, ALICE, facts(1), step)) == ()
        written.append(store.get_stats("acme")["recalls"])
    assert written == [0, 0, 3, 3, 3, 6, 6]


def test_a_read_that_selects_nothing_records_no_recall():
    overlay = HotBuffers(flush_every=1)
    overlay.record_hits("acme", ALICE, [], 1)
    assert not overlay.is_flush_due
    assert overlay.take_counts() == {}


def test_flush_writes_every_account_and_a_second_flush_writes_nothing():
    overlay, store = HotBuffers(), make_store("t1")
    theirs = Draft(Asserted("t1", Claim("tea")), ELSEWHERE)
    store.commit(Batch("umbrella", [theirs]), fold_all)
    overlay.record_hits("acme", ALICE, facts(1), 5)
    overlay.record_hits("umbrella", ELSEWHERE, facts(1), 6)
    assert run(flush_accesses(store, overlay)) == ()
    assert dict(store.access_counts("acme", ["t1"])) == {"t1": AccessCount(1, 5)}
    assert dict(store.access_counts("umbrella", ["t1"])) == {"t1": AccessCount(1, 6)}
    assert overlay.take_counts() == {}
    assert overlay.get_hot_seqs(ALICE) == (1,)


def test_a_failed_flush_warns_and_loses_no_counts():
    overlay, store = HotBuffers(flush_every=2), full_store()
    assert run(record_read(store, overlay, ALICE, facts(1), 1)) == ()
    [warning] = run(record_read(store, overlay, ALICE, facts(1), 2))
    assert "The access log could not be written" in warning
    assert overlay.get_pending_counts("acme", ["t1"]) == {"t1": AccessCount(2, 2)}
    store.full = False
    assert run(flush_accesses(store, overlay)) == ()
    assert dict(store.access_counts("acme", ["t1"])) == {"t1": AccessCount(2, 2)}


def test_a_failed_flush_is_retried_only_after_flush_every_more_reads():
    overlay, store = HotBuffers(flush_every=2), full_store()
    for step in range(6):
        run(record_read(store, overlay, ALICE, facts(1), step))
    assert store.asked == 3


def test_a_read_succeeds_when_the_store_is_closed():
    overlay, store = HotBuffers(flush_every=1), make_store("t1")
    store.close()
    [warning] = run(record_read(store, overlay, ALICE, facts(1), 1))
    assert "closed" in warning
    assert overlay.count_pending("acme") == 1


def test_pending_recalls_are_included_in_access_counts():
    overlay, store = HotBuffers(), make_store("t1", "t2", "t3")
    store.record_accesses("acme", AccessBatch({"t1": AccessCount(4, 10), "t2": AccessCount(1, 99)}))
    overlay.record_hits("acme", ALICE, facts(1, 3), 20)
    found = run(load_access_counts(store, overlay, "acme", ["t1", "t2", "t3", "t4"]))
    assert found == {"t1": AccessCount(5, 20), "t2": AccessCount(1, 99), "t3": AccessCount(1, 20)}


# Forgetting


def test_dropped_threads_leave_the_buffer_and_the_counts():
    overlay = HotBuffers()
    overlay.record_hits("acme", ALICE, facts(1, 2), 1)
    overlay.record_hits("acme", BOB, facts(1), 1)
    overlay.record_hits("umbrella", ELSEWHERE, facts(1), 1)
    overlay.drop_threads("acme", ["t1"])
    assert [overlay.get_hot_seqs(scope) for scope in (ALICE, BOB, ELSEWHERE)] == [(2,), (), (1,)]
    assert overlay.take_counts() == {
        "acme": {"t2": AccessCount(1, 1)},
        "umbrella": {"t1": AccessCount(1, 1)},
    }


def test_a_scope_id_is_removed_with_its_last_thread():
    overlay, who = HotBuffers(), Scope("acme", user_id="xanthippe")
    overlay.record_hits("acme", who, facts(1), 1)
    overlay.drop_threads("acme", ["t1"])
    assert "xanthippe" not in repr(vars(overlay))
    assert "t1" not in repr(vars(overlay))


def test_forgetting_an_account_keeps_the_others():
    overlay = HotBuffers()
    overlay.record_hits("acme", ALICE, facts(1), 1)
    overlay.record_hits("umbrella", ELSEWHERE, facts(1), 1)
    overlay.forget_account("acme")
    assert (overlay.get_hot_seqs(ALICE), overlay.get_hot_seqs(ELSEWHERE)) == ((), (1,))
    assert list(overlay.take_counts()) == ["umbrella"]


def test_a_forked_child_starts_empty_with_its_own_lock():
    overlay = HotBuffers()
    overlay.record_hits("acme", ALICE, facts(1), 1)
    with overlay._lock:  # as if another thread held the lock at fork time
        child = os.fork()
        if child == 0:
            os._exit(
                0 if (overlay.count_pending("acme"), overlay.get_hot_seqs(ALICE)) == (0, ()) else 1
            )
    assert os.waitpid(child, 0)[1] == 0
    assert overlay.count_pending("acme") == 1


def test_an_unreferenced_overlay_is_garbage_collected():
    overlay = HotBuffers()
    known = weakref.ref(overlay)
    del overlay
    gc.collect()
    assert known() is None
