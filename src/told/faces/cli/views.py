"""What people see: each shape the SDK returns, as something rich can print.

Memories are somebody else's words: they are shown as text, never as markup, and without terminal control codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from told.core.lazy import regex

CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What would move the cursor, colour the screen or reorder the line."""

WIDE = 110
"""From this many columns on, ids have a column of their own."""

ENDLESS = 10_000
"""Columns enough for any name."""

GAP = 2
BAR = 12
COLOURS = {"ADD": "green", "UPDATE": "yellow", "DELETE": "red", "ERASE": "red", "NONE": "dim"}


def safe(value: Any, style: str = "") -> Text:
    """A value as text that cannot steer the terminal."""
    return Text(CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value)), style=style)


def when(row: Mapping[str, Any]) -> str:
    """The day a memory was said, else written."""
    return str(row.get("said_at") or row["updated_at"])[:10]


def minute(moment: str) -> str:
    """An instant to the minute."""
    return moment[:16].replace("T", " ")


def named(text: Any, id: Any) -> Text:
    """A text with the id it goes by below it, which is never cut."""
    return Text("\n").join([safe(text), safe(id, "dim")])


def many(count: int, one: str, more: str) -> str:
    """So many of them."""
    return f"{count} {one if count == 1 else more}"


def bar(share: float | None, style: str = "cyan") -> Text:
    """A small bar for a share of one."""
    if share is None:
        return Text("·" * BAR, style="dim")
    filled = round(max(0.0, min(1.0, share)) * BAR)
    return Text.assemble(("━" * filled, style), ("─" * (BAR - filled), "dim"))


def grid(*headers: str) -> Table:
    """A quiet table."""
    table = Table(*headers, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold dim", show_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    return table


def quiet(text: str) -> Text:
    """A remark in place of a result."""
    return Text(text, style="dim")


def mark(good: bool) -> Text:
    """A tick, or a dot."""
    return Text("✓", style="green") if good else Text("·", style="dim")


# Memories


class Memories:
    """Memories in a table: score, day, text and id, as the width allows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.scored = any(row.get("score") is not None for row in rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table for this much room."""
        wide = options.max_width >= WIDE
        table = grid(*(["score"] if self.scored else []), "when", "memory", *(["id"] if wide else []))
        for column in table.columns:
            column.no_wrap = column.header != "memory"
        for row in self.rows:
            table.add_row(*self._cells(row, wide))
        yield table

    def _cells(self, row: Mapping[str, Any], wide: bool) -> list[Text]:
        score = [Text(f"{row['score']:.3f}", style="cyan")] if self.scored else []
        name, text = safe(row["id"], "dim"), safe(row["memory"])
        if "superseded_by" in row:
            text.append(" (changed since)", "dim")
        if not wide:
            text = Text("\n").join([text, name])
        return [*score, safe(when(row), "green"), text, *([name] if wide else [])]


def memories(body: Mapping[str, Any]) -> RenderableType:
    """The memories of a search or a list."""
    rows = body["results"]
    return Memories(rows) if rows else quiet("Nothing found.")


def found(body: Mapping[str, Any]) -> RenderableType:
    """The memories a search found, and how sure it is that the answer is among them."""
    same = sum(len(row.get("also", ())) for row in body["results"])
    others = f" · {same} more {'says' if same == 1 else 'say'} the same as one of these" if same else ""
    sure = quiet(f"confidence {body['confidence']:.2f}{others}")
    return Group(memories(body), Text(), sure) if body["results"] else memories(body)


def memory(row: Mapping[str, Any]) -> RenderableType:
    """One memory with everything known about it."""
    names = [name for name, value in row.items() if name not in ("memory", "score") and value not in (None, {})]
    details = pairs({name: row[name] for name in names})
    return Group(safe(row["memory"], "bold"), Text(), details)


def pairs(values: Mapping[str, Any]) -> Text:
    """Names and values, one pair a line; a path is never cut."""
    width = max(map(len, values), default=0) + 2
    lines = [Text.assemble((name.replace("_", " ").ljust(width), "dim"), safe(value)) for name, value in values.items()]
    return Text("\n").join(lines)


def sheet(values: Mapping[str, Any]) -> Table:
    """Names and values like `pairs`, for sentences: what is too long goes on below itself."""
    table = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0), pad_edge=False)
    for name, value in values.items():
        table.add_row(Text(name.replace("_", " "), style="dim"), safe(value))
    return table


# Writes and the past


class Events:
    """What became of memories: the event, the text and the id, which goes below where it would squeeze the text."""

    def __init__(self, rows: Sequence[tuple[Text, Text, Text]]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The rows for this much room."""
        columns = zip(*self.rows, strict=True)
        beside = sum(max(cell.cell_len for cell in column) for column in columns) + 2 * GAP <= options.max_width
        table = Table.grid("", "", Column(no_wrap=True), padding=(0, GAP))
        for event, text, name in self.rows:
            below = [text, name] if name else [text]
            table.add_row(*((event, text, name) if beside else (event, Text("\n").join(below))))
        yield table


def receipt(body: Mapping[str, Any]) -> RenderableType:
    """What a write did."""
    rows = [*map(_done, body.get("results", ())), *map(_skipped, body.get("skipped", ()))]
    if body.get("extraction") == "pending":
        rows.append((quiet("LATER"), quiet("a language model is still to be asked; see `told wait`"), Text()))
    return Events(rows) if rows else quiet("Nothing to do.")


def _done(row: Mapping[str, Any]) -> tuple[Text, Text, Text]:
    """What became of a memory."""
    text = safe(row["memory"]) if row["memory"] is not None else quiet("(erased)")
    return _event(row["event"]), text, safe(row["id"], "dim")


def _skipped(row: Mapping[str, Any]) -> tuple[Text, Text, Text]:
    """A message or a fact that became no memory, and why."""
    what = row["fact"] if "fact" in row else f"message {row['index']}"
    return quiet("SKIP"), safe(f"{what}: {row['reason']}", "dim"), safe(row.get("id", ""), "dim")


def _event(name: str) -> Text:
    return Text(name, style=COLOURS.get(name, ""))


def changes(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What happened to memories, in order."""
    if not rows:
        return quiet("Nothing happened yet.")
    table = grid("when", "event", "memory")
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for row in rows:
        table.add_row(safe(minute(row["timestamp"]), "green"), _event(row["event"]), _change(row))
    return table


def _change(row: Mapping[str, Any]) -> Text:
    old, new = row["old_value"], row["new_value"]
    before = [safe(old, "strike dim")] if old is not None and old != new else []
    after = [_instead(new) if before else safe(new)] if new is not None else []
    why = [quiet(f"({CONTROL.sub('', row['why'])})")] if row.get("why") else []
    return Text("\n").join([*before, *after, *why])


def _instead(new: Any, style: str = "") -> Text:
    """What took the place of the line above it; an arrow says so where nothing can be struck out."""
    return Text.assemble(("-> ", "dim"), safe(new, style))


def contradictions(body: Mapping[str, Any]) -> RenderableType:
    """Memories that say different things of the same, the later first."""
    if not body["results"]:
        return quiet("Nothing contradicts itself.")
    table = grid("about", "one says", "the other says")
    for row in body["results"]:
        later, earlier = row["memories"]
        table.add_row(safe(row["slot"]), safe(later["memory"]), safe(earlier["memory"]))
    return table


def timeline(body: Mapping[str, Any]) -> RenderableType:
    """What a scope came to believe or gave up."""
    return changes(body["results"])


def diff(body: Mapping[str, Any]) -> RenderableType:
    """What changed between two moments."""
    table = Table.grid(padding=(0, 1))
    for row in body["removed"]:
        table.add_row(Text("-", style="red"), safe(row["memory"], "red"))
    for row in body["changed"]:
        table.add_row(Text("~", style="yellow"), Text("\n").join([safe(row["old_memory"], "dim strike"),
                                                                  _instead(row["new_memory"], "yellow")]))  # fmt: skip
    for row in body["added"]:
        table.add_row(Text("+", style="green"), safe(row["memory"], "green"))
    return table if table.row_count else quiet("Nothing changed.")


# Care


def certificate(body: Mapping[str, Any]) -> RenderableType:
    """The proof of an erasure."""
    tombstone = body["tombstone"]
    destroyed = " · ".join(f"{name} {count}" for name, count in body["destroyed"].items() if count)
    rows = {
        "memories": len(body["memories"]), "evidence": body["evidence"], "ledger entries": body["entries"],
        "destroyed": destroyed or "nothing else", "tombstone": f"#{tombstone['seq']} at {tombstone['at'][:19]}Z",
    }  # fmt: skip
    proof = Group(sheet(rows), safe(tombstone["hash"], "dim"))  # on a line of its own, where 80 columns hold it whole
    return Panel(proof, title="Certificate of erasure", title_align="left", border_style="red", expand=False)


def verdict(body: Mapping[str, Any]) -> RenderableType:
    """Whether the ledger is sound."""
    mark = Text("✓ sound", style="bold green") if body["ok"] else Text("✗ not sound", style="bold red")
    rows = {name: value for name, value in body.items() if name not in ("ok", "index_problems")}
    problems = [safe(f"index: {problem}", "red") for problem in body["index_problems"]]
    return Group(mark, pairs(rows), *problems)


def counts(body: Mapping[str, Any]) -> RenderableType:
    """The counts of a store, and the model its vectors are of."""
    model = body["model"]
    return pairs({**body, "model": "none" if model is None else f"{model['name']}, {model['dim']} numbers a text"})


class Users:
    """Whose memories there are: a table, or where that would break a name to pieces, the rest below each name."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The rows for this much room."""
        table = self._table()
        unbroken = console.measure(table, options=options.update(max_width=ENDLESS)).maximum
        yield table if unbroken <= options.max_width else Text("\n").join(map(self._lines, self.rows))

    def _table(self) -> Table:
        table = grid("who", "name", "memories", "first", "last")
        table.columns[2].justify = "right"
        for row in self.rows:
            first, last = row["created_at"][:10], minute(row["updated_at"])
            table.add_row(safe(row["type"], "dim"), safe(row["name"]), str(row["total_memories"]),
                          safe(first, "green"), safe(last, "green"))  # fmt: skip
        return table

    def _lines(self, row: Mapping[str, Any]) -> Text:
        count = many(row["total_memories"], "memory", "memories")
        first, last = row["created_at"][:10], minute(row["updated_at"])
        return Text("\n").join([safe(row["name"]), safe(f"  {row['type']}, {count}, {first} to {last}", "dim")])


def users(body: Mapping[str, Any]) -> RenderableType:
    """Whose memories there are."""
    return Users(body["results"]) if body["results"] else quiet("There is nobody to show.")


def counted(noun: str, nouns: str) -> Any:
    """A view that says how many."""

    def view(body: Mapping[str, Any]) -> Text:
        count = body["entries"]
        place = f" → {body['path']}" if "path" in body else ""
        return safe(f"{many(count, noun, nouns)}{place}")

    return view


def checks(body: Mapping[str, Any]) -> RenderableType:
    """The findings of the doctor."""
    marks = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red")}
    table = Table.grid(padding=(0, 2))
    for row in body["checks"]:
        fix = [safe(f"→ {row['fix']}", "cyan")] if row["fix"] else []
        table.add_row(Text(*marks[row["state"]]), Text(row["name"]), Text("\n").join([safe(row["what"], "dim"), *fix]))
    counts = [f"{sum(row['state'] == state for row in body['checks'])} {state}" for state in marks]
    return Group(table, Text(), Text(" · ".join(counts), style="green" if body["ok"] else "red"))
