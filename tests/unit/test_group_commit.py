"""Group commit: waiting writers share one transaction, and each gets its own result."""

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest

from told import AsyncMemory, Memory
from told.backends.sqlite.group_commit import WriteJob
from told.errors import Conflict, NotFoundError, StoreClosed, StoreFull
from told.ids import hash_text
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft
from told.model.scope import Scope
from told.ports import Batch, NoFact, ThreadAt
from told.testing import hashing_embedder

ALICE = Scope(user_id="alice")
THREADS = 64


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as memory:
        yield memory


def hold_first_commit(memory: Memory | AsyncMemory, until: int) -> Counter[str]:
    """Count commit steps; hold the first transaction until this many writers are queued."""
    steps: Counter[str] = Counter()
    writer = memory.engine.store._write

    def watch(step: str) -> None:
        steps[step] += 1
        if steps["begun"] == 1 and step == "begun":
            for _ in range(2000):
                if len(writer._queue) >= until:
                    break
                threading.Event().wait(0.005)

    memory.engine.store.watch(watch)
    return steps


def run_threads(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """Run work in many threads and return each result or error."""

    def attempt(number: int) -> Any:
        try:
            return work(number)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(attempt, range(count)))


def test_queued_adds_share_a_commit_and_get_their_own_receipts(
    memory: Memory,
) -> None:
    steps = hold_first_commit(memory, THREADS - 1)
    receipts = run_threads(
        lambda n: memory.add([f"number {n}", f"again {n}"], user_id=f"user {n % 7}")
    )
    assert steps["committed"] == 1
    assert steps["headed"] <= 2, "the first may be written by itself"
    for number, receipt in enumerate(receipts):
        first, second = receipt["results"]
        assert (first["memory"], second["memory"]) == (f"number {number}", f"again {number}")
        assert memory.get(first["id"])["memory"] == f"number {number}"
        assert memory.get(second["id"])["user_id"] == f"user {number % 7}"
    assert len({row["id"] for receipt in receipts for row in receipt["results"]}) == 2 * THREADS
    assert memory.verify()["ok"]


def test_queued_async_adds_share_a_commit(tmp_path: Path) -> None:
    async def adds() -> Counter[str]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
        async with AsyncMemory(f"sqlite:///{tmp_path}/m.db", embedder="none") as memory:
            steps = hold_first_commit(memory, 29)
            await asyncio.gather(*(memory.add(f"number {n}", user_id="alice") for n in range(30)))
            return steps

    steps = asyncio.run(adds())
    assert (steps["committed"], steps["headed"]) == (1, 1)


def test_concurrent_lookups_during_a_write_share_one_connection(memory: Memory) -> None:
    store, opened = memory.engine.store, []

    def watch(step: str) -> None:
        if step == "begun":
            for _ in range(5):
                before = len(store._database._open)
                thread = threading.Thread(
                    target=store.lookup_existing, args=(ALICE, [_md5("tea")], [], None)
                )
                thread.start()
                thread.join()
                opened.append(len(store._database._open) - before)

    store.watch(watch)
    memory.add("tea", user_id="alice")
    assert len(opened) == 5
    assert sum(opened) <= 1


def test_no_more_than_the_limit_share_a_commit(tmp_path: Path) -> None:
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none", group_limit=10) as memory:
        steps = hold_first_commit(memory, THREADS - 1)
        run_threads(lambda n: memory.add(f"number {n}", user_id="alice"))
        assert steps["committed"] >= -(-THREADS // 10)


def test_positions_are_dense_and_each_add_keeps_its_own_transaction(memory: Memory) -> None:
    hold_first_commit(memory, THREADS - 1)
    run_threads(lambda n: memory.add([f"{part} of {n}" for part in range(3)], user_id="alice"))
    entries = memory.engine.store.scan_entries("default", 0, 10_000)
    assert [entry.seq for entry in entries] == list(range(1, 6 * THREADS + 1))
    sizes = Counter(entry.tx for entry in entries)
    assert set(sizes.values()) == {6}
    for tx in sizes:
        said = {
            entry.verb.claim.text.split(" of ")[1]
            for entry in entries
            if entry.tx == tx and entry.sort == "asserted"
        }
        assert len(said) == 1


def batch(text: str, thread: str, **options: Any) -> Batch:
    return Batch("default", [Draft(Asserted(thread, Claim(text)), ALICE)], **options)


def test_a_writer_that_stops_waiting_writes_nothing_and_blocks_nobody(memory: Memory) -> None:
    class GivenUp(Exception):
        pass

    def give_up(*_: object) -> None:
        raise GivenUp

    def work(number: int) -> None:
        memory.engine.store.commit(batch(f"number {number}", f"t{number}"), fold_all)

    crowd = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(17)]
    hold_first_commit(memory, 16)
    before = signal.signal(signal.SIGALRM, give_up)
    try:
        for one in crowd[:9]:
            one.start()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(GivenUp):
            work(17)
    finally:
        signal.signal(signal.SIGALRM, before)
    for one in crowd[9:]:
        one.start()
    for one in crowd:
        one.join(20)
    assert not any(one.is_alive() for one in crowd)
    assert memory.stats()["memories"] == 17


def test_an_interrupt_at_the_start_of_a_write_does_not_affect_the_next(memory: Memory) -> None:
    def interrupt(step: str) -> None:
        if step == "begun":
            raise KeyboardInterrupt

    memory.engine.store.watch(interrupt)
    with pytest.raises(KeyboardInterrupt):
        memory.add("tea", user_id="alice", infer=False)
    memory.engine.store.watch(len)
    memory.add("coffee", user_id="alice", infer=False)
    assert [row["memory"] for row in memory.get_all(user_id="alice")["results"]] == ["coffee"]


@pytest.mark.parametrize("moment", ["begun", "folded", "committed"])
def test_interrupting_the_group_leader_does_not_affect_its_followers(
    memory: Memory, moment: str
) -> None:
    hold_first_commit(memory, 16)
    hold, steps, crowd, waiting = (
        memory.engine.store._write.watch,
        Counter[str](),
        ThreadPoolExecutor(16),
        list[Any](),
    )

    def watch(step: str) -> None:
        if not waiting:
            waiting.extend(
                crowd.submit(memory.add, f"number {n}", user_id="bob", infer=False)
                for n in range(16)
            )
        hold(step)
        steps[step] += 1
        if (step, steps[step]) == (moment, 1):
            raise KeyboardInterrupt

    memory.engine.store.watch(watch)
    with pytest.raises(KeyboardInterrupt):
        memory.add("mine", user_id="alice", infer=False)
    assert {one.result(20)["results"][0]["event"] for one in waiting} == {"ADD"}
    assert len(memory.get_all(user_id="bob")["results"]) == 16
    assert memory.verify()["ok"]


def test_an_interrupted_search_leaves_no_open_transaction_on_the_writer(
    memory: Memory,
) -> None:
    def interrupted(db: apsw.Connection) -> None:
        db.execute("BEGIN")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.engine.store._write.read_on_writer(interrupted)
    memory.add("coffee", user_id="alice", infer=False)
    assert memory.verify()["ok"]


def test_a_search_waiting_for_a_partition_does_not_block_writers(memory: Memory) -> None:
    memory.add("green tea", user_id="alice", infer=False)
    memory.search("tea", user_id="alice")
    index = memory.engine.store.index
    [partition] = index.cache._parts.values()
    with partition.lock:
        search = threading.Thread(
            target=memory.search, args=("tea",), kwargs={"user_id": "alice"}, daemon=True
        )
        search.start()
        search.join(0.3)
        assert search.is_alive(), "the search waits for the partition"
        memory.add("coffee", user_id="bob", infer=False)
    search.join(20)
    assert not search.is_alive()


def test_one_bad_write_in_a_group_fails_alone(memory: Memory) -> None:
    store = memory.engine.store
    store.commit(batch("held", "t-held"), fold_all)
    steps = hold_first_commit(memory, THREADS - 1)

    def work(number: int) -> Any:
        if number == 20:
            return store.commit(
                batch("held", "t20", guards=[NoFact(ALICE, (_md5("held"),))], read_seq=0), fold_all
            )
        if number == 21:
            return store.commit(
                batch("x", "t21", guards=[ThreadAt("t-held", 99)], read_seq=0), fold_all
            )
        if number == 22:
            return store.commit(batch("x", "t22", vectors={hash_text("x"): [1.0, 2.0]}), fold_all)
        return store.commit(batch(f"number {number}", f"t{number}"), fold_all)

    results = run_threads(work)
    failed = {number: error for number, error in enumerate(results) if isinstance(error, Exception)}
    assert set(failed) == {20, 21, 22}
    assert isinstance(failed[20], Conflict)
    assert steps["committed"] == 1
    texts = {row["memory"] for row in memory.get_all(user_id="alice", limit=1000)["results"]}
    assert texts == {"held", *(f"number {n}" for n in range(THREADS) if n not in failed)}
    assert memory.verify()["ok"]


def _md5(text: str) -> str:
    from told.text.tokens import md5_hex

    return md5_hex(text)


def test_a_failing_fold_does_not_affect_other_writes(memory: Memory) -> None:
    hold_first_commit(memory, THREADS - 1)

    def broken(entries: Any) -> Any:
        raise LookupError("a view went wrong")

    def work(number: int) -> Any:
        fold = broken if number % 8 == 3 else fold_all
        try:
            return memory.engine.store.commit(batch(f"number {number}", f"t{number}"), fold)
        except LookupError:
            return "failed"

    results = run_threads(work)
    assert [n for n, result in enumerate(results) if result == "failed"] == list(
        range(3, THREADS, 8)
    )
    entries = memory.engine.store.scan_entries("default", 0, 1000)
    assert [entry.seq for entry in entries] == list(range(1, THREADS - 7))
    assert memory.verify()["ok"]


def test_a_full_disk_raises_store_full_and_failed_writes_leave_nothing(
    memory: Memory,
) -> None:
    memory.add("tea", user_id="alice")
    writer = memory.engine.store._database.writer
    pages = writer.execute("PRAGMA page_count").get
    writer.execute(f"PRAGMA max_page_count = {pages + 12}")
    hold_first_commit(memory, 15)
    sizes = [10 if number % 2 else 30_000 for number in range(16)]
    results = run_threads(
        lambda n: memory.engine.store.commit(batch(f"{n} " + "x" * sizes[n], f"t{n}"), fold_all), 16
    )
    kept = {f"t{n}" for n, result in enumerate(results) if not isinstance(result, Exception)}
    rows = memory.get_all(user_id="alice", limit=1000)["results"]
    assert {row["id"] for row in rows if row["memory"] != "tea"} == kept
    assert {type(result) for result in results if isinstance(result, Exception)} == {StoreFull}
    writer.execute("PRAGMA max_page_count = 1000000")
    memory.add("milk", user_id="alice")
    assert memory.verify()["ok"]


def test_the_same_text_added_concurrently_is_one_memory(memory: Memory) -> None:
    hold_first_commit(memory, THREADS - 1)
    receipts = run_threads(lambda n: memory.add("I drink tea", user_id="alice"))
    events = Counter(receipt["results"][0]["event"] for receipt in receipts)
    assert events == {"ADD": 1, "NONE": THREADS - 1}
    assert len({receipt["results"][0]["id"] for receipt in receipts}) == 1
    assert memory.stats()["memories"] == 1


def test_one_idempotency_key_sent_concurrently_is_one_write(memory: Memory) -> None:
    hold_first_commit(memory, THREADS - 1)
    said = ["I drink tea", "and milk"]
    receipts = run_threads(lambda n: memory.add(said, user_id="alice", idempotency_key="once"))
    assert {
        tuple((row["id"], row["event"]) for row in receipt["results"]) for receipt in receipts
    } == {tuple((row["id"], "ADD") for row in receipts[0]["results"])}
    assert memory.stats()["entries"] == 4


def test_concurrent_updates_of_one_memory_are_applied_in_turn(memory: Memory) -> None:
    id_ = memory.add("start", user_id="alice")["results"][0]["id"]
    hold_first_commit(memory, THREADS - 1)
    results = run_threads(lambda n: memory.update(id_, f"version {n}"))
    assert [error for error in results if isinstance(error, Exception)] == []
    changes = memory.history(id_)
    assert len(changes) == THREADS + 1
    for before, after in pairwise(changes):
        assert after["old_memory"] == before["new_memory"]
    told = {
        receipt["results"][0]["new_memory"]: receipt["results"][0]["old_memory"]
        for receipt in results
    }
    assert told == {change["new_memory"]: change["old_memory"] for change in changes[1:]}


def test_a_memory_deleted_concurrently_is_deleted_once(memory: Memory) -> None:
    id_ = memory.add("doomed", user_id="alice")["results"][0]["id"]
    hold_first_commit(memory, 15)
    results = run_threads(lambda n: memory.delete(id_), 16)
    assert sum(isinstance(result, dict) for result in results) == 1
    assert all(isinstance(result, dict | NotFoundError) for result in results)
    assert [change["event"] for change in memory.history(id_)] == ["ADD", "DELETE"]


def test_concurrent_delete_all_calls_do_not_fail(memory: Memory) -> None:
    memory.add([f"number {n}" for n in range(50)], user_id="alice")
    hold_first_commit(memory, 7)
    results = run_threads(lambda n: memory.delete_all(user_id="alice"), 8)
    assert [error for error in results if isinstance(error, Exception)] == []
    assert sum(len(result["results"]) for result in results) == 50
    assert memory.get_all(user_id="alice")["results"] == []


def test_delete_all_tolerates_a_concurrent_delete(memory: Memory) -> None:
    ids = [row["id"] for row in memory.add(["one", "two", "three"], user_id="alice")["results"]]
    store = memory.engine.store
    facts, meddled = store.find_facts, []

    def meddle(find: Any) -> Any:
        found = facts(find)
        if not meddled:
            meddled.append(memory.delete(ids[1]))
        return found

    store.find_facts = meddle
    assert {row["id"] for row in memory.delete_all(user_id="alice")["results"]} == {ids[0], ids[2]}


def test_searches_continue_during_writes(memory: Memory) -> None:
    memory.add("the lighthouse keeper drinks tea", user_id="alice")
    stop = threading.Event()
    missed: list[Any] = []

    def search_repeatedly() -> None:
        while not stop.is_set():
            found = memory.search("lighthouse keeper", user_id="alice", limit=3)["results"]
            if not found or found[0]["memory"] != "the lighthouse keeper drinks tea":
                missed.append(found)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(search_repeatedly) for _ in range(4)]
        run_threads(
            lambda n: [memory.add(f"number {n} {m}", user_id="alice") for m in range(4)], 16
        )
        stop.set()
        for reader in readers:
            reader.result()
    assert missed == []


def test_an_added_memory_is_visible_to_other_threads_at_once(memory: Memory) -> None:
    def work(number: int) -> bool:
        id_ = memory.add(f"secret word zebra{number}", user_id="alice")["results"][0]["id"]
        with ThreadPoolExecutor(1) as other:
            found = other.submit(
                memory.search, f"zebra{number}", user_id="alice", limit=5
            ).result()["results"]
        return id_ in {row["id"] for row in found}

    assert all(run_threads(work, 16))


def test_reads_and_writes_on_a_closed_store_raise(tmp_path: Path) -> None:
    memory = Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder())
    memory.add("tea", user_id="alice")
    engine = memory.engine
    started = threading.Barrier(9)

    def work(number: int) -> Any:
        started.wait()
        for turn in range(10_000):
            if number % 2:
                memory.add(f"{number} {turn}", user_id="alice")
            else:
                memory.search("tea", user_id="alice")
        return None

    with ThreadPoolExecutor(9) as pool:
        results = [pool.submit(work, number) for number in range(8)]
        started.wait()
        threading.Event().wait(0.1)
        memory.close()
        outcomes = [result.exception() for result in results]
    assert {type(outcome) for outcome in outcomes} == {StoreClosed}, outcomes
    engine.store.close()
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=hashing_embedder()) as again:
        assert again.verify()["ok"]


def test_an_awake_job_is_not_relied_on_to_wake_the_next(memory: Memory) -> None:
    writer = memory.engine.store._write
    awake, sleeper, other = (
        WriteJob(lambda db: None, keeps_cache=False, uses_buffer=False) for _ in range(3)
    )
    sleeper.asleep = other.asleep = True
    writer._finish_jobs(sleeper, other)
    writer._finished.extendleft([awake])
    assert not sleeper.wake_lock.locked()
    writer._wake_finished()
    assert not other.wake_lock.locked()
