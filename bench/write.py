"""The cost of extraction: model calls, tokens and milliseconds per turn, compared with mem0.

    python bench/write.py            all of tests/data/utterances/dev.jsonl, five rounds
    python bench/write.py --quick    every fourth of them, two rounds
    python bench/write.py --no-peer  without mem0

The model is a stand-in that answers at once with the facts that rules find (_standin.py), the same
for told and mem0, so calls and prompts are realistic. Milliseconds are processor time without model
and embedder, the best of the rounds; contenders alternate, each round with a new store. mem0 is
measured in every environment bench/.venv-peer*; bench/latency.py creates the first.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import labels
from bench import _table
from bench._corpus import Maker
from bench._standin import Spent, StandIn, Vectors
from bench.latency import environment
from told import Memory
from told.curation.rules import RuleCurator
from told.extraction.registry import EXTRACTOR_NAMES
from told.extraction.rules import LocalExtractor
from told.flow import run
from told.ingest import gate, messages
from told.ingest.types import ExtractionInput, ExtractionResult
from told.retrieval.render import count_tokens_batch
from told.settings import Settings
from told.text.dates import parse_instant
from told.text.echo import EchoFilter

WORK = _table.RESULTS / "work-write"
ENCODING = "o200k_base"
USER = "listener"
MILLI, MICRO = 1e6, 1e3


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of work."""

    step: int
    rounds: int
    claims: int


QUICK, FULL = Effort(4, 2, 30), Effort(1, 5, 100)
HELD = (10, 100, 1_000)


@dataclass(frozen=True, slots=True)
class Turn:
    """The messages of one call, and the facts that rules find in them."""

    said: Any
    at: str
    heard: ExtractionInput
    found: ExtractionResult

    @property
    def messages(self) -> list[dict[str, str]]:
        """Return the turn as messages."""
        return [{"role": "user", "content": self.said}] if isinstance(self.said, str) else self.said

    @property
    def facts(self) -> list[str]:
        """Return the facts to remember."""
        return [one.claim.text for one in self.found.claims]


def conversation(step: int) -> list[Turn]:
    """Return the utterances of the dev split, shuffled with a fixed seed."""
    chosen = sorted(labels.utterances("dev"), key=lambda one: crc32(one.id.encode()))[::step]
    return [
        Turn(one.said, one.at, one.heard(), run(LocalExtractor().extract(one.heard())))
        for one in chosen
    ]


def opened(store: str, **options: Any) -> Memory:
    """Open a memory over a new store."""
    if store == "sqlite":
        store = f"sqlite:///{WORK / f'{next(_NUMBERS)}.db'}"
    return Memory(store, **options)


_NUMBERS = count()


# Model calls


def by_told(name: str, turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return each turn with its cost by an extractor of told."""
    spent = Spent()
    model = StandIn(spent)
    found: list[dict[str, Any]] = []
    with opened("sqlite", embedder=Vectors(spent), llm=model, extract=name) as memory:
        for turn in turns:
            model.hear(turn.heard, turn.found)
            spent.nanos = 0
            busy = time.process_time_ns()
            done = memory.add(turn.said, user_id=USER, timestamp=turn.at)
            nanos = time.process_time_ns() - busy - spent.nanos
            if done.get("warnings") or done.get("extraction") in ("pending", "failed"):
                raise SystemExit(f"{name} did not get along with the stand-in: {done}")
            memories = sum(row["event"] in ("ADD", "UPDATE") for row in done["results"])
            found.append({"asked": model.asked, "nanos": nanos, "memories": memories})
    return found


def by_peer(python: Path, turns: Sequence[Turn]) -> tuple[str, list[dict[str, Any]]]:
    """Return the peer's name and version, and each turn with its cost."""
    folder = WORK / f"peer{next(_NUMBERS)}"
    folder.mkdir()
    command = [str(python), str(_table.HERE / "_mem0_turns.py"), str(folder)]
    said = json.dumps([{"messages": turn.messages, "facts": turn.facts} for turn in turns])
    done = subprocess.run(
        command,
        input=said,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env=environment("mem0"),
    )
    answer = json.loads(done.stdout)
    return answer["name"], answer["turns"]


def peers() -> list[Path]:
    """Return the interpreters of every peer's environment."""
    found = sorted(_table.HERE.glob(".venv-peer*/bin/python"))
    if not found:
        print(
            "mem0 is left out: there is no bench/.venv-peer (bench/latency.py makes it)",
            file=sys.stderr,
        )
    return found


def costs(
    turns: Sequence[Turn], rounds: int, pythons: Sequence[Path]
) -> dict[str, dict[str, float]]:
    """Return the cost per turn: counts of the first round, the best time of all."""
    found: dict[str, dict[str, float]] = {}
    for number in range(rounds):
        for name in EXTRACTOR_NAMES:
            _say(f"round {number + 1} of {rounds}: {name}")
            _best(found, name, by_told(name, turns))
        for python in pythons:
            _say(f"round {number + 1} of {rounds}: mem0")
            _best(found, *by_peer(python, turns))
    return found


def _best(
    found: dict[str, dict[str, float]], name: str, turns: Sequence[Mapping[str, Any]]
) -> None:
    millis = sum(turn["nanos"] for turn in turns) / len(turns) / MILLI
    if name in found:
        found[name]["ms"] = min(found[name]["ms"], millis)
        return
    asked = [pair for turn in turns for pair in turn["asked"]]
    prompts, answers = (
        sum(count_tokens_batch([pair[side] for pair in asked], ENCODING)) for side in (0, 1)
    )
    memories = sum(turn["memories"] for turn in turns)
    figures = {"calls": len(asked), "prompt": prompts, "completion": answers, "memories": memories}
    found[name] = {what: total / len(turns) for what, total in figures.items()} | {"ms": millis}


COST_HEAD = (
    "per turn",
    "calls",
    "prompt tokens",
    "answer tokens",
    "memories",
    "ms beside the model",
    "tokens / mem0",
)


def cost_rows(found: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Format the costs as rows; the last column compares with the newest peer."""
    peer = next((one for name, one in found.items() if name.startswith("mem0")), None)
    rows: list[list[str]] = []
    for name, one in found.items():
        shown = [
            f"{one['calls']:.2f}",
            _table.number(one["prompt"]),
            _table.number(one["completion"]),
        ]
        against = "–" if peer is None else f"{_tokens(one) / _tokens(peer):.2f}"
        rows.append([name, *shown, f"{one['memories']:.2f}", _table.number(one["ms"]), against])
    return rows


def _tokens(one: Mapping[str, float]) -> float:
    return one["prompt"] + one["completion"]


def cost_ratios(found: Mapping[str, Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    """Return the peers' costs relative to the matching extractor."""
    facts = found["facts"]
    for name, one in found.items():
        if name.startswith("mem0"):
            yield _table.figure(f"model calls, {name} / facts", one["calls"] / facts["calls"], "×")
            yield _table.figure(f"tokens, {name} / facts", _tokens(one) / _tokens(facts), "×")
            yield _table.figure(
                f"processor time beside the model, {name} / facts", one["ms"] / facts["ms"], "×"
            )


# Without a model


def spent_on(work: Callable[[], object]) -> int:
    """Return the processor time of some work in nanoseconds."""
    busy = time.process_time_ns()
    work()
    return time.process_time_ns() - busy


def in_turns(rounds: int, **works: Callable[[], int]) -> dict[str, int]:
    """Return the best of several rounds of each work, which times itself."""
    best: dict[str, int] = {}
    for _ in range(rounds + 1):
        for name, work in works.items():
            nanos = work()
            best[name] = min(nanos, best.get(name, nanos))
    return best


def throughput(turns: Sequence[Turn], rounds: int) -> Iterator[dict[str, Any]]:
    """Return turns per second on one core: the extractor alone, and a complete add."""
    _say("throughput")
    extractor, settings, echoes = LocalExtractor(), Settings(), EchoFilter()

    def extract() -> int:
        return spent_on(lambda: [run(extractor.extract(turn.heard)) for turn in turns])

    def judge() -> int:
        said = [one for turn in turns for one in turn.heard.turns]
        return spent_on(
            lambda: [gate.decide_turn(one, "default", settings, echoes) for one in said]
        )

    def add(store: str, by: str) -> Callable[[], int]:
        def work() -> int:
            with opened(store, embedder="none", extract=by) as memory:
                memory.add(
                    "The first write opens what is opened late.",
                    user_id="somebody else",
                    timestamp=labels.NOW,
                )
                return spent_on(
                    lambda: [memory.add(one.said, user_id=USER, timestamp=one.at) for one in turns]
                )

        return work

    stores = [(store, by) for store in ("ram://", "sqlite") for by in ("verbatim", "local")]
    best = in_turns(
        rounds, extract=extract, judge=judge, **{f"{s} {by}": add(s, by) for s, by in stores}
    )
    rate = {name: len(turns) / nanos * 1e9 for name, nanos in best.items()}
    said = sum(len(turn.heard.turns) for turn in turns)
    yield _table.verdict("local extractor alone", rate["extract"], ">=", 500, " turns/s")
    yield _table.figure("gate", best["judge"] / said / MICRO, " µs/turn")
    for store, by in stores:
        yield _table.figure(
            f"add, {store.removesuffix('://')}, {by}", rate[f"{store} {by}"], " turns/s"
        )
    for store in ("ram://", "sqlite"):
        times = best[f"{store} local"] / best[f"{store} verbatim"]
        yield _table.figure(f"add, {store.removesuffix('://')}, local / verbatim", times, "×")


SAYINGS = (
    "I like {}",
    "I hate {}",
    "I use {} every day",
    "I'm learning {}",
    "I play the {}",
    "I'm working on {}",
    "I want to buy a {}",
    "I'm allergic to {}",
    "I'm interested in {}",
    "I visited {} last summer",
)


def curation(effort: Effort) -> Iterator[dict[str, Any]]:
    """Measure deciding about a claim and adding it, with many current facts."""
    for title, sayings in (("ten predicates", SAYINGS), ("the claim's own predicate", SAYINGS[:1])):
        best = {held: _with_held(held, sayings, effort) for held in HELD}
        for held, (decide, add) in best.items():
            name = f"with {_table.number(held)} facts of {title} held"
            yield _table.figure(f"curation, {name}", decide / MICRO, " µs/claim")
            yield _table.figure(f"add of one claim, {name}", add / MICRO, " µs")
        (first, _), (last, _) = best[HELD[0]], best[HELD[-1]]
        name = f"{_table.number(HELD[-1])} / {HELD[0]} facts of {title} held"
        yield _table.figure(f"curation, {name}", last / first, "×")


def _with_held(held: int, sayings: Sequence[str], effort: Effort) -> tuple[float, float]:
    """Return nanoseconds to decide about one new claim, and to add its turn."""
    _say(f"curation with {held} held")
    things = _things()
    with opened("sqlite", embedder="none") as memory:
        said = [
            {"role": "user", "content": sayings[n % len(sayings)].format(next(things))}
            for n in range(held)
        ]
        memory.add(said, user_id=USER)
        there = len(memory.get_all(user_id=USER, limit=HELD[-1])["results"])
        if there != held:
            raise SystemExit(f"{there} facts are held where {held} were expected")
        scope = memory.engine.resolve_scope({"user_id": USER})
        curator = RuleCurator(memory.engine.store)

        def decide() -> int:
            heard = [_said(sayings[0].format(next(things)), scope) for _ in range(effort.claims)]
            cases = [(one, run(LocalExtractor().extract(one)).claims) for one in heard]
            return spent_on(lambda: [run(curator.decide(one, claims)) for one, claims in cases])

        decided = in_turns(effort.rounds, decide=decide)["decide"] / effort.claims
        few = [
            sayings[0].format(next(things)) for _ in range(max(held // 20, 5))
        ]  # keeps the number of facts about constant
        added = min(spent_on(partial(memory.add, text, user_id=USER)) for text in few)
    return decided, added


def _said(text: str, scope: Any) -> ExtractionInput:
    said = messages.parse_messages(
        text, metadata=None, timestamp=labels.NOW, source=None, settings=Settings()
    )
    return ExtractionInput(said.turns, parse_instant(labels.NOW), scope)


def _things() -> Iterator[str]:
    """Generate unknown names, no two alike."""
    words = [str(word) for word in Maker.seeded(7).words[500:]]
    return (f"{one} {other.title()}" for one, other in zip(words[::2], words[1::2], strict=False))


# The program


def _say(what: str) -> None:
    print(f"  {what}".ljust(79), end="\r", file=sys.stderr, flush=True)


def page(results: Mapping[str, Any]) -> str:
    """Format the results for the docs."""
    machine = results["machine"]
    return "\n\n".join(
        [
            f"`{machine['command']}` on {_table.where(machine)}.",
            f"{results['turns']} turns in which rules find {results['facts']} facts.",
            _table.markdown(COST_HEAD, cost_rows(results["costs"])),
            _table.markdown(
                ("figure", *_table.VERDICT_HEAD[1:]), _table.verdict_rows(results["figures"])
            ),
        ]
    )


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="What a turn costs to understand, by each extractor and by mem0"
    )
    parser.add_argument("--quick", action="store_true", help="fewer turns, fewer rounds")
    parser.add_argument("--no-peer", action="store_true", help="leave mem0 out")
    parser.add_argument(
        "--publish", action="store_true", help="put the tables into docs/reference/benchmarks.md"
    )
    return parser.parse_args()


def main() -> None:
    """Measure, print and save."""
    asked = options()
    effort = QUICK if asked.quick else FULL
    facts = _table.machine()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    turns = conversation(effort.step)
    found = costs(turns, effort.rounds, [] if asked.no_peer else peers())
    figures = [*cost_ratios(found), *throughput(turns, effort.rounds), *curation(effort)]
    shutil.rmtree(WORK, ignore_errors=True)
    print(_table.plain(COST_HEAD, cost_rows(found)), "", sep="\n")
    print(_table.plain(("figure", *_table.VERDICT_HEAD[1:]), _table.verdict_rows(figures)))
    total = sum(len(turn.facts) for turn in turns)
    results = {
        "machine": facts,
        "turns": len(turns),
        "facts": total,
        "costs": found,
        "figures": figures,
    }
    print(f"\nkept in {_table.save('write', results).relative_to(_table.HERE.parent)}")
    if asked.publish:
        _table.publish("write", page(results))


if __name__ == "__main__":
    main()
