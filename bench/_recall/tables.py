"""Results of recall.py as tables and verdicts: figures only, no text of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench import _table
from bench._recall.peer import Mem0
from told.tools.evaluate.run import (
    DEFAULT_VARIANT,
    EvalRun,
    Metrics,
    diff_metrics,
    summarize,
    summarize_by_category,
)

VERDICTS = ("figure", "measured", "target", "")
TARGETS = {
    "locomo": {"R@500t": 0.84, "R@1000t": 0.90, "R@2000t": 0.94, "R@4000t": 0.97, "AUROC": 0.65},
    "multi-hop": {"R@1000t": 0.72},
    "open-domain": {"R@1000t": 0.66},
    "updates": {"newest first": 0.85},
}
CHAT = (
    "R@500t",
    "R@1000t",
    "R@2000t",
    "R@4000t",
    "all@1000t",
    "R@5",
    "R@10",
    "R@20",
    "R@50",
    "nDCG@10",
    "AUROC",
)
LONG = (
    "R@5",
    "R@10",
    "R@20",
    "R@50",
    "nDCG@10",
    "words@1000t",
    "words@2000t",
    "R@2000t",
    "newest first",
    "AUROC",
)
COSTS = {
    "ingest_ms_per_turn": "ingest ms/turn", "search_ms": "search ms", "context_ms": "context ms",
    "bytes_per_turn": "bytes/turn",
}  # fmt: skip
HEADLINE = {"locomo": "R@1000t", "beam": "R@10", "longmemeval": "R@10"}
COLUMNS = {"locomo": CHAT, "beam": LONG, "longmemeval": LONG}

Drawn = Callable[[Sequence[str], _table.Rows], str]


def of_set(
    name: str, runs: Sequence[EvalRun], ablation: Sequence[EvalRun], draw: Drawn = _table.plain
) -> str:
    """Build the tables of one data set: figures, categories, costs and variants."""
    tables = [
        _figures(name, runs, draw),
        _categories(name, runs, draw),
        _costs([*runs, *ablation], draw),
    ]
    return "\n\n".join([*tables, *([_ablation(name, runs[0], ablation, draw)] if ablation else [])])


def _figures(name: str, runs: Sequence[EvalRun], draw: Drawn) -> str:
    figures = {run.name: run.overall for run in runs}
    rows = [
        [run, *(_figure(found.get(column)) for column in COLUMNS[name])]
        for run, found in figures.items()
    ]
    return draw([name, *COLUMNS[name]], rows)


def _categories(name: str, runs: Sequence[EvalRun], draw: Drawn) -> str:
    column = HEADLINE[name]
    found = {run.name: summarize_by_category(run.rows) for run in runs}
    categories = list(next(iter(found.values())))
    rows = [
        [run, *(_figure(figures[one].get(column)) for one in categories)]
        for run, figures in found.items()
    ]
    return draw([column, *categories], rows)


def _costs(runs: Sequence[EvalRun], draw: Drawn) -> str:
    rows = [
        [run.name, *(_table.number(run.cost[cost]) for cost in COSTS)]
        for run in runs
        if run.name != Mem0.name  # it ran earlier in a separate process
    ]
    return draw(["cost beside the embedding", *COSTS.values()], rows)


def _ablation(name: str, base: EvalRun, variants: Sequence[EvalRun], draw: Drawn) -> str:
    columns = COLUMNS[name]
    rows = [[base.name, *(_figure(base.overall.get(column)) for column in columns)]]
    for variant in variants:
        apart = diff_metrics(variant.overall, base.overall)
        rows.append([variant.name, *(_figure(apart.get(column), "+.3f") for column in columns)])
    return draw([f"{name}, change", *columns], rows)


def _figure(value: float | None, form: str = ".3f") -> str:
    return "–" if value is None else format(value, form)


def page(
    results: Mapping[str, Any], sets: Mapping[str, tuple[Sequence[EvalRun], Sequence[EvalRun]]]
) -> str:
    """Format the results for the docs."""
    sections = [f"`{results['machine']['command']}` on {_table.where(results['machine'])}."]
    for name, (runs, ablation) in sets.items():
        turns, questions = runs[0].turns, len(runs[0].rows)
        sections += [f"**{name}**, {turns} turns, {questions} questions"]
        sections += [of_set(name, runs, ablation, _table.markdown)]
    if results["verdicts"]:
        sections.append(_table.markdown(VERDICTS, _table.verdict_rows(results["verdicts"])))
    return "\n\n".join(sections)


# Verdicts


def verdicts(sets: Mapping[str, Sequence[EvalRun]]) -> list[dict[str, Any]]:
    """Compare told with the targets of the development data."""
    told = {
        name: runs[0] for name, runs in sets.items() if runs and runs[0].name == DEFAULT_VARIANT
    }
    found = []
    if "locomo" in told:
        found += _against("locomo", told["locomo"].overall)
        categories = summarize_by_category(told["locomo"].rows)
        for category in ("multi-hop", "open-domain"):
            found += _against(category, categories.get(category, {}))
    for name, runs in sets.items():
        if name in told and len(runs) > 1:
            found.append(
                _table.verdict(
                    f"{name} least lead in {HEADLINE[name]}", _lead(name, runs), ">=", 0.0, ""
                )
            )
    updates = [row for name in ("beam", "longmemeval") if name in told for row in told[name].rows]
    return found + (_against("updates", summarize(updates)) if updates else [])


def _lead(name: str, runs: Sequence[EvalRun]) -> float:
    """Return told's lead over the best other contender, in its weakest category."""
    own, *others = [summarize_by_category(run.rows) for run in runs]
    column = HEADLINE[name]
    return min(
        (own[category][column] or 0.0) - max(other[category][column] or 0.0 for other in others)
        for category in own
    )


def _against(name: str, figures: Metrics) -> list[dict[str, Any]]:
    return [
        _table.verdict(f"{name} {figure}", figures.get(figure), ">=", target, "")
        for figure, target in TARGETS[name].items()
    ]


# Misses


def misses(run: EvalRun) -> list[str]:
    """List questions whose evidence is not in the context, with the trace of each turn."""
    return [line for one in run.misses for line in ("", *_miss(one))]


def _miss(one: Mapping[str, Any]) -> list[str]:
    lines = [f"✗ {one['question']}  [{one['category']}, {one['conversation']}] → {one['answer']}"]
    for turn in one["missing"]:
        parts = [
            f"{one['part']} {_number(one['missed'])} (best hit {_number(one['best'])})"
            for one in turn["parts"]
        ]
        place = "unranked" if turn["rank"] is None else f"rank {turn['rank']}"
        lines += [
            f"    {turn['id']}: {turn['text']}",
            f"      {' · '.join([place, turn['fate'], *parts])}",
        ]
    return lines


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
