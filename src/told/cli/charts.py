"""Render fading: decay curves, what is remembered and what was forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from told.cli import views
from told.cli.views import build_table, dim_text, render_bar, safe_text, text_with_id
from told.text.tokens import make_snippet

if TYPE_CHECKING:
    from rich.console import RenderableType

CHART_HEIGHT: Final = 10


"""Height of the chart in lines."""


CHART_LABEL_WIDTH: Final = 6


UNICODE_BLOCKS, ASCII_BLOCKS = " ▁▂▃▄▅▆▇█", " ..::##"


"""Characters for a cell by how full it is, with and without Unicode blocks."""


MAX_QUOTE_CHARS: Final = 160


"""Characters shown of a source quote; --json shows all."""


def render_decay(body: Mapping[str, Any]) -> RenderableType:
    """Render a memory, its salience and its decay curve."""
    parts = [
        body["kind"],
        body["tier"],
        f"by {body['clock']}",
        f"weighs {body['salience']:.2f}",
        describe_fading(body),
    ]
    summary = safe_text(" · ".join(part for part in parts if part), "dim")
    return Group(safe_text(body["memory"], "bold"), summary, Text(), DecayChart(body))


def describe_fading(row: Mapping[str, Any]) -> str:
    """Describe how long a memory will last."""
    if row["faded"]:
        return "has faded"
    fades = row["fades_at"]
    if fades is None:
        return "never fades"
    day = f", about {fades['time'][:10]}" if fades["time"] and fades["left"] > 1 else ""
    return f"fades in {format_amount(fades['left'], fades['unit'])}{day}"


def format_amount(number: float, unit: str) -> str:
    """Format a number of turns or days."""
    rounded = f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return f"{rounded} {unit[:-1] if rounded == '1' else unit}"


class DecayChart:
    """A decay curve drawn in characters; the dotted line is the forgetting threshold."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the curve at the available width."""
        ascii_only = options.ascii_only
        width = max(min(options.max_width - CHART_LABEL_WIDTH - 1, len(self.body["curve"])), 2)
        weights = sample_weights([weight for _, weight in self.body["curve"]], width)
        for line in draw_curve(
            weights,
            self.body["threshold"],
            ASCII_BLOCKS if ascii_only else UNICODE_BLOCKS,
            "-" if ascii_only else "┄",
        ):
            yield Text(line)
        yield Text(
            " " * CHART_LABEL_WIDTH + ("+" + "-" * width if ascii_only else "└" + "─" * width)
        )
        yield Text(" " * (CHART_LABEL_WIDTH + 1) + self._draw_marks(width, ascii_only))
        yield dim_text(" " * (CHART_LABEL_WIDTH + 1) + self._format_legend(ascii_only))

    def _draw_marks(self, width: int, ascii_only: bool) -> str:
        """Draw the axis marks: each mention and now."""
        end = self.body["curve"][-1][0] or 1.0
        said_mark, now_mark = ("^", "|") if ascii_only else ("▲", "●")
        marks = [" "] * width
        for reading, symbol in [
            *((reading_said, said_mark) for reading_said in self.body["said"]),
            (self.body["now"], now_mark),
        ]:
            marks[max(0, min(round(reading / end * (width - 1)), width - 1))] = symbol
        return "".join(marks).rstrip()

    def _format_legend(self, ascii_only: bool) -> str:
        unit = "days" if self.body["clock"] == "time" else "turns"
        said_mark, now_mark, dot = ("^", "|", "-") if ascii_only else ("▲", "●", "·")
        end = format_amount(self.body["curve"][-1][0], unit)
        return (
            f"{said_mark} said  {now_mark} now, after {format_amount(self.body['now'], unit)} "
            f" {dot} drawn to {end}"
        )


def sample_weights(weights: Sequence[float], width: int) -> list[float]:
    """Sample this many weights evenly, including the first and the last."""
    step = (len(weights) - 1) / max(width - 1, 1)
    return [weights[round(step * number)] for number in range(width)]


def draw_curve(weights: Sequence[float], threshold: float, blocks: str, dots: str) -> Iterator[str]:
    """Yield the lines of the chart from 1 down to 0, with a dotted threshold."""
    for row in reversed(range(CHART_HEIGHT)):
        low = row / CHART_HEIGHT
        on_threshold = round(threshold * CHART_HEIGHT) == row and threshold > 0
        if row + 1 in (CHART_HEIGHT, CHART_HEIGHT // 2):
            label = f"{(row + 1) / CHART_HEIGHT:.1f}"
        else:
            label = f"{threshold:.2f}" if on_threshold else ""
        cells = (
            blocks[round(max(0.0, min((weight - low) * CHART_HEIGHT, 1.0)) * (len(blocks) - 1))]
            for weight in weights
        )
        row_text = "".join(dots if on_threshold and cell == " " else cell for cell in cells)
        yield f"{label:>{CHART_LABEL_WIDTH - 1}} {'|' if dots == '-' else '│'}{row_text}".rstrip()


def render_remembered(body: Mapping[str, Any]) -> RenderableType:
    """Render the memories grouped by kind."""
    if not body["results"]:
        return dim_text("Nothing is remembered.")
    parts: list[RenderableType] = []
    for kind, rows in groupby(body["results"], key=lambda row: row["kind"]):
        parts += [safe_text(kind, "bold"), Padding(_render_kind(list(rows)), (0, 0, 1, 2))]
    return Group(*parts)


def _render_kind(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(
            render_bar(row["salience"]), f"{row['salience']:.2f}", _render_remembered_row(row)
        )
    return table


def _render_remembered_row(row: Mapping[str, Any]) -> Text:
    times = f" ({row['said']} times)" if row["said"] > 1 else ""
    source = [f"source {row['source']}"] if "source" in row else []
    parts = [f"said {row['said_at'][:10]}{times}", describe_fading(row), *source]
    quoted = row["words"]
    quote = (
        [dim_text("“") + safe_text(make_snippet(quoted, MAX_QUOTE_CHARS), "dim") + dim_text("”")]
        if quoted and quoted != row["memory"]
        else []
    )
    return Text("\n").join(
        [
            safe_text(row["memory"]),
            *quote,
            safe_text(" · ".join(parts), "dim"),
            safe_text(row["id"], "dim"),
        ]
    )


def render_forgotten(body: Mapping[str, Any]) -> RenderableType:
    """Render the forgotten memories with their last salience."""
    if not body["results"]:
        return dim_text("Nothing has faded.")
    table = build_table("weighed", "kind", "memory")
    for row in body["results"]:
        cells = safe_text(row["kind"], "dim"), text_with_id(row["memory"], row["id"])
        table.add_row(Text(f"{row['salience']:.2f}", style="cyan"), *cells)
    return table


MAX_TAIL_ROWS = 5


def render_tier_lines(body: Mapping[str, Any]) -> RenderableType:
    """Render the counts, one tier per line."""
    return views.render_pairs(_tier_figures(body))


def _tier_figures(body: Mapping[str, Any]) -> dict[str, str]:
    index, registry_figures = body["index"], body["registry"]
    newest_note = (
        f", the newest of {registry_figures['newest'][:10]}" if registry_figures["newest"] else ""
    )
    return {
        "tail": f"{len(body['tail'])} turns",
        "index": f"{index['count']} turns, {index['cold']} cold",
        "hot buffer": f"{len(body['hot'])} memories",
        "registry": f"{registry_figures['exchanges']} exchanges{newest_note}",
        "topics": str(body["topics"]["count"]),
    }


def render_tier_panel(body: Mapping[str, Any]) -> RenderableType:
    """Render the counts and the newest turns with their importance."""
    parts: list[RenderableType] = [views.render_pairs(_tier_figures(body))]
    if body["tail"]:
        grid = views.build_table("worth", "who", "said last")
        for row in body["tail"][-MAX_TAIL_ROWS:]:
            grid.add_row(
                views.render_bar(row["importance"]),
                views.safe_text(row["role"], "dim"),
                views.safe_text(row["memory"]),
            )
        parts += [Text(), grid]
    return Panel(Group(*parts), title="tiers", title_align="left", box=box.ROUNDED, expand=False)
