"""The cost of a turn under decay: told, which computes it lazily, against stores that tick.

    python bench/forget.py                     1 k, 10 k and 100 k memories in one scope
    python bench/forget.py --quick             1 k and 10 k
    python bench/forget.py --sizes 1000,50000  other sizes

A turn of told is one `add` of a short verbatim text, or the bare entry of a passed turn. For the
ontology store in a file one `upsert` is measured, and the size is the number of earlier turns. The
naive stores update a column at every turn: one in a dictionary, one in an SQLite file. Sizes and
contenders alternate in short rounds. A figure is the median processor time of all calls; a ratio is
the median of the ratios within each round.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import _table
from told import Memory
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft, Evidence, Observed
from told.model.kind import load_builtin_ontology, load_kind
from told.model.scope import Scope
from told.ontology import MemoryStore
from told.ports import Batch

WORK = _table.RESULTS / "work-forget"
USER = "visitor"
SIZES: Final = (1_000, 10_000, 100_000)
QUICK: Final = (1_000, 10_000)
ROUNDS, CALLS, TICKS = 7, 40, 3
"""Rounds, turns of told in each, and turns of the slower naive stores."""
MICRO = 1e3
KIND: Final = {
    "name": "style",
    "tier": "long_term",
    "weight": 0.7,
    "description": "What a visitor likes, for a few hundred turns.",
}
STYLES: Final = {
    "concepts": {
        "style": {
            "label": "Style",
            "persistence_class": "long_term",
            "salience_weight": 0.7,
            "cardinality": 5,
            "examples": ["I like X"],
        }
    }
}
UPSERT: Final = "told, ontology store, durable"
Turn = Callable[[], None]


# Contenders


@contextmanager
def told(size: int) -> Iterator[Mapping[str, Turn]]:
    """Open a file with this many memories that fade by turns; return its two sorts of turn."""
    numbers = count()
    kinds = load_builtin_ontology().with_kinds(load_kind(KIND))
    url = f"sqlite:///{WORK / f'told{size}.db'}"
    with Memory(url, embedder="none", durability="normal", ontology=kinds) as memory:
        store, scope = memory.engine.store, Scope.create(user_id=USER)
        texts = (f"The visitor likes style number {number}" for number in range(size))
        for some in batches(texts, 2_000):
            drafts = [
                Draft(Asserted(store.mint.new_id(), Claim(text, "style")), scope) for text in some
            ]
            store.commit(Batch("default", drafts), fold_all)

        def add() -> None:
            memory.add(f"We walk on to room {next(numbers)}", user_id=USER, infer=False)

        def tick() -> None:
            passed = Observed(store.mint.new_id(), Evidence("", sort="tick", meta={"turns": 1}))
            store.commit(Batch("default", [Draft(passed, scope)]), fold_all)

        yield {"told, add": add, "told, tick": tick}


@contextmanager
def in_a_dictionary(size: int) -> Iterator[Mapping[str, Turn]]:
    """Decay and prune every value of a dictionary at each turn."""
    facts = {f"The visitor likes style number {number}": 0.7 for number in range(size)}

    def tick() -> None:
        for key in list(facts):
            facts[key] *= 0.99999
            if facts[key] < 0.1:
                del facts[key]

    yield {"naive, dictionary": tick}


@contextmanager
def in_a_file(size: int) -> Iterator[Mapping[str, Turn]]:
    """Decay and prune a column of a table at each turn."""
    with sqlite3.connect(WORK / f"naive{size}.db", isolation_level=None) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("CREATE TABLE fact (id INTEGER PRIMARY KEY, text TEXT, salience REAL)")
        rows = ((f"The visitor likes style number {number}", 0.7) for number in range(size))
        db.execute("BEGIN")
        db.executemany("INSERT INTO fact (text, salience) VALUES (?, ?)", rows)
        db.execute("COMMIT")

        def tick() -> None:
            db.execute("BEGIN")
            db.execute("UPDATE fact SET salience = salience * 0.99999")
            db.execute("DELETE FROM fact WHERE salience < 0.1")
            db.execute("COMMIT")

        yield {"naive, file": tick}
    db.close()


@contextmanager
def ontology(size: int) -> Iterator[Mapping[str, Turn]]:
    """Open an ontology store over a file with this many passed turns."""
    numbers = count()
    with Memory(
        f"sqlite:///{WORK / f'ontology{size}.db'}", embedder="none", durability="normal"
    ) as memory:
        visitor = MemoryStore(STYLES, memory=memory, user_id=USER)
        store, scope = memory.engine.store, Scope.create(user_id=USER)
        for some in batches(map(str, range(size)), 2_000):
            passed = [
                Observed(store.mint.new_id(), Evidence("", sort="tick", meta={"turns": 1}))
                for _ in some
            ]
            store.commit(Batch("default", [Draft(each, scope) for each in passed]), fold_all)

        def upsert() -> None:
            value = f"style number {next(numbers)}"
            visitor.upsert("style", value, evidence=f"I like {value}")

        yield {UPSERT: upsert}


CONTENDERS = (told, ontology, in_a_dictionary, in_a_file)


def batches(items: Iterator[str], size: int) -> Iterator[Sequence[str]]:
    """Split the items into batches."""
    return iter(lambda: list(islice(items, size)), [])


# Measuring


def measured(turn: Turn, calls: int) -> list[int]:
    """Return the processor time of each call in nanoseconds."""
    found: list[int] = []
    for _ in range(calls):
        busy = time.process_time_ns()
        turn()
        found.append(time.process_time_ns() - busy)
    return found


def rounds(sizes: Sequence[int]) -> dict[str, dict[int, list[list[int]]]]:
    """Time every contender at every size, by rounds, without the warm-up round."""
    with ExitStack() as opened:
        turns: dict[str, dict[int, Turn]] = {}
        for size in sizes:
            print(f"filling stores of {size} memories ...", file=sys.stderr)
            for contender in CONTENDERS:
                for name, turn in opened.enter_context(contender(size)).items():
                    turns.setdefault(name, {})[size] = turn
        found: dict[str, dict[int, list[list[int]]]] = {
            name: {size: [] for size in sizes} for name in turns
        }
        for number in range(ROUNDS + 1):
            print(f"round {number} of {ROUNDS}", file=sys.stderr)
            for name, by_size in turns.items():
                for size, turn in by_size.items():
                    times = measured(turn, TICKS if name.startswith("naive") else CALLS)
                    found[name][size] += [times] if number else []
        return found


def growth(by_size: Mapping[int, list[list[int]]], large: int, small: int) -> float:
    """Return how many times longer a turn takes at the large size."""
    pairs = zip(by_size[large], by_size[small], strict=True)
    return statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs)


def micros(found: list[list[int]]) -> float:
    """Return the median call in microseconds."""
    return statistics.median(time for times in found for time in times) / MICRO


def judged(
    found: Mapping[str, Mapping[int, list[list[int]]]], sizes: Sequence[int]
) -> list[dict[str, Any]]:
    """Compare with the targets and the naive stores."""
    small, large = min(sizes), max(sizes)
    verdicts: list[dict[str, Any]] = []
    for name, by_size in found.items():
        what, of = ("an upsert", "turns") if name == UPSERT else ("a turn", "memories")
        title = f"{name}: {what} at {_table.number(large)} / at {_table.number(small)} {of}"
        grown = growth(by_size, large, small)
        mine = name.startswith("told")
        verdicts.append(
            _table.verdict(title, grown, "<=", 1.5) if mine else _table.figure(title, grown, "×")
        )
    apart = micros(found["naive, file"][large]) / micros(found["told, add"][large])
    verdicts.append(
        _table.figure(f"naive, file / told, add at {_table.number(large)} memories", apart, "×")
    )
    return verdicts


# Reporting


def table(
    found: Mapping[str, Mapping[int, list[list[int]]]], sizes: Sequence[int]
) -> list[list[str]]:
    """Return one row per contender."""
    return [
        [name, *(_table.number(micros(by_size[size])) for size in sizes)]
        for name, by_size in found.items()
    ]


def main() -> None:
    """Measure, print, save and, if asked, publish."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--sizes", help="sizes, such as 1000,50000")
    parser.add_argument("--publish", action="store_true", help="write the table into the docs")
    options = parser.parse_args()
    sizes = (
        [int(size) for size in options.partition_sizes.split(",")]
        if options.partition_sizes
        else QUICK
        if options.quick
        else SIZES
    )
    facts = _table.machine()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    found = rounds(sizes)
    verdicts = judged(found, sizes)
    head = ("µs of a turn, p50", *(f"{_table.number(size)} memories" for size in sizes))
    rows = table(found, sizes)
    print(
        _table.plain(head, rows),
        _table.plain(_table.VERDICT_HEAD, _table.verdict_rows(verdicts)),
        sep="\n\n",
    )
    results = {"machine": facts, "sizes": list(sizes), "rounds": found, "verdicts": verdicts}
    print(f"\nkept in {_table.save('forget', results).relative_to(Path.cwd())}")
    if options.publish:
        command = f"`{facts['command']}` on {_table.where(facts)}."
        tables = (
            _table.markdown(head, rows),
            _table.markdown(_table.VERDICT_HEAD, _table.verdict_rows(verdicts)),
        )
        _table.publish("forget", "\n\n".join([command, *tables]))
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
