"""Evidence recall at a token budget, with no model as a judge: told and the plain rankers over the same turns.

    python bench/recall.py                        LoCoMo, BEAM and LongMemEval as found in the data folder
    python bench/recall.py --sets locomo          one of them
    python bench/recall.py --conversations 1      the first conversation of each
    python bench/recall.py --peer                 and mem0 (infer=False) with the same vectors, in bench/.venv-peer
    python bench/recall.py --only told            told alone, for a quick look while tuning
    python bench/recall.py --only told --knob depth=50        told with another setting, for an ablation

Each conversation goes in by `add` with time, speaker and an id for each turn; each question goes through
`search(question, limit=50)` and `context(question, budget=T)`. A gold turn is recalled at T tokens when its text stands
verbatim, white space folded, in a context of at most T o200k tokens, everything counted. Vectors are computed once and
kept in bench/results/work-recall; the time the embedder takes does not count in any cost.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import _table
from bench._recall import measure, peer
from bench._recall.contenders import ENCODING, Contender, Told, baselines
from bench._recall.data import FILES, Conversation, Question, load
from bench._recall.measure import BUDGETS, Seen
from bench._recall.vectors import MODEL, Remembered
from bench.latency import empty_config
from told.core.errors import ModelMissing
from told.read.tokens import count

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WORK = _table.RESULTS / "work-recall"

VERDICTS = ("figure", "measured", "target", "")
TARGETS = {
    "locomo": {"R@500t": 0.84, "R@1000t": 0.90, "R@2000t": 0.94, "R@4000t": 0.97, "AUROC": 0.65},
    "multi-hop": {"R@1000t": 0.72},
    "open-domain": {"R@1000t": 0.66},
    "updates": {"newest first": 0.85},
}
CHAT = ("R@500t", "R@1000t", "R@2000t", "R@4000t", "all@1000t", "R@5", "R@10", "R@20", "R@50", "nDCG@10", "AUROC")
LONG = ("R@5", "R@10", "R@20", "R@50", "nDCG@10", "words@1000t", "words@2000t", "R@2000t", "newest first", "AUROC")
COSTS = {
    "ingest_ms_per_turn": "ingest ms/turn", "search_ms": "search ms", "context_ms": "context ms",
    "bytes_per_turn": "bytes/turn",
}  # fmt: skip
HEADLINE = {"locomo": "R@1000t", "beam": "R@10", "longmemeval": "R@10"}
COLUMNS = {"locomo": CHAT, "beam": LONG, "longmemeval": LONG}


@dataclass(slots=True)
class Run:
    """What one contender did on one data set."""

    name: str
    rows: list[Seen] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    misses: list[dict[str, Any]] = field(default_factory=list)
    turns: int = 0
    ingest: float = 0.0
    search: float = 0.0
    context: float = 0.0
    bytes: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The run as JSON."""
        owner = dict(zip(map(id, self.rows), self.owners, strict=True))
        return {
            "all": measure.summary(self.rows),
            "categories": measure.by_category(self.rows),
            "conversations": measure.grouped(self.rows, lambda row: owner[id(row)]),
            "questions": len(self.rows), "turns": self.turns,
            "ingest_ms_per_turn": 1e3 * self.ingest / max(self.turns, 1),
            "search_ms": 1e3 * self.search / max(len(self.rows), 1),
            "context_ms": 1e3 * self.context / max(len(self.rows) * len(BUDGETS), 1),
            "bytes_per_turn": self.bytes / max(self.turns, 1),
            "misses": self.misses,
        }  # fmt: skip


def measured(contender: Contender, conversations: Sequence[Conversation], embedder: Remembered) -> Run:
    """One contender on every conversation."""
    run = Run(contender.name)

    def now() -> float:
        return perf_counter() - embedder.seconds

    for conversation in conversations:
        start = now()
        contender.ingest(conversation)
        run.ingest += now() - start
        run.turns += len(conversation.turns)
        rows = [_asked(contender, conversation, question, run, now) for question in conversation.questions]
        run.rows += rows
        run.owners += [conversation.id] * len(rows)
        run.misses += measure.misses(conversation, rows, 1000) if contender.name == Told.name else []
        print(f"  {contender.name}: {conversation.id}", file=sys.stderr)
    return run


def _asked(
    contender: Contender, conversation: Conversation, question: Question, run: Run, now: Callable[[], float]
) -> Seen:
    start = now()
    answer = contender.search(question)
    middle = now()
    contexts = {budget: contender.context(question, budget) for budget in BUDGETS}
    run.search += middle - start
    run.context += now() - middle
    for budget, text in contexts.items():
        assert count(text, ENCODING) <= budget, f"{contender.name} gave {count(text, ENCODING)} of {budget} tokens"
    return measure.seen(conversation, question, answer, contexts)


def raced(
    name: str, conversations: Sequence[Conversation], embedder: Remembered, options: argparse.Namespace
) -> list[Run]:
    """Every contender on one data set."""
    runs = []
    if options.only != "baselines":
        WORK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            told = Told(Path(folder), embedder, dict(knob.split("=", 1) for knob in options.knob))
            runs.append(measured(told, conversations, embedder))
            runs[-1].bytes = told.close()
    if options.only != "told":
        runs += [measured(one, conversations, embedder) for one in baselines(embedder)]
    if options.peer:
        found = peer.Mem0(WORK / f"peer-{name}", conversations, embedder)
        runs.append(measured(found, conversations, embedder))
    return runs


def shown(name: str, runs: Sequence[Run]) -> str:
    """The tables of one data set."""
    results = {run.name: run.as_dict() for run in runs}
    figures = {run: [_figure(result["all"].get(column)) for column in COLUMNS[name]] for run, result in results.items()}
    parts = [_table.plain([name, *COLUMNS[name]], [[run, *cells] for run, cells in figures.items()])]
    column = HEADLINE[name]
    categories = list(next(iter(results.values()))["categories"])
    rows = [
        [run, *(_figure(result["categories"][category].get(column)) for category in categories)]
        for run, result in results.items()
    ]
    parts.append(_table.plain([column, *categories], rows))
    costs = [
        [run, *(_table.number(result[cost] or None) for cost in COSTS)]
        for run, result in results.items()
        if run != peer.Mem0.name
    ]
    parts.append(_table.plain(["cost beside the embedding", *COSTS.values()], costs))
    return "\n\n".join(parts)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def verdicts(sets: dict[str, list[Run]]) -> list[dict[str, Any]]:
    """told held against the targets of the development data."""
    told = {name: runs[0].as_dict() for name, runs in sets.items() if runs and runs[0].name == Told.name}
    found = []
    if "locomo" in told:
        found += _against("locomo", told["locomo"]["all"])
        for category in ("multi-hop", "open-domain"):
            found += _against(category, told["locomo"]["categories"].get(category, {}))
    for name, runs in sets.items():
        if name in told and len(runs) > 1:
            found.append(_table.verdict(f"{name} least lead in {HEADLINE[name]}", _lead(name, runs), ">=", 0.0, ""))
    updates = [row for name in ("beam", "longmemeval") if name in told for row in sets[name][0].rows]
    return found + (_against("updates", measure.summary(updates)) if updates else [])


def _lead(name: str, runs: Sequence[Run]) -> float:
    """By how much told leads the best of the others, in the category where it leads least."""
    own, *others = [measure.by_category(run.rows) for run in runs]
    column = HEADLINE[name]
    return min(
        (own[category][column] or 0.0) - max(other[category][column] or 0.0 for other in others) for category in own
    )


def _against(name: str, figures: dict[str, float | None]) -> list[dict[str, Any]]:
    return [
        _table.verdict(f"{name} {figure}", figures.get(figure), ">=", target, "")
        for figure, target in TARGETS[name].items()
    ]


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the data files")
    parser.add_argument("--sets", default=",".join(FILES), help="which data sets, separated by commas")
    parser.add_argument("--conversations", type=int, help="how many conversations of each")
    parser.add_argument("--only", choices=("told", "baselines"), help="leave the others out")
    parser.add_argument("--knob", action="append", default=[], metavar="NAME=VALUE", help="a setting of told")
    parser.add_argument("--no-captions", action="store_true", help="leave out what pictures show")
    parser.add_argument("--peer", action="store_true", help="measure mem0 too")
    parser.add_argument("--model", default=MODEL, help="the local embedding model")
    parser.add_argument("--name", default="recall", help="the name of the results file")
    options = parser.parse_args()
    os.environ["TOLD_CONFIG"] = str(empty_config())
    try:
        embedder = Remembered(WORK / "vectors.db", options.model)
    except ModelMissing as problem:
        raise SystemExit(f"{problem}") from problem
    sets: dict[str, list[Run]] = {}
    for name in options.sets.split(","):
        conversations = load(options.data, name, options.conversations, captions=not options.no_captions)
        if conversations is None:
            print(f"{FILES[name]} is not in {options.data}: skipped", file=sys.stderr)
            continue
        sets[name] = raced(name, conversations, embedder, options)
        print(f"\n{shown(name, sets[name])}\n")
    found = verdicts(sets)
    if found:
        print(_table.plain(VERDICTS, _table.verdict_rows(found)))
    if sets:
        results = {name: {run.name: run.as_dict() for run in runs} for name, runs in sets.items()}
        path = _table.save(options.name, {"machine": _table.machine(), "verdicts": found, "sets": results})
        print(f"kept in {path.relative_to(_table.HERE.parent)}")
    embedder.close()


if __name__ == "__main__":
    main()
