"""`AsyncMemory` behaves exactly like `Memory`."""

import asyncio
import tempfile

import pytest
from hypothesis import given

from histories import Player, answers, any_step, caller, questions, scripts, tried
from told import AsyncMemory, Memory
from told.errors import StoreError
from told.flow import arun, call, gather_flows, run
from told.testing import HashingEmbedder, ManualClock, seeded_mint


def open_memory(colour, kind, folder):
    clock = ManualClock()
    url = "ram://" if kind == "ram" else f"sqlite:///{folder}/{colour.__name__}.db"
    return colour(
        url, embedder=HashingEmbedder(), mint=seeded_mint(1, clock), durability="normal"
    ), clock


def make_blocking(runner, memory):
    return lambda verb, *args, **kwargs: runner.run(getattr(memory, verb)(*args, **kwargs))


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@given(script=scripts(any_step), question=questions)
@tried(20)
def test_script_has_the_same_outcome_in_sync_and_async(kind, script, question):
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        blocking, clock = open_memory(Memory, kind, folder)
        waiting, other_clock = open_memory(AsyncMemory, kind, folder)
        try:
            here = Player(caller(blocking), clock)
            there = Player(make_blocking(runner, waiting), other_clock)
            assert here.play(script) == there.play(script)
            assert answers(here.call, question, here.ids) == answers(
                there.call, question, there.ids
            )
            for verb in ("verify", "rebuild"):
                assert here.call(verb) == there.call(verb)
            for memory_id in here.ids:
                assert here.call("history", memory_id) == there.call("history", memory_id)
        finally:
            blocking.close()
            waiting.close()


def steps(log, fail):
    """Return a flow that calls sync and async functions, in parallel and in order, and cleans up on
    failure.
    """

    def plain(value):
        if value == fail:
            raise StoreError(f"refused {value}")
        return value + 1

    async def waiting(value):
        await asyncio.sleep(0)
        return plain(value)

    def branch(value):
        return (yield from call(plain, value)) * 10

    try:
        first = yield from call(plain, 0)
        second = yield from call(waiting, first)
        several = yield from gather_flows([branch(second), branch(second + 1), branch(second + 2)])
        return first, second, list(several), list((yield from gather_flows([])))
    except StoreError as error:
        log.append(str(error))
        return (yield from call(plain, 90))
    finally:
        log.append("tidied")


@pytest.mark.parametrize("fail", [None, 0, 1, 2, 3, 4])
def test_both_drivers_run_a_flow_the_same_way(fail):
    blocking, waiting = [], []
    assert run(steps(blocking, fail)) == asyncio.run(arun(steps(waiting, fail)))
    assert blocking == waiting
    assert blocking[-1] == "tidied"


def test_blocking_flow_runs_inside_a_running_event_loop():
    async def main():
        return run(steps([], None))

    assert asyncio.run(main()) == run(steps([], None))


def test_many_tasks_share_one_memory(tmp_path):
    async def main():
        async with AsyncMemory(
            f"sqlite:///{tmp_path}/m.db", embedder="hash", durability="normal"
        ) as memory:
            await asyncio.gather(*(memory.add(f"fact {n}", user_id=f"u{n % 3}") for n in range(30)))
            found = await asyncio.gather(*(memory.get_all(user_id=f"u{n}") for n in range(3)))
            assert (await memory.verify())["ok"]
            return sorted(row["memory"] for rows in found for row in rows["results"])

    assert asyncio.run(main()) == sorted(f"fact {n}" for n in range(30))
