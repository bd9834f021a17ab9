"""A writer killed at any moment loses no acknowledged write and leaves no partial one."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.ports import VIEWS
from told.testing import hashing_embedder

KILLS = int(os.environ.get("TOLD_KILLS", "200"))
STEPS = ("begun", "appended", "folded", "headed", "written", "committed")
LIVES_OF_A_FILE = 6
Report = list[dict[str, Any]]
Kill = Callable[..., Report]

pytestmark = [pytest.mark.crash, pytest.mark.timeout(0), pytest.mark.xdist_group("crash")]


@pytest.fixture(scope="module")
def kill() -> Iterator[Kill]:
    """Run one writer process until it is killed, and return what it reported."""
    program = [sys.executable, str(Path(__file__).parent / "writer.py")]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def order(path: Path, seed: int, **how: Any) -> Report:
            usual = {"threads": 1, "step": "", "nth": 1, "lines": 1, "delay": 0.0, "writes": 400}
            server.stdin.write(json.dumps({**usual, "path": str(path), "seed": seed, **how}) + "\n")
            server.stdin.flush()
            return [json.loads(line) for line in json.loads(server.stdout.readline())]

        yield order
        server.stdin.close()


class Acknowledged:
    """The writes that the writers of one file had acknowledged, over all runs."""

    def __init__(self) -> None:
        self.texts: dict[str, str | None] = {}
        self.receipts: dict[str, list[str]] = {}

    def keep(self, memory: Memory, said: Report) -> None:
        """Compare one run's report with the store; an unanswered write may be there or not, but
        whole.
        """
        assert not [line for line in said if "failed" in line], said[-1]
        done = {line["done"]: line["ids"] for line in said if "done" in line}
        now = {row["id"]: row["memory"] for row in list_memories(memory)}
        for line in said:
            if "tried" in line:
                self._settle(line["tried"], line, done.get(line["tried"]), now)
        assert now == {id_: text for id_, text in self.texts.items() if text is not None}

    def _settle(
        self, mark: str, line: dict[str, Any], ids: list[str] | None, now: dict[str, str]
    ) -> None:
        match line["op"]:
            case "update":
                if ids or now.get(line["id"]) == f"{mark} updated":
                    self.texts[line["id"]] = f"{mark} updated"
            case "delete":
                if ids or line["id"] not in now:
                    self.texts[line["id"]] = None
            case "say again":
                self.receipts[mark] = [line["id"]]
                assert ids in (None, [line["id"]])
            case _:
                self._added(mark, line["count"], ids, now)

    def _added(self, mark: str, count: int, ids: list[str] | None, now: dict[str, str]) -> None:
        texts = [f"{mark} part {part}" for part in range(count)]
        if ids is None:
            ids = [id_ for id_, text in now.items() if text in texts]
            assert len(ids) in (0, count), f"{mark} was kept by halves"
        if ids:
            self.receipts[mark] = ids
            self.texts.update(zip(ids, texts, strict=True))


def list_memories(memory: Memory) -> list[dict[str, Any]]:
    """Return all of the writer's memories, page by page."""
    rows: list[dict[str, Any]] = []
    while page := memory.get_all(user_id="writer", limit=1000, offset=len(rows))["results"]:
        rows += page
    return rows


def reopen(path: Path) -> Memory:
    return Memory(f"sqlite:///{path}", embedder=hashing_embedder(dim=16, model="hash-16"))


def dump_views(memory: Memory) -> dict[str, list[Any]]:
    return {view: list(memory.engine.store.view_rows("default", view)) for view in VIEWS}


def check(path: Path, promises: Acknowledged, said: Report) -> None:
    """Check everything that must hold after a kill."""
    with reopen(path) as memory:
        promises.keep(memory, said)
        verdict = memory.verify()
        assert verdict["ok"], verdict
        grown = dump_views(memory)
        memory.rebuild()
        assert dump_views(memory) == grown
        assert memory.stats()["pending_vectors"] == 0
        retry(memory, promises, said)


def retry(memory: Memory, promises: Acknowledged, said: Report) -> None:
    """Send the first, last and unanswered adds again; each receipt must be the stored one."""
    adds = [line for line in said if line.get("op") in ("add", "several", "bulk")]
    for line in {line["tried"]: line for line in adds[:1] + adds[-5:]}.values():
        mark = line["tried"]
        texts = [
            {"role": "user", "content": f"{mark} part {part}"} for part in range(line["count"])
        ]
        before = promises.receipts.get(mark)
        for _ in range(2):
            again = memory.add(texts, user_id="writer", idempotency_key=mark)["results"]
            assert [row["event"] for row in again] == ["ADD"] * len(texts)
            ids = [row["id"] for row in again]
            assert ids == (before or ids)
            before = ids
        if mark not in promises.receipts:
            promises.receipts[mark] = ids
            promises.texts.update(zip(ids, (row["content"] for row in texts), strict=True))
            best = memory.search(texts[0]["content"], user_id="writer", limit=5)["results"]
            assert ids[0] in {row["id"] for row in best}


@pytest.mark.parametrize("threads", [1, 4])
def test_kill_at_any_moment_loses_no_acknowledged_write(
    kill: Kill, tmp_path: Path, threads: int
) -> None:
    dice = random.Random(f"{threads}/{KILLS}")
    kills = max(KILLS * 7 // 20, 1)
    acknowledged = 0
    for number in range(kills):
        if number % LIVES_OF_A_FILE == 0:
            path, promises = tmp_path / f"{number}.db", Acknowledged()
        early = number % 8 == 3
        lines, delay = (
            (1, dice.uniform(0, 0.03)) if early else (dice.randint(1, 30), dice.uniform(0, 0.004))
        )
        said = kill(path, number, threads=threads, lines=lines, delay=delay)
        check(path, promises, said)
        acknowledged += sum("done" in line for line in said)
    assert acknowledged > kills, (
        "the writers were killed before they wrote anything; the test shows nothing"
    )


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("step", STEPS)
def test_kill_during_a_commit_leaves_all_of_it_or_nothing(
    kill: Kill, tmp_path: Path, step: str, threads: int
) -> None:
    path, promises = tmp_path / "m.db", Acknowledged()
    for number in range(max(KILLS * 3 // 10 // 12, 1)):
        said = kill(path, number, threads=threads, step=step, nth=1 + number * 2)
        assert said[0] == {"born": True}
        tried, done = (sum(word in line for line in said) for word in ("tried", "done"))
        assert tried > done, "the writer outlived the step"
        check(path, promises, said)
