"""Profile an operation: `python bench/_profile.py add|bulk|search|fresh [--top 40]`.

Print processor time per call without the profiler, then the profile by own time. `fresh` is a
search right after an add to the same scope. Durability is normal, so that the disk does not
dominate.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._corpus import Maker, Memories, spread_over_users
from bench._told import Precomputed, Told

WORK = {"add": 1000, "bulk": 5, "search": 1000, "fresh": 500}


def works(told: Told, extra: Memories, queries: Memories) -> dict[str, Callable[[int], object]]:
    """Return the operations that can be profiled."""

    def fresh(number: int) -> None:
        told.add(extra.texts[number], queries.users[number % len(queries)])
        told.search(queries.texts[number % len(queries)], queries.users[number % len(queries)])

    return {
        "add": lambda number: told.add(extra.texts[number], extra.users[number]),
        "bulk": lambda number: told.bulk(
            extra.texts[number * 1000 : (number + 1) * 1000], f"bulk{number}"
        ),
        "search": lambda number: told.search(
            queries.texts[number % 500], queries.users[number % 500]
        ),
        "fresh": fresh,
    }


def main() -> None:
    """Fill a store and run the operation twice, the second time under the profiler."""
    parser = argparse.ArgumentParser(description="Where the time goes")
    parser.add_argument("what", choices=WORK)
    parser.add_argument("--top", type=int, default=35)
    parser.add_argument("--memories", type=int, default=10_000)
    asked = parser.parse_args()
    maker = Maker.seeded(11)
    stored = maker.memories(spread_over_users(asked.memories))
    extra = maker.memories([f"user{number % 1000}" for number in range(12_000)])
    queries = maker.queries(stored, [number % 500 for number in range(500)])
    with tempfile.TemporaryDirectory() as folder:
        told = Told(Path(folder), Precomputed(stored, extra, queries), "normal")
        for user, texts in stored.lists():
            told.bulk(texts, user)
        work, times = works(told, extra, queries)[asked.what], WORK[asked.what]
        busy, start = time.process_time(), time.perf_counter()
        for number in range(times):
            work(number)
        busy, spent = time.process_time() - busy, time.perf_counter() - start
        print(
            f"{asked.what}: {busy / times * 1e6:.0f} µs of processor, {spent / times * 1e6:.0f} "
            "µs in all, per call"
        )
        profiler = cProfile.Profile()
        profiler.enable()
        for number in range(times, 2 * times):
            work(number)
        profiler.disable()
        pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(asked.top)
        told.close()


if __name__ == "__main__":
    main()
