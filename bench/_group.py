"""Threads that add to one memory at once, each add durable when it returns.

`_group.py <folder> <seconds>` prints the adds per second of one thread and of sixty-four. It runs
in a separate process, so that it can use another disk.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._corpus import Maker
from bench._sync import syncs
from bench._told import Precomputed, Told

CROWD = 64
ROUNDS = 3
A_SECOND = 40_000
"""Texts per second of a round; more than all rounds use."""


def measured(folder: Path, seconds: float) -> dict[str, Any]:
    """Measure adds per second and per sync, with one thread and with many, in three rounds."""
    fresh = Maker.seeded(4).memories(
        [f"user{number % CROWD}" for number in range(int(A_SECOND * seconds))]
    )
    told = Told(folder, Precomputed(fresh), "full")
    numbers = count()

    def rate(threads: int) -> tuple[float, float]:
        start, synced, first = time.perf_counter(), syncs() or 0, next(numbers)

        def work() -> None:
            while time.perf_counter() < start + seconds:
                number = next(numbers)
                told.add(fresh.texts[number], fresh.users[number])

        crowd = [threading.Thread(target=work) for _ in range(threads)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        done = next(numbers) - first - 1
        return done / (time.perf_counter() - start), done / max(1, (syncs() or 0) - synced)

    rate(CROWD)
    rounds = [(rate(1), rate(CROWD)) for _ in range(ROUNDS)]
    told.close()
    if next(numbers) > len(fresh):
        raise SystemExit(f"{len(fresh)} texts were too few")
    return {"alone": [alone for alone, _ in rounds], "crowd": [crowd for _, crowd in rounds]}


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]), float(sys.argv[2]))))
