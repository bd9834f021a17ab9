"""What people see of a search's reasons: what was understood, the stages, the sum behind each score, the fates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from told.core.text import make_snippet
from told.faces.cli.views import (
    WIDE_COLUMNS,
    build_table,
    dim_text,
    render_bar,
    render_pairs,
    safe_text,
)

MAX_KEPT_ROWS = 10
MAX_DROPPED_ROWS = 5
"""How many of those kept, and of those left out, people are shown; --json has them all."""

SNIPPET_CHARS = 200
SCORE_BAR_CELLS = 24
"""Cells of the longest bar."""

NON_ADDITIVE_PARTS = frozenset({"cosine", "cosine_rank", "bm25", "bm25_rank", "raw"})
"""What stands beside the parts of a score and is none of them."""

PART_STYLES = {"dense": ("█", "blue"), "cover": ("▓", "magenta"), "talk": ("▒", "cyan")}
OTHER_PART_STYLE = ("░", "green")
NEGATIVE_STYLE = "red"
MIN_SHOWN_PART = 0.05
"""Less than this would be printed as nothing."""

INTENT_LABELS = {
    "historical_decisions": "what was decided", "open_items": "what is still open",
    "reusable_skills": "how to do something", "entity_relations": "who or what belongs together",
    "background_supplement": "background",
}  # fmt: skip
FLAG_LABELS = {
    "when": "when something was",
    "reply": "what the assistant said",
    "past": "how things were",
}


def render_explanation(body: Mapping[str, Any]) -> RenderableType:
    """A search from the query to the last candidate it dropped."""
    kept = [row for row in body["candidates"] if row["kept"]]
    dropped = [row for row in body["candidates"] if not row["kept"]]
    blocks: list[RenderableType] = [
        render_query_intent(body),
        Text(),
        render_stages(body["steps"]),
        Text(),
    ]
    blocks.append(
        KeptTable(kept) if kept else dim_text("No candidates." if not dropped else "None was kept.")
    )
    if len(kept) > MAX_KEPT_ROWS:
        blocks.append(dim_text(f"… and {len(kept) - MAX_KEPT_ROWS} more; --json has them all"))
    if dropped:
        blocks += [Text(), render_dropped(dropped)]
    return Group(*blocks)


# The query and the stages


def render_query_intent(body: Mapping[str, Any]) -> Text:
    """What was read out of the query, and how sure the answer is."""
    intent = body["asked"]
    rows = {
        "looks for": INTENT_LABELS.get(intent["intent"], intent["intent"])
        + ("" if intent["sort"] == "memory" else f", as a {intent['sort']}"),
        "language": intent["language"],
        "names": ", ".join(intent["names"]),
        "times": ", ".join(map(_format_span, intent["times"])),
        "asks": " and ".join(FLAG_LABELS.get(name, name) for name in intent["asks"]),
    }
    confidence = Text.assemble(
        render_bar(body["confidence"], "green"), f" {body['confidence']:.2f}"
    )
    lines = {
        **{name: safe_text(value) for name, value in rows.items() if value},
        "confidence": confidence,
    }
    return Text("\n").join(
        Text.assemble((name.ljust(12), "dim"), value) for name, value in lines.items()
    )


def _format_span(span: Mapping[str, str | None]) -> str:
    """An interval by its days; by the clock where it is shorter than one."""
    start, end = span["from"], span["to"]
    if start and end and start[:10] == end[:10]:
        return f"{start[:16].replace('T', ' ')} to {end[11:16]}"
    sides = [f"from {start[:10]}"] if start else []
    return " ".join([*sides, *([f"until {end[:10]}"] if end else [])])


def render_stages(steps: Sequence[Mapping[str, Any]]) -> Table:
    """How many went on from each stage, and what it took."""
    table = build_table("stage", "kept", "left out", "ms", "")
    for column in table.columns[1:4]:
        column.justify, column.no_wrap = "right", True
    for step in steps:
        dropped = str(step["dropped"]) if step["dropped"] else "·"
        note = safe_text(step["note"], "dim")
        table.add_row(
            step["stage"], str(step["kept"]), dropped, f"{step['micros'] / 1000:.2f}", note
        )
    total = sum(step["micros"] for step in steps) / 1000
    table.add_row(dim_text("all"), "", "", Text(f"{total:.2f}", style="dim"), "")
    return table


# Candidates


class KeptTable:
    """The candidates that were kept, each with a bar of what its score is the sum of, as the width allows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows[:MAX_KEPT_ROWS]
        self.max_total = (
            max(
                (sum(value for value in score_parts(row).values() if value > 0) for row in rows),
                default=0.0,
            )
            or 1.0
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table for this much room."""
        wide = options.max_width >= WIDE_COLUMNS
        table = build_table(
            "", "score", "memory", *(["the sum behind it", "found by"] if wide else [])
        )
        table.columns[0].no_wrap = table.columns[1].no_wrap = True
        for rank, row in enumerate(self.rows, 1):
            table.add_row(dim_text(str(rank)), render_score(row), *self._build_cells(row, wide))
        yield table

    def _build_cells(self, row: Mapping[str, Any], wide: bool) -> list[Text]:
        text, source_text = (
            safe_text(make_snippet(row["memory"], SNIPPET_CHARS)),
            render_sources(row),
        )
        score_bar = render_score_bar(row, self.max_total)
        if wide:
            return [
                Text("\n").join([text, safe_text(row["id"], "dim")]),
                Text("\n").join([score_bar, render_score_sum(row)]),
                source_text,
            ]
        return [
            Text("\n").join(
                [
                    text,
                    score_bar + Text("  ") + source_text,
                    render_score_sum(row),
                    safe_text(row["id"], "dim"),
                ]
            )
        ]


def score_parts(row: Mapping[str, Any]) -> dict[str, float]:
    """What a candidate's score is the sum of, without what adds nothing."""
    return {
        name: value
        for name, value in row["parts"].items()
        if name not in NON_ADDITIVE_PARTS and value
    }


def render_score(row: Mapping[str, Any]) -> Text:
    """A score as a number."""
    return Text(f"{row['score']:.3f}", style="cyan")


def render_score_bar(row: Mapping[str, Any], max_total: float) -> Text:
    """One bar of all that speaks for a candidate, each part in an ink of its own."""
    score_bar = Text()
    for name, value in score_parts(row).items():
        if value > 0:
            glyph, style = PART_STYLES.get(name, OTHER_PART_STYLE)
            score_bar.append(
                glyph * max(round(SCORE_BAR_CELLS * value / max_total), 1), style=style
            )
    return score_bar


def render_score_sum(row: Mapping[str, Any]) -> Text:
    """The parts of a score as a sum."""
    return Text(" ").join(
        [*_iter_part_texts(row), dim_text(f"= {row['parts'].get('raw') or 0.0:.1f}")]
    )


def _iter_part_texts(row: Mapping[str, Any]) -> Iterator[Text]:
    for name, value in score_parts(row).items():
        if abs(value) < MIN_SHOWN_PART:
            continue
        glyph, style = (
            PART_STYLES.get(name, OTHER_PART_STYLE) if value > 0 else ("", NEGATIVE_STYLE)
        )
        yield Text.assemble((f"{glyph}{name}", style), f"\N{NO-BREAK SPACE}{value:+.1f}")


def render_sources(row: Mapping[str, Any]) -> Text:
    """The ways a candidate came, and the level of text that was found where that is not the whole."""
    labels = [*row["sources"], *([row["level"]] if row["level"] != "content" else [])]
    return safe_text(" · ".join(labels), "dim")


def render_dropped(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Candidates that were left out, and where and why."""
    hidden_count = len(rows) - MAX_DROPPED_ROWS
    return Group(
        DroppedTable(rows),
        *(
            [dim_text(f"… and {hidden_count} more; --json has them all")]
            if hidden_count > 0
            else []
        ),
    )


class DroppedTable:
    """Where and why each of the first that were left out was, as the width allows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows[:MAX_DROPPED_ROWS]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table for this much room."""
        wide = options.max_width >= WIDE_COLUMNS
        table = build_table("score", "left out", *(["memory"] if wide else []))
        table.columns[0].no_wrap = True
        for row in self.rows:
            table.add_row(render_score(row), *self._build_cells(row, wide))
        yield table

    def _build_cells(self, row: Mapping[str, Any], wide: bool) -> list[Text]:
        fate = Text.assemble(
            (row["stage"], "red"), "\n" if wide else " · ", safe_text(row["reason"], "dim")
        )
        memory = [
            safe_text(make_snippet(row["memory"], SNIPPET_CHARS), "dim"),
            render_score_sum(row),
        ]
        return (
            [fate, Text("\n").join(memory)]
            if wide
            else [Text("\n").join([memory[0], fate, memory[1]])]
        )


# One that is missing

REASON_SENTENCES = {
    "after the limit": "it ranks number {place}, after the limit",
    "below the least score": "its score of {score:.3f} is below the least that was asked for",
    "says the same as one before it": "it says the same as a hit before it, which stands for both",
    "it has expired; show_expired=True shows it": "it has expired; --show-expired shows it",
}


def render_why_not(
    body: Mapping[str, Any], explanation: Mapping[str, Any] | None
) -> RenderableType:
    """One sentence, and where it got as far as a score, its parts beside those of the last hit that was kept."""
    if "parts" not in body:
        return render_reason(body)
    kept = [row for row in (explanation or {"candidates": []})["candidates"] if row["kept"]]
    return Group(
        render_reason(body), Text(), render_score_comparison(body, kept[-1] if kept else None)
    )


def render_reason(body: Mapping[str, Any]) -> Text:
    """What became of the memory."""
    if body["found"]:
        return Text.assemble(("✓ ", "green"), f"It is among the hits: number {body['place']}.")
    template = REASON_SENTENCES.get(body["reason"])
    reason = template.format_map(body) if template else body["reason"]
    return Text.assemble(
        ("✗ ", "red"),
        safe_text(f"Not among the hits: {reason}."),
        (f" (decided by {body['stage']})", "dim"),
    )


def render_score_comparison(
    body: Mapping[str, Any], last: Mapping[str, Any] | None
) -> RenderableType:
    """The parts of two scores side by side."""
    table = build_table("", "this memory", *(["last hit kept", "difference"] if last else []))
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    own_parts, last_parts = score_parts(body), score_parts(last) if last else {}
    for name in dict.fromkeys([*own_parts, *last_parts]):
        table.add_row(
            name, *_comparison_cells(own_parts.get(name, 0.0), last_parts.get(name, 0.0), last)
        )
    table.add_row(
        Text("sum", style="bold"),
        *_comparison_cells(body["parts"]["raw"], last["parts"]["raw"] if last else 0.0, last),
    )
    table.add_row(
        Text("score", style="cyan"),
        *_comparison_cells(body["score"], last["score"] if last else 0.0, last, 3),
    )
    details = {"found by": " · ".join(body["sources"])}
    if last:
        details["last hit"] = make_snippet(last["memory"], SNIPPET_CHARS)
    return Group(table, Text(), render_pairs(details))


def _comparison_cells(
    own_value: float, last_value: float, last: Mapping[str, Any] | None, digits: int = 2
) -> list[Text]:
    cells = [Text(f"{own_value:.{digits}f}")]
    if last:
        difference = own_value - last_value
        style = "green" if difference > 0 else "red" if difference < 0 else "dim"
        cells += [Text(f"{last_value:.{digits}f}"), Text(f"{difference:+.{digits}f}", style=style)]
    return cells
