"""Access log: recalls are persisted, backed up, counted and erased with their memories."""

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


def add_texts(memory: Memory, *texts: str, user_id: str = "alice") -> list[str]:
    return [memory.add(text, user_id=user_id)["results"][0]["id"] for text in texts]


def record_recall(memory: Memory, *ids: str, at: int = 1, scope: Scope = ALICE) -> None:
    """Record hits as a read that returns these memories would."""
    found = [memory.engine.store.get_fact("default", memory_id) for memory_id in ids]
    memory.engine.hot_buffers.record_hits(
        "default", scope, [fact for fact in found if fact is not None], at
    )


def access_counts(memory: Memory, *ids: str) -> dict[str, AccessCount]:
    return dict(memory.engine.store.access_counts("default", ids))


def test_recalls_persist_across_reopen(open_memory):
    memory = open_memory()
    [tea] = add_texts(memory, "tea")
    record_recall(memory, tea, at=5)
    record_recall(memory, tea, at=4)
    memory.close()
    again = open_memory()
    assert access_counts(again, tea) == {tea: AccessCount(2, 5)}
    assert again.engine.hot_buffers.get_hot_seqs(ALICE) == ()
    assert again.stats()["recalls"] == 2


def test_recalls_are_written_in_a_constant_number_of_statements(open_memory, monkeypatch):
    memory = open_memory()
    threads = add_texts(memory, "tea", "coffee", "milk")
    run_named, statements = connection.run_named, list[str]()
    monkeypatch.setattr(
        connection,
        "run_named",
        lambda db, name, *rest: statements.append(name) or run_named(db, name, *rest),
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
        statements.clear()
        memory.engine.store.record_accesses("default", left)
        counts.append(len(statements))
    assert counts[0] == counts[1] > 0
    states = memory.engine.store.access_history("default", threads[0]).states
    assert [state.count for state in states] == list(range(20, 30))


def test_access_data_is_flushed_in_one_transaction(open_memory):
    memory = open_memory(access_flush=3)
    add_texts(memory, "tea", "green tea")
    steps: list[str] = []
    memory.engine.store.watch(steps.append)
    for _ in range(3):
        memory.search("tea", user_id="alice")
    assert steps.count("committed") == 1
    assert memory.queue()["results"]
    assert memory.stats()["recalls"] > 0


def test_stats_count_unflushed_recalls(open_memory):
    memory = open_memory()
    [tea] = add_texts(memory, "tea")
    assert memory.stats()["recalls"] == 0
    record_recall(memory, tea)
    assert (memory.stats()["recalls"], access_counts(memory, tea)) == (1, {})
    run(memory.engine.flush_accesses())
    assert (memory.stats()["recalls"], access_counts(memory, tea)) == (1, {tea: AccessCount(1, 1)})


def test_async_client_flushes_recalls_on_close(tmp_path, open_memory):
    memory = AsyncMemory(f"sqlite:///{tmp_path}/m.db", embedder="none")
    with open_memory() as other:
        [tea] = add_texts(other, "tea")
        recall_of = other.engine.store.get_fact("default", tea)
        memory.engine.hot_buffers.record_hits("default", ALICE, [recall_of], 1)
        memory.close()
        assert access_counts(other, tea) == {tea: AccessCount(1, 1)}


def test_backup_includes_recalls_and_export_does_not(open_memory, tmp_path):
    memory = open_memory()
    [tea] = add_texts(memory, "tea")
    record_recall(memory, tea)
    run(memory.engine.flush_accesses())
    memory.backup(tmp_path / "copy.db")
    exported = io.BytesIO()
    memory.export(exported)
    assert access_counts(open_memory("copy.db"), tea) == {tea: AccessCount(1, 1)}
    moved = open_memory("moved.db")
    moved.import_(exported.getvalue())
    assert access_counts(moved, tea) == {}
    assert moved.get(tea)["memory"] == "tea"


def test_erasing_memory_removes_recalls_from_buffers_and_file(open_memory):
    memory = open_memory()
    tea, mate = add_texts(memory, "tea", "mate")
    record_recall(memory, tea, mate)
    run(memory.engine.flush_accesses())
    record_recall(memory, tea, mate)
    certificate = memory.erase(tea)
    assert certificate["destroyed"]["recalls"] == 1
    assert len(memory.engine.hot_buffers.get_hot_seqs(ALICE)) == 1
    assert tea not in repr(vars(memory.engine.hot_buffers))
    run(memory.engine.flush_accesses())
    assert access_counts(memory, tea, mate) == {mate: AccessCount(2, 1)}


def test_erasing_user_removes_name_from_buffers(open_memory):
    memory = open_memory()
    [secret] = add_texts(memory, "secret", user_id="xanthippe")
    record_recall(memory, secret, scope=Scope("default", user_id="xanthippe"))
    memory.erase(user_id="xanthippe")
    assert "xanthippe" not in repr(vars(memory.engine.hot_buffers))
    assert memory.stats()["recalls"] == 0


def test_erasure_clears_buffers_even_if_scrub_fails(open_memory, monkeypatch):
    memory = open_memory()
    [tea] = add_texts(memory, "tea")
    record_recall(memory, tea)

    def busy() -> None:
        raise StoreBusy()

    with monkeypatch.context() as patch:
        patch.setattr(memory.engine.store, "scrub", busy)
        with pytest.raises(StoreBusy):
            memory.erase(tea)
    assert memory.engine.hot_buffers.get_hot_seqs(ALICE) == ()
    assert memory.stats()["recalls"] == 0


def test_recalls_of_concurrently_erased_memory_are_dropped(open_memory):
    one, other = open_memory(), open_memory()
    [tea] = add_texts(one, "tea")
    record_recall(one, tea)
    other.erase(tea)
    assert run(one.engine.flush_accesses()) == ()
    assert access_counts(one, tea) == {}
    assert other.stats()["recalls"] == 0


def test_reset_clears_recalls(open_memory):
    memory = open_memory()
    [tea] = add_texts(memory, "tea")
    record_recall(memory, tea)
    run(memory.engine.flush_accesses())
    record_recall(memory, tea)
    memory.reset()
    assert memory.engine.hot_buffers.get_hot_seqs(ALICE) == ()
    assert memory.stats()["recalls"] == 0
    assert access_counts(memory, tea) == {}


def test_imported_erasure_clears_recalls(open_memory):
    here, there = open_memory(), open_memory("there.db")
    tea, mate = add_texts(there, "tea", "mate")
    older = io.BytesIO()
    there.export(older)
    here.import_(older.getvalue())
    record_recall(here, tea, mate)
    there.erase(tea)
    newer = io.BytesIO()
    there.export(newer)
    here.import_(newer.getvalue())
    assert tea not in repr(vars(here.engine.hot_buffers))
    assert access_counts(here, tea, mate) == {mate: AccessCount(1, 1)}


def test_close_succeeds_if_recalls_cannot_be_written(open_memory):
    memory = open_memory()
    [tea] = add_texts(memory, "tea")
    record_recall(memory, tea)
    memory.engine.store.close()
    memory.close()
    assert access_counts(open_memory(), tea) == {}


def test_reindex_keeps_recalls(open_memory):
    memory = open_memory()
    [tea] = add_texts(memory, "tea")
    record_recall(memory, tea)
    memory.reindex("hash")
    assert memory.engine.hot_buffers.get_hot_seqs(ALICE) != ()
    assert memory.stats()["recalls"] == 1


def test_hot_size_and_access_flush_settings_are_applied(open_memory):
    memory = open_memory(hot_size=1, access_flush=2)
    ids = add_texts(memory, "tea", "mate")
    record_recall(memory, *ids)
    assert len(memory.engine.hot_buffers.get_hot_seqs(ALICE)) == 1
    assert not memory.engine.hot_buffers.is_flush_due
    record_recall(memory, *ids)
    assert memory.engine.hot_buffers.is_flush_due
