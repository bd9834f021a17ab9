"""What people see of a search's reasons: what was understood, the stages, the sum behind each score, the fates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from told.core.text import snippet
from told.faces.cli.views import WIDE, bar, grid, pairs, quiet, safe

SHOWN = 10
DROPPED = 5
"""How many of those kept, and of those left out, people are shown; --json has them all."""

SNIPPET = 200
LENGTH = 24
"""Cells of the longest bar."""

MEASURED = frozenset({"cosine", "cosine_rank", "bm25", "bm25_rank", "raw"})
"""What stands beside the parts of a score and is none of them."""

INKS = {"dense": ("█", "blue"), "cover": ("▓", "magenta"), "talk": ("▒", "cyan")}
OTHER = ("░", "green")
LESS = "red"
TELLING = 0.05
"""Less than this would be printed as nothing."""

INTENTS = {
    "historical_decisions": "what was decided", "open_items": "what is still open",
    "reusable_skills": "how to do something", "entity_relations": "who or what belongs together",
    "background_supplement": "background",
}  # fmt: skip
FLAGS = {"when": "when something was", "reply": "what the assistant said", "past": "how things were"}


def explanation(body: Mapping[str, Any]) -> RenderableType:
    """A search from the query to the last candidate it dropped."""
    kept = [row for row in body["candidates"] if row["kept"]]
    dropped = [row for row in body["candidates"] if not row["kept"]]
    blocks: list[RenderableType] = [understood(body), Text(), stages(body["steps"]), Text()]
    blocks.append(Kept(kept) if kept else quiet("No candidates." if not dropped else "None was kept."))
    if len(kept) > SHOWN:
        blocks.append(quiet(f"… and {len(kept) - SHOWN} more; --json has them all"))
    if dropped:
        blocks += [Text(), fates(dropped)]
    return Group(*blocks)


# The query and the stages


def understood(body: Mapping[str, Any]) -> Text:
    """What was read out of the query, and how sure the answer is."""
    asked = body["asked"]
    rows = {
        "looks for": INTENTS.get(asked["intent"], asked["intent"])
        + ("" if asked["sort"] == "memory" else f", as a {asked['sort']}"),
        "language": asked["language"],
        "names": ", ".join(asked["names"]),
        "times": ", ".join(map(_span, asked["times"])),
        "asks": " and ".join(FLAGS.get(name, name) for name in asked["asks"]),
    }
    sure = Text.assemble(bar(body["confidence"], "green"), f" {body['confidence']:.2f}")
    lines = {**{name: safe(said) for name, said in rows.items() if said}, "confidence": sure}
    return Text("\n").join(Text.assemble((name.ljust(12), "dim"), said) for name, said in lines.items())


def _span(span: Mapping[str, str | None]) -> str:
    """An interval by its days; by the clock where it is shorter than one."""
    start, end = span["from"], span["to"]
    if start and end and start[:10] == end[:10]:
        return f"{start[:16].replace('T', ' ')} to {end[11:16]}"
    sides = [f"from {start[:10]}"] if start else []
    return " ".join([*sides, *([f"until {end[:10]}"] if end else [])])


def stages(steps: Sequence[Mapping[str, Any]]) -> Table:
    """How many went on from each stage, and what it took."""
    table = grid("stage", "kept", "left out", "ms", "")
    for column in table.columns[1:4]:
        column.justify, column.no_wrap = "right", True
    for step in steps:
        out = str(step["dropped"]) if step["dropped"] else "·"
        note = safe(step["note"], "dim")
        table.add_row(step["stage"], str(step["kept"]), out, f"{step['micros'] / 1000:.2f}", note)
    total = sum(step["micros"] for step in steps) / 1000
    table.add_row(quiet("all"), "", "", Text(f"{total:.2f}", style="dim"), "")
    return table


# Candidates


class Kept:
    """The candidates that were kept, each with a bar of what its score is the sum of, as the width allows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows[:SHOWN]
        self.most = max((sum(value for value in parts(row).values() if value > 0) for row in rows), default=0.0) or 1.0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table for this much room."""
        wide = options.max_width >= WIDE
        table = grid("", "score", "memory", *(["the sum behind it", "found by"] if wide else []))
        table.columns[0].no_wrap = table.columns[1].no_wrap = True
        for place, row in enumerate(self.rows, 1):
            table.add_row(quiet(str(place)), score(row), *self._cells(row, wide))
        yield table

    def _cells(self, row: Mapping[str, Any], wide: bool) -> list[Text]:
        said, way = safe(snippet(row["memory"], SNIPPET)), sources(row)
        drawn = stacked(row, self.most)
        if wide:
            return [Text("\n").join([said, safe(row["id"], "dim")]), Text("\n").join([drawn, addends(row)]), way]
        return [Text("\n").join([said, drawn + Text("  ") + way, addends(row), safe(row["id"], "dim")])]


def parts(row: Mapping[str, Any]) -> dict[str, float]:
    """What a candidate's score is the sum of, without what adds nothing."""
    return {name: value for name, value in row["parts"].items() if name not in MEASURED and value}


def score(row: Mapping[str, Any]) -> Text:
    """A score as a number."""
    return Text(f"{row['score']:.3f}", style="cyan")


def stacked(row: Mapping[str, Any], most: float) -> Text:
    """One bar of all that speaks for a candidate, each part in an ink of its own."""
    drawn = Text()
    for name, value in parts(row).items():
        if value > 0:
            glyph, style = INKS.get(name, OTHER)
            drawn.append(glyph * max(round(LENGTH * value / most), 1), style=style)
    return drawn


def addends(row: Mapping[str, Any]) -> Text:
    """The parts of a score as a sum."""
    return Text(" ").join([*_addends(row), quiet(f"= {row['parts'].get('raw') or 0.0:.1f}")])


def _addends(row: Mapping[str, Any]) -> Iterator[Text]:
    for name, value in parts(row).items():
        if abs(value) < TELLING:
            continue
        glyph, style = INKS.get(name, OTHER) if value > 0 else ("", LESS)
        yield Text.assemble((f"{glyph}{name}", style), f"\N{NO-BREAK SPACE}{value:+.1f}")


def sources(row: Mapping[str, Any]) -> Text:
    """The ways a candidate came, and the level of text that was found where that is not the whole."""
    ways = [*row["sources"], *([row["level"]] if row["level"] != "content" else [])]
    return safe(" · ".join(ways), "dim")


def fates(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Candidates that were left out, and where and why."""
    more = len(rows) - DROPPED
    return Group(Fates(rows), *([quiet(f"… and {more} more; --json has them all")] if more > 0 else []))


class Fates:
    """Where and why each of the first that were left out was, as the width allows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows[:DROPPED]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table for this much room."""
        wide = options.max_width >= WIDE
        table = grid("score", "left out", *(["memory"] if wide else []))
        table.columns[0].no_wrap = True
        for row in self.rows:
            table.add_row(score(row), *self._cells(row, wide))
        yield table

    def _cells(self, row: Mapping[str, Any], wide: bool) -> list[Text]:
        fate = Text.assemble((row["stage"], "red"), "\n" if wide else " · ", safe(row["reason"], "dim"))
        memory = [safe(snippet(row["memory"], SNIPPET), "dim"), addends(row)]
        return [fate, Text("\n").join(memory)] if wide else [Text("\n").join([memory[0], fate, memory[1]])]


# One that is missing

SENTENCES = {
    "after the limit": "it ranks number {place}, after the limit",
    "below the least score": "its score of {score:.3f} is below the least that was asked for",
    "says the same as one before it": "it says the same as a hit before it, which stands for both",
    "it has expired; show_expired=True shows it": "it has expired; --show-expired shows it",
}


def why_not(body: Mapping[str, Any], beside: Mapping[str, Any] | None) -> RenderableType:
    """One sentence, and where it got as far as a score, its parts beside those of the last hit that was kept."""
    if "parts" not in body:
        return sentence(body)
    kept = [row for row in (beside or {"candidates": []})["candidates"] if row["kept"]]
    return Group(sentence(body), Text(), compared(body, kept[-1] if kept else None))


def sentence(body: Mapping[str, Any]) -> Text:
    """What became of the memory."""
    if body["found"]:
        return Text.assemble(("✓ ", "green"), f"It is among the hits: number {body['place']}.")
    known = SENTENCES.get(body["reason"])
    why = known.format_map(body) if known else body["reason"]
    return Text.assemble(("✗ ", "red"), safe(f"Not among the hits: {why}."), (f" (decided by {body['stage']})", "dim"))


def compared(body: Mapping[str, Any], last: Mapping[str, Any] | None) -> RenderableType:
    """The parts of two scores side by side."""
    table = grid("", "this memory", *(["last hit kept", "difference"] if last else []))
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    own, other = parts(body), parts(last) if last else {}
    for name in dict.fromkeys([*own, *other]):
        table.add_row(name, *_row(own.get(name, 0.0), other.get(name, 0.0), last))
    table.add_row(Text("sum", style="bold"), *_row(body["parts"]["raw"], last["parts"]["raw"] if last else 0.0, last))
    table.add_row(Text("score", style="cyan"), *_row(body["score"], last["score"] if last else 0.0, last, 3))
    found = {"found by": " · ".join(body["sources"])}
    if last:
        found["last hit"] = snippet(last["memory"], SNIPPET)
    return Group(table, Text(), pairs(found))


def _row(own: float, other: float, last: Mapping[str, Any] | None, digits: int = 2) -> list[Text]:
    cells = [Text(f"{own:.{digits}f}")]
    if last:
        apart = own - other
        style = "green" if apart > 0 else "red" if apart < 0 else "dim"
        cells += [Text(f"{other:.{digits}f}"), Text(f"{apart:+.{digits}f}", style=style)]
    return cells
