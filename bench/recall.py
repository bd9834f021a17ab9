"""Evidence recall at a token budget, without a judge model: told and baselines on the same turns.

    python bench/recall.py --data FOLDER      LoCoMo, BEAM and LongMemEval, if in the folder
    python bench/recall.py --sets locomo      one of them
    python bench/recall.py --quick            the first conversation of each
    python bench/recall.py --peer             also mem0 (infer=False), in bench/.venv-peer
    python bench/recall.py --only told        told alone
    python bench/recall.py --only told --knob depth=50       told with another setting
    python bench/recall.py --ablation bench/ablation.json    told and variants with other settings
    python bench/recall.py --misses 10        also explain ten misses

TOLD_EVAL_DATA is the default of --data. The measuring is done by told.tools.evaluate, as in `told
eval`; here are the data sets, baselines, peer and published tables. Vectors are cached in
bench/results/work-recall; embedding time is not part of any cost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import _table
from bench._recall import baselines, peer, tables
from bench._recall.data import FILES, load
from bench._recall.vectors import File
from bench.latency import empty_config
from told.errors import ToldError
from told.tools.evaluate.data import EvalConversation
from told.tools.evaluate.run import (
    CachingEmbedder,
    EmbedderPool,
    EvalRun,
    EvalTarget,
    Variant,
    check_settings,
    count_steps,
    evaluate,
    measure_target,
)

VARIABLE = "TOLD_EVAL_DATA"
EMBEDDER = "local:e5-small"
WORK = _table.RESULTS / "work-recall"
MISUSED = 2

Found = tuple[list[EvalRun], list[EvalRun]]
"""The contenders of a data set and the variants of told."""


def raced(
    name: str,
    conversations: Sequence[EvalConversation],
    embedders: EmbedderPool,
    asked: argparse.Namespace,
) -> Found:
    """Run every contender and every variant of told on one data set."""
    runs: list[EvalRun] = []
    variants: list[EvalRun] = []
    if asked.only != "baselines":
        wanted = asked.variants if name in asked.ablated else asked.variants[:1]
        tick = ticking("told", len(wanted) * count_steps(conversations))
        first, *variants = evaluate(
            conversations, wanted, embedders, misses=asked.misses, tick=tick
        )
        runs.append(first)
    embedder = embedders.get()
    if embedder is not None and asked.only != "told":
        runs += [_measured(one, conversations, embedder) for one in baselines.baselines(embedder)]
    if embedder is not None and asked.peer:
        runs.append(
            _measured(
                peer.Mem0(WORK / f"peer-{name}", conversations, embedder), conversations, embedder
            )
        )
    return runs, variants


def _measured(
    contender: EvalTarget, conversations: Sequence[EvalConversation], embedder: CachingEmbedder
) -> EvalRun:
    tick = ticking(contender.name, count_steps(conversations))
    return measure_target(
        contender, conversations, clock=lambda: perf_counter() - embedder.seconds, tick=tick
    )


def ticking(name: str, total: int) -> Callable[[int], None]:
    """Return a progress line on standard error."""
    done = 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        if done == total or sys.stderr.isatty():
            end = "\n" if done == total else "\r"
            print(
                f"  {name}: {100 * done // total} %".ljust(40), end=end, file=sys.stderr, flush=True
            )

    return tick


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get(VARIABLE), help="the folder with the data files"
    )
    parser.add_argument(
        "--sets", default=",".join(FILES), help="which data sets, separated by commas"
    )
    parser.add_argument("--conversations", type=int, help="how many conversations of each")
    parser.add_argument("--quick", action="store_true", help="one conversation of each")
    parser.add_argument("--only", choices=("told", "baselines"), help="leave the others out")
    parser.add_argument(
        "--knob", action="append", default=[], metavar="NAME=VALUE", help="a setting of told"
    )
    parser.add_argument(
        "--ablation", type=Path, metavar="FILE", help="settings to compare: {name: {knob: value}}"
    )
    parser.add_argument(
        "--ablated", default="locomo", help="the data sets to compare them on, separated by commas"
    )
    parser.add_argument(
        "--misses", type=int, default=0, metavar="N", help="explain so many misses of told"
    )
    parser.add_argument("--no-captions", action="store_true", help="leave out what pictures show")
    parser.add_argument("--peer", action="store_true", help="measure mem0 too")
    parser.add_argument("--embedder", default=EMBEDDER, help="the embedder everybody shares")
    parser.add_argument("--name", default="recall", help="the name of the results file")
    parser.add_argument(
        "--publish", action="store_true", help="put the tables into docs/reference/benchmarks.md"
    )
    asked = parser.parse_args()
    asked.sets, asked.ablated = asked.sets.split(","), asked.ablated.split(",")
    if unknown := set(asked.sets) - FILES.keys():
        parser.error(f"there is no data set {', '.join(unknown)}; there are {', '.join(FILES)}")
    if wrong := [pair for pair in asked.knob if "=" not in pair]:
        parser.error(f"{wrong[0]!r} is not NAME=VALUE")
    asked.conversations = 1 if asked.quick else asked.conversations
    asked.variants = variants(asked.knob, asked.ablation)
    return asked


def variants(pairs: Sequence[str], file: Path | None) -> list[Variant]:
    """Return told with the settings of the run, and its variants from a file."""
    own = check_settings(dict(pair.split("=", 1) for pair in pairs), "--knob")
    others = json.loads(file.read_text("utf-8")) if file else {}
    return [
        Variant(settings=own),
        *(Variant(name, {**own, **check_settings(more, name)}) for name, more in others.items()),
    ]


def main() -> int:
    """Measure, print and save; exit with 2 if there is nothing to measure."""
    os.environ["TOLD_CONFIG"] = str(empty_config())
    try:
        asked = arguments()
        if asked.data is None or not asked.data.is_dir():
            print(
                f"The data is not in {asked.data}." if asked.data else "No data.",
                end=" ",
                file=sys.stderr,
            )
            print(
                f"Name the folder of {', '.join(FILES.values())} with --data or {VARIABLE}.",
                file=sys.stderr,
            )
            return MISUSED
        return measure(asked)
    except (ToldError, OSError, json.JSONDecodeError) as problem:
        print(problem, file=sys.stderr)
        return MISUSED


def measure(asked: argparse.Namespace) -> int:
    """Measure every available data set."""
    kept = File(WORK / "vectors.db")
    embedders = EmbedderPool(asked.embedder, kept)
    sets: dict[str, Found] = {}
    for name in asked.sets:
        conversations = load(asked.data, name, asked.conversations, captions=not asked.no_captions)
        if conversations is None:
            print(f"{FILES[name]} is not in {asked.data}: skipped", file=sys.stderr)
            continue
        sets[name] = raced(name, conversations, embedders, asked)
        print("", tables.of_set(name, *sets[name]), *tables.misses(sets[name][0][0]), "", sep="\n")
    kept.close()
    if not sets:
        print(f"None of {', '.join(FILES.values())} is in {asked.data}.", file=sys.stderr)
        return MISUSED
    report(sets, asked)
    return 0


def report(sets: dict[str, Found], asked: argparse.Namespace) -> None:
    """Print the verdicts, save the results and publish the tables."""
    found = tables.verdicts({name: runs for name, (runs, _) in sets.items()})
    if found:
        print(_table.plain(tables.VERDICTS, _table.verdict_rows(found)))
    bodies = {
        name: {run.name: run.as_dict() for run in [*runs, *more]}
        for name, (runs, more) in sets.items()
    }
    results = {"machine": _table.machine(), "verdicts": found, "sets": bodies}
    print(f"kept in {_table.save(asked.name, results).relative_to(_table.HERE.parent)}")
    if asked.publish:
        _table.publish("recall", tables.page(results, sets))


if __name__ == "__main__":
    sys.exit(main())
