"""The overlay beside the ledger, as a memory uses it: kept, copied, counted, and forgotten with
what it counts.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from told import AsyncMemory, Memory
from told.backends.sqlite import connection
from told.errors import StoreBusy
from told.flow import run
from told.model.query import AccessBatch, AccessCount, AccessRecord, ReviewReason, ReviewTask
from told.model.scope import Scope

ALICE = Scope("default", user_id="alice")


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Callable[..., Memory]]:
    opened: list[Memory] = []

    def open_memory(name: str = "m.db", **options: Any) -> Memory:
        opened.append(Memory(f"sqlite:///{tmp_path}/{name}", embedder="none", **options))
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


def tell(memory: Memory, *texts: str, user_id: str = "alice") -> list[str]:
    return [memory.add(text, user_id=user_id)["results"][0]["id"] for text in texts]


def recall(memory: Memory, *ids: str, at: int = 1, scope: Scope = ALICE) -> None:
    """What a read that selects these memories does."""
    found = [memory.engine.store.get_fact("default", memory_id) for memory_id in ids]
    memory.engine.hot_buffers.record_hits(
        "default", scope, [fact for fact in found if fact is not None], at
    )


def counted(memory: Memory, *ids: str) -> dict[str, AccessCount]:
    return dict(memory.engine.store.access_counts("default", ids))


def test_recalls_survive_closing_and_opening(open_memory):
    memory = open_memory()
    [tea] = tell(memory, "tea")
    recall(memory, tea, at=5)
    recall(memory, tea, at=4)
    memory.close()
    again = open_memory()
    assert counted(again, tea) == {tea: AccessCount(2, 5)}
    assert again.engine.hot_buffers.get_hot_seqs(ALICE) == ()
    assert again.stats()["recalls"] == 2


def test_many_recalls_are_written_down_in_as_many_statements_as_few(open_memory, monkeypatch):
    memory = open_memory()
    threads = tell(memory, "tea", "coffee", "milk")
    run_named, ran = connection.run_named, list[str]()
    monkeypatch.setattr(
        connection,
        "run_named",
        lambda db, name, *rest: ran.append(name) or run_named(db, name, *rest),
    )
    few = AccessBatch(
        {threads[0]: AccessCount(1, 1)},
        {},
        [AccessRecord(threads[0], 1)],
        10,
        [ReviewTask(threads[0], ReviewReason.RECALL, 0.1)],
    )
    recalls = [AccessRecord(thread, at) for at in range(2, 30) for thread in threads]
    tasks = [ReviewTask(thread, ReviewReason.RECALL, 0.5, 1) for thread in threads]
    many = AccessBatch(
        dict.fromkeys(threads, AccessCount(28, 30)),
        {(threads[0], threads[1]): AccessCount(1, 1)},
        recalls,
        10,
        tasks,
    )
    counts = []
    for left in (few, many):
        ran.clear()
        memory.engine.store.record_accesses("default", left)
        counts.append(len(ran))
    assert counts[0] == counts[1] > 0
    states = memory.engine.store.access_history("default", threads[0]).states
    assert [state.count for state in states] == list(range(20, 30))


def test_all_that_reads_leave_behind_is_written_down_in_one_transaction(open_memory):
    memory = open_memory(access_flush=3)
    tell(memory, "tea", "green tea")
    steps: list[str] = []
    memory.engine.store.watch(steps.append)
    for _ in range(3):
        memory.search("tea", user_id="alice")
    assert steps.count("committed") == 1
    assert memory.queue()["results"]
    assert memory.stats()["recalls"] > 0


def test_figures_count_recalls_that_are_not_written_down_yet(open_memory):
    memory = open_memory()
    [tea] = tell(memory, "tea")
    assert memory.stats()["recalls"] == 0
    recall(memory, tea)
    assert (memory.stats()["recalls"], counted(memory, tea)) == (1, {})
    run(memory.engine.flush_accesses())
    assert (memory.stats()["recalls"], counted(memory, tea)) == (1, {tea: AccessCount(1, 1)})


def test_an_async_memory_writes_recalls_down_when_it_closes(tmp_path, open_memory):
    memory = AsyncMemory(f"sqlite:///{tmp_path}/m.db", embedder="none")
    with open_memory() as other:
        [tea] = tell(other, "tea")
        recall_of = other.engine.store.get_fact("default", tea)
        memory.engine.hot_buffers.record_hits("default", ALICE, [recall_of], 1)
        memory.close()
        assert counted(other, tea) == {tea: AccessCount(1, 1)}


def test_a_backup_carries_recalls_and_an_export_does_not(open_memory, tmp_path):
    memory = open_memory()
    [tea] = tell(memory, "tea")
    recall(memory, tea)
    run(memory.engine.flush_accesses())
    memory.backup(tmp_path / "copy.db")
    exported = io.BytesIO()
    memory.export(exported)
    assert counted(open_memory("copy.db"), tea) == {tea: AccessCount(1, 1)}
    moved = open_memory("moved.db")
    moved.import_(exported.getvalue())
    assert counted(moved, tea) == {}
    assert moved.get(tea)["memory"] == "tea"


def test_erasing_leaves_no_recall_in_the_process_or_in_the_file(open_memory):
    memory = open_memory()
    tea, mate = tell(memory, "tea", "mate")
    recall(memory, tea, mate)
    run(memory.engine.flush_accesses())
    recall(memory, tea, mate)
    certificate = memory.erase(tea)
    assert certificate["destroyed"]["recalls"] == 1
    assert len(memory.engine.hot_buffers.get_hot_seqs(ALICE)) == 1
    assert tea not in repr(vars(memory.engine.hot_buffers))
    run(memory.engine.flush_accesses())
    assert counted(memory, tea, mate) == {mate: AccessCount(2, 1)}


def test_erasing_a_user_leaves_no_name_in_the_process(open_memory):
    memory = open_memory()
    [secret] = tell(memory, "secret", user_id="xanthippe")
    recall(memory, secret, scope=Scope("default", user_id="xanthippe"))
    memory.erase(user_id="xanthippe")
    assert "xanthippe" not in repr(vars(memory.engine.hot_buffers))
    assert memory.stats()["recalls"] == 0


def test_an_erasure_that_cannot_clean_up_yet_forgets_all_the_same(open_memory, monkeypatch):
    memory = open_memory()
    [tea] = tell(memory, "tea")
    recall(memory, tea)

    def busy() -> None:
        raise StoreBusy()

    with monkeypatch.context() as patch:
        patch.setattr(memory.engine.store, "scrub", busy)
        with pytest.raises(StoreBusy):
            memory.erase(tea)
    assert memory.engine.hot_buffers.get_hot_seqs(ALICE) == ()
    assert memory.stats()["recalls"] == 0


def test_a_count_that_comes_after_another_process_erased_is_dropped(open_memory):
    one, other = open_memory(), open_memory()
    [tea] = tell(one, "tea")
    recall(one, tea)
    other.erase(tea)
    assert run(one.engine.flush_accesses()) == ()
    assert counted(one, tea) == {}
    assert other.stats()["recalls"] == 0


def test_a_reset_forgets_every_recall(open_memory):
    memory = open_memory()
    [tea] = tell(memory, "tea")
    recall(memory, tea)
    run(memory.engine.flush_accesses())
    recall(memory, tea)
    memory.reset()
    assert memory.engine.hot_buffers.get_hot_seqs(ALICE) == ()
    assert memory.stats()["recalls"] == 0
    assert counted(memory, tea) == {}


def test_an_imported_erasure_forgets_here_too(open_memory):
    here, there = open_memory(), open_memory("there.db")
    tea, mate = tell(there, "tea", "mate")
    older = io.BytesIO()
    there.export(older)
    here.import_(older.getvalue())
    recall(here, tea, mate)
    there.erase(tea)
    newer = io.BytesIO()
    there.export(newer)
    here.import_(newer.getvalue())
    assert tea not in repr(vars(here.engine.hot_buffers))
    assert counted(here, tea, mate) == {mate: AccessCount(1, 1)}


def test_closing_is_no_error_when_recalls_cannot_be_written(open_memory):
    memory = open_memory()
    [tea] = tell(memory, "tea")
    recall(memory, tea)
    memory.engine.store.close()
    memory.close()
    assert counted(open_memory(), tea) == {}


def test_another_embedder_keeps_the_overlay(open_memory):
    memory = open_memory()
    [tea] = tell(memory, "tea")
    recall(memory, tea)
    memory.reindex("hash")
    assert memory.engine.hot_buffers.get_hot_seqs(ALICE) != ()
    assert memory.stats()["recalls"] == 1


def test_settings_say_how_much_is_hot_and_when_recalls_are_written(open_memory):
    memory = open_memory(hot_size=1, access_flush=2)
    ids = tell(memory, "tea", "mate")
    recall(memory, *ids)
    assert len(memory.engine.hot_buffers.get_hot_seqs(ALICE)) == 1
    assert not memory.engine.hot_buffers.is_flush_due
    recall(memory, *ids)
    assert memory.engine.hot_buffers.is_flush_due
