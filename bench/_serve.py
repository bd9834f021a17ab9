"""Run one contender in a separate process: commands and timings are JSON lines.

`_serve.py <contender> <corpus> <store>` runs commands until its input ends. With `--cold` it opens
the store, runs one query, then many, and prints their times and its memory use.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._corpus import Memories
from bench._sync import syncs

if TYPE_CHECKING:
    from bench._told import Contender

COLD_SEARCHES = 300


def opener(name: str, folder: Path, *parts: Memories) -> Callable[[], Contender]:
    """Return the opener of a contender: `mem0`, or `told`, `rows` or `bare` with a durability.

    An example is `told-full`. The benchmark's own modules are loaded here, so that opening measures
    only the contender.
    """
    kind, _, durability = name.partition("-")
    if kind == "mem0":
        from bench._mem0 import Mem0

        return partial(Mem0, folder, *parts)
    from bench._told import Precomputed, Told

    if kind == "told":
        return partial(Told, folder, Precomputed(*parts), durability)
    if kind == "rows":
        from bench._rows import Rows

        return partial(Rows, folder, Precomputed(*parts), durability)
    from bench._bare import Bare

    return partial(Bare, folder, Precomputed(*parts), durability)


class Server:
    """The commands."""

    def __init__(self, name: str, corpus: Path, store: Path) -> None:
        self.stored = Memories.load(corpus, "stored")
        self.extra = Memories.load(corpus, "extra")
        self.queries = Memories.load(corpus, "queries")
        opening = opener(name, store, self.stored, self.extra, self.queries)
        gc.freeze()  # keep the benchmark's own objects out of garbage collection
        self.it = opening()
        self.used = 0

    def load(self, budget: float) -> dict[str, Any]:
        """Store the memories, user by user, until all are in or the time is up."""
        start, count = time.perf_counter(), 0
        most = 1000 if budget == float("inf") else 25
        for user, texts in self.stored.lists(most):
            self.it.bulk(texts, user)
            count += len(texts)
            if time.perf_counter() - start > budget:
                break
        return {"count": count, "seconds": time.perf_counter() - start}

    def add(self, count: int) -> dict[str, Any]:
        """Store some extra memories one by one."""
        rows = self._fresh(count)
        self._prepare([([text], user) for text, user in rows])
        synced, busy = syncs(), time.process_time_ns()
        nanos = []
        for text, user in rows:
            start = time.perf_counter_ns()
            self.it.add(text, user)
            nanos.append(time.perf_counter_ns() - start)
        cpu = (time.process_time_ns() - busy) / count
        return {
            "nanos": nanos,
            "cpu": cpu,
            "syncs": None if synced is None else ((syncs() or 0) - synced) / count,
        }

    def skip(self, count: int) -> dict[str, Any]:
        """Skip extra memories that are already stored."""
        self.used += count
        return {}

    def bulk(self, count: int) -> dict[str, Any]:
        """Store some extra memories of one user in one call."""
        texts, user = [text for text, _ in self._fresh(count)], f"bulk{self.used}"
        self._prepare([(texts, user)])
        start = time.perf_counter_ns()
        self.it.bulk(texts, user)
        return {"nanos": time.perf_counter_ns() - start, "count": count}

    def search(self, first: int, count: int) -> dict[str, Any]:
        """Run some queries."""
        asked = list(islice(self._questions(), first, first + count))
        found = 0
        nanos = []
        busy = time.process_time_ns()
        for query, user in asked:
            start = time.perf_counter_ns()
            found += self.it.search(query, user)
            nanos.append(time.perf_counter_ns() - start)
        return {"nanos": nanos, "cpu": (time.process_time_ns() - busy) / count, "found": found}

    def parts(self, first: int, count: int) -> dict[str, Any]:
        """Time the parts of a bare search."""
        from bench._bare import Bare

        assert isinstance(self.it, Bare)
        return dict(self.it.parts(list(islice(self._questions(), first, first + count))))

    def real(self, on: bool) -> dict[str, Any]:
        """Switch a real embedder on or off for queries; return whether there is one."""
        embedder: Any = getattr(self.it, "embedder", None) or self.it.memory.embedder  # type: ignore[attr-defined]
        if not on:
            embedder.real = None
        return {"there": on and embedder.load_real()}

    def _prepare(self, calls: list[tuple[list[str], str]]) -> None:
        """Let a contender prepare for the coming calls, if it needs to."""
        prepare = getattr(self.it, "prepare", None)
        if prepare is not None:
            prepare(calls)

    def close(self) -> dict[str, Any]:
        """Close the files."""
        self.it.close()
        return {}

    def _questions(self) -> Iterator[tuple[str, str]]:
        while True:
            yield from zip(self.queries.texts, self.queries.users, strict=True)

    def _fresh(self, count: int) -> list[tuple[str, str]]:
        first, self.used = self.used, self.used + count
        if self.used > len(self.extra):
            raise SystemExit(
                f"the corpus has {len(self.extra)} extra memories, and {self.used} are needed"
            )
        return list(
            zip(
                self.extra.texts[first : self.used],
                self.extra.users[first : self.used],
                strict=True,
            )
        )


def cold(name: str, corpus: Path, store: Path) -> dict[str, Any]:
    """Open a store in this new process and query it; importing NumPy is not counted."""
    queries = Memories.load(corpus, "queries")
    start = time.perf_counter_ns()
    import_module(
        {"told": "told.api.memory", "bare": "bench._bare", "mem0": "mem0"}[name.partition("-")[0]]
    )
    loaded = time.perf_counter_ns()
    opening = opener(name, store, queries)
    before = _resident()
    begun = time.perf_counter_ns()
    it = opening()
    opened = time.perf_counter_ns()
    it.search(queries.texts[0], queries.users[0])
    answered = time.perf_counter_ns()
    limit = time.perf_counter() + 20
    for query, user in zip(queries.texts[:COLD_SEARCHES], queries.users, strict=False):
        it.search(query, user)
        if time.perf_counter() > limit:
            break
    resident = _resident()
    it.close()
    return {
        "import": loaded - start,
        "open": opened - begun,
        "first": answered - opened,
        "both": answered - begun,
        "resident": resident,
        "grown": resident - before,
    }


def _resident() -> int:
    """Return the resident memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the benchmark reads /proc/self/status and so needs Linux")


def main() -> None:
    """Run commands from standard input."""
    name, corpus, store, *options = sys.argv[1:]
    out = sys.stdout
    sys.stdout = sys.stderr  # keep library output off standard output
    if "--cold" in options:
        print(json.dumps(cold(name, Path(corpus), Path(store))), file=out, flush=True)
        return
    server = Server(name, Path(corpus), Path(store))
    print("{}", file=out, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(server, command.pop("do"))(**command)
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
