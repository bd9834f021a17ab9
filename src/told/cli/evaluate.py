"""`told eval`: run the recall benchmark and print its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.cli.options import argument, option
from told.cli.shell import Shell, TickCallback, command
from told.errors import InvalidInput

if TYPE_CHECKING:
    from told.tools.evaluate.data import EvalConversation
    from told.tools.evaluate.run import EmbedderPool, EvalRun, Variant
import json
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from told.cli.views import build_table, dim_text, safe_text
from told.text.tokens import make_snippet
from told.tools.evaluate.run import diff_metrics, headline_budget

PANEL = "Look after it"
app = typer.Typer()


@command(app, "eval", rich_help_panel=PANEL)
def evaluate(
    shell: Shell,
    files: Annotated[
        list[Path],
        argument("Conversations with questions, as JSON.", "FILE...", exists=True, dir_okay=False),
    ],
    budget: Annotated[
        list[int] | None,
        option(
            about="Context budget in tokens; repeatable; default 500, 1000, 2000 and 4000.",
            metavar="N",
            min=1,
        ),
    ] = None,
    limit_conversations: Annotated[
        int | None,
        option(about="Use only the first N conversations of each file.", metavar="N", min=1),
    ] = None,
    misses: Annotated[
        int, typer.Option(help="How many misses to explain.", metavar="N", min=0)
    ] = 5,
    set_: Annotated[
        list[str] | None,
        option("--set", about="Setting for every run; repeatable.", metavar="NAME=VALUE"),
    ] = None,
    compare: Annotated[
        list[str] | None,
        option(
            about="Variant to compare: optional title, then settings, such as "
            "few=depth=50; repeatable.",
            metavar="NAME=VALUE,...",
        ),
    ] = None,
    save: Annotated[
        Path | None, option(about="Write the full report to this file as JSON.", metavar="PATH")
    ] = None,
) -> None:
    """Measure recall on your own conversations: the share of evidence that fits in a context.

    The store is temporary unless --store names an empty one to keep.
    """
    from told.tools.evaluate import data, run
    from told.tools.evaluate.run import BUDGETS, EmbedderPool

    if shell.store and len(files) > 1:
        raise InvalidInput(
            "--store keeps the conversations of one file.",
            hint="Give one FILE, or leave --store out.",
        )
    settings = shell.load_settings().settings
    variants = _parse_variants(
        set_ or (), compare or (), {"zone": settings.zone} if shell.zone else {}
    )
    conversations_by_file = {
        file: data.load_conversations(
            file, max_count=limit_conversations, zone=settings.zone or None
        )
        for file in files
    }
    embedders, budgets = EmbedderPool(settings.embedder), sorted(set(budget or BUDGETS))
    total = len(variants) * sum(
        run.count_steps(conversations) for conversations in conversations_by_file.values()
    )
    with shell.show_progress("Measuring", total) as tick:
        runs_by_file = {
            file: _run_variants(
                shell, file_conversations, variants, embedders, budgets, misses, tick
            )
            for file, file_conversations in conversations_by_file.items()
        }
    report = _build_report(conversations_by_file, runs_by_file, budgets)
    if save is not None:
        save.write_text(report_to_json(report), "utf-8")
    shell.show_result(report, render_report)


def _run_variants(
    shell: Shell,
    conversations: Sequence[EvalConversation],
    variants: Sequence[Variant],
    embedders: EmbedderPool,
    budgets: Sequence[int],
    misses: int,
    tick: TickCallback,
) -> list[EvalRun]:
    from told.tools.evaluate.run import evaluate

    return evaluate(
        conversations,
        variants,
        embedders,
        budgets=budgets,
        misses=misses,
        store=shell.store,
        account=shell.account,
        tick=tick,
    )


def _build_report(
    conversations_by_file: Mapping[Path, Sequence[EvalConversation]],
    runs_by_file: Mapping[Path, Sequence[EvalRun]],
    budgets: Sequence[int],
) -> dict[str, Any]:
    """Build the full report as JSON."""
    files = [
        {
            "file": str(file),
            "conversations": len(conversations),
            "turns": sum(len(conversation.turns) for conversation in conversations),
            "questions": sum(len(conversation.questions) for conversation in conversations),
            "variants": [run.as_dict() for run in runs_by_file[file]],
        }
        for file, conversations in conversations_by_file.items()
    ]
    warnings = dict.fromkeys(
        warning for runs in runs_by_file.values() for run in runs for warning in run.warnings
    )
    return {"budgets": list(budgets), "files": files, "warnings": list(warnings)}


# Settings on the command line


def _parse_variants(
    base: Sequence[str], others: Sequence[str], extra: Mapping[str, Any]
) -> list[Variant]:
    """Return the base run and the variants to compare, each with its settings."""
    from told.tools.evaluate.run import Variant, check_settings

    base_settings = {
        **extra,
        **check_settings(dict(_parse_setting(text, "--set") for text in base), "--set"),
    }
    titled = [_parse_variant(text) for text in others]
    variants = [Variant(settings=base_settings)]
    variants += [
        Variant(title, {**base_settings, **check_settings(dict(pairs), "--compare")})
        for title, pairs in titled
    ]
    titles = [variant.name for variant in variants]
    duplicate = next((title for title in titles if titles.count(title) > 1), None)
    if duplicate is not None:
        raise typer.BadParameter(f"two variants are named {duplicate!r}", param_hint="'--compare'")
    return variants


def _parse_variant(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Parse a variant's optional title and its settings."""
    first, *rest = text.split(",")
    title, _, setting = first.partition("=")
    if "=" not in setting:
        title, setting = text, first
    return title, [_parse_setting(part, "--compare") for part in (setting, *rest)]


def _parse_setting(text: str, where: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=f"'{where}'")
    return name.strip(), value


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


# Cells


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
