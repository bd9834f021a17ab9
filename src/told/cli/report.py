"""Render the report of the recall benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from told.cli.views import build_table, dim_text, safe_text
from told.text.tokens import make_snippet
from told.tools.evaluate.run import diff_metrics, headline_budget

COST_LABELS = {
    "ingest_ms_per_turn": "ingest ms/turn",
    "search_ms": "search ms",
    "context_ms": "context ms",
    "bytes_per_turn": "bytes/turn",
}


LEGEND = (
    "R@{0}t: share of the evidence verbatim in a context of {0} tokens · all@: all of it · R@10: "
    "among ten hits · "
    "newest first: current before superseded · AUROC: confidence of answerable against unanswerable"
)


MAX_MISS_CHARS = 100


"""Characters shown of a missed turn; --json shows all."""


def report_to_json(report: Mapping[str, Any]) -> str:
    """Serialise the report for a file."""
    return json.dumps(report, ensure_ascii=False, indent=1) + "\n"


def render_report(body: Mapping[str, Any]) -> RenderableType:
    """Render the tables of every file."""
    return Group(
        *(_render_file(file, body["budgets"]) for file in body["files"]),
        dim_text(LEGEND.format(body["budgets"][0])),
    )


def _render_file(body: Mapping[str, Any], budgets: Sequence[int]) -> RenderableType:
    first, *others = body["variants"]
    counts = ", ".join(f"{body[name]} {name}" for name in ("conversations", "turns", "questions"))
    embedder = first["embedder"] or "words alone"
    heading = Text.assemble(safe_text(body["file"], "bold"), (f"  {counts}; {embedder}", "dim"))
    names = select_columns(first, budgets)
    parts: list[RenderableType] = [
        heading,
        Text(),
        FittingTable(names, lambda names_shown: render_categories(first, names_shown)),
        Text(),
    ]
    if others:
        parts += [
            FittingTable(names, lambda names_shown: render_comparison(first, others, names_shown)),
            Text(),
        ]
    parts += [render_costs(body["variants"]), Text()]
    parts += [Padding(render_miss(miss), (0, 0, 1, 0)) for miss in first["misses"]]
    return Group(*parts)


def select_columns(variant: Mapping[str, Any], budgets: Sequence[int]) -> list[str]:
    """Return the measured figures, most important first."""
    wanted = [
        *(f"R@{budget}t" for budget in budgets),
        f"all@{headline_budget(budgets)}t",
        "R@5",
        "R@10",
        "R@20",
        "R@50",
    ]
    return [
        name
        for name in (*wanted, "nDCG@10", "newest first", "AUROC")
        if variant["all"].get(name) is not None
    ]


class FittingTable:
    """A table that shows as many columns as fit, most important first."""

    def __init__(self, names: Sequence[str], build: Callable[[Sequence[str]], Table]) -> None:
        self.names, self.build = names, build

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the columns that fit and name those left out."""
        counts = range(len(self.names), 1, -1)
        count = next(
            (
                candidate
                for candidate in counts
                if self._measure_width(console, candidate) <= options.max_width
            ),
            1,
        )
        yield self.build(self.names[:count])
        if hidden := self.names[count:]:
            yield dim_text(f"hidden: {', '.join(hidden)}; use a wider terminal or --json")

    def _measure_width(self, console: Console, count: int) -> int:
        return console.measure(
            self.build(self.names[:count]), options=console.options.update(max_width=10_000)
        ).maximum


def render_categories(variant: Mapping[str, Any], names: Sequence[str]) -> Table:
    """Render the figures per category and in total."""
    table = _build_aligned_table("category", "asked", *names)
    categories = [row["category"] for row in variant["questions"] if row["figures"]]
    for category, figures in variant["categories"].items():
        table.add_row(
            safe_text(category),
            str(categories.count(category)),
            *(_format_metric(figures.get(name)) for name in names),
        )
    overall = (_format_metric(variant["all"].get(name), "bold") for name in names)
    table.add_row(Text("all", style="bold"), str(len(categories)), *overall)
    return table


def render_comparison(
    first: Mapping[str, Any], others: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> Table:
    """Render the base figures and each variant's difference from them."""
    table = _build_aligned_table("variant", *names)
    table.add_row(
        safe_text(first["name"]), *(_format_metric(first["all"].get(name)) for name in names)
    )
    for other in others:
        differences = diff_metrics(other["all"], first["all"])
        table.add_row(
            safe_text(other["name"]), *(_format_difference(differences.get(name)) for name in names)
        )
    return table


def render_costs(variants: Sequence[Mapping[str, Any]]) -> Table:
    """Render the time each variant took, embedding excluded."""
    table = _build_aligned_table("cost beside the embedding", *COST_LABELS.values())
    for variant in variants:
        table.add_row(
            safe_text(variant["name"]),
            *(_format_number(variant["cost"][name]) for name in COST_LABELS),
        )
    return table


def render_miss(body: Mapping[str, Any]) -> RenderableType:
    """Render a missed question and the trace of each evidence turn."""
    found_count = body["evidence"] - len(body["missing"])
    origin = safe_text(f"  {body['category']}, {body['conversation']}", "dim")
    head = Text.assemble(("✗ ", "red"), safe_text(body["question"]), origin)
    summary = dim_text(f"{found_count} of {body['evidence']} in {body['budget']} tokens")
    return Group(
        head, Padding(Group(summary, *map(_render_missing_turn, body["missing"])), (0, 0, 0, 2))
    )


def _render_missing_turn(turn: Mapping[str, Any]) -> Text:
    rank = "not in the first 50" if turn["rank"] is None else f"rank {turn['rank']}"
    parts = [
        f"{part['part']} {_format_number(part['missed'])} (best hit {_format_number(part['best'])})"
        for part in turn["parts"]
    ]
    text = Text.assemble(
        safe_text(f"{turn['id']} ", "cyan"), safe_text(make_snippet(turn["text"], MAX_MISS_CHARS))
    )
    return Text("\n").join([text, dim_text("  " + " · ".join([rank, turn["fate"], *parts]))])


def _build_aligned_table(first: str, *others: str) -> Table:
    table = build_table(first, *others)
    table.collapse_padding = True
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    return table


def _format_metric(value: float | None, style: str = "") -> Text:
    return Text("–", style="dim") if value is None else Text(f"{value:.3f}", style=style)


def _format_difference(value: float | None) -> Text:
    if value is None:
        return Text("–", style="dim")
    style = "green" if value > 0 else "red" if value < 0 else "dim"
    return Text(f"{value:+.3f}", style=style)


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
