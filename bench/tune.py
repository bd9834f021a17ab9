"""Tune the weights of recall on the development conversations, with leave-one-out tests.

    python bench/tune.py --data FOLDER              current weights, and the effect of each step
    python bench/tune.py --data FOLDER --search     hill-climb and test on the held-out one
    python bench/tune.py --data FOLDER --calibrate  fit the shown score to the share of hits

The candidates of each question are collected once; a set of weights only reorders them, packed by
the cost of each line. This is a close estimate of `bench/recall.py`, which decides.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from bench._recall.data import FILES, load
from bench._recall.vectors import File
from bench.recall import EMBEDDER, VARIABLE, WORK
from told import Memory
from told.flow import run
from told.model.fact import LEVEL_SLOTS, PASSAGE_CHARS, Fact
from told.model.kind import load_builtin_ontology
from told.model.query import LATEST, AsOf, FactQuery, IndexResult
from told.model.scope import Scope
from told.retrieval import candidates, ranking
from told.retrieval.intent import QueryIntent, analyse_query
from told.retrieval.render import count_tokens_batch
from told.settings import Settings
from told.text.dates import from_us
from told.text.tokens import split_pieces
from told.tools.evaluate.data import EvalConversation
from told.tools.evaluate.run import CachingEmbedder, EmbedderPool, ToldTarget

BUDGETS = (500, 1000, 2000, 4000)
FRAME = 24
WEIGHTS = (
    "rank_dense",
    "rank_cover",
    "rank_speaker",
    "rank_time",
    "rank_talk",
    "rank_when",
    "rank_assistant",
    "rank_reply",
)
SIZES = (4, 25)
STEPS = (0.6, 0.8, 1.25, 1.6)


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its candidates, and which of them are wanted."""

    conversation: str
    answerable: bool
    asked: QueryIntent
    found: IndexResult
    facts: Mapping[int, Fact]
    prices: Mapping[tuple[int, int], int]
    gold: frozenset[int]
    missing: int

    def recall(self, settings: Settings, spread: float) -> list[float]:
        """Return the share of the wanted that fits each budget, packed in this order."""
        scored = ranking.rank_candidates(self.found, self.asked, settings, spread)
        if ranking.needs_facts(self.asked, settings):
            scored = ranking.add_fact_scores(
                scored, self.facts, {}, self.asked, load_builtin_ontology(), settings, 0, {}
            )
        return [self._packed(scored, budget - FRAME) for budget in BUDGETS]

    def _packed(self, scored: Sequence[ranking.ScoredCandidate], left: int) -> float:
        inside: set[int] = set()
        for one in scored:
            price = self.prices[one.candidate.seq, one.candidate.slot]
            if price <= left:
                left -= price
                inside.add(one.candidate.seq)
        return len(inside & self.gold) / (len(self.gold) + self.missing)


def cases(conversations: Sequence[EvalConversation], embedder: CachingEmbedder) -> Iterator[Case]:
    """Return every question of some conversations with its candidates."""
    with (
        TemporaryDirectory() as folder,
        Memory(f"sqlite:///{folder}/told.db", embedder=embedder) as memory,
    ):
        told = ToldTarget(memory)
        for conversation in conversations:
            told.ingest(conversation)
            yield from _questions(memory, conversation)


def _questions(memory: Memory, conversation: EvalConversation) -> Iterator[Case]:
    engine = memory.engine
    scope = Scope(engine.account, user_id=conversation.id)
    facts = {
        fact.seq: fact
        for fact in engine.store.find_facts(FactQuery(scope, AsOf(LATEST, engine.store.mint.now())))
    }
    prices = _prices(facts.values(), engine.settings)
    turns = {str(fact.meta.get("id")): fact.seq for fact in facts.values()}
    for question in conversation.questions:
        now = (
            engine.store.mint.now()
            if question.date is None
            else run(engine.resolve_point(question.date)).at
        )
        said = analyse_query(question.text, now=from_us(now))
        find = FactQuery(scope, AsOf(LATEST, engine.store.mint.now()))
        vector, _ = run(candidates.embed_query(engine.read_context, question.text))
        probe = candidates.build_index_query(
            engine.read_context, said, find, vector, engine.settings.depth
        )
        found, _ = run(candidates.search_index(engine.read_context, probe))
        gold = frozenset(turns[one] for one in question.evidence if one in turns)
        yield Case(
            conversation.id,
            question.is_measurable,
            said,
            found,
            facts,
            prices,
            gold,
            len(question.evidence) - len(gold),
        )


def _prices(facts: Any, settings: Settings) -> dict[tuple[int, int], int]:
    """Return the cost of each passage's line."""
    rows = [
        ((fact.seq, slot), f"8 May {fact.actor or fact.role}: {' '.join(text.split())}\n")
        for fact in facts
        for slot, text in [
            *enumerate(split_pieces(fact.text, PASSAGE_CHARS)),
            *((slot, fact.text) for slot in LEVEL_SLOTS),
        ]
    ]
    return dict(
        zip(
            (key for key, _ in rows),
            count_tokens_batch([line for _, line in rows], settings.encoding),
            strict=True,
        )
    )


# Weights


def figures(group: Sequence[Case], settings: Settings, spread: float) -> list[float]:
    """Return the mean recall at each budget."""
    rows = [case.recall(settings, spread) for case in group if case.answerable and case.gold]
    return [fmean(column) for column in zip(*rows, strict=True)]


def climbed(group: Sequence[Case], settings: Settings, spread: float) -> Settings:
    """Move each weight as long as that helps this group."""
    best = fmean(figures(group, settings, spread))
    for name in WEIGHTS:
        for step in STEPS:
            moved = settings.replace(**{name: round(getattr(settings, name) * step, 3)})
            if (score := fmean(figures(group, moved, spread))) > best + 0.0005:
                settings, best = moved, score
    return settings


def shown(row: Sequence[float]) -> str:
    """Format figures in a line."""
    return " ".join(f"{value:.4f}" for value in (*row, fmean(row)))


def look(group: Sequence[Case], settings: Settings, spread: float) -> None:
    """Print the effect of each step of each weight."""
    base = figures(group, settings, spread)
    print(f"{'as they are':30s} {shown(base)}")
    for name in WEIGHTS:
        for step in (0.0, *STEPS):
            moved = settings.replace(**{name: round(getattr(settings, name) * step, 3)})
            print(f"{name + f' x {step}':30s} {shown(figures(group, moved, spread))}", flush=True)


def search(group: Sequence[Case], settings: Settings, spread: float) -> None:
    """Climb on all conversations but one and test on that one, for each in turn."""
    names = sorted({case.conversation for case in group})
    held: list[list[float]] = []
    for name in names:
        others = [case for case in group if case.conversation != name]
        found = climbed(others, settings, spread)
        own = [case for case in group if case.conversation == name]
        held.append(figures(own, found, spread))
        moved = {weight: getattr(found, weight) for weight in WEIGHTS}
        print(
            f"{name:12s} {shown(held[-1])}  as they are {shown(figures(own, settings, spread))}  "
            f"{moved}",
            flush=True,
        )
    print(f"{'held out':12s} {shown([fmean(column) for column in zip(*held, strict=True)])}")


# Calibration of the shown score


def slices(conversation: EvalConversation, size: int) -> Iterator[EvalConversation]:
    """Split a conversation into stretches, each with questions it answers and as many others."""
    others = [question for question in conversation.questions if not question.answerable]
    for number, first in enumerate(range(0, len(conversation.turns), size)):
        turns = conversation.turns[first : first + size]
        known = {turn.id for turn in turns}
        own = tuple(
            one
            for one in conversation.questions
            if one.is_measurable and known.issuperset(one.evidence)
        )
        if own:
            asked_in_vain = (
                tuple(others[number % len(others) :][: max(len(own) // 4, 1)]) if others else ()
            )
            name = f"{conversation.id}-{size}-{first}"
            yield replace(conversation, id=name, turns=turns, questions=own + asked_in_vain)


def calibrate(group: Sequence[Case], settings: Settings, spread: float) -> None:
    """Fit the odds that a passage is wanted to its score and the number of passages."""
    rows = np.array(
        [
            (
                one.score,
                np.log(max(case.found.passage_count, 1) / ranking.REFERENCE_PASSAGES),
                case.answerable and one.candidate.seq in case.gold,
            )
            for case in group
            for one in ranking.keep_best_per_fact(
                ranking.rank_candidates(case.found, case.asked, settings, spread)
            )
        ],
        dtype=float,
    )
    causes, wanted = np.column_stack((rows[:, :2], np.ones(len(rows)))), rows[:, 2]
    fit = np.array([1 / settings.score_width, -1.0, -settings.score_middle / settings.score_width])
    chance = np.zeros(len(rows))
    for _ in range(60):
        chance = 1 / (1 + np.exp(-np.clip(causes @ fit, -30, 30)))
        curve = (causes * (chance * (1 - chance))[:, None]).T @ causes
        step = np.linalg.solve(curve + np.eye(3), causes.T @ (wanted - chance))
        fit = fit + step * min(1.0, 0.5 / np.abs(step).max())
    print(
        f"score_middle = {-fit[2] / fit[0]:.2f}   score_width = {1 / fit[0]:.2f}   score_crowd = "
        f"{-fit[1]:.2f}   "
        f"from {len(rows)} passages"
    )
    for few, many in ((0, 10), (10, 100), (100, 10**9)):
        inside = (np.exp(rows[:, 1]) * ranking.REFERENCE_PASSAGES >= few) & (
            np.exp(rows[:, 1]) * ranking.REFERENCE_PASSAGES < many
        )
        for low in np.arange(0, 1, 0.2):
            these = inside & (chance >= low) & (chance < low + 0.2)
            if these.any():
                share = wanted[these].centroid_length()
                print(
                    f"  {few:3d}+ passages, shown {low:.1f}-{low + 0.2:.1f}: {these.sum():7d}, "
                    f"{share:.3f} wanted"
                )


def main() -> int:
    """Run the requested task."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get(VARIABLE))
    parser.add_argument("--sets", nargs="+", choices=FILES, default=["locomo"])
    parser.add_argument("--embedder", default=EMBEDDER)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--calibrate", action="store_true")
    given = parser.parse_args()
    if given.data is None:
        print(f"Name the folder with the data: --data, or {VARIABLE}.", file=sys.stderr)
        return 2
    embedder = EmbedderPool(given.embedder, File(WORK / "vectors.db")).get()
    if embedder is None:
        print(f"{given.embedder} is not installed.", file=sys.stderr)
        return 2
    conversations = [one for name in given.sets for one in load(given.data, name) or ()]
    if given.calibrate:
        conversations += [
            part for one in conversations for size in SIZES for part in slices(one, size)
        ]
    group = list(cases(conversations, embedder))
    task = search if given.search else calibrate if given.calibrate else look
    task(group, Settings(), embedder.spread)
    return 0


if __name__ == "__main__":
    sys.exit(main())
