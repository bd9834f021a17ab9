"""Render SDK results with rich.

Memories are untrusted text: they are shown as plain text, never as markup, without terminal control
codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from told.runtime import lazy_regex
from told.text.tokens import make_snippet

CONTROL_CHARACTERS = lazy_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, colour the screen or reorder the line."""

WIDE_COLUMNS = 110
"""Width from which ids get their own column."""

UNLIMITED_COLUMNS = 10_000
"""A width that fits any name."""

COLUMN_GAP = 2
BAR_CELLS = 12
EVENT_STYLES = {"ADD": "green", "UPDATE": "yellow", "DELETE": "red", "ERASE": "red", "NONE": "dim"}


def safe_text(value: Any, style: str = "") -> Text:
    """Return a value as text without control codes or markup."""
    return Text(CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", str(value)), style=style)


def format_day(row: Mapping[str, Any]) -> str:
    """Return the day a memory was said, else written."""
    return str(row.get("said_at") or row["updated_at"])[:10]


def format_minute(moment: str) -> str:
    """Format a time to the minute."""
    return moment[:16].replace("T", " ")


def text_with_id(text: Any, id: Any) -> Text:
    """Return a text with its full id on the line below."""
    return Text("\n").join([safe_text(text), safe_text(id, "dim")])


def pluralize(count: int, singular: str, plural: str) -> str:
    """Format a count with its noun."""
    return f"{count} {singular if count == 1 else plural}"


def render_bar(share: float | None, style: str = "cyan") -> Text:
    """Render a share from 0 to 1 as a small bar."""
    if share is None:
        return Text("·" * BAR_CELLS, style="dim")
    filled = round(max(0.0, min(1.0, share)) * BAR_CELLS)
    return Text.assemble(("━" * filled, style), ("─" * (BAR_CELLS - filled), "dim"))


def build_table(*headers: str) -> Table:
    """Create a borderless table."""
    table = Table(
        *headers, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold dim", show_edge=False
    )
    for column in table.columns:
        column.overflow = "fold"
    return table


def dim_text(text: str) -> Text:
    """Return a dimmed note."""
    return Text(text, style="dim")


def render_mark(good: bool) -> Text:
    """Return a tick or a dot."""
    return Text("✓", style="green") if good else Text("·", style="dim")


# Memories


class MemoryTable:
    """A table of memories: score, day, text and id, as the width allows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.has_scores = any(row.get("score") is not None for row in rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table at the available width."""
        wide = options.max_width >= WIDE_COLUMNS
        table = build_table(
            *(["score"] if self.has_scores else []), "when", "memory", *(["id"] if wide else [])
        )
        for column in table.columns:
            column.no_wrap = column.header != "memory"
        for row in self.rows:
            table.add_row(*self._build_cells(row, wide))
        yield table

    def _build_cells(self, row: Mapping[str, Any], wide: bool) -> list[Text]:
        score = [Text(f"{row['score']:.3f}", style="cyan")] if self.has_scores else []
        name, text = safe_text(row["id"], "dim"), safe_text(row["memory"])
        if "superseded_by" in row:
            text.append(" (changed since)", "dim")
        if not wide:
            text = Text("\n").join([text, name])
        return [*score, safe_text(format_day(row), "green"), text, *([name] if wide else [])]


def render_memories(body: Mapping[str, Any]) -> RenderableType:
    """Render the memories of a search or a list."""
    rows = body["results"]
    return MemoryTable(rows) if rows else dim_text("Nothing found.")


def render_search_results(body: Mapping[str, Any]) -> RenderableType:
    """Render search hits and the confidence of the result."""
    duplicate_count = sum(len(row.get("also", ())) for row in body["results"])
    duplicate_note = (
        f" · {duplicate_count} more {'says' if duplicate_count == 1 else 'say'} the same as one "
        "of these"
        if duplicate_count
        else ""
    )
    confidence = dim_text(f"confidence {body['confidence']:.2f}{duplicate_note}")
    return (
        Group(render_memories(body), Text(), confidence)
        if body["results"]
        else render_memories(body)
    )


def render_memory(row: Mapping[str, Any]) -> RenderableType:
    """Render one memory with all its fields."""
    names = [
        name
        for name, value in row.items()
        if name not in ("memory", "score") and value not in (None, {})
    ]
    details = render_pairs({name: row[name] for name in names})
    return Group(safe_text(row["memory"], "bold"), Text(), details)


def render_pairs(values: Mapping[str, Any]) -> Text:
    """Render name-value pairs, one per line; never cut a path."""
    width = max(map(len, values), default=0) + 2
    lines = [
        Text.assemble((name.replace("_", " ").ljust(width), "dim"), safe_text(value))
        for name, value in values.items()
    ]
    return Text("\n").join(lines)


def render_sheet(values: Mapping[str, Any]) -> Table:
    """Render name-value pairs whose values may wrap."""
    table = Table.grid(
        Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0), pad_edge=False
    )
    for name, value in values.items():
        table.add_row(Text(name.replace("_", " "), style="dim"), safe_text(value))
    return table


# Writes and history


class EventTable:
    """A table of write events; ids move below the text on narrow terminals."""

    def __init__(self, rows: Sequence[tuple[Text, Text, Text]]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the rows at the available width."""
        columns = zip(*self.rows, strict=True)
        fits = (
            sum(max(cell.cell_len for cell in column) for column in columns) + 2 * COLUMN_GAP
            <= options.max_width
        )
        table = Table.grid("", "", Column(no_wrap=True), padding=(0, COLUMN_GAP))
        for event, text, name in self.rows:
            lines = [text, name] if name else [text]
            table.add_row(*((event, text, name) if fits else (event, Text("\n").join(lines))))
        yield table


def render_receipt(body: Mapping[str, Any]) -> RenderableType:
    """Render the result of a write."""
    rows = [*map(_event_row, body.get("results", ())), *map(_skipped_row, body.get("skipped", ()))]
    if body.get("extraction") == "pending":
        rows.append(
            (
                dim_text("LATER"),
                dim_text("extraction is pending; see `told wait`"),
                Text(),
            )
        )
    return EventTable(rows) if rows else dim_text("Nothing to do.")


def _event_row(row: Mapping[str, Any]) -> tuple[Text, Text, Text]:
    """Return the row of a write event."""
    text = safe_text(row["memory"]) if row["memory"] is not None else dim_text("(erased)")
    return _render_event(row["event"]), text, safe_text(row["id"], "dim")


def _skipped_row(row: Mapping[str, Any]) -> tuple[Text, Text, Text]:
    """Return the row of a skipped message or fact, with the reason."""
    what = row["fact"] if "fact" in row else f"message {row['index']}"
    return (
        dim_text("SKIP"),
        safe_text(f"{what}: {row['reason']}", "dim"),
        safe_text(row.get("id", ""), "dim"),
    )


def _render_event(name: str) -> Text:
    return Text(name, style=EVENT_STYLES.get(name, ""))


def render_changes(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Render changes in order."""
    if not rows:
        return dim_text("Nothing happened yet.")
    table = build_table("when", "event", "memory")
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for row in rows:
        table.add_row(
            safe_text(format_minute(row["timestamp"]), "green"),
            _render_event(row["event"]),
            _render_change(row),
        )
    return table


def _render_change(row: Mapping[str, Any]) -> Text:
    old, new = row["old_value"], row["new_value"]
    before = [safe_text(old, "strike dim")] if old is not None and old != new else []
    after = [_render_replacement(new) if before else safe_text(new)] if new is not None else []
    why = [dim_text(f"({CONTROL_CHARACTERS.sub('', row['why'])})")] if row.get("why") else []
    return Text("\n").join([*before, *after, *why])


def _render_replacement(new: Any, style: str = "") -> Text:
    """Render the new value below the struck-out line; use an arrow if needed."""
    return Text.assemble(("-> ", "dim"), safe_text(new, style))


def render_contradictions(body: Mapping[str, Any]) -> RenderableType:
    """Render conflicting memories, newest first."""
    if not body["results"]:
        return dim_text("No contradictions.")
    table = build_table("about", "one says", "the other says")
    for row in body["results"]:
        later, earlier = row["memories"]
        table.add_row(
            safe_text(row["slot"]), safe_text(later["memory"]), safe_text(earlier["memory"])
        )
    return table


def render_timeline(body: Mapping[str, Any]) -> RenderableType:
    """Render a scope's timeline."""
    return render_changes(body["results"])


def render_diff(body: Mapping[str, Any]) -> RenderableType:
    """Render the changes between two points in time."""
    table = Table.grid(padding=(0, 1))
    for row in body["removed"]:
        table.add_row(Text("-", style="red"), safe_text(row["memory"], "red"))
    for row in body["changed"]:
        table.add_row(
            Text("~", style="yellow"),
            Text("\n").join(
                [
                    safe_text(row["old_memory"], "dim strike"),
                    _render_replacement(row["new_memory"], "yellow"),
                ]
            ),
        )
    for row in body["added"]:
        table.add_row(Text("+", style="green"), safe_text(row["memory"], "green"))
    return table if table.row_count else dim_text("Nothing changed.")


# Maintenance


def render_certificate(body: Mapping[str, Any]) -> RenderableType:
    """Render an erasure certificate."""
    tombstone = body["tombstone"]
    destroyed = " · ".join(f"{name} {count}" for name, count in body["destroyed"].items() if count)
    rows = {
        "memories": len(body["memories"]),
        "evidence": body["evidence"],
        "ledger entries": body["entries"],
        "destroyed": destroyed or "nothing else",
        "tombstone": f"#{tombstone['seq']} at {tombstone['at'][:19]}Z",
    }
    proof = Group(
        render_sheet(rows), safe_text(tombstone["hash"], "dim")
    )  # on its own line, which fits 80 columns
    return Panel(
        proof, title="Certificate of erasure", title_align="left", border_style="red", expand=False
    )


def render_verify_result(body: Mapping[str, Any]) -> RenderableType:
    """Render the result of a verification."""
    mark = (
        Text("✓ sound", style="bold green") if body["ok"] else Text("✗ not sound", style="bold red")
    )
    rows = {name: value for name, value in body.items() if name not in ("ok", "index_problems")}
    problems = [safe_text(f"index: {problem}", "red") for problem in body["index_problems"]]
    return Group(mark, render_pairs(rows), *problems)


def render_stats(body: Mapping[str, Any]) -> RenderableType:
    """Render the store's counts and its embedding model."""
    model = body["model"]
    return render_pairs(
        {
            **body,
            "model": "none" if model is None else f"{model['name']}, {model['dim']} dimensions",
        }
    )


class UserTable:
    """A table of users, agents and runs; details move below the name on narrow terminals."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the rows at the available width."""
        table = self._build_table()
        unbroken = console.measure(
            table, options=options.update(max_width=UNLIMITED_COLUMNS)
        ).maximum
        yield (
            table
            if unbroken <= options.max_width
            else Text("\n").join(map(self._build_lines, self.rows))
        )

    def _build_table(self) -> Table:
        table = build_table("who", "name", "memories", "first", "last")
        table.columns[2].justify = "right"
        for row in self.rows:
            first, last = row["created_at"][:10], format_minute(row["updated_at"])
            table.add_row(
                safe_text(row["type"], "dim"),
                safe_text(row["name"]),
                str(row["total_memories"]),
                safe_text(first, "green"),
                safe_text(last, "green"),
            )
        return table

    def _build_lines(self, row: Mapping[str, Any]) -> Text:
        count = pluralize(row["total_memories"], "memory", "memories")
        first, last = row["created_at"][:10], format_minute(row["updated_at"])
        return Text("\n").join(
            [
                safe_text(row["name"]),
                safe_text(f"  {row['type']}, {count}, {first} to {last}", "dim"),
            ]
        )


def render_users(body: Mapping[str, Any]) -> RenderableType:
    """Render users, agents and runs."""
    return UserTable(body["results"]) if body["results"] else dim_text("No users, agents or runs.")


def build_count_view(singular: str, plural: str) -> Any:
    """Return a view that prints a count."""

    def render_count(body: Mapping[str, Any]) -> Text:
        count = body["entries"]
        place = f" → {body['path']}" if "path" in body else ""
        return safe_text(f"{pluralize(count, singular, plural)}{place}")

    return render_count


def render_checks(body: Mapping[str, Any]) -> RenderableType:
    """Render the doctor's checks."""
    marks = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red")}
    table = Table.grid(padding=(0, 2))
    for row in body["checks"]:
        fix = [safe_text(f"→ {row['fix']}", "cyan")] if row["fix"] else []
        table.add_row(
            Text(*marks[row["state"]]),
            Text(row["name"]),
            Text("\n").join([safe_text(row["what"], "dim"), *fix]),
        )
    counts = [f"{sum(row['state'] == state for row in body['checks'])} {state}" for state in marks]
    return Group(table, Text(), Text(" · ".join(counts), style="green" if body["ok"] else "red"))


MAX_KEPT_ROWS = 10
MAX_DROPPED_ROWS = 5
"""Kept and dropped rows shown; --json shows all."""

SNIPPET_CHARS = 200
SCORE_BAR_CELLS = 24
"""Cells of the longest bar."""

NON_ADDITIVE_PARTS = frozenset({"cosine", "cosine_rank", "bm25", "bm25_rank", "raw"})
"""Score fields that are not summands."""

PART_STYLES = {"dense": ("█", "blue"), "cover": ("▓", "magenta"), "talk": ("▒", "cyan")}
OTHER_PART_STYLE = ("░", "green")
NEGATIVE_STYLE = "red"
MIN_SHOWN_PART = 0.05
"""Parts below this would print as 0."""

INTENT_LABELS = {
    "historical_decisions": "what was decided",
    "open_items": "what is still open",
    "reusable_skills": "how to do something",
    "entity_relations": "who or what belongs together",
    "background_supplement": "background",
}
FLAG_LABELS = {
    "when": "when something was",
    "reply": "what the assistant said",
    "past": "how things were",
}


def render_explanation(body: Mapping[str, Any]) -> RenderableType:
    """Render a search trace from the query to the last dropped candidate."""
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
        blocks.append(dim_text(f"… and {len(kept) - MAX_KEPT_ROWS} more; --json shows all"))
    if dropped:
        blocks += [Text(), render_dropped(dropped)]
    return Group(*blocks)


# Query and stages


def render_query_intent(body: Mapping[str, Any]) -> Text:
    """Render the query intent and the confidence."""
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
    """Format an interval by days, or by time if it is shorter than a day."""
    start, end = span["from"], span["to"]
    if start and end and start[:10] == end[:10]:
        return f"{start[:16].replace('T', ' ')} to {end[11:16]}"
    sides = [f"from {start[:10]}"] if start else []
    return " ".join([*sides, *([f"until {end[:10]}"] if end else [])])


def render_stages(steps: Sequence[Mapping[str, Any]]) -> Table:
    """Render the candidate counts and time of each stage."""
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
    """A table of kept candidates with score bars, as the width allows."""

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
        """Render the table at the available width."""
        wide = options.max_width >= WIDE_COLUMNS
        table = build_table(
            "", "score", "memory", *(["the sum behind it", "found by"] if wide else [])
        )
        table.columns[0].no_wrap = table.columns[1].no_wrap = True
        for rank, row in enumerate(self.rows, 1):
            table.add_row(dim_text(str(rank)), render_score(row), *self._build_cells(row, wide))
        yield table

    def _build_cells(self, row: Mapping[str, Any], wide: bool) -> list[Text]:
        text = safe_text(make_snippet(row["memory"], SNIPPET_CHARS))
        source_text = render_sources(row)
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
    """Return the non-zero parts of a candidate's score."""
    return {
        name: value
        for name, value in row["parts"].items()
        if name not in NON_ADDITIVE_PARTS and value
    }


def render_score(row: Mapping[str, Any]) -> Text:
    """Render a score as a number."""
    return Text(f"{row['score']:.3f}", style="cyan")


def render_score_bar(row: Mapping[str, Any], max_total: float) -> Text:
    """Render a score as one bar with a colour per part."""
    score_bar = Text()
    for name, value in score_parts(row).items():
        if value > 0:
            glyph, style = PART_STYLES.get(name, OTHER_PART_STYLE)
            score_bar.append(
                glyph * max(round(SCORE_BAR_CELLS * value / max_total), 1), style=style
            )
    return score_bar


def render_score_sum(row: Mapping[str, Any]) -> Text:
    """Render a score as a sum of its parts."""
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
    """Render a candidate's sources and the text level that matched."""
    labels = [*row["sources"], *([row["level"]] if row["level"] != "content" else [])]
    return safe_text(" · ".join(labels), "dim")


def render_dropped(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Render dropped candidates with stage and reason."""
    hidden_count = len(rows) - MAX_DROPPED_ROWS
    return Group(
        DroppedTable(rows),
        *([dim_text(f"… and {hidden_count} more; --json shows all")] if hidden_count > 0 else []),
    )


class DroppedTable:
    """A table of dropped candidates, as the width allows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows[:MAX_DROPPED_ROWS]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table at the available width."""
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


# why-not

REASON_SENTENCES = {
    "after the limit": "it ranks {place}, beyond the limit",
    "below the least score": "its score {score:.3f} is below the requested minimum",
    "says the same as one before it": "it duplicates a higher hit",
    "it has expired; show_expired=True shows it": "it has expired; --show-expired shows it",
}


def render_why_not(
    body: Mapping[str, Any], explanation: Mapping[str, Any] | None
) -> RenderableType:
    """Render why a memory is missing, with its score parts beside those of the last hit."""
    if "parts" not in body:
        return render_reason(body)
    kept = [row for row in (explanation or {"candidates": []})["candidates"] if row["kept"]]
    return Group(
        render_reason(body), Text(), render_score_comparison(body, kept[-1] if kept else None)
    )


def render_reason(body: Mapping[str, Any]) -> Text:
    """Render the stage and reason for one memory."""
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
    """Render the parts of two scores side by side."""
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
