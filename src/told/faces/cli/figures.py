"""What people see of a measurement: the figures by category, what each variant changes, its cost, and the misses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from told.core.text import snippet
from told.faces.cli.views import grid, quiet, safe
from told.faces.eval.measure import differences, nearest

COSTS = {
    "ingest_ms_per_turn": "ingest ms/turn", "search_ms": "search ms", "context_ms": "context ms",
    "bytes_per_turn": "bytes/turn",
}  # fmt: skip
LEGEND = (
    "R@{0}t: share of the evidence verbatim in a context of {0} tokens · all@: all of it · R@10: among ten hits · "
    "newest first: current before superseded · AUROC: confidence of answerable against unanswerable"
)
SHOWN = 100
"""Characters of a missed turn that people are shown; --json has them all."""


def as_json(report: Mapping[str, Any]) -> str:
    """The report for a file."""
    return json.dumps(report, ensure_ascii=False, indent=1) + "\n"


def report(body: Mapping[str, Any]) -> RenderableType:
    """Every file with its tables."""
    return Group(*(_file(one, body["budgets"]) for one in body["files"]), quiet(LEGEND.format(body["budgets"][0])))


def _file(body: Mapping[str, Any], budgets: Sequence[int]) -> RenderableType:
    first, *others = body["variants"]
    counts = ", ".join(f"{body[name]} {name}" for name in ("conversations", "turns", "questions"))
    with_what = first["embedder"] or "words alone"
    heading = Text.assemble(safe(body["file"], "bold"), (f"  {counts}; {with_what}", "dim"))
    names = columns(first, budgets)
    parts: list[RenderableType] = [heading, Text(), Fitting(names, lambda some: by_category(first, some)), Text()]
    if others:
        parts += [Fitting(names, lambda some: compared(first, others, some)), Text()]
    parts += [costs(body["variants"]), Text()]
    parts += [Padding(miss(one), (0, 0, 1, 0)) for one in first["misses"]]
    return Group(*parts)


def columns(variant: Mapping[str, Any], budgets: Sequence[int]) -> list[str]:
    """The figures that were measured, the most telling first."""
    wanted = [*(f"R@{budget}t" for budget in budgets), f"all@{nearest(budgets)}t", "R@5", "R@10", "R@20", "R@50"]
    return [name for name in (*wanted, "nDCG@10", "newest first", "AUROC") if variant["all"].get(name) is not None]


class Fitting:
    """A table of as many figures as there is room for, the most telling first."""

    def __init__(self, names: Sequence[str], table: Callable[[Sequence[str]], Table]) -> None:
        self.names, self.table = names, table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table for this much room, and what it leaves out."""
        counts = range(len(self.names), 1, -1)
        count = next((some for some in counts if self._width(console, some) <= options.max_width), 1)
        yield self.table(self.names[:count])
        if left := self.names[count:]:
            yield quiet(f"no room for {', '.join(left)}; a wider terminal or --json shows them")

    def _width(self, console: Console, count: int) -> int:
        return console.measure(self.table(self.names[:count]), options=console.options.update(max_width=10_000)).maximum


def by_category(variant: Mapping[str, Any], names: Sequence[str]) -> Table:
    """The figures of each category, and of all."""
    table = _aligned("category", "asked", *names)
    asked = [row["category"] for row in variant["questions"] if row["figures"]]
    for category, figures in variant["categories"].items():
        table.add_row(safe(category), str(asked.count(category)), *(_figure(figures.get(name)) for name in names))
    overall = (_figure(variant["all"].get(name), "bold") for name in names)
    table.add_row(Text("all", style="bold"), str(len(asked)), *overall)
    return table


def compared(first: Mapping[str, Any], others: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    """The figures of the run itself, and by how much each variant differs."""
    table = _aligned("variant", *names)
    table.add_row(safe(first["name"]), *(_figure(first["all"].get(name)) for name in names))
    for other in others:
        apart = differences(other["all"], first["all"])
        table.add_row(safe(other["name"]), *(_difference(apart.get(name)) for name in names))
    return table


def costs(variants: Sequence[Mapping[str, Any]]) -> Table:
    """What each variant took beside the embedding."""
    table = _aligned("cost beside the embedding", *COSTS.values())
    for variant in variants:
        table.add_row(safe(variant["name"]), *(_number(variant["cost"][name]) for name in COSTS))
    return table


def miss(body: Mapping[str, Any]) -> RenderableType:
    """A question whose evidence was not in the context, and what the trace says of each turn of it."""
    found = body["evidence"] - len(body["missing"])
    origin = safe(f"  {body['category']}, {body['conversation']}", "dim")
    head = Text.assemble(("✗ ", "red"), safe(body["question"]), origin)
    about = quiet(f"{found} of {body['evidence']} in {body['budget']} tokens")
    return Group(head, Padding(Group(about, *map(_missing, body["missing"])), (0, 0, 0, 2)))


def _missing(turn: Mapping[str, Any]) -> Text:
    place = "not in the first 50" if turn["rank"] is None else f"rank {turn['rank']}"
    parts = [f"{one['part']} {_number(one['missed'])} (best hit {_number(one['best'])})" for one in turn["parts"]]
    text = Text.assemble(safe(f"{turn['id']} ", "cyan"), safe(snippet(turn["text"], SHOWN)))
    return Text("\n").join([text, quiet("  " + " · ".join([place, turn["fate"], *parts]))])


# Cells


def _aligned(first: str, *others: str) -> Table:
    table = grid(first, *others)
    table.collapse_padding = True
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    return table


def _figure(value: float | None, style: str = "") -> Text:
    return Text("–", style="dim") if value is None else Text(f"{value:.3f}", style=style)


def _difference(value: float | None) -> Text:
    if value is None:
        return Text("–", style="dim")
    style = "green" if value > 0 else "red" if value < 0 else "dim"
    return Text(f"{value:+.3f}", style=style)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
