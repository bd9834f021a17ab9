"""The ratios that must hold, each measured within one run and compared with its target.

    python bench/ratios.py           all of them
    python bench/ratios.py --quick   smaller sizes, about a minute
    python bench/ratios.py --sync 3  group commits with 3 ms syncs (default 1, 2, 5; 0 for none)

- a scoped query with ten times as many other scopes: warm, right after an add, and cold
- hybrid recall without embedding against a bare SELECT of the same ten rows by id
- a context of 1000 tokens from 10 000 passages against a bare scan, full-text query and fetch
- 64 concurrent adding threads against one, at full durability, on fast and slow disks
- the ten nearest by the index against the ten nearest by exact single-precision search
- BM25 of the index against a plain BM25 over the one scope
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import apsw
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import _bare as bare
from bench import _sync, _table
from bench._corpus import Maker, Memories
from bench._sync import OWN
from bench._told import SPEAKER, Precomputed
from told import Memory
from told.model.fact import NEVER
from told.model.query import AsOf, FactQuery, IndexQuery
from told.model.scope import Scope
from told.text.tokens import extract_query_terms, extract_terms

WORK = _table.RESULTS / "work-ratios"
ROWS = 10
DEPTH = 100
LARGE = 10_000
BUDGET = 1_000
NOW = AsOf(NEVER - 1, NEVER - 1)


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of work."""

    scopes: int
    scope_rows: int
    queries: int
    rounds: int
    seconds: float
    sizes: tuple[int, ...]
    syncs: tuple[float, ...] = (1.0, 2.0, 5.0)


QUICK = Effort(30, 100, 60, 5, 1.0, (1_000, 10_000))
FULL = Effort(100, 100, 200, 9, 3.0, (1_000, 10_000, 50_000))


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled store, and queries about some of its memories."""

    memory: Memory
    stored: Memories
    queries: Memories
    path: Path

    @classmethod
    def make(
        cls, name: str, maker: Maker, users: Sequence[str], asked: Sequence[int], **knobs: Any
    ) -> Filled:
        """Fill a new store."""
        stored = maker.memories(users)
        return cls.of(name, stored, maker.queries(stored, asked), **knobs)

    @classmethod
    def of(cls, name: str, stored: Memories, queries: Memories, **knobs: Any) -> Filled:
        """Fill a new store with given memories."""
        WORK.mkdir(parents=True, exist_ok=True)
        path = WORK / f"{name}.db"
        settings = {"durability": "normal", **knobs}
        memory = Memory(f"sqlite:///{path}", embedder=Precomputed(stored, queries), **settings)
        for user, texts in stored.lists():
            done = memory.add(
                [{"role": "user", "content": text} for text in texts], user_id=user, infer=False
            )
            assert "warnings" not in done, done["warnings"]
        return cls(memory, stored, queries, path)

    def search(self, number: int) -> list[str]:
        """Run one query through the public API."""
        found = self.memory.search(
            self.queries.texts[number], user_id=self.queries.users[number], limit=ROWS
        )
        return [item["id"] for item in found["results"]]

    def recall(self, number: int) -> int:
        """Run the same query on the store: both retrievers, then the ten facts."""
        store = self.memory.engine.store
        words = tuple(dict.fromkeys(extract_query_terms(self.queries.texts[number])))
        ranked = store.index.search(self.probe(number, words, vector=True))
        pairs = zip(ranked.by_vector[:ROWS], ranked.by_terms[:ROWS], strict=False)
        best = list(dict.fromkeys(seq for pair in pairs for seq, _ in pair))
        return len(store.find_versions("default", seqs=best[:ROWS]))

    def probe(
        self, number: int, words: tuple[str, ...], *, vector: bool, depth: int = DEPTH
    ) -> IndexQuery:
        """Build the index query of a question."""
        find = FactQuery(Scope.create(user_id=self.queries.users[number]), NOW)
        embedder = self.memory.embedder
        assert embedder is not None
        (row,) = embedder.embed([self.queries.texts[number]], "query")
        return IndexQuery(find, words, row if vector else None, depth)

    def adding(self, extra: Memories) -> Callable[[int], object]:
        """Return a function that adds a new memory to the scope of a question."""
        fresh = iter(extra.texts)
        embedder = self.memory.embedder
        assert isinstance(embedder, Precomputed)
        embedder.rows.update(zip(extra.texts, extra.vectors, strict=True))
        return lambda number: self.memory.add(
            next(fresh), user_id=self.queries.users[number], infer=False
        )

    def forget(self, _: int) -> None:
        """Clear the index cache."""
        store: Any = self.memory.engine.store
        store.index.cache.clear()


def timed(
    work: Callable[[int], object], numbers: Sequence[int], before: Callable[[int], object] | None
) -> float:
    """Return the median time of some calls in milliseconds, without the setup of each."""
    spent = []
    for number in numbers:
        if before is not None:
            before(number)
        start = time.perf_counter_ns()
        work(number)
        spent.append(time.perf_counter_ns() - start)
    return statistics.median(spent) / 1e6


def in_turns(
    rounds: int,
    numbers: Sequence[int],
    before: Mapping[str, Callable[[int], object]] | None = None,
    **works: Callable[[int], object],
) -> dict[str, list[float]]:
    """Return each work's median in each round, after a warm-up round."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            spent = timed(work, numbers, (before or {}).get(name))
            if turn:
                taken[name].append(spent)
    return taken


def middle(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median of the ratios within each round."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def other_scopes(effort: Effort) -> Iterator[dict[str, Any]]:
    """Compare the same scopes among few others and among ten times as many."""
    few = [f"user{number}" for number in range(effort.scopes) for _ in range(effort.scope_rows)]
    many = [
        f"user{number}" for number in range(effort.scopes * 10) for _ in range(effort.scope_rows)
    ]
    asked = [number * 7 % (20 * effort.scope_rows) for number in range(effort.queries)]
    small = Filled.make("few", Maker.seeded(1), few, asked)
    maker = Maker.seeded(2)
    rest = maker.memories(many[len(few) :])
    stored = Memories(
        small.stored.texts + rest.texts, many, np.concatenate([small.stored.vectors, rest.vectors])
    )
    large = Filled.of("many", stored, small.queries)
    extra = maker.memories(["later"] * (effort.queries * (effort.rounds + 1)))
    pairs = {
        "Memory.search": (Filled.search, None),
        "index and rows": (Filled.recall, None),
        "index and rows right after an add": (Filled.recall, lambda filled: filled.adding(extra)),
        "index and rows not yet in memory": (Filled.recall, lambda filled: filled.forget),
    }
    title = (
        f"{effort.scopes * 10} scopes against {effort.scopes}, {effort.scope_rows} memories each"
    )
    for name, (work, preparing) in pairs.items():
        before = {} if preparing is None else {"few": preparing(small), "many": preparing(large)}
        numbers = range(effort.queries if preparing is None else effort.queries // 4)
        taken = in_turns(
            effort.rounds, numbers, before, few=partial(work, small), many=partial(work, large)
        )
        yield _table.verdict(f"{name}, {title}", middle(taken["many"], taken["few"]), "<=", 1.5)
        yield _table.figure("the larger, best round", min(taken["many"]), " ms")
    small.memory.close()
    large.memory.close()


def bare_select(effort: Effort) -> Iterator[dict[str, Any]]:
    """Compare hybrid recall with fetching its rows by id."""
    for rows in (100, 1_000):
        users = [f"user{number}" for number in range(max(20, 10_000 // rows)) for _ in range(rows)]
        asked = [number * 13 % (10 * rows) for number in range(effort.queries)]
        filled = Filled.make(f"select{rows}", Maker.seeded(3), users, asked)
        bare = Bare(filled)
        numbers = range(effort.queries)
        taken = in_turns(
            effort.rounds,
            numbers,
            select=bare.at_once,
            singles=bare.one_by_one,
            recall=filled.recall,
            search=filled.search,
        )
        for name, title in (("recall", "index and rows"), ("search", "Memory.search")):
            ratio = middle(taken[name], taken["select"])
            yield _table.verdict(
                f"{title} / one SELECT of the ten rows, {rows} in scope", ratio, "<=", 5
            )
            ratio = middle(taken[name], taken["singles"])
            yield _table.verdict(
                f"{title} / ten SELECTs of a row each, {rows} in scope", ratio, "<=", 5
            )
        titles = ("one SELECT", "ten SELECTs", "index and rows", "Memory.search")
        for title, spent in zip(titles, taken.values(), strict=True):
            yield _table.figure(f"{title}, best round", min(spent), " ms")
        filled.memory.close()


def large_scope(effort: Effort) -> Iterator[dict[str, Any]]:
    """Compare a full context in a large scope with the minimum that finds ten rows."""
    rows = LARGE
    maker = Maker.seeded(4)
    stored = maker.memories(["user"] * rows)
    queries = maker.queries(stored, [number * 37 % rows for number in range(effort.queries)])
    filled = Filled.of("large", stored, queries)
    limit = bare.Bare(WORK, Precomputed(stored, queries), "normal")
    limit.bulk(stored.texts, "user")
    taken = in_turns(
        effort.rounds,
        range(effort.queries // 2),
        bare=lambda number: limit.search(queries.texts[number], "user"),
        search=filled.search,
        context=lambda number: filled.memory.context(
            queries.texts[number], user_id="user", budget=BUDGET
        ),
    )
    for name in ("search", "context"):
        ratio = middle(taken[name], taken["bare"])
        yield _table.figure(
            f"Memory.{name} / bare scan, full text and fetch, {rows} in scope", ratio, "×"
        )
    yield _table.verdict(
        f"Memory.context, {BUDGET} tokens from {rows} passages, best round",
        min(taken["context"]),
        "<=",
        10,
        " ms",
    )
    yield _table.figure("Memory.search, best round", min(taken["search"]), " ms")
    yield _table.figure("bare, best round", min(taken["bare"]), " ms")
    filled.memory.close()
    limit.close()


class Bare:
    """Fetch the rows of each question by id, through a separate connection."""

    def __init__(self, filled: Filled) -> None:
        self.db = apsw.Connection(str(filled.path), flags=apsw.SQLITE_OPEN_READONLY)
        self.ids = [self._ids(filled.search(number)) for number in range(len(filled.queries))]
        self.together = f"SELECT * FROM fact WHERE id IN ({', '.join('?' * ROWS)})"

    def at_once(self, number: int) -> list[Any]:
        """Use one statement for all rows."""
        return self.db.execute(self.together, self.ids[number]).fetchall()

    def one_by_one(self, number: int) -> list[Any]:
        """Use one statement per row."""
        return [
            self.db.execute("SELECT * FROM fact WHERE id = ?", (id_,)).fetchall()
            for id_ in self.ids[number]
        ]

    def _ids(self, threads: Sequence[str]) -> list[int]:
        if len(threads) != ROWS:
            raise SystemExit(f"a search found {len(threads)} memories where {ROWS} were expected")
        find = "SELECT f.id FROM entry e JOIN fact f ON f.id = e.id WHERE e.thread = ?"
        return [int(str(self.db.execute(find, (thread,)).get)) for thread in threads]


def group_commit(effort: Effort) -> Iterator[dict[str, Any]]:
    """Compare sixty-four adding threads with one; each add is durable when it returns."""
    disks = (OWN, *filter(None, map(_sync.slow, effort.syncs)))
    for number, disk in enumerate(disks):
        folder = WORK / f"group{number}"
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(_table.HERE / "_group.py"), str(folder), str(effort.seconds)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, check=True, env={**os.environ, **disk.environment}
        )
        found = json.loads(done.stdout)
        alone, crowd = ([rate for rate, _ in found[who]] for who in ("alone", "crowd"))
        title = f"{disk.title} (a sync takes {_table.number(disk.measured())} ms)"
        yield _table.verdict(
            f"64 threads / 1 thread, adds at full durability, {title}",
            middle(crowd, alone),
            ">=",
            5,
        )
        yield _table.figure("1 thread", statistics.median(alone), " adds/s")
        yield _table.figure("64 threads", statistics.median(crowd), " adds/s")
        if disk is not OWN:
            yield _table.figure(
                "64 threads",
                statistics.median(shared for _, shared in found["crowd"]),
                " adds a sync",
            )


def nearest(effort: Effort) -> Iterator[dict[str, Any]]:
    """Return how many of the exact ten nearest the index finds."""
    for rows in effort.sizes:
        asked = [number * 31 % rows for number in range(effort.queries)]
        filled = Filled.make(f"recall{rows}", Maker.seeded(5), ["user0"] * rows, asked)
        vectors = filled.stored.vectors
        text_of = _texts(filled)
        found = 0
        for number in range(effort.queries):
            exact = np.argsort(-(vectors @ filled.queries.vectors[number]))[:ROWS]
            near = filled.memory.engine.store.index.search(
                filled.probe(number, (), vector=True, depth=ROWS)
            ).by_vector
            found += len(
                {filled.stored.texts[row] for row in exact} & {text_of[seq] for seq, _ in near}
            )
        share = found / (ROWS * effort.queries)
        yield _table.verdict(
            f"recall@10 of {_table.number(rows)} memories in one scope", share, ">=", 0.98, ""
        )
        filled.memory.close()


def _texts(filled: Filled) -> dict[int, str]:
    """Return the text of each ledger position that asserted one."""
    db = apsw.Connection(str(filled.path), flags=apsw.SQLITE_OPEN_READONLY)
    return {
        int(str(id_)) & ((1 << 40) - 1): str(text)
        for id_, text in db.execute("SELECT id, text FROM fact")
    }


def plain_bm25(effort: Effort) -> Iterator[dict[str, Any]]:
    """Compare the ten best by words with a plain BM25 over the scope; ties share a place."""
    rows = 200
    users = [f"user{number}" for number in range(30) for _ in range(rows)]
    asked = [number * 17 % (len(users) // 2) for number in range(effort.queries)]
    filled = Filled.make("words", Maker.seeded(6), users, asked)
    text_of = _texts(filled)
    agreed = wanted = 0
    for number in range(effort.queries):
        user = filled.queries.users[number]
        texts = [
            SPEAKER + text
            for text, owner in zip(filled.stored.texts, users, strict=True)
            if owner == user
        ]
        scores = reference_bm25(filled.queries.texts[number], texts)
        ranked = sorted((score for score in scores.values() if score > 0), reverse=True)[:ROWS]
        words = tuple(dict.fromkeys(extract_query_terms(filled.queries.texts[number])))
        found = filled.memory.engine.store.index.search(
            filled.probe(number, words, vector=False, depth=ROWS)
        ).by_terms
        wanted += len(ranked)
        agreed += sum(
            abs(score - right) < 1e-9 and abs(scores[SPEAKER + text_of[seq]] - right) < 1e-9
            for (seq, score), right in zip(found, ranked, strict=False)
        )
    yield _table.verdict(
        "BM25 of the scope, places and scores that agree", agreed / wanted, ">=", 1.0, ""
    )
    filled.memory.close()


def reference_bm25(
    query: str, texts: Sequence[str], k1: float = 1.2, b: float = 0.75
) -> dict[str, float]:
    """Compute textbook BM25 over these texts."""
    bags = {text: Counter(extract_terms(text)) for text in texts}
    average = sum(bag.total() for bag in bags.values()) / len(bags)
    scores = dict.fromkeys(texts, 0.0)
    for term in dict.fromkeys(extract_query_terms(query)):
        holding = sum(term in bag for bag in bags.values())
        weight = log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for text, bag in bags.items():
            share = 1 - b + b * bag.total() / average
            scores[text] += weight * bag[term] * (k1 + 1) / (bag[term] + k1 * share)
    return scores


MEASURES = {
    "scopes": other_scopes,
    "select": bare_select,
    "large": large_scope,
    "group": group_commit,
    "recall": nearest,
    "bm25": plain_bm25,
}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description="The ratios that must hold")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument(
        "--only", choices=MEASURES, action="append", help="one of them; may be given again"
    )
    parser.add_argument(
        "--sync", type=float, action="append", metavar="MS", help="slow syncs; may be given again"
    )
    parser.add_argument(
        "--publish", action="store_true", help="put the table into docs/reference/benchmarks.md"
    )
    asked = parser.parse_args()
    effort = QUICK if asked.quick else FULL
    if asked.sync is not None:
        effort = replace(effort, syncs=tuple(least for least in asked.sync if least > 0))
    facts = _table.machine()
    shutil.rmtree(WORK, ignore_errors=True)
    verdicts: list[dict[str, Any]] = []
    for name in asked.only or MEASURES:
        print(f"  {name} ...".ljust(30), end="\r", file=sys.stderr, flush=True)
        verdicts += MEASURES[name](effort)
    shutil.rmtree(WORK, ignore_errors=True)
    print(_table.plain(_table.VERDICT_HEAD, _table.verdict_rows(verdicts)))
    path = _table.save("ratios", {"machine": facts, "verdicts": verdicts})
    print(f"\nkept in {path.relative_to(_table.HERE.parent)}")
    if asked.publish:
        head = f"`{facts['command']}` on {_table.where(facts)}."
        _table.publish(
            "ratios",
            f"{head}\n\n{_table.markdown(_table.VERDICT_HEAD, _table.verdict_rows(verdicts))}",
        )


if __name__ == "__main__":
    main()
