"""Concurrent writers never both win: every change is based on what its writer saw, and none is
lost.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import kept, scripts, stage, tried
from told import Conflict, NotFoundError
from told.ports import Batch, ThreadAt

KINDS = ["ram", "sqlite"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_of_one_memory_both_succeed_in_some_order(kind):
    with stage(kind) as here:
        [row] = here.memory.add("version", user_id="u")["results"]
        start = threading.Barrier(2)

        def write(name):
            start.wait()
            return [here.memory.update(row["id"], f"{name} {n}")["results"][0] for n in range(10)]

        with ThreadPoolExecutor(2) as pool:
            done = [
                receipt for receipts in pool.map(write, ("one", "other")) for receipt in receipts
            ]
        history = here.memory.history(row["id"])
        assert [change["event"] for change in history] == ["ADD"] + ["UPDATE"] * 20
        assert sorted(change["new_memory"] for change in history[1:]) == sorted(
            r["new_memory"] for r in done
        )
        for before, after in pairwise(history):
            assert after["old_memory"] == before["new_memory"], (
                "each version was made from the one before it"
            )
        seen = {(receipt["previous_memory"], receipt["new_memory"]) for receipt in done}
        assert seen == {(change["old_memory"], change["new_memory"]) for change in history[1:]}
        assert here.memory.get(row["id"])["memory"] == history[-1]["new_memory"]
        assert here.memory.verify()["ok"]


@pytest.mark.parametrize("kind", KINDS)
def test_many_writers_of_one_memory_lose_nothing(kind):
    with stage(kind) as here:
        [row] = here.memory.add("version", user_id="u")["results"]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda n: here.memory.update(row["id"], f"version {n}"), range(36)))
        history = here.memory.history(row["id"])
        assert {change["new_memory"] for change in history[1:]} == {
            f"version {n}" for n in range(36)
        }
        assert len(history) == 37


@pytest.mark.parametrize("kind", KINDS)
def test_second_of_two_deletes_reports_not_found(kind):
    with stage(kind) as here:
        made = [
            row["id"]
            for row in here.memory.add([f"fact {n}" for n in range(12)], user_id="u")["results"]
        ]

        def delete(memory_id):
            try:
                return here.memory.delete(memory_id)["results"][0]["id"]
            except NotFoundError:
                return None

        with ThreadPoolExecutor(4) as pool:
            done = [memory_id for memory_id in pool.map(delete, made * 2) if memory_id]
        assert sorted(done) == sorted(made)
        assert all(
            [c["event"] for c in here.memory.history(memory_id)] == ["ADD", "DELETE"]
            for memory_id in made
        )


@pytest.mark.parametrize("kind", KINDS)
def test_batch_based_on_an_older_version_is_rejected(kind):
    with stage(kind) as here:
        [row] = here.memory.add("one", user_id="u")["results"]
        store = here.memory.engine.store
        seen = store.get_fact("default", row["id"]).seq
        here.memory.update(row["id"], "two")
        head = store.get_head("default")
        with pytest.raises(Conflict):
            store.commit(Batch("default", [], [ThreadAt(row["id"], seen)]), lambda entries: ())
        assert store.get_head("default") == head


@pytest.mark.parametrize("kind", KINDS)
def test_concurrent_change_is_taken_into_account(kind, monkeypatch):
    """The losing writer retries on fresh state: changed metadata survives a text change."""
    with stage(kind) as here:
        [row] = here.memory.add("one", user_id="u")["results"]
        store = here.memory.engine.store
        real, between = (
            store.commit,
            [lambda: here.memory.update(row["id"], metadata={"tag": "work"})],
        )

        def commit(batch, fold):
            if between:
                between.pop()()
            return real(batch, fold)

        monkeypatch.setattr(store, "commit", commit)
        here.memory.update(row["id"], "two")
        found = here.memory.get(row["id"])
        assert (found["memory"], found["metadata"]) == ("two", {"tag": "work"})
        assert len(here.memory.history(row["id"])) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_clearing_a_scope_tolerates_a_concurrent_delete(kind, monkeypatch):
    with stage(kind) as here:
        one, two = (row["id"] for row in here.memory.add(["one", "two"], user_id="u")["results"])
        store = here.memory.engine.store
        real, between = store.find_facts, [lambda: here.memory.delete(one)]

        def facts(find):
            found = real(find)
            if between:
                between.pop()()
            return found

        monkeypatch.setattr(store, "find_facts", facts)
        done = here.memory.delete_all(user_id="u")
        assert [event["id"] for event in done["results"]] == [two]
        assert here.memory.get_all(user_id="u")["results"] == []


@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts(kept, 8), which=st.integers(0, 20))
@tried(20)
def test_retract_keeps_the_ledger_entries(kind, script, which):
    with stage(kind) as here:
        here.player.play(script)
        held = [memory_id for memory_id in here.player.ids if here.memory.get(memory_id)]
        if not held:
            return
        gone = held[which % len(held)]
        seq, ledger, before = here.head, here.exported(), here.memory.stats()
        said, told = here.memory.get(gone), here.memory.history(gone)
        here.memory.retract(gone, why="not so")
        after = here.memory.stats()
        assert here.exported().startswith(ledger), "the ledger only grows"
        assert {k: after[k] for k in ("versions", "evidence", "links")} == {
            k: before[k] for k in ("versions", "evidence", "links")
        }
        assert (after["entries"], after["memories"]) == (
            before["entries"] + 1,
            before["memories"] - 1,
        )
        assert here.memory.get(gone) is None
        assert here.memory.get(gone, as_of=f"#{seq}") == said
        *same, last = here.memory.history(gone)
        assert same == told
        assert (last["event"], last["is_deleted"], last["why"]) == ("DELETE", True, "not so")
        assert last["old_memory"] == said["memory"]
