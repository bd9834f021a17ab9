"""The cost of topics as they grow in number, and the calibration of their thresholds.

    python bench/topics.py                   100 000 turns of one scope, filed as by the sweep
    python bench/topics.py --quick           10 000 turns
    python bench/topics.py --calibrate       thresholds of the local embedders, on LoCoMo
    python bench/topics.py --calibrate --data FOLDER

The turns are generated: exchanges around centres in 384 dimensions, with a new centre now and then,
so that topics grow with turns. The consumer itself files them page by page into a separate store.
The comparison is the seed, which compares each exchange with every topic.

TOLD_EVAL_DATA is the default of --data. Only figures of the conversations are kept or printed.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from bench import _table, _topics
from bench.latency import empty_config
from told import Memory
from told.flow import run
from told.ledger.views import fold_all
from told.maintenance import topic_assignment
from told.maintenance.topic_assignment import TopicContext, begin_changes, epoch_key
from told.model.entry import Asserted, Claim, Draft, Linked
from told.model.scope import Scope
from told.model.scoring import quantise
from told.model.topics import IN_EXCHANGE, TopicIndex
from told.ports import Batch, Purpose
from told.retrieval.candidates import resolve_thresholds

DIM, EVERY, NOISE = 384, 8, 0.55
SCOPE = Scope("default", user_id="bench")
PAGE, LAST = 250, 8


class Mixture:
    """An embedder that places a text around the centre it names; equal texts are equal vectors."""

    model, dim, local = "mixture", DIM, True

    def __init__(self, fields: int = 40) -> None:
        self._fields = np.random.default_rng(0).normal(size=(fields, DIM))

    def embed(
        self,
        texts: Sequence[str],
        purpose: Purpose = "passage",  # noqa: ARG002
    ) -> Sequence[Sequence[float]]:
        """Return the vectors of some texts."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Sequence[float]:
        words = text.replace("\n", " ").split()
        middle, number = int(words[words.index("about") + 1]), int(words[words.index("number") + 1])
        around = (
            np.random.default_rng([1, middle]).normal(size=DIM)
            + self._fields[middle % len(self._fields)]
        )
        point = around + NOISE * np.random.default_rng([2, number]).normal(size=DIM)
        return [float(value) for value in point / np.linalg.norm(point)]


def written(memory: Memory, first: int, count: int, chance: random.Random) -> None:
    """Write exchanges as the sweep leaves them, around a growing number of centres."""
    store, drafts = memory.engine.store, []
    for number in range(first, first + count):
        middle = number // EVERY if number % EVERY == 0 else chance.randrange(number // EVERY + 1)
        user, agent, exchange = store.mint.new_id(), store.mint.new_id(), store.mint.new_id()
        drafts += [
            Draft(Asserted(user, Claim(f"about {middle} number {number}", role="user")), SCOPE),
            Draft(Asserted(agent, Claim(f"reply {number}", role="assistant")), SCOPE),
            Draft(Linked(user, IN_EXCHANGE, exchange), SCOPE),
            Draft(Linked(agent, IN_EXCHANGE, exchange), SCOPE),
        ]
    store.commit(Batch("default", drafts), fold_all)


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def looked_up(
    memory: Memory, embedder: Mixture, chance: random.Random, tries: int = 40
) -> tuple[float, float, float]:
    """Time the nearest-topic lookup and the full comparison; return how often they agree."""
    engine = memory.engine
    limits = resolve_thresholds(engine.settings, embedder)
    files = TopicContext(
        engine.store,
        engine.store.mint,
        engine.settings,
        limits,
        embedder.model,
        embedder,
        engine.topic_cache,
    )
    shelf = run(begin_changes(files, SCOPE)).topic_index
    noted = engine.store.read_notes("default", "topics", [epoch_key(SCOPE)])
    files.cache.put(SCOPE, noted[epoch_key(SCOPE)], shelf)
    exact = TopicIndex(
        shelf.codes(), topic_assignment.choose_dot_products(), exact_limit=len(shelf)
    )
    texts = [
        f"about {chance.randrange(len(shelf))} number {10**7 + number}" for number in range(tries)
    ]
    codes = [quantise(vector) for vector in embedder.embed(texts)]
    begun = perf_counter()
    near = [shelf.find_nearest(code) for code in codes]
    between = perf_counter()
    whole = [exact.find_nearest(code) for code in codes]
    ended = perf_counter()
    right = sum(one == other for one, other in zip(near, whole, strict=True))
    return (between - begun) / tries * 1e3, (ended - between) / tries * 1e3, right / tries


def kept(turns: int) -> dict[str, Any]:
    """File turns, and measure the cost of one more exchange now and then."""
    embedder, chance, rows = Mixture(), random.Random(7), list[dict[str, float]]()
    stops = [turns // 2 >> step for step in (4, 3, 2, 1, 0)]
    os.environ["TOLD_CONFIG"] = str(empty_config())
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(f"sqlite:///{folder}/topics.db", embedder=embedder, durability="normal") as memory,
    ):
        done, recent, before = 0, list[float](), peak()
        while done < turns // 2:
            count = min(PAGE, turns // 2 - done)
            written(memory, done, count, chance)
            done += count
            begun = perf_counter()
            filed = memory.file_topics()
            recent = [*recent[-LAST:], (perf_counter() - begun) / count * 1e3]
            if filed["warnings"] or filed["filed"] != count:
                raise SystemExit(f"{filed} of {count} exchanges were filed")
            if done >= stops[0]:
                rows.append(
                    looked_at(memory, embedder, chance, done, median(recent), peak() - before)
                )
                stops = stops[1:] or [done + 1]
    return {"turns": turns, "rows": rows, **slopes(rows)}


def looked_at(
    memory: Memory, embedder: Mixture, chance: random.Random, done: int, each: float, mb: float
) -> dict[str, float]:
    """Print and return the figures of one stop."""
    topics = sum(
        1
        for _ in memory.engine.store.current_facts(
            SCOPE, memory.engine.store.mint.now(), kinds=["topic"]
        )
    )
    near, whole, right = looked_up(memory, embedder, chance)
    row = {
        "turns": 2 * done,
        "topics": topics,
        "ms": each,
        "find": near,
        "scan": whole,
        "right": right,
        "mb": mb,
    }
    print({name: round(value, 3) for name, value in row.items()}, file=sys.stderr, flush=True)
    return row


def slopes(rows: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the exponent by which costs grow with the number of topics: 1 is linear."""
    first, last = rows[0], rows[-1]
    more = math.log(last["topics"] / first["topics"])
    powers = {name: math.log(last[name] / first[name]) / more for name in ("ms", "find", "scan")}
    verdicts = [
        _table.verdict(
            "cost of an exchange grows with topics to the power of", powers["ms"], "<=", 0.7, ""
        ),
        _table.verdict("finding the nearest topic, the same", powers["find"], "<=", 0.7, ""),
        _table.figure("comparing with every topic, the same", powers["scan"], ""),
        _table.verdict("the nearest of all is found", last["right"], ">=", 0.9, ""),
        _table.verdict("memory for all that", last["mb"], "<=", 400.0, " MB"),
    ]
    return {"powers": powers, "verdicts": verdicts}


HEAD = (
    "turns",
    "topics",
    "ms an exchange",
    "ms to find",
    "ms to compare all",
    "the same found",
    "MB more",
)


def table(results: dict[str, Any]) -> list[list[str]]:
    """Format the stops as rows."""
    number = _table.number
    return [
        [
            number(row["turns"]),
            number(row["topics"]),
            number(row["ms"]),
            number(row["find"]),
            number(row["scan"]),
            number(row["right"]),
            number(row["mb"]),
        ]
        for row in results["rows"]
    ]


def page(results: dict[str, Any]) -> str:
    """Format the results for the docs."""
    machine = results["machine"]
    return "\n\n".join(
        [
            f"`{machine['command']}` on {_table.where(machine)}.",
            _table.markdown(HEAD, table(results)),
            _table.markdown(_table.VERDICT_HEAD, _table.verdict_rows(results["verdicts"])),
        ]
    )


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=100_000, help="how many turns are filed")
    parser.add_argument("--quick", action="store_true", help="10 000 turns")
    parser.add_argument(
        "--publish", action="store_true", help="put the tables into docs/reference/benchmarks.md"
    )
    parser.add_argument("--calibrate", action="store_true", help="measure thresholds instead")
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("TOLD_EVAL_DATA"), help="the folder of the data"
    )
    parser.add_argument(
        "--embedders", default="e5-small,minilm", help="which local models are calibrated"
    )
    asked = parser.parse_args()
    if asked.calibrate:
        _topics.calibrate(asked.data, asked.embedders.split(","))
        return
    results = {"machine": _table.machine(), **kept(10_000 if asked.quick else asked.turns)}
    print(_table.plain(HEAD, table(results)), "\n")
    print(_table.plain(_table.VERDICT_HEAD, _table.verdict_rows(results["verdicts"])))
    print(_table.save("topics", results))
    if asked.publish:
        _table.publish("topics", page(results))


if __name__ == "__main__":
    main()
