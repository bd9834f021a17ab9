"""What people see of fading: a curve, what is remembered and for how long, and what was let go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from told.core.text import snippet
from told.faces.cli.views import bar, grid, named, quiet, safe

HEIGHT: Final = 10
"""Lines of a curve."""
LABEL: Final = 6
BLOCKS, ROUGH = " ▁▂▃▄▅▆▇█", " ..::##"
"""How full a cell is, for terminals that know blocks and for those that do not."""
SHOWN: Final = 160
"""Characters of what was said that people are shown; --json has them all."""


def decay(body: Mapping[str, Any]) -> RenderableType:
    """A memory, how strong it is, and its curve."""
    parts = [body["kind"], body["tier"], f"by {body['clock']}", f"weighs {body['salience']:.2f}", lasts(body)]
    about = safe(" · ".join(part for part in parts if part), "dim")
    return Group(safe(body["memory"], "bold"), about, Text(), Chart(body))


def lasts(row: Mapping[str, Any]) -> str:
    """For how long a memory lasts, in words."""
    if row["faded"]:
        return "has faded"
    fades = row["fades_at"]
    if fades is None:
        return "never fades"
    day = f", about {fades['time'][:10]}" if fades["time"] and fades["left"] > 1 else ""
    return f"fades in {amount(fades['left'], fades['unit'])}{day}"


def amount(number: float, unit: str) -> str:
    """So many turns or days, as people say it."""
    shown = f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return f"{shown} {unit[:-1] if shown == '1' else unit}"


class Chart:
    """A curve in characters, as wide as it has points or as there is room: below the dotted line it has faded."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The curve for this much room and these characters."""
        plain = options.ascii_only
        width = max(min(options.max_width - LABEL - 1, len(self.body["curve"])), 2)
        weights = sampled([weight for _, weight in self.body["curve"]], width)
        for line in lines(weights, self.body["threshold"], ROUGH if plain else BLOCKS, "-" if plain else "┄"):
            yield Text(line)
        yield Text(" " * LABEL + ("+" + "-" * width if plain else "└" + "─" * width))
        yield Text(" " * (LABEL + 1) + self._marks(width, plain))
        yield quiet(" " * (LABEL + 1) + self._legend(plain))

    def _marks(self, width: int, plain: bool) -> str:
        """Where along the axis it was said, and where now is."""
        end = self.body["curve"][-1][0] or 1.0
        said, now = ("^", "|") if plain else ("▲", "●")
        marks = [" "] * width
        for reading, mark in [*((each, said) for each in self.body["said"]), (self.body["now"], now)]:
            marks[max(0, min(round(reading / end * (width - 1)), width - 1))] = mark
        return "".join(marks).rstrip()

    def _legend(self, plain: bool) -> str:
        unit = "days" if self.body["clock"] == "time" else "turns"
        said, now, dot = ("^", "|", "-") if plain else ("▲", "●", "·")
        end = amount(self.body["curve"][-1][0], unit)
        return f"{said} said  {now} now, after {amount(self.body['now'], unit)}  {dot} drawn to {end}"


def sampled(weights: Sequence[float], width: int) -> list[float]:
    """So many of the weights, evenly, with the first and the last."""
    step = (len(weights) - 1) / max(width - 1, 1)
    return [weights[round(step * number)] for number in range(width)]


def lines(weights: Sequence[float], threshold: float, blocks: str, dots: str) -> Iterator[str]:
    """The curve line by line from 1 down to 0, with the threshold as a line of dots where nothing stands."""
    for row in reversed(range(HEIGHT)):
        low, here = row / HEIGHT, round(threshold * HEIGHT) == row and threshold > 0
        label = f"{(row + 1) / HEIGHT:.1f}" if row + 1 in (HEIGHT, HEIGHT // 2) else f"{threshold:.2f}" if here else ""
        cells = (blocks[round(max(0.0, min((weight - low) * HEIGHT, 1.0)) * (len(blocks) - 1))] for weight in weights)
        drawn = "".join(dots if here and cell == " " else cell for cell in cells)
        yield f"{label:>{LABEL - 1}} {'|' if dots == '-' else '│'}{drawn}".rstrip()


def remembered(body: Mapping[str, Any]) -> RenderableType:
    """What is remembered, those of a kind together."""
    if not body["results"]:
        return quiet("Nothing is remembered.")
    parts: list[RenderableType] = []
    for kind, rows in groupby(body["results"], key=lambda row: row["kind"]):
        parts += [safe(kind, "bold"), Padding(_kind(list(rows)), (0, 0, 1, 2))]
    return Group(*parts)


def _kind(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(bar(row["salience"]), f"{row['salience']:.2f}", _memory(row))
    return table


def _memory(row: Mapping[str, Any]) -> Text:
    times = f" ({row['said']} times)" if row["said"] > 1 else ""
    source = [f"source {row['source']}"] if "source" in row else []
    parts, said = [f"said {row['said_at'][:10]}{times}", lasts(row), *source], row["words"]
    quote = [quiet("“") + safe(snippet(said, SHOWN), "dim") + quiet("”")] if said and said != row["memory"] else []
    return Text("\n").join([safe(row["memory"]), *quote, safe(" · ".join(parts), "dim"), safe(row["id"], "dim")])


def forgotten(body: Mapping[str, Any]) -> RenderableType:
    """What was let go, and what it weighed last."""
    if not body["results"]:
        return quiet("Nothing has faded.")
    table = grid("weighed", "kind", "memory")
    for row in body["results"]:
        cells = safe(row["kind"], "dim"), named(row["memory"], row["id"])
        table.add_row(Text(f"{row['salience']:.2f}", style="cyan"), *cells)
    return table
