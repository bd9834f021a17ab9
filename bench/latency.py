"""Latency of told, its peer and the bare limit in one run, with the same texts and vectors.

    python bench/latency.py            1 k, 10 k and 100 k memories of 1 000 users; one with 50 k
    python bench/latency.py --quick    a few minutes
    python bench/latency.py --no-peer  without mem0 (installed in bench/.venv-peer)
    python bench/latency.py --sync 5   also adds on a disk with 5 ms syncs (default 2, 0 for none)

Each contender runs and times itself in a separate process. Contenders alternate in short rounds,
each started by another one. A figure is the median over the rounds, and a ratio is the median of
the ratios within each round, so that noise in a whole round cancels out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import _corpus, _report, _sync, _table
from bench._report import Rounds, quantile
from bench._sync import OWN, Disk

HERE = Path(__file__).resolve().parent
PEER = HERE / ".venv-peer"
PEER_PACKAGE = "mem0ai"
OURS = ("bare-full", "rows-full", "told-full", "bare-normal", "rows-normal", "told-normal")
COPIES = {"bare-normal": ("bare-full",), "told-normal": ("told-full", "rows-normal", "rows-full")}
"""The stores that are filled, and the contenders that get a copy of the file."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of work."""

    rounds: int
    adds: int
    bulk: int
    searches: int
    colds: int
    peer_adds: int
    peer_bulk: int
    peer_searches: int
    peer_budget: float
    peer_most: int


QUICK = Effort(3, 60, 500, 60, 3, 10, 20, 4, 30, 1_000)
FULL = Effort(5, 150, 1000, 200, 5, 20, 50, 5, 90, 10_000)


@dataclass(slots=True)
class Process:
    """A contender's process and its pipes."""

    name: str
    corpus: Path
    store: Path
    python: str
    disk: Disk
    pipe: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        command = [
            self.python,
            str(HERE / "_serve.py"),
            self.name,
            str(self.corpus),
            str(self.store),
        ]
        quiet = subprocess.DEVNULL if self.name == "mem0" else None
        self.pipe = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=quiet,
            text=True,
            env=environment(self.name) | self.disk.environment,
        )
        self._answer()

    def __call__(self, do: str, **options: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        assert self.pipe.stdin is not None
        self.pipe.stdin.write(json.dumps({"do": do, **options}) + "\n")
        self.pipe.stdin.flush()
        return self._answer()

    def end(self) -> None:
        """Close the store and the process."""
        self("close")
        self.pipe.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.pipe.stdout is not None
        line = self.pipe.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with code {self.pipe.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def environment(name: str) -> dict[str, str]:
    """Return a contender's environment.

    The bare limit scans on one thread, as told does. Modules are loaded from compiled files, as
    after an installation.
    """
    own = {"MEM0_TELEMETRY": "false", "TOLD_CONFIG": str(empty_config())}
    alone = {"OPENBLAS_NUM_THREADS": "1"} if name.startswith("bare") else {}
    compiled = {"PYTHONPYCACHEPREFIX": str(_table.RESULTS / "pycache")} if name != "mem0" else {}
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **own, **alone, **compiled}


def empty_config() -> Path:
    """Create an empty configuration file, so that the user's own is not used."""
    _table.RESULTS.mkdir(exist_ok=True)
    path = _table.RESULTS / "empty.yaml"
    path.touch()
    return path


def peer_python() -> str:
    """Return the peer's interpreter; create its environment at first use."""
    python = PEER / "bin" / "python"
    if not (PEER / ".installed").exists():
        print(f"making {PEER.relative_to(HERE.parent)} with {PEER_PACKAGE} ...", file=sys.stderr)
        venv.create(PEER, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PEER_PACKAGE], check=True)
        (PEER / ".installed").touch()
    return str(python)


@dataclass(slots=True)
class Scenario:
    """One size: its corpus, the contenders' stores and the measurements."""

    title: str
    owners: Sequence[str]
    folder: Path
    effort: Effort
    peer: str | None
    slow: Disk | None
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def corpus(self) -> Path:
        """Return the folder of texts and vectors."""
        return self.folder / "corpus"

    @property
    def names(self) -> list[str]:
        """Return the contenders in table order."""
        return [*OURS, *(["mem0"] if self.peer else [])]

    @property
    def searching(self) -> list[str]:
        """Return the contenders that are also opened and searched."""
        return [name for name in self.names if not name.startswith("rows")]

    def run(self) -> dict[str, Any]:
        """Run the whole scenario."""
        effort = self.effort
        turns = effort.rounds + 1
        extra = turns * (2 * effort.adds + effort.bulk)
        _corpus.make(self.corpus, self.owners, extra=extra, questions=turns * effort.searches)
        self._fill()
        rounds = self._in_turns(OWN, self._turn)
        slowly = {} if self.slow is None else self._in_turns(self.slow, self._slow_turn)
        self._cold()
        for name in self.names:
            self.figures[name].update(_summary(rounds[name]))
        shutil.rmtree(self.folder)
        return {
            "title": self.title,
            "memories": len(self.owners),
            "users": len(set(self.owners)),
            "figures": self.figures,
            "rounds": rounds,
            "sync": self.slow.least if self.slow else None,
            "slow": {name: _summary(turns) for name, turns in slowly.items()},
            "slow_rounds": slowly,
        }

    def _process(self, name: str, disk: Disk = OWN) -> Process:
        python = self.peer if name == "mem0" and self.peer else sys.executable
        return Process(name, self.corpus, self.folder / name, python, disk)

    def _fill(self) -> None:
        """Fill each kind of store once; copy the file for the others."""
        for name in self.names:
            (self.folder / name).mkdir(parents=True)
        for name in [name for name in self.names if name in COPIES or name == "mem0"]:
            self._say(f"filling {name}")
            process = self._process(name)
            mem0 = name == "mem0"
            loaded = process("load", budget=self.effort.peer_budget if mem0 else float("inf"))
            process.end()
            size = sum(
                file.stat().st_size for file in (self.folder / name).rglob("*") if file.is_file()
            )
            figures = {
                **loaded,
                "bytes": size / loaded["count"],
                "whole": loaded["count"] == len(self.owners),
            }
            self.figures[name] = figures
            for copy in COPIES.get(name, ()):
                shutil.copytree(self.folder / name, self.folder / copy, dirs_exist_ok=True)
                self.figures[copy] = dict(figures)

    def _in_turns(self, disk: Disk, work: Callable[[Process, int], dict[str, Any]]) -> Rounds:
        """Alternate the contenders and drop the warm-up round."""
        processes = {name: self._process(name, disk) for name in self.names}
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in self.names}
        for turn in range(self.effort.rounds + 1):
            self._say(f"round {turn} of {self.effort.rounds}, {disk.title}")
            first = turn % len(self.names)
            for name in (*self.names[first:], *self.names[:first]):
                rounds[name].append(work(processes[name], turn))
        for process in processes.values():
            process.end()
        return {name: turns[1:] for name, turns in rounds.items()}

    def _slow_turn(self, process: Process, turn: int) -> dict[str, Any]:
        """Only add, with memories not used in other rounds."""
        effort, mem0 = self.effort, process.name == "mem0"
        if turn == 0:
            process("skip", count=(effort.rounds + 1) * (effort.adds + effort.bulk))
        add = process("add", count=effort.peer_adds if mem0 else effort.adds)
        return {"add": add["nanos"], "add_cpu": add["cpu"], "syncs": add["syncs"]}

    def _turn(self, process: Process, turn: int) -> dict[str, Any]:
        effort, mem0 = self.effort, process.name == "mem0"
        searches = effort.peer_searches if mem0 else effort.searches
        first = turn * searches
        add = process("add", count=effort.peer_adds if mem0 else effort.adds)
        search = (
            process("search", first=first, count=searches)
            if process.name in self.searching
            else None
        )
        bulk = process("bulk", count=effort.peer_bulk if mem0 else effort.bulk)
        done = {
            "add": add["nanos"],
            "add_cpu": add["cpu"],
            "bulk": bulk["count"] / bulk["nanos"] * 1e9,
        }
        if search is not None:
            done |= {"search": search["nanos"], "search_cpu": search["cpu"]}
        if process.name in ("told-full", "bare-full") and process("real", on=True)["there"]:
            done["embedded"] = process("search", first=first, count=max(10, searches // 4))["nanos"]
            process("real", on=False)
        if process.name == "bare-full":
            done["parts"] = process("parts", first=first, count=searches)
        return done

    def _cold(self) -> None:
        """Open every store in new processes, in turns."""
        taken: dict[str, list[dict[str, int]]] = {name: [] for name in self.searching}
        for turn in range(self.effort.colds):
            self._say(f"cold open {turn + 1} of {self.effort.colds}")
            for name, found in taken.items():
                if name != "mem0" or turn < 2:
                    found.append(self._cold_once(name))
        for name, turns in taken.items():
            keys = turns[0].keys()
            self.figures[name]["cold"] = {
                key: statistics.median(turn[key] for turn in turns) for key in keys
            }
            self.figures[name]["cold_best"] = {
                key: min(turn[key] for turn in turns) for key in keys
            }

    def _cold_once(self, name: str) -> dict[str, int]:
        python = self.peer if name == "mem0" and self.peer else sys.executable
        command = [
            python,
            str(HERE / "_serve.py"),
            name,
            str(self.corpus),
            str(self.folder / name),
            "--cold",
        ]
        quiet = subprocess.DEVNULL if name == "mem0" else None
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=quiet,
            text=True,
            check=True,
            env=environment(name),
        )
        answer: dict[str, int] = json.loads(done.stdout)
        return answer

    def _say(self, what: str) -> None:
        print(f"  {self.title}: {what}".ljust(79), end="\r", file=sys.stderr, flush=True)


def _summary(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median over the rounds."""
    single = [what for what in ("bulk", "add_cpu", "search_cpu", "syncs") if what in turns[0]]
    found: dict[str, Any] = {
        what: statistics.median(turn[what] for turn in turns) for what in single
    }
    for what in ("add", "search", "embedded"):
        if all(what in turn for turn in turns):
            found[what] = {
                place: middle([turn[what] for turn in turns], place) for place in (50, 95)
            }
    if "parts" in turns[0]:
        found["parts"] = {
            part: middle([turn["parts"][part] for turn in turns], 50) for part in turns[0]["parts"]
        }
    return found


def middle(rounds: Sequence[Sequence[float]], percent: int) -> float:
    """Return the median over the rounds of a quantile within each."""
    return statistics.median(quantile(values, percent) for values in rounds)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="told against mem0 and against bare SQLite and NumPy"
    )
    parser.add_argument("--quick", action="store_true", help="a few minutes, smaller sizes")
    parser.add_argument(
        "--sizes", help="totals over 1 000 users, such as 1000,10000,100000", default=None
    )
    parser.add_argument(
        "--one-user",
        type=int,
        default=None,
        help="memories of the scenario with one user; 0 for none",
    )
    parser.add_argument("--no-peer", action="store_true", help="leave mem0 out")
    parser.add_argument(
        "--sync",
        type=float,
        default=2.0,
        metavar="MS",
        help="add also where every sync takes so long",
    )
    parser.add_argument(
        "--publish", action="store_true", help="put the table into docs/reference/benchmarks.md"
    )
    return parser.parse_args()


def main() -> None:
    """Measure, print and save."""
    asked = arguments()
    effort = QUICK if asked.quick else FULL
    sizes = [
        int(size)
        for size in (
            asked.partition_sizes or ("1000,10000" if asked.quick else "1000,10000,100000")
        ).split(",")
    ]
    alone = (5_000 if asked.quick else 50_000) if asked.one_user is None else asked.one_user
    facts = _table.machine()
    slow = _sync.slow(asked.sync) if asked.sync > 0 else None
    disks = [(disk.title, disk.measured()) for disk in (OWN, slow) if disk is not None]
    print(_report.about_disks(disks))
    peer = None if asked.no_peer else peer_python()
    work = _table.RESULTS / "work"
    shutil.rmtree(work, ignore_errors=True)
    plan = [
        (f"{_table.number(size)} memories, 1 000 users", _corpus.spread_over_users(size))
        for size in sizes
    ]
    if alone:
        plan.append((f"{_table.number(alone)} memories, one user", ["user0"] * alone))
    scenarios: list[dict[str, Any]] = []
    for title, owners in plan:
        met = peer if len(owners) <= effort.peer_most else None
        scenario = Scenario(title, owners, work / str(len(scenarios)), effort, met, slow).run()
        scenarios.append(scenario)
        for head, (columns, rows) in _report.tables(scenario).items():
            print(f"\n{head}".ljust(80), _table.plain(columns, rows), sep="\n")
        print(_report.notes(scenario), flush=True)
    results: dict[str, Any] = {
        "machine": facts,
        "disks": disks,
        "scenarios": scenarios,
        "verdicts": _report.verdicts(scenarios),
    }
    print("", _table.plain(_table.VERDICT_HEAD, _table.verdict_rows(results["verdicts"])), sep="\n")
    print(f"\nkept in {_table.save('latency', results).relative_to(HERE.parent)}")
    if asked.publish:
        _table.publish("latency", _report.page(results))


if __name__ == "__main__":
    main()
