"""Cancel a task inside a verb at every effect: before it starts, while it runs, and after it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from locks import locks
from told import AsyncMemory
from told.errors import ToldError
from told.model.entry import Observed
from told.testing import hashing_embedder

PATIENCE = 10.0
MOMENTS = ("before", "during", "after")
Verb = Callable[[AsyncMemory, str], Awaitable[Any]]


class CancellingExecutor(ThreadPoolExecutor):
    """Cancel a task at one of the jobs it submits to threads."""

    def __init__(self) -> None:
        super().__init__(4)
        self.task: asyncio.Task[Any] | None = None
        self.left, self.moment = 0, ""
        self.closed = threading.Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.left -= 1
        if self.task is None or self.left:
            return super().submit(fn, *args, **kwargs)
        if self.moment == "before":
            self.task.cancel()
            return Future()
        task, loop, ended = self.task, asyncio.get_running_loop(), threading.Event()
        task.add_done_callback(lambda _: ended.set())

        def work() -> Any:
            if self.moment == "after":
                done = fn(*args, **kwargs)
                loop.call_soon_threadsafe(task.cancel)
                return done
            loop.call_soon_threadsafe(task.cancel)
            (self.closed if self.moment == "until closed" else ended).wait(PATIENCE)
            return fn(*args, **kwargs)

        return super().submit(work)


async def cancel_at(
    executor: CancellingExecutor, verb: Awaitable[Any], effect: int, moment: str
) -> bool:
    """Run a verb and cancel it at an effect; return whether it got that far."""
    executor.left, executor.moment = effect, moment
    executor.task = asyncio.ensure_future(verb)
    try:
        await executor.task
    except asyncio.CancelledError:
        return True
    else:
        return False
    finally:
        executor.task = None


async def add(memory: AsyncMemory, mark: str) -> Any:
    """Add a message."""
    return await memory.add(
        [{"role": "user", "content": f"My friend {mark} lives in Porto"}], user_id="alice"
    )


async def keep(memory: AsyncMemory, mark: str) -> Any:
    """Add a text without extraction."""
    return await memory.add(f"the words of {mark}", user_id="alice", infer=False)


async def search(memory: AsyncMemory, _mark: str) -> Any:
    """Search."""
    return await memory.search("where does my friend live", user_id="alice")


async def context(memory: AsyncMemory, _mark: str) -> Any:
    """Build a context."""
    return await memory.context("friends", user_id="alice")


async def update(memory: AsyncMemory, mark: str) -> Any:
    """Update the first memory."""
    [first] = (await memory.get_all(user_id="alice", limit=1))["results"]
    return await memory.update(first["id"], f"changed by {mark}")


async def wait(memory: AsyncMemory, mark: str) -> Any:
    """Defer extraction and wait for it."""
    await memory.add(f"My friend {mark} lives in Porto", user_id="alice", deferred=True)
    return await memory.wait()


async def leave(memory: AsyncMemory, _mark: str) -> Any:
    """Search and read the queue, which flushes the access log."""
    await memory.search("friends", user_id="alice")
    return await memory.queue()


VERBS: Sequence[Verb] = (add, keep, search, context, update, wait, leave)
TELLING = (add, keep, wait)


@pytest.fixture(params=["sqlite", "ram"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db" if request.param == "sqlite" else "ram://"


def count_recalls(memory: AsyncMemory) -> list[int]:
    """Return a list that collects the number of recalls each read logs."""
    counts, note = list[int](), memory.engine.hot_buffers.record_hits

    def noting(account: str, scope: Any, hits: Sequence[Any], *rest: Any) -> None:
        counts.append(len({hit.id for hit in hits}))
        note(account, scope, hits, *rest)

    memory.engine.hot_buffers.record_hits = noting  # type: ignore[method-assign, assignment]
    return counts


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_cancelled_verb_loses_nothing_and_releases_its_locks(url: str, verb: Verb) -> None:
    asyncio.run(cancel_at_every_effect(url, verb))


async def cancel_at_every_effect(url: str, verb: Verb) -> None:
    executor = CancellingExecutor()
    asyncio.get_running_loop().set_default_executor(executor)
    async with AsyncMemory(url, embedder=hashing_embedder(), access_flush=2) as memory:
        await memory.add("My friend Anna lives in Lisbon", user_id="alice")
        told, noted, effects = ["Anna"], count_recalls(memory), 0
        for effect in range(1, 100):
            marks = [f"N{effect}{moment}" for moment in MOMENTS]
            cuts = [
                await cancel_at(executor, verb(memory, f"N{effect}{when}"), effect, when)
                for when in MOMENTS
            ]
            told += [
                mark for mark, cut in zip(marks, cuts, strict=True) if not cut and verb in TELLING
            ]
            if not any(cuts):
                break
            effects = effect
        assert effects > 1
        await asyncio.wait_for(verb(memory, "another"), PATIENCE)
        await assert_intact(memory, told)
        assert (await memory.stats())["recalls"] == sum(noted)


async def assert_intact(memory: AsyncMemory, told: Sequence[str]) -> None:
    """Check that a memory holds what it acknowledged and still works, once all threads are done."""
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(asyncio.to_thread(bool) for _ in range(8)))
        assert (await memory.verify())["ok"]
        assert (await memory.wait())["pending"] == 0
    entries = memory.engine.store.scan_entries("default", 0, 10_000)
    seen = [entry.verb.evidence for entry in entries if isinstance(entry.verb, Observed)]
    said = " ".join(evidence.content for evidence in seen if evidence is not None)
    assert [mark for mark in told if mark not in said] == []
    assert {owner for owner, lock in locks(memory) if not is_free(lock)} == set()


def is_free(lock: Any) -> bool:
    taken: bool = lock.acquire(timeout=PATIENCE)
    if taken:
        lock.release()
    return taken


def test_timed_out_tasks_lose_nothing_beside_others(url: str) -> None:
    asyncio.run(run_with_timeouts(url))


async def run_with_timeouts(url: str) -> None:
    told, errors = list[str](), list[BaseException]()

    async def timed(memory: AsyncMemory, number: int) -> None:
        verb = VERBS[number % len(VERBS)]
        try:
            await asyncio.wait_for(verb(memory, f"N{number}e"), number % 11 * 0.002)
        except TimeoutError:
            return
        except ToldError as error:
            errors.append(error)
        if verb in TELLING:
            told.append(f"N{number}e")

    async with AsyncMemory(url, embedder=hashing_embedder(), access_flush=3) as memory:
        await memory.add("My friend Anna lives in Lisbon", user_id="alice")
        for first in range(0, 84, 12):
            await asyncio.gather(*(timed(memory, first + each) for each in range(12)))
        assert errors == []
        await assert_intact(memory, told)


def test_memory_can_be_closed_while_a_cancelled_task_still_runs_in_a_thread(
    tmp_path: Path,
) -> None:
    asyncio.run(close_meanwhile(f"sqlite:///{tmp_path}/m.db"))


async def close_meanwhile(url: str) -> None:
    executor = CancellingExecutor()
    asyncio.get_running_loop().set_default_executor(executor)
    for effect in range(1, 100):
        async with AsyncMemory(url, embedder=hashing_embedder()) as memory:
            await keep(memory, f"N{effect}e")
            executor.closed.clear()
            going_on = await cancel_at(executor, keep(memory, "nobody"), effect, "until closed")
        executor.closed.set()
        async with AsyncMemory(url, embedder=hashing_embedder()) as memory:
            await assert_intact(memory, [f"N{each}e" for each in range(1, effect + 1)])
        if not going_on:
            break
    assert effect > 1


class Slow:
    """A model that reports a call and answers only when released."""

    model, local = "slow", True

    def __init__(self) -> None:
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def ask(self, _system: str, _user: str, *, schema: Any = None) -> str:
        assert schema is not None
        self.asked.set()
        await self.let.wait()
        return '{"facts": []}'


def test_evidence_is_kept_when_a_task_waiting_for_a_model_is_cancelled(url: str) -> None:
    asyncio.run(cancel_while_waiting(url))


async def cancel_while_waiting(url: str) -> None:
    slow = Slow()
    async with AsyncMemory(url, embedder=hashing_embedder(), llm=slow) as memory:
        for number in range(3):
            task = asyncio.create_task(add(memory, f"N{number}e"))
            await asyncio.wait_for(slow.asked.wait(), PATIENCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            slow.asked.clear()
        slow.let.set()
        await assert_intact(memory, ["N0e", "N1e", "N2e"])
